from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.flow import FlowProblem, Paths, simulate
from gpufabric.sim.packet import PacketProblem, simulate_packets
from gpufabric.sim.packet_config import (
    ClassKind,
    Dcqcn,
    Ecn,
    PacketConfig,
    SwitchBuffer,
    TrafficClass,
    Transport,
)
from gpufabric.sim.packet_headroom import headroom_for
from gpufabric.sim.packet_profiles import roce
from tests.sim.packet_cases import US, incast, problem_of, star

DATA, FIRST, ACK, GAP = 62, 16, 66, 20  # bytes
FORWARD_PS = 500_000
BARE = PacketConfig(ecn=None)
LOSSY = replace(
    BARE,
    classes=(TrafficClass(ClassKind.LOSSY), TrafficClass(ClassKind.LOSSY, is_strict=True)),
    ack_class=1,
)


def wire(payload: int, *, first: bool = False) -> int:
    return payload + DATA + GAP + (FIRST if first else 0)


def test_one_packet_takes_serialisation_propagation_and_forwarding_to_the_picosecond() -> None:
    problem = problem_of([(0, 2, 100.0, 3 * US), (1, 2, 400.0, US)], 2, [(0, 1, 1000)])
    flows = simulate_packets(problem, BARE).flows
    there = wire(1000, first=True) * (80 + 20) + 4 * US + FORWARD_PS
    back = (ACK + GAP) * (80 + 20) + 4 * US + FORWARD_PS
    assert flows.fct_ps.tolist() == [there]
    assert flows.acked_ps.tolist() == [there + back]


def test_a_speed_that_divides_no_byte_is_cut_to_whole_picoseconds() -> None:
    problem = problem_of([(0, 2, 106.25, 0), (1, 2, 106.25, 0)], 2, [(0, 1, 1000)])
    fct_ps = simulate_packets(problem, BARE).flows.fct_ps
    assert fct_ps.tolist() == [2 * int(1098 * 8000 / 106.25) + FORWARD_PS]


def test_a_message_is_cut_into_packets_that_follow_each_other() -> None:
    size = 10 * 4096 + 100
    problem = problem_of(star(2), 2, [(0, 1, size)])
    result = simulate_packets(problem, BARE)
    lengths = [wire(4096, first=True), *[wire(4096)] * 9, wire(100)]
    # The switch begins with the first packet, the longest, and never waits for another one.
    last = 80 * (lengths[0] + sum(lengths)) + 2 * US + FORWARD_PS
    assert result.flows.fct_ps.tolist() == [last]
    assert result.ledger.sent.tolist() == [11, 11, 0, 0, 0]
    assert result.hops.tolist() == [22, 22, 0, 0, 0]
    assert result.ports.wire_bytes[0] == sum(lengths)


@pytest.mark.parametrize("n", [2, 5, 16])
def test_incast_ends_after_all_bytes_at_line_rate_and_the_pipeline(n: int) -> None:
    size = 50 * 4096
    config = replace(BARE, buffer=SwitchBuffer(total_bytes=100_000_000, alpha_log2=0))
    result = simulate_packets(incast(n, size), config)
    each = wire(4096, first=True) + 49 * wire(4096)
    pipeline = 80 * wire(4096, first=True) + 2 * US + FORWARD_PS
    assert result.flows.fct_ps.max() == n * each * 80 + pipeline
    # Fair: the last packets of all leave one after the other.
    assert np.ptp(result.flows.fct_ps) == (n - 1) * wire(4096) * 80
    assert result.ports.pauses.sum() == 0


def test_two_messages_of_one_nic_take_turns() -> None:
    problem = problem_of(star(3), 3, [(0, 1, 40 * 4096), (0, 2, 40 * 4096)])
    fct_ps = simulate_packets(problem, BARE).flows.fct_ps
    # One has sent a packet and is in the row for its next when the other one starts.
    assert fct_ps[1] - fct_ps[0] == 2 * 80 * wire(4096)


def test_a_window_gives_one_window_for_each_round_trip() -> None:
    size, window = 64 * 4096, 4096
    config = replace(BARE, transport=Transport(window_bytes=window))
    result = simulate_packets(problem_of(star(2), 2, [(0, 1, size)]), config)
    there, back = 2 * 80 * wire(4096), 2 * 80 * (ACK + GAP)
    trip = there + back + 4 * US + 2 * FORWARD_PS
    assert result.flows.acked_ps.tolist() == [64 * trip + 2 * 80 * FIRST]


