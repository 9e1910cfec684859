from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufabric.kernels.packet_structs import PLAIN_RULES
from gpufabric.sim.packet import PacketProblem, PacketResult, simulate_packets
from gpufabric.sim.packet_checks import check_packets
from gpufabric.sim.packet_config import (
    ClassKind,
    Control,
    ControlKind,
    Dcqcn,
    Ecn,
    PacketConfig,
    PauseTime,
    PortOverride,
    SwitchBuffer,
    TrafficClass,
    Transport,
    Watchdog,
)
from gpufabric.sim.packet_control import Hpcc, Rccc, Swift
from gpufabric.sim.packet_messages import After
from gpufabric.sim.packet_setup import new_packet_run, settled
from tests.reference.packet_ends import Engine
from tests.sim.packet_cases import Link, problem_of

UNTIL_PS = 400_000_000
TRACE = 200_000
SIZES = st.sampled_from([60_000, 30_000, 4096, 1, 0])


@st.composite
def problems(draw: Any) -> PacketProblem:
    n_hosts, n_switches = draw(st.integers(3, 5)), draw(st.integers(1, 3))
    speeds = st.sampled_from([25.0, 100.0, 106.25, 400.0])
    delays = st.sampled_from([0, 5_000, 50_000, 1_000_000, 1_234_567])
    links: list[Link] = [
        (host, n_hosts + draw(st.integers(0, n_switches - 1)), draw(speeds), draw(delays))
        for host in range(n_hosts)
    ]
    for switch in range(1, n_switches):
        below = draw(st.integers(0, switch - 1))
        links.append((n_hosts + switch, n_hosts + below, draw(speeds), draw(delays)))
    flows, starts = [], []
    busiest = draw(st.integers(0, n_hosts - 1))
    for _ in range(draw(st.integers(3, 9))):
        source = draw(st.integers(0, n_hosts - 1))
        target = busiest
        if source == busiest:
            target = (source + draw(st.integers(1, n_hosts - 1))) % n_hosts
        flows.append((source, target, draw(st.one_of(SIZES, st.integers(0, 60_000)))))
        starts.append(draw(st.sampled_from([0, 0, 0, 1_000, 3_333_333])))
    problem = problem_of(links, n_hosts, flows, starts)
    if draw(st.booleans()):
        own = [draw(st.sampled_from([0, 500_000, 190_000])) for _ in range(n_switches)]
        return replace(problem, forwarding_ps=np.array(own)[: problem.wires.head.max() + 1])
    return problem


@st.composite
def classes(draw: Any) -> dict[str, Any]:
    kinds = st.sampled_from([ClassKind.LOSSLESS, ClassKind.LOSSY, ClassKind.UNCOUNTED])
    n = draw(st.integers(1, 3))
    rows = tuple(
        TrafficClass(draw(kinds), is_strict=draw(st.booleans()), is_marked=not draw(st.booleans()))
        for _ in range(n)
    )
    if draw(st.booleans()):
        rows = tuple(
            replace(
                one,
                ecn=draw(st.sampled_from([None, Ecn(2e3, 8e3, 0.7)])),
                alpha_log2=draw(st.sampled_from([None, -1, 0])),
            )
            for one in rows
        )
    if draw(st.booleans()):
        rows = tuple(replace(one, weight=draw(st.integers(1, 5))) for one in rows)
    least = {"data_class": 0, "ack_class": -1, "cnp_class": 0}
    return {
        "classes": rows,
        **{name: draw(st.integers(low, n - 1)) for name, low in least.items()},
    }


