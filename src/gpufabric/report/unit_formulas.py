"""What units cost, and the depreciation schedule, as a workbook's formulas for one case."""

from __future__ import annotations

from collections.abc import Callable

from gpufabric.catalog.cost_constants import gpu_hour_key
from gpufabric.core.text import _
from gpufabric.cost.outcome import FLOP_OF_EFLOP_DAY, LEAST_WORK
from gpufabric.report.amounts import unknown
from gpufabric.report.cell_terms import Term, exp, greatest, term, where_at_most
from gpufabric.report.cost_formulas import CaseCells

__all__ = ["UNITS", "depreciation_words", "unit_rows", "write_depreciation", "write_units"]

UNITS = ("network_per_million", "per_million", "network_per_eflop_day", "per_eflop_day")
"""Rows of costs of work."""

Placed = Callable[[str], Term]
"""Cell of a result that stands in the sheet, by its name."""


# Units ---------------------------------------------------------------------------------------


def write_units(cells: CaseCells, placed: Placed) -> dict[str, str]:
    """Write what a GPU, a GPU-hour and a unit of work cost; return words where one is unknown."""
    cells.put("per_gpu", placed("total") / cells.design("gpus"))
    wanted = placed("annuity") * placed("wanted")
    worked = wanted * exp(-placed("log.all")) - placed("idle")
    present = cells.put("present_hours", greatest(worked, LEAST_WORK * wanted))
    hour = cells.put("per_gpu_hour", placed("total") / present)
    value = cells.given(gpu_hour_key(cells.case.facts.gpu))
    performance = cells.case.facts.performance
    if performance is None:
        return dict.fromkeys(UNITS, unknown())
    hours = cells.design("ideal_step_s") * cells.design("job_gpus") / 3600
    work = cells.put("millions_of_gpu_hour", cells.design("work_per_step") / 1e6 / hours)
    cells.put("network_per_million", hour / work)
    cells.put("per_million", (hour + value) / work)
    if performance.flops_per_step is None:
        return dict.fromkeys(UNITS[2:], unknown())
    days = cells.design("flops_per_step") / term(FLOP_OF_EFLOP_DAY) / hours
    days = cells.put("eflop_days_of_gpu_hour", days)
    cells.put("network_per_eflop_day", hour / days)
    cells.put("per_eflop_day", (hour + value) / days)
    return {}


def unit_rows() -> tuple[tuple[str, str, str], ...]:
    """Return name, words and unit of the rows."""
    return (
        ("per_gpu", _("a GPU"), "USD"),
        ("present_hours", _("GPU-hours that do work, discounted as money is"), "GPU h"),
        ("per_gpu_hour", _("a GPU-hour, levelised"), "USD"),
        ("millions_of_gpu_hour", _("million tokens of such a GPU-hour"), ""),
        ("network_per_million", _("a million tokens: the network"), "USD"),
        ("per_million", _("a million tokens: with GPU-hours at their value"), "USD"),
        ("eflop_days_of_gpu_hour", _("EFLOP-days (8.64e22 FLOP) of such a GPU-hour"), ""),
        ("network_per_eflop_day", _("an EFLOP-day: the network"), "USD"),
        ("per_eflop_day", _("an EFLOP-day: with GPU-hours at their value"), "USD"),
    )


# Depreciation --------------------------------------------------------------------------------


def write_depreciation(cells: CaseCells, placed: Placed) -> None:
    """Write the schedule of a bought network; no formula of the total reads it."""
    if cells.case.offer is not None:
        return
    years = cells.design("years")
    left = cells.put("written.left", -placed("amount.residual"))
    yearly = cells.put("written.yearly", (placed("capital") - left) / years)
    book = placed("capital")
    for year in range(1, cells.case.horizon_years + 1):
        taken = where_at_most(year, years, yearly, term(0))
        book = cells.put(f"written.book.{year}", book - taken)


def depreciation_words(years: int) -> tuple[tuple[str, str, str], ...]:
    """Return name, words and unit of the rows."""
    book = _("left in the books after year {n}")
    return (
        ("written.left", _("what resale brings at the end"), "USD"),
        ("written.yearly", _("written off each year"), "USD"),
        *((f"written.book.{year}", book.format(n=year), "USD") for year in range(1, years + 1)),
    )
