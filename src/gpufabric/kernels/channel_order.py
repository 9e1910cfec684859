"""Which channels wait for which under a routing, and whether they can wait in a circle.

A packet that holds a channel's buffer waits for the next channel of its path. Without drops, a
circle of such waits can stop for ever. A *turn* is a channel with the one after it; turns are kept
as bits, one for every channel that leaves the switch which the first one leads to.

Source: W. Dally, C. Seitz, "Deadlock-free message routing in multiprocessor interconnection
networks", IEEE Transactions on Computers C-36(5), 1987.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpufabric.kernels.graph import Bytes, Graph, Networks, Way
from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.lft import Tables, edge_for
from gpufabric.kernels.structs import Ints, Longs
from gpufabric.kernels.walk import next_edges, widest

__all__ = ["find_circle", "list_turns", "mark_shortest", "mark_tables", "new_turns"]

LANES = 62  # bits of an int64 in use: the sign is left alone

UNSEEN, OPEN, DONE = 0, 1, 2
REMOVED = -1


@kernel
def new_turns(graph: Graph) -> Longs:
    """No turns: int64[n_edges, n_words].

    Reference: tests/reference/channel_order.py, turns_of_tables.
    """
    n_words = max(1, (widest(graph) + LANES - 1) // LANES)
    return np.zeros((graph.channel.size, n_words), np.int64)


@inner_kernel
def mark(graph: Graph, turns: Longs, before: int, after: int) -> None:
    """Note that `after` follows `before`.

    Reference: tests/reference/channel_order.py, turns_of_tables.
    """
    place = after - graph.first[graph.head[before]]
    turns[before, place // LANES] |= np.int64(1) << (place % LANES)


class Tracing(NamedTuple):
    """Turns being marked along forwarding tables."""

    graph: Graph
    tables: Tables
    seen_by: Longs  # int64[n_switches]: last target to which a path through the switch was marked
    turns: Longs


class Spreading(NamedTuple):
    """Turns being marked along shortest paths, target by target."""

    way: Way
    turns: Longs
    seen_by: Longs  # int64[n_switches]: last target to which the switch has traffic
    masks: Longs  # int64[n_switches, n_words]: its edges to that target
    trail: Longs  # int64[n_edges]: edges with traffic to the target at hand
    found: Longs  # int64[widest]


@kernel
def mark_tables(
    graph: Graph, tables: Tables, leafs: Ints, leaf_to: Ints, lid: Ints, turns: Longs
) -> None:
    """Mark the turns of all paths from `leafs` along the tables to every LID.

    Reference: tests/reference/channel_order.py, turns_of_tables.
    """
    tracing = Tracing(graph, tables, np.full(graph.tier.size, -1, np.int64), turns)
    for target in range(lid.size):
        for leaf in leafs:
            mark_path(tracing, target, leaf, leaf_to[target], lid[target])


@inner_kernel
def mark_path(tracing: Tracing, target: int, start: int, leaf_to: int, lid: int) -> None:
    """Mark the turns of one path, as far as a path to the same target has not gone before.

    Reference: tests/reference/channel_order.py, turns_of_tables.
    """
    switch, before = np.int64(start), np.int64(-1)
    while switch != leaf_to:
        edge = edge_for(tracing.tables, switch, lid)
        if before >= 0 and edge >= 0:
            mark(tracing.graph, tracing.turns, before, edge)
        if edge < 0 or tracing.seen_by[switch] == target:
            return
        tracing.seen_by[switch] = target
        before = edge
        switch = np.int64(tracing.graph.head[edge])


@kernel
def mark_shortest(way: Way, networks: Networks, is_source: Bytes, turns: Longs) -> None:
    """Mark the turns of all shortest paths from the sources to every target.

    Reference: tests/reference/channel_order.py, turns_of_shortest.
    """
    n_switches = way.graph.tier.size
    spreading = Spreading(
        way,
        turns,
        np.full(n_switches, -1, np.int64),
        np.zeros((n_switches, turns.shape[1]), np.int64),
        np.empty(way.graph.channel.size, np.int64),
        np.empty(widest(way.graph), np.int64),
    )
    for network in range(networks.first.size - 1):
        for at in range(networks.first_target[network], networks.first_target[network + 1]):
            mark_target(spreading, networks, network, at, is_source)


@inner_kernel
def mark_target(
    spreading: Spreading, networks: Networks, network: int, target: int, is_source: Bytes
) -> None:
    """Mark the turns of all shortest paths to one target, from the farthest switches on.

    Reference: tests/reference/channel_order.py, turns_of_shortest.
    """
    distances = spreading.way.distances
    leaf = networks.target[target]
    row = distances.row[leaf]
    farthest = 0
    for place in range(networks.first[network], networks.first[network + 1]):
        switch = networks.switch[place]
        farthest = max(farthest, distances.hops[row + distances.place[switch]])
        if is_source[switch] == 1:
            spreading.seen_by[switch] = target
    size = 0
    for hops in range(farthest, 0, -1):
        for place in range(networks.first[network], networks.first[network + 1]):
            switch = networks.switch[place]
            is_near = distances.hops[row + distances.place[switch]] == hops
            if is_near and spreading.seen_by[switch] == target:
                size = leave(spreading, switch, leaf, target, size)
    follow(spreading, leaf, size)


@inner_kernel
def leave(spreading: Spreading, switch: int, leaf: int, target: int, size: int) -> int:
    """Add the next edges of a switch to the trail and to its mask; return the trail's length.

    Reference: tests/reference/channel_order.py, turns_of_shortest.
    """
    graph, masks = spreading.way.graph, spreading.masks
    masks[switch] = 0
    for at in range(next_edges(spreading.way, switch, leaf, spreading.found)):
        edge = spreading.found[at]
        place = edge - graph.first[switch]
        masks[switch, place // LANES] |= np.int64(1) << (place % LANES)
        spreading.seen_by[graph.head[edge]] = target
        spreading.trail[size] = edge
        size += 1
    return size


@inner_kernel
def follow(spreading: Spreading, leaf: int, size: int) -> None:
    """Mark after each edge of the trail the next edges of the switch it leads to.

    Reference: tests/reference/channel_order.py, turns_of_shortest.
    """
    for at in range(size):
        edge = spreading.trail[at]
        head = spreading.way.graph.head[edge]
        if head != leaf:
            for word in range(spreading.turns.shape[1]):
                spreading.turns[edge, word] |= spreading.masks[head, word]


@kernel
def list_turns(graph: Graph, turns: Longs) -> tuple[Longs, Ints]:
    """Edges that follow each edge, in CSR form.

    Reference: tests/reference/channel_order.py, turns_of_tables.
    """
    n_edges = graph.channel.size
    first = np.zeros(n_edges + 1, np.int64)
    for edge in range(n_edges):
        count = 0
        for word in range(turns.shape[1]):
            bits = turns[edge, word]
            while bits != 0:
                bits &= bits - 1
                count += 1
        first[edge + 1] = first[edge] + count
    after = np.empty(first[-1], np.int32)
    for edge in range(n_edges):
        at = first[edge]
        start = graph.first[graph.head[edge]]
        for word in range(turns.shape[1]):
            bits = turns[edge, word]
            place = start + word * LANES
            while bits != 0:
                if bits & 1:
                    after[at] = place
                    at += 1
                bits >>= 1
                place += 1
    return first, after


@kernel
def find_circle(first: Longs, after: Ints) -> Ints:
    """One circle of the graph ``after``, its members in order; empty where there is none.

    Entries below 0 are left out. The search goes depth first, in order of number.

    Reference: tests/reference/channel_order.py, has_circle.
    """
    size = first.size - 1
    state = np.zeros(size, np.int8)
    stack = np.empty(size + 1, np.int32)
    cursor = first[:-1].copy()
    for root in range(size):
        if state[root] != UNSEEN:
            continue
        depth = 0
        stack[0] = root
        state[root] = OPEN
        while depth >= 0:
            member = stack[depth]
            if cursor[member] == first[member + 1]:
                state[member] = DONE
                depth -= 1
                continue
            following = after[cursor[member]]
            cursor[member] += 1
            if following == REMOVED or state[following] == DONE:
                continue
            if state[following] == OPEN:
                start = depth
                while stack[start] != following:
                    start -= 1
                return stack[start : depth + 1].copy()
            state[following] = OPEN
            depth += 1
            stack[depth] = following
    return np.empty(0, np.int32)
