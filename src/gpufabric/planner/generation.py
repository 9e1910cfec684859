"""Plans of specs that leave the choice of candidates to us: those that are worth a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpufabric.catalog.collection import Catalog
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement
from gpufabric.model.short_forms import BEST
from gpufabric.planner import plan as plans
from gpufabric.planner.economics import CaseCost, Economics, economics
from gpufabric.planner.pareto import ParetoPoint, pareto
from gpufabric.planner.plan import CandidatePlan, LeftOut, Plan

__all__ = ["plan_all"]

PRUNE_DRAWS = 256
"""Draws by which candidates are held against each other before the real comparison."""

MOST_KEPT = 6
"""Optional candidates that stay at most, the cheapest."""


def plan_all(requirement: Requirement, catalog: Catalog) -> Plan:
    """Return the plan of a spec: its candidates, without optional ones that are not worth it.

    An optional candidate is left out where it cannot be built, where it is the same network as
    one before it, where another is better in cost, performance, risk and people at once, or
    where six others are cheaper. The plain network of each fabric and its cheapest always stay.

    Parameters
    ----------
    requirement
        The spec.
    catalog
        Where switches, hosts and parts are from.

    Raises
    ------
    InputError
        See `gpufabric.planner.plan.plan_all`.
    """
    whole = plans.plan_all(requirement, catalog)
    if not any(one.candidate.optional for one in whole.candidates):
        return whole
    apart, twins = _without_twins(whole)
    left = {one.name: one.why for one in _not_worth_it(apart)}
    kept = tuple(one for one in apart.candidates if one.name not in left)
    told = tuple(LeftOut(name, why) for name, why in left.items())
    names = {one.name for one in kept}
    asked = tuple(one for one in requirement.candidates if one.name in names)
    return replace(
        whole,
        requirement=requirement.model_copy(update={"candidates": asked}),
        candidates=kept,
        left_out=(*whole.left_out, *twins, *told),
    )


def _without_twins(plan: Plan) -> tuple[Plan, tuple[LeftOut, ...]]:
    """The plan without optional candidates that are the same network as one before them."""
    firsts: dict[tuple[object, ...], str] = {}
    kept: list[CandidatePlan] = []
    twins = []
    for one in plan.candidates:
        first = firsts.setdefault(_network(one), one.name)
        if first != one.name and one.candidate.optional:
            what = _("It is the same network as {name}.").format(name=first)
            twins.append(LeftOut(one.name, what))
        else:
            kept.append(one)
    return replace(plan, candidates=tuple(kept)), tuple(twins)


def _network(one: CandidatePlan) -> tuple[object, ...]:
    """What makes a network: its fabric, switches, links and cost."""
    facts = one.summary
    switches = tuple((line.name, line.quantity) for line in one.bill.of("compute", "switch"))
    shape = tuple(facts[key] for key in ("fabric", "tiers", "planes", "bisection_gbps"))
    return (*shape, switches, one.capital.network.rounded())


def _not_worth_it(plan: Plan) -> Iterator[LeftOut]:
    """Yield the optional candidates that another dominates, or that many undercut."""
    money = _few_draws(plan)
    bought = sorted(
        (cost for cost in money.costs if not (cost.case.offer or cost.case.is_hired)),
        key=lambda cost: cost.total.mean,
    )
    points = {point.name: point for point in pareto(bought, money.draws)}
    seen: set[str] = set()
    n_kept = 0
    for cost in bought:
        fabric = cost.case.facts.fabric
        stays = fabric not in seen or _is_plain(cost.plan)
        seen.add(fabric)
        why = "" if stays else _why(cost, points[cost.name], n_kept)
        if why and cost.plan.candidate.optional:
            yield LeftOut(cost.plan.name, why)
        else:
            n_kept += 1


def _is_plain(one: CandidatePlan) -> bool:
    """Whether a candidate says nothing but its fabric: what others are held against."""
    given = one.candidate
    is_best = all(name == BEST for name in (given.switch.leaf, given.switch.spine))
    return is_best and given.topology == "auto" and given.oversubscription.total == 1.0


def _few_draws(plan: Plan) -> Economics:
    question = plan.requirement.cost.model_copy(update={"draws": PRUNE_DRAWS})
    requirement = plan.requirement.model_copy(update={"cost": question, "offers": ()})
    return economics(replace(plan, requirement=requirement))


def _why(cost: CaseCost, point: ParetoPoint, n_kept: int) -> str:
    if point.is_dominated:
        return point.sentence
    if n_kept >= MOST_KEPT:
        what = _("{n} others cost less; it costs {usd} USD in the mean.")
        return what.format(n=n_kept, usd=f"{float(f'{cost.total.mean:.3g}'):,.0f}")
    return ""
