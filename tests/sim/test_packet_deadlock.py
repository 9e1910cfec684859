from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpufabric.kernels.packet import NEEDS_ROOM, run_packets
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import PacketProblem, Recording, simulate_packets
from gpufabric.sim.packet_causes import deadlock_json
from gpufabric.sim.packet_checks import check_packets
from gpufabric.sim.packet_config import PacketConfig, SwitchBuffer, Transport
from gpufabric.sim.packet_deadlock import Lane, find_deadlock
from gpufabric.sim.packet_faults import PauseStorm
from gpufabric.sim.packet_infiniband_config import Credits
from gpufabric.sim.packet_profiles import infiniband
from gpufabric.sim.packet_setup import new_packet_run, with_more_room
from tests.sim.packet_cases import US, Link, incast, wires_of

SHALLOW = PacketConfig(
    ecn=None,
    buffer=SwitchBuffer(xoff_bytes=15_000, xon_offset_bytes=5_000, reserve_bytes=0),
    transport=Transport(timeout_us=0.0),
)
FEW_CREDITS = replace(
    infiniband(),
    credits=Credits(4 * 66 * 64, update_blocks=66),
    transport=Transport(timeout_us=0.0),
)


def ring(n: int, hops: list[tuple[int, int]], size: int, delay_ps: int = 100_000) -> PacketProblem:
    """Switches in a ring with a host each; a flow goes round by so many switches."""
    links: list[Link] = [(at, n + at, 100.0, delay_ps) for at in range(n)]
    links += [(n + at, n + (at + 1) % n, 100.0, delay_ps) for at in range(n)]
    there = [
        [2 * source, *(2 * (n + (source + at) % n) for at in range(k)), 2 * ((source + k) % n) + 1]
        for source, k in hops
    ]
    back = [[channel ^ 1 for channel in row[::-1]] for row in there]
    sizes = np.full(len(hops), size)
    return PacketProblem(wires_of(links, n), Paths.from_lists(there), Paths.from_lists(back), sizes)


def test_a_ring_stands_still_and_the_circle_is_told_hop_by_hop() -> None:
    n = 4
    for config in (SHALLOW, FEW_CREDITS):
        result = simulate_packets(ring(n, [(at, 3) for at in range(n)], 200_000), config)
        assert (result.flows.fct_ps == -1).all()
        deadlock = result.deadlock
        assert deadlock is not None
        # The channels from switch to switch, each waiting for the next one.
        assert sorted(one.channel for one in deadlock.cycle) == [2 * (n + at) for at in range(n)]
        steps = np.diff([one.channel for one in deadlock.cycle]) % (2 * n)
        assert (steps == 2).all()
        assert all(one.buffer_bytes > 0 for one in deadlock.cycle)
        assert all(one.queued_bytes > 0 for one in deadlock.cycle)
        assert {Lane(2 * at, one.traffic) for at in range(n) for one in deadlock.cycle} <= set(
            deadlock.stuck
        )
        assert deadlock.since_ps == max(one.since_ps for one in deadlock.cycle)
        assert deadlock.since_ps <= deadlock.found_ps == result.end_ps
        told = deadlock_json(deadlock, "channel {}".format)
        assert told is not None
        circle = [one["channel"] for one in told["cycle"]]
        assert circle == [f"channel {one.channel}" for one in deadlock.cycle]
        assert told["stuck_queues"] == len(deadlock.stuck)


def test_a_deadlock_is_found_while_timers_still_run() -> None:
    config = replace(SHALLOW, transport=Transport(timeout_us=200.0, retry_count=2))
    problem = ring(4, [(at, 3) for at in range(4)], 200_000)
    result = simulate_packets(problem, config, recording=Recording(deadlock_every_us=20.0))
    assert result.flows.has_failed.all()
    assert result.deadlock is not None
    assert result.deadlock.found_ps - result.deadlock.since_ps <= 20 * US
    assert result.end_ps > 5 * result.deadlock.found_ps
    late = simulate_packets(problem, config).deadlock
    assert late is not None
    assert (late.cycle, late.found_ps) == (result.deadlock.cycle, result.end_ps)


def test_a_ring_where_each_goes_to_its_neighbour_has_none() -> None:
    result = simulate_packets(ring(4, [(at, 1) for at in range(4)], 200_000), SHALLOW)
    assert (result.flows.acked_ps > 0).all()
    assert result.deadlock is None


def test_a_pause_that_will_end_is_none_and_neither_is_a_storm() -> None:
    problem = incast(4, 200_000)
    cut = simulate_packets(problem, SHALLOW, until_ps=20 * US)
    assert cut.ports.pauses.sum() > 0
    assert cut.deadlock is None
    # Host 0, to which all send, pauses for ever.
    storm = replace(problem, faults=(PauseStorm(0, start_us=10.0),))
    result = simulate_packets(storm, SHALLOW, until_ps=400 * US)
    assert (result.flows.fct_ps == -1).all()
    assert result.deadlock is None


@st.composite
def rings(draw: Any) -> PacketProblem:
    n = draw(st.integers(3, 5))
    pair = st.tuples(st.integers(0, n - 1), st.integers(1, n - 1))
    hops = draw(st.lists(pair, min_size=n, max_size=3 * n))
    return ring(n, hops, draw(st.sampled_from([40_000, 150_000])), draw(st.sampled_from([0, US])))


# An input pauses, its last packet leaves, then others: the pool has room, and nothing sends XON.
LATE = ring(4, [(0, 2), (1, 2), (2, 3), (3, 3)], 150_000, 0)


def advance(run: PacketRun, until_ps: int) -> PacketRun:
    while run_packets(run, until_ps) == NEEDS_ROOM:
        run = with_more_room(run)
    return run


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rings(),
    st.sampled_from([SHALLOW, FEW_CREDITS]),
    st.sampled_from([0, 20_000, 60_000]),
    st.integers(5, 40),
)
@example(LATE, SHALLOW, 20_000, 5)
def test_what_is_stuck_never_moves_and_what_never_moves_is_stuck(
    problem: PacketProblem, config: PacketConfig, pool_bytes: int, look_us: int
) -> None:
    if pool_bytes and config.credits is None:
        buffer = replace(config.buffer, xoff_bytes=0, headroom_bytes=40_000, alpha_log2=0)
        ports = 3 * 40_000 * 2  # three inputs, as many classes as may be lossless
        config = replace(config, buffer=replace(buffer, total_bytes=ports + pool_bytes))
    run = new_packet_run(check_packets(problem, config), config, 0)
    run = advance(run, look_us * US)
    early = find_deadlock(run)
    places = [at * (len(config.classes) + 1) + of for at, of in early.stuck] if early else []
    before = run.queues["first"][places].copy()
    run = advance(run, 2**60)
    assert np.array_equal(run.queues["first"][places], before)
    last = find_deadlock(run)
    assert early is None or last is not None
    is_still = bool((run.queues["n_bytes"] > 0).any())
    assert (last is not None) == is_still
    if last is not None:
        assert {Lane(one.channel, one.traffic) for one in last.cycle} <= set(last.stuck)
