"""A fabric's traffic packet by packet: against the flow engine, closed forms, and itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.flow_problem import Predecessors
from gpufabric.sim.flow_routes import FlowRoutes
from gpufabric.sim.packet_config import ClassKind, PacketConfig, SwitchBuffer, TrafficClass
from gpufabric.sim.packet_fabric import QueuePairs, packet_problem, queue_pairs_of, wires_of
from gpufabric.sim.packet_run import run_packet_scenario, run_with_engine
from gpufabric.sim.profile import PROFILES, Profile
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import PatternOptions, Rows, Traffic
from gpufabric.sim.traffic_result import TrafficResult
from tests.sim.plants import (
    HALF_SMALL_LEAFS,
    RAIL,
    RAIL_ONLY,
    SMALL_LEAFS,
    TWO_PLANES,
    plant,
    traffic,
)

ECMP = Routing("ecmp")
ROCE = PROFILES["roce-default"]()
QUIET = Profile("quiet", PacketConfig(ecn=None))
SCENARIO = Scenario("test", routing=ECMP, engine="packet", profile=QUIET)


def routes_of(system: Plant, flows: Traffic, routing: Routing) -> FlowRoutes:
    router = routing.router(system.channels, 0)
    return FlowRoutes(flows, system.endpoints, system.inside, router, "fabric")


def run(system: Plant, flows: Traffic, scenario: Scenario = SCENARIO) -> TrafficResult:
    return run_packet_scenario(system, scenario, flows)


# Translation -------------------------------------------------------------------------------------


def test_cables_and_switches_are_those_of_the_fabric() -> None:
    system = plant(RAIL)
    links = system.fabric.links
    wires = wires_of(system.fabric, system.channels)
    assert wires.n_channels == 2 * len(links)
    lengths_m = np.nan_to_num(links.length_m.astype(float))
    assert wires.delay_ps.tolist() == np.repeat(np.round(lengths_m * 5000), 2).tolist()
    assert wires.gbps[::2].tolist() == links.gbps.tolist()
    assert np.array_equal(wires.tail, wires.head[wires.reverse])


@pytest.mark.parametrize("mode", ["ecmp", "wcmp", "flowlet", "static", "minhop", "updn", "ftree"])
@pytest.mark.parametrize("queue_pairs", [1, 3])
def test_queue_pairs_carry_all_bytes_over_paths_there_and_back(mode: str, queue_pairs: int) -> None:
    system = plant(HALF_SMALL_LEAFS, gpus=32)
    flows = traffic([0, 5, 9, 3], [8, 30, 9 + 8, 4], 1_000_003)
    routes = routes_of(system, flows, Routing(mode, queue_pairs))
    pairs = queue_pairs_of(routes, system.channels)
    sums = np.bincount(pairs.flow, pairs.size_bytes, minlength=4)
    assert sums.tolist() == [1_000_003] * 3 + [0]  # the last flow stays in its host
    assert np.bincount(pairs.flow, minlength=4).tolist() == [queue_pairs] * 3 + [0]
    assert np.ptp(pairs.size_bytes) <= 1
    problem = packet_problem(
        pairs,
        wires_of(system.fabric, system.channels),
        flows.start_s,
        system.switches,
        ROCE,
    )
    tail, head = problem.wires.tail, problem.wires.head
    for rows in (pairs.paths, pairs.back):
        for first, end in zip(rows.first[:-1], rows.first[1:], strict=True):
            row = rows.channel[first:end]
            assert tail[row[0]] == head[row[-1]] == -1
            assert head[row[:-1]].tolist() == tail[row[1:]].tolist()
    ends = pairs.paths.channel[pairs.paths.first[1:] - 1]
    assert (ends ^ 1).tolist() == pairs.back.channel[pairs.back.first[:-1]].tolist()


def test_paths_without_queue_pairs_are_those_of_the_flow_engine() -> None:
    system = plant(HALF_SMALL_LEAFS, gpus=32)
    flows = traffic(np.arange(32), (np.arange(32) + 11) % 32, 1e6)
    routes = routes_of(system, flows, ECMP)
    pairs = queue_pairs_of(routes, system.channels)
    routed = routes.find(system.channels).paths
    for at, flow in enumerate(pairs.flow):
        row = routed.channel[routed.first[flow] : routed.first[flow + 1]]
        links = row[row < system.channels.n_link_channels]
        mine = pairs.paths.channel[pairs.paths.first[at] : pairs.paths.first[at + 1]]
        assert mine.tolist() == links.tolist()


def test_several_nic_ports_share_a_flow() -> None:
    system = plant(TWO_PLANES)
    each = system.endpoints.ports.shape[1]
    assert each > 1
    pairs = queue_pairs_of(routes_of(system, traffic([0], [9], 1e6), ECMP), system.channels)
    assert len(pairs.flow) == each
    assert pairs.size_bytes.sum() == 1_000_000


def test_a_given_path_is_taken_and_its_reverse_brings_acks() -> None:
    system = plant(SMALL_LEAFS, gpus=32)
    flows = traffic([0], [24], 1e6)
    free = queue_pairs_of(routes_of(system, flows, Routing("ecmp")), system.channels)
    row = free.paths.channel.copy()
    given = replace(flows, routes=Rows(np.array([0, len(row)]), row))
    pairs: QueuePairs = queue_pairs_of(routes_of(system, given, ECMP), system.channels)
    assert pairs.paths.channel.tolist() == row.tolist()
    assert pairs.back.channel.tolist() == (row[::-1] ^ 1).tolist()
    result = run(system, given)
    assert result.status_counts == {"finished": 1}


# Times -------------------------------------------------------------------------------------------


def test_one_flow_takes_its_packets_its_cables_and_its_ends() -> None:
    system = plant(RAIL)
    result = run(system, traffic([0], [8], 1e6))
    # 244 packets of 4,096 B and one of 576 B, 82 B more each, 16 B once, at 400 Gb/s; the first
    # one once more before the leaf; 500 ns of switch and two ends of 600 ns.
    wire = 1_000_000 + 245 * 82 + 16
    first = 4096 + 82 + 16
    length_m = system.fabric.links.length_m.astype(float)
    cables_ps = np.nan_to_num(length_m)[[0, 8]].sum() * 5000
    ps = wire * 20 + first * 20 + cables_ps + 500_000 + 1_200_000
    assert result.fct_s[0] * 1e12 == pytest.approx(ps, abs=2)
    assert result.slowdown[0] == pytest.approx(1.0, abs=2e-5)
    assert result.packets is not None
    assert result.packets.result.ledger.is_balanced


@pytest.mark.parametrize("queue_pairs", [1, 4])
def test_long_flows_agree_with_the_flow_engine(queue_pairs: int) -> None:
    """Within 3 % beside the headers, 82 B with 4,096."""
    system = plant(HALF_SMALL_LEAFS, gpus=32)
    scenario = replace(
        SCENARIO,
        pattern="permutation",
        options=PatternOptions(size_bytes=4e6),
        routing=Routing("static", queue_pairs),
    )
    packets = run_with_engine(system, scenario)
    flows = run_with_engine(system, replace(scenario, engine="flow", profile=None))
    assert packets.completion_s is not None
    assert flows.completion_s is not None
    framed_s = flows.completion_s * (1 + 82 / 4096)
    assert packets.completion_s == pytest.approx(framed_s, rel=0.03)


@pytest.mark.parametrize("pattern", ["permutation", "incast", "ring", "all-to-all"])
def test_no_flow_beats_the_flow_alone_and_all_bytes_arrive(pattern: str) -> None:
    system = plant(HALF_SMALL_LEAFS, gpus=32)
    scenario = replace(
        SCENARIO,
        pattern=pattern,
        options=PatternOptions(size_bytes=100_000, fan_in=8),
        routing=Routing("ecmp", 2),
        profile=ROCE,
    )
    result = run_packet_scenario(system, scenario)
    assert result.is_finished.all()
    assert (result.slowdown >= 1 - 1e-9).all()
    assert result.left_bytes.sum() == 0
    assert 0 < (result.bandwidth_share or 0) <= 1
    assert (np.nan_to_num(result.utilisation()) <= 1 + 1e-9).all()


def test_flows_inside_a_host_go_as_the_flow_engine_says() -> None:
    system = plant(RAIL)
    flows = traffic([0, 0, 9], [1, 2, 10], 1e6)
    packets, as_flows = (
        run(system, flows),
        run_with_engine(system, replace(SCENARIO, engine="flow", profile=None), flows),
    )
    assert packets.fct_s.tolist() == pytest.approx(as_flows.fct_s.tolist(), rel=1e-12)
    assert packets.packets is not None
    assert packets.packets.summary(str)["queue_pairs"] == 0


def test_pxn_on_rails_hands_over_inside_the_host() -> None:
    system = plant(RAIL_ONLY)
    result = run(system, traffic([0], [9], 1e6))
    assert result.status_counts == {"finished": 1}
    direct = run(system, traffic([1], [9], 1e6))
    assert result.fct_s[0] - direct.fct_s[0] == pytest.approx(1e-6, rel=1e-3)  # NVLink


@pytest.mark.parametrize("mode", ["spray", "adaptive", "flowlet"])
def test_switches_choose_for_every_packet(mode: str) -> None:
    """Sprayed packets load all uplinks of a leaf alike, where a hash loads one."""
    system = plant(SMALL_LEAFS, gpus=32)
    flows = traffic([0], [24], 1e6)
    result = run(system, flows, replace(SCENARIO, routing=Routing(mode)))
    assert result.status_counts == {"finished": 1}
    load = result.carried_bytes[result.channels.tier == 2]
    by_hash = run(system, flows).carried_bytes[result.channels.tier == 2]
    assert np.count_nonzero(by_hash > 1e5) == 1
    if mode == "spray":
        assert np.count_nonzero(load > 1e4) > 1
    assert "go-back-N" in [one.choice for one in result.decisions]


# Failures and ends -------------------------------------------------------------------------------


def test_what_fails_before_the_run_is_routed_around() -> None:
    system = plant(RAIL)
    flows = traffic([0], [9], 1e6)
    result = run(system, flows, replace(SCENARIO, fail=("switch:spine-01",)))
    names = [result.channels.name(int(at)) for at in np.flatnonzero(result.carried_bytes)]
    assert result.status_counts == {"finished": 1}
    assert not any("spine-01" in name for name in names)


def test_a_gpu_without_network_is_unreachable() -> None:
    result = run(
        plant(RAIL), traffic([0, 1], [9, 9], 1e6), replace(SCENARIO, fail=("switch:leaf-su01-r1",))
    )
    assert result.status_counts["unreachable"] >= 1
    assert result.left_bytes.sum() >= 1e6


def test_a_link_that_is_down_for_a_while_costs_packets() -> None:
    config = replace(QUIET.config, transport=replace(QUIET.config.transport, timeout_us=500.0))
    scenario = replace(SCENARIO, profile=Profile("short", config))
    fails = replace(scenario, fail=("link:host-01[nic0]@0.00001..0.00002",))
    result = run(plant(RAIL), traffic([0], [8], 1e6), fails)
    assert result.status_counts == {"finished": 1}
    assert 32e-6 < result.fct_s[0] < 1100e-6  # 10 us of it without the link
    assert result.packets is not None
    assert result.packets.counters()["repeats"] > 0
    assert "without new paths" in [one.choice for one in result.decisions]


def test_until_cuts_the_run_off() -> None:
    result = run(plant(RAIL), traffic([0], [8], 1e6), replace(SCENARIO, until_s=10e-6))
    assert result.status_counts == {"running": 1}
    assert 0 < result.left_bytes[0] < 1e6


def test_a_queue_pair_in_error_is_a_failed_flow() -> None:
    """Eight to one on a lossy class with a tiny queue: the retries run out."""
    lossy = PacketConfig(
        classes=(TrafficClass(ClassKind.LOSSY),),
        cnp_class=0,
        ecn=None,
        buffer=SwitchBuffer(tail_bytes=4000),
    )
    config = replace(lossy, transport=replace(lossy.transport, timeout_us=20.0, retry_count=1))
    system = plant(RAIL)
    flows = traffic([8, 16, 24, 32, 40, 48, 56], [0] * 7, 1e6)
    result = run(system, flows, replace(SCENARIO, profile=Profile("lossy", config)))
    assert result.status_counts["failed"] >= 1
    assert result.packets is not None
    counters = result.packets.counters()
    assert counters["drops"] > 0
    assert counters["timeouts"] > 0
    assert counters["failed_queue_pairs"] == result.status_counts["failed"]
    summary = result.summary()
    assert summary["packets"]["drops_by_reason"]["buffer"] == counters["drops"]


def test_the_same_seed_gives_the_same_bytes() -> None:
    system = plant(RAIL)
    scenario = replace(
        SCENARIO, pattern="incast", options=PatternOptions(size_bytes=5e5), profile=ROCE
    )
    one, same, other = (
        run_packet_scenario(system, replace(scenario, seed=seed)).summary() for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_a_flow_waits_for_all_queue_pairs_of_another() -> None:
    waits = Predecessors(np.array([0, 0, 1]), np.array([0], np.int32))
    flows = replace(traffic([0, 8], [8, 16], 1e6), predecessors=waits)
    result = run(plant(RAIL), flows, replace(SCENARIO, routing=Routing("ecmp", 3)))
    assert result.status_counts == {"finished": 2}
    assert result.release_s[1] == pytest.approx(result.finish_s[0], rel=1e-9)
    assert result.fct_s[1] == pytest.approx(result.fct_s[0], rel=0.01)
    assert result.finish_s[1] > 1.9 * result.finish_s[0]


# Negative ----------------------------------------------------------------------------------------


def faults(scenario: Scenario, flows: Traffic) -> str:
    with pytest.raises(InputError) as caught:
        run_packet_scenario(plant(RAIL), scenario, flows)
    return str(caught.value)


def test_what_the_engine_cannot_do_is_told_at_once() -> None:
    flows = replace(
        traffic([0, 1], [8, 9], 1e6),
        weight=np.array([1.0, 2.0]),
        cap_gbps=np.array([1.0, np.inf]),
    )
    said = faults(replace(SCENARIO, cross_rail="two-step", fail=("random:0.1",)), flows)
    for words in ("--cross-rail: two-step", "cap_gbps", "weight"):
        assert words in said


def test_a_flow_cannot_wait_for_one_inside_a_host() -> None:
    waits = Predecessors(np.array([0, 0, 1]), np.array([0], np.int32))
    said = faults(SCENARIO, replace(traffic([0, 1], [1, 9], 1e6), predecessors=waits))
    assert "test: after: flow 0 stays inside a host" in said


def test_too_many_packets_are_refused() -> None:
    assert "Take fewer --bytes" in faults(SCENARIO, traffic(np.arange(56), np.arange(56) + 8, 4e11))


def test_flows_between_two_ports_may_be_messages_of_one_queue_pair() -> None:
    """Three flows one behind the other: each has its own time, all share one window."""
    system = plant(RAIL)
    flows = traffic(np.array([0, 0, 0, 8]), np.array([16, 16, 16, 24]), 1.0)
    flows = replace(flows, size_bytes=np.array([4e5, 1e5, 1e5, 1e5]))
    own = run(system, flows)
    one = run(system, flows, replace(SCENARIO, routing=Routing("ecmp", has_one_pair=True)))
    assert own.packets is not None
    assert one.packets is not None
    assert own.packets.summary(str)["queue_pairs"] == 4
    assert one.packets.summary(str)["queue_pairs"] == 2
    assert one.packets.result.flows.delivered_ps.size == 4
    # On queue pairs of their own the short ones take turns with the long one and overtake it.
    assert (own.finish_s[1:3] < own.finish_s[0]).all()
    assert (np.diff(one.finish_s[:3]) > 0).all()
    assert one.finish_s[2] == pytest.approx(own.finish_s[:3].max(), rel=0.01)
    assert one.finish_s[3] == own.finish_s[3]
