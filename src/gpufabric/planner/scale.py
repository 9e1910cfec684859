"""Who wins at which size and for which value of a GPU-hour: each size designed anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import InputError
from gpufabric.core.text import _
from gpufabric.cost.case import Case
from gpufabric.cost.finance import annuity_factor
from gpufabric.cost.opportunity import LOSSES
from gpufabric.cost.outcome import Outcome, evaluate
from gpufabric.cost.quantity import draw
from gpufabric.cost.uncertainty import chance_below
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_parts import Candidate
from gpufabric.planner.economics import CaseCost, Economics, cases_of, quantities_of
from gpufabric.planner.flips import Flip, Knob, flip
from gpufabric.planner.plan import CandidatePlan, Plan, plan_candidate
from gpufabric.planner.ranking import measure

__all__ = ["GPU_HOUR_USD", "ScaleCell", "ScaleChart", "scale_chart", "size_flip"]

Floats = NDArray[np.float64]

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072)
"""GPUs that are looked at, beside the spec's own."""

QUICK_GPUS = 16_384
"""Largest size that every plan looks at; larger ones take long, up to the spec's own."""

GPU_HOUR_USD = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
"""Values of a GPU-hour that are looked at [USD/(GPU h)]."""

CHART_DRAWS = 512
MOST_CANDIDATES = 4


@dataclass(frozen=True)
class ScaleCell:
    """Who wins at one size and value of a GPU-hour.

    Parameters
    ----------
    gpus
        Size of the cluster.
    gpu_hour_usd
        Value of a GPU-hour; None for the value as it is drawn [USD/(GPU h)].
    winner, fabric, offer
        Name of the case that wins, its fabric, and its offer (empty where it is bought).
    runner_up
        Name of the next; empty without.
    margin_usd, margin_share
        What the winner costs less [USD], and over its own total.
    confidence
        Probability, 0 to 1, that it costs less than the next.
    """

    gpus: int
    gpu_hour_usd: float | None
    winner: str
    fabric: str
    offer: str
    runner_up: str
    margin_usd: float
    margin_share: float
    confidence: float


@dataclass(frozen=True)
class ScaleChart:
    """The winner by size and value of a GPU-hour.

    Parameters
    ----------
    sizes, gpu_hour_usd
        The two axes.
    cells
        One for each size and value, size by size.
    drawn
        One for each size, the value of a GPU-hour as it is drawn.
    left_out
        Sizes and candidates that could not be designed, as ``candidate @ gpus``.
    without_forecast
        Sizes at which nothing is known of the workload, so that waiting for the network is not
        counted.
    """

    sizes: tuple[int, ...]
    gpu_hour_usd: tuple[float, ...]
    cells: tuple[ScaleCell, ...]
    drawn: tuple[ScaleCell, ...]
    left_out: tuple[str, ...]
    without_forecast: tuple[int, ...]

    def cell(self, gpus: int, gpu_hour_usd: float) -> ScaleCell:
        """Return who wins at a size and value that are on the axes."""
        return next(
            cell for cell in self.cells if (cell.gpus, cell.gpu_hour_usd) == (gpus, gpu_hour_usd)
        )


def scale_chart(
    economics: Economics, ranked: Sequence[CaseCost], sizes: Iterable[int] | None = None
) -> ScaleChart:
    """Return who wins at each size and value of a GPU-hour.

    Parameters
    ----------
    economics
        All cases of the spec.
    ranked
        Those within the budget, the best first; the candidates of the first are designed at each
        size, at least the best of each fabric.
    sizes
        GPUs. Left out: 64 to 16,384 in powers of two, or to the spec's own where that is larger.

    Notes
    -----
    A size is designed from the same spec without growth, and without counts of leafs, spines,
    tiers and data-parallel ways, which hold for one size alone. A budget is left out of account.
    """
    own = economics.costs[0].case.facts.n_gpus
    wanted = tuple(sorted(set(sizes))) if sizes is not None else _sizes(own)
    candidates = _candidates(ranked)
    rows: list[ScaleCell] = []
    drawn: list[ScaleCell] = []
    left_out: list[str] = []
    blind: list[int] = []
    looked_at = []
    for gpus in wanted:
        plan, missing = _plan_at(economics.plan, candidates, gpus)
        left_out += missing
        if not plan.candidates:
            continue
        looked_at.append(gpus)
        outcomes = _outcomes(plan)
        if any(outcome.case.facts.performance is None for outcome in outcomes):
            blind.append(gpus)
        decide_by = plan.requirement.cost.decide_by
        drawn.append(_cell(gpus, None, outcomes, decide_by))
        rows += [_cell(gpus, value, outcomes, decide_by) for value in GPU_HOUR_USD]
    return ScaleChart(
        tuple(looked_at), GPU_HOUR_USD, tuple(rows), tuple(drawn), tuple(left_out), tuple(blind)
    )


