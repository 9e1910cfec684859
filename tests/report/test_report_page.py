"""What the page, the Markdown and the decision say; how they look is tested in a browser."""

from __future__ import annotations

import html
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from gpufabric.core.text import use_language
from gpufabric.planner.advice import Advice, Change
from gpufabric.report.amounts import Currency, currency_of
from gpufabric.report.case_look import case_colour
from gpufabric.report.chart import Chart, charts_json, layout
from gpufabric.report.cost_charts import cost_charts
from gpufabric.report.decision_words import decision_of, money_words
from gpufabric.report.depreciation_table import depreciation_rows
from gpufabric.report.flip_chart import closeness, flip_chart, nearest_flips
from gpufabric.report.forecast_words import seconds_words
from gpufabric.report.guide_chart import guide_chart
from gpufabric.report.performance_charts import performance_charts
from gpufabric.report.report_markdown import report_markdown
from gpufabric.report.report_page import report_html
from gpufabric.report.risk_charts import failure_rows, margin_chart, tornado_chart
from gpufabric.report.unit_cost import unit_costs
from gpufabric.report.work_words import work_words
from tests.report.advices import BOTH, ONE, SERVING, advice, drawings

USD = Currency("USD", 1.0)
EVERY = pytest.mark.parametrize("text", [BOTH, ONE, SERVING], ids=["both", "one", "serving"])


