"""Receiver's credit (RCCC): what it does for an incast, and what it cannot see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketResult, simulate_packets
from gpufabric.sim.packet_config import Control, ControlKind, PacketConfig, Transport
from gpufabric.sim.packet_control import Rccc
from gpufabric.sim.packet_faults import BitErrors
from gpufabric.sim.profile_file import read_profile
from tests.sim.packet_cases import US, Link, incast, problem_of, star

WIRE = 4096 + 62 + 20  # bytes
TRIP_PS = 2 * (2 * US + 500_000) + 2 * 80 * (WIRE + 66 + 20)
TRIP_PACKETS = -(-TRIP_PS // (80 * WIRE))
SIZE = 256 * 4096
CORE = 8  # channel between the switches


def config(kind: ControlKind, window_bytes: int = 0, rccc: Rccc | None = None) -> PacketConfig:
    control = Control(kind, window_bytes=window_bytes, rccc=rccc or Rccc())
    return PacketConfig(ecn=None, controls=(control,))


def floor_ps(result: PacketResult) -> int:
    """What the receiver's link takes for all packets."""
    return int(result.ledger.sent[0]) * 80 * WIRE


@pytest.mark.parametrize("n", [2, 8])
def test_an_incast_of_short_beginnings_has_next_to_no_queue_and_a_full_link(n: int) -> None:
    first = Rccc(initial_credit_bytes=4096)
    granted = simulate_packets(incast(n, SIZE), config(ControlKind.RCCC, rccc=first))
    windows = simulate_packets(
        incast(n, SIZE), config(ControlKind.NONE, window_bytes=TRIP_PACKETS * 4096)
    )
    assert granted.ports.most_queued_bytes.max() <= n * (4096 + 62 + 16)
    assert windows.ports.most_queued_bytes.max() > 0.8 * (n - 1) * TRIP_PACKETS * 4096
    # The rest is the first round trip, which only n packets are sent in, and the way of the last.
    latest = floor_ps(granted) / 0.99 + 2 * TRIP_PS
    assert floor_ps(granted) < granted.flows.fct_ps.max() < latest
    assert granted.flows.fct_ps.min() > 0.97 * granted.flows.fct_ps.max()


def test_the_queue_of_first_round_trips_is_gone_when_grants_arrive() -> None:
    n = 8
    problem, settings = incast(n, SIZE), config(ControlKind.RCCC)
    middle = simulate_packets(problem, settings, until_ps=2 * n * TRIP_PS)
    assert middle.ports.most_queued_bytes.max() > (n - 1.5) * TRIP_PACKETS * 4096
    # Data under way: what links and switch hold in a round trip, less the ACK's half.
    assert middle.ledger.in_flight_bytes[0] < 0.75 * TRIP_PACKETS * WIRE
    result = simulate_packets(problem, settings)
    assert result.flows.fct_ps.max() < floor_ps(result) / 0.99 + TRIP_PS
    assert result.flows.fct_ps.min() > 0.97 * result.flows.fct_ps.max()


def test_a_lone_flow_goes_at_the_rate_of_credit_without_a_gap() -> None:
    result = simulate_packets(incast(1, SIZE), config(ControlKind.RCCC, rccc=Rccc(credit_rate=0.9)))
    free = simulate_packets(incast(1, SIZE), config(ControlKind.NONE))
    granted = 256 - TRIP_PACKETS
    slower = granted * 80 * WIRE * (1 / 0.9 - 1)
    assert result.flows.fct_ps[0] - free.flows.fct_ps[0] == pytest.approx(slower, rel=0.1)


def test_a_later_flow_comes_to_an_equal_share() -> None:
    problem = replace(incast(2, SIZE), start_ps=np.array([0, 30 * US]))
    until = [
        simulate_packets(problem, config(ControlKind.RCCC), until_ps=at * US).flows.acked_packets
        for at in (60, 120)
    ]
    gained = until[1] - until[0]
    assert abs(gained[0] - gained[1]) <= 2
    assert gained.sum() == pytest.approx(60 * US / (80 * WIRE) * 0.99, abs=2)


def test_credit_does_not_see_congestion_in_the_core_and_a_window_bounds_it() -> None:
    """Two receivers grant a full link each, and their senders share one between the switches."""
    links: list[Link] = [
        *[(host, 4 + host // 2, 100.0, US) for host in range(4)],
        (4, 5, 100.0, US),
    ]
    problem = problem_of(links, 4, [(0, 2, SIZE), (1, 3, SIZE)])
    depth = {
        window: simulate_packets(
            problem, config(ControlKind.RCCC, window_bytes=window)
        ).ports.most_queued_bytes[CORE, 0]
        for window in (0, 30 * 4096)
    }
    free = simulate_packets(problem, config(ControlKind.NONE))
    assert depth[0] > 0.9 * free.ports.most_queued_bytes[CORE, 0]
    assert depth[30 * 4096] < 60 * 4096


def test_credit_that_was_lost_is_told_again_by_the_time_out() -> None:
    """All grants are lost for a while; the sender then begs with one packet."""
    settings = config(ControlKind.RCCC, rccc=Rccc(initial_credit_bytes=4096))
    settings = replace(settings, transport=Transport(timeout_us=40.0))
    lost = BitErrors(2, end_us=100.0, loss_per_packet=1.0)  # what leaves host 1, the receiver
    problem = replace(problem_of(star(2), 2, [(0, 1, 20 * 4096)]), faults=(lost,))
    result = simulate_packets(problem, settings)
    assert result.flows.timeouts[0] >= 1
    assert result.flows.fct_ps[0] > 100 * US
    assert result.ledger.is_balanced


def test_a_profile_names_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "credit.yaml"
    lines = "dcqcn: none\ncontrols: [{kind: rccc, rccc: {credit_rate: 0.95}}]\n"
    path.write_text(lines, encoding="utf-8")
    controls = read_profile(path).config.controls
    assert controls == (Control(ControlKind.RCCC, rccc=Rccc(credit_rate=0.95)),)
    path.write_text(lines.replace("0.95", "2"), encoding="utf-8")
    with pytest.raises(InputError, match="credit_rate"):
        read_profile(path)
