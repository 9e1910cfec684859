from __future__ import annotations

import numpy as np
import pytest

from gpufabric.routing.channels import channels_of
from gpufabric.routing.latency import hop_latency
from tests.routing.small_fabrics import _catalog, build, designed, ring, two_tiers


def test_a_link_is_two_channels() -> None:
    channels = channels_of(two_tiers(2, 1, 1))
    assert channels.n_link_channels == 2 * len(channels.fabric.links) == 8
    assert [channels.name(c) for c in range(0, 8, 2)] == [
        "h0[nic0] > sw0[1]",
        "h1[nic0] > sw1[1]",
        "sw0[2] > sw2[1]",
        "sw1[2] > sw2[2]",
    ]
    assert channels.name(5) == "sw2[1] > sw0[2]"
    assert (channels.tail[1::2] == channels.head[::2]).all()


def test_edges_stand_in_port_order() -> None:
    channels = channels_of(designed(1024, "{fabric: roce, switch: sn5600}").fabric)
    graph = channels.graph
    assert (np.diff(channels.tail_port[graph.channel]) > 0).all()
    tail = channels.tail[graph.channel]
    assert (np.bincount(tail, minlength=len(graph.tier)) == np.diff(graph.first)).all()
    assert (channels.edge_of[graph.channel] == np.arange(len(graph.channel))).all()


def test_parallel_links_are_counted() -> None:
    channels = channels_of(build([1, 0], [(0, 1), (0, 1), (0, 1)]))
    assert channels.lanes.tolist() == [3] * 6


def test_planes_are_networks_of_their_own() -> None:
    fabric = designed(
        512, "{fabric: roce, switch: sn5610, topology: multi-plane, planes: 2}"
    ).fabric
    channels = channels_of(fabric)
    assert channels.network_of.max() == 1
    assert (channels.network_of == fabric.switches.plane).all()


def test_managers_are_endpoints() -> None:
    fabric = designed(64, "{fabric: infiniband, switch: qm9700, topology: rail}").fabric
    assert len(channels_of(fabric).endpoints) == 64 + 2 * 2


def test_what_is_bought_later_is_down_today() -> None:
    fabric = two_tiers(2, 1, 2)
    stage = np.zeros(len(fabric.links), np.int8)
    stage[[0, 4]] = 1  # a host, and the first leaf's uplink
    later = fabric.replace(links=fabric.links.replace(stage=stage))
    assert channels_of(later).leaf_of[0] == -1
    assert channels_of(later).network_of.max() == 1
    assert channels_of(later, stage=1).network_of.max() == 0


def test_failures_take_both_directions() -> None:
    channels = channels_of(ring(3))
    for broken in (
        channels.with_failures(links=[3]),
        channels.with_failures(channels=[6]),
        channels.with_failures(channels=[7]),
    ):
        assert np.flatnonzero(~broken.link_up).tolist() == [3]
        assert (broken.capacity_gbps[6:8] == 0).all()
        assert (broken.edge_of[6:8] == -1).all()
    assert channels.link_up.all()


def test_a_dead_switch_takes_its_links() -> None:
    channels = channels_of(ring(3)).with_failures(switches=[1])
    assert np.flatnonzero(~channels.link_up).tolist() == [1, 3, 4]
    assert channels.leaf_of[:3].tolist() == [0, -1, 2]


def test_a_slow_link() -> None:
    channels = channels_of(ring(3)).with_capacity([3], 50.0)
    assert channels.capacity_gbps[6:8].tolist() == [50.0, 50.0]
    assert channels.capacity_gbps[8] == 200.0
    assert not channels.with_capacity([3], 0.0).link_up[3]
    failed = channels.with_failures(links=[4]).with_capacity([4], 50.0)
    assert failed.capacity_gbps[8] == 0.0


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        (two_tiers(2, 2, 1), True),
        (ring(4), False),
        (build([1, 1, 0], [(0, 2), (1, 2), (0, 1)], [1, 1, 2]), False),
        (build([1, 1, 1], [(0, 2), (1, 2)], [1, 1, 2]), False),  # a host on the spine
    ],
)
def test_which_fabrics_are_tiered(fabric: object, expected: bool) -> None:
    assert channels_of(fabric).is_tiered is expected  # type: ignore[arg-type]


def test_delays_of_cables_and_switches() -> None:
    """2 m at 5 ns/m, and 190 ns where a switch is left."""
    fabric = two_tiers(2, 1, 1)
    channels = channels_of(fabric, hop_latency_ns=np.full(3, 190.0))
    assert channels.latency_ns[:6].tolist() == [10.0, 200.0, 10.0, 200.0, 200.0, 200.0]
    assert channels.decisions == ()


def test_unknown_delays_are_told() -> None:
    fabric = two_tiers(2, 1, 1)
    fabric = fabric.replace(links=fabric.links.replace(length_m=np.nan))
    decisions = channels_of(fabric).decisions
    assert [decision.choice for decision in decisions] == [
        "without the delay of 4 cables",
        "without the delay of switches",
    ]
    assert all(decision.is_warning for decision in decisions)


def test_the_catalogue_knows_delays() -> None:
    fabric = designed(64, "{fabric: infiniband, switch: qm9700}").fabric
    delay_ns, decisions = hop_latency(fabric, _catalog())
    assert set(delay_ns.tolist()) == {190.0}
    assert not decisions[0].is_warning
    assert decisions[0].source
    unknown = designed(64, "{fabric: roce, switch: th5-64x800g}").fabric
    delay_ns, decisions = hop_latency(unknown, _catalog())
    assert set(delay_ns.tolist()) == {500.0}
    assert decisions[0].is_warning
