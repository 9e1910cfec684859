"""Forwarding tables by OpenSM's minhop and updn, with lists and dicts.

Edges are (switch, number); the same link's other direction is found by counting parallel links:
the k-th edge from a to b belongs to the k-th edge from b to a.

Source: OpenSM 3.3, osm_ucast_mgr.c, osm_switch.c, osm_ucast_updn.c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from tests.reference.distance import Out, hops_to
from tests.reference.walk import Edge

Tables = list[dict[int, int]]


def reverse(out: Out, edge: Edge) -> Edge:
    """The other direction of a link whose parallel links are in the same order at both ends."""
    tail, number = edge
    head = out[tail][number]
    before = sum(other == head for other in out[tail][:number])
    places = [place for place, other in enumerate(out[head]) if other == tail]
    return head, places[before]


def ranks(out: Out, roots: Sequence[int]) -> dict[int, int]:
    """Steps from the nearest root."""
    rank = dict.fromkeys(roots, 0)
    queue = deque(rank)
    while queue:
        switch = queue.popleft()
        for head in out[switch]:
            if head not in rank:
                rank[head] = rank[switch] + 1
                queue.append(head)
    return rank


def goes_down(rank: Mapping[int, int], switch: int, head: int) -> bool:
    """Whether a step leads away from the roots; equal ranks go by row, and two roots climb."""
    if rank[switch] == rank[head] == 0:
        return False
    return (rank[switch], switch) < (rank[head], head)


def permitted_edges(out: Out, target: int, rank: Mapping[int, int] | None) -> dict[int, list[Edge]]:
    """Edges of each switch on permitted paths to a target, in port order."""
    if rank is None:
        steps = hops_to(out, [0] * len(out), target, False)
        over = {
            (switch, number): steps[head] + 1
            for switch in range(len(out))
            for number, head in enumerate(out[switch])
            if head in steps
        }
    else:
        steps, over = _up_down_steps(out, target, rank)
    return {
        switch: [
            (switch, number)
            for number in range(len(out[switch]))
            if over.get((switch, number)) == steps.get(switch, -1)
        ]
        for switch in range(len(out))
        if switch != target
    }


def _up_down_steps(
    out: Out, target: int, rank: Mapping[int, int]
) -> tuple[dict[int, int], dict[Edge, int]]:
    """Steps of each switch and over each edge, as OpenSM's search from the target finds them."""
    steps, over = {target: 0}, dict[Edge, int]()
    queue = deque([target])
    is_down = {target: False}
    waiting: set[int] = set()
    while queue:
        switch = queue.popleft()
        waiting.discard(switch)
        down_here = is_down[switch]
        for number, head in enumerate(out[switch]):
            falls = goes_down(rank, switch, head)
            back = reverse(out, (switch, number))
            count = steps[switch] + 1
            if (down_here and not falls) or count >= over.get(back, count + 1):
                continue
            over[back] = count
            steps[head] = min(count, steps.get(head, count))
            if head not in waiting:
                waiting.add(head)
                is_down[head] = falls
                queue.append(head)
    return steps, over


def choose(
    edges: Sequence[Edge],
    out: Out,
    load: Mapping[Edge, int],
    earlier: Sequence[Edge],
    n_lids: int,
) -> Edge:
    """The edge for one more LID, given the edges of the destination's earlier LIDs."""
    if earlier:
        above = [edge for edge in edges if edge > earlier[-1]]
        edges = above + [edge for edge in edges if edge <= earlier[-1]]

    def head(edge: Edge) -> int:
        return out[edge[0]][edge[1]]

    used = {edge: sum(head(other) == head(edge) for other in earlier) for edge in edges}
    fresh = [edge for edge in edges if used[edge] == 0]
    if n_lids > 1 and fresh:
        return min(fresh, key=lambda edge: load.get(edge, 0))
    best, least_used = edges[0], 10**6
    for number, edge in enumerate(edges):
        count = load.get(edge, 0)
        if number == 0 or count < load.get(best, 0):
            best = edge
            least_used = min(least_used, used[edge] or 10**6)
        elif count == load.get(best, 0) and 0 < used[edge] < least_used:
            best, least_used = edge, used[edge]
    return best


def forwarding_tables(
    out: Out,
    hosts: Sequence[tuple[int, Sequence[tuple[int, int]]]],
    switch_lid: Sequence[int],
    port: Mapping[Edge, int],
    n_lids: int = 1,
    roots: Sequence[int] | None = None,
) -> Tables:
    """Port by LID for every switch.

    `hosts` gives leafs in the order they are routed, each with (base LID, port) of its hosts.
    """
    rank = None if roots is None else ranks(out, roots)
    tables: Tables = [{} for _ in out]
    taken: dict[tuple[int, int], Edge] = {}
    load: dict[Edge, int] = {}
    for offset in range(n_lids):
        for leaf, ends in hosts:
            permitted = permitted_edges(out, leaf, rank)
            for base, leaf_port in ends:
                tables[leaf][base + offset] = leaf_port
                for switch, edges in permitted.items():
                    earlier = [
                        taken[switch, base + k]
                        for k in range(offset)
                        if (switch, base + k) in taken
                    ]
                    if edges:
                        edge = choose(edges, out, load, earlier, n_lids)
                        load[edge] = load.get(edge, 0) + 1
                        taken[switch, base + offset] = edge
                        tables[switch][base + offset] = port[edge]
        if offset == 0:
            for target in range(len(out)):
                tables[target][switch_lid[target]] = 0
                for switch, edges in permitted_edges(out, target, rank).items():
                    if edges:
                        edge = choose(edges, out, load, [], 1)
                        tables[switch][switch_lid[target]] = port[edge]
    return tables


def follow(
    tables: Tables, head_of_port: Mapping[tuple[int, int], int], start: int, leaf: int, lid: int
) -> list[int] | None:
    """Switches from `start` to `leaf` along the tables; None where they do not get there."""
    path = [start]
    while path[-1] != leaf:
        port = tables[path[-1]].get(lid)
        if port is None or (path[-1], port) not in head_of_port or len(path) > 64:
            return None
        path.append(head_of_port[path[-1], port])
    return path
