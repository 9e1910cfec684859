"""``report.md``: the decision in words, for a mail, a ticket or a review."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpufabric import __version__
from gpufabric.core.text import _, sentences, titled
from gpufabric.planner.advice import Advice
from gpufabric.planner.compare import spec_hash
from gpufabric.report.amounts import currency_of
from gpufabric.report.chart import percent
from gpufabric.report.decision_words import decision_of, network_words, spec_words
from gpufabric.report.depreciation_table import depreciation_rows, depreciation_words
from gpufabric.report.forecast_words import forecast_notes
from gpufabric.report.risk_charts import failure_rows, number_words
from gpufabric.report.terminal import plan_facts
from gpufabric.report.unit_cost import unit_costs

__all__ = ["report_markdown"]

MOST_NUMBERS = 25
"""Numbers of the ledger that are listed: those that move the decision most."""


def report_markdown(advice: Advice) -> str:
    """Return the report as Markdown."""
    parts = [
        *_decision(advice),
        *_ways(advice),
        *_candidates(advice),
        *_guide(advice),
        *_uncertainty(advice),
        *_failures(advice),
        *_numbers(advice),
        *_end(advice),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(_cell(cell) for cell in cells) + " |"

    rule = "|" + "---|" + "--:|" * (len(heads) - 1)
    return "\n".join([line(heads), rule, *(line(row) for row in rows)])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _listed(items: Sequence[str]) -> str:
    return "\n".join(f"- {words}" for words in items)


def _decision(advice: Advice) -> Iterator[str]:
    told = decision_of(advice)
    yield f"# {spec_words(advice)}"
    yield titled(f"**{told.headline}**", told.network)
    yield sentences(told.answer, told.sure)
    parts = (
        (_("Why"), told.reasons),
        (_("What speaks against it"), told.objections),
        (_("What would change it"), told.conditions),
        (_("If it is wrong"), [told.wrong] if told.wrong else []),
        (
            _("Buy or subscribe, InfiniBand or RoCE"),
            [words for words in (told.ownership, told.fabrics) if words],
        ),
        (_("What the workload gets"), [told.work]),
        (_("Pitfalls in this spec"), [sentences(*one) for one in told.pitfalls]),
    )
    for title, found in parts:
        if found:
            yield f"## {title}"
            yield _listed(found)


def _ways(advice: Advice) -> Iterator[str]:
    currency = currency_of(advice.economics.plan.requirement.site)
    yield "## " + _("What each way costs")
    rows = [
        [
            case.label,
            currency.words(case.total.mean),
            f"{currency.words(case.total.p10)} – {currency.words(case.total.p90)}",
            currency.words(case.start_usd.mean),
            currency.words(case.paid.mean),
            currency.words(case.groups["opportunity"].mean),
            percent(case.best_chance),
        ]
        for case in advice.ranking
    ]
    heads = [
        _("Way"),
        _("in all"),
        _("P10 to P90"),
        _("at the start"),
        _("paid"),
        _("GPU-hours lost"),
        _("chance to be best"),
    ]
    yield _table(heads, rows)
    units = unit_costs(advice, currency)
    yield "## " + _("What a unit costs")
    yield _table(units.heads, units.rows)
    yield _listed(units.notes)
    years, schedule = depreciation_rows(advice, currency)
    if schedule:
        yield "## " + _("Depreciation in the books")
        yield _table(years, schedule)
        yield depreciation_words(advice)


def _candidates(advice: Advice) -> Iterator[str]:
    plan = advice.economics.plan
    yield "## " + _("Side by side")
    rows = [
        [fact.label, *(value or "–" for value in fact.values)]
        for fact in plan_facts(plan)
        if fact.is_told
    ]
    yield _table(["", *(one.name for one in plan.candidates)], rows)
    notes = forecast_notes([one.forecast for one in plan.candidates])
    if notes:
        yield _listed(notes)


def _guide(advice: Advice) -> Iterator[str]:
    guide = advice.chart
    if guide is None or not guide.cells:
        return
    yield "## " + _("Which network at which size")
    heads = [_("GPUs"), *(f"{value:g} USD" for value in guide.gpu_hour_usd)]
    rows = [
        [
            f"{size:,}",
            *(
                f"{cell.winner} ({percent(cell.confidence)})"
                for cell in (guide.cell(size, value) for value in guide.gpu_hour_usd)
            ),
        ]
        for size in guide.sizes
    ]
    yield _table(heads, rows)
    yield _("Columns: value of a GPU-hour. In brackets: chance to be cheaper than the next.")


def _uncertainty(advice: Advice) -> Iterator[str]:
    if not advice.flips:
        return
    yield "## " + _("One number turned, all others drawn")
    yield _listed([one.sentence for one in advice.flips])


def _failures(advice: Advice) -> Iterator[str]:
    costs = [advice.economics.cost(case.name) for case in advice.ranking]
    rows = failure_rows(costs, advice.economics)
    yield "## " + _("Failure and repair")
    yield _table(["", *(cost.name for cost in costs[: len(rows[0]) - 1])], rows)


def _numbers(advice: Advice) -> Iterator[str]:
    yield "## " + _("Numbers that move the decision most")
    rows = [
        [
            f"{row.label} (`{row.key}`)",
            number_words(row.low, row.unit),
            number_words(row.mid, row.unit),
            number_words(row.high, row.unit),
            percent(row.share_of_margin),
            " · ".join(part for part in (row.kind, row.source, row.date) if part),
        ]
        for row in advice.ledger[:MOST_NUMBERS]
    ]
    heads = [
        _("Number"),
        _("low"),
        _("most likely"),
        _("high"),
        _("of the margin's variance"),
        _("source and date"),
    ]
    yield _table(heads, rows)
    yield _("All {n} are in report.html, report.xlsx and plan.json.").format(n=len(advice.ledger))


def _end(advice: Advice) -> Iterator[str]:
    plan = advice.economics.plan
    lines = [f"gpufabric {__version__}", _("Spec {hash}").format(hash=spec_hash(plan.requirement))]
    lines += [
        f"{one.name}: {network_words(one)}, {one.fabric.content_hash}" for one in plan.candidates
    ]
    yield "## " + _("What this was made from")
    yield _listed(lines)
