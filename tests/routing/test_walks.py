"""What is known to be true of ways to route."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.entropy import Entropy, hash_seeds, udp_source_port
from gpufabric.routing.modes import ROUTING_MODES, Router, mode_meanings
from gpufabric.routing.paths import (
    REACHED,
    UNLINKED,
    UNREACHABLE,
    explicit_paths,
    room_for,
    status_words,
)
from gpufabric.routing.shortest import shortest_paths
from gpufabric.routing.walks import Flows, Walker
from tests.routing.small_fabrics import build, designed, ring, three_tiers, two_tiers


def permutation(channels: Channels, seed: int = 0) -> Flows:
    ends = channels.endpoints
    return Flows(ends, ends[np.random.default_rng(seed).permutation(len(ends))])


def utilisation(
    channels: Channels, router: Router, flows: Flows
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Load over capacity of every channel if each flow sends at 200 Gb/s."""
    up = channels.capacity_gbps > 0
    load = router.walk(flows).load(len(channels.capacity_gbps)) * 200.0
    return load[up] / channels.capacity_gbps[up]


@pytest.mark.parametrize("mode", ["spray", "adaptive"])
def test_a_sprayed_permutation_fills_no_channel_beyond_its_rate(mode: str) -> None:
    channels = channels_of(three_tiers(4, 4, 4, 4, 4))
    used = utilisation(channels, Router(channels, mode), permutation(channels))
    assert used.max() == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["static", "ftree"])
@pytest.mark.parametrize("fabric", [two_tiers(6, 4, 4), three_tiers(3, 3, 3, 3, 3)])
def test_static_paths_of_shifts_do_not_meet(fabric: object, mode: str) -> None:
    channels = channels_of(fabric)  # type: ignore[arg-type]
    router = Router(channels, mode)
    ends = channels.endpoints
    for shift in range(1, len(ends), 5):
        assert utilisation(channels, router, Flows(ends, np.roll(ends, -shift))).max() <= 1.0


def mean_of_fullest_bin(balls: int, bins: int) -> float:
    """Expected number of balls in the fullest of `bins`, each ball thrown evenly, exactly.

    The chance that no bin has more than k is balls! / bins^balls times the coefficient of
    x^balls in (sum of x^j / j! for j <= k)^bins.
    """
    mean = 0.0
    for most in range(balls):
        term = [Fraction(1, math.factorial(j)) for j in range(most + 1)]
        power = [Fraction(1)]
        for _ in range(bins):
            product = [Fraction(0)] * min(balls + 1, len(power) + most)
            for i, a in enumerate(power):
                for j, b in enumerate(term):
                    if i + j <= balls:
                        product[i + j] += a * b
            power = product
        whole = power[balls] if len(power) > balls else Fraction(0)
        mean += 1.0 - float(whole * math.factorial(balls) / Fraction(bins) ** balls)
    return mean


def test_hashed_flows_fill_uplinks_like_balls_in_bins() -> None:
    """Eight flows of each of 96 leafs, all to other leafs, on eight uplinks."""
    channels = channels_of(two_tiers(96, 8, 8, protocol="roce"))
    ends = channels.endpoints.reshape(96, 8)
    fullest = []
    for seed in range(4):
        flows = Flows(ends.ravel(), np.roll(ends, 1 + seed, axis=0).ravel())
        load = Router(channels, "ecmp", seed=seed).walk(flows).load(len(channels.capacity_gbps))
        inner = channels.graph.channel[: channels.graph.first[96]]
        fullest.append(load[inner].reshape(96, 8).max(axis=1))
    sample = np.concatenate(fullest)
    error = sample.std() / math.sqrt(len(sample))
    assert abs(sample.mean() - mean_of_fullest_bin(8, 8)) < 4 * error
    assert error < 0.05


