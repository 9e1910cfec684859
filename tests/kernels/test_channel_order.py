"""kernels/channel_order.py against tests/reference/channel_order.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.channel_order import find_circle
from gpufabric.routing.channels import Channels
from gpufabric.routing.deadlock import Turns, turns_of
from gpufabric.routing.shortest import shortest_paths
from gpufabric.routing.tables import forwarding_tables
from tests.reference import channel_order as reference
from tests.reference.walk import Edge
from tests.routing.random_fabrics import Plain, broken, graphs, trees


def as_pairs(plain: Plain, turns: Turns) -> set[reference.Turn]:
    before = np.repeat(np.arange(len(turns.first) - 1), np.diff(turns.first))
    return {
        (plain.edge(one), plain.edge(other))
        for one, other in zip(before.tolist(), turns.after.tolist(), strict=True)
    }


def leafs_by_network(channels: Channels) -> list[list[int]]:
    leafs = np.unique(channels.leaf_of[channels.endpoints])
    network = channels.network_of[leafs]
    return [leafs[network == number].tolist() for number in np.unique(network)]


@given(st.one_of(broken(graphs()), broken(trees())))
def test_turns_of_shortest_paths(channels: Channels) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    expected: set[reference.Turn] = set()
    for leafs in leafs_by_network(channels):
        expected |= reference.turns_of_shortest(plain.out, plain.tier, leafs, shortest.way.up_down)
    assert as_pairs(plain, turns_of(shortest)) == expected


@given(broken(graphs()), st.sampled_from(["minhop", "updn", "ftree"]), st.integers(0, 1))
def test_turns_of_tables(channels: Channels, engine: str, lmc: int) -> None:
    plain = Plain.of(channels)
    tables = forwarding_tables(channels, engine, lmc=lmc)  # type: ignore[arg-type]

    def follow(start: int, leaf: int, lid: int) -> list[Edge]:
        path: list[Edge] = []
        switch = start
        while switch != leaf:
            port = int(tables.port[switch, lid])
            edges = [edge for edge in plain.edges if edge[0] == switch]
            edge = next((edge for edge in edges if plain.port(edge) == port), None)
            if edge is None:
                break
            path.append(edge)
            switch = plain.out[edge[0]][edge[1]]
        return path

    expected: set[reference.Turn] = set()
    for leafs in leafs_by_network(channels):
        mine = [end for end in channels.endpoints.tolist() if channels.leaf_of[end] in leafs]
        targets = [
            (int(channels.leaf_of[end]), int(tables.lids.of_port[end]) + offset)
            for end in mine
            for offset in range(tables.lids.per_port)
        ]
        expected |= reference.turns_of_tables(follow, leafs, targets)
    assert as_pairs(plain, turns_of(tables)) == expected


@given(st.integers(1, 9), st.data())
def test_circles(size: int, data: st.DataObject) -> None:
    member = st.integers(0, size - 1)
    edges = sorted(data.draw(st.sets(st.tuples(member, member), max_size=20)))
    first = np.searchsorted([before for before, _ in edges], np.arange(size + 1)).astype(np.int64)
    after = np.array([following for _, following in edges], np.int32)
    circle = find_circle(first, after).tolist()
    assert bool(circle) == reference.has_circle(edges)
    graph: dict[object, set[object]] = {}
    for before, following in edges:
        graph.setdefault(before, set()).add(following)
    assert not circle or reference.is_circle(circle, graph)
    assert len(set(circle)) == len(circle)


def test_entries_taken_out_are_not_followed() -> None:
    first, after = np.array([0, 1, 2]), np.array([1, 0], np.int32)
    assert find_circle(first, after).tolist() == [0, 1]
    after[1] = -1
    assert find_circle(first, after).tolist() == []