@st.composite
def overrides(draw: Any, n_classes: int) -> PortOverride:
    def maybe(*values: Any) -> Any:
        return draw(st.sampled_from([None, None, *values]))

    headroom_bytes = maybe(0, 3_000, 40_000)
    return PortOverride(
        switches=draw(st.sampled_from([(), (0,)])),
        ports=draw(st.sampled_from([(), (0,), (1, 4)])),
        classes=tuple(draw(st.lists(st.integers(0, n_classes - 1), max_size=2))),
        kind=maybe(*ClassKind),
        queue=maybe(0, n_classes - 1),
        has_pfc=maybe(False, True),
        has_watchdog=maybe(False),
        headroom_bytes=headroom_bytes,
        headroom_cable_m=None if headroom_bytes is not None else maybe(1.5, 300.0),
        alpha_log2=maybe(-2, 1),
        xoff_bytes=maybe(0, 6_000),
        is_marked=maybe(False, True),
        kmin_bytes=maybe(0.0, 5e3),
        kmax_bytes=maybe(3e3, 2e4),
        pmax=maybe(0.0, 1.0),
    )


@st.composite
def hpccs(draw: Any) -> Hpcc:
    return Hpcc(
        base_rtt_us=draw(st.sampled_from([0.0, 4.654])),
        target_utilization=draw(st.sampled_from([0.95, 0.5])),
        additive_gbps=draw(st.sampled_from([0.04, 3.0])),
        most_stages=draw(st.sampled_from([0, 5])),
        reacts_fast=draw(st.booleans()),
        byte_unit=draw(st.sampled_from([1, 512])),
        queue_unit=draw(st.sampled_from([1, 320])),
        ack_bytes=draw(st.sampled_from([42, 28, 0])),
    )


@st.composite
def graphs(draw: Any, n_flows: int) -> After | None:
    """Which flows wait for flows before them, if any do."""
    if draw(st.booleans()):
        return None
    rows = [
        sorted(draw(st.sets(st.integers(0, max(0, flow - 1)), max_size=2))) if flow else []
        for flow in range(n_flows)
    ]
    delay_ps = np.array([draw(st.sampled_from([0, 0, 777_000])) for _ in rows])
    return After.from_lists(rows, delay_ps, until_acked=draw(st.booleans()))


@st.composite
def swifts(draw: Any) -> Swift:
    return Swift(
        target_trips=draw(st.sampled_from([1.5, 0.5])),
        hop_us=draw(st.sampled_from([0.0, 0.5])),
        scale_us=draw(st.sampled_from([0.0, 4.0])),
        additive_packets=draw(st.sampled_from([1.0, 0.3])),
        least_window=draw(st.sampled_from([0.01, 1.0])),
    )


@st.composite
def rcccs(draw: Any) -> Rccc:
    return Rccc(
        initial_credit_bytes=draw(st.sampled_from([0, 1, 5_000])),
        credit_bytes=draw(st.sampled_from([1, 4096])),
        credit_rate=draw(st.sampled_from([0.99, 1.0, 0.5])),
    )


@st.composite
def controls(draw: Any, dcqcn: Dcqcn) -> tuple[Control, ...]:
    """Two of each kind at most, so that timers without lanes of their own come up too."""
    kinds = st.sampled_from([one for one in ControlKind if one is not ControlKind.CCT])
    return tuple(
        Control(
            draw(kinds),
            window_bytes=draw(st.sampled_from([0, 0, 12_000])),
            window_follows_rate=draw(st.booleans()),
            dcqcn=dcqcn,
            hpcc=draw(hpccs()),
            swift=draw(swifts()),
            rccc=draw(rcccs()),
        )
        for _ in range(3)
    )


