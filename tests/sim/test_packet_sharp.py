"""SHARP: an all-reduce added up by switches, packet by packet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.routing.channels import channels_of
from gpufabric.routing.sharp import reduction_trees
from gpufabric.routing.shortest import shortest_paths
from gpufabric.sim.packet import After, PacketResult, simulate_packets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_fabric import wires_of as wires_of_fabric
from gpufabric.sim.packet_profiles import infiniband
from gpufabric.sim.packet_sharp import AddingTree, Sharp, SharpProblem, sharp_problem
from tests.routing.small_fabrics import two_tiers
from tests.sim.packet_cases import US, Link, problem_of, wires_of

BARE = PacketConfig(ecn=None)
FORWARD_PS = 500_000
DATA_PS, ACK_PS = 80 * (4096 + 62 + 20), 80 * (66 + 20)
# Hosts 0 and 1 at switch 4, 2 and 3 at switch 5, and switch 6 above both; host h sends by 2h.
LINKS: list[Link] = [
    *((host, 4 + host // 2, 100.0, US) for host in range(4)),
    *((s, 6, 100.0, US) for s in (4, 5)),
]
TREE = AddingTree(np.array([0, 2, 4, 6], np.int32), np.array([8, 10], np.int32), root=2)


def reduced(size_bytes: int, sharp: Sharp | None = None) -> tuple[SharpProblem, PacketResult]:
    asked = sharp_problem(wires_of(LINKS, 4), TREE, size_bytes, sharp)
    return asked, simulate_packets(asked.problem, BARE)


def test_one_segment_goes_up_and_down_in_the_time_of_its_way() -> None:
    sharp = Sharp(reduction_ns=70.0)
    asked, result = reduced(4096, sharp)
    depth = 2
    ways = 4 + 6 * (depth - 1)  # links, and in and out of each unit
    through = 2 + 4 * (depth - 1)
    flat_ps = 2 * depth * US + through * FORWARD_PS + depth * 70_000
    ends = result.flows.delivered_ps[asked.to_members]
    assert ends.tolist() == [ways * DATA_PS + flat_ps] * 4


def test_many_segments_follow_each_other_as_fast_as_a_link_takes_them() -> None:
    n = 200
    asked, result = reduced(n * 4096)
    _one, alone = reduced(4096)
    total_ps = result.flows.delivered_ps[asked.to_members].max()
    first_ps = alone.flows.delivered_ps.max()
    # ACKs of the way up share the links of the way down.
    assert first_ps + (n - 1) * DATA_PS <= total_ps < first_ps + (n - 1) * (DATA_PS + ACK_PS) * 1.01
    assert result.ledger.dropped.sum() == 0


def test_each_nic_sends_half_of_what_a_ring_does_and_is_done_sooner() -> None:
    n, size = 4, 64 * 4096
    asked, result = reduced(size)
    part, steps = size // n, 2 * (n - 1)
    flows = [(host, (host + 1) % n, part) for _step in range(steps) for host in range(n)]
    rows = [
        [] if step == 0 else [(step - 1) * n + (host - 1) % n]
        for step in range(steps)
        for host in range(n)
    ]
    problem = replace(problem_of(LINKS, n, flows), after=After.from_lists(rows))
    ring = simulate_packets(problem, BARE)
    sent = [int(one.ports.wire_bytes[0]) for one in (result, ring)]
    assert sent[1] / sent[0] == pytest.approx(steps / n, rel=0.05)
    ends = result.flows.delivered_ps[asked.to_members].max()
    assert ends < ring.flows.delivered_ps.max() / (steps / n)


def test_a_tree_of_a_fabric_runs_on_infiniband() -> None:
    channels = channels_of(two_tiers(2, 2, 2))
    (tree,) = reduction_trees(shortest_paths(channels), channels.endpoints)
    wires = wires_of_fabric(channels.fabric, channels)
    asked = sharp_problem(wires, AddingTree.from_reduction(tree), 40_000)
    result = simulate_packets(asked.problem, infiniband())
    assert (result.flows.delivered_ps >= 0).all()
    assert asked.to_members.size == 4 * 10
    assert result.ledger.is_balanced


def test_what_is_no_tree_is_told() -> None:
    wires = wires_of(LINKS, 4)
    with pytest.raises(InputError, match="do not lead every member to switch 1"):
        sharp_problem(wires, replace(TREE, root=1), 4096)
    with pytest.raises(InputError, match="messages are too many"):
        sharp_problem(wires, TREE, 10**12)
