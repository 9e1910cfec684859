"""Mistakes that a spec is about to make: what it leaves out, and what does not fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.switch import Switch
from gpufabric.core.text import _
from gpufabric.cost.case import Case
from gpufabric.cost.opportunity import LOSSES, locate_hours
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import Draws, draw
from gpufabric.cost.subscription import monthly_fee
from gpufabric.planner.economics import CaseCost, Economics
from gpufabric.planner.flips import number_text
from gpufabric.planner.network_share import networks_share
from gpufabric.planner.plan import CandidatePlan, Plan
from gpufabric.planner.quantity_words import fabric_label

__all__ = ["Pitfall", "pitfalls", "reckoned_fee"]

LEAST_SHARE, MOST_SHARE = 0.10, 0.20
"""Share of a cluster's hardware that networks and NICs usually have (published: 9 to 25 %)."""

MANY_GPUS = 1000
"""From so many GPUs on a network without tools is a mistake; assumed."""


@dataclass(frozen=True)
class Pitfall:
    """One mistake.

    Parameters
    ----------
    key
        Stable name.
    candidate
        Which candidate it concerns; empty for the whole spec.
    sentence
        What is wrong, with the numbers.
    remedy
        What to do.
    """

    key: str
    candidate: str
    sentence: str
    remedy: str


def pitfalls(economics: Economics) -> tuple[Pitfall, ...]:
    """Return the mistakes found in a plan's spec; GPUDirect RDMA that is off comes first."""
    plan = economics.plan
    found = [
        *_one_host(plan),
        *_currency(plan),
        *_direct(economics),
        *_skill(plan),
        *_vendor(plan),
        *_growth(plan),
        *_latency(plan),
    ]
    found += _unwatched(economics)
    for one in plan.candidates:
        found += [*_blocked(one), *_share(one, plan.catalog), *_unpriced(one)]
    return tuple(found)


def reckoned_fee(cost: CaseCost, draws: Draws) -> Iterator[Pitfall]:
    """Yield that the fee of a case is no offer, if it is a subscription without one."""
    offer = cost.case.offer
    if offer is None or not offer.is_reckoned:
        return
    fee = float(monthly_fee(cost.case, offer, draws).mean()) / cost.case.facts.n_gpus
    yield Pitfall(
        "fee_reckoned",
        cost.plan.name,
        _(
            "No offer is in the spec: {usd:,.0f} USD a month for a GPU's port is what a provider "
            "must ask, with an assumed margin."
        ).format(usd=fee),
        _("Ask providers, and enter what they offer under offers."),
    )


def _skill(plan: Plan) -> Iterator[Pitfall]:
    has_roce = any(one.candidate.fabric == "roce" for one in plan.candidates)
    has_infiniband = any(one.candidate.fabric == "infiniband" for one in plan.candidates)
    team = plan.requirement.team
    if has_roce and team.ethernet == "none":
        yield Pitfall(
            "no_lossless_skill",
            "",
            _("RoCE is asked for, and nobody in the team knows lossless Ethernet."),
            _("Train or hire before it is bought, or have it run as a service."),
        )
    if has_infiniband and team.infiniband == "none":
        yield Pitfall(
            "no_infiniband_skill",
            "",
            _("InfiniBand is asked for, and nobody in the team has run it."),
            _("Train or hire before it is bought, or have it run as a service."),
        )


def _vendor(plan: Plan) -> Iterator[Pitfall]:
    """Yield candidates whose switches one vendor alone makes, and a plan with one vendor."""
    makers = {
        switch.vendor
        for one in plan.candidates
        for switch in one.design.switches.by_tier().values()
    }
    remedy = _("Add a candidate with another vendor's switch, to have a price to bargain with.")
    if len(makers) == 1:
        what = _("All candidates have switches of one vendor, {vendor}.")
        yield Pitfall("single_vendor", "", what.format(vendor=next(iter(makers))), remedy)
        return
    for one in plan.candidates:
        fabric = one.candidate.fabric
        of_fabric = {
            device.vendor
            for device in plan.catalog.devices
            if isinstance(device, Switch) and device.fabric == fabric
        }
        if len(of_fabric) == 1:
            what = _("{fabric} switches come from one vendor alone, {vendor}.").format(
                fabric=fabric_label(fabric), vendor=next(iter(of_fabric))
            )
            yield Pitfall(
                "single_vendor", one.name, what, _("Settle prices of growth and spares in advance.")
            )


def _one_host(plan: Plan) -> Iterator[Pitfall]:
    """Yield that one host, or one domain of NVLink, needs no network between hosts."""
    hosts = {one.fabric.n_hosts for one in plan.candidates}
    if hosts == {1} and plan.requirement.growth is None:
        yield Pitfall(
            "one_host",
            "",
            _("All GPUs stand in one host and talk over NVLink: no network is needed for them."),
            _("Buy none, or say under growth what it must grow to."),
        )


def _currency(plan: Plan) -> Iterator[Pitfall]:
    """Yield that amounts are not in the currency that the spec asks for."""
    site = plan.requirement.site
    if site.currency != "USD" and site.currency_rate is None:
        yield Pitfall(
            "no_rate",
            "",
            _("{code} is asked for without its rate: all amounts are in USD.").format(
                code=site.currency
            ),
            _("Set site.currency_rate and site.currency_date."),
        )


