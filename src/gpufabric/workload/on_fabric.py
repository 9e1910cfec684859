"""Collectives on a fabric: what the network gives when flows meet, collide, or a link is down.

The closed form knows a network that gives every NIC its full rate. A fabric may give less: hashes
collide, tiers are oversubscribed, links fail. The schedule's flows over the network are run, and
the time of the slowest against the time at full NIC rate is how much the wire is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.sim.failures import find_failures
from gpufabric.sim.packet_run import run_with_engine
from gpufabric.sim.routing_choice import check_routing
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import Traffic
from gpufabric.sim.traffic_result import TrafficResult
from gpufabric.workload.closed_form import Estimate, estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.collectives import schedule_of
from gpufabric.workload.nccl_tuner import choose
from gpufabric.workload.schedule import Schedule
from gpufabric.workload.sharp_on_fabric import SharpRun, run_sharp

__all__ = [
    "Contention",
    "check_scenario",
    "cluster_of",
    "contention",
    "estimate_on_fabric",
    "network_traffic",
]

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Run = Callable[[Plant, Scenario, Traffic], TrafficResult]

PROBE_BYTES = float(2**30)
"""Message size that the flows are run with: so large that latency does not count."""
PACKET_PROBE_BYTES = float(2**24)
"""The same for packets, of which few can be run."""


@dataclass(frozen=True, eq=False)
class Contention:
    """How a schedule's flows go on a fabric.

    Parameters
    ----------
    slowdown
        Time of the network phases against that at full NIC rate; 1 without any loss.
    results
        The run of each phase that crosses the network.
    sharp
        What the network's switches added up, where they do.
    """

    slowdown: float
    results: tuple[TrafficResult, ...]
    sharp: SharpRun | None = None


def cluster_of(plant: Plant, catalog: Catalog, n_ranks: int | None = None) -> Cluster:
    """Return the cluster that a fabric's hosts make.

    Parameters
    ----------
    plant
        The fabric.
    catalog
        Tells the model of the hosts' GPUs.
    n_ranks
        The first so many GPUs take part; all where None. Whole hosts, or part of one.

    Raises
    ------
    InputError
        If hosts differ in size, or the ranks are not whole hosts.
    """
    ends, fabric = plant.endpoints, plant.fabric
    n = len(ends) if n_ranks is None else n_ranks
    if not 2 <= n <= len(ends):
        most = _("2 to {most}, what the fabric has today").format(most=len(ends))
        raise InputError(Fault("--ranks", _("{n} GPUs.").format(n=n), most))
    ends = ends.first_of(n)
    sizes = np.bincount(ends.block)
    if (sizes != sizes[0]).any():
        what = _("{n} GPUs are not as many on every host.").format(n=n)
        each = int(np.bincount(plant.endpoints.block)[0])
        raise InputError(Fault("--ranks", what, _("a multiple of {each}").format(each=each)))
    host = catalog.host(fabric.models[int(fabric.hosts.model[ends.host[0]])])
    if host.accelerators is None:
        raise InputError(Fault(host.name, _("the host has no GPUs.")))
    mine = ends.host == ends.host[0]
    return Cluster(
        host.accelerators.model,
        int(sizes[0]),
        len(sizes),
        float(ends.gbps[mine].sum() / 8) if len(sizes) > 1 else None,
        "rdma",
        n_nics=len(np.unique(fabric.ports.device[ends.ports[mine & (ends.ports >= 0).any(1)]])),
    )


def network_traffic(schedule: Schedule, block: Ints) -> list[Traffic]:
    """Return the flows of each phase that cross the network; those to the network's switch too.

    Parameters
    ----------
    schedule
        Of the collective.
    block
        int32[n_ranks]: host of each rank.
    """
    found = []
    for phase in schedule.phases:
        between = (phase.source < schedule.n_ranks) & (phase.target < schedule.n_ranks)
        source, target = phase.source[between], phase.target[between]
        is_far = block[source] != block[target]
        if is_far.any():
            n_flows = int(is_far.sum())
            found.append(
                Traffic(
                    f"{schedule.operation} {schedule.algorithm}: {phase.name}",
                    source[is_far],
                    target[is_far],
                    phase.n_bytes[between][is_far],
                    np.zeros(n_flows),
                )
            )
    return found


def check_scenario(plant: Plant, scenario: Scenario) -> None:
    """Tell of routing and failures that are wrong, even where no flow would meet them.

    Raises
    ------
    InputError
        If the way of routing is unknown, or what fails is not there.
    """
    check_routing(scenario.routing)
    find_failures(plant.fabric, scenario.fail, scenario.seed)


def contention(
    plant: Plant, schedule: Schedule, scenario: Scenario, run: Run = run_with_engine
) -> Contention:
    """Return how much slower the network is for a schedule than at full NIC rate.

    Parameters
    ----------
    plant
        The fabric; rank r is its GPU r.
    schedule
        With sizes so large that latency does not count.
    scenario
        Routing, failures, seed; its traffic is not used. Data change rails over NVLink (PXN), as
        collective libraries do, where it does not say otherwise.
    run
        The engine: flows, or packets.

    Raises
    ------
    InputError
        If a pair of ranks has no path.
    """
    block = plant.endpoints.first_of(schedule.n_ranks).block
    scenario = replace(scenario, n_bins=0, cross_rail=scenario.cross_rail or "pxn")
    results, taken_s, bound_s = [], 0.0, 0.0
    for traffic in network_traffic(schedule, block):
        result = run(plant, scenario, traffic)
        summary = result.summary(0)
        if summary["flows"].get("finished", 0) != traffic.n_flows:
            what = _("{n} of {total} flows do not reach their end.").format(
                n=traffic.n_flows - summary["flows"].get("finished", 0), total=traffic.n_flows
            )
            raise InputError(Fault("--fail", what, _("a fabric that joins all ranks")))
        results.append(result)
        taken_s += float(summary["completion_s"])
        bound_s += result.bound_s
    slowdown = max(taken_s / bound_s, 1.0) if bound_s else 1.0
    return Contention(slowdown, tuple(results))


def estimate_on_fabric(
    plant: Plant,
    cluster: Cluster,
    op: str,
    size_bytes: Floats,
    scenario: Scenario,
    forced: tuple[str | None, str | None] = (None, None),
) -> tuple[Estimate, dict[str, Contention]]:
    """Return times of a collective on a fabric, and what the network did to each algorithm.

    The wire of the closed form is slowed by what the engine finds; the choice of algorithm stays
    as NCCL makes it, which knows nothing of collisions or failures.

    Parameters
    ----------
    plant, cluster
        The fabric, and the cluster that its hosts make.
    op, size_bytes
        The collective, and its message sizes [byte].
    scenario
        Routing, failures, seed, and the engine, ``flow`` or ``packet``.
    forced
        Algorithm and protocol, each None where NCCL chooses.

    Raises
    ------
    InputError
        If something asked for is impossible here.
    """
    check_scenario(plant, scenario)
    sizes = np.atleast_1d(np.asarray(size_bytes, np.float64))
    choices = choose(cluster, op, sizes, *forced)
    probe = PACKET_PROBE_BYTES if scenario.engine == "packet" else PROBE_BYTES
    found: dict[str, Contention] = {}
    times, low, high = (np.zeros(sizes.shape) for _i in range(3))
    reasons: tuple[str, ...] = ()
    factor = 1.0
    for choice in dict.fromkeys(choices):
        name = choice.algorithm
        if name not in found:
            by_rail = scenario.cross_rail != "fabric"
            schedule = schedule_of(cluster, op, name, probe, by_rail=by_rail)
            found[name] = (
                _added_up(plant, cluster, probe, scenario)
                if name.startswith("CollNet")
                else contention(plant, schedule, scenario)
            )
        wire = cluster.wire_gbytes_per_s
        slowed = cluster
        if wire is not None:
            slowed = replace(cluster, wire_gbytes_per_s=wire / found[name].slowdown)
        mine = np.array([other == choice for other in choices])
        part = estimate(slowed, op, sizes[mine], name, choice.protocol)
        times[mine], low[mine], high[mine] = part.time_us, part.low_us, part.high_us
        reasons, factor = part.extrapolates, part.factor
    return Estimate(sizes, times, low, high, choices, factor, reasons), found


def _added_up(plant: Plant, cluster: Cluster, size_bytes: float, scenario: Scenario) -> Contention:
    run = run_sharp(plant, cluster, size_bytes, scenario)
    return Contention(run.slowdown, (), run)
