from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.sim.packet import PacketResult, Recording, simulate_packets
from gpufabric.sim.packet_config import (
    PacketConfig,
    PauseTime,
    PortOverride,
    SwitchBuffer,
    Watchdog,
)
from gpufabric.sim.packet_faults import PauseStorm
from gpufabric.sim.packet_pauses import Ending, PauseSpans, pause_edges, pause_roots, pause_spans
from tests.sim.packet_cases import US, Link, problem_of
from tests.sim.test_packet_deadlock import FEW_CREDITS, ring

PAUSING = PacketConfig(ecn=None, buffer=SwitchBuffer(xoff_bytes=20_000, xon_offset_bytes=5_000))
NOTED = Recording(bins=0, with_latencies=False)

# Hosts 0 and 1 at switch 5, hosts 2 to 4 at switch 6, a faster link between. Channels: hosts send
# by 0, 2, 4, 6, 8 and are reached by the odd ones; 10 leads from switch 5 to switch 6.
LINKS: list[Link] = [
    *((host, 5 if host < 2 else 6, 100.0, 100_000) for host in range(5)),
    (5, 6, 400.0, 100_000),
]
TREE = problem_of(LINKS, 5, [(0, 4, 200_000), (1, 4, 200_000), (2, 4, 200_000), (3, 4, 200_000)])


def spans_of(result: PacketResult) -> PauseSpans:
    assert result.pause_log is not None
    return pause_spans(result.pause_log)


def test_pauses_spread_from_the_full_port_to_the_hosts_behind_the_next_switch() -> None:
    result = simulate_packets(TREE, PAUSING, recording=NOTED)
    spans = spans_of(result)
    (root,) = pause_roots(spans)
    # Four hosts send to host 4, which channel 9 leads to: that queue is the root of all.
    assert (root.channel, root.is_nic, root.levels) == (9, False, 2)
    assert root.channels.tolist() == [0, 2, 4, 6, 10]
    assert root.n_pauses == len(spans) == result.ports.pauses.sum()
    assert root.paused_ps == result.ports.paused_ps.sum() == spans.paused_ps.sum()
    edges = {(edge.cause, edge.channel): edge for edge in pause_edges(spans)}
    assert {(9, 4), (9, 6), (9, 10), (10, 0), (10, 2)} <= set(edges)
    assert edges[9, 10].is_root
    assert not edges[10, 0].is_root
    assert sum(edge.paused_ps for edge in edges.values()) == root.paused_ps
    # Effects come after what was asked for, and share time with their causes.
    assert (spans.asked_ps < spans.from_ps).all()
    caused = spans.cause >= 0
    assert (spans.from_ps[spans.cause[caused]] < spans.until_ps[caused]).all()
    assert (spans.asked_ps[caused] <= spans.until_ps[spans.cause[caused]]).all()


def test_the_root_of_a_storm_is_the_nic_that_pauses() -> None:
    storm = replace(
        problem_of(LINKS, 5, [(0, 4, 500_000), (1, 2, 500_000)]), faults=(PauseStorm(8),)
    )
    spans = spans_of(simulate_packets(storm, PAUSING, until_ps=500 * US, recording=NOTED))
    root = pause_roots(spans)[0]
    assert (root.channel, root.is_nic) == (9, True)
    # The victim: host 1 sends to a host that pauses nobody.
    assert root.channels.tolist() == [0, 2, 9, 10]
    assert root.levels == 3
    assert (spans.until_ps[spans.channel == 9] == spans.until_ps.max()).all()


def test_a_sender_without_credits_is_told_of_in_the_same_way() -> None:
    result = simulate_packets(TREE, FEW_CREDITS, recording=NOTED)
    spans = spans_of(result)
    roots = pause_roots(spans)
    assert (roots[0].channel, roots[0].is_nic) == (9, False)
    assert np.isin([4, 6, 10], roots[0].channels).all()
    assert sum(root.n_pauses for root in roots) == result.ports.pauses.sum()


def test_no_pauses_have_no_roots() -> None:
    alone = simulate_packets(problem_of(LINKS, 5, [(0, 4, 10_000)]), PAUSING, recording=NOTED)
    spans = spans_of(alone)
    assert len(spans) == 0
    assert pause_roots(spans) == []
    assert pause_edges(spans) == []


def test_causes_in_a_circle_have_the_first_as_root() -> None:
    result = simulate_packets(
        ring(4, [(at, 3) for at in range(4)], 200_000), PAUSING, recording=NOTED
    )
    assert result.deadlock is not None
    spans = spans_of(result)
    circle = {one.channel for one in result.deadlock.cycle}
    for span in np.flatnonzero(np.isin(spans.channel, list(circle))):
        assert int(spans.channel[spans.cause[span]]) in circle
    roots = np.flatnonzero(spans.root == np.arange(len(spans)))
    assert (spans.level[roots] == 0).all()
    assert (spans.level >= 0).all()


def test_a_pause_asked_for_too_late_again_has_the_cause_of_the_one_whose_time_was_over() -> None:
    """Each frame comes when the pause before it has ended, so a few packets leave in between."""
    late = replace(PAUSING, pause_time=PauseTime(quanta=10, refresh_part=1.0))
    result = simulate_packets(TREE, late, recording=NOTED)
    spans = spans_of(result)
    (root,) = pause_roots(spans)
    assert (root.channel, root.is_nic) == (9, False)
    assert root.n_expired == result.ports.expired.sum() > 5
    assert root.n_overruled == 0
    assert root.n_pauses == result.ports.pauses.sum()
    assert (spans.asked_ps >= 0).all()
    expired = spans.ended == Ending.TIME
    again = np.isin(spans.asked_ps, spans.until_ps[expired])
    assert 0 < again.sum() <= expired.sum()


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_the_tree_knows_that_the_watchdog_ended_a_pause(action: str) -> None:
    storm = replace(
        problem_of(LINKS, 5, [(0, 4, 500_000), (1, 2, 500_000)]), faults=(PauseStorm(8),)
    )
    guard = Watchdog(detect_us=60.0, restore_us=100.0, action=action)
    config = replace(PAUSING, watchdog=guard, overrides=(PortOverride((0,), has_watchdog=False),))
    result = simulate_packets(storm, config, until_ps=500 * US, recording=NOTED)
    spans = spans_of(result)
    root = pause_roots(spans)[0]
    assert (root.channel, root.is_nic, root.n_overruled) == (9, True, 1)
    (at,) = np.flatnonzero(spans.ended == Ending.WATCHDOG)
    assert spans.channel[at] == 9
    assert spans.paused_ps[at] == 60 * US
    # Those that stood still behind it go on soon after, by XON; none does at the end.
    others = spans.channel != 9
    assert (spans.ended[others] == Ending.XON).all()
    acts_ps = spans.until_ps[at]
    behind = others & (spans.from_ps < acts_ps) & (spans.until_ps > acts_ps)
    assert set(spans.channel[behind].tolist()) == {0, 2, 10}
    assert spans.until_ps[behind].max() < acts_ps + 20 * US
    assert not (spans.ended == Ending.NONE).any()