@pytest.mark.parametrize("delay_ps", [5_000, US, 10 * US])
@pytest.mark.parametrize("gbps", [25.0, 400.0])
def test_right_headroom_loses_nothing_and_short_headroom_does(gbps: float, delay_ps: int) -> None:
    buffer = SwitchBuffer(total_bytes=200_000_000, xoff_bytes=30_000, xon_offset_bytes=10_000)
    problem = incast(4, int(gbps * (delay_ps / 2000 + 500) + 500_000), gbps, delay_ps)

    def dropped(headroom_bytes: int | None) -> int:
        config = replace(BARE, buffer=replace(buffer, headroom_bytes=headroom_bytes))
        result = simulate_packets(problem, config)
        assert result.ledger.is_balanced
        assert result.ports.pauses.sum() > 0
        assert (result.flows.delivered_ps > 0).all()
        assert result.drops["headroom"] == result.ports.dropped.sum()
        return result.drops["headroom"]

    # What is under way when XOFF is decided and until it works, at line rate, in whole packets.
    # Meanwhile one packet of each input in four leaves.
    wait_ps = 2 * delay_ps + FORWARD_PS + 600_000 + 84 * 8000 / gbps
    under_way = wait_ps * gbps / 8000 * (4096 + DATA) / wire(4096)
    forwarding_ps = np.array([round(BARE.forwarding_ns * 1000)])
    most = int(headroom_for(np.array([gbps]), np.array([delay_ps]), forwarding_ps, BARE)[0])
    assert under_way < most < under_way + 6 * 4200
    assert dropped(None) == 0
    assert dropped(int(under_way) + 2 * 4200) == 0
    assert dropped(max(4200, int(under_way * 3 / 4) - 4200)) > 0


def test_a_lossy_class_drops_and_go_back_n_repeats_until_all_is_there() -> None:
    config = replace(LOSSY, buffer=SwitchBuffer(tail_bytes=20_000, reserve_bytes=0))
    result = simulate_packets(incast(4, 100 * 4096), config)
    assert result.drops["buffer"] > 0
    assert result.drops["headroom"] == 0
    assert (result.flows.acked_ps > 0).all()
    assert result.flows.repeats.sum() >= result.drops["buffer"]
    assert result.ledger.sent[2] > 0  # NAKs
    assert result.ledger.is_balanced
    assert result.ledger.sent[0] == 400 + result.flows.repeats.sum()
    assert result.ports.most_queued_bytes.max() <= 20_000
    assert result.ports.pauses.sum() == 0


def test_nothing_gets_through_and_the_queue_pair_fails_after_its_retries() -> None:
    config = replace(
        LOSSY,
        buffer=SwitchBuffer(tail_bytes=100, reserve_bytes=0),
        transport=Transport(timeout_us=50.0, retry_count=3),
    )
    result = simulate_packets(problem_of(star(2), 2, [(0, 1, 4096)]), config)
    assert result.flows.has_failed.tolist() == [True]
    assert result.flows.timeouts.tolist() == [4]
    assert result.flows.fct_ps.tolist() == [-1]
    assert result.end_ps == 4 * 50 * US
    assert result.ledger.dropped.tolist() == [4, 0, 0, 0, 0]


def test_a_lost_last_packet_is_sent_again_after_the_time_out() -> None:
    # Both last packets meet at a port that has room for one.
    config = replace(
        LOSSY,
        buffer=SwitchBuffer(tail_bytes=4100, reserve_bytes=0),
        transport=Transport(timeout_us=40.0),
    )
    result = simulate_packets(incast(3, 4000), config)
    assert result.ledger.dropped[0] >= 1
    assert result.flows.timeouts.sum() >= 1
    assert (result.flows.fct_ps > 0).all()
    assert result.flows.fct_ps.max() > 40 * US


def test_marks_begin_above_kmin_and_are_certain_above_kmax() -> None:
    problem = incast(2, 100 * 4096)
    depth = int(simulate_packets(problem, BARE).ports.most_queued_bytes[1].max())

    def marked(ecn: Ecn) -> int:
        return int(simulate_packets(problem, replace(BARE, ecn=ecn)).ports.marked.sum())

    assert marked(Ecn(depth, depth, 1.0)) == 0
    assert (
        marked(Ecn(0.0, 0.0, 0.0)) == 198
    )  # all but the first and the last, which leave an empty queue
    half = marked(Ecn(0.0, 2.0 * depth, 1.0))
    assert 30 < half < 70  # the mean depth is half the largest: one in four, and a bit


def test_dcqcn_halves_the_rate_at_the_first_check() -> None:
    config = replace(roce(), ecn=Ecn(0.0, 0.0, 1.0))
    result = simulate_packets(incast(2, 10_000_000), config, until_ps=12 * US)
    assert result.flows.cnps.tolist() == [1, 1]
    # Alpha is renewed each us, four times by the first check; a check comes after alpha.
    alpha = (1 - 5 / 1024) ** 4
    assert result.flows.rate_gbps == pytest.approx([100 * (1 - alpha / 2)] * 2)