def _sizes(own: int) -> tuple[int, ...]:
    most = max(own, QUICK_GPUS)
    return tuple(sorted({*(size for size in SIZES if size <= most), own}))


def _candidates(ranked: Sequence[CaseCost]) -> tuple[CandidatePlan, ...]:
    chosen: dict[str, CandidatePlan] = {}
    fabrics: set[str] = set()
    for cost in ranked:
        fabric = cost.case.facts.fabric
        if cost.plan.name in chosen:
            continue
        if len(chosen) < MOST_CANDIDATES - 1 or fabric not in fabrics:
            chosen[cost.plan.name] = cost.plan
            fabrics.add(fabric)
    return tuple(chosen.values())


def _plan_at(plan: Plan, candidates: Sequence[CandidatePlan], gpus: int) -> tuple[Plan, list[str]]:
    """The spec's candidates designed for so many GPUs, and those that cannot be."""
    if gpus == candidates[0].n_gpus:
        return Plan(plan.requirement, plan.catalog, tuple(candidates)), []
    requirement = _resized(plan.requirement, gpus)
    found, missing = [], []
    for one in candidates:
        try:
            found.append(plan_candidate(requirement, _free(one.candidate), plan.catalog))
        except InputError:
            missing.append(f"{one.name} @ {gpus}")
    return Plan(requirement, plan.catalog, tuple(found)), missing


def _resized(requirement: Requirement, gpus: int) -> Requirement:
    work = requirement.workload
    ways = work.parallelism.model_copy(update={"dp": None})
    return requirement.model_copy(
        update={
            "gpus": gpus,
            "hosts": None,
            "growth": None,
            "workload": work.model_copy(update={"parallelism": ways}),
        }
    )


def _free(candidate: Candidate) -> Candidate:
    """The candidate without what holds for one size alone."""
    counts = ("tiers", "leafs", "spines", "su_hosts", "pod_hosts")
    return candidate.model_copy(update=dict.fromkeys(counts))


def _outcomes(plan: Plan) -> list[Outcome]:
    requirement = plan.requirement
    cases: list[Case] = [case for one in plan.candidates for case in cases_of(one, requirement)]
    quantities = quantities_of(plan, [case.facts for case in cases])
    draws = draw(quantities.values(), CHART_DRAWS, requirement.seed)
    whole = [case for case in cases if not case.facts.n_unpriced]
    return [evaluate(case, draws) for case in whole or cases]


def _cell(
    gpus: int, value_usd: float | None, outcomes: Sequence[Outcome], decide_by: str
) -> ScaleCell:
    totals = [_total(outcome, value_usd) for outcome in outcomes]
    order = sorted(range(len(totals)), key=lambda at: (measure(totals[at], decide_by), at))
    best = outcomes[order[0]].case
    mine = totals[order[0]]
    others = [at for at in order[1:] if not np.array_equal(totals[at], mine)]  # no twins
    theirs = totals[others[0]] if others else mine
    margin = measure(theirs, decide_by) - measure(mine, decide_by)
    return ScaleCell(
        gpus,
        value_usd,
        best.name,
        best.facts.fabric,
        "" if best.offer is None else best.offer.name,
        outcomes[others[0]].case.name if others else "",
        margin,
        margin / measure(mine, decide_by),
        chance_below(mine, theirs) if others else 1.0,
    )


def _total(outcome: Outcome, value_usd: float | None) -> Floats:
    """All costs with a GPU-hour at a value: what is lost is proportional to it."""
    if value_usd is None:
        return outcome.total
    annuity = annuity_factor(outcome.discount_rate, outcome.case.horizon_years)
    hours = annuity * np.sum([outcome.lost_gpu_hours[name] for name in LOSSES], axis=0)
    total: Floats = outcome.paid + (hours + outcome.lost_gpu_hours["deployment"]) * value_usd
    return total


def size_flip(chart: ScaleChart, gpus: int, advised: str) -> Flip:
    """Return what another number of GPUs does to the advice, the network designed anew."""
    winners = {cell.gpus: cell.winner for cell in chart.drawn}
    winners[gpus] = advised
    sizes = tuple(float(size) for size in sorted(winners))
    knob = Knob("gpus", _("GPUs"), "", float(gpus), sizes, is_continuous=False)
    return flip(knob, lambda size: winners[round(size)], advised)
