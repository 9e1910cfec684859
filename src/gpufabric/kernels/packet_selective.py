"""Selective repeat: the receiver keeps what follows a missing packet, and only that is sent again.

R. Mittal et al., IRN, SIGCOMM 2018: a NAK carries the packet that is missing and the one that has
come. A packet is lost when one so far behind it has come; a packet that was lost twice waits for
the retry time-out.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["find_lost", "forget_acked", "keep_early", "note_arrived", "take_kept"]


@kernel_part
def find_lost(run: PacketRun, number: int) -> bool:
    """Go on to the next packet of a flow that is lost; tell whether there is one.

    Reference: tests/reference/packet_selective.py, lost.
    """
    flow, most = run.flows[number], run.rules[0].most_apart
    end = flow.highest - run.rules[0].reorder
    while flow.again < end and run.sacked[number * most + flow.again % most]:
        flow.again += 1
    return flow.again < end


@kernel_part
def note_arrived(run: PacketRun, number: int, packet_number: int) -> None:
    """Note at the sender that a packet after a missing one has arrived.

    Reference: tests/reference/packet_ends.py, Engine.receive.
    """
    flow, most = run.flows[number], run.rules[0].most_apart
    if packet_number >= flow.acked:
        run.sacked[number * most + packet_number % most] = 1
        flow.highest = max(flow.highest, packet_number)


@kernel_part
def forget_acked(run: PacketRun, number: int, expected: int) -> None:
    """Forget at the sender what is known of packets before `expected`.

    Reference: tests/reference/packet_ends.py, Engine.acknowledge.
    """
    flow, most = run.flows[number], run.rules[0].most_apart
    for at in range(flow.acked, min(expected, flow.acked + most)):
        run.sacked[number * most + at % most] = 0
    flow.again = max(flow.again, np.int32(expected))


@kernel_part
def keep_early(run: PacketRun, number: int, packet_number: int) -> bool:
    """Keep a packet at the receiver that follows a missing one; tell whether it came for the first.

    Reference: tests/reference/packet_ends.py, Engine.receive_data.
    """
    most = run.rules[0].most_apart
    at = number * most + packet_number % most
    is_new = run.kept[at] == 0
    run.kept[at] = 1
    return is_new


@kernel_part
def take_kept(run: PacketRun, number: int) -> None:
    """Take in at the receiver the kept packets that are no longer early.

    Reference: tests/reference/packet_ends.py, Engine.receive_data.
    """
    flow, most = run.flows[number], run.rules[0].most_apart
    while run.kept[number * most + flow.expected % most]:
        run.kept[number * most + flow.expected % most] = 0
        flow.expected += 1
