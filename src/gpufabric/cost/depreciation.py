"""Depreciation: how what was bought loses its value in the books, year by year. Nobody pays it."""

from __future__ import annotations

from dataclasses import dataclass

from gpufabric.cost.outcome import Outcome
from gpufabric.cost.owning import CAPITAL

__all__ = ["Depreciation", "depreciation"]


@dataclass(frozen=True)
class Depreciation:
    """The schedule of a bought network, means over the draws.

    It is no payment: the price is paid at the start and the rest of the value comes back at the
    end, and both are in the total already.

    Parameters
    ----------
    name
        The case.
    life_years
        Over how many years it is written off: those that are counted.
    bought_usd
        What is written off: all that is paid for the networks, spares and installation at the
        start [USD].
    left_usd
        What it is written down to: the value at which it is resold after `life_years` [USD].
    yearly_usd
        What each year takes [USD].
    book_usd
        Value in the books at the end of each year, the start first [USD].
    """

    name: str
    life_years: int
    bought_usd: float
    left_usd: float
    yearly_usd: float
    book_usd: tuple[float, ...]


def depreciation(outcome: Outcome) -> Depreciation | None:
    """Return the schedule of a case; None for a subscription, whose owner is the provider.

    Notes
    -----
    Straight line: ``(bought - left) / life`` every year (R. Brealey, S. Myers, "Principles of
    Corporate Finance", chapter 6).
    """
    case = outcome.case
    if case.offer is not None:
        return None
    years = case.horizon_years
    bought = sum(float(outcome.once[name].mean()) for name in CAPITAL)
    left = -float(outcome.once["residual"].mean())
    yearly = (bought - left) / years
    book = tuple(bought - yearly * year for year in range(years + 1))
    return Depreciation(case.name, years, bought, left, yearly, book)
