"""When a port that is free again looks at what waits: only where something does.

Whatever begins to be sent takes a place in the lane of its end, asleep. It is woken by what waits
at the port already or comes while the port is busy; at most ports nothing does, and no event is
spent on them. The order of events is as if all had been awake from the beginning. Sizes and links
without lanes go to the heap when they are asked for.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import (
    FREE_BY,
    FULL,
    FULL_LANE,
    KIND_BITS,
    LANE_BITS,
    NOW,
    SENT,
    SPARE,
    kick,
    push_later,
    set_due,
)
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["look_at_waiting", "plan_look"]

AWAKE, IN_HEAP = -1, -2  # values of a port's `slot`: asked for; not asked for, without a lane


@kernel_part
def plan_look(run: PacketRun, number: int, lane: int) -> None:
    """Keep a place for the look of a port that has begun to send; awake where something waits.

    Reference: tests/reference/packet.py, Engine.transmit.
    """
    port = run.ports[number]
    is_wanted = port.queued | port.ready
    if run.rules[0].has_credits and run.links[number].frees >= 0:
        is_wanted = np.int64(1)
    port.slot = IN_HEAP
    if lane >= 0:
        port.lane = lane
        port.slot = keep_place(run, lane, port.free_ps, number << KIND_BITS | SENT)
    if is_wanted:
        look_later(run, number)


@kernel_part
def look_at_waiting(run: PacketRun, number: int) -> None:
    """Let a port look at what waits, when this event is done or when the port is free.

    Reference: tests/reference/packet.py, Engine.look.
    """
    port = run.ports[number]
    if port.free_ps <= run.clock[FREE_BY]:
        kick(run, number)
    elif port.slot != AWAKE:
        look_later(run, number)


@kernel_part
def look_later(run: PacketRun, number: int) -> None:
    """Make sure that a busy port looks at what waits as soon as it is free.

    Reference: tests/reference/packet.py, Engine.look_later.
    """
    port = run.ports[number]
    if port.slot >= 0:
        wake_place(run, int(port.lane), int(port.slot))
    else:
        push_later(run, port.free_ps, number << KIND_BITS | SENT)
    port.slot = AWAKE


@kernel_part
def keep_place(run: PacketRun, lane: int, time_ps: int, code: int) -> int:
    """Add an event that is asleep to a lane and return its place.

    Reference: tests/reference/packet.py, Engine.transmit.
    """
    ring = run.lanes[lane]
    end, mask = ring.end, ring.mask
    place = ring.offset + (end & mask)
    run.events[2 * place] = time_ps
    run.events[2 * place + 1] = ~code
    ring.end = end + 1
    if ring.first == end:
        ring.first = end + 1
    if end - ring.kept + SPARE > mask:
        forget(run, lane)
    return place


@kernel_part
def wake_place(run: PacketRun, lane: int, place: int) -> None:
    """Wake an event that is asleep.

    Reference: tests/reference/packet.py, Engine.look_later.
    """
    ring = run.lanes[lane]
    run.events[2 * place + 1] = ~run.events[2 * place + 1]
    number = ring.kept + (place - ring.offset - ring.kept & ring.mask)
    if number < ring.first:
        ring.first = number
        set_due(run, lane, run.events[2 * place] << LANE_BITS | lane)


@kernel_part
def forget(run: PacketRun, lane: int) -> None:
    """Give back the places of events whose time has passed while they were asleep.

    Reference: tests/reference/packet.py, Engine.run.
    """
    ring = run.lanes[lane]
    while ring.kept < ring.first:
        if run.events[2 * (ring.offset + (ring.kept & ring.mask))] >= run.clock[NOW]:
            break
        ring.kept += 1
    if ring.end - ring.kept + SPARE > ring.mask:
        run.clock[FULL] |= FULL_LANE
