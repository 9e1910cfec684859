"""What to build, as an argument: the winner, how sure it is, why, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpufabric.cost.depreciation import Depreciation, depreciation
from gpufabric.cost.uncertainty import Band, Swing, difference_of, tornado, total_of
from gpufabric.planner.argument import Contrast, Reason, Regret, contrast, regrets
from gpufabric.planner.cash import BreakEven, CashFlow, break_evens, cash_flow
from gpufabric.planner.economics import CaseCost, Economics
from gpufabric.planner.flips import Change, Flip
from gpufabric.planner.knobs import flips_of
from gpufabric.planner.ledger import LedgerRow, ledger
from gpufabric.planner.pareto import ParetoPoint, pareto
from gpufabric.planner.pitfalls import Pitfall, pitfalls, reckoned_fee
from gpufabric.planner.ranking import RankedCase, rank
from gpufabric.planner.scale import ScaleCell, ScaleChart, scale_chart, size_flip

__all__ = [
    "Advice",
    "BreakEven",
    "CashFlow",
    "Change",
    "Contrast",
    "Currency",
    "Depreciation",
    "Flip",
    "LedgerRow",
    "ParetoPoint",
    "Pitfall",
    "RankedCase",
    "Reason",
    "Regret",
    "ScaleCell",
    "ScaleChart",
    "advise",
]


@dataclass(frozen=True)
class Currency:
    """In what amounts are told, beside USD.

    Parameters
    ----------
    code
        ``USD``, ``CNY`` or ``EUR``.
    rate
        Units for one US dollar; None where the spec gives none, so that amounts stay in USD.
    date
        Of the rate, as the spec says; empty without.
    """

    code: str
    rate: float | None
    date: str


@dataclass(frozen=True, eq=False)
class Advice:
    """The decision with its argument.

    Parameters
    ----------
    economics
        All cases, draw by draw.
    decide_by, horizon_years
        As in the spec.
    currency
        In what amounts are told.
    ranking
        All cases, the best first; twins of others and those above the budget last.
    winner
        Name of the best.
    runner_up
        Name of the next that is within the budget; empty if there is none.
    other_fabric, other_way
        Names of the best of the other fabric, and of the best that is bought where the winner is
        subscribed or the reverse; empty if there is none.
    margin
        What the runner-up costs more [USD]; None without.
    confidence
        Probability, 0 to 1, that the winner costs less than the runner-up; None without.
    reasons
        The three strongest: items in which the winner costs less than the runner-up.
    contrasts
        The winner held against the runner-up, the best of the other fabric and of the other way.
    regrets
        What choosing each case costs too much, in the order of the ranking.
    flips
        What turning one number does to the advice; those that change it first.
    conditions
        In words, when another case wins.
    pareto
        Each case by cost, performance, risk and people.
    pitfalls
        Mistakes found in the spec.
    tornado_winner, tornado_margin
        How far each number alone moves the winner's total, and the runner-up's total less the
        winner's, the largest swing first [USD].
    cash
        Each case over time, in the order of the ranking.
    depreciation
        How each bought network loses its value in the books, in the order of the ranking; no
        payment.
    break_evens
        When owning has cost no more than a subscription.
    ledger
        Every number that was used.
    chart
        The winner by size and value of a GPU-hour; None where it was not asked for.
    is_within_budget
        Whether any case is within the budget; if none is, the ranking ignores it.
    is_lower_bound
        Whether some part of the winner or runner-up has no price.
    """

    economics: Economics
    decide_by: str
    horizon_years: int
    currency: Currency
    ranking: tuple[RankedCase, ...]
    winner: str
    runner_up: str
    other_fabric: str
    other_way: str
    margin: Band | None
    confidence: float | None
    reasons: tuple[Reason, ...]
    contrasts: tuple[Contrast, ...]
    regrets: tuple[Regret, ...]
    flips: tuple[Flip, ...]
    conditions: tuple[str, ...]
    pareto: tuple[ParetoPoint, ...]
    pitfalls: tuple[Pitfall, ...]
    tornado_winner: tuple[Swing, ...]
    tornado_margin: tuple[Swing, ...]
    cash: tuple[CashFlow, ...]
    depreciation: tuple[Depreciation, ...]
    break_evens: tuple[BreakEven, ...]
    ledger: tuple[LedgerRow, ...]
    chart: ScaleChart | None
    is_within_budget: bool
    is_lower_bound: bool

    def ranked(self, name: str) -> RankedCase:
        """Return the case called `name`."""
        return next(case for case in self.ranking if case.name == name)

    def contrast(self, role: str) -> Contrast | None:
        """Return the contrast of a role, such as ``other_fabric``; None where there is none."""
        return next((one for one in self.contrasts if one.role == role), None)


def advise(economics: Economics, sizes: Iterable[int] | None = None) -> Advice:
    """Return the advice on what the candidates of a plan cost.

    Parameters
    ----------
    economics
        All cases: see `gpufabric.planner.economics.economics`.
    sizes
        Sizes of the chart of winners; empty for no chart. Left out: as `scale_chart` says.
    """
    requirement = economics.plan.requirement
    question, site = requirement.cost, requirement.site
    ranking = rank(economics.costs, question)
    apart = [case for case in ranking if not case.same_as]
    whole = [case for case in apart if not case.n_unpriced] or apart
    within = [case for case in whole if not case.exceeds_budget]
    ranked = [economics.cost(case.name) for case in within or whole]
    winner, others = ranked[0], ranked[1:]
    runner_up = others[0] if others else None
    contrasts = _contrasts(winner, others)
    chart = _chart(economics, ranked, sizes)
    flips = _flips(economics, ranked, chart)
    by_role = {one.role: one.other for one in contrasts}
    first = contrasts[0] if contrasts else None
    return Advice(
        economics=economics,
        decide_by=question.decide_by,
        horizon_years=question.horizon_years,
        currency=Currency(site.currency, site.currency_rate, site.currency_date or ""),
        ranking=ranking,
        winner=winner.name,
        runner_up=by_role.get("runner_up", ""),
        other_fabric=by_role.get("other_fabric", ""),
        other_way=by_role.get("other_way", ""),
        margin=None if first is None else first.saved,
        confidence=None if first is None else first.chance,
        reasons=() if first is None else first.reasons,
        contrasts=contrasts,
        regrets=regrets(ranked),
        flips=flips,
        conditions=tuple(one.sentence for one in flips if one.flips),
        pareto=pareto([economics.cost(case.name) for case in apart], economics.draws),
        pitfalls=(*reckoned_fee(winner, economics.draws), *pitfalls(economics)),
        tornado_winner=_tornado(economics, [winner]),
        tornado_margin=() if runner_up is None else _tornado(economics, [runner_up, winner]),
        cash=tuple(cash_flow(economics.cost(case.name)) for case in ranking),
        depreciation=_depreciation(economics, ranking),
        break_evens=break_evens(economics.costs),
        ledger=ledger(economics, winner, runner_up),
        chart=chart,
        is_within_budget=bool(within),
        is_lower_bound=any(cost.case.facts.n_unpriced for cost in ranked[:2]),
    )


def _depreciation(economics: Economics, ranking: Sequence[RankedCase]) -> tuple[Depreciation, ...]:
    found = (depreciation(economics.cost(case.name).outcome) for case in ranking)
    return tuple(one for one in found if one is not None)


def _chart(
    economics: Economics, ranked: Sequence[CaseCost], sizes: Iterable[int] | None
) -> ScaleChart | None:
    wanted = None if sizes is None else tuple(sizes)
    return None if wanted == () else scale_chart(economics, ranked, wanted)


def _flips(
    economics: Economics, ranked: Sequence[CaseCost], chart: ScaleChart | None
) -> tuple[Flip, ...]:
    """What each knob does to the advice, the size among them; those that change it first."""
    found = list(flips_of(economics, ranked))
    if chart is not None:
        found.append(size_flip(chart, ranked[0].case.facts.n_gpus, ranked[0].name))
    return tuple(sorted(found, key=lambda one: not one.flips))


def _contrasts(winner: CaseCost, others: Sequence[CaseCost]) -> tuple[Contrast, ...]:
    """The winner against the best of each role; `others` are in the order of the ranking."""
    mine = winner.case
    found = []
    if others:
        found.append(contrast(winner, others[0], "runner_up"))
    for other in others:
        if other.case.facts.fabric != mine.facts.fabric:
            found.append(contrast(winner, other, "other_fabric"))
            break
    for other in others:
        if (other.case.offer is None) != (mine.offer is None):
            found.append(contrast(winner, other, "other_way"))
            break
    return tuple(found)


def _tornado(economics: Economics, costs: Sequence[CaseCost]) -> tuple[Swing, ...]:
    keys = set().union(*(cost.outcome.keys for cost in costs))
    quantities = [economics.quantities[key] for key in sorted(keys)]
    cases = [cost.case for cost in costs]
    measured = total_of(cases[0]) if len(cases) == 1 else difference_of(cases[0], cases[1])
    return tornado(measured, quantities)
