from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketProblem, PacketResult, simulate_packets
from gpufabric.sim.packet_config import PacketConfig, SwitchBuffer, Transport
from gpufabric.sim.packet_faults import (
    BitErrors,
    LinkDown,
    LinkFlap,
    PacketFault,
    PauseStorm,
    SlowHost,
    SlowLink,
    SmallMtu,
)
from tests.reference.packet_ends import Engine
from tests.sim.packet_cases import US, incast, problem_of, star
from tests.sim.test_packet_parity import TRACE, assert_equal, configs, problems, with_pool

BARE = PacketConfig(ecn=None)
UNTIL_PS = 120 * US  # the faults lie before 60 us
FRAME, SHORT = 4096 + 62, 86  # bytes of a full frame; of an ACK on the wire


def faults_of(draw: Any, problem: PacketProblem) -> tuple[PacketFault, ...]:
    """At most one fault of each kind, at any place that it can have."""
    wires = problem.wires
    any_channel = st.integers(0, wires.n_channels - 1)
    nics = st.sampled_from(np.flatnonzero(wires.tail < 0).tolist())
    start, length = st.sampled_from([0.0, 1.5, 7.25, 20.0]), st.sampled_from([3.0, 30.5, math.inf])

    def span(shortest: float = 0.0) -> dict[str, float]:
        begin = draw(start)
        return {"start_us": begin, "end_us": begin + max(shortest, draw(length))}

    n_classes = 1
    makers: dict[str, Callable[[], PacketFault]] = {
        "storm": lambda: PauseStorm(
            draw(nics), **span(), traffic_class=n_classes - 1, every_us=draw(st.floats(0.5, 9))
        ),
        "errors": lambda: BitErrors(
            draw(any_channel),
            **span(),
            bit_error_rate=draw(st.sampled_from([0.0, 1e-5, 1e-4])),
            loss_per_packet=draw(st.sampled_from([0.0, 0.05, 0.5])),
        ),
        "down": lambda: LinkDown(draw(any_channel), **span()),
        "flap": lambda: LinkFlap(draw(any_channel), draw(start), 40.0, 1.75, draw(start) + 0.5),
        "slow": lambda: SlowLink(draw(any_channel), draw(st.sampled_from([10.0, 25.0])), **span()),
        "mtu": lambda: SmallMtu(draw(any_channel), draw(st.sampled_from([64, 1062])), **span()),
        "host": lambda: SlowHost(
            int(wires.reverse[draw(nics)]),
            draw(st.sampled_from([1.0, 30.0])),
            **span(),
            buffer_bytes=draw(st.sampled_from([8_000, 40_000])),
            xoff_bytes=5_000,
            xon_bytes=2_000,
        ),
    }
    names = draw(st.lists(st.sampled_from(sorted(makers)), min_size=1, max_size=4, unique=True))
    if {"down", "flap"} <= set(names):
        names.remove("flap")
    return tuple(makers[name]() for name in names)


def assert_faults_equal(engine: Engine, result: PacketResult) -> None:
    assert_equal(engine, result)
    for reason in ("link", "error", "mtu", "host"):
        assert result.drops[reason] == engine.faults.lost[reason]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), configs(), st.sampled_from([20_000, 100_000]), st.data())
def test_kernel_with_faults_equals_reference_event_for_event(
    problem: PacketProblem, config: PacketConfig, pool_bytes: int, data: Any
) -> None:
    problem = replace(problem, faults=faults_of(data.draw, problem))
    config = with_pool(problem, config, pool_bytes)
    engine = Engine(problem, config)
    engine.run(UNTIL_PS)
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, trace_rows=TRACE)
    assert_faults_equal(engine, result)


def with_faults(problem: PacketProblem, *faults: PacketFault) -> PacketProblem:
    return replace(problem, faults=faults)


