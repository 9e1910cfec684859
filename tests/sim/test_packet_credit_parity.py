from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufabric.sim.packet import PacketProblem, simulate_packets
from gpufabric.sim.packet_config import (
    Control,
    ControlKind,
    Ecn,
    PacketConfig,
    PortOverride,
    TrafficClass,
    Transport,
)
from gpufabric.sim.packet_control import Cct
from gpufabric.sim.packet_faults import PauseStorm, SlowHost
from gpufabric.sim.packet_infiniband_config import Arbitration, Credits, Fecn
from gpufabric.sim.packet_profiles import infiniband
from tests.reference.packet_ends import Engine
from tests.sim.test_packet_faults import assert_faults_equal, faults_of
from tests.sim.test_packet_parity import TRACE, UNTIL_PS, assert_equal, problems


@st.composite
def arbitrations(draw: Any, n_lanes: int) -> Arbitration:
    lane = st.integers(0, n_lanes - 1)
    weight = st.sampled_from([0, 1, 4, 64, 200])
    high = draw(st.lists(st.tuples(lane, weight), max_size=3))
    low = draw(st.lists(st.tuples(lane, weight), max_size=2))
    low += [(at, draw(st.sampled_from([1, 70]))) for at in range(n_lanes)]
    return Arbitration(
        high_lanes=tuple(at for at, _ in high),
        high_weights=tuple(some for _, some in high),
        low_lanes=tuple(at for at, _ in low),
        low_weights=tuple(some for _, some in low),
        high_limit=draw(st.sampled_from([0, 1, 2, 255])),
    )


@st.composite
def controls(draw: Any) -> tuple[Control, ...]:
    cct = Cct(
        delays=draw(st.sampled_from([(0.0, 0.5, 3.0), (0.0, 1.0, 2.0, 40.0), (1.0,)])),
        ccti_increase=draw(st.integers(0, 2)),
        ccti_timer_us=draw(st.sampled_from([3.0, 30.0])),
    )
    one = Control(ControlKind.CCT, window_bytes=draw(st.sampled_from([0, 20_000])), cct=cct)
    chosen: tuple[Control, ...] = draw(st.sampled_from([(), (one,)]))
    return chosen


@st.composite
def subnets(draw: Any) -> PacketConfig:
    n_lanes = draw(st.integers(1, 3))
    config = infiniband(n_lanes, is_routed=draw(st.booleans()))
    mtu = draw(st.sampled_from([256, 2048, 4096]))
    update = draw(st.sampled_from([1, 16, 64]))
    control = draw(controls())
    full = -(-(mtu + 26 + 16 + 40) // 64)
    room = draw(st.sampled_from([0, full + update, 3 * full + update, 3000]))
    return replace(
        config,
        classes=tuple(
            TrafficClass(one.kind, is_strict=draw(st.booleans()), is_marked=True)
            for one in config.classes
        ),
        data_class=draw(st.integers(0, n_lanes - 1)),
        ack_class=draw(st.integers(-1, n_lanes - 1)),
        overrides=draw(st.sampled_from([(), (PortOverride(classes=(0,), queue=n_lanes - 1),)])),
        arbitration=draw(st.one_of(st.none(), arbitrations(n_lanes))),
        controls=control,
        credits=Credits(64 * room, update, draw(st.sampled_from([0, 64, 500, 4000]))),
        fecn=draw(
            st.one_of(
                st.none(),
                st.builds(
                    Fecn,
                    threshold=st.sampled_from([0, 1, 15]),
                    marking_rate=st.integers(0, 3),
                    packet_bytes=st.sampled_from([0, 512]),
                ),
            )
        ),
        ecn=draw(st.sampled_from([None, Ecn(1e3, 2e4, 0.5)])),
        transport=Transport(
            mtu_bytes=mtu,
            ack_every=draw(st.integers(1, 3)),
            window_bytes=0 if control else draw(st.sampled_from([0, 0, 20_000])),
            cnp_in_ack=draw(st.booleans()),
            timeout_us=draw(st.sampled_from([0.0, 60.0])),
        ),
        forwarding_ns=draw(st.sampled_from([0.0, 130.0])),
        pause_reaction_ns=draw(st.sampled_from([0.0, 300.5])),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), subnets(), st.integers(0, 2))
def test_kernel_equals_reference_event_for_event(
    problem: PacketProblem, config: PacketConfig, pick: int
) -> None:
    lanes = np.arange(problem.n_flows, dtype=np.int8) * pick % len(config.classes)
    problem = replace(problem, traffic_class=lanes)
    engine = Engine(problem, config)
    engine.run(UNTIL_PS)
    assert len(engine.trace) < TRACE
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, trace_rows=TRACE)
    assert_equal(engine, result)
    assert result.ledger.dropped.sum() == 0
    assert engine.credits is not None
    assert result.credits is not None
    for (channel, lane), most in engine.credits.most_held.items():
        assert result.credits.most_held_blocks[channel, lane] == most
    assert (result.credits.most_held_blocks <= result.credits.room_blocks).all()
    assert result.credits.updates.sum() == sum(engine.credits.updates.values())


@st.composite
def with_faults(draw: Any) -> PacketProblem:
    problem: PacketProblem = draw(problems())
    faults = faults_of(draw, problem)
    kept = tuple(one for one in faults if not isinstance(one, PauseStorm | SlowHost))
    return replace(problem, faults=kept)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(with_faults(), subnets())
def test_kernel_equals_reference_with_faults(problem: PacketProblem, config: PacketConfig) -> None:
    engine = Engine(problem, config)
    engine.run(UNTIL_PS)
    assert len(engine.trace) < TRACE
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, trace_rows=TRACE)
    assert_equal(engine, result)
    assert_faults_equal(engine, result)
    assert result.credits is not None
    assert (result.credits.most_held_blocks <= result.credits.room_blocks).all()
