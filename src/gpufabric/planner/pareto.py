"""Cases that no other beats at once in cost, performance, risk and operating load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpufabric.core.text import _
from gpufabric.cost.owning import engineers
from gpufabric.cost.quantity import Draws
from gpufabric.planner.economics import CaseCost

__all__ = ["ParetoPoint", "pareto"]

TIE = 1e-9
"""Relative difference below which two values are equal."""


@dataclass(frozen=True)
class ParetoPoint:
    """One case by the four things that matter.

    Parameters
    ----------
    name
        The case.
    cost_usd
        Mean of the total [USD].
    performance
        Share of the time of a step that a network that never blocks and is never late would
        take, mean over draws: 1 is ideal.
    risk_usd
        What the total may cost more than its median: P90 less P50 [USD].
    staff_fte
        People of one's own that run it [FTE].
    dominated_by
        A case that is as good in all four and better in one; empty if there is none.
    sentence
        Why it is dominated; empty if it is not.
    """

    name: str
    cost_usd: float
    performance: float
    risk_usd: float
    staff_fte: float
    dominated_by: str = ""
    sentence: str = ""

    @property
    def is_dominated(self) -> bool:
        """Whether another case is better in all respects."""
        return bool(self.dominated_by)


def pareto(costs: Sequence[CaseCost], draws: Draws) -> tuple[ParetoPoint, ...]:
    """Return each case by the four things that matter, in the order given."""
    points = [_point(cost, draws) for cost in costs]
    return tuple(_judged(point, points) for point in points)


def _point(cost: CaseCost, draws: Draws) -> ParetoPoint:
    outcome, case = cost.outcome, cost.case
    lost = outcome.lost_gpu_hours
    gone = sum(lost.values()) * case.horizon_years - (case.horizon_years - 1) * lost["deployment"]
    wanted = outcome.work_gpu_hours + gone
    waits = case.horizon_years * (lost["communication"] + lost["jitter"]) / wanted
    own = case.offer is None or not case.offer.includes_operation
    return ParetoPoint(
        name=cost.name,
        cost_usd=cost.total.mean,
        performance=1.0 - float(np.mean(waits)),
        risk_usd=cost.total.p90 - cost.total.p50,
        staff_fte=float(np.mean(engineers(case, draws) if own else draws["subscription.own_fte"])),
    )


def _values(point: ParetoPoint) -> tuple[float, ...]:
    return (point.cost_usd, -point.performance, point.risk_usd, point.staff_fte)


def _judged(point: ParetoPoint, points: Sequence[ParetoPoint]) -> ParetoPoint:
    better = [other for other in points if _dominates(_values(other), _values(point))]
    if not better:
        return point
    best = min(better, key=lambda other: (other.cost_usd, other.name))
    sentence = _(
        "{other} costs {usd} USD less, is as fast, no riskier and takes no more people."
    ).format(other=best.name, usd=f"{float(f'{point.cost_usd - best.cost_usd:.3g}'):,.0f}")
    return replace(point, dominated_by=best.name, sentence=sentence)


def _dominates(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    pairs = list(zip(first, second, strict=True))
    slack = [TIE * max(abs(a), abs(b), 1e-12) for a, b in pairs]
    is_no_worse = all(a <= b + s for (a, b), s in zip(pairs, slack, strict=True))
    return is_no_worse and any(a < b - s for (a, b), s in zip(pairs, slack, strict=True))
