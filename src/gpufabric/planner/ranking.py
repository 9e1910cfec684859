"""Which case costs least, by the measure that the spec decides by, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.cost.case import Case
from gpufabric.cost.outcome import GROUPS
from gpufabric.cost.owning import CAPITAL
from gpufabric.cost.uncertainty import Band, band
from gpufabric.model.spec_money import CostQuestion
from gpufabric.planner.economics import CaseCost

__all__ = ["RankedCase", "case_label", "measure", "rank", "start_usd"]

Floats = NDArray[np.float64]

P90 = 0.9


@dataclass(frozen=True)
class RankedCase:
    """One case in the order of the ranking.

    Parameters
    ----------
    name, label
        Stable name of the case (``roce``, ``roce+naas``), and in words.
    candidate, fabric, offer, skill
        Its candidate, ``infiniband`` or ``roce``, the offer (empty where it is bought), and the
        team's skill on this fabric.
    is_hired
        Whether experts are hired to run it in place of the team.
    decided_by_usd
        What it is ranked by: the mean or the P90 of `total` [USD].
    total, paid
        Present value over the horizon of all costs, and of what is paid (lost GPU-hours apart)
        [USD].
    groups
        The same by group: ``capital``, ``operating``, ``subscription``, ``opportunity`` [USD].
    items
        Mean present value by item [USD].
    start_usd
        What is paid at the start [USD].
    per_gpu, per_gpu_hour
        Total for each GPU [USD], and levelised for each GPU-hour that did work [USD/(GPU h)]; the
        mean of this and of all costs of work is mean cost over mean work.
    network_per_million_work, per_million_work
        Levelised total for a million units of work, and the same with the GPU-hours that do it
        at their value [USD]; None where no performance is known.
    work_unit
        What the unit is: ``token``; empty without.
    network_per_eflop_day, per_eflop_day
        The same for an EFLOP-day of useful model work (8.64e22 FLOP) [USD]; None where no MFU is
        known, as in serving.
    precision
        Number format of that MFU, such as ``bf16``; empty without.
    best_chance
        Probability, 0 to 1, that it is the cheapest of all that are within the budget; of all
        where none is.
    exceeds_budget
        Whether its start costs more than the spec allows, so that it cannot win.
    n_unpriced
        Lines of its bill without a price: its costs are then lower bounds, and it wins over no
        case whose costs are whole.
    same_as
        Name of an earlier case of the same network and costs, with which it shares its chances;
        empty if there is none. It is no runner-up of that.
    """

    name: str
    label: str
    candidate: str
    fabric: str
    offer: str
    skill: str
    is_hired: bool
    decided_by_usd: float
    total: Band
    paid: Band
    groups: Mapping[str, Band]
    items: Mapping[str, float]
    start_usd: Band
    per_gpu: Band
    per_gpu_hour: Band
    network_per_million_work: Band | None
    per_million_work: Band | None
    work_unit: str
    network_per_eflop_day: Band | None
    per_eflop_day: Band | None
    precision: str
    best_chance: float
    exceeds_budget: bool
    n_unpriced: int
    same_as: str


def measure(total: Floats, decide_by: str) -> float:
    """Return what decides: the mean of float64[n_draws], or what nine of ten draws stay under."""
    return float(np.quantile(total, P90)) if decide_by == "p90" else float(total.mean())


def start_usd(cost: CaseCost) -> Floats:
    """Return what is paid at the start: the networks, or the fee of setting up [USD]."""
    once = cost.outcome.once
    amounts = [once[name] for name in (*CAPITAL, "setup") if name in once]
    total: Floats = np.sum(amounts, axis=0)
    return total


def case_label(case: Case) -> str:
    """Return the name of a case in words."""
    if case.is_hired:
        return _("{candidate}, bought, with experts hired").format(candidate=case.facts.name)
    if case.offer is None:
        return _("{candidate}, bought").format(candidate=case.facts.name)
    what = _("{candidate}, by subscription ({offer})")
    return what.format(candidate=case.facts.name, offer=case.offer.name)


def rank(costs: Sequence[CaseCost], question: CostQuestion) -> tuple[RankedCase, ...]:
    """Return all cases, the best first; what cannot win comes last.

    That is what costs more than the budget, is the twin of another, or has parts without a price
    where others have none.

    Parameters
    ----------
    costs
        The cases.
    question
        By what is decided, and the budget.
    """
    starts = [start_usd(cost) for cost in costs]
    over = [
        question.budget_usd is not None and float(start.mean()) > question.budget_usd
        for start in starts
    ]
    twins = _twins(costs)
    open_ended = _open_ended(costs)
    allowed = [
        index
        for index in range(len(costs))
        if not (over[index] or twins[index] or open_ended[index])
    ]
    if not allowed:  # nothing is within the budget, so that it excludes nothing
        allowed = [at for at in range(len(costs)) if not (twins[at] or open_ended[at])]
    chances = _chances(costs, allowed)
    priced = [not is_open for is_open in open_ended]
    rows = [
        replace(
            _ranked(cost, starts[index], question.decide_by, is_over=over[index]),
            best_chance=chances[index],
            same_as=twins[index],
        )
        for index, cost in enumerate(costs)
    ]
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row.exceeds_budget,
                bool(row.same_as),
                any(priced) and row.n_unpriced > 0,
                row.decided_by_usd,
                row.name,
            ),
        )
    )


def _open_ended(costs: Sequence[CaseCost]) -> list[bool]:
    """Whether each case is no match for the others: parts of it have no price, and theirs do."""
    unpriced = [cost.case.facts.n_unpriced > 0 for cost in costs]
    return [is_unpriced and not all(unpriced) for is_unpriced in unpriced]


def _twins(costs: Sequence[CaseCost]) -> list[str]:
    """Name, for each case, the first with the same fabric and the same cost in every draw."""
    firsts: list[CaseCost] = []
    found = []
    for cost in costs:
        twin = next((first.name for first in firsts if _is_same(first, cost)), "")
        found.append(twin)
        if not twin:
            firsts.append(cost)
    return found


def _is_same(first: CaseCost, second: CaseCost) -> bool:
    one, other = first.case, second.case
    if (one.facts.fabric, one.offer) != (other.facts.fabric, other.offer):
        return False
    return bool(np.array_equal(first.outcome.total, second.outcome.total))


def _chances(costs: Sequence[CaseCost], allowed: Sequence[int]) -> list[float]:
    chances = [0.0] * len(costs)
    if not allowed:
        return chances
    totals = np.stack([costs[index].outcome.total for index in allowed])
    is_least = totals == totals.min(axis=0)
    shares = (is_least / is_least.sum(axis=0)).mean(axis=1)
    for index, share in zip(allowed, shares, strict=True):
        chances[index] = float(share)
    return chances


def _ranked(cost: CaseCost, start: Floats, decide_by: str, *, is_over: bool) -> RankedCase:
    outcome, case = cost.outcome, cost.case
    hours = outcome.present_gpu_hours
    performance = case.facts.performance
    return RankedCase(
        name=case.name,
        label=case_label(case),
        candidate=case.facts.name,
        fabric=case.facts.fabric,
        offer="" if case.offer is None else case.offer.name,
        skill=case.skill,
        is_hired=case.is_hired,
        decided_by_usd=measure(outcome.total, decide_by),
        total=cost.total,
        paid=band(outcome.paid),
        groups={name: band(outcome.group(name)) for name in GROUPS},
        items={name: float(amount.mean()) for name, amount in outcome.items.items()},
        start_usd=band(start),
        per_gpu=band(outcome.per_gpu),
        per_gpu_hour=_levelised(outcome.per_gpu_hour, hours),
        network_per_million_work=_band_of(outcome.network_per_work, hours, 1e6),
        per_million_work=_band_of(outcome.per_work, hours, 1e6),
        work_unit="" if performance is None else performance.work_unit,
        network_per_eflop_day=_band_of(outcome.network_per_eflop_day, hours),
        per_eflop_day=_band_of(outcome.per_eflop_day, hours),
        precision="" if performance is None else performance.precision,
        best_chance=0.0,
        exceeds_budget=is_over,
        n_unpriced=case.facts.n_unpriced,
        same_as="",
    )


def _band_of(values: Floats | None, hours: Floats, factor: float = 1.0) -> Band | None:
    return None if values is None else _levelised(values * factor, hours)


def _levelised(values: Floats, hours: Floats) -> Band:
    """Return the range of a cost for each unit of work, whose mean is mean cost over mean work.

    A draw in which hardly any work is done would otherwise outweigh all others.
    """
    return replace(band(values), mean=float(np.average(values, weights=hours)))
