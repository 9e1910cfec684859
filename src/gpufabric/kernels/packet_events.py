"""Events in the order of time: a ring for each constant delay, a heap for the rest.

Events at the same picosecond happen by the number of their lane, those of the heap last; within a
lane and within the heap in the order they were made.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_structs import PacketRun

__all__ = [
    "ALPHA",
    "ARRIVE",
    "DECREASE",
    "DRAIN",
    "EXPIRE",
    "FAULT",
    "FULL_HEAP",
    "FULL_LANE",
    "INCREASE",
    "NEVER",
    "N_CLOCK",
    "REFRESH",
    "SENT",
    "START",
    "TIMEOUT",
    "WAKE",
    "WATCH",
    "earliest",
    "give_back",
    "kick",
    "post",
    "push",
    "push_later",
    "take_event",
    "take_packet",
]

NEVER = 2**62
LANE_BITS = 7  # of the lane in `due`
MOST_LANES = 2**LANE_BITS  # the heap counted
START, SENT, ARRIVE, ALPHA, DECREASE, INCREASE, TIMEOUT, WAKE = range(8)  # kinds of events
FAULT, DRAIN = 8, 9
EXPIRE, REFRESH, WATCH, PURGE, GRANT = range(10, 15)
KIND_BITS = 5
KIND_MASK = 2**KIND_BITS - 1

# Places in `clock`.
NOW, FREE, N_FREE, N_LATER, ORDER, FULL, N_EVENTS, N_TRACED, N_KICKS, FREE_BY = range(10)
KICKS = 10  # the ports that may be able to send, after this event
N_CLOCK = 24
FULL_LANE, FULL_HEAP = 1, 2  # values of clock[FULL]
SPARE = 16  # an event makes fewer others than this


@kernel_part
def earliest(run: PacketRun) -> int:
    """Time and lane of the next event, as in ``due``; the smaller lane first where times agree.

    Reference: tests/reference/packet.py, Engine.run.
    """
    return run.due[1]


@kernel_part
def set_due(run: PacketRun, lane: int, due: int) -> None:
    """Note the first event of a lane, and which is the first of all: the winner of a tournament.

    Reference: tests/reference/packet.py, Engine.run.
    """
    tree = run.due
    at = (tree.size >> 1) + lane
    tree[at] = due
    while at > 1:
        due = min(due, tree[at ^ 1])
        at >>= 1
        tree[at] = due


@kernel_part
def lane_of_heap(run: PacketRun) -> int:
    """Place of the heap among the lanes, the last one.

    Reference: tests/reference/packet.py, Engine.run.
    """
    return (run.due.size >> 1) - 1


@kernel_part
def push(run: PacketRun, lane: int, time_ps: int, code: int) -> None:
    """Add an event to a lane, not before the last one there.

    Reference: tests/reference/packet.py, Engine.at.
    """
    ring = run.lanes[lane]
    first, end, mask = ring.first, ring.end, ring.mask
    at = 2 * (ring.offset + (end & mask))
    run.events[at] = time_ps
    run.events[at + 1] = code
    ring.end = end + 1
    if end == first:
        set_due(run, lane, time_ps << LANE_BITS | lane)
    if end - ring.kept + SPARE > mask:
        run.clock[FULL] |= FULL_LANE


@kernel_part
def take_event(run: PacketRun, lane: int) -> int:
    """Take the first event out of a lane or the heap and return its code.

    Reference: tests/reference/packet.py, Engine.run.
    """
    if lane == lane_of_heap(run):
        return pop_later(run)
    ring, events = run.lanes[lane], run.events
    first, end, offset, mask = ring.first, ring.end, ring.offset, ring.mask
    code = events[2 * (offset + (first & mask)) + 1]
    first += 1
    ring.kept = first
    at = 2 * (offset + (first & mask))
    while first < end and events[at + 1] < 0:  # asleep
        first += 1
        at = 2 * (offset + (first & mask))
    ring.first = first
    if first == end:
        set_due(run, lane, NEVER)
    else:
        set_due(run, lane, events[at] << LANE_BITS | lane)
    return code


@kernel_part
def push_later(run: PacketRun, time_ps: int, code: int) -> None:
    """Add an event to the heap.

    Reference: tests/reference/packet.py, Engine.at.
    """
    later = run.later
    run.clock[N_LATER] += 1
    run.clock[ORDER] += 1
    at = run.clock[N_LATER]
    while at > 1:
        above = at >> 1
        if later[above].time_ps <= time_ps:
            break
        copy_later(run, above, at)
        at = above
    later[at].time_ps = time_ps
    later[at].order = run.clock[ORDER]
    later[at].code = code
    set_due_later(run)
    if run.clock[N_LATER] + SPARE + run.rules[0].fan_out > later.size:
        run.clock[FULL] |= FULL_HEAP


@kernel_part
def post(run: PacketRun, lane: int, time_ps: int, code: int) -> None:
    """Add an event to a lane, or to the heap where `lane` is negative.

    Reference: tests/reference/packet.py, Engine.at.
    """
    if lane >= 0:
        push(run, lane, time_ps, code)
    else:
        push_later(run, time_ps, code)


@kernel_part
def copy_later(run: PacketRun, source: int, target: int) -> None:
    """Copy one place of the heap to another.

    Reference: tests/reference/packet.py, Engine.at.
    """
    run.later[target].time_ps = run.later[source].time_ps
    run.later[target].order = run.later[source].order
    run.later[target].code = run.later[source].code


@kernel_part
def pop_later(run: PacketRun) -> int:
    """Take the first event out of the heap and return its code.

    Reference: tests/reference/packet.py, Engine.run.
    """
    later = run.later
    code = later[1].code
    size = run.clock[N_LATER]
    run.clock[N_LATER] = size - 1
    time_ps, order = later[size].time_ps, later[size].order
    at, below = 1, 2
    while below < size:
        if below + 1 < size and is_before(run, below + 1, later[below].time_ps, later[below].order):
            below += 1
        if not is_before(run, below, time_ps, order):
            break
        copy_later(run, below, at)
        at = below
        below = 2 * at
    copy_later(run, size, at)
    set_due_later(run)
    return code


@kernel_part
def set_due_later(run: PacketRun) -> None:
    """Note the time of the heap's first event.

    Reference: tests/reference/packet.py, Engine.run.
    """
    lane = lane_of_heap(run)
    if run.clock[N_LATER] > 0:
        set_due(run, lane, run.later[1].time_ps << LANE_BITS | lane)
    else:
        set_due(run, lane, NEVER)


@kernel_part
def is_before(run: PacketRun, place: int, time_ps: int, order: int) -> bool:
    """Tell whether the event at `place` of the heap comes before one of that time and order.

    Reference: tests/reference/packet.py, Engine.at.
    """
    event = run.later[place]
    return event.time_ps < time_ps or (event.time_ps == time_ps and event.order < order)


@kernel_part
def kick(run: PacketRun, port: int) -> None:
    """Note that a port may be able to send, to be tried when this event is done.

    Reference: tests/reference/packet.py, Engine.kick.
    """
    at = run.clock[N_KICKS]
    run.clock[KICKS + at] = port
    run.clock[N_KICKS] = at + 1


@kernel_part
def take_packet(run: PacketRun) -> int:
    """Take a packet out of the free list; its fields are whatever they were.

    Reference: tests/reference/packet.py, Packet.
    """
    index = run.clock[FREE]
    run.clock[FREE] = index + 1 + run.packets[index].following
    run.clock[N_FREE] -= 1
    return index


@kernel_part
def give_back(run: PacketRun, index: int) -> None:
    """Put a packet into the free list.

    Reference: tests/reference/packet.py, Packet.
    """
    run.packets[index].following = np.int32(run.clock[FREE] - index - 1)
    run.packets[index].kind = -1
    run.clock[FREE] = index
    run.clock[N_FREE] += 1
