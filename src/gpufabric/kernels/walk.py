"""One path a flow, chosen step by step among the edges that lie on shortest paths.

The edges that lead one step nearer are found when a flow stands before the choice: no table of next
hops, and no list of paths between pairs, is ever made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpufabric.kernels.graph import Ends, Graph, Way
from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.structs import Floats, Ints, Longs

__all__ = [
    "Stripes",
    "Traffic",
    "Wanted",
    "ecmp_group",
    "mix",
    "mix_all",
    "next_edges",
    "walk_by_hash",
    "walk_by_load",
    "walk_striped",
    "widest",
]

MASK = 0xFFFFFFFF
FACTOR_A = 0x2C1B3C6D  # both below 2**31: products of 32-bit words stay within int64
FACTOR_B = 0x297A2D39


class Wanted(NamedTuple):
    """Paths to find: those of flow f are its ``per_flow`` consecutive rows."""

    first: Longs  # int64[n_paths + 1]: room of each path in `channel`, none where it has none
    key: Longs  # int64[n_paths]: what switches hash, 32 bits
    seed: Longs  # int64[n_switches]: the hash seed of each switch, 32 bits


class Traffic(NamedTuple):
    """What flows put on channels."""

    capacity: Floats  # float64[n_channels] [Gb/s]
    demand: Floats  # float64[n_flows]
    load: Floats  # float64[n_channels]: of the paths so far, in the demands' unit; is added to


class Stripes(NamedTuple):
    """Numbers that static paths go by."""

    number_to: Ints  # int32[n_flows]: the destination's number on its leaf
    leaf_number: Ints  # int32[n_switches]: number of each leaf in its pod
    lanes: Ints  # int32[n_edges]: parallel edges between the same two switches


@inner_kernel
def mix(word: int) -> int:
    """Hash of 32 bits into 32 bits in which every bit depends on every bit.

    Source: two rounds of multiply and shift with constants of C. Wellons, "Prospecting for hash
    functions", 2018. Switch makers do not publish theirs; see docs/models/routing.md.

    Reference: tests/reference/walk.py, mix.
    """
    word = ((word ^ (word >> 15)) * FACTOR_A) & MASK
    word = ((word ^ (word >> 12)) * FACTOR_B) & MASK
    return word ^ (word >> 15)


@kernel
def mix_all(words: Longs, key: Longs) -> None:
    """Mix one more word into every key.

    Reference: tests/reference/walk.py, mix.
    """
    for at in range(key.size):
        key[at] = mix(mix(words[at] & MASK) ^ key[at])


@inner_kernel
def widest(graph: Graph) -> int:
    """Most edges that leave one switch.

    Reference: tests/reference/walk.py, next_edges.
    """
    most = 0
    for switch in range(graph.tier.size):
        most = max(most, graph.first[switch + 1] - graph.first[switch])
    return most


@inner_kernel
def next_edges(way: Way, switch: int, leaf: int, found: Longs) -> int:
    """Write the edges of `switch` that lie on shortest paths to `leaf`; return how many.

    A step down is allowed only toward a switch that gets to the leaf by steps down alone: one that
    is as many steps away as tiers above it.

    Reference: tests/reference/walk.py, next_edges.
    """
    graph, distances = way.graph, way.distances
    row = distances.row[leaf]
    nearer = distances.hops[row + distances.place[switch]] - 1
    size = 0
    for edge in range(graph.first[switch], graph.first[switch + 1]):
        head = graph.head[edge]
        if nearer < 0 or distances.hops[row + distances.place[head]] != nearer:
            continue
        if (
            way.up_down
            and graph.tier[head] < graph.tier[switch]
            and nearer != graph.tier[head] - graph.tier[leaf]
        ):
            continue
        found[size] = edge
        size += 1
    return size


@kernel
def ecmp_group(way: Way, switch: int, leaf: int) -> Longs:
    """Edges of `switch` that lie on shortest paths to `leaf`, in port order.

    Reference: tests/reference/walk.py, next_edges.
    """
    found = np.empty(way.graph.first[switch + 1] - way.graph.first[switch], np.int64)
    return found[: next_edges(way, switch, leaf, found)]


@kernel
def walk_by_hash(way: Way, ends: Ends, wanted: Wanted, channel: Ints) -> None:
    """Write each path; a switch takes the next edge that the hash of its key and seed points at.

    Reference: tests/reference/walk.py, by_hash.
    """
    graph = way.graph
    found = np.empty(widest(graph), np.int64)
    per_flow = wanted.key.size // max(ends.leaf_to.size, 1)
    for path in range(wanted.key.size):
        at, end = wanted.first[path], wanted.first[path + 1]
        if at == end:
            continue
        flow = path // per_flow
        switch, leaf = ends.leaf_from[flow], ends.leaf_to[flow]
        channel[at] = ends.channel_in[flow]
        while switch != leaf:
            size = next_edges(way, switch, leaf, found)
            edge = found[mix(wanted.key[path] ^ wanted.seed[switch]) % size]
            at += 1
            channel[at] = graph.channel[edge]
            switch = graph.head[edge]
        channel[end - 1] = ends.channel_out[flow]


@kernel
def walk_by_load(way: Way, ends: Ends, wanted: Wanted, traffic: Traffic, channel: Ints) -> None:
    """Write each path, in order; a switch takes the next edge with the least load / capacity.

    The hash decides where the search begins and so which of equals is taken.

    Reference: tests/reference/walk.py, by_load.
    """
    graph = way.graph
    found = np.empty(widest(graph), np.int64)
    per_flow = wanted.key.size // max(ends.leaf_to.size, 1)
    for path in range(wanted.key.size):
        at, end = wanted.first[path], wanted.first[path + 1]
        if at == end:
            continue
        flow = path // per_flow
        switch, leaf = ends.leaf_from[flow], ends.leaf_to[flow]
        channel[at] = ends.channel_in[flow]
        while switch != leaf:
            size = next_edges(way, switch, leaf, found)
            start = mix(wanted.key[path] ^ wanted.seed[switch]) % size
            edge = least_loaded(graph, found, size, start, traffic)
            traffic.load[graph.channel[edge]] += traffic.demand[flow] / per_flow
            at += 1
            channel[at] = graph.channel[edge]
            switch = graph.head[edge]
        channel[end - 1] = ends.channel_out[flow]


@inner_kernel
def least_loaded(graph: Graph, found: Longs, size: int, start: int, traffic: Traffic) -> int:
    """First edge, from `start` round, whose channel has the least load / capacity.

    Reference: tests/reference/walk.py, by_load.
    """
    best, least = -1, np.inf
    for turn in range(size):
        edge = found[(start + turn) % size]
        channel = graph.channel[edge]
        level = traffic.load[channel] / traffic.capacity[channel]
        if best < 0 or level < least:
            best, least = int(edge), level
    return best


@kernel
def walk_striped(way: Way, ends: Ends, wanted: Wanted, stripes: Stripes, channel: Ints) -> None:
    """Write each path; the destination alone decides, dealt over the edges like cards (D-mod-k).

    Climbing from its leaf, a flow takes edge ``number_to`` (the destination's number on its leaf)
    modulo their count; one level up, the number of the last edge down that serves the destination
    counts instead. Descending, it takes the lane that the same level chose when climbing.

    Source: E. Zahavi, "D-Mod-K routing providing non-blocking traffic for shift permutations on
    real life fat trees", CCIT report 776, 2010.

    Reference: tests/reference/walk.py, striped.
    """
    graph = way.graph
    found = np.empty(widest(graph), np.int64)
    for flow in range(ends.leaf_to.size):
        at, end = wanted.first[flow], wanted.first[flow + 1]
        if at == end:
            continue
        switch, leaf = ends.leaf_from[flow], ends.leaf_to[flow]
        channel[at] = ends.channel_in[flow]
        low = np.int64(stripes.number_to[flow])
        high = low
        lane_count = np.int64(1)
        while switch != leaf:
            size = next_edges(way, switch, leaf, found)
            is_up = graph.tier[graph.head[found[0]]] > graph.tier[switch]
            if is_up and graph.tier[switch] > graph.tier[leaf]:
                high = stripes.leaf_number[leaf] * lane_count + low % lane_count
            is_high = graph.tier[switch] > graph.tier[leaf] + (0 if is_up else 1)
            edge = found[(high if is_high else low) % size]
            lane_count = np.int64(stripes.lanes[edge])
            at += 1
            channel[at] = graph.channel[edge]
            switch = graph.head[edge]
        channel[end - 1] = ends.channel_out[flow]
