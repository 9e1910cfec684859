"""Ports: what waits there, what goes next, ECN marks, and PFC frames to the far end.

A port sends the PFC frames that wait, then the strict classes from the highest, then the others in
turn. Buffer is given back and ECN decided when a packet begins to leave. A port of a NIC takes a
class's waiting packets (ACKs, CNPs) before the flows of that class, which take turns.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_arbiter import charge_turn
from gpufabric.kernels.packet_buffer import admit, leaves_no_trace, may_resume, must_pause, release
from gpufabric.kernels.packet_cct import mark_fecn
from gpufabric.kernels.packet_credit import (
    blocks_of,
    free_room,
    must_tell,
    spend,
    stamp,
    take_room,
)
from gpufabric.kernels.packet_events import (
    ARRIVE,
    FREE_BY,
    KIND_BITS,
    NOW,
    REFRESH,
    give_back,
    post,
    push_later,
    take_packet,
)
from gpufabric.kernels.packet_hpcc import write_telemetry
from gpufabric.kernels.packet_look import look_at_waiting, plan_look
from gpufabric.kernels.packet_random import MARK_RANDOM, random_of
from gpufabric.kernels.packet_route import next_hop
from gpufabric.kernels.packet_settings import (
    LOSSLESS,
    LOSSY,
    UNCOUNTED,
    kind_of,
    kmax_of,
    kmin_of,
    pmax_of,
    queue_of,
)
from gpufabric.kernels.packet_structs import LOST_WITHOUT_WAY, PacketRun
from gpufabric.kernels.packet_tape import note_asked, note_busy, note_depth
from gpufabric.kernels.packet_turns import next_by_weight
from gpufabric.kernels.structs import Records

__all__ = [
    "ACK",
    "CNP",
    "DATA",
    "DROPS",
    "FORWARDS",
    "NAK",
    "NO_STORM",
    "PFC",
    "SIZE_ACK",
    "SIZE_CNP",
    "SIZE_PFC",
    "drop",
    "enqueue",
    "first_waiting",
    "forward",
    "free_credits",
    "give_room",
    "next_class",
    "send_pfc",
    "send_xoff",
    "take_credits",
    "take_waiting",
    "transmit",
]

DATA, ACK, NAK, CNP, PFC = range(5)  # kinds of packets
SIZE_PFC, SIZE_ACK, SIZE_CNP = range(3)  # size classes; those of data follow
NONE = -1
NO_STORM, FORWARDS, DROPS = range(3)  # what a watchdog does now


@kernel_part
def enqueue(run: PacketRun, number: int, traffic: int, index: int) -> None:
    """Put a packet at the end of a port's queue and note that the port may send it.

    Reference: tests/reference/packet.py, Engine.enqueue.
    """
    port = run.ports[number]
    queue = run.queues[number * (run.rules[0].n_classes + 1) + traffic]
    packet = run.packets[index]
    packet.following = NONE
    if queue.first == NONE:
        queue.first = index
        port.queued |= np.int64(1) << traffic
    else:
        run.packets[queue.last].following = index
    queue.last = index
    queue.n_bytes += packet.n_bytes
    queue.most_bytes = max(queue.most_bytes, queue.n_bytes)
    note_depth(run, number, traffic)
    look_at_waiting(run, number)


@kernel_part
def forward(run: PacketRun, index: int, channel: int) -> None:
    """Let a switch take a packet that came by `channel`, or drop it.

    Reference: tests/reference/packet.py, Engine.forward.
    """
    packet, rules = run.packets[index], run.rules[0]
    traffic = queue_of(run, channel, np.int64(packet.traffic))
    if rules.has_hops:
        out = next_hop(run, index, channel)
        if out == NONE:
            run.lost[LOST_WITHOUT_WAY] += 1
            if rules.has_credits:
                blocks = blocks_of(np.int64(packet.n_bytes))
                free_credits(run, channel, np.int64(packet.lane), blocks)
            drop(run, index)
            return
    else:
        packet.hop += 1
        out = np.int64(run.routes[packet.hop])
    packet.came_lane = packet.lane
    packet.lane = traffic
    if rules.has_pauses and run.pauses[out * (rules.n_classes + 1) + traffic].storm == DROPS:
        run.pauses[out * (rules.n_classes + 1) + traffic].n_dropped += 1
        drop(run, index)
        return
    kind = kind_of(run, channel, traffic)
    if rules.is_plain and goes_on(run, index, channel, out, kind):
        transmit(run, out, index)
        return
    if kind != UNCOUNTED:
        queued = run.queues[out * (rules.n_classes + 1) + traffic].n_bytes
        if kind == LOSSY and rules.tail > 0 and queued + packet.n_bytes > rules.tail:
            run.held[channel * (rules.n_classes + 1) + traffic].n_dropped += 1
            drop(run, index)
            return
        if not admit(run, channel, traffic, np.int64(packet.n_bytes)):
            drop(run, index)
            return
        enqueue(run, out, traffic, index)
        if kind == LOSSLESS and must_pause(run, channel, traffic):
            run.inputs[channel * (rules.n_classes + 1) + traffic].is_pausing = 1
            send_xoff(run, channel, traffic)
            note_asked(run, channel, traffic)
    else:
        enqueue(run, out, traffic, index)


@kernel_part
def goes_on(run: PacketRun, index: int, channel: int, out: int, kind: int) -> bool:
    """Tell whether a packet leaves its switch as it comes, without a change to any account.

    What a wait of no time leaves behind is noted: greatest depths, and whose turn it was.

    Reference: tests/reference/packet.py, Engine.forward.
    """
    packet, port, rules = run.packets[index], run.ports[out], run.rules[0]
    traffic, n_bytes = np.int64(packet.traffic), np.int64(packet.n_bytes)
    if port.free_ps > run.clock[FREE_BY] or port.queued | port.ready or port.paused >> traffic & 1:
        return False
    if kind != UNCOUNTED and not leaves_no_trace(run, channel, traffic, n_bytes, kind):
        return False
    queue = run.queues[out * (rules.n_classes + 1) + traffic]
    queue.most_bytes = max(queue.most_bytes, n_bytes)
    if not rules.strict >> traffic & 1:
        port.last = traffic
    return True


@kernel_part
def drop(run: PacketRun, index: int) -> None:
    """Count a packet as dropped and forget it.

    Reference: tests/reference/packet.py, Engine.drop.
    """
    packet = run.packets[index]
    count = run.counts[packet.kind]
    count.dropped += 1
    count.dropped_bytes += packet.n_bytes
    give_back(run, index)


@kernel_part
def send_pfc(run: PacketRun, number: int, traffic: int, is_pause: int) -> None:
    """Put a PFC frame for one class before all that waits at a port.

    Reference: tests/reference/packet.py, Engine.send_pfc.
    """
    index = new_link_packet(run, number)
    run.packets[index].number = 2 * traffic + is_pause
    enqueue(run, number, run.rules[0].n_classes, index)


@kernel_part
def new_link_packet(run: PacketRun, number: int) -> int:
    """Make a packet of the link itself: a PFC frame, or InfiniBand's flow control.

    Reference: tests/reference/packet.py, Engine.send_pfc.
    """
    index = take_packet(run)
    packet = run.packets[index]
    packet.flow = NONE
    packet.hop = NONE
    packet.channel = number
    packet.length = SIZE_PFC
    packet.kind = PFC
    packet.n_bytes = run.serial[SIZE_PFC].n_bytes
    run.counts[PFC].sent += 1
    run.counts[PFC].sent_bytes += packet.n_bytes
    return index


@kernel_part
def take_credits(run: PacketRun, index: int, channel: int) -> None:
    """Put a packet into the receive buffer of its lane; a NIC takes it out at once.

    Reference: tests/reference/packet_credit.py, Credits.take_room.
    """
    packet = run.packets[index]
    traffic, n_bytes = np.int64(packet.lane), np.int64(packet.n_bytes)
    take_room(run, channel, traffic, n_bytes)
    if run.ports[channel].head == NONE:
        free_room(run, channel, traffic, blocks_of(n_bytes))
    tell_limit(run, channel, traffic)


@kernel_part
def free_credits(run: PacketRun, channel: int, traffic: int, blocks: int) -> None:
    """Give back room of a lane's receive buffer and tell the sender if it is time.

    Reference: tests/reference/packet_credit.py, Credits.free_room.
    """
    free_room(run, channel, traffic, blocks)
    tell_limit(run, channel, traffic)


@kernel_part
def tell_limit(run: PacketRun, channel: int, traffic: int) -> None:
    """Send a flow control packet if the limit of a lane has grown enough.

    Reference: tests/reference/packet_credit.py, Credits.tell.
    """
    if must_tell(run, channel, traffic):
        port = np.int64(run.ports[channel].reverse)
        index = new_link_packet(run, port)
        run.packets[index].number = traffic
        enqueue(run, port, run.rules[0].n_classes, index)


@kernel_part
def send_xoff(run: PacketRun, channel: int, traffic: int) -> None:
    """Let an input pause the far end, and again before the pause is over if it has an end.

    Reference: tests/reference/packet_pause.py, Pauses.send.
    """
    send_pfc(run, np.int64(run.ports[channel].reverse), traffic, 1)
    if not run.rules[0].has_pauses:
        return
    place = channel * (run.rules[0].n_classes + 1) + traffic
    pause = run.pauses[place]
    if pause.pause_ps > 0:
        pause.again_ps = run.clock[NOW] + pause.refresh_ps
        push_later(run, np.int64(pause.again_ps), place << KIND_BITS | REFRESH)


@kernel_part
def next_class(run: PacketRun, number: int) -> int:
    """Queue that a port serves next; -1 when nothing there may leave.

    Reference: tests/reference/packet.py, Engine.next_class.
    """
    port, n_classes = run.ports[number], run.rules[0].n_classes
    able = (port.queued | port.ready) & ~port.paused
    if able == 0:
        return NONE
    strict = able & run.rules[0].strict
    queue = n_classes
    if strict:
        while not strict >> queue & 1:
            queue -= 1
        return queue
    if run.rules[0].has_weights:
        port.last = next_by_weight(run, number, able)
        return int(np.int64(port.last))
    queue = np.int64(port.last)
    while True:
        queue += 1
        if queue >= n_classes:
            queue = 0
        if able >> queue & 1:
            break
    port.last = queue
    return queue


@kernel_part
def first_waiting(run: PacketRun, number: int, traffic: int) -> int:
    """Take the first packet out of a port's queue; give back its buffer and mark it if ECN says so.

    Reference: tests/reference/packet.py, Engine.first_waiting.
    """
    rules = run.rules[0]
    index = take_waiting(run, number, traffic)
    if traffic == rules.n_classes or run.packets[index].channel == NONE:
        return index
    n_bytes = np.int64(run.queues[number * (rules.n_classes + 1) + traffic].n_bytes)
    if rules.most_stamps > 0 and run.packets[index].kind == DATA:
        write_telemetry(run, index, number, n_bytes)
    if rules.has_fecn:
        mark_fecn(run, number, traffic, index)
    if rules.ecn >> traffic & 1 and n_bytes > kmin_of(run, number, traffic):
        mark(run, run.packets[index], number, traffic)
    return index


@kernel_part
def take_waiting(run: PacketRun, number: int, traffic: int) -> int:
    """Take the first packet out of a port's queue and give back its buffer.

    Reference: tests/reference/packet.py, Engine.take_waiting.
    """
    rules, port = run.rules[0], run.ports[number]
    queue = run.queues[number * (rules.n_classes + 1) + traffic]
    index = int(queue.first)
    packet = run.packets[index]
    queue.first = packet.following
    queue.n_bytes -= packet.n_bytes
    note_depth(run, number, traffic)
    if queue.first == NONE:
        port.queued &= ~(np.int64(1) << traffic)
    channel = int(packet.channel)
    if traffic == rules.n_classes or channel == NONE:
        return index
    if kind_of(run, channel, traffic) != UNCOUNTED:
        release(run, channel, traffic, np.int64(packet.n_bytes))
        if may_resume(run, channel, traffic):
            run.inputs[channel * (rules.n_classes + 1) + traffic].is_pausing = 0
            send_pfc(run, np.int64(run.ports[channel].reverse), traffic, 0)

    return index


@kernel_part
def mark(run: PacketRun, packet: Records, number: int, traffic: int) -> None:
    """Mark a packet for certain above kmax, by chance below.

    Reference: tests/reference/packet.py, Engine.mark.
    """
    n_bytes = np.int64(run.queues[number * (run.rules[0].n_classes + 1) + traffic].n_bytes)
    kmin, kmax = kmin_of(run, number, traffic), kmax_of(run, number, traffic)
    if n_bytes <= kmax:
        chance = pmax_of(run, number, traffic) * (n_bytes - kmin) / (kmax - kmin)
        if draw(run) >= chance:
            return
    packet.marked = 1
    run.aside[number].n_marked += 1


@kernel_part
def draw(run: PacketRun) -> float:
    """Next random number from 0 to below 1, or one that was given.

    Reference: tests/reference/packet.py, Engine.draw.
    """
    if run.given.size > 0:
        at = run.random[0]
        run.random[0] = (at + np.uint64(1)) % np.uint64(run.given.size)
        return run.given[np.int64(at)]
    return random_of(run, MARK_RANDOM)


@kernel_part
def transmit(run: PacketRun, number: int, index: int) -> None:
    """Begin to send a packet: from when the port is free, and when the packet will arrive.

    Reference: tests/reference/packet.py, Engine.transmit.
    """
    port, packet, now = run.ports[number], run.packets[index], run.clock[NOW]
    if run.rules[0].has_credits:
        if packet.kind == PFC:
            stamp(run, number, index)
        else:
            spend(run, number, index)
            if run.rules[0].has_arbiter:
                charge_turn(run, number, blocks_of(np.int64(packet.n_bytes)))
    serial = run.serial[port.link + packet.length]
    port.free_ps = now + serial.time_ps
    port.n_packets += 1
    port.wire_bytes += serial.wire_bytes
    port.sending_bytes = packet.n_bytes
    packet.channel = number
    if packet.kind != PFC:
        note_busy(run, number, np.int64(packet.traffic), serial.time_ps)
    run.counts[packet.kind].hops += 1
    code = index << KIND_BITS | ARRIVE
    post(run, np.int64(serial.lane_arrive), now + serial.arrive_ps, code)
    plan_look(run, number, np.int64(serial.lane))


@kernel_part
def give_room(run: PacketRun, number: int) -> None:
    """Give back the room of the packet that has left a port, and tell the new limit.

    Reference: tests/reference/packet_credit.py, Credits.free_room.
    """
    link = run.links[number]
    if link.frees != NONE:
        channel, traffic = np.int64(link.frees), np.int64(link.frees_lane)
        link.frees = NONE
        free_credits(run, channel, traffic, np.int64(link.frees_blocks))
