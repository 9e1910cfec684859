"""All-reduces that InfiniBand switches add up (SHARP, CollNet), on the trees of a fabric.

GPU c of every host owns chunk c, and sends it to the network: a tree for each c, over the NICs of
the GPUs of that number. On the packet engine all trees run at once; the flow engine knows how many
of them share a channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.routing.sharp import ReductionTree, trees_of_groups
from gpufabric.routing.shortest import shortest_paths
from gpufabric.sim.failures import down_links, find_failures
from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_fabric import wires_of
from gpufabric.sim.packet_override import numbered
from gpufabric.sim.packet_sharp import (
    MOST_MESSAGES,
    AddingTree,
    Sharp,
    n_messages_of,
    sharp_problems,
)
from gpufabric.sim.profile import default_profile
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.cluster import Cluster

__all__ = ["SharpRun", "TreeOutcome", "cluster_with_sharp", "run_sharp"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

BYTES_PER_S_OF_GBPS = 1.25e8
PS_PER_S = 1e12
COLLNET = frozenset({"collnetdirect", "collnetchain"})


@dataclass(frozen=True)
class TreeOutcome:
    """One tree, and how long its all-reduce took.

    Parameters
    ----------
    root
        Name of the switch that has the sum first.
    n_switches, n_members, depth
        Of the tree; depth in switches, from a NIC to the root.
    size_bytes
        What each member sends and gets [byte].
    fct_us
        From the start to the last member's last byte [us]; None on the flow engine.
    """

    root: str
    n_switches: int
    n_members: int
    depth: int
    size_bytes: int
    fct_us: float | None


@dataclass(frozen=True)
class SharpRun:
    """How the network's part of an all-reduce went.

    Parameters
    ----------
    size_bytes
        Of the whole all-reduce [byte].
    trees
        All of them.
    slowdown
        How much longer a byte takes than at full NIC rate; latency is not in it.
    busbw_gbytes_per_s
        Bus bandwidth of the network's part alone [GB/s]; None on the flow engine.
    """

    size_bytes: float
    trees: tuple[TreeOutcome, ...]
    slowdown: float
    busbw_gbytes_per_s: float | None

    @property
    def took_us(self) -> float | None:
        """Time of the slowest tree [us]."""
        times = [tree.fct_us for tree in self.trees if tree.fct_us is not None]
        return max(times) if times else None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-like values."""
        return {
            "size_bytes": self.size_bytes,
            "slowdown": self.slowdown,
            "fct_us": self.took_us,
            "busbw_gbytes_per_s": self.busbw_gbytes_per_s,
            "trees": [vars(tree) for tree in self.trees],
        }


def cluster_with_sharp(cluster: Cluster, protocol: str, algorithms: str | None) -> Cluster:
    """Return the cluster, without SHARP where the fabric is RoCE.

    Parameters
    ----------
    cluster
        As NCCL's variables make it.
    protocol
        Of the fabric.
    algorithms
        Those that are asked for, with commas.

    Raises
    ------
    InputError
        If CollNet is asked for, and switches cannot add up or NCCL is not told to let them.
    """
    names = [name.strip() for name in (algorithms or "").split(",")]
    asked = [name for name in names if name.lower() in COLLNET]
    if asked and protocol == "roce":
        what = _("{name} needs InfiniBand switches that add up (SHARP), and the fabric is RoCE.")
        raise InputError(Fault("--algo", what.format(name=asked[0]), "Ring, Tree, NVLSTree"))
    if asked and not cluster.has_sharp and cluster.n_domains > 1:
        what = _("{name} needs SHARP, which NCCL does not use unless told to.")
        remedy = _("Add --env NCCL_COLLNET_ENABLE=1.")
        raise InputError(Fault("--algo", what.format(name=asked[0]), "", remedy))
    return replace(cluster, has_sharp=False) if protocol == "roce" else cluster


