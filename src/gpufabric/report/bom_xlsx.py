"""``bom.xlsx``: summary, bills with live formulas, racks, cables, decisions, sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufabric.core.text import _
from gpufabric.cost.capital import Amount, Capital, range_note
from gpufabric.planner.compare import CandidatePlan, Plan
from gpufabric.report.amounts import currency_of
from gpufabric.report.bom_csv import bom_row
from gpufabric.report.plan_sheets import (
    cable_sheet,
    decision_sheet,
    rack_sheet,
    source_sheet,
)
from gpufabric.report.terminal import plan_facts
from gpufabric.report.workbook_format import (
    Book,
    Column,
    Formula,
    Page,
    cell,
    column_range,
    sheet_names,
)
from gpufabric.report.workload_sheet import workload_sheet
from gpufabric.topology.bill import SECTIONS

__all__ = ["bom_xlsx", "section_words"]

_QUANTITY, _SPARES, _LATER = 6, 7, 8
_UNIT, _TOTAL, _SPARE_TOTAL, _LATER_TOTAL = 9, 12, 15, 16
_MID = 10


@dataclass(frozen=True)
class _Totals:
    """Where the totals of one candidate stand in its sheet of the bill."""

    sheet: str
    rows: Mapping[str, int]


def bom_xlsx(plan: Plan, content: Mapping[str, Any]) -> bytes:
    """Return the workbook of a plan; the same plan gives the same bytes.

    Parameters
    ----------
    plan
        The plan.
    content
        What ``plan_json`` says of it: its sources and assumptions are listed.
    """
    book = Book(plan.requirement.name or _("Bill of materials"))
    names = [candidate.name for candidate in plan.candidates]
    fixed = [
        *(_("Summary"), _("Racks"), _("Cables"), _("Decisions"), _("Sources")),
        _("Workload"),
    ]
    bill_names = [_("BOM {name}").format(name=name) for name in names]
    sheets = sheet_names([*fixed, *bill_names])
    where = dict(zip([*fixed, *bill_names], sheets, strict=True))
    summary = book.page(
        where[fixed[0]],
        [Column(_("Compared"), 30), *(Column(name, 34) for name in names)],
    )
    bills = [
        _bill_sheet(book, where[sheet], candidate)
        for sheet, candidate in zip(bill_names, plan.candidates, strict=True)
    ]
    _summary_rows(summary, plan, bills)
    workload_sheet(book, where[fixed[5]], plan)
    rack_sheet(book, where[fixed[1]], plan)
    cable_sheet(book, where[fixed[2]], plan)
    decision_sheet(book, where[fixed[3]], plan)
    source_sheet(book, where[fixed[4]], content)
    return book.content()


# Summary ----------------------------------------------------------------------------------


def _summary_rows(page: Page, plan: Plan, bills: Sequence[_Totals]) -> None:
    for fact in plan_facts(plan):
        if fact.opens:
            page.skip()
        page.add([fact.label, *(value or "–" for value in fact.values)])
    page.skip()
    page.add([_("Sums of the bills, live [USD]")], is_bold=True)
    for section, words in section_words().items():
        for label, offset in ((_("low"), 0), (_("middle"), 1), (_("high"), 2)):
            values = [
                Formula(
                    f"='{bill.sheet}'!{cell(bill.rows[section], _TOTAL + offset)}",
                    _part(candidate.capital, section, offset),
                )
                for bill, candidate in zip(bills, plan.candidates, strict=True)
            ]
            page.add([f"{words}, {label}", *values])
    _rate_rows(page, plan, bills)
    page.skip()
    page.add([range_note()])


def _rate_rows(page: Page, plan: Plan, bills: Sequence[_Totals]) -> None:
    """Write the totals in the currency of the site, by a rate that the reader may change."""
    currency = currency_of(plan.requirement.site)
    if currency.code == "USD":
        return
    page.skip()
    at = page.add([_("{code} for one USD").format(code=currency.code), currency.per_usd])
    rate = cell(at, 1, fixed=True)
    for label, offset in ((_("low"), 0), (_("middle"), 1), (_("high"), 2)):
        values = [
            Formula(
                f"='{bill.sheet}'!{cell(bill.rows['compute'], _TOTAL + offset)}*{rate}",
                _part(candidate.capital, "compute", offset) * currency.per_usd,
            )
            for bill, candidate in zip(bills, plan.candidates, strict=True)
        ]
        words = _("Compute fabric, {label} [{code}]").format(label=label, code=currency.code)
        page.add([words, *values])


def section_words() -> dict[str, str]:
    """Return what each section of a bill is called."""
    return {
        "hosts": _("Hosts with NICs"),
        "compute": _("Compute fabric"),
        "storage": _("Storage network"),
        "management": _("Management network"),
        "total": _("Everything"),
    }


def _part(capital: Capital, section: str, offset: int) -> float:
    amount = capital.total if section == "total" else capital.sections[section]
    return round(_three(amount)[offset], 2)


def _three(amount: Amount) -> tuple[float, float, float]:
    return amount.low_usd, amount.mid_usd, amount.high_usd


# Bills ------------------------------------------------------------------------------------


def _bill_columns() -> list[Column]:
    return [
        Column(_("Section"), 12),
        Column(_("Category"), 12),
        Column(_("Use"), 12),
        Column(_("Name"), 20),
        Column(_("Device"), 44, "wrapped"),
        Column(_("Length [m]"), 9, "decimal"),
        Column(_("Quantity"), 10, "count"),
        Column(_("Spares"), 9, "count"),
        Column(_("Later"), 9, "count"),
        Column(_("Unit low [USD]"), 13, "money"),
        Column(_("Unit middle [USD]"), 13, "money"),
        Column(_("Unit high [USD]"), 13, "money"),
        Column(_("Total low [USD]"), 16, "money"),
        Column(_("Total middle [USD]"), 16, "money"),
        Column(_("Total high [USD]"), 16, "money"),
        Column(_("Spares, middle [USD]"), 14, "money"),
        Column(_("Later, middle [USD]"), 14, "money"),
        Column(_("Typical [W]"), 10, "decimal"),
        Column(_("Largest [W]"), 10, "decimal"),
        Column(_("Price held by"), 12),
        Column(_("Price source"), 40, "wrapped"),
        Column(_("Date"), 12),
        Column(_("Kind"), 12),
        Column(_("Note"), 40, "wrapped"),
    ]


def _bill_sheet(book: Book, name: str, plan: CandidatePlan) -> _Totals:
    page = book.page(name, _bill_columns())
    first = page.row
    for line in plan.bill.lines:
        row = bom_row(line)
        at = page.row
        page.add(
            [
                *row[:_TOTAL],
                *(_product(at, _QUANTITY, _UNIT + i, row) for i in range(3)),
                _product(at, _SPARES, _MID, row),
                _product(at, _LATER, _MID, row),
                *row[_TOTAL + 3 :],
            ],
            is_marked=line.price is not None and line.price.kind == "assumed",
        )
    last = page.row - 1
    page.filter_to(last)
    page.skip()
    rows: dict[str, int] = {
        section: _section_row(page, plan, section, (first, last)) for section in SECTIONS
    }
    rows["total"] = _total_row(page, plan, (first, last))
    return _Totals(name, rows)


def _product(row: int, count: int, price: int, values: Sequence[Any]) -> Formula | None:
    """Return pieces times price, as a formula; None where the price is unknown."""
    if values[price] == "":
        return None
    value = round(float(values[count]) * float(values[price]), 2)
    return Formula(f"={cell(row, count)}*{cell(row, price)}", value)


_SUMMED = (_TOTAL, _TOTAL + 1, _TOTAL + 2, _SPARE_TOTAL, _LATER_TOTAL)


def _section_row(page: Page, plan: CandidatePlan, section: str, span: tuple[int, int]) -> int:
    sections = column_range(0, *span)
    sums = [
        Formula(
            f'=SUMIF({sections},"{section}",{column_range(column, *span)})',
            _summed(plan, column, section),
        )
        for column in _SUMMED
    ]
    return page.add([section_words()[section], *[None] * (_TOTAL - 1), *sums], is_bold=True)


def _total_row(page: Page, plan: CandidatePlan, span: tuple[int, int]) -> int:
    sums = [
        Formula(f"=SUM({column_range(column, *span)})", _summed(plan, column, ""))
        for column in _SUMMED
    ]
    return page.add([section_words()["total"], *[None] * (_TOTAL - 1), *sums], is_bold=True)


def _summed(plan: CandidatePlan, column: int, section: str) -> float:
    """Return the value of a sum; an empty section takes all lines."""
    count = {_SPARE_TOTAL: "spares", _LATER_TOTAL: "later"}.get(column, "quantity")
    offset = column - _TOTAL if column < _SPARE_TOTAL else 1
    total = 0.0
    for line in plan.bill.of(section or None):
        if line.price is not None:
            price = (line.price.low_usd, line.price.mid_usd, line.price.high_usd)[offset]
            total += getattr(line, count) * price
    return round(total, 2)
