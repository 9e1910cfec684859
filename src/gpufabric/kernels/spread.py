"""Flows spread over all shortest paths: how much of each crosses which channel.

A switch divides what arrives over all next edges, equally or by the capacity that lies behind them.
That is what packet spraying, and adaptive routing in the long run, do at every switch alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpufabric.kernels.graph import MAX_HOPS, Ends, Graph, Networks, Way
from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.structs import Floats, Ints, Longs
from gpufabric.kernels.walk import Wanted, mix, next_edges, widest

__all__ = ["Behind", "Rows", "capacity_behind", "count_spread", "fill_spread", "walk_weighted"]


class Behind(NamedTuple):
    """What is needed to find the capacity between any switch and one destination leaf."""

    networks: Networks
    network: Ints  # int32[n_switches]: network of each switch
    capacity: Floats  # float64[n_channels] [Gb/s]; empty: what lies behind does not count
    bunch: Floats  # float64[n_edges]: capacity of all edges between the same two switches [Gb/s]


class Rows(NamedTuple):
    """Channels that flows cross, with the part of each."""

    first: Longs  # int64[n_flows + 1]
    channel: Ints  # int32[n_entries]
    fraction: Floats  # float64[n_entries] [1]


class Crew(NamedTuple):
    """Room to spread one flow."""

    share: Floats  # float64[n_switches]: part of the flow that arrives; 0 outside a spread
    queue: Longs  # int64[n_switches]: switches that the flow reaches, farthest first
    found: Longs  # int64[widest]
    room: Floats  # float64[n_switches]: capacity toward the leaf [Gb/s]; empty: shares are equal


@inner_kernel
def edge_weight(graph: Graph, behind: Behind, room: Floats, edge: int) -> float:
    """Capacity behind an edge; parallel edges share what lies behind their head [Gb/s].

    Reference: tests/reference/spread.py, edge_weight.
    """
    share = min(1.0, room[graph.head[edge]] / behind.bunch[edge])
    return behind.capacity[graph.channel[edge]] * share


@inner_kernel
def capacity_behind(way: Way, behind: Behind, leaf: int, found: Longs, room: Floats) -> None:
    """Write for each switch the most that it can send to `leaf` over shortest paths [Gb/s].

    Behind an edge lies the lesser of its capacity and its part of what its head can send on.

    Source: J. Zhou et al., "WCMP: Weighted Cost Multipathing for Improved Fairness in Data
    Centers", EuroSys 2014, section 3.

    Reference: tests/reference/spread.py, capacity_behind.
    """
    networks, network = behind.networks, behind.network[leaf]
    graph, distances = way.graph, way.distances
    row = distances.row[leaf]
    for hops in range(MAX_HOPS + 1):
        is_any = False
        for place in range(networks.first[network], networks.first[network + 1]):
            switch = networks.switch[place]
            if distances.hops[row + distances.place[switch]] != hops:
                continue
            is_any = True
            room[switch] = np.inf if hops == 0 else 0.0
            size = next_edges(way, switch, leaf, found)
            for at in range(size):
                room[switch] += edge_weight(graph, behind, room, found[at])
        if not is_any:
            return


@kernel
def walk_weighted(
    way: Way, ends: Ends, wanted: Wanted, behind: Behind, order: Longs, channel: Ints
) -> None:
    """Write each path; a switch takes the next edge by hash, with odds as the capacity behind it.

    `order` gives the paths sorted by destination leaf.

    Reference: tests/reference/spread.py, weighted.
    """
    graph = way.graph
    found = np.empty(widest(graph), np.int64)
    room = np.zeros(graph.tier.size)
    per_flow = wanted.key.size // max(ends.leaf_to.size, 1)
    known = np.int64(-1)
    for path in order:
        at, end = wanted.first[path], wanted.first[path + 1]
        if at == end:
            continue
        flow = path // per_flow
        switch, leaf = ends.leaf_from[flow], np.int64(ends.leaf_to[flow])
        if leaf != known:
            capacity_behind(way, behind, leaf, found, room)
            known = leaf
        channel[at] = ends.channel_in[flow]
        while switch != leaf:
            size = next_edges(way, switch, leaf, found)
            word = mix(wanted.key[path] ^ wanted.seed[switch])
            edge = weighted_pick(graph, behind, room, found, size, word)
            at += 1
            channel[at] = graph.channel[edge]
            switch = graph.head[edge]
        channel[end - 1] = ends.channel_out[flow]


@inner_kernel
def weighted_pick(
    graph: Graph, behind: Behind, room: Floats, found: Longs, size: int, word: int
) -> int:
    """Edge that a 32-bit hash points at on a line on which each edge is as long as its weight.

    Reference: tests/reference/spread.py, weighted.
    """
    total = 0.0
    for at in range(size):
        total += edge_weight(graph, behind, room, found[at])
    mark = word / 4294967296.0 * total
    for at in range(size):
        mark -= edge_weight(graph, behind, room, found[at])
        if mark < 0.0:
            return found[at]
    return found[size - 1]


@kernel
def new_crew(graph: Graph, n_rooms: int) -> Crew:
    """Room to spread one flow after the other.

    Reference: tests/reference/spread.py, spread.
    """
    n_switches = graph.tier.size
    return Crew(
        np.zeros(n_switches),
        np.empty(n_switches, np.int64),
        np.empty(widest(graph), np.int64),
        np.zeros(n_rooms),
    )


@kernel
def count_spread(way: Way, ends: Ends, is_wanted: Ints, first: Longs) -> None:
    """Write where the entries of each flow begin: one for every channel that it crosses.

    Reference: tests/reference/spread.py, spread.
    """
    crew = new_crew(way.graph, 0)
    known_from, known_to, size = np.int64(-1), np.int64(-1), np.int64(0)
    for flow in range(is_wanted.size):
        if is_wanted[flow] == 0:
            first[flow + 1] = first[flow]
            continue
        start, leaf = np.int64(ends.leaf_from[flow]), np.int64(ends.leaf_to[flow])
        if start != known_from or leaf != known_to:
            size = count_edges(way, crew, start, leaf)
            known_from, known_to = start, leaf
        first[flow + 1] = first[flow] + size + 2


@inner_kernel
def count_edges(way: Way, crew: Crew, start: int, leaf: int) -> int:
    """Edges on all shortest paths between two switches.

    Reference: tests/reference/spread.py, spread.
    """
    crew.queue[0] = start
    crew.share[start] = 1.0
    at, end, n_edges = 0, 1, 0
    while at < end:
        switch = crew.queue[at]
        at += 1
        crew.share[switch] = 0.0
        if switch == leaf:
            continue
        size = next_edges(way, switch, leaf, crew.found)
        n_edges += size
        for place in range(size):
            head = way.graph.head[crew.found[place]]
            if crew.share[head] == 0.0:
                crew.share[head] = 1.0
                crew.queue[end] = head
                end += 1
    return n_edges


@kernel
def fill_spread(way: Way, ends: Ends, behind: Behind, order: Longs, rows: Rows) -> None:
    """Write the channels that each flow crosses, with the part of it that crosses each.

    `order` gives the flows sorted by destination leaf.

    Reference: tests/reference/spread.py, spread.
    """
    is_weighted = behind.capacity.size > 0
    crew = new_crew(way.graph, way.graph.tier.size if is_weighted else 0)
    first, channel, fraction = rows.first, rows.channel, rows.fraction
    known = np.int64(-1)
    for flow in order:
        at = first[flow]
        if at == first[flow + 1]:
            continue
        leaf = np.int64(ends.leaf_to[flow])
        if is_weighted and leaf != known:
            capacity_behind(way, behind, leaf, crew.found, crew.room)
            known = leaf
        channel[at] = ends.channel_in[flow]
        fraction[at] = 1.0
        crew.queue[0] = ends.leaf_from[flow]
        crew.share[ends.leaf_from[flow]] = 1.0
        spread_flow(way, behind, crew, rows, leaf, at + 1)
        channel[first[flow + 1] - 1] = ends.channel_out[flow]
        fraction[first[flow + 1] - 1] = 1.0


@inner_kernel
def spread_flow(way: Way, behind: Behind, crew: Crew, rows: Rows, leaf: int, at: int) -> None:
    """Write the edges of one flow from `at` on; the queue holds its first switch.

    Switches leave the queue farthest first, so all that arrives at one has arrived.

    Reference: tests/reference/spread.py, spread.
    """
    graph = way.graph
    taken, end = 0, 1
    while taken < end:
        switch = crew.queue[taken]
        taken += 1
        share = crew.share[switch]
        crew.share[switch] = 0.0
        if switch == leaf:
            continue
        size = next_edges(way, switch, leaf, crew.found)
        for place in range(size):
            edge = crew.found[place]
            head = graph.head[edge]
            part = share / size
            if crew.room.size > 0:
                part = share * edge_weight(graph, behind, crew.room, edge) / crew.room[switch]
            rows.channel[at] = graph.channel[edge]
            rows.fraction[at] = part
            at += 1
            if crew.share[head] == 0.0:
                crew.queue[end] = head
                end += 1
            crew.share[head] += part
