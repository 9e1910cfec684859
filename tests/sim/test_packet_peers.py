"""Runs of public simulators, and ours with their semantics: ns-3 with RDMA, csg-htsim's RoCE.

Without rate control, with HPCC and with htsim's pauses, where the peers' rules are all there is,
times are equal. With DCQCN the marks are random: given the same random numbers (ns-3 makes a new
stream for each draw, the first after those of the links), nine runs of ten are equal in every
nanosecond, and of the other one a flow differs by a packet. That model also draws a number for each
PFC frame, its IP identification; so the run with a small buffer is held against the plain-Python
engine, which the kernel equals event for event. Over our own random numbers, means and largest
agree as closely as one sample can.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpufabric.sim.packet import PacketConfig, PacketProblem, simulate_packets
from gpufabric.sim.packet_profiles import (
    NS3_DCQCN,
    NS3_DCQCN_PAPER,
    like_htsim,
    like_ns3,
    like_ns3_hpcc,
)
from tests.reference.mrg32k3a import first_numbers
from tests.reference.packet_ends import Engine
from tests.reference.packet_records import Packet
from tests.sim.packet_cases import problem_of, star

PEERS = Path(__file__).parents[3] / "shared/peers/packet"
needs_peers = pytest.mark.skipif(
    not PEERS.exists(), reason="../shared with the other simulators' results is absent"
)
HOSTS = {"x1": 3, "x2": 9}
SIZE = {"x1": 2_000_000, "x2": 1_000_000}
SEEDS = 12


def their_fct_ns(run: str) -> dict[tuple[int, int], int]:
    for line in (PEERS / "fct.txt").read_text(encoding="utf-8").splitlines():
        name, *flows = line.split()
        if name == run:
            pairs = (flow.split("=") for flow in flows)
            ends = {tuple(map(int, key.split(">"))): ns_of(value) for key, value in pairs}
            return {(a, b): fct for (a, b), fct in ends.items()}
    raise AssertionError(run)


def ns_of(text: str) -> int:
    return round(float(text[:-2]) * 1000) if text.endswith("us") else int(text)


def config_of(variant: str) -> PacketConfig:
    dcqcn = NS3_DCQCN_PAPER if variant.endswith("paper") else NS3_DCQCN
    return like_ns3(
        payload_bytes=1000 if variant.endswith("1000B") else 4096,
        buffer_mib=1 if variant.endswith("buf1") else 32,
        dcqcn=None if variant.startswith("none") else dcqcn,
        has_window=variant.endswith("vwin"),
    )


def with_their_numbers(case: str, config: PacketConfig) -> PacketConfig:
    return replace(config, draws=first_numbers(10 + 8 * HOSTS[case], 6000))


def problem_like(case: str, flows: list[tuple[int, int]], size_bytes: int) -> PacketProblem:
    n = HOSTS[case]
    return problem_of(star(n), n, [(a, b, size_bytes) for a, b in flows])


def our_fct_ns(case: str, flows: list[tuple[int, int]], config: PacketConfig) -> list[int]:
    """From the start to the last ACK, as ns-3 counts."""
    result = simulate_packets(problem_like(case, flows, SIZE[case]), config)
    assert not any(result.drops.values())
    assert result.ledger.is_balanced
    ns: list[int] = (result.flows.acked_ps // 1000).tolist()
    return ns


@needs_peers
@pytest.mark.parametrize("variant", ["none", "none_1000B", "none_buf1"])
@pytest.mark.parametrize("case", ["x1", "x2"])
def test_without_rate_control_every_flow_ends_in_the_same_nanosecond(
    case: str, variant: str
) -> None:
    theirs = their_fct_ns(f"{case}_{variant}")
    assert our_fct_ns(case, list(theirs), config_of(variant)) == list(theirs.values())


@needs_peers
@pytest.mark.parametrize("case", ["x1", "x2"])
def test_hpcc(case: str) -> None:
    theirs = their_fct_ns(f"{case}_hp")
    ours = our_fct_ns(case, list(theirs), like_ns3_hpcc())
    assert ours == list(theirs.values())


@needs_peers
@pytest.mark.parametrize(
    ("case", "variant", "most_ns"),
    [
        ("x1", "dcqcn", 0),
        ("x1", "dcqcn_1000B", 0),
        ("x1", "dcqcn_buf1", 0),
        ("x1", "dcqcn_paper", 0),
        ("x1", "dcqcn_vwin", 0),
        ("x2", "dcqcn", 331),
        ("x2", "dcqcn_1000B", 0),
        ("x2", "dcqcn_paper", 0),
        ("x2", "dcqcn_vwin", 0),
    ],
)
def test_dcqcn_is_equal_with_the_same_random_numbers(case: str, variant: str, most_ns: int) -> None:
    theirs = their_fct_ns(f"{case}_{variant}")
    ours = our_fct_ns(case, list(theirs), with_their_numbers(case, config_of(variant)))
    assert np.abs(np.subtract(ours, list(theirs.values()))).max() <= most_ns


class DrawsForPauses(Engine):
    """The plain engine, but every PFC frame draws a number, after the mark of what leaves."""

    n_owed = 0

    def send_pfc(self, number: int, traffic: int, *, pause: bool) -> None:
        if pause:
            self.draw()
        else:
            self.n_owed += 1
        super().send_pfc(number, traffic, pause=pause)

    def first_waiting(self, number: int, traffic: int) -> Packet:
        packet = super().first_waiting(number, traffic)
        for _ in range(self.n_owed):
            self.draw()
        self.n_owed = 0
        return packet


@needs_peers
def test_dcqcn_with_pauses_is_equal_when_pauses_draw_numbers_too() -> None:
    theirs = their_fct_ns("x2_dcqcn_buf1")
    config = with_their_numbers("x2", config_of("dcqcn_buf1"))
    engine = DrawsForPauses(problem_like("x2", list(theirs), SIZE["x2"]), config)
    engine.run()
    assert [one.acked_ps // 1000 for one in engine.messages] == list(theirs.values())
    assert not engine.dropped


@needs_peers
@pytest.mark.parametrize(("case", "most_apart"), [("x1", 0.0), ("x2", 0.05)])
def test_htsim_ends_in_the_same_nanosecond_and_its_flows_with_it(
    case: str, most_apart: float
) -> None:
    """With eight senders, which of them is paused first hangs on ties and on when room is free."""
    theirs = their_fct_ns(f"csg_roce_{case}")
    config = like_htsim()
    payload_bytes = config.transport.mtu_bytes
    size_bytes = -(-SIZE[case] // payload_bytes) * payload_bytes
    result = simulate_packets(problem_like(case, list(theirs), size_bytes), config)
    ours, told = np.round(result.flows.acked_ps / 1000), np.array(list(theirs.values()))
    assert result.ledger.is_balanced
    assert not any(result.drops.values())
    assert ours.max() == told.max()
    assert ours.mean() == pytest.approx(told.mean(), rel=0.01)
    assert np.abs(ours / told - 1).max() <= most_apart


@needs_peers
@pytest.mark.parametrize("variant", ["dcqcn_1000B", "dcqcn_buf1", "dcqcn_paper"])
@pytest.mark.parametrize("case", ["x1", "x2"])
def test_dcqcn_with_other_random_numbers_agrees_on_mean_and_largest(
    case: str, variant: str
) -> None:
    theirs = their_fct_ns(f"{case}_{variant}")
    runs = np.array(
        [
            our_fct_ns(case, list(theirs), replace(config_of(variant), seed=seed))
            for seed in range(1, SEEDS + 1)
        ]
    )
    their_ns = np.array(list(theirs.values()))
    assert runs.mean() == pytest.approx(their_ns.mean(), rel=0.05)
    assert runs.max(axis=1).mean() == pytest.approx(their_ns.max(), rel=0.10)


@needs_peers
@pytest.mark.parametrize("case", ["x1", "x2"])
def test_the_run_of_few_marks_lies_within_ours(case: str) -> None:
    """Ten marks decide ``x1_dcqcn``: from seed to seed its mean varies by 8 %."""
    theirs = their_fct_ns(f"{case}_dcqcn")
    means = [
        np.mean(our_fct_ns(case, list(theirs), replace(config_of("dcqcn"), seed=seed)))
        for seed in range(1, 41)
    ]
    mean = np.mean(list(theirs.values()))
    assert abs(mean - np.mean(means)) < 2.5 * np.std(means)
