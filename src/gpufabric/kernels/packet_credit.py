"""Credits of InfiniBand links: who may send how much, and what the far end has room for.

Counts of blocks are kept modulo 4096, as the flow control packet carries them: `sent` is the
specification's FCTBS, `received` its ABR, `limit` and `told` its FCCL.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import NOW
from gpufabric.kernels.packet_message import seek_message
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.packet_tape import note_hold
from gpufabric.kernels.packet_tape_structs import FREED, HELD_BACK

__all__ = [
    "MOST_AHEAD",
    "blocks_of",
    "free_room",
    "has_more",
    "mark_starved",
    "must_tell",
    "restart",
    "spend",
    "stamp",
    "take_limit",
    "take_room",
]

BLOCK_BITS = 6  # a block has 64 bytes
MOST_AHEAD = 2048  # blocks that a limit may be ahead
MODULUS = 2 * MOST_AHEAD
LANE_BITS = 4  # of the virtual lane in a flow control packet
NONE = -1


@kernel_part
def blocks_of(n_bytes: int) -> int:
    """Credits that a packet takes.

    Reference: tests/reference/packet_arbiter.py, blocks.
    """
    return n_bytes + (1 << BLOCK_BITS) - 1 >> BLOCK_BITS


@kernel_part
def limit_of(run: PacketRun, channel: int, lane: int) -> int:
    """Up to which block the receiver lets the sender go now.

    Reference: tests/reference/packet_credit.py, Credits.limit_now.
    """
    credit = run.credits[channel * (run.rules[0].n_classes + 1) + lane]
    free = min(credit.room - credit.held, MOST_AHEAD)
    return (credit.received + free) % MODULUS


@kernel_part
def must_tell(run: PacketRun, channel: int, lane: int) -> bool:
    """Tell whether the receiver must send a new limit, and note that it waits to be sent.

    Reference: tests/reference/packet_credit.py, Credits.tell.
    """
    credit = run.credits[channel * (run.rules[0].n_classes + 1) + lane]
    if credit.is_waiting:
        return False
    news = (limit_of(run, channel, lane) - credit.told) % MODULUS
    if news < run.rules[0].update_blocks:
        return False
    credit.is_waiting = 1
    return True


@kernel_part
def stamp(run: PacketRun, number: int, index: int) -> None:
    """Write the limit of now into a flow control packet that begins to leave.

    Reference: tests/reference/packet_credit.py, Credits.stamp.
    """
    packet, channel = run.packets[index], np.int64(run.ports[number].reverse)
    lane = np.int64(packet.number) & (1 << LANE_BITS) - 1
    credit = run.credits[channel * (run.rules[0].n_classes + 1) + lane]
    limit = limit_of(run, channel, lane)
    credit.told = limit
    credit.is_waiting = 0
    credit.n_updates += 1
    packet.number = limit << LANE_BITS | lane


@kernel_part
def restart(run: PacketRun, channel: int) -> None:
    """Let both ends of a link that comes up agree on the limits again.

    Reference: tests/reference/packet_credit.py, Credits.restart.
    """
    for lane in range(run.rules[0].n_classes):
        credit = run.credits[channel * (run.rules[0].n_classes + 1) + lane]
        credit.limit = credit.told = limit_of(run, channel, lane)


@kernel_part
def take_limit(run: PacketRun, number: int, message: int) -> None:
    """Note a limit that has come for a sending port.

    Reference: tests/reference/packet_credit.py, Credits.take_limit.
    """
    lane = message & (1 << LANE_BITS) - 1
    run.credits[number * (run.rules[0].n_classes + 1) + lane].limit = message >> LANE_BITS


@kernel_part
def take_room(run: PacketRun, channel: int, lane: int, n_bytes: int) -> None:
    """Put a packet that came by a channel into the lane's receive buffer.

    Reference: tests/reference/packet_credit.py, Credits.take_room.
    """
    credit = run.credits[channel * (run.rules[0].n_classes + 1) + lane]
    blocks = blocks_of(n_bytes)
    credit.received = (credit.received + blocks) % MODULUS
    credit.held += blocks
    credit.most_held = max(credit.most_held, credit.held)


@kernel_part
def free_room(run: PacketRun, channel: int, lane: int, blocks: int) -> None:
    """Give back what a packet took of the lane's receive buffer.

    Reference: tests/reference/packet_credit.py, Credits.free_room.
    """
    run.credits[channel * (run.rules[0].n_classes + 1) + lane].held -= blocks


@kernel_part
def spend(run: PacketRun, number: int, index: int) -> None:
    """Take the credits of a packet that begins to leave, and note what it frees when it has left.

    Reference: tests/reference/packet_credit.py, Credits.spend.
    """
    packet, link = run.packets[index], run.links[number]
    lane, blocks = np.int64(packet.lane), blocks_of(np.int64(packet.n_bytes))
    credit = run.credits[number * (run.rules[0].n_classes + 1) + lane]
    credit.sent = (credit.sent + blocks) % MODULUS
    link.frees = packet.channel
    link.frees_lane = packet.came_lane
    link.frees_blocks = blocks


@kernel_part
def has_more(run: PacketRun, number: int, lane: int, blocks: int) -> bool:
    """Tell whether a lane has credits for one packet and for another of that size.

    Reference: tests/reference/packet_cct.py, Fecn.mark.
    """
    credit = run.credits[number * (run.rules[0].n_classes + 1) + lane]
    return (credit.limit - credit.sent - 2 * blocks) % MODULUS <= MOST_AHEAD


@kernel_part
def next_bytes(run: PacketRun, number: int, lane: int) -> int:
    """Size of what a port would send next on a lane, of packets and then of flows [byte].

    Reference: tests/reference/packet_credit.py, Credits.next_bytes.
    """
    queue = run.queues[number * (run.rules[0].n_classes + 1) + lane]
    if queue.first != NONE:
        return int(run.packets[queue.first].n_bytes)
    flow = run.flows[queue.first_flow]
    size = flow.size_middle
    if flow.next < flow.first or flow.end <= flow.next < flow.limit:
        seek_message(run, np.int64(queue.first_flow), np.int64(flow.next))
    if flow.next == flow.first:
        size = flow.size_first
    elif flow.next == flow.end - 1:
        size = flow.size_last
    return int(run.serial[size].n_bytes)


@kernel_part
def mark_starved(run: PacketRun, number: int) -> None:
    """Note which lanes of a port have something to send and no credits for it.

    Reference: tests/reference/packet_credit.py, Credits.mark_starved.
    """
    port, now = run.ports[number], run.clock[NOW]
    n_classes = run.rules[0].n_classes
    wanted = np.int64(port.queued | port.ready)
    if wanted >> n_classes & 1:  # a flow control packet goes first and needs no credits
        return
    for lane in range(n_classes):
        bit = np.int64(1) << lane
        if wanted & bit == 0:
            continue
        credit = run.credits[number * (n_classes + 1) + lane]
        ahead = (credit.limit - credit.sent - blocks_of(next_bytes(run, number, lane))) % MODULUS
        held = run.held[number * (n_classes + 1) + lane]
        if ahead > MOST_AHEAD and port.paused & bit == 0:
            port.paused |= bit
            held.since_ps = now
            held.n_pauses += 1
            note_hold(run, number, lane, HELD_BACK)
        elif ahead <= MOST_AHEAD and port.paused & bit:
            port.paused &= ~bit
            held.held_ps += now - held.since_ps
            note_hold(run, number, lane, FREED)
