"""``report.html``: the decision and everything behind it on one page that needs no network."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from plotly.offline import get_plotlyjs

from gpufabric import __version__
from gpufabric.core.text import _, current_language, listed, titled
from gpufabric.planner.advice import Advice
from gpufabric.planner.compare import CandidatePlan, spec_hash
from gpufabric.report.amounts import Currency, currency_of
from gpufabric.report.chart import Chart, chart_html, charts_json, data_table, percent, unbroken
from gpufabric.report.cost_charts import cost_charts
from gpufabric.report.decision_section import decision_html, ranges_chart
from gpufabric.report.decision_words import network_words, spec_words
from gpufabric.report.depreciation_table import depreciation_rows, depreciation_words
from gpufabric.report.flip_chart import flip_chart
from gpufabric.report.forecast_words import forecast_notes
from gpufabric.report.guide_chart import guide_chart
from gpufabric.report.ledger_section import bill_html, ledger_html
from gpufabric.report.performance_charts import performance_charts
from gpufabric.report.risk_charts import failure_rows, lost_chart, margin_chart, tornado_chart
from gpufabric.report.side_by_side import Fact
from gpufabric.report.terminal import plan_facts
from gpufabric.report.unit_cost import unit_costs

__all__ = ["Drawings", "report_html"]


@dataclass(frozen=True)
class Drawings:
    """The drawings of one candidate, as SVG."""

    topology: str
    racks: str


@dataclass(frozen=True)
class _Section:
    """One part of the page: its anchor, its place in the menu, its heading, its content."""

    name: str
    menu: str
    title: str
    body: str


def report_html(advice: Advice, drawings: Sequence[Drawings]) -> str:
    """Return the page.

    Parameters
    ----------
    advice
        The decision, with the plan and its costs.
    drawings
        One for each candidate, in their order.
    """
    plan = advice.economics.plan
    currency = currency_of(plan.requirement.site)
    performance = performance_charts(plan.candidates)
    cost = cost_charts(advice, currency)
    risk = _risk_charts(advice, currency)
    guide = _guide_charts(advice, currency)
    lost = lost_chart([advice.economics.cost(case.name) for case in advice.ranking])
    sections = [
        _Section("compare", _("Side by side"), _("Side by side"), _compare(advice, currency)),
        *_guide(guide),
        _Section("network", _("Network"), _("The networks"), _network(plan.candidates, drawings)),
        _Section(
            "performance",
            _("Performance"),
            _("What the workload gets"),
            _performance(plan.candidates, performance),
        ),
        _Section("cost", _("Cost"), _("What it costs"), _costs(advice, cost, currency)),
        _Section(
            "sensitivity", _("Uncertainty"), _("How sure, and what moves it"), _risk(advice, risk)
        ),
        _Section("failures", _("Failures"), _("Failure and repair"), _failures(advice, lost)),
        _Section("ledger", _("Assumptions"), _("Every number that was used"), _ledger(advice)),
        _Section("bill", _("Bill"), _("Bill of materials"), _bills(plan.candidates, currency)),
    ]
    charts = [ranges_chart(advice, currency), *guide, *performance, *cost, *risk, lost]
    return _document(advice, sections, charts, decision_html(advice, currency))


# Frame ---------------------------------------------------------------------------------------


def _asset(name: str) -> str:
    path = importlib.resources.files("gpufabric.report") / "assets" / name
    return path.read_text(encoding="utf-8")


def _document(
    advice: Advice, sections: Sequence[_Section], charts: Sequence[Chart], verdict: str
) -> str:
    title = spec_words(advice)
    language = current_language().replace("_", "-")
    links = [("decision", _("Decision")), *((one.name, one.menu) for one in sections)]
    menu = "".join(f'<li><a href="#{name}">{escape(words)}</a></li>' for name, words in links)
    parts = "".join(
        f'<section id="{one.name}"><h2>{escape(one.title)}</h2>{one.body}</section>\n'
        for one in sections
    )
    no_script = _("Figures are drawn by a script that is switched off; their numbers stand below.")
    what = escape(_("InfiniBand or RoCE v2, bought or by subscription: gpufabric {version}"))
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>\n{_asset('report.css')}</style>\n</head>\n<body>\n"
        f'<header class="top"><p>{what.format(version=__version__)}</p>'
        f"<h1>{escape(title)}</h1></header>\n"
        f'<nav aria-label="{escape(_("Sections"), quote=True)}"><ul>{menu}</ul></nav>\n'
        f"<noscript><p>{escape(no_script)}</p></noscript>\n"
        f'<main>\n<div id="decision">{verdict}</div>\n{parts}</main>\n{_footer(advice)}\n'
        f'<script type="application/json" id="figures">{charts_json(charts)}</script>\n'
        f"<script>{get_plotlyjs()}</script>\n<script>\n{_asset('report.js')}</script>\n"
        "</body>\n</html>\n"
    )


def _footer(advice: Advice) -> str:
    plan = advice.economics.plan
    facts = [
        (_("Version"), f"gpufabric {__version__}"),
        (_("Spec"), spec_hash(plan.requirement)),
        *(
            (_("Fabric {name}").format(name=one.name), one.fabric.content_hash)
            for one in plan.candidates
        ),
        (_("Draws"), f"{len(next(iter(advice.economics.draws.values()))):,}"),
        (_("Seed"), str(plan.requirement.seed)),
        (_("Left out"), _("taxes; what the hosts cost, which is the same for all ways")),
    ]
    rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(words)}</dd>" for label, words in facts)
    return f"<footer><dl>{rows}</dl></footer>"


def _grid(charts: Sequence[Chart]) -> str:
    return "".join(chart_html(chart) for chart in charts)


def _lead(words: str) -> str:
    return f'<p class="lead">{escape(words)}</p>'


def _card(body: str) -> str:
    return f'<div class="card">{body}</div>\n'


# Sections ------------------------------------------------------------------------------------


def _compare(advice: Advice, currency: Currency) -> str:
    plan = advice.economics.plan
    names = [one.name for one in plan.candidates]
    best = advice.ranked(advice.winner).candidate
    return (
        _lead(_("Every way to have the network, the best first; amounts are present values."))
        + _card(_ways(advice, currency) + _left_out(advice))
        + _lead(_("The candidates as designed; ranges in brackets are low and high prices."))
        + _card(_facts(names, plan_facts(plan), best))
    )


def _left_out(advice: Advice) -> str:
    """Tell which candidates are not here, and which ways another beats in everything."""
    absent = [titled(one.name, one.why) for one in advice.economics.plan.left_out]
    beaten = [titled(one.name, one.sentence) for one in advice.pareto if one.is_dominated]
    parts = []
    if absent:
        parts.append(f"<h3>{escape(_('Candidates left out'))}</h3>{_items(absent)}")
    if beaten:
        words = _("{n} ways are dominated: another is better in all respects").format(n=len(beaten))
        parts.append(f"<details><summary>{escape(words)}</summary>{_items(beaten)}</details>")
    return "".join(parts)


def _items(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(words)}</li>" for words in sentences) + "</ul>"


def _ways(advice: Advice, currency: Currency) -> str:
    regrets = {one.name: one for one in advice.regrets}
    dominated = {one.name for one in advice.pareto if one.is_dominated}
    scale = currency.per_usd / 1e6

    def millions(amount_usd: float) -> str:
        return (
            f"{amount_usd * scale:,.2f}" if abs(amount_usd) >= 1e6 else f"{amount_usd * scale:,.3f}"
        )

    rows = []
    for case in advice.ranking:
        regret = regrets.get(case.name)
        notes = [
            *([_("above the budget")] if case.exceeds_budget else []),
            *([_("the same as {name}").format(name=case.same_as)] if case.same_as else []),
            *([_("dominated")] if case.name in dominated else []),
            *([_("without {n} prices").format(n=case.n_unpriced)] if case.n_unpriced else []),
        ]
        rows.append(
            [
                listed([case.label, *notes]),
                millions(case.total.mean),
                f"{millions(case.total.p10)} – {millions(case.total.p90)}",
                millions(case.start_usd.mean),
                millions(case.paid.mean),
                millions(case.groups["opportunity"].mean),
                f"{case.per_gpu.mean * currency.per_usd:,.0f}",
                f"{case.per_gpu_hour.mean * currency.per_usd:,.3f}",
                percent(case.best_chance),
                "–" if regret is None else millions(regret.mean_usd),
            ]
        )
    code = currency.code
    heads = [
        _("Way"),
        _("in all [M {code}]").format(code=code),
        _("P10 to P90 [M {code}]").format(code=code),
        _("at the start [M {code}]").format(code=code),
        _("paid [M {code}]").format(code=code),
        _("GPU-hours lost [M {code}]").format(code=code),
        _("per GPU [{code}]").format(code=code),
        _("per GPU-hour [{code}]").format(code=code),
        _("chance to be best"),
        _("mean regret [M {code}]").format(code=code),
    ]
    return data_table(heads, rows, name=_("Every way"), is_ranking=True)


def _facts(names: Sequence[str], facts: Sequence[Fact], best: str) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr{" class=opens" if fact.opens else ""}><th scope="row">{escape(fact.label)}</th>'
        + "".join(f"<td>{unbroken(value or '–')}</td>" for value in fact.values)
        + "</tr>"
        for fact in facts
        if fact.is_told
    )
    label = escape(_("Candidates side by side; {best} is advised").format(best=best), quote=True)
    return (
        f'<div class="scroll" tabindex="0" aria-label="{label}"><table><thead><tr><td></td>{head}'
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _network(plans: Sequence[CandidatePlan], drawings: Sequence[Drawings]) -> str:
    return "".join(_drawn(*pair) for pair in zip(plans, drawings, strict=True))


def _drawn(plan: CandidatePlan, drawing: Drawings) -> str:
    words = network_words(plan)
    warnings = "".join(
        f'<p><span class="warn">{escape(_("Warning"))}</span> '
        f"<b>{escape(f'{one.topic}: {one.choice}')}</b> {escape(one.why)}</p>"
        for one in plan.warnings
    )
    files = (
        (_("Topology of {name}").format(name=plan.name), drawing.topology),
        (_("Racks of {name}").format(name=plan.name), drawing.racks),
    )
    figures = "".join(
        f'<figure class="drawn"><div class="drawing" tabindex="0" style="--wide:{_width(svg)}px">'
        f"{svg}</div>"
        f"<figcaption>{escape(titled(title, words))}</figcaption></figure>\n"
        for title, svg in files
    )
    return f"<h3>{escape(plan.name)}</h3>{warnings}{figures}"


def _width(svg: str) -> str:
    """Return how many pixels a drawing is wide."""
    return svg.partition(' width="')[2].partition('"')[0]


def _performance(plans: Sequence[CandidatePlan], charts: Sequence[Chart]) -> str:
    notes = forecast_notes([one.forecast for one in plans])
    told = "".join(f"<p>{escape(words)}</p>" for words in notes)
    bandwidth = [chart for chart in charts if chart.name.startswith("busbw")]
    rest = [chart for chart in charts if chart not in bandwidth]
    return f'{told}<div class="grid">{_grid(bandwidth)}</div>{_grid(rest)}'


def _costs(advice: Advice, charts: Sequence[Chart], currency: Currency) -> str:
    units = unit_costs(advice, currency)
    title = _("What a unit costs")
    notes = "".join(f"<p>{escape(words)}</p>" for words in units.notes)
    table = data_table(units.heads, units.rows, name=title, is_ranking=True)
    parts = [_grid(charts), _card(f"<h3>{escape(title)}</h3>{table}{notes}")]
    heads, rows = depreciation_rows(advice, currency)
    if rows:
        title = _("Depreciation in the books")
        words = escape(depreciation_words(advice))
        table = data_table(heads, rows, name=title)
        parts.append(_card(f"<h3>{escape(title)}</h3>{table}<p>{words}</p>"))
    return "".join(parts)


def _risk_charts(advice: Advice, currency: Currency) -> list[Chart]:
    charts: list[Chart] = []
    if advice.runner_up:
        charts += [margin_chart(advice, currency), tornado_chart(advice, currency)]
    turned = flip_chart(advice)
    return [*charts, *([turned] if turned else [])]


def _guide_charts(advice: Advice, currency: Currency) -> list[Chart]:
    if advice.chart is None or not advice.chart.cells:
        return []
    return [guide_chart(advice, advice.chart, currency)]


def _guide(charts: Sequence[Chart]) -> list[_Section]:
    if not charts:
        return []
    title = _("Which network at which size")
    return [_Section("selection", _("Selection guide"), title, _grid(charts))]


def _risk(advice: Advice, charts: Sequence[Chart]) -> str:
    others = [one for one in advice.flips if one.names or one.now <= 0]
    named = "".join(f"<li>{escape(one.sentence)}</li>" for one in others)
    title = escape(_("Team and delivery"))
    card = _card(f"<h3>{title}</h3><ul>{named}</ul>") if named else ""
    return _grid(charts) + card


def _failures(advice: Advice, lost: Chart) -> str:
    costs = [advice.economics.cost(case.name) for case in advice.ranking]
    rows = failure_rows(costs, advice.economics)
    heads = [_("In the median, with eight of ten draws"), *(cost.name for cost in costs[:8])]
    return chart_html(lost) + _card(data_table(heads, rows, name=_("Failure and repair")))


def _ledger(advice: Advice) -> str:
    n = sum(1 for row in advice.ledger if row.is_assumed)
    words = _(
        "{all} numbers; {n} are assumed, without a source. Those on top move the decision most: "
        "settle these first. Give your own under cost.assumptions in the spec, by the name below "
        "each."
    ).format(all=len(advice.ledger), n=n)
    return _lead(words) + _card(ledger_html(advice.ledger))


def _bills(plans: Sequence[CandidatePlan], currency: Currency) -> str:
    return "".join(_bill_parts(plans, currency))


def _bill_parts(plans: Sequence[CandidatePlan], currency: Currency) -> Iterator[str]:
    yield _lead(_("Networks without the hosts, at middle prices; bom.xlsx has every column."))
    for plan in plans:
        yield _card(f"<h3>{escape(plan.name)}</h3>{bill_html(plan, currency)}")
