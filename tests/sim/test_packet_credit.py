from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_config import ClassKind, PacketConfig, TrafficClass, Transport
from gpufabric.sim.packet_faults import BitErrors, LinkFlap
from gpufabric.sim.packet_infiniband import BLOCK_BYTES
from gpufabric.sim.packet_infiniband_config import Credits
from gpufabric.sim.packet_profiles import infiniband
from tests.sim.packet_cases import US, incast, problem_of, star

CUTS = infiniband()
SUBNET = replace(CUTS, credits=Credits())  # stores and forwards
FORWARD_PS = 190_000
DATA, FIRST, GAP = 26, 16, 2


def wire(payload: int, *, first: bool = False) -> int:
    return payload + DATA + GAP + (FIRST if first else 0)


def test_one_packet_takes_serialisation_propagation_and_forwarding_to_the_picosecond() -> None:
    problem = problem_of([(0, 2, 100.0, 3 * US), (1, 2, 400.0, US)], 2, [(0, 1, 1000)])
    flows = simulate_packets(problem, SUBNET).flows
    there = wire(1000, first=True) * (80 + 20) + 4 * US + FORWARD_PS
    assert flows.fct_ps.tolist() == [there]
    # The ACK waits at the receiver while a flow control packet of 8 bytes leaves, if one does.
    assert flows.acked_ps.tolist() == [there + 32 * (80 + 20) + 4 * US + FORWARD_PS]


@pytest.mark.parametrize("n", [2, 7])
def test_incast_keeps_the_last_link_full_and_drops_nothing(n: int) -> None:
    size = 40 * 4096
    result = simulate_packets(incast(n, size), SUBNET)
    each = wire(4096, first=True) + 39 * wire(4096)
    pipeline = 80 * wire(4096, first=True) + 2 * US + FORWARD_PS
    # Flow control packets of the other direction are all that comes between.
    late = result.flows.fct_ps.max() - (n * each * 80 + pipeline)
    assert 0 <= late <= 80 * 8 * int(result.ports.packets[1])
    assert result.ledger.dropped.sum() == 0
    assert result.ports.pauses.sum() > 0


