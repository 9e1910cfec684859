"""Queueing and headroom, known to the picosecond and to the byte."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import PacketProblem, simulate_packets
from gpufabric.sim.packet_config import PacketConfig, SwitchBuffer
from gpufabric.sim.packet_faults import PauseStorm
from tests.sim.packet_cases import US, problem_of, star, wires_of

DATA, FIRST, GAP, PFC = 62, 16, 20, 64  # bytes
FORWARD_PS, REACTION_PS = 500_000, 600_000
FULL = 4096 + DATA
BARE = PacketConfig(ecn=None)


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_a_port_is_a_queue_with_one_server_of_constant_time(load: float) -> None:
    """M/D/1: each packet waits as Lindley's recursion says, and the mean is Pollaczek's.

    A hundred hosts on links 32 times as fast send single packets, at times of a Poisson process.
    """
    n_packets, n_hosts = 20_000, 100
    service_ps = 80 * (1000 + DATA + FIRST + GAP)
    random = np.random.default_rng(1)
    gap_ps = random.exponential(service_ps / load, n_packets)
    start_ps = np.cumsum(gap_ps).astype(np.int64)
    sender = 1 + np.arange(n_packets) % n_hosts
    links = [(0, n_hosts + 1, 100.0, US)]
    links += [(host, n_hosts + 1, 3200.0, US) for host in range(1, n_hosts + 1)]
    problem = PacketProblem(
        wires_of(links, n_hosts + 1),
        Paths.from_lists([[2 * host, 1] for host in sender.tolist()]),
        Paths.from_lists([[0, 2 * host + 1] for host in sender.tolist()]),
        np.full(n_packets, 1000),
        start_ps=start_ps,
    )
    buffer = SwitchBuffer(total_bytes=500_000_000, alpha_log2=0)
    result = simulate_packets(problem, replace(BARE, buffer=buffer))
    alone_ps = service_ps + service_ps // 32 + 2 * US + FORWARD_PS
    wait_ps = result.flows.fct_ps - alone_ps
    expected, waits = 0, [0]
    for between_ps in np.diff(start_ps).tolist():
        expected = max(0, expected + service_ps - between_ps)
        waits.append(expected)
    assert wait_ps.tolist() == waits
    mean = load / (2 * (1 - load)) * service_ps
    assert wait_ps.mean() == pytest.approx(mean, rel=0.05)


@pytest.mark.parametrize("gbps", [100.0, 400.0])
@pytest.mark.parametrize("cable_m", [1, 100, 200])
def test_headroom_one_byte_short_of_what_is_in_flight_loses_one_packet(
    gbps: float, cable_m: int
) -> None:
    """The receiver pauses the switch at once, so nothing leaves while XOFF is on its way."""
    delay_ps, ps_per_byte, xoff_bytes = cable_m * 5000, round(8000 / gbps), 30_000
    sent_ps = ps_per_byte * (FULL + GAP)
    before = math.ceil((xoff_bytes - FIRST) / FULL)  # packets that make the switch decide
    decided_ps = before * sent_ps + ps_per_byte * FIRST + delay_ps + FORWARD_PS
    stopped_ps = decided_ps + ps_per_byte * (PFC + GAP) + delay_ps + REACTION_PS
    begun = 1 + math.ceil((stopped_ps - sent_ps - ps_per_byte * FIRST) / sent_ps)
    # The packet that reaches the threshold does not fit below it and is in the headroom too.
    needed_bytes = (begun - before + 1) * FULL
    problem = problem_of(star(2, gbps, delay_ps), 2, [(0, 1, 400 * 4096)])
    problem = replace(problem, faults=(PauseStorm(channel=2),))
    buffer = SwitchBuffer(
        total_bytes=200_000_000, reserve_bytes=0, xoff_bytes=xoff_bytes, xon_offset_bytes=10_000
    )

    def lost(headroom_bytes: int) -> int:
        config = replace(BARE, buffer=replace(buffer, headroom_bytes=headroom_bytes))
        result = simulate_packets(problem, config, until_ps=200 * US)
        assert result.ledger.is_balanced
        return sum(result.drops.values())

    assert [lost(needed_bytes - 1), lost(needed_bytes)] == [1, 0]
