"""Kinds of messages, messages that wait for others, and congestion control by flow class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import After, Operation, PacketProblem, simulate_packets
from gpufabric.sim.packet_config import (
    ClassKind,
    Control,
    ControlKind,
    Dcqcn,
    Ecn,
    PacketConfig,
    SwitchBuffer,
    TrafficClass,
    Transport,
)
from gpufabric.sim.packet_control import Hpcc, Swift
from gpufabric.sim.packet_faults import BitErrors
from tests.reference.dcqcn_alone import mean_gbps
from tests.sim.packet_cases import US, incast, problem_of, star

DATA, RETH, AETH, ACK, REQUEST, GAP = 62, 16, 4, 66, 78, 20  # bytes
FORWARD_PS = 500_000
BARE = PacketConfig(ecn=None)
FLAT_PS = 2 * US + FORWARD_PS


def hop_ps(frame_bytes: int) -> int:
    """Two hops at 100 Gb/s, cables and switch."""
    return 2 * 80 * (frame_bytes + GAP) + FLAT_PS


def with_operation(problem: PacketProblem, *operations: Operation) -> PacketProblem:
    return replace(problem, operation=np.array(operations))


def test_a_send_has_no_address_in_its_first_packet() -> None:
    problem = problem_of(star(2), 2, [(0, 1, 1000)])
    write, send = (
        simulate_packets(with_operation(problem, one), BARE).flows.fct_ps[0]
        for one in (Operation.WRITE, Operation.SEND)
    )
    assert send == hop_ps(1000 + DATA)
    assert write == hop_ps(1000 + DATA + RETH)


def test_a_read_takes_the_request_and_the_data_and_has_no_acks() -> None:
    problem = with_operation(problem_of(star(2), 2, [(0, 1, 1000)]), Operation.READ)
    result = simulate_packets(problem, BARE)
    assert result.flows.fct_ps.tolist() == [hop_ps(REQUEST) + hop_ps(1000 + DATA + AETH)]
    assert result.flows.acked_ps.tolist() == result.flows.delivered_ps.tolist()
    assert result.ledger.sent.tolist() == [1, 0, 1, 0, 0]


def test_a_read_asks_again_for_what_was_lost() -> None:
    config = replace(
        BARE,
        classes=(TrafficClass(ClassKind.LOSSY), TrafficClass(ClassKind.LOSSY, is_strict=True)),
        ack_class=1,
        buffer=SwitchBuffer(tail_bytes=20_000, reserve_bytes=0),
        transport=Transport(timeout_us=200.0),
    )
    problem = with_operation(incast(4, 100 * 4096), *[Operation.READ] * 4)
    result = simulate_packets(problem, config)
    assert result.drops["buffer"] > 0
    assert (result.flows.fct_ps > 0).all()
    assert result.ledger.sent[1] == 0
    assert result.ledger.sent[0] == 400 + result.flows.repeats.sum()
    assert result.ledger.is_balanced


def test_a_read_needs_a_control_without_acks() -> None:
    problem = with_operation(problem_of(star(2), 2, [(0, 1, 1000)]), Operation.READ)
    config = replace(BARE, controls=(Control(ControlKind.HPCC),))
    with pytest.raises(InputError, match=r"operation\[0\]: a READ has no ACKs"):
        simulate_packets(problem, config)


@pytest.mark.parametrize("kind", [ControlKind.HPCC, ControlKind.SWIFT, ControlKind.RCCC])
def test_a_read_with_a_control_is_a_request_and_a_write_that_waits(kind: ControlKind) -> None:
    config = replace(BARE, controls=(Control(kind),))
    (alone_ps,) = simulate_packets(problem_of(star(2), 2, [(0, 1, 200_000)]), config).flows.fct_ps
    both = problem_of(star(2), 2, [(1, 0, 0), (0, 1, 200_000)])
    both = replace(
        with_operation(both, Operation.SEND, Operation.WRITE), after=After.from_lists([[], [0]])
    )
    request_ps, end_ps = simulate_packets(both, config).flows.delivered_ps.tolist()
    assert hop_ps(DATA) <= request_ps <= hop_ps(DATA + 42)  # HPCC's packets are longer
    # The ACK of the request leaves the same NIC first.
    assert request_ps + alone_ps <= end_ps <= request_ps + alone_ps + 80 * (ACK + 42 + GAP)


@pytest.mark.parametrize("until_acked", [False, True])
def test_a_chain_of_messages_takes_the_sum_of_their_times(until_acked: bool) -> None:
    n, delay_ps = 5, 30_000  # meanwhile the ACK has left
    chain = [(at, (at + 1) % n, 1000) for at in range(n)]
    after = After.from_lists(
        [[], *[[at] for at in range(n - 1)]], np.full(n, delay_ps), until_acked=until_acked
    )
    problem = replace(problem_of(star(n), n, chain), after=after)
    flows = simulate_packets(problem, BARE).flows
    each = hop_ps(1000 + DATA + RETH) + delay_ps + (hop_ps(ACK) if until_acked else 0)
    assert flows.started_ps.tolist() == [at * each for at in range(n)]
    assert flows.fct_ps.tolist() == [hop_ps(1000 + DATA + RETH)] * n


def test_a_message_waits_for_the_last_of_several_and_for_its_own_time() -> None:
    problem = problem_of(star(4), 4, [(0, 3, 1000), (1, 3, 500_000), (2, 3, 10), (3, 0, 10)])
    after = After.from_lists([[], [], [], [0, 1, 2]])
    flows = simulate_packets(replace(problem, after=after), BARE).flows
    assert flows.started_ps[3] == flows.delivered_ps[:3].max()
    late = replace(problem, after=after, start_ps=np.array([0, 0, 0, 900 * US]))
    assert simulate_packets(late, BARE).flows.started_ps[3] == 900 * US


def test_one_message_may_let_many_start() -> None:
    n = 3000
    pairs = [(0, 1, 10), *[(1 + at % 2, 0, 10) for at in range(n)]]
    problem = replace(problem_of(star(3), 3, pairs), after=After.from_lists([[], *[[0]] * n]))
    flows = simulate_packets(problem, BARE).flows
    assert (flows.started_ps[1:] == flows.delivered_ps[0]).all()
    assert (flows.fct_ps > 0).all()


def test_a_ring_of_waiting_messages_is_told() -> None:
    problem = problem_of(star(3), 3, [(0, 1, 10), (1, 2, 10), (2, 0, 10)])
    with pytest.raises(InputError, match="flow 1 waits for itself"):
        simulate_packets(replace(problem, after=After.from_lists([[], [2], [1]])), BARE)
    with pytest.raises(InputError, match=r"after\.flow\[0\]"):
        simulate_packets(replace(problem, after=After.from_lists([[], [7], []])), BARE)


def test_hpcc_fills_a_link_to_its_target_with_almost_no_queue() -> None:
    config = replace(BARE, controls=(Control(ControlKind.HPCC),))
    problem = incast(2, 6_000_000)
    result = simulate_packets(problem, config)
    goodput_gbps = problem.size_bytes.sum() * 8000 / result.flows.fct_ps.max()
    share = 4096 / (4096 + DATA + 42 + GAP)
    assert goodput_gbps / share == pytest.approx(95.0, rel=0.03)
    assert result.flows.fct_ps.min() == pytest.approx(result.flows.fct_ps.max(), rel=0.03)
    first_window = 2 * 7 * US * 100 / 8000  # both begin at line rate for a round trip
    assert result.ports.most_queued_bytes.max() < 1.5 * first_window
    assert result.ports.pauses.sum() == 0


@pytest.mark.parametrize(("n", "scale_us"), [(2, 0.0), (40, 10.0)])
def test_swift_keeps_the_delay_at_its_target_and_the_link_full(n: int, scale_us: float) -> None:
    """With 40 flows a window is less than a packet: a base round trip holds 19 packets."""
    swift = Swift(scale_us=scale_us)
    config = replace(BARE, controls=(Control(ControlKind.SWIFT, swift=swift),))
    problem = incast(n, 40_000_000 // n)
    result = simulate_packets(problem, config)
    goodput_gbps = problem.size_bytes.sum() * 8000 / result.flows.fct_ps.max()
    assert goodput_gbps * (4096 + DATA + GAP) / 4096 > 99.0
    assert result.flows.fct_ps.min() > 0.9 * result.flows.fct_ps.max()
    middle = simulate_packets(problem, config, until_ps=1500 * US)
    base_ps = hop_ps(4096 + DATA) + hop_ps(ACK)
    queued_ps = middle.ledger.in_flight_bytes[0] * 80 - base_ps
    assert queued_ps < (swift.target_trips - 1) * base_ps + scale_us * US
    assert result.ledger.dropped.sum() == 0


def test_small_windows_need_the_higher_target_to_be_equal() -> None:
    def least_part(scale_us: float) -> float:
        control = Control(ControlKind.SWIFT, swift=Swift(scale_us=scale_us))
        flows = simulate_packets(incast(40, 10**6), replace(BARE, controls=(control,))).flows
        return float(flows.fct_ps.min() / flows.fct_ps.max())

    assert least_part(0.0) < 0.5
    assert least_part(10.0) > 0.9


def fluid_fixed_point(n: int) -> tuple[float, float]:
    """Share of marked packets, and CNPs a flow in 50 us, of the fluid model at 40 Gb/s.

    Zhu et al., SIGCOMM 2015, equations 5 to 9 with all derivatives 0 and a fair share; marks come
    at random. The rate of increases by bytes and by the timer, the gap from rate to target that
    they leave, and cuts of alpha / 2 at each CNP must balance.
    """
    per_s = 40e9 / n / 8 / (1000 + DATA + GAP)
    window = 50e-6 * per_s
    n_bytes, n_timer, additive = 10_000_000 / (1000 + DATA), 55e-6 * per_s, 0.04 / 40 * n * per_s

    def excess(p: float) -> float:
        by_bytes = p / ((1 - p) ** -n_bytes - 1)
        by_timer = p / ((1 - p) ** -n_timer - 1)
        steps = (1 - p) ** (5 * n_bytes) * by_bytes + (1 - p) ** (5 * n_timer) * by_timer
        cnps, alpha = 1 - (1 - p) ** window, 1 - (1 - p) ** n_timer
        gap = additive * steps * window / cnps
        return gap / 2 * (by_bytes + by_timer) - alpha / 2 * cnps / window * per_s

    low, high = 1e-6, 0.05
    for _halving in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return low, 1 - (1 - low) ** window


@pytest.mark.parametrize("n", [2, 4])
def test_dcqcn_with_the_papers_parameters_comes_to_equal_shares_of_a_full_link(n: int) -> None:
    """Zhu et al., SIGCOMM 2015, section 5: the fixed point of the fluid model, at 40 Gb/s.

    Rates within 5 %. CNPs within 15 %, at most that more: they are what acts on a rate. The model
    takes the mean of everything, and so needs too few marks: one flow of the same algorithm, whose
    packets are marked at random with the share that the switch marks here, comes to the fair share
    within 5 %, and with the model's share to a fifth more.
    """
    dcqcn = Dcqcn(
        dce_tcp_g=1 / 256,
        dce_tcp_rtt_us=55.0,
        rate_reduce_monitor_period_us=1.0,
        rpg_time_reset_us=55.0,
        rpg_byte_reset=10_000_000,
        rpg_threshold=5,
        rpg_ai_rate_gbps=0.04,
        rpg_hai_rate_gbps=0.04,
        rpg_min_rate_gbps=0.01,
        clamp_tgt_rate=True,
    )
    ecn = Ecn(5e3 * 2.5, 200e3 * 2.5, 0.01)
    config = PacketConfig(dcqcn=dcqcn, ecn=ecn, transport=Transport(mtu_bytes=1000))
    problem = incast(n, 10**10, 40.0)
    first, last = (
        simulate_packets(problem, config, until_ps=until_us * US) for until_us in (60_000, 460_000)
    )
    gbps = (
        (last.flows.acked_packets - first.flows.acked_packets)
        * (1000 + DATA + GAP)
        * 8
        / 400e-3
        / 1e9
    )
    assert gbps.sum() == pytest.approx(40.0, rel=0.01)
    assert gbps == pytest.approx([40.0 / n] * n, rel=0.05)
    share, cnps = fluid_fixed_point(n)
    found = (last.flows.cnps - first.flows.cnps).mean() / (400e-3 / 50e-6)
    assert 1.0 < found / cnps < 1.15
    marked = last.ports.marked.sum() - first.ports.marked.sum()
    sent = last.ports.packets[1] - first.ports.packets[1]
    assert 1.2 < marked / sent / share < 1.5
    wire_bytes = 1000 + DATA + GAP
    assert mean_gbps(marked / sent, 40.0, 0.04, wire_bytes) == pytest.approx(40.0 / n, rel=0.05)
    assert mean_gbps(share, 40.0, 0.04, wire_bytes) == pytest.approx(1.2 * 40.0 / n, rel=0.02)


def test_each_flow_class_has_its_own_control() -> None:
    config = replace(
        BARE,
        ecn=Ecn(5e3, 5e4, 1.0),
        controls=(Control(), Control(ControlKind.DCQCN, dcqcn=Dcqcn(min_time_between_cnps_us=4))),
    )
    problem = replace(incast(2, 4_000_000), control=np.array([0, 1]))
    rates = simulate_packets(problem, config, until_ps=40 * US).flows.rate_gbps
    assert rates[0] == 100.0
    assert rates[1] < 90.0
    flows = simulate_packets(problem, config).flows
    assert flows.fct_ps[0] < flows.fct_ps[1]


def test_parameters_of_controls_are_checked_with_their_place() -> None:
    controls = (Control(), Control(ControlKind.HPCC, hpcc=Hpcc(target_utilization=0.0)))
    config = replace(BARE, controls=controls, dcqcn=Dcqcn())
    problem = replace(incast(2, 1000), control=np.array([0, 2]))
    with pytest.raises(InputError) as caught:
        simulate_packets(problem, config)
    for place in ("controls[1].hpcc.target_utilization", "dcqcn: it is set", "control[1]"):
        assert place in str(caught.value)


def lossy_transfer(loss: float, most_apart: int) -> tuple[float, int, int, int]:
    """Goodput as a part of the lossless, packets sent again, lost, and NAKs: 400 Gb/s, 40 us."""
    config = replace(BARE, transport=Transport(timeout_us=500.0, most_apart_packets=most_apart))
    problem = problem_of(star(2, 400.0, 10 * US), 2, [(0, 1, 40_000_000)])
    clean = simulate_packets(problem, config).flows.fct_ps[0]
    faults = (BitErrors(0, loss_per_packet=loss),)
    result = simulate_packets(replace(problem, faults=faults), config)
    assert result.ledger.is_balanced
    lost = int(result.ledger.dropped[0])
    naks = int(result.ledger.sent[2])
    return clean / result.flows.fct_ps[0], int(result.flows.repeats[0]), lost, naks


def test_go_back_n_collapses_at_a_loss_that_selective_repeat_does_not_notice() -> None:
    part, repeats, lost, gaps = lossy_transfer(0.001, 0)
    again, again_repeats, again_lost, _ = lossy_transfer(0.001, 2048)
    # A gap costs go-back-N what a round trip takes: 40 us of cable, two forwardings, ACK and data.
    under_way = (40 * US + 2 * FORWARD_PS) * 400 / 8000 / (4096 + DATA + GAP)
    assert 5 <= gaps <= lost
    assert repeats == pytest.approx(gaps * under_way, rel=0.05)
    assert part == pytest.approx(1 / (1 + gaps * under_way / (40_000_000 / 4096)), rel=0.05)
    assert again_repeats == again_lost
    assert part < 0.75
    assert again > 0.97


def test_a_lost_last_packet_is_repeated_after_the_time_out() -> None:
    config = replace(BARE, transport=Transport(timeout_us=40.0, most_apart_packets=64))
    problem = problem_of(star(2), 2, [(0, 1, 3 * 4096)])
    faults = (BitErrors(0, start_us=2.3, end_us=2.6, loss_per_packet=1.0),)  # the last arrives then
    result = simulate_packets(replace(problem, faults=faults), config)
    assert result.ledger.dropped[0] == 1
    assert result.flows.timeouts.tolist() == [1]
    assert result.flows.repeats.tolist() == [1]
    assert result.flows.acked_packets.tolist() == [3]