@st.composite
def configs(draw: Any) -> PacketConfig:
    mtu = draw(st.sampled_from([256, 1000, 4096]))
    given_classes = draw(classes())
    lossless = any(one.kind is ClassKind.LOSSLESS for one in given_classes["classes"])
    headroom = draw(st.sampled_from([None, 0, 3_000, 40_000])) if lossless else None
    buffer = SwitchBuffer(
        total_bytes=2_000_000_000,
        reserve_bytes=draw(st.sampled_from([0, 1_500, 9_000])),
        headroom_bytes=headroom,
        alpha_log2=draw(st.integers(-3, 1)),
        alpha_gbps=draw(st.sampled_from([0.0, 50.0])),
        xoff_bytes=draw(st.sampled_from([0, 0, 4_000, 20_000])),
        xon_offset_bytes=draw(st.sampled_from([0, 2_000, 9_000])),
        tail_bytes=draw(st.sampled_from([0, 5_000, 30_000])),
    )
    ecn = Ecn(draw(st.sampled_from([1e3, 0.0, 6e3])), draw(st.sampled_from([2e4, 3e3])), 0.5)
    dcqcn = Dcqcn(
        rpg_byte_reset=draw(st.sampled_from([0, 10_000])),
        rpg_time_reset_us=draw(st.sampled_from([7.0, 55.0])),
        rpg_threshold=draw(st.integers(0, 2)),
        rpg_ai_rate_gbps=0.5,
        rpg_hai_rate_gbps=5.0,
        rpg_min_rate_gbps=0.1,
        clamp_tgt_rate=draw(st.booleans()),
        rate_to_set_on_first_cnp_gbps=draw(st.sampled_from([0.0, 30.0])),
        min_time_between_cnps_us=draw(st.sampled_from([0.0, 5.0])),
        shortens_waits=draw(st.booleans()),
        first_check_later_ns=draw(st.sampled_from([0.0, 1.0])),
    )
    transport = Transport(
        mtu_bytes=mtu,
        ack_every=draw(st.integers(1, 3)),
        acks_duplicates=draw(st.booleans()),
        cnp_in_ack=draw(st.booleans()),
        window_bytes=draw(st.sampled_from([0, 0, 5_000, 20_000])),
        window_follows_rate=draw(st.booleans()),
        timeout_us=draw(st.sampled_from([0.0, 15.0, 60.0])),
        retry_count=draw(st.integers(0, 3)),
        most_apart_packets=draw(st.sampled_from([0, 0, 3, 64])),
        reorder_packets=draw(st.sampled_from([0, 0, 2])),
    )
    watchdog = Watchdog(
        detect_us=draw(st.sampled_from([0.5, 3.0, 20.0])),
        restore_us=draw(st.sampled_from([0.7, 15.0])),
        action=draw(st.sampled_from(["drop", "forward"])),
    )
    n_overrides = draw(st.sampled_from([0, 0, 1, 2]))
    each = overrides(len(given_classes["classes"]))
    return PacketConfig(
        **given_classes,
        pause_time=PauseTime(
            quanta=draw(st.sampled_from([0, 0, 3, 100, 1000])),
            refresh_part=draw(st.sampled_from([0.3, 0.5, 1.0])),
        ),
        watchdog=draw(st.sampled_from([None, watchdog])),
        quantum_bytes=draw(st.sampled_from([100, 1_600, 9_000])),
        overrides=tuple(draw(each) for _ in range(n_overrides)),
        buffer=buffer,
        ecn=draw(st.sampled_from([ecn, ecn, None])),
        dcqcn=draw(st.sampled_from([dcqcn, dcqcn, None])),
        transport=transport,
        forwarding_ns=draw(st.sampled_from([0.0, 500.0])),
        pause_reaction_ns=draw(st.sampled_from([0.0, 300.5])),
        tick_ps=draw(st.sampled_from([1, 1000])),
        seed=draw(st.integers(1, 2**60)),
        draws=draw(st.sampled_from([(), (0.1, 0.9, 0.3)])),
    )


