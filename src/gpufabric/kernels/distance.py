"""Steps from every switch to every target, for up to 62 targets in one sweep.

One bit of a word stands for one target. A sweep moves all bits one step: a switch takes over the
bits of the switches its edges lead to. So the edges are read once for 62 targets and a step.

Source: M. Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", PVLDB 8(4),
2014 (the bits); IETF RFC 7938, section 5.2 (why a Clos under eBGP has no valleys: the switches of
one group have one AS number and refuse each other's routes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpufabric.kernels.graph import MAX_HOPS, Networks, Way
from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.structs import Ints, Longs

__all__ = ["fill_distances"]

LANES = 62  # bits of an int64 in use: the sign is left alone


class Wave(NamedTuple):
    """Targets that switches have reached, one bit a target."""

    seen: Longs  # int64[n_switches]: so far
    front: Longs  # int64[n_switches]: by the last step
    front_down: Longs  # int64[n_switches]: of these, by steps down alone
    after: Longs  # int64[n_switches]: by the step being made
    after_down: Longs  # int64[n_switches]


@kernel
def fill_distances(way: Way, networks: Networks) -> None:
    """Write the steps from every switch to every target of its network.

    They go into ``way.distances.hops``. With ``up_down``, paths climb tiers first and descend then;
    they never climb again.

    Reference: tests/reference/distance.py, hops_to.
    """
    size = way.graph.tier.size
    wave = Wave(
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )
    for network in range(networks.first.size - 1):
        members = networks.switch[networks.first[network] : networks.first[network + 1]]
        end = networks.first_target[network + 1]
        for start in range(networks.first_target[network], end, LANES):
            targets = networks.target[start : min(start + LANES, end)]
            begin(members, targets, wave)
            hops = 0
            while write_front(way, members, targets, wave, hops) and hops < MAX_HOPS:
                step(way, members, wave)
                hops += 1


@inner_kernel
def begin(members: Ints, targets: Ints, wave: Wave) -> None:
    """Put every target's bit on the target itself and clear all others.

    Reference: tests/reference/distance.py, hops_to.
    """
    for switch in members:
        wave.seen[switch] = wave.front[switch] = wave.front_down[switch] = 0
    for lane in range(targets.size):
        bit = np.int64(1) << lane
        wave.seen[targets[lane]] = wave.front[targets[lane]] = bit
        wave.front_down[targets[lane]] = bit


@inner_kernel
def step(way: Way, members: Ints, wave: Wave) -> None:
    """Move all bits one step; the front becomes what was reached by it.

    Reference: tests/reference/distance.py, hops_to.
    """
    graph = way.graph
    for switch in members:
        reached, by_down = np.int64(0), np.int64(0)
        for edge in range(graph.first[switch], graph.first[switch + 1]):
            head = graph.head[edge]
            if not way.up_down or graph.tier[head] > graph.tier[switch]:
                reached |= wave.front[head]
            elif graph.tier[head] < graph.tier[switch]:
                by_down |= wave.front_down[head]
        wave.after[switch] = (reached | by_down) & ~wave.seen[switch]
        wave.after_down[switch] = by_down & ~wave.seen[switch]
    for switch in members:
        wave.seen[switch] |= wave.after[switch]
        wave.front[switch] = wave.after[switch]
        wave.front_down[switch] = wave.after_down[switch]


@inner_kernel
def write_front(way: Way, members: Ints, targets: Ints, wave: Wave, hops: int) -> bool:
    """Write `hops` for every bit of the front; tell whether there was one.

    Reference: tests/reference/distance.py, hops_to.
    """
    distances = way.distances
    is_any = False
    for switch in members:
        bits = wave.front[switch]
        if bits == 0:
            continue
        is_any = True
        for lane in range(targets.size):
            if (bits >> lane) & 1:
                distances.hops[distances.row[targets[lane]] + distances.place[switch]] = hops
    return is_any