class Parts(HTMLParser):
    """Tags of a page with their attributes, and how they nest."""

    EMPTY = frozenset({"meta", "link", "br", "input", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(text: str) -> str:
    told = advice(text)
    return report_html(told, drawings(told))


def figures(text: str) -> list[dict[str, object]]:
    found = re.search(r'id="figures">(.*?)</script>', page(text), re.DOTALL)
    assert found is not None
    content: list[dict[str, object]] = json.loads(found[1])
    return content


@EVERY
def test_the_page_is_whole_and_needs_no_network(text: str) -> None:
    parts = Parts(page(text))
    assert parts.open == []
    ids = [given["id"] for _tag, given in parts.tags if "id" in given]
    assert len(ids) == len(set(ids))
    for tag, given in parts.tags:
        assert not (given.get("src") or "").startswith(("http", "//"))
        assert tag not in {"iframe", "object", "embed"}
        if tag == "link":
            assert given["href"] == "data:,"
        if tag == "a" and (given.get("href") or "").startswith("#"):
            assert (given["href"] or "")[1:] in ids
    names = {one["name"] for one in figures(text)}
    assert {f"plot-{name}" for name in names} == {i for i in ids if i and i.startswith("plot-")}


@EVERY
def test_units_and_depreciation_are_told_on_the_page_and_in_words(text: str) -> None:
    told = advice(text)
    currency = currency_of(told.economics.plan.requirement.site)
    units = unit_costs(told, currency)
    shown, words = page(text), report_markdown(told)
    for case, row in zip(told.ranking, units.rows, strict=True):
        assert f"| {' | '.join(row)} |" in words
        assert f"{case.label}</th><td>{'</td><td>'.join(row[1:])}</td>" in shown
        assert float(row[2].replace(",", "")) == pytest.approx(
            case.per_gpu_hour.mean * currency.per_usd, rel=0.01
        )
        if case.per_eflop_day is None:
            assert row[-2:] == ("unknown", "unknown")
        else:
            assert float(row[-1].replace(",", "")) == pytest.approx(
                case.per_eflop_day.mean * currency.per_usd, rel=0.01
            )
    assert all(note in words for note in units.notes)
    serves = told.economics.plan.requirement.workload.kind == "inference"
    assert ("EFLOP-day is unknown" in " ".join(units.notes)) == serves
    for line in depreciation_rows(told, currency)[1]:
        assert f"| {' | '.join(line)} |" in words
        assert "</td><td>".join(line[1:]) in shown
    assert f"({'from the spec' if serves else 'assumed'}: cost.horizon_years)" in words


def test_chinese_has_its_own_marks() -> None:
    """No comma, colon or bracket of English stands beside a Chinese sign, no blank after a stop."""
    told = advice(BOTH, "zh_CN")
    use_language("zh_CN")
    try:
        page, text = report_html(told, drawings(told)), report_markdown(told)
    finally:
        use_language("en")
    page = re.sub(r"(?s)<script.*?</script>|<style.*?</style>|<svg.*?</svg>", "", page)
    lines = (html.unescape(re.sub(r"<[^>]+>", "\n", page)) + text).splitlines()
    # What is not translated yet is told by the test of the catalogue.
    shown = "\n".join(line for line in lines if not re.search(r"(?:[a-z]+ ){4}", line))
    assert re.findall(r".{0,20}[\u4e00-\u9fff\uff09] ?[,;:].{0,20}", shown) == []
    assert re.findall(r".{0,20}[,;:] ?[\u4e00-\u9fff].{0,20}", shown) == []
    assert re.findall(r"[\u4e00-\u9fff]\([^`)\n]*\).{0,20}", shown) == []
    assert re.findall(r".{0,20}[\u3002\uff1b\uff0c] +[\u4e00-\u9fff].{0,20}", shown) == []


def test_names_are_escaped() -> None:
    assert "Start <b>&amp; up" not in page(BOTH)
    assert "Start &lt;b&gt;&amp;amp; up" in page(BOTH)
    hostile = Chart("x", "</script>", "<!--", [{"y": ["</script><!--"]}], layout(100))
    text = charts_json([hostile])
    assert "</" not in text
    assert "<!--" not in text
    assert json.loads(text)[0]["data"][0]["y"] == ["</script><!--"]


def test_the_same_advice_gives_the_same_page() -> None:
    assert page(BOTH) == page(BOTH)
    assert report_markdown(advice(BOTH)) == report_markdown(advice(BOTH))


def test_the_decision_is_that_of_the_advice() -> None:
    told = advice(BOTH)
    decision = decision_of(told)
    winner = told.ranked(told.winner)
    assert decision.headline == f"Subscribe to {winner.candidate} from {winner.offer}"
    assert money_words(winner.total.mean, USD) in decision.answer
    assert told.ranked(told.runner_up).label in decision.answer
    for one, words in zip(told.reasons, decision.reasons, strict=True):
        assert one.label[1:] in words
        assert f"{money_words(one.saved.mean, USD)} less" in words
    assert f"{100 * winner.best_chance:.0f} %" in decision.sure
    assert decision.keys[0][0] == money_words(winner.total.mean, USD)
    assert all(what in page(BOTH) for what in ("Pitfalls in this spec", "If it is wrong"))


def test_a_budget_that_nothing_keeps_is_told_first() -> None:
    poor = BOTH.replace("draws: 256", "draws: 256, budget_usd: 10")
    told = advice(poor, sizes=())
    assert not told.is_within_budget
    least = min(told.ranking, key=lambda case: case.start_usd.mean)
    words = decision_of(told).answer
    assert words.startswith("No way is within the budget of 10 USD at the start")
    assert f"{money_words(least.start_usd.mean, USD)} for {least.label}" in words
    assert "No way is within" not in decision_of(advice(BOTH)).answer


@pytest.mark.parametrize(
    ("chance", "word"), [(0.95, "Sure"), (0.8, "Likely"), (0.65, "Leaning"), (0.4, "Close")]
)
def test_how_sure_it_is(chance: float, word: str) -> None:
    told = advice(BOTH)
    first, *rest = told.ranking
    ranking = (replace(first, best_chance=chance), *rest)
    assert decision_of(replace(told, ranking=ranking)).sure.startswith(f"{word}: ")


def test_an_advice_that_rests_on_what_may_go_wrong_says_so() -> None:
    told = advice(BOTH)
    swapped = replace(told, winner=told.runner_up, runner_up=told.winner)
    first = decision_of(swapped).objections[0]
    assert first.startswith(f"With every number at its most likely {told.winner} costs")
    assert "With every number" not in " ".join(decision_of(told).objections)


def test_the_other_fabric_is_told_where_the_next_best_is_of_the_same() -> None:
    told = advice(SERVING)
    held = told.contrast("other_fabric")
    assert held is not None
    assert held.other != told.runner_up
    words = decision_of(told).fabrics
    assert words.startswith(f"The best with InfiniBand is {told.ranked(held.other).label}: ")
    assert decision_of(replace(told, runner_up=held.other)).fabrics == ""


def test_what_the_workload_gets_is_told_beside_another_network() -> None:
    told = advice(BOTH)
    first, second = told.economics.plan.candidates
    words = decision_of(told).work
    assert "as fast on" in words
    assert first.name in words
    assert second.name in words
    step = first.forecast.training
    assert step is not None
    slow = replace(step, jitter=replace(step.jitter, mean_s=1.1 * step.jitter.mean_s))
    slower = replace(second, forecast=replace(second.forecast, training=slow))
    words = work_words(first, slower)
    assert f"{seconds_words(step.jitter.mean_s)} on {first.name}" in words
    assert f"{seconds_words(slow.jitter.mean_s)} on {second.name}" in words
    unknown = replace(first, forecast=replace(first.forecast, training=None))
    assert "is not known" in work_words(unknown, second)
    assert "a token, jitter included, takes" in work_words(
        advice(SERVING).economics.plan.candidates[0], None
    )


def test_one_way_alone_is_told_without_a_rival() -> None:
    told = advice(ONE)
    decision = decision_of(told)
    assert decision.headline == "Buy roce"
    assert "No other way was there to compare" in decision.answer
    assert decision.sure == decision.wrong == ""
    names = {one["name"] for one in figures(ONE)}
    assert not names & {"margin", "tornado", "margin-draws"}
    assert {"waterfall", "cost-groups", "over-time", "lost-hours"} <= names


def test_changes_that_are_near_come_first() -> None:
    told = advice(BOTH)
    near = nearest_flips(told.flips)
    assert [closeness(one) for one in near] == sorted(closeness(one) for one in near)
    first = near[0]
    assert decision_of(told).conditions[0] == first.sentence
    plain = replace(first, names=(), now=2.0, below=Change(1.0, "x"), above=Change(16.0, "x"))
    assert closeness(plain) == pytest.approx(np.log(2))
    assert closeness(replace(plain, below=None)) == pytest.approx(np.log(8))
    assert closeness(replace(plain, below=None, above=None)) == np.inf


def told_chart(told: Advice, name: str) -> Chart:
    return next(one for one in cost_charts(told, USD) if one.name == name)


@EVERY
def test_the_waterfall_ends_at_the_mean_total(text: str) -> None:
    told = advice(text)
    bars = told_chart(told, "waterfall").traces[0]
    ends = np.array(bars["base"]) + np.array(bars["x"])
    assert ends[-1] == pytest.approx(told.ranking[0].total.mean / 1e6)
    assert ends[-2] == pytest.approx(ends[-1])
    assert np.array(bars["base"])[1:-1] == pytest.approx(ends[:-2])


def test_the_margin_leads_from_one_mean_to_the_other() -> None:
    told = advice(SERVING)
    bars = told_chart(told, "margin").traces[0]
    ends = np.array(bars["base"]) + np.array(bars["x"])
    assert ends[0] == pytest.approx(told.ranked(told.winner).total.mean / 1e6)
    assert ends[-1] == pytest.approx(told.ranked(told.runner_up).total.mean / 1e6)
    assert ends[-2] == pytest.approx(ends[-1])


def test_groups_add_up_and_costs_cross_where_the_lines_do() -> None:
    told = advice(SERVING)
    groups = told_chart(told, "cost-groups")
    *bars, marks = groups.traces
    assert np.sum([bar["x"] for bar in bars], axis=0) == pytest.approx(marks["x"])
    *lines, circles = told_chart(told, "over-time").traces
    assert circles["x"], "a subscription that is dearer in the end"
    for year, value in zip(circles["x"], circles["y"], strict=True):
        at = [float(np.interp(year, line["x"], line["y"])) for line in lines]
        assert min(abs(np.array(at) / value - 1)) < 1e-9
        assert sorted(abs(np.array(at) / value - 1))[1] < 0.05, "another line is as high there"


def test_the_guide_names_the_winner_of_every_cell() -> None:
    told = advice(BOTH)
    assert told.chart is not None
    chart = guide_chart(told, told.chart, USD)
    heat, *legend = chart.traces
    names = [entry["name"] for entry in legend]
    assert np.array(heat["z"]).shape == (len(told.chart.gpu_hour_usd), len(told.chart.sizes))
    for mark in chart.layout["annotations"]:
        cell = told.chart.cell(told.chart.sizes[mark["x"]], told.chart.gpu_hour_usd[mark["y"]])
        letter = mark["text"][3]
        label = told.ranked(cell.winner).label
        assert f"{letter} {label}" in names
        assert mark["text"].endswith(f"<br>{100 * cell.confidence:.0f}")
    assert chart.layout["shapes"][0]["x0"] == told.chart.sizes.index(64) - 0.5


def test_bars_of_flips_cover_the_range_without_a_gap() -> None:
    told = advice(BOTH)
    chart = flip_chart(told)
    assert chart is not None
    for flip in (one for one in told.flips if not one.names and one.now > 0):
        spans = sorted(
            (low, low + long)
            for bar in chart.traces
            for label, low, long in zip(bar["y"], bar["base"], bar["x"], strict=True)
            if label == flip.label
        )
        assert spans[0][0] * flip.now == pytest.approx(flip.values[0])
        assert spans[-1][1] * flip.now == pytest.approx(flip.values[-1])
        for (_low, end), (start, _high) in itertools.pairwise(spans):
            assert end == pytest.approx(start)


def test_the_tornado_turns_about_the_most_likely_margin() -> None:
    told = advice(SERVING)
    low, high = tornado_chart(told, USD).traces
    assert len(set(low["base"])) == 1
    first = told.tornado_margin[0]
    ends = sorted([low["base"][0] + low["x"][0], high["base"][0] + high["x"][0]])
    assert ends == pytest.approx(sorted([first.low / 1e6, first.high / 1e6]))


def test_the_margin_as_a_distribution_counts_all_draws() -> None:
    told = advice(BOTH)
    chart = margin_chart(told, USD)
    assert sum(chart.traces[0]["y"]) == pytest.approx(1.0)
    colours = chart.traces[0]["marker"]["color"]
    assert colours[-1] == case_colour(told, told.winner)
    assert f"{100 * (told.confidence or 0):.0f} %" in chart.words


def test_curves_that_are_the_same_are_drawn_once() -> None:
    plans = advice(BOTH).economics.plan.candidates
    busbw = performance_charts(plans)[0]
    lines = [trace for trace in busbw.traces if trace.get("name")]
    assert [line["name"] for line in lines] == ["infiniband, roce"]
    assert "All candidates have the same curve." in busbw.words
    low, high, middle = busbw.traces
    assert all(a <= b <= c for a, b, c in zip(low["y"], middle["y"], high["y"], strict=True))


def test_failures_are_told_for_every_way() -> None:
    told = advice(SERVING)
    costs = [told.economics.cost(case.name) for case in told.ranking]
    rows = failure_rows(costs, told.economics)
    assert {len(row) for row in rows} == {1 + min(8, len(costs))}
    planes = [cost.case.facts.exposure.planes for cost in costs]
    for count, words in zip(planes, rows[-1][1:], strict=False):
        assert words == ("stops the job" if count == 1 else f"takes 1/{count} of its bandwidth")


@EVERY
def test_markdown_says_the_same(text: str) -> None:
    told = advice(text)
    written = report_markdown(told)
    decision = decision_of(told)
    for words in (decision.headline, decision.answer, *decision.reasons, *decision.conditions):
        assert words in written
    for plan in told.economics.plan.candidates:
        assert plan.fabric.content_hash in written
    for table in re.findall(r"(?:^\|.*\n)+", written, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1


def test_amounts_are_in_the_currency_of_the_site() -> None:
    told = advice(SERVING)
    currency = currency_of(told.economics.plan.requirement.site)
    assert currency.code == "CNY"
    winner = told.ranked(told.winner)
    assert decision_of(told).keys[0][0] == money_words(winner.total.mean, currency)
    chart = next(one for one in cost_charts(told, currency) if one.name == "cost-groups")
    assert chart.traces[-1]["x"][0] == pytest.approx(winner.total.mean * 7.1 / 1e6)