def test_one_seed_for_all_tiers_leaves_upper_links_idle() -> None:
    """Polarisation: a spine of four gets only flows that hash alike, and picks one core of four."""
    channels = channels_of(three_tiers(4, 4, 4, 4, 8, protocol="roce"))
    ends = channels.endpoints
    flows = Flows(ends, np.roll(ends, len(ends) // 2))
    upper = np.flatnonzero((channels.head >= 0) & (channels.graph.tier[channels.head] == 3))
    used = {}
    for scope in ("switch", "tier", "fabric"):
        router = Router(channels, "ecmp", queue_pairs=8, seed_scope=scope)  # type: ignore[arg-type]
        load = router.walk(flows).load(len(channels.capacity_gbps))
        used[scope] = np.count_nonzero(load[upper]) / len(upper)
    assert used["fabric"] == 0.25
    assert used["switch"] == used["tier"] == 1.0


def test_more_queue_pairs_spread_a_flow() -> None:
    channels = channels_of(two_tiers(2, 8, 1, protocol="roce"))
    worst = [
        Router(channels, "ecmp", queue_pairs=pairs)
        .walk(Flows(np.array([0]), np.array([1])))
        .load(len(channels.capacity_gbps))[channels.graph.channel]
        .max()
        for pairs in (1, 4, 64)
    ]
    assert worst[0] == 1.0
    assert worst[0] > worst[1] > worst[2] > 1 / 8


def test_parts_of_a_flow_sum_to_one_at_both_hosts() -> None:
    channels = channels_of(three_tiers(2, 2, 3, 2, 2))
    flows = permutation(channels)
    moving = np.flatnonzero(flows.src_port != flows.dst_port)
    for mode in ROUTING_MODES:
        paths = Router(channels, mode, queue_pairs=3).walk(flows)
        fraction = np.ones(len(paths.channel)) if paths.fraction is None else paths.fraction
        for flow in moving.tolist():
            row = slice(paths.first[flow], paths.first[flow + 1])
            for port, channel_of in ((flows.src_port, 0), (flows.dst_port, 1)):
                own = channels.leaving[port[flow]] ^ channel_of
                assert fraction[row][paths.channel[row] == own].sum() == pytest.approx(1.0)


def test_a_lost_spine_costs_its_share() -> None:
    """One of four spines lost: the others carry 4/3 of what they did."""
    channels = channels_of(two_tiers(4, 4, 4))
    ends = channels.endpoints
    flows = Flows(ends, np.roll(ends, 4))
    assert utilisation(channels, Router(channels, "spray"), flows).max() == pytest.approx(1.0)
    broken = channels.with_failures(switches=[7])
    after = Router(channels, "spray").after(broken)
    assert utilisation(broken, after, flows).max() == pytest.approx(4 / 3)


def test_weights_follow_the_capacity_that_is_left() -> None:
    """Two of three lanes to one spine are lost: it gets a quarter of the flow, not a half."""
    channels = channels_of(two_tiers(2, 2, 1, lanes=3))
    lost = [int(c) // 2 for c in channels.graph.channel[:2]]
    broken = channels.with_failures(links=lost)
    flows = Flows(np.array([0]), np.array([1]))
    left = int(broken.graph.channel[0])
    for mode, part in (("spray", 1 / 4), ("adaptive", 1 / 4), ("wcmp", None)):
        load = Router(broken, mode, queue_pairs=512).walk(flows).load(len(broken.capacity_gbps))
        assert load[left] == pytest.approx(part or 1 / 4, abs=1e-9 if part else 0.06)


def test_weights_see_what_is_lost_two_steps_away() -> None:
    """The first of two spines has lost two of its three lanes to the destination's leaf."""
    channels = channels_of(two_tiers(2, 2, 1, lanes=3))
    down = channels.graph.channel[channels.graph.head == 1]
    broken = channels.with_failures(links=[int(c) // 2 for c in down[:2]])
    flows = Flows(np.array([0]), np.array([1]))
    first_spine = broken.graph.channel[: broken.graph.first[1]][:3]
    share = {
        mode: Router(broken, mode).walk(flows).load(len(broken.capacity_gbps))[first_spine].sum()
        for mode in ("spray", "adaptive")
    }
    assert share["spray"] == pytest.approx(1 / 2)
    assert share["adaptive"] == pytest.approx(1 / 4)


def test_flowlets_share_a_leafs_uplinks_evenly() -> None:
    channels = channels_of(two_tiers(4, 4, 4))
    ends = channels.endpoints
    load = (
        Router(channels, "flowlet")
        .walk(Flows(ends, np.roll(ends, 4)))
        .load(len(channels.capacity_gbps))
    )
    assert (load[channels.graph.channel[: channels.graph.first[4]]] == 1.0).all()


def test_rails_without_spines_do_not_meet() -> None:
    fabric = designed(64, "{fabric: roce, topology: rail-only}").fabric
    channels = channels_of(fabric)
    flows = Flows(np.array([0, 0, 3]), np.array([8, 9, 3]))
    for mode in ROUTING_MODES:
        paths = Router(channels, mode).walk(flows)
        assert paths.status.tolist() == [REACHED, UNREACHABLE, REACHED]
        assert np.diff(paths.first).tolist() == [2, 0, 0]


def test_flows_without_a_path_are_told() -> None:
    channels = channels_of(two_tiers(3, 2, 1)).with_failures(links=[0], switches=[1])
    flows = Flows(np.array([0, 2, 1, 2]), np.array([2, 0, 2, 2]))
    for mode in ROUTING_MODES:
        paths = Router(channels, mode, queue_pairs=2).walk(flows)
        assert paths.status.tolist() == [UNLINKED, UNLINKED, UNLINKED, REACHED]
        assert len(paths.channel) == 0
        assert paths.counts() == {0: 1, 1: 0, 2: 3, 3: 0}
    assert len(status_words()) == 4


def test_paths_do_not_climb_again_after_a_step_down() -> None:
    """Leaf 0 lost all spines but the first, leaf 1 the first: only a valley would join them."""
    channels = channels_of(two_tiers(3, 2, 1))
    owner = [
        (int(channels.tail[c]), int(channels.head[c])) for c in range(channels.n_link_channels)
    ]
    lost = [owner.index((0, 4)) // 2, owner.index((1, 3)) // 2]
    broken = channels.with_failures(links=lost)
    flows = Flows(np.array([0, 0]), np.array([1, 2]))
    shortest = shortest_paths(broken)
    assert shortest.way.up_down
    paths = Walker.of(shortest).by_hash(flows)
    assert paths.status.tolist() == [UNREACHABLE, REACHED]
    free = shortest_paths(broken, up_down=False)
    assert Walker.of(free).by_hash(flows).status.tolist() == [REACHED, REACHED]
    assert free.hops(np.array([0]), np.array([1])).tolist() == [4]


def test_next_channels_are_the_ecmp_group() -> None:
    shortest = shortest_paths(channels_of(two_tiers(2, 3, 1)))
    assert [shortest.channels.name(int(c)) for c in shortest.next_channels(0, 1)] == [
        "sw0[2] > sw2[1]",
        "sw0[3] > sw3[1]",
        "sw0[4] > sw4[1]",
    ]
    assert len(shortest.next_channels(1, 1)) == 0


def test_delay_is_that_of_the_longest_path() -> None:
    """Three switches of 100 ns and four cables of 2 m at 5 ns/m."""
    fabric = two_tiers(2, 4, 1)
    channels = channels_of(fabric, hop_latency_ns=np.full(6, 100.0))
    for mode in ROUTING_MODES:
        paths = Router(channels, mode, queue_pairs=2).walk(Flows(np.array([0]), np.array([1])))
        assert paths.latency_s.tolist() == pytest.approx([340e-9])


def test_the_source_port_of_two_queue_pairs() -> None:
    """0x1234 * 0x5678 = 0x06260060; folded to 20 bits 0x60060 ^ 0x62, to 14 bits | 0xC000."""
    product = 0x1234 * 0x5678
    label = (product ^ (product >> 20)) & 0xFFFFF
    expected = ((label & 0x3FFF) ^ (label >> 14)) | 0xC000
    found = udp_source_port(np.array([0x1234]), np.array([0x5678]))
    assert found.tolist() == [expected]
    assert udp_source_port(np.array([0x5678]), np.array([0x1234])).tolist() == [expected]


def test_queue_pairs_of_a_connection_have_keys_of_their_own() -> None:
    keys = Entropy(3, 16).keys(np.array([4, 4]), np.array([9, 9]), np.array([0, 1]))
    assert len(set(keys.tolist())) == 32
    again = Entropy(3, 16).keys(np.array([4, 4]), np.array([9, 9]), np.array([0, 1]))
    assert (keys == again).all()


def test_seeds_by_scope() -> None:
    fabric = three_tiers(2, 2, 2, 1, 1)
    assert len(set(hash_seeds(fabric, 1, "switch").tolist())) == len(fabric.switches)
    assert len(set(hash_seeds(fabric, 1, "tier").tolist())) == 3
    assert len(set(hash_seeds(fabric, 1, "fabric").tolist())) == 1


def test_explicit_paths_are_checked() -> None:
    channels = channels_of(ring(3))
    names = [channels.name(c) for c in range(12)]
    way = [names.index("h0[nic0] > sw0[1]"), names.index("sw0[2] > sw1[2]")]
    way.append(names.index("sw1[1] > h1[nic0]"))
    paths = explicit_paths(channels, [way, []])
    assert paths.row(0) == way
    assert paths.status.tolist() == [REACHED, REACHED]
    with pytest.raises(InputError) as caught:
        explicit_paths(channels.with_failures(links=[3]), [way, [way[0], way[2]], [99]])
    assert [str(fault) for fault in caught.value.faults] == [
        "path[0]: sw0[2] > sw1[2] is down.",
        "path[1]: sw1[1] > h1[nic0] does not begin where the channel before it ends.",
        "path[2]: there is no channel 99. Expected: 0 to 11.",
    ]


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        ([0, 1], [1], "flows: 2 sources and 1 destinations. Expected: as many of both."),
        ([0], [3], "dst_port[0]: 3 is no NIC port. Expected: 0 to 2."),
        ([-1], [0], "src_port[0]: -1 is no NIC port. Expected: 0 to 2."),
    ],
)
def test_wrong_ports_are_told(src: list[int], dst: list[int], message: str) -> None:
    channels = channels_of(ring(3))
    for mode in ("ecmp", "minhop"):
        with pytest.raises(InputError) as caught:
            Router(channels, mode).walk(Flows(np.array(src), np.array(dst)))
        assert str(caught.value) == message


def test_wrong_modes_and_counts_are_told() -> None:
    channels = channels_of(ring(3))
    with pytest.raises(InputError, match=r'"ecpm" is no way to route.*Did you mean "ecmp"'):
        Router(channels, "ecpm")
    flows = Flows(np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="queue_pairs: 0 queue pairs a flow"):
        Router(channels, "ecmp", queue_pairs=0).walk(flows)
    assert tuple(mode_meanings()) == ROUTING_MODES


def test_a_ring_is_routed_the_shorter_way() -> None:
    channels = channels_of(ring(5))
    flows = Flows(np.array([0, 0]), np.array([2, 3]))
    paths = Router(channels, "ecmp").walk(flows)
    assert np.diff(paths.first).tolist() == [4, 4]


def test_hosts_on_one_leaf_do_not_climb() -> None:
    channels = channels_of(build([2, 0], [(0, 1)], [1, 2]))
    flows = Flows(np.array([0]), np.array([1]))
    for mode in ROUTING_MODES:
        paths = Router(channels, mode).walk(flows)
        assert [channels.name(c) for c in paths.row(0)] == [
            "h0[nic0] > sw0[1]",
            "sw0[2] > h1[nic0]",
        ]


def test_a_router_tells_what_was_decided() -> None:
    channels = channels_of(ring(4))
    hashed, tables = Router(channels, "ecmp"), Router(channels, "updn")
    assert hashed.forwarding is hashed.shortest
    assert tables.forwarding is tables.tables
    assert hashed.decisions == channels.decisions
    assert [decision.topic for decision in tables.decisions[len(channels.decisions) :]] == [
        "roots of up/down routing"
    ]


def test_another_number_is_another_connection() -> None:
    channels = channels_of(two_tiers(2, 8, 1))
    port = np.zeros(64, np.int64)
    numbered = [
        Router(channels, "ecmp").walk(Flows(port, port + 1, number)).channel.tobytes()
        for number in (None, np.arange(64), np.arange(64) + 64)
    ]
    assert numbered[0] == numbered[1] != numbered[2]
    same = Router(channels, "ecmp").walk(Flows(port, port + 1, port))
    assert len(set(same.channel.tolist())) == 4


def test_steps_take_one_byte_for_each_leaf_and_switch() -> None:
    shortest = shortest_paths(channels_of(two_tiers(3, 2, 1)))
    assert shortest.n_bytes == 3 * 5


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(InputError, match="their paths have 2147483648 entries"):
        room_for(2**31)
    room_for(2**31 - 1)
