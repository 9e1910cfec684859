"""Flows divided over all shortest paths, switch by switch, written from the definition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.reference.distance import Out
from tests.reference.walk import Edge, Pick, mix, next_edges


def capacity_behind(
    out: Out,
    tier: Sequence[int],
    switch: int,
    leaf: int,
    up_down: bool,
    capacity: Mapping[Edge, float],
) -> float:
    """The most that a switch can send to a leaf if every switch fills all its next edges."""
    if switch == leaf:
        return math.inf
    return sum(
        edge_weight(out, tier, edge, leaf, up_down, capacity)
        for edge in next_edges(out, tier, switch, leaf, up_down)
    )


def edge_weight(
    out: Out,
    tier: Sequence[int],
    edge: Edge,
    leaf: int,
    up_down: bool,
    capacity: Mapping[Edge, float],
) -> float:
    """The lesser of an edge's capacity and its part of what its head can send on."""
    switch, head = edge[0], out[edge[0]][edge[1]]
    parallel = sum(capacity[switch, n] for n, other in enumerate(out[switch]) if other == head)
    behind = capacity_behind(out, tier, head, leaf, up_down, capacity)
    return min(capacity[edge], behind * capacity[edge] / parallel)


def weighted(
    out: Out,
    tier: Sequence[int],
    leaf: int,
    up_down: bool,
    capacity: Mapping[Edge, float],
    key: int,
    seeds: Sequence[int],
) -> Pick:
    """The edge under a mark that the hash sets on a line of edges as long as their weights."""

    def pick(switch: int, edges: list[Edge]) -> Edge:
        weights = [edge_weight(out, tier, edge, leaf, up_down, capacity) for edge in edges]
        mark = mix(key ^ seeds[switch]) / 2**32 * sum(weights)
        for edge, weight in zip(edges, weights, strict=True):
            mark -= weight
            if mark < 0:
                return edge
        return edges[-1]

    return pick


def spread(
    out: Out,
    tier: Sequence[int],
    start: int,
    leaf: int,
    up_down: bool,
    capacity: Mapping[Edge, float] | None = None,
    share: float = 1.0,
) -> dict[Edge, float]:
    """Part of a flow on each edge; every switch divides equally, or by the capacity behind."""
    if start == leaf:
        return {}
    edges = next_edges(out, tier, start, leaf, up_down)
    weights = [1.0] * len(edges)
    if capacity is not None:
        weights = [edge_weight(out, tier, edge, leaf, up_down, capacity) for edge in edges]
    parts: dict[Edge, float] = {}
    for edge, weight in zip(edges, weights, strict=True):
        part = share * weight / sum(weights)
        parts[edge] = parts.get(edge, 0.0) + part
        head = out[edge[0]][edge[1]]
        for other, more in spread(out, tier, head, leaf, up_down, capacity, part).items():
            parts[other] = parts.get(other, 0.0) + more
    return parts
