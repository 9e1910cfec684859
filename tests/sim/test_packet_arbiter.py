"""Turns of virtual lanes at a port that all of them want."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_config import PacketConfig, PortOverride
from gpufabric.sim.packet_infiniband_config import Arbitration
from gpufabric.sim.packet_profiles import infiniband
from tests.sim.packet_cases import US, incast, problem_of, star

SIZE = 400 * 4096
BLOCKS = 65  # of a full packet


def shares(arbitration: Arbitration, n_lanes: int) -> list[float]:
    """Part of what hosts 1 … n have sent to host 0, each on a lane of its own."""
    config = replace(infiniband(n_lanes), arbitration=arbitration, ack_class=-1)
    problem = replace(incast(n_lanes, SIZE), traffic_class=np.arange(n_lanes, dtype=np.int8))
    acked = simulate_packets(problem, config, until_ps=100 * US).flows.acked_packets
    assert acked.max() < 400
    return [float(part) for part in acked / acked.sum()]


def test_weights_of_one_table_divide_the_port() -> None:
    weights = (1 * BLOCKS, 3 * BLOCKS)
    got = shares(Arbitration(low_lanes=(0, 1), low_weights=weights), 2)
    assert got == pytest.approx([0.25, 0.75], abs=0.02)


def test_the_last_packet_of_a_turn_may_go_over() -> None:
    """Weights of 64 and 66 blocks are one and two packets of 65 blocks."""
    got = shares(Arbitration(low_lanes=(0, 1), low_weights=(64, 66)), 2)
    assert got == pytest.approx([1 / 3, 2 / 3], abs=0.02)


@pytest.mark.parametrize(("limit", "burst"), [(0, 1), (2, 2), (8, 8), (40, 40)])
def test_the_limit_of_high_priority_lets_a_packet_of_low_priority_go(
    limit: int, burst: int
) -> None:
    """A limit of n * 4,096 bytes is n packets: 64 n blocks are used up by the n-th of 65."""
    rules = Arbitration((1,), (255,), (0,), (64,), high_limit=limit)
    got = shares(rules, 2)
    assert got[0] == pytest.approx(1 / (burst + 1), abs=0.02)


def test_high_priority_without_end_starves_low_priority() -> None:
    assert shares(Arbitration((1,), (255,), (0,), (64,), high_limit=255), 2)[0] < 0.03


def test_a_lane_in_two_tables_and_one_that_has_nothing_to_send() -> None:
    rules = Arbitration((1, 2), (64, 0), (0, 1, 2), (64, 64, 64), high_limit=0)
    # In a round high priority sends a packet of lane 1, then low priority one of 0, 1 and 2.
    got = shares(rules, 3)
    assert got == pytest.approx([1 / 6, 4 / 6, 1 / 6], abs=0.03)


def test_a_full_lane_does_not_stop_another() -> None:
    """Host 3 takes little; behind its packets a message to host 1 waits, or passes on its lane."""
    links = star(4)
    links[3] = (3, 4, 1.0, US)
    problem = problem_of(links, 4, [(0, 3, 400_000), (0, 1, 400_000)])
    alone = simulate_packets(problem_of(links, 4, [(0, 1, 400_000)]), infiniband()).flows.fct_ps[0]
    config = replace(infiniband(2), ack_class=-1)
    same = simulate_packets(problem, config).flows.fct_ps[1]
    apart = replace(problem, traffic_class=np.array([0, 1], np.int8))
    own = simulate_packets(apart, config).flows.fct_ps[1]
    assert same > 10 * alone
    assert own < 2.1 * alone


def test_a_switch_that_maps_a_service_level_to_another_lane() -> None:
    """SL 0 leaves its NIC on lane 0 and goes on from the switch on lane 1."""
    config = replace(infiniband(2), overrides=(PortOverride(classes=(0,), queue=1),))
    result = simulate_packets(problem_of(star(2), 2, [(0, 1, SIZE)]), config)
    assert result.credits is not None
    # Into the switch by channel 0 on lane 0; out of it by channel 3 on lane 1.
    assert (result.credits.most_held_blocks[0] > 0).tolist() == [True, False]
    assert (result.credits.most_held_blocks[3] > 0).tolist() == [False, True]


def test_tables_that_make_no_sense_are_told() -> None:
    def said(arbitration: Arbitration) -> str:
        config: PacketConfig = replace(infiniband(2), arbitration=arbitration)
        with pytest.raises(InputError) as caught:
            simulate_packets(incast(2, 1000), config)
        return str(caught.value)

    assert "lane 1 has no entry with a weight" in said(Arbitration())
    assert "arbitration.low_weights: 1 weights." in said(Arbitration(low_lanes=(0, 1)))
    wrong = Arbitration(low_lanes=(0, 1, 5), low_weights=(64, 256, 64), high_limit=256)
    for place in ("low_lanes", "low_weights", "high_limit"):
        assert f"arbitration.{place}" in said(wrong)