def test_a_storm_stops_what_goes_to_the_nic_until_its_end() -> None:
    size = 100 * 4096
    problem = incast(2, size)
    storm = PauseStorm(channel=0, start_us=10.0, end_us=510.0)
    usual = simulate_packets(problem, BARE)
    result = simulate_packets(with_faults(problem, storm), BARE)
    reaction_ps = 84 * 80 + US + 600_000
    longer = result.flows.fct_ps.max() - usual.flows.fct_ps.max()
    # The frame that was being sent when XOFF came is finished.
    assert 500 * US - 2 * FRAME * 80 < longer <= 500 * US
    assert result.ports.paused_ps[1, 0] == 500 * US
    assert result.ledger.received[4] >= 6  # five XOFF and XON of the storm
    assert result.ledger.is_balanced
    for_ever = simulate_packets(
        with_faults(problem, replace(storm, end_us=math.inf)),
        replace(BARE, buffer=SwitchBuffer(xoff_bytes=100_000)),
        until_ps=2000 * US,
    )
    assert (for_ever.flows.fct_ps == -1).all()
    assert for_ever.ports.paused_ps[1, 0] == for_ever.end_ps - 10 * US - reaction_ps
    # The storm has spread to those who send to it.
    assert (for_ever.ports.paused_ps[[2, 4], 0] > 0).all()


def test_bit_errors_lose_by_length() -> None:
    rate = 2e-6
    problem = problem_of(star(2), 2, [(0, 1, 20_000 * 4096)])
    config = replace(BARE, transport=Transport(timeout_us=500.0))
    fault = BitErrors(channel=0, bit_error_rate=rate)
    result = simulate_packets(with_faults(problem, fault), config)
    chance = 1 - (1 - rate) ** (8 * (4096 + 82))
    sent = int(result.ledger.sent[0])
    spread = math.sqrt(sent * chance * (1 - chance))
    assert result.drops["error"] == result.ledger.dropped[0]
    assert abs(result.drops["error"] - sent * chance) < 4 * spread
    assert result.flows.acked_ps[0] > 0
    assert result.ledger.is_balanced


def test_losing_all_packets_ends_in_an_error_of_the_queue_pair() -> None:
    config = replace(BARE, transport=Transport(timeout_us=50.0, retry_count=2))
    problem = with_faults(incast(1, 8192), BitErrors(channel=2, loss_per_packet=1.0))
    result = simulate_packets(problem, config)
    assert result.flows.has_failed.all()
    assert result.drops["error"] == result.ledger.sent[0] == 6


