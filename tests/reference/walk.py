"""Paths of flows over shortest paths, written from the definition.

An edge is (switch, number): the number-th in the switch's port order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.reference.distance import Out, hops_from, moves

Edge = tuple[int, int]


def mix(word: int) -> int:
    """Two rounds of xor-shift and multiply on 32 bits, with the kernel's constants."""
    for factor, shift in ((0x2C1B3C6D, 15), (0x297A2D39, 12)):
        word ^= word >> shift
        word = word * factor % 2**32
    return word ^ word >> 15


def paths(
    out: Out, tier: Sequence[int], start: int, leaf: int, up_down: bool, descended: bool = False
) -> list[list[Edge]]:
    """All shortest legal paths between two switches, as lists of edges."""
    if start == leaf:
        return [[]]
    left = hops_from(out, tier, start, up_down, descended).get(leaf)
    found: list[list[Edge]] = []
    for number, head, after in moves(out, tier, start, descended, up_down):
        rest = hops_from(out, tier, head, up_down, after).get(leaf)
        if left is not None and rest == left - 1:
            tails = paths(out, tier, head, leaf, up_down, after)
            found += [[(start, number), *tail] for tail in tails]
    return found


def next_edges(out: Out, tier: Sequence[int], switch: int, leaf: int, up_down: bool) -> list[Edge]:
    """First edges of all shortest paths, in port order."""
    return sorted({path[0] for path in paths(out, tier, switch, leaf, up_down) if path})


Pick = Callable[[int, list[Edge]], Edge]


def walk(
    out: Out, tier: Sequence[int], start: int, leaf: int, up_down: bool, pick: Pick
) -> list[Edge]:
    """A path on which `pick` chooses each edge among the next ones."""
    path: list[Edge] = []
    switch = start
    while switch != leaf:
        edge = pick(switch, next_edges(out, tier, switch, leaf, up_down))
        path.append(edge)
        switch = out[edge[0]][edge[1]]
    return path


def by_hash(key: int, seeds: Sequence[int]) -> Pick:
    """The edge that the hash of a flow's key and the switch's seed points at."""
    return lambda switch, edges: edges[mix(key ^ seeds[switch]) % len(edges)]


def by_load(
    key: int, seeds: Sequence[int], load: dict[Edge, float], capacity: Mapping[Edge, float]
) -> Pick:
    """The edge with the least load / capacity; of equals the first from the hash's place on."""

    def pick(switch: int, edges: list[Edge]) -> Edge:
        start = mix(key ^ seeds[switch]) % len(edges)
        turned = edges[start:] + edges[:start]
        return min(turned, key=lambda edge: load.get(edge, 0.0) / capacity[edge])

    return pick


def striped(out: Out, tier: Sequence[int], leaf: int, number: int, leaf_number: int) -> Pick:
    """D-mod-k: dealt out by the destination's number, one level up by its last edge down."""
    lane_count = 1
    high = number

    def pick(switch: int, edges: list[Edge]) -> Edge:
        nonlocal lane_count, high
        above = tier[switch] - tier[leaf]
        climbs = tier[out[edges[0][0]][edges[0][1]]] > tier[switch]
        if climbs and above > 0:
            high = leaf_number * lane_count + number % lane_count
        uses_high = above > 0 if climbs else above > 1
        edge = edges[(high if uses_high else number) % len(edges)]
        head = out[switch][edge[1]]
        lane_count = sum(other == head for other in out[switch])
        return edge

    return pick