def _growth(plan: Plan) -> Iterator[Pitfall]:
    growth = plan.requirement.growth
    for one in plan.candidates:
        if growth is None and one.most_hosts == one.fabric.n_hosts:
            yield Pitfall(
                "growth_ignored",
                one.name,
                _(
                    "{n} hosts fill the network to the last port; one more needs a new design."
                ).format(n=one.fabric.n_hosts),
                _("Say under growth what it must grow to."),
            )


def _latency(plan: Plan) -> Iterator[Pitfall]:
    work = plan.requirement.workload
    if work.kind == "inference" and not work.is_latency_sensitive:
        yield Pitfall(
            "latency_ignored",
            "",
            _("Inference is served, and latency is said not to matter: only bandwidth counts."),
            _("Leave out workload.latency_sensitive, or set it to true."),
        )


def _direct(economics: Economics) -> Iterator[Pitfall]:
    """Yield what each candidate, bought, loses because GPUDirect RDMA is off."""
    if economics.plan.requirement.workload.gpudirect is not False:
        return
    for cost in economics.costs:
        case = cost.case
        if case.offer is not None or case.is_hired:
            continue
        sentence = _("GPUDirect RDMA is off: all that GPUs send is copied through host memory.")
        if case.facts.direct_performance is not None:
            mended = evaluate(case.with_gpudirect(), economics.draws)
            now = cost.outcome
            hours = sum(
                float(np.mean(now.lost_gpu_hours[n] - mended.lost_gpu_hours[n])) for n in LOSSES
            )
            sentence += " " + _(
                "That takes {hours} GPU-hours a year: {usd} USD over {years} years."
            ).format(
                hours=number_text(hours),
                usd=number_text(float(np.mean(now.total - mended.total))),
                years=case.horizon_years,
            )
        yield Pitfall(
            "gpudirect_off",
            cost.plan.name,
            sentence,
            _("Load nvidia-peermem or use DMA-BUF; without it no network is worth its price."),
        )


def _unwatched(economics: Economics) -> Iterator[Pitfall]:
    """Yield what dashboards would save where a large network has none, if they save anything."""
    bare = [
        cost
        for cost in economics.costs
        if cost.case.operator_tools == "none" and cost.case.facts.n_gpus >= MANY_GPUS
    ]
    if not bare:
        return
    question, seed = economics.plan.requirement.cost, economics.plan.requirement.seed
    draws = draw(economics.quantities.values(), question.draws, seed)
    saved = [_saved_usd(cost.case, draws) for cost in bare]
    best = int(np.argmax(saved))
    if saved[best] <= 0:
        return
    case = bare[best].case
    watched = replace(case, tools="counters")
    hours = [float(np.median(locate_hours(one, draws))) for one in (case, watched)]
    yield Pitfall(
        "no_tools",
        bare[best].plan.name,
        _(
            "{gpus:,} GPUs, and nothing watches the network but the switches' own commands: a "
            "cause is found in {now} h, with dashboards and alarms in {then} h, which saves {usd} "
            "USD over {years} years."
        ).format(
            gpus=case.facts.n_gpus,
            now=number_text(hours[0]),
            then=number_text(hours[1]),
            usd=number_text(saved[best]),
            years=case.horizon_years,
        ),
        _("Plan counters or telemetry, and say so under team.tools."),
    )


def _saved_usd(case: Case, draws: Draws) -> float:
    """What dashboards and alarms save over the horizon, their own price counted [USD]."""
    watched = evaluate(replace(case, tools="counters"), draws)
    return float(np.mean(evaluate(case, draws).total - watched.total))


def _blocked(one: CandidatePlan) -> Iterator[Pitfall]:
    ratio = max(one.design.oversubscription_by_tier().values(), default=1.0)
    ways = 1
    if one.forecast.training is not None:
        ways = int(one.forecast.training.plan["expert"])
    elif one.forecast.serving is not None:
        ways = int(one.forecast.serving.plan["expert"])
    if ratio > 1.0 and ways > one.design.host.gpus:
        yield Pitfall(
            "oversubscribed_alltoall",
            one.name,
            _(
                "{ratio:g}:1 oversubscribed, and experts exchange all-to-all over {ways} GPUs."
            ).format(ratio=ratio, ways=ways),
            _("Take 1:1, or keep the experts of a group under one leaf."),
        )


def _share(one: CandidatePlan, catalog: Catalog) -> Iterator[Pitfall]:
    share = networks_share(one, catalog)
    if share is None or LEAST_SHARE <= share.mid <= MOST_SHARE:
        return
    what = (
        _(
            "Networks and NICs are {share:.1%} of the cluster's hardware, and 10 to 20 % is usual: "
            "prices or parts may be missing."
        )
        if share.mid < LEAST_SHARE
        else _(
            "Networks and NICs are {share:.1%} of the cluster's hardware, and 10 to 20 % is usual."
        )
    )
    yield Pitfall(
        "share_unusual",
        one.name,
        what.format(share=share.mid),
        _("Check prices, tiers and what is counted as network."),
    )


def _unpriced(one: CandidatePlan) -> Iterator[Pitfall]:
    n = one.capital.total.n_unpriced
    if n:
        yield Pitfall(
            "unpriced",
            one.name,
            _("{n} lines of the bill have no price, so that its cost is a lower bound.").format(
                n=n
            ),
            _("Enter prices in a catalogue of your own."),
        )