def test_a_link_that_is_down_loses_what_is_on_it_and_time_out_brings_it_back() -> None:
    config = replace(BARE, transport=Transport(timeout_us=200.0))
    size = 50 * 4096
    usual = simulate_packets(incast(1, size), config)
    down = LinkDown(channel=3, start_us=8.0, end_us=100.0)
    result = simulate_packets(with_faults(incast(1, size), down), config)
    # From 8 us back: what began to be sent before, a packet in 334,240 ps, from 82,080 ps on.
    each_ps = 80 * (4096 + 82)
    assert result.flows.timeouts[0] == 1
    assert result.ledger.dropped[0] == result.drops["link"] - result.ledger.dropped[1]
    came = int((8 * US - US - 80 * 16) // each_ps)
    assert result.flows.repeats[0] == 50 - came + result.ledger.dropped[1]
    assert usual.flows.fct_ps[0] < 100 * US < 200 * US < result.flows.fct_ps[0]
    assert result.ledger.is_balanced


def test_a_pause_is_forgotten_when_its_link_goes_down() -> None:
    storm = PauseStorm(channel=0, start_us=10.0, every_us=1e6, end_us=300.0)
    down = LinkDown(channel=0, start_us=100.0, end_us=120.0)
    config = replace(BARE, transport=Transport(timeout_us=200.0))
    result = simulate_packets(with_faults(incast(1, 10**6), storm, down), config)
    assert result.flows.acked_ps[0] > 0
    assert result.ports.paused_ps[1, 0] == 90 * US - (84 * 80 + US + 600_000)


def test_a_flap_is_so_many_times_down() -> None:
    flap = LinkFlap(channel=2, start_us=5.0, end_us=65.0, down_us=1.0, up_us=19.0)
    downs = [LinkDown(2, start, start + 1.0) for start in (5.0, 25.0, 45.0)]
    config = replace(BARE, transport=Transport(timeout_us=30.0))
    one = simulate_packets(with_faults(incast(2, 10**6), flap), config)
    other = simulate_packets(with_faults(incast(2, 10**6), *downs), config)
    assert one.flows.fct_ps.tolist() == other.flows.fct_ps.tolist()
    assert one.drops == other.drops
    assert one.drops["link"] > 0


def test_half_the_speed_takes_twice_as_long() -> None:
    problem = problem_of(star(2), 2, [(0, 1, 100 * 4096)])
    slow = simulate_packets(with_faults(problem, SlowLink(channel=3, gbps=50.0)), BARE)
    lengths = 80 * (100 * (4096 + 82) + 16)
    first = 80 * (4096 + 82 + 16)
    assert slow.flows.fct_ps.tolist() == [first + 2 * lengths + 2 * US + 500_000]
    for_a_time = SlowLink(channel=0, gbps=50.0, start_us=0.0, end_us=10.0)
    result = simulate_packets(with_faults(problem, for_a_time), BARE)
    usual = simulate_packets(problem, BARE)
    assert 4 * US < result.flows.fct_ps[0] - usual.flows.fct_ps[0] < 6 * US


def test_frames_longer_than_the_mtu_of_a_port_are_dropped_and_short_ones_pass() -> None:
    problem = problem_of(star(3), 3, [(0, 1, 8 * 4096), (2, 1, 1000)])
    config = replace(BARE, transport=Transport(timeout_us=50.0, retry_count=1))
    result = simulate_packets(with_faults(problem, SmallMtu(channel=3, frame_bytes=1518)), config)
    assert result.flows.has_failed.tolist() == [True, False]
    assert result.flows.fct_ps[1] > 0
    assert result.drops["mtu"] == result.ledger.dropped[0] == result.ledger.sent[0] - 1


@pytest.mark.parametrize("gbps", [10.0, 40.0])
def test_a_slow_host_takes_at_its_speed_and_pauses_the_switch(gbps: float) -> None:
    size = 1000 * 4096
    problem = problem_of(star(2), 2, [(0, 1, size)])
    host = SlowHost(
        channel=3, gbps=gbps, buffer_bytes=500_000, xoff_bytes=100_000, xon_bytes=50_000
    )
    config = replace(BARE, buffer=SwitchBuffer(xoff_bytes=200_000))
    result = simulate_packets(with_faults(problem, host), config)
    frames = 1000 * FRAME + 16
    pipeline = 2 * 80 * (4096 + 82 + 16) + 2 * US + 500_000
    assert result.flows.fct_ps[0] == pytest.approx(frames * 8000 / gbps + pipeline, abs=1000)
    assert result.drops["host"] == 0
    assert result.ports.pauses[3, 0] > 3
    assert result.ports.pauses[0, 0] > 0  # the switch's buffer fills: the cause moves upstream
    small = replace(host, buffer_bytes=60_000, xoff_bytes=60_000, xon_bytes=0)
    lossy = simulate_packets(with_faults(problem, small), replace(BARE, transport=Transport()))
    assert lossy.drops["host"] > 0


def test_faults_that_cannot_be_are_told_together() -> None:
    problem = with_faults(
        incast(2, 1000),
        PauseStorm(channel=99, end_us=5.0),
        BitErrors(channel=0, loss_per_packet=2.0),
        LinkDown(channel=0, start_us=5.0, end_us=5.0),
    )
    with pytest.raises(InputError) as caught:
        simulate_packets(problem, BARE)
    for place in ("faults[0].channel", "faults[1].loss_per_packet", "faults[2].end_us"):
        assert place in str(caught.value)


def test_a_storm_from_a_switch_and_two_faults_at_once_are_told() -> None:
    problem = with_faults(
        incast(2, 1000), PauseStorm(channel=1), LinkDown(channel=2), LinkFlap(3, 5.0, 9.0, 1.0, 1.0)
    )
    with pytest.raises(InputError) as caught:
        simulate_packets(problem, BARE)
    assert "there is no NIC at that end of channel 1." in str(caught.value)
    with pytest.raises(InputError, match="a storm without end has a run without end"):
        simulate_packets(with_faults(incast(2, 1000), PauseStorm(channel=0)), BARE)
    assert "another fault of this kind still holds at 5.0 us." in str(caught.value)
