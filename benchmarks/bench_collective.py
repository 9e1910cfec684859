"""Collectives on fabrics through the flow engine, from the fabric to the time of every size.

The peer is the time that was asked for: 3 s for an all-reduce of 8,192 GPUs, 5 s for an all-to-all
of 1,024 whose 1,047,552 pairs go one by one. CPU seconds, compilation left out.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import parse_requirement
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import Plant, plant_of
from gpufabric.sim.scenario import Scenario
from gpufabric.topology.design import design_candidate
from gpufabric.workload.collectives import schedule_of
from gpufabric.workload.on_fabric import cluster_of, contention

SIZE_BYTES = 2.0**30


def _plant(gpus: int) -> Plant:
    text = f"{{gpus: {gpus}, host: dgx-h100, candidates: [{{fabric: roce}}]}}"
    requirement = parse_requirement(text.encode(), "spec.yaml")
    catalog = load_catalog()
    return plant_of(
        design_candidate(requirement, requirement.candidates[0], catalog).fabric, catalog
    )


def _collective(plant: Plant, op: str, algorithm: str, cross_rail: str) -> Callable[[], float]:
    cluster = cluster_of(plant, load_catalog())
    scenario = Scenario("collective", routing=Routing("ecmp"), cross_rail=cross_rail)

    def run() -> float:
        schedule = schedule_of(cluster, op, algorithm, SIZE_BYTES, by_rail=cross_rail == "pxn")
        return contention(plant, schedule, scenario).slowdown

    return run


def entries() -> list[dict[str, Any]]:
    """Return one entry a case."""
    small = _plant(64)
    for op, algorithm in (("all_reduce", "Ring"), ("alltoall", "Pairwise")):
        _collective(small, op, algorithm, "pxn")()
    found = []
    for gpus, op, algorithm, cross_rail, wanted_s in (
        (8192, "all_reduce", "Ring", "pxn", 3.0),
        (8192, "all_reduce", "Tree", "pxn", 3.0),
        (1024, "alltoall", "Pairwise", "pxn", 5.0),
        (1024, "alltoall", "Pairwise", "fabric", 5.0),
    ):
        run = _collective(_plant(gpus), op, algorithm, cross_rail)
        start = time.process_time()
        slowdown = run()
        ours = time.process_time() - start
        name = f"collective {op} {algorithm} {gpus} GPUs, {cross_rail}"
        print(f"{name}: {ours:.2f} s, slowdown {slowdown:.3f}")
        found.append(
            {
                "name": name,
                "ours_s": round(ours, 3),
                "peer": "time asked for",
                "peer_s": wanted_s,
                "ratio": round(wanted_s / ours, 2),
                "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            }
        )
    return found
