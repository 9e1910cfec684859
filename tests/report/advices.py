"""Advice that the tests of the report share, each made once."""

from __future__ import annotations

import functools
from contextvars import copy_context

from gpufabric.core.text import use_language
from gpufabric.planner.advice import Advice, advise
from gpufabric.planner.compare import plan_all
from gpufabric.planner.economics import economics
from gpufabric.report.racks_svg import racks_svg
from gpufabric.report.report_page import Drawings
from gpufabric.report.topology_svg import topology_svg
from gpufabric.topology.rack_power import rack_power
from tests.report.designs import catalog, requirement

BOTH = (
    "{name: Start <b>&amp; up, gpus: 64, host: dgx-h100, candidates: [infiniband, roce],"
    " offers: true, cost: {draws: 256}}"
)
ONE = (
    "{gpus: 64, host: dgx-h100, candidates: [roce], offers: false,"
    " team: {ethernet: expert}, cost: {draws: 64}}"
)
SERVING = (
    "{gpus: 128, host: hgx-b200, workload: {kind: inference, parallelism: {tp: 8, ep: 32}},"
    " candidates: [roce, {name: planes, fabric: roce, topology: multi-plane, planes: 2},"
    " infiniband], site: {currency: CNY, currency_rate: 7.1}, team: {infiniband: none},"
    " offers: [{name: acme, usd_per_port_month: 150, setup_usd: 20000, includes_operation: false},"
    " {name: bit, usd_per_gbps_month: 0.6, exit_months: 3, credit_pct: 10, term_months: 60}],"
    " cost: {draws: 256, horizon_years: 3, budget_usd: 1.2e+6, decide_by: p90}}"
)


@functools.cache
def advice(text: str, language: str = "en", sizes: tuple[int, ...] = (64, 256)) -> Advice:
    """Return the advice on a spec, told in a language."""

    def made() -> Advice:
        use_language(language)
        return advise(economics(plan_all(requirement(text), catalog())), sizes)

    return copy_context().run(made)


def drawings(told: Advice) -> list[Drawings]:
    """Return the drawings of all candidates."""
    plan = told.economics.plan
    found = []
    for one in plan.candidates:
        prints = one.placement.footprints
        power = rack_power(one.fabric, prints, one.cabling)
        racks = racks_svg(one.fabric, prints, power, plan.requirement.site)
        found.append(Drawings(topology_svg(one.fabric), racks))
    return found