def run_sharp(plant: Plant, cluster: Cluster, size_bytes: float, scenario: Scenario) -> SharpRun:
    """Return how the network's part of an all-reduce goes.

    Parameters
    ----------
    plant, cluster
        The fabric, and the cluster that its hosts make.
    size_bytes
        Of the all-reduce [byte].
    scenario
        Failures from the beginning on, seed, engine, profile.

    Raises
    ------
    InputError
        If no tree joins all members, or there are too many messages.
    """
    failures = find_failures(plant.fabric, scenario.fail, scenario.seed)
    if any(one.from_s > 0 for one in failures):
        what = _("trees of SHARP stay as they are: failures in the run are not modelled.")
        raise InputError(Fault("--fail", what, _("a failure without @FROM")))
    now = plant.channels.with_failures(links=down_links(failures, 0.0).tolist())
    groups, sizes = _groups(plant, cluster, size_bytes)
    try:
        found = trees_of_groups(shortest_paths(now), groups)
    except InputError as error:
        raise InputError([replace(fault, where="--fail") for fault in error.faults]) from error
    trees = [tree for group in found for tree in group]
    each = [size for group, size in zip(found, sizes, strict=True) for _tree in group]
    nic_gbps = min(
        float(now.capacity_gbps[tree.up_channels[: len(tree.members)]].min()) for tree in trees
    )
    if scenario.engine != "packet":
        slowdown = _shared(trees, each, now.capacity_gbps, nic_gbps)
        return _outcome(trees, each, size_bytes, None, slowdown, cluster)
    whole_ps = _run(plant, trees, each, scenario)
    alone_ps = _run(plant, trees, [min(Sharp().segment_bytes, one) for one in each], scenario)
    longest = max(each) - Sharp().segment_bytes
    bound_ps = max(longest, 0) / (nic_gbps * BYTES_PER_S_OF_GBPS) * PS_PER_S
    more_ps = float(whole_ps.max() - alone_ps.max())
    slowdown = max(1.0, more_ps / bound_ps) if bound_ps else 1.0
    return _outcome(trees, each, size_bytes, whole_ps, slowdown, cluster)


def _groups(plant: Plant, cluster: Cluster, size_bytes: float) -> tuple[list[Ints], list[int]]:
    """Return NIC ports of GPUs of one number, for each number and port, and what each sends."""
    ports = plant.endpoints.first_of(cluster.n_ranks).ports
    each = cluster.gpus_per_domain
    groups, sizes = [], []
    for gpu in range(each):
        mine = ports[gpu::each]
        n_ports = int((mine >= 0).sum(axis=1).max())
        for column in mine.T:
            if (column >= 0).any():
                groups.append(column[column >= 0].astype(np.int32))
                sizes.append(max(1, round(size_bytes / each / n_ports)))
    return groups, sizes


def _shared(
    trees: Sequence[ReductionTree], each: Sequence[int], capacity_gbps: Floats, nic_gbps: float
) -> float:
    """Return how much longer the busiest channel takes than a NIC."""
    load = np.zeros(len(capacity_gbps))
    for tree, size in zip(trees, each, strict=True):
        np.add.at(load, np.concatenate([tree.up_channels, tree.down_channels]), size)
    used = load > 0
    busiest_s = float((load[used] / capacity_gbps[used]).max())
    return max(1.0, busiest_s * nic_gbps / max(each))


def _run(
    plant: Plant, trees: Sequence[ReductionTree], each: Sequence[int], scenario: Scenario
) -> Floats:
    """Return when each tree's last member has all of the sum [ps]."""
    wires = wires_of(plant.fabric, plant.channels)
    profile = scenario.profile or default_profile(plant.fabric.protocol)
    adding = [AddingTree.from_reduction(tree) for tree in trees]
    counts = [n_messages_of(tree, size) for tree, size in zip(adding, each, strict=True)]
    if sum(counts) > MOST_MESSAGES:
        what = _("{n} messages are too many.").format(n=f"{sum(counts):,}")
        raise InputError(Fault("--ranks", what, _("at most {most}").format(most=MOST_MESSAGES)))
    asked = sharp_problems(wires, adding, each)
    problem = asked.problem
    config = numbered(profile.config, plant.channels, profile.name)
    if "forwarding_ns" in profile.from_catalog:
        n_switches = int(wires.head.max()) + 1
        ps = np.round(plant.switches.hop_latency_ns[:n_switches] * 1000).astype(np.int64)
        problem = replace(problem, forwarding_ps=ps)
    result = simulate_packets(problem, replace(config, seed=config.seed + scenario.seed))
    ends = result.flows.delivered_ps[asked.to_members]
    if (ends < 0).any():
        what = _("{n} segments of the sum never came.").format(n=int((ends < 0).sum()))
        raise InputError(Fault("--algo", what))
    owner = np.repeat(np.arange(len(trees)), asked.n_ends)
    last = np.zeros(len(trees))
    np.maximum.at(last, owner, ends)
    return last


def _outcome(
    trees: Sequence[ReductionTree],
    each: Sequence[int],
    size_bytes: float,
    took_ps: Floats | None,
    slowdown: float,
    cluster: Cluster,
) -> SharpRun:
    told = tuple(
        TreeOutcome(
            str(tree.channels.fabric.switches.name[tree.root]),
            len(tree.switches),
            len(tree.members),
            tree.depth,
            size,
            None if took_ps is None else float(took_ps[at]) / 1e6,
        )
        for at, (tree, size) in enumerate(zip(trees, each, strict=True))
    )
    busbw = None
    if took_ps is not None:
        factor = 2 * (cluster.n_ranks - 1) / cluster.n_ranks
        busbw = size_bytes / (float(took_ps.max()) / PS_PER_S) * factor / 1e9
    return SharpRun(size_bytes, told, slowdown, busbw)
