"""``report.xlsx``: the decision, and what each way costs by formulas that follow the inputs."""

from __future__ import annotations

from gpufabric import __version__
from gpufabric.core.text import _, sentences, titled
from gpufabric.planner.advice import Advice
from gpufabric.planner.compare import spec_hash
from gpufabric.planner.ranking import case_label
from gpufabric.report.amounts import currency_of
from gpufabric.report.cost_sheet import CostCells, cost_sheet, input_sheet, part_sheet
from gpufabric.report.decision_words import Decision, decision_of, spec_words
from gpufabric.report.workbook_format import Book, Column, Formula, Page, cell, sheet_names

__all__ = ["report_xlsx"]


def report_xlsx(advice: Advice) -> bytes:
    """Return the workbook; the same advice gives the same bytes."""
    book = Book(spec_words(advice))
    names = sheet_names(
        [
            _("Decision"),
            _("Inputs"),
            _("Parts"),
            _("Costs"),
            _("Over time"),
            _("Selection guide"),
        ]
    )
    decision = book.page(
        names[0],
        [
            Column(spec_words(advice), 42, "wrapped"),
            Column(_("at the values in use [USD]"), 20, "usd"),
            Column(_("less the advised way [USD]"), 20, "usd"),
            Column(_("mean of all draws [USD]"), 20, "usd"),
            Column("P10 [USD]", 16, "usd"),
            Column("P90 [USD]", 16, "usd"),
            Column(_("chance to be best"), 14, "share"),
        ],
    )
    given = input_sheet(book, names[1], advice)
    parts = part_sheet(book, names[2], advice, given)
    totals = cost_sheet(book, names[3], advice, given, parts)
    _ranking(decision, advice, totals)
    _words(decision, decision_of(advice))
    _end(decision, advice)
    _over_time(book, names[4], advice)
    _guide(book, names[5], advice)
    return book.content()


def _ranking(page: Page, advice: Advice, totals: CostCells) -> None:
    currency = currency_of(advice.economics.plan.requirement.site)
    first = page.row
    best = totals.totals[advice.ranking[0].name]
    for case in advice.ranking:
        total = totals.totals[case.name]
        row = page.row
        page.add(
            [
                case.label,
                Formula(f"={total.text}", total.value),
                Formula(f"={cell(row, 1)}-{cell(first, 1, fixed=True)}", total.value - best.value),
                case.total.mean,
                case.total.p10,
                case.total.p90,
                case.best_chance,
            ],
            is_bold=case.name == advice.winner,
        )
    page.skip()
    if currency.code != "USD":
        page.add(
            [_("{code} for one USD").format(code=currency.code), currency.per_usd], numbers="exact"
        )
        rate = cell(page.row - 1, 1, fixed=True)
        for at, case in enumerate(advice.ranking):
            value = totals.totals[case.name].value * currency.per_usd
            words = f"{case.label} [{currency.code}]"
            page.add([words, Formula(f"={cell(first + at, 1)}*{rate}", value)])
        page.skip()
    page.add_words(
        _(
            "Change the yellow cells of the inputs: costs and totals follow. Means and ranges "
            "come from all draws and do not."
        )
    )
    page.skip()


def _words(page: Page, told: Decision) -> None:
    parts: list[tuple[str, tuple[str, ...]]] = [
        (told.headline, (told.network, sentences(told.answer, told.sure))),
        (_("Why"), told.reasons),
        (_("What speaks against it"), told.objections),
        (_("What would change it"), told.conditions),
        (_("If it is wrong"), (told.wrong,)),
        (_("Buy or subscribe, InfiniBand or RoCE"), (told.ownership, told.fabrics)),
        (_("What the workload gets"), (told.work,)),
        (_("Pitfalls in this spec"), tuple(sentences(*one) for one in told.pitfalls)),
    ]
    for title, told_of in parts:
        shown = [words for words in told_of if words]
        if not shown:
            continue
        page.add([title], is_bold=True)
        for words in shown:
            page.add_words(words)


def _end(page: Page, advice: Advice) -> None:
    plan = advice.economics.plan
    page.skip()
    page.add_words(f"gpufabric {__version__}")
    page.add_words(_("Spec {hash}").format(hash=spec_hash(plan.requirement)))
    for one in plan.candidates:
        page.add_words(titled(one.name, one.fabric.content_hash))


def _over_time(book: Book, name: str, advice: Advice) -> None:
    """Write what is paid and lost in each year, means of all draws."""
    years = range(advice.horizon_years + 1)
    columns = [
        Column(_("Way"), 40, "wrapped"),
        Column(_("what"), 30),
        *(Column(_("year {n}").format(n=year), 14, "usd") for year in years),
        Column(_("sum"), 16, "usd"),
    ]
    page = book.page(name, columns)
    for flow in advice.cash:
        label = case_label(advice.economics.cost(flow.name).case)
        for words, amounts in (
            (_("paid, not discounted [USD]"), flow.paid_usd),
            (_("GPU-hours lost, at their value [USD]"), flow.lost_usd),
        ):
            row, last = page.row, 1 + len(amounts)
            added = Formula(f"=SUM({cell(row, 2)}:{cell(row, last)})", float(amounts.sum()))
            page.add([label, words, *(float(value) for value in amounts), added])
        present = [float(flow.cumulative_usd[12 * year]) for year in years]
        page.add([label, _("present value up to then [USD]"), *present])


def _guide(book: Book, name: str, advice: Advice) -> None:
    columns = [
        Column(_("GPUs"), 12, "count"),
        Column(_("value of a GPU-hour [USD]"), 20, "exact"),
        Column(_("winner"), 28),
        Column(_("next"), 28),
        Column(_("margin [USD]"), 18, "usd"),
        Column(_("margin"), 12, "share"),
        Column(_("chance to be cheaper"), 14, "share"),
    ]
    page = book.page(name, columns)
    if advice.chart is None:
        return
    for row in (*advice.chart.drawn, *advice.chart.cells):
        page.add(
            [
                row.gpus,
                _("as drawn") if row.gpu_hour_usd is None else row.gpu_hour_usd,
                row.winner,
                row.runner_up,
                row.margin_usd,
                row.margin_share,
                row.confidence,
            ]
        )
    page.filter_to(page.row - 1)
