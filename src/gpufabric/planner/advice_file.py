"""The advice as ``plan.json`` holds it: the same facts without the draws behind them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufabric.cost.uncertainty import Band, Swing
from gpufabric.planner.advice import (
    Advice,
    BreakEven,
    CashFlow,
    Contrast,
    Depreciation,
    Flip,
    LedgerRow,
    ParetoPoint,
    Pitfall,
    RankedCase,
    Reason,
    Regret,
    ScaleChart,
)
from gpufabric.planner.quantity_words import quantity_label

__all__ = ["AdviceFacts", "advice_facts"]


@dataclass(frozen=True)
class SwingFacts:
    """How far one number alone moves an outcome [USD]: at its P10 and its P90, key and words."""

    key: str
    label: str
    low_usd: float
    high_usd: float


@dataclass(frozen=True)
class CashFacts:
    """A case over time, means over the draws: each year's payments and losses, months summed up."""

    name: str
    paid_usd: list[float]
    lost_usd: list[float]
    cumulative_usd: list[float]
    cumulative_paid_usd: list[float]


@dataclass(frozen=True)
class AdviceFacts:
    """What to build, how sure that is, why, what would change it, and every number behind it."""

    decide_by: str
    horizon_years: int
    n_draws: int
    winner: str
    runner_up: str
    other_fabric: str
    other_way: str
    margin_usd: Band | None
    confidence: float | None
    is_within_budget: bool
    is_lower_bound: bool
    ranking: list[RankedCase]
    reasons: list[Reason]
    contrasts: list[Contrast]
    regrets: list[Regret]
    conditions: list[str]
    flips: list[Flip]
    pareto: list[ParetoPoint]
    pitfalls: list[Pitfall]
    tornado_winner: list[SwingFacts]
    tornado_margin: list[SwingFacts]
    cash: list[CashFacts]
    depreciation: list[Depreciation]
    break_evens: list[BreakEven]
    selection_guide: ScaleChart | None
    ledger: list[LedgerRow]


def advice_facts(advice: Advice) -> AdviceFacts:
    """Return an advice without its draws."""
    return AdviceFacts(
        decide_by=advice.decide_by,
        horizon_years=advice.horizon_years,
        n_draws=len(next(iter(advice.economics.draws.values()))),
        winner=advice.winner,
        runner_up=advice.runner_up,
        other_fabric=advice.other_fabric,
        other_way=advice.other_way,
        margin_usd=advice.margin,
        confidence=advice.confidence,
        is_within_budget=advice.is_within_budget,
        is_lower_bound=advice.is_lower_bound,
        ranking=list(advice.ranking),
        reasons=list(advice.reasons),
        contrasts=list(advice.contrasts),
        regrets=list(advice.regrets),
        conditions=list(advice.conditions),
        flips=list(advice.flips),
        pareto=list(advice.pareto),
        pitfalls=list(advice.pitfalls),
        tornado_winner=_swings(advice.tornado_winner),
        tornado_margin=_swings(advice.tornado_margin),
        cash=[_cash(flow) for flow in advice.cash],
        depreciation=list(advice.depreciation),
        break_evens=list(advice.break_evens),
        selection_guide=advice.chart,
        ledger=list(advice.ledger),
    )


def _swings(swings: Iterable[Swing]) -> list[SwingFacts]:
    return [
        SwingFacts(one.quantity.key, quantity_label(one.quantity.key), one.low, one.high)
        for one in swings
    ]


def _cash(flow: CashFlow) -> CashFacts:
    return CashFacts(
        flow.name,
        flow.paid_usd.tolist(),
        flow.lost_usd.tolist(),
        flow.cumulative_usd.tolist(),
        flow.cumulative_paid_usd.tolist(),
    )
