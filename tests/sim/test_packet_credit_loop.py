"""A ring of four switches: credits that wait in a circle under min-hop, and not under up/down."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.paths import WalkedPaths, explicit_paths
from gpufabric.routing.tables import Engine, forwarding_tables
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import PacketProblem, PacketResult, Wires, simulate_packets
from gpufabric.sim.packet_config import PacketConfig, Transport
from gpufabric.sim.packet_infiniband_config import Credits
from gpufabric.sim.packet_profiles import infiniband
from tests.routing.small_fabrics import ring
from tests.routing.test_deadlock import channels_between

NAMES = ["R1", "R2", "R3", "R4"]
HOSTS = np.arange(4)
OPPOSITE = (HOSTS + 2) % 4
CABLE_PS = 50_000
SHALLOW = replace(
    infiniband(),
    credits=Credits(4 * 65 * 64, update_blocks=65),
    transport=Transport(timeout_us=0.0),
)


def run(channels: Channels, there: WalkedPaths, back: WalkedPaths, config: PacketConfig) -> Outcome:
    n = channels.n_link_channels
    wires = Wires(
        channels.capacity_gbps[:n],
        np.full(n, CABLE_PS),
        channels.tail,
        channels.head,
        np.arange(n) ^ 1,
    )
    problem = PacketProblem(
        wires,
        Paths(there.first, there.channel),
        Paths(back.first, back.channel),
        np.full(there.n_flows, 2_000_000),
    )
    return Outcome(wires, simulate_packets(problem, config))


class Outcome:
    """A result and the channels between switches that had no credits, which is where it ends."""

    def __init__(self, wires: Wires, result: PacketResult) -> None:
        self.result = result
        between = (wires.tail >= 0) & (wires.head >= 0)
        waits = (result.ports.paused_ps[:, 0] > 0) & between
        self.waiting = sorted(
            (int(tail), int(head))
            for tail, head in zip(wires.tail[waits], wires.head[waits], strict=True)
        )

    def assert_stands_still(self) -> None:
        assert (self.result.flows.fct_ps == -1).all()
        assert self.result.ledger.in_flight[0] > 0
        assert self.result.ledger.dropped.sum() == 0
        assert self.result.ledger.is_balanced

    def assert_done(self) -> None:
        assert (self.result.flows.acked_ps > 0).all()
        assert self.result.ledger.in_flight.sum() == 0
        assert self.result.ledger.dropped.sum() == 0


def by_tables(engine: Engine, config: PacketConfig = SHALLOW) -> Outcome:
    channels = channels_of(ring(4, names=NAMES))
    tables = forwarding_tables(channels, engine)
    return run(channels, tables.walk(HOSTS, OPPOSITE), tables.walk(OPPOSITE, HOSTS), config)


def test_min_hop_tables_stand_still_for_ever() -> None:
    outcome = by_tables("minhop")
    outcome.assert_stands_still()
    assert outcome.waiting == [(0, 3), (1, 0), (2, 1), (3, 2)]


def test_up_down_tables_get_all_through() -> None:
    by_tables("updn").assert_done()


@pytest.mark.parametrize("engine", ["minhop", "updn"])
def test_routes_of_the_ring_case(shared: Path, engine: str) -> None:
    """Case 39: R1 waits for R2, R2 for R3, R3 for R4 and R4 for R1 under min-hop alone."""
    folder = shared / "cases" / "39-credit-loop-in-ring"
    channels = channels_of(ring(4, names=NAMES))
    listed = csv.DictReader((folder / f"routes_{engine}.csv").read_text().splitlines())
    leaving = [int(channels.leaving[host]) for host in HOSTS]
    rows = []
    for row in listed:
        source, target = int(row["src"][1]) - 1, int(row["dst"][1]) - 1
        between = channels_between(channels, row["path"])
        rows.append([leaving[source], *between, leaving[target] ^ 1])
    there = explicit_paths(channels, rows)
    back = explicit_paths(channels, [[channel ^ 1 for channel in row[::-1]] for row in rows])
    outcome = run(channels, there, back, SHALLOW)
    if engine == "updn":
        outcome.assert_done()
    else:
        outcome.assert_stands_still()
        assert outcome.waiting == [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_a_queue_pair_that_waits_in_the_circle_fails_in_the_end() -> None:
    """What an operator sees: retry time-outs, then an error, and no packet lost."""
    config = replace(SHALLOW, transport=Transport(timeout_us=500.0, retry_count=2))
    outcome = by_tables("minhop", config)
    assert outcome.result.flows.has_failed.all()
    assert outcome.result.flows.timeouts.tolist() == [3, 3, 3, 3]
    assert outcome.result.ledger.dropped.sum() == 0
