"""Stories from the field: what operators of RoCE have met, and what ends it."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import PacketProblem, PacketResult, Recording, simulate_packets
from gpufabric.sim.packet_config import (
    Dcqcn,
    Ecn,
    PacketConfig,
    PortOverride,
    SwitchBuffer,
    Transport,
    Watchdog,
)
from gpufabric.sim.packet_faults import PauseStorm
from gpufabric.sim.packet_pauses import pause_roots, pause_spans
from tests.conftest import ROOT
from tests.sim.packet_cases import US, Link, problem_of, wires_of

CASE = ROOT.parent / "shared/cases/25-pfc-deadlock-by-flooding"
BUFFER = SwitchBuffer(xoff_bytes=40_000, xon_offset_bytes=10_000)
BARE = PacketConfig(ecn=None, buffer=BUFFER, transport=Transport(timeout_us=0.0))

# Hosts 0 … 2 at the first leaf (5), 3 and 4 at the second (7), one spine (6) between: the channel
# of link l is 2l away from what is named first.
CLOS: list[Link] = [
    *((host, 5, 100.0, US) for host in range(3)),
    *((host, 7, 100.0, US) for host in (3, 4)),
    (5, 6, 400.0, US),
    (7, 6, 400.0, US),
]
TO_HOST_3, TO_HOST_4, LEAF_TO_SPINE, SPINE_TO_LEAF = 7, 9, 10, 13


def stormy(config: PacketConfig, until_us: int) -> PacketResult:
    """Host 0 sends to host 3, whose NIC pauses for ever from 20 us on; host 2 sends to host 4."""
    problem = problem_of(CLOS, 5, [(0, 3, 10**7), (2, 4, 10**6)])
    storm = PauseStorm(channel=6, start_us=20.0, every_us=50.0)
    problem = replace(problem, faults=(storm,))
    return simulate_packets(problem, config, until_ps=until_us * US, recording=Recording())


def test_a_storm_from_one_nic_spreads_over_the_fabric_to_those_who_do_not_send_to_it() -> None:
    result = stormy(BARE, 600)
    first = [TO_HOST_3, SPINE_TO_LEAF, LEAF_TO_SPINE, 0]
    paused_ps = result.ports.paused_ps[[*first, 4], 0]
    # One after the other, from the NIC back to both hosts of the other leaf, and until the end.
    assert (np.diff(paused_ps[:4]) < 0).all()
    assert (paused_ps > 500 * US).all()
    assert result.flows.fct_ps[1] == -1  # a victim: host 4 is idle and its link is free
    assert result.ports.paused_ps[TO_HOST_4].sum() == 0
    assert result.ledger.dropped.sum() == 0
    assert result.pause_log is not None
    root = pause_roots(pause_spans(result.pause_log))[0]
    assert (root.is_nic, root.channel) == (True, TO_HOST_3)
    assert root.channels.tolist() == sorted([*first, 4])


def test_the_watchdog_of_the_last_switch_ends_the_storm_for_the_others() -> None:
    watchdog = Watchdog(detect_us=100.0, restore_us=100.0)
    only_there = PortOverride(switches=(0, 1), has_watchdog=False)
    config = replace(BARE, watchdog=watchdog, overrides=(only_there,))
    result = stormy(config, 600)
    assert np.argwhere(result.ports.storms).tolist() == [[TO_HOST_3, 0]]
    # Detected 100 us after the pause of the NIC took effect; then all is as without a storm.
    assert 120 * US < result.flows.fct_ps[1] < 220 * US
    assert result.drops["watchdog"] == result.ledger.dropped.sum() > 0
    others = result.ports.paused_ps[[SPINE_TO_LEAF, LEAF_TO_SPINE, 0, 4], 0]
    assert (others < 120 * US).all()
    assert result.ports.storm_ps[TO_HOST_3, 0] > 450 * US  # the NIC pauses still


def flood(rows: list[list[str]], names: list[str]) -> tuple[PacketProblem, dict[str, int]]:
    """Flows along rows of names; hosts are S…, leaves (T0, T1) and spines (La, Lb) follow."""
    hosts = [name for name in names if name[0] == "S"]
    order = hosts + [name for name in names if name[0] != "S"]
    pairs = {tuple(sorted(pair)) for row in rows for pair in itertools.pairwise(row)}
    links: list[Link] = [
        (*sorted((order.index(a), order.index(b))), 100.0, 100_000) for a, b in sorted(pairs)
    ]
    channel = {}
    for at, (a, b, _, _) in enumerate(links):
        channel[f"{order[a]}-{order[b]}"], channel[f"{order[b]}-{order[a]}"] = 2 * at, 2 * at + 1
    there = [[channel[f"{a}-{b}"] for a, b in itertools.pairwise(row)] for row in rows]
    back = [[one ^ 1 for one in row[::-1]] for row in there]
    wires = wires_of(links, len(hosts))
    sizes = np.full(len(rows), 400_000)
    return PacketProblem(wires, Paths.from_lists(there), Paths.from_lists(back), sizes), channel


UP_DOWN = [["S1", "T0", "La", "T1", "S3"], ["S4", "T1", "Lb", "T0", "S2"]]
FLOODED = [
    ["S1", "T0", "La", "T1", "Lb", "T0", "S2"],
    ["S4", "T1", "Lb", "T0", "La", "T1", "S3"],
]
SHALLOW = replace(BARE, buffer=SwitchBuffer(xoff_bytes=15_000, xon_offset_bytes=5_000))


def edges(rows: list[list[str]]) -> set[tuple[str, str]]:
    """Ingress link and egress link of every switch on the rows."""
    triples = [row[at : at + 3] for row in rows for at in range(len(row) - 2)]
    return {(f"{a}-{b}", f"{b}-{c}") for a, b, c in triples}


def edges_of(path: Path) -> set[tuple[str, str]]:
    rows = csv.reader(line for line in path.read_text().splitlines() if not line.startswith("#"))
    return {(a, b) for a, b in rows}


def test_the_rows_are_those_of_the_case() -> None:
    if not CASE.is_dir():
        pytest.skip("the shared cases are not here")
    normal = edges_of(CASE / "edges_normal.csv")
    assert edges(UP_DOWN) == normal
    assert edges(FLOODED) <= normal | edges_of(CASE / "edges_flood_added.csv")
    assert edges(UP_DOWN + FLOODED) == normal | edges_of(CASE / "edges_flood_added.csv")


def test_flooding_in_a_clos_makes_a_deadlock_and_up_down_makes_none() -> None:
    names = ["S1", "S2", "S3", "S4", "T0", "T1", "La", "Lb"]
    problem, _ = flood(UP_DOWN, names)
    result = simulate_packets(problem, SHALLOW)
    assert (result.flows.acked_ps > 0).all()
    assert result.deadlock is None
    problem, channel = flood(FLOODED, names)
    result = simulate_packets(problem, SHALLOW)
    assert (result.flows.fct_ps == -1).all()
    assert result.ledger.dropped.sum() == 0
    assert result.deadlock is not None
    circle = {channel[name] for name in ("T0-La", "La-T1", "T1-Lb", "Lb-T0")}
    assert {one.channel for one in result.deadlock.cycle} == circle


def test_a_watchdog_breaks_the_deadlock_and_pays_with_packets() -> None:
    names = ["S1", "S2", "S3", "S4", "T0", "T1", "La", "Lb"]
    problem, _ = flood(FLOODED, names)
    config = replace(
        SHALLOW,
        watchdog=Watchdog(detect_us=50.0, restore_us=50.0),
        transport=Transport(timeout_us=200.0),
    )
    result = simulate_packets(problem, config)
    assert (result.flows.acked_ps > 0).all()
    assert result.ports.storms.sum() > 0
    assert result.drops["watchdog"] > 0
    assert result.deadlock is None


# Hosts 0 … 2 at the first leaf (7), 3 … 6 at the second (8).
PAIR: list[Link] = [
    *((host, 7, 100.0, US) for host in range(3)),
    *((host, 8, 100.0, US) for host in range(3, 7)),
    (7, 8, 400.0, US),
]


def victim(ecn: Ecn | None) -> tuple[float, int]:
    """Share of its link that a flow gets which only passes by a congested port; pauses of hosts."""
    flows = [(0, 3, 10**8), (1, 3, 10**8), (2, 4, 10**8), (5, 3, 10**8), (6, 3, 10**8)]
    dcqcn = Dcqcn(min_time_between_cnps_us=4.0)
    config = replace(
        BARE,
        ecn=ecn,
        dcqcn=None if ecn is None else dcqcn,
        buffer=replace(BUFFER, xoff_bytes=150_000, xon_offset_bytes=20_000),
    )
    result = simulate_packets(problem_of(PAIR, 7, flows), config, until_ps=400 * US)
    share = float(result.flows.acked_packets[2]) * 4178 * 80 / (400 * US)
    return share, int(result.ports.paused_ps[4, 0])


def test_a_victim_of_pfc_is_cured_by_ecn_that_acts_before_pfc() -> None:
    # Three inputs share host 3's link; the first leaf's is stopped for two thirds of the time and
    # with it the victim, which is a third of what comes by it.
    without, stopped_ps = victim(None)
    assert without < 0.25
    assert stopped_ps > 100 * US
    late, late_ps = victim(Ecn(5e6, 1e7, 0.2))  # Kmin above what PFC lets a queue grow to
    assert late == pytest.approx(without, rel=0.05)
    assert late_ps == pytest.approx(stopped_ps, rel=0.05)
    tuned, tuned_ps = victim(Ecn(20_000, 60_000, 0.5))
    assert tuned > 2 * without
    assert tuned_ps < stopped_ps / 3