def assert_equal(engine: Engine, result: PacketResult) -> None:
    assert result.trace.tolist() == [list(row) for row in engine.trace]
    flows = result.flows
    messages = engine.messages
    for name in ("delivered_ps", "acked_ps", "started_ps"):
        assert getattr(flows, name).tolist() == [getattr(one, name) for one in messages], name
    pairs = [engine.flows[one.pair] for one in messages]
    arrived = [
        min(max(pair.acked - one.first, 0), one.n)
        for one, pair in zip(messages, pairs, strict=True)
    ]
    assert flows.acked_packets.tolist() == arrived
    leaders = [pair.messages[0] for pair in engine.flows]
    for name, theirs in (
        ("repeats", "repeats"),
        ("timeouts", "timeouts"),
        ("cnps", "cnps"),
        ("out_of_order", "out_of_order"),
        ("rate_gbps", "rate"),
    ):
        found = getattr(flows, name)[leaders].tolist()
        assert found == [getattr(one, theirs) for one in engine.flows], name
    failed = [
        pair.place == "failed" and (len(pair.messages) == 1 or one.acked_ps < 0)
        for one, pair in zip(messages, pairs, strict=True)
    ]
    assert flows.has_failed.tolist() == failed
    assert result.ports.marked.tolist() == [port.marked for port in engine.ports]
    assert result.ports.most_queued_bytes.tolist() == [port.most for port in engine.ports]
    assert result.ports.pauses.sum(axis=1).tolist() == [port.n_pauses for port in engine.ports]
    n_classes = len(engine.config.classes)
    for name, theirs in (("storms", "n_storms"), ("expired", "expired")):
        count = getattr(engine.pauses, theirs)
        places = [[count[port, at] for at in range(n_classes)] for port in range(len(engine.ports))]
        assert getattr(result.ports, name).tolist() == places
    assert result.drops["watchdog"] == sum(engine.pauses.dropped.values())
    ledger = result.ledger
    for kind in range(5):
        assert ledger.sent[kind] == engine.sent[kind]
        assert ledger.received[kind] == engine.received[kind]
        assert ledger.dropped[kind] == engine.dropped[kind]
    assert ledger.is_balanced


def with_pool(problem: PacketProblem, config: PacketConfig, pool_bytes: int) -> PacketConfig:
    """Make the pool of the switch that has least so large."""
    least = min(buffer.pool for buffer in Engine(problem, config).buffers.values())
    total = config.buffer.total_bytes - least + pool_bytes
    return replace(config, buffer=replace(config.buffer, total_bytes=total))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    problems(),
    configs(),
    st.sampled_from([5_000, 20_000, 100_000]),
    st.booleans(),
    st.integers(0, 3),
)
def test_kernel_equals_reference_event_for_event(
    problem: PacketProblem,
    config: PacketConfig,
    pool_bytes: int,
    has_own_buffers: bool,
    class_seed: int,
) -> None:
    if class_seed:
        random = np.random.default_rng(class_seed)
        traffic_class = random.integers(0, len(config.classes), problem.n_flows)
        problem = replace(problem, traffic_class=traffic_class.astype(np.int8))
    config = with_pool(problem, config, pool_bytes)
    if has_own_buffers:
        more = np.arange(problem.wires.head.max() + 1) * 7_000
        problem = replace(problem, buffer_bytes=config.buffer.total_bytes + more)
        config = replace(config, buffer=replace(config.buffer, total_bytes=0))
    compare(problem, config)


@st.composite
def plain_configs(draw: Any) -> PacketConfig:
    """Configs for which the kernel has machine code of its own."""
    config: PacketConfig = draw(configs())
    kinds = st.sampled_from([ClassKind.LOSSLESS, ClassKind.LOSSY, ClassKind.UNCOUNTED])
    rows = tuple(
        TrafficClass(draw(kinds), is_strict=draw(st.booleans()), is_marked=not draw(st.booleans()))
        for _ in range(2)
    )
    lossless = any(one.kind is ClassKind.LOSSLESS for one in rows)
    headroom_bytes = draw(st.sampled_from([None, 0, 3_000])) if lossless else None
    buffer = replace(config.buffer, xoff_bytes=0, tail_bytes=0, headroom_bytes=headroom_bytes)
    return replace(
        config,
        classes=rows,
        ack_class=draw(st.integers(-1, 1)),
        cnp_class=draw(st.integers(0, 1)),
        data_class=draw(st.integers(0, 1)),
        pause_time=PauseTime(quanta=0),
        watchdog=None,
        overrides=(),
        buffer=replace(buffer, alpha_gbps=0.0),
        transport=replace(config.transport, ack_every=1, cnp_in_ack=False, most_apart_packets=0),
        tick_ps=1,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), plain_configs(), st.sampled_from([5_000, 20_000, 100_000]))