@pytest.mark.parametrize(("gbps", "delay_ps"), [(100.0, US), (400.0, US // 2), (800.0, US // 5)])
def test_the_default_buffer_keeps_the_speed_of_its_cable(gbps: float, delay_ps: int) -> None:
    n = 400
    problem = problem_of(star(2, gbps, delay_ps), 2, [(0, 1, n * 4096)])
    result = simulate_packets(problem, SUBNET)
    assert result.credits is not None
    assert result.credits.room_blocks.max() <= 2048
    n_bytes = n * wire(4096) + FIRST + wire(4096, first=True)
    # The switch tells the receiver's NIC of room for ACKs, one block each, after every 64.
    n_bytes += n // 64 * 8
    alone_ps = n_bytes * 8000 / gbps + 2 * delay_ps + FORWARD_PS
    assert result.flows.fct_ps.tolist() == [alone_ps]


def test_a_short_buffer_gives_one_buffer_for_each_round_trip() -> None:
    """A buffer of one packet and told at once: one packet, then its credits, one after another."""
    delay_ps, n = 20 * US, 50
    full = -(-(4096 + DATA + FIRST) // BLOCK_BYTES)
    config = replace(SUBNET, credits=Credits((full + 1) * BLOCK_BYTES, update_blocks=1))
    problem = problem_of([(0, 2, 100.0, delay_ps), (1, 2, 400.0, 1000)], 2, [(0, 1, n * 4096)])
    result = simulate_packets(problem, config)
    # In, forwarded, out of the switch at four times the speed, and 8 bytes back.
    trip = 80 * wire(4096) + 2 * delay_ps + FORWARD_PS + 20 * wire(4096) + 80 * 8
    last = 80 * wire(4096) + delay_ps + FORWARD_PS + 20 * wire(4096) + 1000
    more = (80 + 20) * FIRST  # the first packet
    acks = 80 * 32  # an ACK may be on its way when the flow control packet wants to leave
    assert 0 <= result.flows.fct_ps[0] - ((n - 1) * trip + last + more) <= (n - 1) * acks


def test_no_more_than_2048_blocks_are_ever_on_a_cable() -> None:
    """A large buffer does not help a long cable: the limit is 131,072 bytes ahead at most."""
    delay_ps, n = 100 * US, 400
    config = replace(SUBNET, credits=Credits(10_000_000))
    problem = problem_of([(0, 2, 400.0, delay_ps), (1, 2, 400.0, 1000)], 2, [(0, 1, n * 4096)])
    result = simulate_packets(problem, config)
    blocks = -(-(4096 + DATA) // BLOCK_BYTES)
    in_a_trip = 2048 // blocks
    trips = n / in_a_trip
    assert result.flows.fct_ps[0] == pytest.approx(trips * 2 * delay_ps, rel=0.03)


def test_credits_and_buffers_that_make_no_sense_are_told() -> None:
    problem = incast(2, 1000)

    def said(config: PacketConfig) -> str:
        with pytest.raises(InputError) as caught:
            simulate_packets(problem, config)
        return str(caught.value)

    assert "at least 129: a full packet and update_blocks" in said(
        replace(SUBNET, credits=Credits(128 * 64))
    )
    assert "credits.update_blocks" in said(replace(SUBNET, credits=Credits(0, 0)))
    assert "1 classes are credited, and there are no credits" in said(replace(SUBNET, credits=None))
    mixed = (TrafficClass(ClassKind.CREDITED), TrafficClass(ClassKind.LOSSY))
    assert "1 of 2 classes are credited" in said(replace(SUBNET, classes=mixed))


def test_room_of_a_smaller_mtu_is_enough() -> None:
    config = replace(
        SUBNET, credits=Credits(64 * (5 + 4), 4), transport=Transport(mtu_bytes=256, timeout_us=0.0)
    )
    result = simulate_packets(incast(5, 10_000), config)
    assert (result.flows.fct_ps > 0).all()
    assert result.credits is not None
    assert result.credits.most_held_blocks.max() <= 9
    assert np.unique(result.credits.room_blocks).tolist() == [9]


@pytest.mark.parametrize("n_switches", [1, 2, 5])
def test_a_switch_that_cuts_through_adds_its_headers_and_its_delay(n_switches: int) -> None:
    links = [(0, 2, 100.0, US), *[(at, at + 1, 100.0, US) for at in range(2, n_switches + 1)]]
    links.append((1, n_switches + 1, 100.0, US))
    problem = problem_of(links, 2, [(0, 1, 1000)])
    flows = simulate_packets(problem, CUTS).flows
    each = 80 * 64 + US + FORWARD_PS
    assert flows.fct_ps.tolist() == [n_switches * each + 80 * wire(1000, first=True) + US]
    # An ACK of 32 bytes is shorter than the headers that a switch waits for: it is stored.
    back = n_switches * (80 * 32 + US + FORWARD_PS) + 80 * 32 + US
    assert flows.acked_ps.tolist() == [flows.fct_ps[0] + back]


def test_a_switch_with_a_faster_port_stores_what_comes() -> None:
    """Cut through would run dry: the rest of the packet comes more slowly than it leaves."""
    slow_in = problem_of([(0, 2, 100.0, US), (1, 2, 400.0, US)], 2, [(0, 1, 1000)])
    slow_out = problem_of([(0, 2, 400.0, US), (1, 2, 100.0, US)], 2, [(0, 1, 1000)])
    n_bytes = wire(1000, first=True)
    stored = simulate_packets(slow_in, CUTS).flows.fct_ps
    assert stored.tolist() == [100 * n_bytes + 2 * US + FORWARD_PS]
    cut = simulate_packets(slow_out, CUTS).flows.fct_ps
    assert cut.tolist() == [20 * 64 + 80 * n_bytes + 2 * US + FORWARD_PS]


def test_a_busy_port_makes_a_packet_wait_as_if_it_were_stored() -> None:
    """At a full link cut through gains the time of a packet once, and nothing after."""
    cut = simulate_packets(incast(4, 400_000), CUTS)
    stored = simulate_packets(incast(4, 400_000), SUBNET)
    gain = stored.flows.fct_ps.max() - cut.flows.fct_ps.max()
    assert gain == pytest.approx(80 * (wire(4096, first=True) - 64), rel=0.05)
    assert cut.ledger.dropped.sum() == 0


def test_credits_of_lost_packets_come_back() -> None:
    """A buffer of three packets, a dirty fibre and a link that flaps: all arrives in the end."""
    config = replace(
        SUBNET, credits=Credits(4 * 65 * 64), transport=Transport(timeout_us=100.0, retry_count=50)
    )
    faults = (BitErrors(0, loss_per_packet=0.2), LinkFlap(3, 20.0, 300.0, 7.0, 23.0))
    problem = replace(problem_of(star(2), 2, [(0, 1, 200 * 4096)]), faults=faults)
    result = simulate_packets(problem, config)
    assert result.ledger.dropped[0] > 20
    assert (result.flows.acked_ps > 0).all()
    assert result.ledger.is_balanced
