"""Plans with their economics that several tests of the planner read, each made once."""

from __future__ import annotations

import functools

from gpufabric.planner.advice import Advice, advise
from gpufabric.planner.economics import Economics, economics
from tests.report.designs import plan

SMALL = (
    "{gpus: 128, host: dgx-h100, candidates: [infiniband, roce, "
    "{name: roce-again, fabric: roce}], cost: {draws: 1024}}"
)


@functools.cache
def money(spec: str = SMALL) -> Economics:
    """The economics of a spec."""
    return economics(plan(spec))


@functools.cache
def advice(spec: str = SMALL) -> Advice:
    """The advice on a spec, without the chart of sizes."""
    return advise(money(spec), sizes=())