def test_plain_kernel_equals_reference_event_for_event(
    problem: PacketProblem, config: PacketConfig, pool_bytes: int
) -> None:
    config = with_pool(problem, config, pool_bytes)
    run = settled(new_packet_run(check_packets(problem, config), config, 0))
    assert run.rules.dtype == PLAIN_RULES
    compare(problem, config)


def compare(problem: PacketProblem, config: PacketConfig) -> None:
    engine = Engine(problem, config)
    engine.run(UNTIL_PS)
    assert len(engine.trace) < TRACE
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, trace_rows=TRACE)
    assert_equal(engine, result)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), configs(), st.data())
def test_kernel_equals_reference_with_a_control_for_each_flow_class(
    problem: PacketProblem, config: PacketConfig, more: Any
) -> None:
    given = more.draw(controls(config.dcqcn or Dcqcn()))
    transport = replace(config.transport, window_bytes=0, window_follows_rate=False)
    config = replace(config, dcqcn=None, controls=given, transport=transport)
    classes = [more.draw(st.integers(0, 2)) for _ in range(problem.n_flows)]
    problem = replace(problem, control=np.array(classes), after=more.draw(graphs(problem.n_flows)))
    needs_acks = [
        one.kind not in {ControlKind.NONE, ControlKind.DCQCN} or one.window_bytes > 0
        for one in given
    ]
    operation = [
        more.draw(st.integers(0, 1 if needs_acks[of_class] else 2)) for of_class in classes
    ]
    problem = replace(problem, operation=np.array(operation))
    compare(problem, with_pool(problem, config, 50_000))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), configs(), st.data())
def test_kernel_equals_reference_with_several_messages_on_a_queue_pair(
    problem: PacketProblem, config: PacketConfig, more: Any
) -> None:
    """Messages of the first flow's pair, and of two others, some of which wait for others."""
    given = more.draw(controls(config.dcqcn or Dcqcn()))
    transport = replace(config.transport, window_bytes=0, window_follows_rate=False)
    config = replace(config, dcqcn=None, controls=given, transport=transport)
    n = problem.n_flows
    pair = np.array([min(more.draw(st.integers(0, 2)), at) for at in range(n)])
    pair = np.unique(pair, return_inverse=True)[1].astype(np.int32)
    leader = np.unique(pair, return_index=True)[1]
    assert problem.start_ps is not None
    problem = replace(
        problem,
        queue_pair=pair,
        path=leader[pair].astype(np.int32),
        control=np.array([more.draw(st.integers(0, 2)) for _ in leader])[pair],
        operation=np.array([more.draw(st.integers(0, 1)) for _ in range(n)]),
        start_ps=problem.start_ps * np.array([more.draw(st.integers(0, 9)) for _ in range(n)]),
        after=more.draw(graphs(n)),
    )
    compare(problem, with_pool(problem, config, 50_000))


def test_many_packets_make_arrays_grow_and_change_nothing() -> None:
    links: list[Link] = [(host, 40, 100.0, 1_000_000) for host in range(40)]
    flows = [(host, at, 90_000) for host in range(4, 40) for at in range(3)]
    problem = problem_of(links, 40, flows)
    config = PacketConfig(dcqcn=Dcqcn(), ecn=Ecn(5e3, 5e4, 0.3))
    engine = Engine(problem, config)
    engine.run(UNTIL_PS)
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, trace_rows=TRACE)
    assert_equal(engine, result)
    assert result.flows.cnps.sum() > 0


def test_two_runs_are_equal_and_another_seed_differs() -> None:
    problem = problem_of(
        [(0, 3, 100.0, 9), (1, 3, 100.0, 9), (2, 3, 100.0, 9)], 3, [(0, 2, 10**6), (1, 2, 10**6)]
    )
    runs = [
        simulate_packets(problem, PacketConfig(dcqcn=Dcqcn(), ecn=Ecn(1e4, 1e6, 0.1), seed=seed))
        for seed in (5, 5, 6)
    ]
    assert np.array_equal(runs[0].flows.fct_ps, runs[1].flows.fct_ps)
    assert not np.array_equal(runs[0].flows.fct_ps, runs[2].flows.fct_ps)
