"""What the candidates of a plan cost over their life, bought or by subscription, draw by draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from gpufabric.catalog.workload_constants import gpu_compute
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.cost.case import Case, Offer
from gpufabric.cost.facts import NetworkFacts, Performance, Skill, network_facts
from gpufabric.cost.outcome import Outcome, evaluate
from gpufabric.cost.quantity import Draws, Quantity, draw, fixed, known_quantities, one_draw
from gpufabric.cost.uncertainty import Band, band
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_money import Assumption, SpecOffer
from gpufabric.planner.plan import CandidatePlan, Plan
from gpufabric.workload.forecast import WorkloadForecast
from gpufabric.workload.forecast_serving import ServingForecast
from gpufabric.workload.forecast_training import TrainingForecast
from gpufabric.workload.jitter import Jitter

__all__ = [
    "FACTOR",
    "CaseCost",
    "Economics",
    "cases_of",
    "economics",
    "facts_of",
    "performance_of",
    "quantities_of",
]

FACTOR = "forecast.communication_factor"
"""Key of the quantity that times lost to the network are multiplied by: the forecast's interval."""

SPEC_SOURCE = "spec"
LEAST = {"energy.pue": 1.0, "cluster.utilisation": 0.01}
"""Least values of numbers that may not be 0: without work, no cost has an hour to stand on."""

MONTH_S = 730 * 3600.0
"""A month as rates of flaps count it [s]."""


@dataclass(frozen=True, eq=False)
class CaseCost:
    """One case with its cost.

    Parameters
    ----------
    plan
        The candidate's plan.
    outcome
        Its cost, draw by draw.
    """

    plan: CandidatePlan
    outcome: Outcome

    @property
    def case(self) -> Case:
        """The case."""
        return self.outcome.case

    @property
    def name(self) -> str:
        """Name of the case."""
        return self.case.name

    @cached_property
    def total(self) -> Band:
        """Range of the present value of all costs, lost GPU-hours included [USD]."""
        return band(self.outcome.total)


@dataclass(frozen=True, eq=False)
class Economics:
    """All cases of a plan with what they cost.

    Parameters
    ----------
    plan
        The plan.
    quantities
        Every number that some case may read, by key.
    draws
        Their values.
    costs
        One a case: each candidate bought, with experts hired, by each offer that delivers it.
    """

    plan: Plan
    quantities: dict[str, Quantity]
    draws: Draws
    costs: tuple[CaseCost, ...]

    @property
    def horizon_years(self) -> int:
        """Years over which costs are counted."""
        return self.plan.requirement.cost.horizon_years

    def cost(self, name: str) -> CaseCost:
        """Return the case called `name`."""
        return next(cost for cost in self.costs if cost.name == name)


def economics(plan: Plan) -> Economics:
    """Return what the candidates of a plan cost.

    Parameters
    ----------
    plan
        The plan; its spec says horizon, team, offers, draws, assumptions and seed.

    Raises
    ------
    InputError
        If the spec assumes a number that the cost model has not, or that cannot be.
    """
    requirement = plan.requirement
    pairs = [(one, case) for one in plan.candidates for case in cases_of(one, requirement)]
    quantities = quantities_of(plan, [case.facts for _plan, case in pairs])
    read: set[str] = set()
    middle = one_draw(quantities.values())
    for _plan, case in pairs:
        read |= evaluate(case, middle).keys
    needed = {key: quantities[key] for key in sorted(read)}
    draws = draw(needed.values(), requirement.cost.draws, requirement.seed)
    costs = tuple(CaseCost(one, evaluate(case, draws)) for one, case in pairs)
    return Economics(plan, quantities, draws, costs)


def cases_of(one: CandidatePlan, requirement: Requirement) -> Iterator[Case]:
    """Yield the cases of a candidate: bought, with experts hired, by each offer that delivers it.

    Experts are hired where the team is none, and buying is run by it.
    """
    facts = facts_of(one)
    team = requirement.team
    skill: Skill = team.infiniband if facts.fabric == "infiniband" else team.ethernet
    injection = float(one.design.bandwidth.injection_gbps)
    bought = Case(facts, skill, None, requirement.cost.horizon_years, injection, tools=team.tools)
    yield bought
    if skill != "expert":
        yield replace(bought, is_hired=True)
    for given in _offers_for(one, requirement.offers):
        yield replace(bought, offer=_offer(given))


def _offers_for(one: CandidatePlan, offers: Iterable[SpecOffer]) -> Iterator[SpecOffer]:
    for offer in offers:
        is_named = offer.candidate in (None, one.name)
        if is_named and offer.fabric in (None, one.fabric.protocol):
            yield offer


def _offer(given: SpecOffer) -> Offer:
    return Offer(
        name=given.name,
        usd_per_port_month=given.usd_per_port_month,
        usd_per_gbps_month=given.usd_per_gbps_month,
        setup_usd=given.setup_usd,
        term_months=given.term_months,
        availability=None if given.availability_pct is None else given.availability_pct / 100,
        credit_share=None if given.credit_pct is None else given.credit_pct / 100,
        exit_months=given.exit_months,
        includes_operation=given.includes_operation,
        source=given.source or SPEC_SOURCE,
        date=given.date or "",
    )


