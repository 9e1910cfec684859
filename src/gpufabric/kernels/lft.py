"""Linear forwarding tables by OpenSM's rules for minhop and updn, and walks along any tables.

For every destination LID, every switch gets one port: of those on permitted paths, the one that
fewest destinations have got so far, and of equals the lowest. Destinations come leaf by leaf.

Source: OpenSM 3.3, ``osm_ucast_mgr.c``, ``osm_switch.c`` and ``osm_ucast_updn.c`` (read for the
rules; nothing is copied). ``tests/routing/test_opensm.py`` holds the tables against the program's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpufabric.kernels.graph import MAX_HOPS, Graph
from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.structs import Ints, Longs

__all__ = [
    "CIRCLE",
    "LOST",
    "Rules",
    "Subnet",
    "Tables",
    "Work",
    "count_steps",
    "edge_for",
    "rank_from",
    "route_hosts",
    "route_switches",
    "walk_tables",
]

Table = Any  # uint8[n_switches, n_lids], or uint16 for switches with more than 254 ports

FAR = 1_000_000
SELF_PORT = 0
LOST = -1  # a walk met an entry without a port
CIRCLE = -2  # a walk did not end


class Subnet(NamedTuple):
    """Switches and destinations of one subnet."""

    switch: Ints  # int32[n]: its switches, in order of row
    leaf: Ints  # int32[n_leafs]: switches with hosts, in the order they are routed
    first: Longs  # int64[n_leafs + 1]: destinations of leaf k are first[k] … first[k + 1] - 1
    lid: Ints  # int32[n_destinations]: base LID
    port: Ints  # int32[n_destinations]: port of the leaf that leads to it, from 1


class Rules(NamedTuple):
    """What the engine knows of switches and edges."""

    rank: Ints  # int32[n_switches]: 0 for roots, growing downward; empty for minhop
    reverse: Ints  # int32[n_edges]: the same link's other direction
    port: Ints  # int32[n_edges]: port of the edge on its switch, from 1


class Work(NamedTuple):
    """What tables are made from and written to."""

    graph: Graph
    rules: Rules
    load: Ints  # int32[n_edges]: destinations on each edge so far; is added to
    table: Table


class Tables(NamedTuple):
    """Forwarding tables, and which edge leaves which port."""

    port: Table  # port from 1, 0 for the switch itself
    edge: Ints  # int32[n_ports]: edge that leaves a port; -1 where none does
    first_port: Ints  # int32[n_switches]: first of its rows in `edge`
    n_ports: Ints  # int32[n_switches]


class Permitted(NamedTuple):
    """Edges on permitted paths to one switch; those of switch s begin at ``graph.first[s]``."""

    edge: Ints  # int32[n_edges]
    width: Ints  # int32[n_switches]: how many of switch s
    steps: Ints  # int32[n_switches]: fewest permitted steps; FAR where there are none
    by_edge: Ints  # int32[n_edges]: the same over each edge
    queue: Ints  # int32[n_switches]
    state: Ints  # int32[n_switches]: for updn, QUEUED and DOWNWARD


QUEUED = 1
DOWNWARD = 2


@kernel
def new_permitted(graph: Graph) -> Permitted:
    """Room for the permitted edges.

    Reference: tests/reference/lft.py, permitted_edges.
    """
    n_edges, n_switches = graph.channel.size, graph.tier.size
    return Permitted(
        np.empty(n_edges, np.int32),
        np.zeros(n_switches, np.int32),
        np.empty(n_switches, np.int32),
        np.empty(n_edges, np.int32),
        np.empty(n_switches, np.int32),
        np.zeros(n_switches, np.int32),
    )


@kernel
def rank_from(graph: Graph, roots: Ints, rank: Ints) -> None:
    """Write the steps from the nearest root to each switch; FAR where no root is near.

    Reference: tests/reference/lft.py, ranks.
    """
    rank[:] = FAR
    queue = np.empty(rank.size, np.int32)
    end = 0
    for root in roots:
        if rank[root] != 0:
            rank[root] = 0
            queue[end] = root
            end += 1
    at = 0
    while at < end:
        switch = queue[at]
        at += 1
        for edge in range(graph.first[switch], graph.first[switch + 1]):
            head = graph.head[edge]
            if rank[head] == FAR:
                rank[head] = rank[switch] + 1
                queue[end] = head
                end += 1


@kernel
def permit(work: Work, subnet: Subnet, target: int, permitted: Permitted) -> None:
    """Write the edges of every switch on permitted paths to switch `target`.

    Reference: tests/reference/lft.py, permitted_edges.
    """
    graph, rules = work.graph, work.rules
    for switch in subnet.switch:
        permitted.steps[switch] = FAR
        permitted.width[switch] = 0
        permitted.state[switch] = 0
        for edge in range(graph.first[switch], graph.first[switch + 1]):
            permitted.by_edge[edge] = FAR
    permitted.steps[target] = 0
    if rules.rank.size == 0:
        spread_steps(graph, rules, target, permitted)
    else:
        spread_up_down(graph, rules, target, permitted)
    for switch in subnet.switch:
        first = graph.first[switch]
        if switch == target or permitted.steps[switch] > MAX_HOPS:
            continue
        for edge in range(first, graph.first[switch + 1]):
            if permitted.by_edge[edge] == permitted.steps[switch]:
                permitted.edge[first + permitted.width[switch]] = edge
                permitted.width[switch] += 1


@inner_kernel
def spread_steps(graph: Graph, rules: Rules, target: int, permitted: Permitted) -> None:
    """Write the steps over each edge, from `target` outward.

    Reference: tests/reference/lft.py, permitted_edges.
    """
    permitted.queue[0] = target
    at, end = 0, 1
    while at < end:
        switch = permitted.queue[at]
        at += 1
        for edge in range(graph.first[switch], graph.first[switch + 1]):
            head = graph.head[edge]
            steps = permitted.steps[switch] + 1
            permitted.by_edge[rules.reverse[edge]] = steps
            if permitted.steps[head] == FAR:
                permitted.steps[head] = steps
                permitted.queue[end] = head
                end += 1


@inner_kernel
def goes_down(rules: Rules, switch: int, head: int) -> bool:
    """Tell whether a step leads away from the roots; among equal ranks, to the higher row.

    Two roots see each other above them.

    Reference: tests/reference/lft.py, goes_down.
    """
    if rules.rank[switch] != rules.rank[head]:
        return rules.rank[switch] < rules.rank[head]
    return rules.rank[switch] != 0 and switch < head


@inner_kernel
def spread_up_down(graph: Graph, rules: Rules, target: int, permitted: Permitted) -> None:
    """Write the steps over each edge, from `target` outward, never up after down.

    A switch keeps the direction in which it was last put in the queue, as OpenSM has it: in an
    irregular fabric this hides some legal paths.

    Reference: tests/reference/lft.py, permitted_edges.
    """
    queue, size = permitted.queue, permitted.queue.size
    queue[0] = target
    at, n_queued = 0, 1
    while n_queued > 0:
        switch = queue[at % size]
        at += 1
        n_queued -= 1
        is_down = permitted.state[switch] & DOWNWARD != 0
        permitted.state[switch] &= ~QUEUED
        for edge in range(graph.first[switch], graph.first[switch + 1]):
            head, back = graph.head[edge], rules.reverse[edge]
            next_down = goes_down(rules, switch, head)
            steps = permitted.steps[switch] + 1
            if (is_down and not next_down) or steps >= permitted.by_edge[back]:
                continue
            permitted.by_edge[back] = steps
            permitted.steps[head] = min(permitted.steps[head], steps)
            if permitted.state[head] & QUEUED == 0:
                permitted.state[head] = QUEUED | (DOWNWARD if next_down else 0)
                queue[(at + n_queued) % size] = head
                n_queued += 1


@kernel
def route_hosts(work: Work, subnet: Subnet, offsets: Longs, n_lids: int) -> None:
    """Write the port of every switch for some of the `n_lids` LIDs of every destination.

    `offsets` says which: 0, 1 ….

    Reference: tests/reference/lft.py, forwarding_tables.
    """
    permitted = new_permitted(work.graph)
    for offset in offsets:
        for at in range(subnet.leaf.size):
            leaf = subnet.leaf[at]
            permit(work, subnet, leaf, permitted)
            for target in range(subnet.first[at], subnet.first[at + 1]):
                base = np.int64(subnet.lid[target])
                for switch in subnet.switch:
                    if switch == leaf:
                        work.table[switch, base + offset] = subnet.port[target]
                        continue
                    edge = choose(work, permitted, switch, base, offset, n_lids)
                    if edge >= 0:
                        work.load[edge] += 1
                        work.table[switch, base + offset] = work.rules.port[edge]


@inner_kernel
def choose(
    work: Work, permitted: Permitted, switch: int, base: int, offset: int, n_lids: int
) -> int:
    """Edge for one more LID: the least loaded, the lowest port of equals; -1 without.

    With several LIDs a destination, the search begins above the port of the LID before, and edges
    to switches that no earlier LID goes through come first; failing these, of equally loaded ones,
    the edge to the switch that fewest earlier LIDs go through.

    Reference: tests/reference/lft.py, choose.
    """
    load, port = work.load, work.rules.port
    first, width = work.graph.first[switch], permitted.width[switch]
    start = 0
    if offset > 0:
        previous = work.table[switch, base + offset - 1]
        while start < width and port[permitted.edge[first + start]] <= previous:
            start += 1
    best, least, least_used = -1, FAR, FAR
    fresh, least_fresh = -1, FAR
    for turn in range(width):
        edge = int(permitted.edge[first + (start + turn) % width])
        used = 0
        if n_lids > 1:
            used = times_through(work, switch, base, offset, work.graph.head[edge])
            if used == 0 and load[edge] < least_fresh:
                fresh, least_fresh, least_used = edge, load[edge], 0
        if load[edge] < least:
            best, least = edge, load[edge]
            if used > 0:
                least_used = min(least_used, used)
        elif load[edge] == least and 0 < used < least_used:
            best, least_used = edge, used
    return fresh if fresh >= 0 else best


@inner_kernel
def times_through(work: Work, switch: int, base: int, offset: int, head: int) -> int:
    """How many earlier LIDs of a destination go from `switch` to `head`.

    Reference: tests/reference/lft.py, choose.
    """
    graph = work.graph
    used = 0
    for edge in range(graph.first[switch], graph.first[switch + 1]):
        if graph.head[edge] == head:
            for earlier in range(offset):
                if work.table[switch, base + earlier] == work.rules.port[edge]:
                    used += 1
    return used


@kernel
def route_switches(work: Work, subnet: Subnet, switch_lid: Ints) -> None:
    """Write the port of every switch for the LID of every switch; these count for no load.

    Reference: tests/reference/lft.py, forwarding_tables.
    """
    permitted = new_permitted(work.graph)
    for target in subnet.switch:
        permit(work, subnet, target, permitted)
        lid = np.int64(switch_lid[target])
        for switch in subnet.switch:
            if switch == target:
                work.table[switch, lid] = SELF_PORT
                continue
            edge = choose(work, permitted, switch, lid, 0, 1)
            if edge >= 0:
                work.table[switch, lid] = work.rules.port[edge]


@inner_kernel
def edge_for(tables: Tables, switch: int, lid: int) -> int:
    """Edge by which a switch forwards a LID; -1 where the entry leads to no other switch.

    Reference: tests/reference/lft.py, follow.
    """
    port = np.int64(tables.port[switch, lid])
    if 0 < port <= tables.n_ports[switch]:
        return int(tables.edge[tables.first_port[switch] + port - 1])
    return -1


@kernel
def count_steps(
    graph: Graph, tables: Tables, leaf_from: Ints, leaf_to: Ints, lid: Ints, steps: Ints
) -> None:
    """Write the steps of each path along the tables; LOST or CIRCLE where it fails.

    Reference: tests/reference/lft.py, follow.
    """
    for path in range(lid.size):
        switch, leaf = np.int64(leaf_from[path]), np.int64(leaf_to[path])
        count = 0
        while switch != leaf and count >= 0:
            edge = edge_for(tables, switch, lid[path])
            if edge < 0:
                count = LOST
            elif count == MAX_HOPS:
                count = CIRCLE
            else:
                switch = np.int64(graph.head[edge])
                count += 1
        steps[path] = count


@kernel
def walk_tables(
    graph: Graph, tables: Tables, leaf_from: Ints, lid: Ints, first: Longs, channel: Ints
) -> None:
    """Write the channels between switches of each path; its first and last entry are left out.

    Reference: tests/reference/lft.py, follow.
    """
    for path in range(lid.size):
        switch = np.int64(leaf_from[path])
        for at in range(first[path] + 1, first[path + 1] - 1):
            edge = edge_for(tables, switch, lid[path])
            channel[at] = graph.channel[edge]
            switch = np.int64(graph.head[edge])
