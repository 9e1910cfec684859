"""kernels/walk.py against tests/reference/walk.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.walk import ecmp_group, mix_all
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.entropy import Entropy, hash_seeds
from gpufabric.routing.paths import REACHED, WalkedPaths
from gpufabric.routing.shortest import shortest_paths
from gpufabric.routing.walks import Flows, Walker
from tests.reference import walk as reference
from tests.routing.random_fabrics import Plain, broken, graphs, trees
from tests.routing.small_fabrics import three_tiers

FABRICS = st.one_of(broken(graphs()), broken(trees()))


def all_flows(channels: Channels, data: st.DataObject) -> Flows:
    ends = channels.endpoints
    chosen = st.lists(st.sampled_from(ends.tolist()), min_size=4, max_size=4)
    return Flows(np.array(data.draw(chosen)), np.array(data.draw(chosen)))


def inner_edges(plain: Plain, paths: WalkedPaths, flow: int) -> list[reference.Edge]:
    """Edges of a path without its first and last channel."""
    edge_of = plain.channels.edge_of
    return [plain.edge(int(edge_of[channel])) for channel in paths.row(flow)[1:-1]]


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_hashes(words: list[int], key: int) -> None:
    keys = np.full(len(words), key, np.int64)
    mix_all(np.array(words, np.int64), keys)
    assert keys.tolist() == [reference.mix(reference.mix(word) ^ key) for word in words]


@given(FABRICS)
def test_next_edges(channels: Channels) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    for leaf in shortest.networks.target.tolist():
        for switch in range(len(plain.out)):
            expected = reference.next_edges(
                plain.out, plain.tier, switch, leaf, shortest.way.up_down
            )
            same = channels.network_of[switch] == channels.network_of[leaf]
            found = ecmp_group(shortest.way, switch, leaf).tolist() if same else []
            assert [plain.edge(number) for number in found] == expected


@given(FABRICS, st.integers(0, 99), st.sampled_from(["switch", "tier", "fabric"]), st.data())
def test_paths_by_hash(channels: Channels, seed: int, scope: str, data: st.DataObject) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    seeds = hash_seeds(channels.fabric, seed, scope)  # type: ignore[arg-type]
    flows = all_flows(channels, data)
    paths = Walker(shortest, seeds, Entropy(seed)).by_hash(flows)
    keys = Entropy(seed).keys(flows.src_port, flows.dst_port, flows.numbers)
    for flow in np.flatnonzero(np.diff(paths.first)).tolist():
        start, leaf = (
            int(channels.leaf_of[ports[flow]]) for ports in (flows.src_port, flows.dst_port)
        )
        pick = reference.by_hash(int(keys[flow]), seeds.tolist())
        assert inner_edges(plain, paths, flow) == reference.walk(
            plain.out, plain.tier, start, leaf, shortest.way.up_down, pick
        )


@given(FABRICS, st.integers(0, 99), st.data())
def test_paths_by_load(channels: Channels, seed: int, data: st.DataObject) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    walker, flows = Walker.of(shortest, seed), all_flows(channels, data)
    demand = np.array(data.draw(st.lists(st.floats(0.5, 4), min_size=4, max_size=4)))
    paths = walker.by_load(Flows(flows.src_port, flows.dst_port, None, demand))
    keys = walker.entropy.keys(flows.src_port, flows.dst_port, flows.numbers)
    load: dict[reference.Edge, float] = {}
    for flow in np.flatnonzero(np.diff(paths.first)).tolist():
        start, leaf = (
            int(channels.leaf_of[ports[flow]]) for ports in (flows.src_port, flows.dst_port)
        )
        pick = reference.by_load(int(keys[flow]), walker.seeds.tolist(), load, plain.capacity)
        edges = reference.walk(plain.out, plain.tier, start, leaf, shortest.way.up_down, pick)
        assert inner_edges(plain, paths, flow) == edges
        for edge in edges:
            load[edge] = load.get(edge, 0.0) + demand[flow]


@given(FABRICS, st.data())
def test_striped_paths(channels: Channels, data: st.DataObject) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    walker, flows = Walker.of(shortest), all_flows(channels, data)
    paths = walker.striped(flows)
    number, leaf_number = walker._numbers
    for flow in np.flatnonzero(np.diff(paths.first)).tolist():
        start, leaf = (
            int(channels.leaf_of[ports[flow]]) for ports in (flows.src_port, flows.dst_port)
        )
        pick = reference.striped(
            plain.out,
            plain.tier,
            leaf,
            int(number[flows.dst_port[flow]]),
            int(leaf_number[leaf]),
        )
        assert inner_edges(plain, paths, flow) == reference.walk(
            plain.out, plain.tier, start, leaf, shortest.way.up_down, pick
        )


@given(FABRICS, st.sampled_from(["by_hash", "by_weight", "by_load", "striped"]), st.data())
def test_every_path_is_a_shortest_one(channels: Channels, way: str, data: st.DataObject) -> None:
    shortest = shortest_paths(channels)
    flows = all_flows(channels, data)
    paths = getattr(Walker.of(shortest), way)(flows)
    hops = shortest.hops(channels.leaf_of[flows.src_port], channels.leaf_of[flows.dst_port])
    for flow in range(len(flows)):
        row = paths.row(flow)
        if paths.status[flow] != REACHED or flows.src_port[flow] == flows.dst_port[flow]:
            assert row == []
            continue
        assert len(row) == hops[flow] + 2
        assert len(set(row)) == len(row)
        assert channels.tail_port[row[0]] == flows.src_port[flow]
        assert channels.head_port[row[-1]] == flows.dst_port[flow]
        owner = channels.switch_of_port
        assert [int(owner[channels.head_port[c]]) for c in row[:-1]] == [
            int(owner[channels.tail_port[c]]) for c in row[1:]
        ]


@pytest.mark.parametrize("way", ["by_hash", "by_weight", "by_load", "spread"])
def test_the_same_seed_gives_the_same_paths(way: str) -> None:
    shortest = shortest_paths(channels_of(three_tiers(2, 3, 3, 2, 3)))
    ends = shortest.channels.endpoints
    flows = Flows(ends, ends[::-1].copy())
    one, other, third = (
        getattr(Walker.of(shortest, seed, 2), way)(flows).channel.tobytes() for seed in (7, 7, 8)
    )
    assert one == other
    assert way == "spread" or third != one