def facts_of(one: CandidatePlan) -> NetworkFacts:
    """Return a candidate in numbers, with what the workload makes of it."""
    forecast = one.forecast
    job_gpus = one.n_gpus
    if forecast.serving is not None:
        job_gpus = min(one.n_gpus, forecast.serving.instance_gpus)
    elif forecast.kind == "inference":
        job_gpus = one.design.host.gpus
    facts = network_facts(one.design, one.fabric, one.bill, job_gpus)
    direct = one.direct_forecast
    return facts.with_performance(
        performance_of(forecast), None if direct is None else performance_of(direct)
    )


def performance_of(forecast: WorkloadForecast) -> Performance | None:
    """Return what the workload makes of a network; None where the forecast does not tell.

    Time between a network of full rate and this one is lost to `communication`, that of flaps and
    late messages to `jitter`; collisions of hashed flows are in ``hashed_step_s``. Ranks that
    compute late are no cost of the network.
    """
    step = forecast.training
    if step is not None:
        late = step.jitter.by_cause_s
        return Performance(
            step_s=step.step_s,
            ideal_step_s=min(step.full_rate_step_s, step.step_s),
            hashed_step_s=max(step.hashed_step_s, step.step_s),
            jitter_s=late.get("flaps", 0.0),
            communication_share=step.exposed_share,
            low=step.low_s / step.step_s,
            high=step.high_s / step.step_s,
            work_per_step=step.tokens_per_s * step.step_s,
            work_unit="token",
            source="docs/models/training.md",
            flops_per_step=_flops_per_step(forecast, step),
            precision=str(step.plan["precision"]),
        )
    return None if forecast.serving is None else _of_serving(forecast.serving)


def _flops_per_step(forecast: WorkloadForecast, step: TrainingForecast) -> float:
    """FLOPs that the model itself needs for a step, from its MFU [FLOP]."""
    peak_tflops = gpu_compute(forecast.gpu).tflops[str(step.plan["precision"])]
    return step.mfu * peak_tflops * 1e12 * forecast.n_gpus * step.step_s


def _of_serving(served: ServingForecast) -> Performance:
    """What serving makes of a network; a flap of a link stops one instance for its length."""
    flaps = Jitter(links=served.instance_gpus)
    share = flaps.links * flaps.flaps_per_link_month / MONTH_S * flaps.flap_stall_s
    full_s, hashed_s = served.full_rate_token_s, served.hashed_token_s
    return Performance(
        step_s=served.token_s,
        ideal_step_s=served.token_s if full_s is None else full_s,
        hashed_step_s=served.token_s if hashed_s is None else hashed_s,
        jitter_s=served.token_s * share,
        communication_share=served.network_share,
        low=served.low_factor,
        high=served.high_factor,
        work_per_step=served.tokens_per_s / served.n_instances * served.token_s,
        work_unit="token",
        source="docs/models/inference.md",
    )


def quantities_of(plan: Plan, facts: Iterable[NetworkFacts]) -> dict[str, Quantity]:
    """Return every number that some case may read, by key: catalogue, spec, prices, forecast."""
    requirement = plan.requirement
    _refuse_impossible(requirement)
    given = {
        key: _assumed(key, assumption, known_quantities()[key].unit)
        for key, assumption in requirement.cost.assumptions.items()
        if key in known_quantities()
    }
    site = requirement.site
    for key, value in (("energy.pue", site.pue), ("energy.usd_per_kwh", site.usd_per_kwh)):
        if value is not None and key not in given:
            given[key] = fixed(key, value, known_quantities()[key].unit, SPEC_SOURCE)
    known = known_quantities(given)
    known[FACTOR] = fixed(FACTOR, 1.0, "1", "no forecast of the workload")
    for one in facts:
        for price in one.price_quantities:
            known.setdefault(price.key, price)
        if one.performance is not None and known[FACTOR].is_fixed:
            known[FACTOR] = _factor(one.performance)
    return known


def _refuse_impossible(requirement: Requirement) -> None:
    """Refuse assumptions that no such number can have, such as a share of 5.

    Raises
    ------
    InputError
        With all of them.
    """
    known = known_quantities()
    faults = []
    for key, given in requirement.cost.assumptions.items():
        least, most = _bounds(key, known[key].unit if key in known else "")
        for value in (given.low, given.high):
            if not least <= value <= most:
                expected = _("{least:g} to {most:g}, as a fraction").format(least=least, most=most)
                if most == math.inf:
                    expected = _("{least:g} or more").format(least=least)
                where = requirement.where("cost", "assumptions", key)
                what = _("{value:g} cannot be.").format(value=value)
                faults.append(Fault(where, what, expected))
                break
    if faults:
        raise InputError(faults)


def _bounds(key: str, unit: str) -> tuple[float, float]:
    """Least and largest value that a quantity can have."""
    is_rate = unit == "1/year" and key.startswith(("finance.", "support."))
    least = LEAST.get(key, 0.0)
    return least, 1.0 if unit == "share" or is_rate else math.inf


def _factor(performance: Performance) -> Quantity:
    low, high = min(performance.low, 1.0), max(performance.high, 1.0)
    what = "80 % interval of the forecast"
    return Quantity(FACTOR, low, 1.0, high, "1", f"{what}: {performance.source}", "", "derived")


def _assumed(key: str, given: Assumption, unit: str) -> Quantity:
    return Quantity(
        key,
        given.low,
        given.mid,
        given.high,
        unit,
        given.source or SPEC_SOURCE,
        given.date or "",
        "spec",
    )
