"""kernels/lft.py against tests/reference/lft.py; test_opensm.py holds it against OpenSM itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.lft import rank_from
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.tables import ForwardingTables, forwarding_tables
from tests.reference import lft as reference
from tests.routing.random_fabrics import Plain, broken, graphs, trees
from tests.routing.small_fabrics import build

Hosts = list[tuple[int, list[tuple[int, int]]]]


def hosts_by_leaf(tables: ForwardingTables, leafs: list[int]) -> Hosts:
    """(base LID, port) of the hosts of each leaf, in port order."""
    channels, found = tables.channels, dict[int, list[tuple[int, int]]]()
    for end in channels.endpoints.tolist():
        far = channels.head_port[channels.leaving[end]]
        port = int(channels.fabric.ports.port[far]) + 1
        leaf = int(channels.leaf_of[end])
        found.setdefault(leaf, []).append((int(tables.lids.of_port[end]), port))
    return [(leaf, found[leaf]) for leaf in leafs if leaf in found]


def fullest_first(tables: ForwardingTables) -> Hosts:
    """Leafs of one network after the other, those with most hosts first."""
    network = tables.channels.network_of
    hosts = hosts_by_leaf(tables, list(range(len(network))))
    return sorted(hosts, key=lambda leaf: (network[leaf[0]], -len(leaf[1]), leaf[0]))


def as_dicts(tables: ForwardingTables) -> reference.Tables:
    return [
        {lid: int(port) for lid, port in enumerate(row) if port != tables.no_path}
        for row in tables.port
    ]


def expected(tables: ForwardingTables, roots: list[int] | None) -> reference.Tables:
    """The reference's tables, network by network: LIDs of different networks are the same."""
    plain = Plain.of(tables.channels)
    network = tables.channels.network_of
    merged: reference.Tables = [{} for _ in plain.out]
    hosts = fullest_first(tables)
    for number in range(len(tables.used)):
        mine = [leaf for leaf in hosts if network[leaf[0]] == number]
        out = [heads if network[s] == number else [] for s, heads in enumerate(plain.out)]
        ports = {edge: plain.port(edge) for edge in plain.edges}
        near = None if roots is None else [root for root in roots if network[root] == number]
        made = reference.forwarding_tables(
            out, mine, tables.lids.of_switch.tolist(), ports, tables.lids.per_port, near
        )
        for switch in np.flatnonzero(network == number).tolist():
            own = set(tables.lids.of_switch[network == number].tolist())
            hosted = {
                base + k
                for _, ends in mine
                for base, _ in ends
                for k in range(tables.lids.per_port)
            }
            merged[switch] = {k: v for k, v in made[switch].items() if k in own | hosted}
    return merged


FABRICS = st.one_of(broken(graphs()), broken(trees()))


@given(FABRICS, st.integers(0, 3))
def test_minhop(channels: Channels, lmc: int) -> None:
    tables = forwarding_tables(channels, "minhop", lmc=lmc)
    assert as_dicts(tables) == expected(tables, None)


@given(FABRICS, st.integers(0, 2), st.data())
def test_updn(channels: Channels, lmc: int, data: st.DataObject) -> None:
    network = channels.network_of
    roots = [
        data.draw(st.sampled_from(np.flatnonzero(network == number).tolist()))
        for number in range(int(network.max()) + 1)
    ]
    tables = forwarding_tables(channels, "updn", lmc=lmc, roots=roots)
    assert as_dicts(tables) == expected(tables, roots)


@given(FABRICS, st.data())
def test_ranks(channels: Channels, data: st.DataObject) -> None:
    plain = Plain.of(channels)
    roots = data.draw(st.lists(st.integers(0, len(plain.out) - 1), min_size=1, max_size=3))
    rank = np.empty(len(plain.out), np.int32)
    rank_from(channels.graph, np.array(roots, np.int32), rank)
    found = {s: int(steps) for s, steps in enumerate(rank) if steps < len(plain.out)}
    assert found == reference.ranks(plain.out, roots)


@given(FABRICS, st.sampled_from(["minhop", "updn"]), st.integers(0, 3), st.data())
def test_walks_along_tables(channels: Channels, engine: str, lmc: int, data: st.DataObject) -> None:
    plain = Plain.of(channels)
    tables = forwarding_tables(channels, engine, lmc=lmc)  # type: ignore[arg-type]
    heads = {(edge[0], plain.port(edge)): plain.out[edge[0]][edge[1]] for edge in plain.edges}
    ends = st.sampled_from(channels.endpoints.tolist())
    src, dst = data.draw(ends), data.draw(ends)
    offset = data.draw(st.integers(0, tables.lids.per_port - 1))
    paths = tables.walk(np.array([src]), np.array([dst]), np.array([offset]))
    start, leaf = int(channels.leaf_of[src]), int(channels.leaf_of[dst])
    lid = int(tables.lids.of_port[dst]) + offset
    same = channels.network_of[start] == channels.network_of[leaf]
    way = reference.follow(as_dicts(tables), heads, start, leaf, lid) if same else None
    switches = [int(channels.head[c]) for c in paths.row(0)[:-1]]
    assert switches == ([] if way is None or src == dst else way)


def test_a_table_that_goes_round_is_told() -> None:
    """Two switches that send a LID to each other, and one that does not know it."""
    channels = channels_of(build([1, 1, 1], [(0, 1), (1, 2)]))
    tables = forwarding_tables(channels, "minhop")
    lid = tables.lids.of_port[2]
    port = tables.port.copy()
    port[1, lid] = port[1, tables.lids.of_port[0]]
    looped = ForwardingTables(channels, "minhop", tables.used, tables.lids, port, tables.decisions)
    assert looped.walk(np.array([0]), np.array([2])).status.tolist() == [3]
    port[1, lid] = tables.no_path
    assert looped.walk(np.array([0]), np.array([2])).status.tolist() == [1]
