"""What each case costs year by year and month by month, and when owning has paid for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.cost.finance import break_even_month
from gpufabric.cost.opportunity import LOSSES
from gpufabric.cost.owning import CAPITAL
from gpufabric.planner.economics import CaseCost

__all__ = ["BreakEven", "CashFlow", "break_evens", "cash_flow"]

Floats = NDArray[np.float64]

AT_START = (*CAPITAL, "training", "financing", "setup", "deployment")
AT_END = ("residual", "exit")


@dataclass(frozen=True, eq=False)
class CashFlow:
    """A case over time; all amounts are means over the draws.

    Parameters
    ----------
    name
        The case.
    paid_usd
        What is paid in each year, not discounted: float64[years + 1], the start first [USD].
    lost_usd
        GPU-hours lost at their value, likewise [USD].
    cumulative_usd
        Present value of all costs up to each month: float64[12 years + 1]; the last month has
        what comes back or is due at the end, so that it is the mean total [USD].
    cumulative_paid_usd
        The same of what is paid [USD].
    """

    name: str
    paid_usd: Floats
    lost_usd: Floats
    cumulative_usd: Floats
    cumulative_paid_usd: Floats


@dataclass(frozen=True)
class BreakEven:
    """When a bought network has cost no more than the same by subscription.

    Parameters
    ----------
    bought, subscribed
        Names of the two cases.
    month
        First month in which the bought one has cost no more, all costs counted; 0 where it never
        costs more, None where it does not come within the horizon.
    paid_month
        The same of what is paid.
    """

    bought: str
    subscribed: str
    month: int | None
    paid_month: int | None


def cash_flow(cost: CaseCost) -> CashFlow:
    """Return a case over time."""
    outcome = cost.outcome
    years = outcome.case.horizon_years
    paid, lost = np.zeros(years + 1), np.zeros(years + 1)
    for name, amount in outcome.yearly.items():
        row = lost if name in LOSSES else paid
        row[1:] += float(amount.mean())
    for name, amount in outcome.once.items():
        row = lost if name == "deployment" else paid
        row[years if name in AT_END else 0] += float(amount.mean())
    all_names = tuple(outcome.items)
    bought = tuple(name for name in all_names if name not in (*LOSSES, "deployment"))
    return CashFlow(
        outcome.case.name, paid, lost, _cumulative(cost, all_names), _cumulative(cost, bought)
    )


def _cumulative(cost: CaseCost, names: Sequence[str]) -> Floats:
    """Present value up to each month.

    A year's amount is spread over its months so that the months of a year have together what the
    year has at its end: the last value is that of the whole model.
    """
    outcome = cost.outcome
    years = outcome.case.horizon_years
    total = np.zeros(12 * years + 1)
    month = np.arange(1, 12 * years + 1)
    rate = float(outcome.discount_rate.mean())
    weights = (1 + rate) ** -np.ceil(month / 12)
    weights = weights / weights.sum()
    for name in names:
        amount = float(outcome.items[name].mean())
        if name in outcome.yearly:
            total[1:] += amount * np.cumsum(weights)
        elif name in AT_END:
            total[-1] += amount
        else:
            total += amount
    return total


def break_evens(costs: Sequence[CaseCost]) -> tuple[BreakEven, ...]:
    """Return when each bought network overtakes each subscription of the same candidate."""
    flows = {cost.name: cash_flow(cost) for cost in costs}
    found = []
    for own in costs:
        if own.case.offer is not None:
            continue
        for other in costs:
            if other.case.offer is None or other.case.facts.name != own.case.facts.name:
                continue
            mine, theirs = flows[own.name], flows[other.name]
            found.append(
                BreakEven(
                    own.name,
                    other.name,
                    _month(mine.cumulative_usd, theirs.cumulative_usd),
                    _month(mine.cumulative_paid_usd, theirs.cumulative_paid_usd),
                )
            )
    return tuple(found)


def _month(bought: Floats, subscribed: Floats) -> int | None:
    if np.all(bought <= subscribed):
        return 0
    return break_even_month(bought, subscribed)
