"""kernels/spread.py against tests/reference/spread.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.shortest import shortest_paths
from gpufabric.routing.walks import Flows, Walker
from tests.kernels.test_walk import FABRICS, all_flows, inner_edges
from tests.reference import spread as reference
from tests.reference import walk
from tests.routing.random_fabrics import Plain
from tests.routing.small_fabrics import two_tiers


@given(FABRICS, st.booleans(), st.data())
def test_parts_of_spread_flows(channels: Channels, is_weighted: bool, data: st.DataObject) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    flows = all_flows(channels, data)
    paths = Walker.of(shortest).spread(flows, is_weighted=is_weighted)
    assert paths.fraction is not None
    for flow in np.flatnonzero(np.diff(paths.first)).tolist():
        start, leaf = (
            int(channels.leaf_of[ports[flow]]) for ports in (flows.src_port, flows.dst_port)
        )
        capacity = plain.capacity if is_weighted else None
        expected = reference.spread(
            plain.out, plain.tier, start, leaf, shortest.way.up_down, capacity
        )
        part = paths.fraction[paths.first[flow] : paths.first[flow + 1]]
        assert part[0] == part[-1] == 1.0
        found = dict(zip(inner_edges(plain, paths, flow), part[1:-1].tolist(), strict=True))
        assert found == pytest.approx(expected)


@given(FABRICS, st.integers(0, 99), st.data())
def test_weighted_paths(channels: Channels, seed: int, data: st.DataObject) -> None:
    plain, shortest = Plain.of(channels), shortest_paths(channels)
    walker, flows = Walker.of(shortest, seed), all_flows(channels, data)
    paths = walker.by_weight(flows)
    keys = walker.entropy.keys(flows.src_port, flows.dst_port, flows.numbers)
    for flow in np.flatnonzero(np.diff(paths.first)).tolist():
        start, leaf = (
            int(channels.leaf_of[ports[flow]]) for ports in (flows.src_port, flows.dst_port)
        )
        pick = reference.weighted(
            plain.out,
            plain.tier,
            leaf,
            shortest.way.up_down,
            plain.capacity,
            int(keys[flow]),
            walker.seeds.tolist(),
        )
        assert inner_edges(plain, paths, flow) == walk.walk(
            plain.out, plain.tier, start, leaf, shortest.way.up_down, pick
        )


@given(FABRICS, st.booleans(), st.data())
def test_what_arrives_at_a_switch_leaves_it(
    channels: Channels, is_weighted: bool, data: st.DataObject
) -> None:
    flows = all_flows(channels, data)
    paths = Walker.of(shortest_paths(channels)).spread(flows, is_weighted=is_weighted)
    assert paths.fraction is not None
    for flow in np.flatnonzero(np.diff(paths.first)).tolist():
        entries = slice(paths.first[flow], paths.first[flow + 1])
        channel, part = paths.channel[entries], paths.fraction[entries]
        balance = np.zeros(len(channels.network_of) + 1)  # the last one stands for hosts
        np.add.at(balance, channels.head[channel], part)
        np.subtract.at(balance, channels.tail[channel], part)
        assert np.abs(balance).max() < 1e-12


def test_a_lost_link_gets_no_part_and_the_others_share_it() -> None:
    """Four spines, one of them cut off from the destination's leaf: three get a third each."""
    channels = channels_of(two_tiers(2, 4, 1))
    lost = int(np.flatnonzero(channels.head == 2)[-1] // 2)
    broken = channels.with_failures(links=[lost])
    paths = Walker.of(shortest_paths(broken)).spread(Flows(np.array([0]), np.array([1])))
    assert paths.fraction is not None
    assert sorted(paths.fraction.tolist()) == pytest.approx([1 / 3] * 6 + [1.0, 1.0])
