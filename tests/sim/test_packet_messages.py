"""Several messages on one queue pair: packet numbers, window and rate go through their borders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import After, Operation, PacketProblem, simulate_packets
from gpufabric.sim.packet_config import (
    Control,
    ControlKind,
    Dcqcn,
    Ecn,
    PacketConfig,
    Transport,
)
from gpufabric.sim.packet_faults import BitErrors
from tests.sim.packet_cases import US, incast, problem_of, star

BYTE_PS = 80  # at 100 Gb/s
AROUND, RETH, GAP = 62, 16, 20  # bytes
FLAT_PS = 2 * US + 500_000
BARE = PacketConfig(ecn=None)


def on_one_pair(sizes: list[int], start_us: list[float] | None = None) -> PacketProblem:
    """Messages from host 0 to host 1, all on one queue pair."""
    starts = None if start_us is None else [round(one * US) for one in start_us]
    problem = problem_of(star(2), 2, [(0, 1, size) for size in sizes], starts)
    nothing = np.zeros(len(sizes), np.int32)
    return replace(problem, queue_pair=nothing, path=nothing)


def arrivals_ps(sizes: list[int]) -> list[int]:
    """Last byte of each message, where all packets go one behind the other over two links."""
    left = arrived = 0
    last = []
    for size in sizes:
        payloads = [*[4096] * ((size - 1) // 4096), size - (size - 1) // 4096 * 4096]
        for at, payload in enumerate(payloads):
            takes = (payload + AROUND + GAP + (RETH if at == 0 else 0)) * BYTE_PS
            left += takes
            arrived = max(arrived, left + FLAT_PS) + takes
        last.append(arrived)
    return last


def test_messages_follow_each_other_without_a_gap_and_each_has_its_own_time() -> None:
    sizes = [10_000, 1, 4096, 30_000]
    flows = simulate_packets(on_one_pair(sizes), BARE).flows
    assert flows.fct_ps.tolist() == arrivals_ps(sizes)
    assert flows.started_ps.tolist() == [0, 0, 0, 0]
    assert flows.acked_packets.tolist() == [3, 1, 1, 8]
    assert (np.diff(flows.acked_ps) > 0).all()


def test_a_message_in_time_finds_the_pair_idle_and_takes_as_long_as_the_first() -> None:
    flows = simulate_packets(on_one_pair([10_000, 10_000], [0.0, 50.0]), BARE).flows
    assert flows.fct_ps[0] == flows.fct_ps[1]
    assert flows.started_ps.tolist() == [0, 50 * US]


def test_a_message_whose_turn_has_not_come_waits_for_the_one_before_it() -> None:
    flows = simulate_packets(on_one_pair([10_000, 10_000], [50.0, 0.0]), BARE).flows
    assert flows.delivered_ps[1] > flows.delivered_ps[0] > 50 * US
    assert flows.started_ps.tolist() == [50 * US, 0]


def test_a_window_counts_the_packets_of_all_messages() -> None:
    sizes = [4096] * 12
    config = replace(BARE, transport=Transport(window_bytes=4 * 4096))
    shared = simulate_packets(on_one_pair(sizes), config)
    own = simulate_packets(problem_of(star(2), 2, [(0, 1, size) for size in sizes]), config)
    one = simulate_packets(on_one_pair([sum(sizes)]), config)
    assert shared.flows.fct_ps.max() == pytest.approx(one.flows.fct_ps.max(), rel=0.01)
    assert own.flows.fct_ps.max() < 0.6 * shared.flows.fct_ps.max()


def test_go_back_n_sends_the_next_message_again_too() -> None:
    """The last packet of the first message is lost; the second is under way already."""
    first = 8
    problem = on_one_pair([first * 4096, 8 * 4096])
    before_us = ((first - 1) * (4096 + AROUND + GAP) + RETH) * BYTE_PS / US
    lost = BitErrors(0, before_us + 1.01, before_us + 1.4, loss_per_packet=1.0)
    result = simulate_packets(replace(problem, faults=(lost,)), BARE)
    assert result.ledger.dropped[0] == 1
    assert result.ledger.sent[2] == 1  # one NAK
    assert result.flows.repeats[0] > 5
    assert result.flows.repeats[1] == 0  # what is counted stands at the first message
    assert result.flows.out_of_order[0] == result.flows.repeats[0] - 1
    assert result.flows.acked_packets.tolist() == [8, 8]
    own = problem_of(star(2), 2, [(0, 1, 8 * 4096), (0, 1, 8 * 4096)])
    apart = simulate_packets(replace(own, faults=(lost,)), BARE)
    assert apart.flows.repeats.sum() < result.flows.repeats[0]


def test_the_rate_that_congestion_left_goes_on_with_the_next_message() -> None:
    config = PacketConfig(
        ecn=Ecn(5e3, 5e4, 1.0), dcqcn=Dcqcn(min_time_between_cnps_us=4.0, rpg_byte_reset=0)
    )
    problem = incast(2, 2_000_000)
    both = np.array([0, 1, 0, 1], np.int32)
    sizes = np.array([2_000_000, 2_000_000, 400_000, 400_000])
    shared = replace(problem, size_bytes=sizes, queue_pair=both, path=both)
    own = replace(problem, size_bytes=sizes, path=both)
    after = After.from_lists([[], [], [0, 1], [0, 1]])
    went_on, began_anew = (
        simulate_packets(replace(one, after=after), config).flows for one in (shared, own)
    )
    assert (went_on.rate_gbps < 60.0).all()
    assert went_on.fct_ps[2:].min() > 1.2 * 400_000 * BYTE_PS
    assert went_on.started_ps[2] == went_on.delivered_ps[:2].max()
    assert began_anew.started_ps[2] == began_anew.delivered_ps[:2].max()


def test_an_idle_pair_has_its_initial_credit_again() -> None:
    config = replace(BARE, controls=(Control(ControlKind.RCCC),))
    flows = simulate_packets(on_one_pair([400_000, 400_000], [0.0, 100.0]), config).flows
    assert flows.fct_ps[1] == pytest.approx(flows.fct_ps[0], rel=0.01)
    together = simulate_packets(on_one_pair([400_000, 400_000]), config).flows
    assert together.fct_ps[1] == pytest.approx(
        simulate_packets(on_one_pair([800_000]), config).flows.fct_ps[0], rel=0.01
    )


def test_messages_of_a_pair_must_fit_it() -> None:
    problem = on_one_pair([10, 10])
    wrong = replace(problem, operation=np.array([Operation.WRITE, Operation.READ]))
    with pytest.raises(InputError, match=r"operation\[1\]: it does not fit its queue pair"):
        simulate_packets(wrong, BARE)
    with pytest.raises(InputError, match=r"path\[1\]: it does not fit"):
        simulate_packets(replace(incast(2, 10), queue_pair=np.zeros(2, np.int32)), BARE)
    with pytest.raises(InputError, match="no message has queue pair 0"):
        simulate_packets(replace(problem, queue_pair=np.ones(2, np.int32)), BARE)
    first_waits = replace(problem, after=After.from_lists([[1], []]))
    with pytest.raises(InputError, match="flow 0 waits for itself"):
        simulate_packets(first_waits, BARE)