def test_dcqcn_keeps_queues_short_where_pfc_alone_fills_them() -> None:
    problem = incast(4, 4_000_000)
    ecn, dcqcn = Ecn(20_000, 80_000, 0.2), Dcqcn(min_time_between_cnps_us=4.0)
    with_it = simulate_packets(problem, replace(roce(), ecn=ecn, dcqcn=dcqcn))
    without = simulate_packets(problem, replace(roce(with_dcqcn=False), ecn=ecn))
    assert without.ports.most_queued_bytes.max() > 2 * with_it.ports.most_queued_bytes.max()
    assert with_it.flows.cnps.sum() > 0
    assert with_it.ledger.is_balanced


def test_the_flow_engine_agrees_within_three_percent_on_long_flows() -> None:
    pairs = [(0, 1, 20e6), (0, 4, 20e6), (2, 5, 10e6), (3, 6, 30e6), (7, 6, 12e6)]
    problem = problem_of(star(8), 8, [(a, b, int(size)) for a, b, size in pairs])
    packet = simulate_packets(problem, BARE)
    share = 4096 / wire(4096)
    flow = simulate(
        FlowProblem(
            problem.wires.gbps * share,
            Paths(problem.paths.first, problem.paths.channel),
            problem.size_bytes.astype(float),
        )
    )
    assert packet.flows.fct_ps * 1e-12 == pytest.approx(flow.finish_s, rel=0.03)


def test_a_run_that_is_cut_short_balances_with_what_is_in_flight() -> None:
    result = simulate_packets(incast(3, 10_000_000), roce(), until_ps=50 * US)
    assert result.end_ps <= 50 * US
    assert result.ledger.in_flight[0] > 0
    assert result.ledger.is_balanced
    assert result.flows.fct_ps.tolist() == [-1, -1, -1]


def test_a_pause_that_holds_is_counted_to_the_end() -> None:
    buffer = SwitchBuffer(xoff_bytes=20_000, xon_offset_bytes=5_000)
    result = simulate_packets(incast(8, 2_000_000), replace(BARE, buffer=buffer), until_ps=300 * US)
    paused = result.ports.paused_ps[2::2, 0]
    assert (paused > 200 * US).all()
    assert (paused < 300 * US).all()
    assert result.ports.paused_ps[1::2].sum() == 0


def faults(problem: PacketProblem, config: PacketConfig) -> str:
    with pytest.raises(InputError) as caught:
        simulate_packets(problem, config)
    return str(caught.value)


def test_bad_input_is_told_with_its_place() -> None:
    good = incast(2, 1000)
    said = faults(replace(good, size_bytes=np.array([5, -1])), replace(BARE, data_class=7))
    assert "size_bytes[1]: the value is -1." in said
    assert "data_class: the value is 7." in said
    wires = good.wires
    said = faults(replace(good, wires=replace(wires, gbps=wires.gbps * 0)), BARE)
    assert "wires.gbps[0]" in said
    said = faults(replace(good, paths=Paths.from_lists([[2, 5], [0, 1]])), BARE)
    assert "back[0]" in said
    said = faults(replace(good, paths=Paths.from_lists([[3, 1], [4, 1]])), BARE)
    assert "paths[0]: the channels [3, 1] do not lead from a NIC to a NIC." in said
    said = faults(replace(good, wires=replace(wires, reverse=np.arange(6))), BARE)
    assert "wires.reverse[0]" in said
    said = faults(good, replace(BARE, buffer=SwitchBuffer(total_bytes=10_000)))
    assert "buffer.total_bytes: reserves and headrooms of switch 0 take" in said


def test_faults_of_parameters_are_told_together() -> None:
    config = PacketConfig(
        dcqcn=Dcqcn(rpg_time_reset_us=0.0), ecn=Ecn(pmax=2.0), transport=Transport(mtu_bytes=0)
    )
    said = faults(incast(2, 1000), config)
    for place in ("dcqcn.rpg_time_reset_us", "ecn.pmax", "transport.mtu_bytes"):
        assert place in said


def test_a_message_of_no_bytes_is_one_packet() -> None:
    result = simulate_packets(problem_of(star(2), 2, [(0, 1, 0)]), BARE)
    assert result.flows.fct_ps.tolist() == [2 * 80 * wire(0, first=True) + 2 * US + FORWARD_PS]


def test_no_flows_are_a_run_without_events() -> None:
    none = Paths.from_lists([])
    problem = PacketProblem(incast(1, 1).wires, none, none, np.empty(0, np.int64))
    result = simulate_packets(problem, BARE)
    assert (result.n_events, result.end_ps) == (0, 0)
