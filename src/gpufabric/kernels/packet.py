"""A run of the packet engine, from event to event."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part, whole_kernel
from gpufabric.kernels.packet_ahead import look_ahead
from gpufabric.kernels.packet_arbiter import next_lane
from gpufabric.kernels.packet_credit import blocks_of, mark_starved, take_limit
from gpufabric.kernels.packet_events import (
    ALPHA,
    ARRIVE,
    DECREASE,
    DRAIN,
    EXPIRE,
    FAULT,
    FREE_BY,
    FULL,
    GRANT,
    INCREASE,
    KICKS,
    KIND_BITS,
    KIND_MASK,
    LANE_BITS,
    MOST_LANES,
    N_EVENTS,
    N_FREE,
    N_KICKS,
    N_TRACED,
    NEVER,
    NOW,
    PURGE,
    REFRESH,
    SENT,
    SPARE,
    START,
    TIMEOUT,
    WAKE,
    WATCH,
    earliest,
    give_back,
    kick,
    lane_of_heap,
    take_event,
)
from gpufabric.kernels.packet_faults import change, drained, is_lost, waits_in_host
from gpufabric.kernels.packet_grant import grant
from gpufabric.kernels.packet_pause import expire, hold, purge, refresh, watch
from gpufabric.kernels.packet_port import (
    NONE,
    PFC,
    first_waiting,
    forward,
    free_credits,
    give_room,
    next_class,
    take_credits,
    transmit,
)
from gpufabric.kernels.packet_rate import check_rate, raise_by_timer, renew_alpha
from gpufabric.kernels.packet_read import begin, look_at_progress
from gpufabric.kernels.packet_receiver import receive
from gpufabric.kernels.packet_sender import next_of_flows, wake
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.packet_turns import charge

__all__ = ["NEEDS_ROOM", "RAN", "run_packets"]

RAN, NEEDS_ROOM = range(2)


@whole_kernel
def run_packets(run: PacketRun, until_ps: int) -> int:
    """Run until nothing happens any more or `until_ps` has passed; return a status.

    ``NEEDS_ROOM``: an array is nearly full; give it more and call again.

    Reference: tests/reference/packet.py, Engine.run.
    """
    clock = run.clock
    while True:
        if clock[N_FREE] < SPARE or clock[FULL] != 0:
            return NEEDS_ROOM
        due = earliest(run)
        time_ps = due >> LANE_BITS
        if due == NEVER or time_ps > until_ps:
            return RAN
        clock[NOW] = time_ps
        clock[N_EVENTS] += 1
        lane = due & MOST_LANES - 1
        clock[FREE_BY] = time_ps - (lane < run.rules[0].lane_sent)
        code = take_event(run, lane)
        if lane != lane_of_heap(run):
            look_ahead(run, lane)
        if clock[N_TRACED] < run.trace.shape[0]:
            trace(run, code)
        happen(run, code & KIND_MASK, code >> KIND_BITS)
        at = 0
        while at < clock[N_KICKS]:
            start(run, clock[KICKS + at])
            at += 1
        clock[N_KICKS] = 0


@kernel_part
def happen(run: PacketRun, kind: int, number: int) -> None:
    """Do what an event of this kind does.

    Reference: tests/reference/packet.py, Engine.happen.
    """
    if kind == ARRIVE:
        arrive(run, number)
    elif kind == SENT:
        kick(run, number)
    elif kind == WAKE:
        wake(run, number)
    elif kind == ALPHA:
        renew_alpha(run, number)
    elif kind == DECREASE:
        check_rate(run, number)
    elif kind == INCREASE:
        raise_by_timer(run, number)
    elif kind == TIMEOUT:
        look_at_progress(run, number)
    elif kind == START:
        begin(run, number)
    else:
        happen_seldom(run, kind, number)


@kernel_part
def happen_seldom(run: PacketRun, kind: int, number: int) -> None:
    """Do what an event of a kind that many runs have none of does.

    Reference: tests/reference/packet.py, Engine.happen.
    """
    if kind == FAULT:
        change(run, number)
    elif kind == DRAIN:
        drained(run, number, np.int64(run.packets[number].channel))
        receive(run, number)
    elif kind == EXPIRE:
        expire(run, number)
    elif kind == REFRESH:
        refresh(run, number)
    elif kind == WATCH:
        watch(run, number)
    elif kind == PURGE:
        purge(run, number)
    elif kind == GRANT:
        grant(run, number)


@kernel_part
def arrive(run: PacketRun, index: int) -> None:
    """Take a packet from the wire: PFC at a port, all else at a switch or NIC.

    Reference: tests/reference/packet.py, Engine.arrive.
    """
    packet, rules = run.packets[index], run.rules[0]
    lane, n_bytes = np.int64(packet.lane), np.int64(packet.n_bytes)
    channel = np.int64(packet.channel)
    takes_room = rules.has_credits and packet.kind != PFC
    if takes_room:
        take_credits(run, index, channel)
    if rules.has_faults and is_stopped(run, index):
        if takes_room and run.ports[channel].head != NONE:
            free_credits(run, channel, lane, blocks_of(n_bytes))
        return
    if packet.kind == PFC:
        run.counts[PFC].received += 1
        run.counts[PFC].received_bytes += packet.n_bytes
        number = np.int64(packet.number)
        port = np.int64(run.ports[packet.channel].reverse)
        give_back(run, index)
        if run.rules[0].has_credits:
            take_limit(run, port, number)
            kick(run, port)
        else:
            hold(run, port, number >> 1, number & 1)
        return
    if run.inputs[channel * (rules.n_classes + 1) + packet.traffic].switch == NONE:
        receive(run, index)
    else:
        forward(run, index, channel)


@kernel_part
def is_stopped(run: PacketRun, index: int) -> bool:
    """Tell whether a fault keeps a packet from arriving: it is lost, or waits for a slow host.

    Reference: tests/reference/packet_faults.py, Faults.is_stopped.
    """
    packet = run.packets[index]
    channel = np.int64(packet.channel)
    if is_lost(run, index, channel):
        return True
    return run.ports[channel].head == NONE and waits_in_host(run, index, channel)


@kernel_part
def start(run: PacketRun, number: int) -> None:
    """Let a port that is free begin to send what is next, if anything may leave.

    Reference: tests/reference/packet.py, Engine.start.
    """
    port = run.ports[number]
    while port.free_ps <= run.clock[FREE_BY]:
        if run.rules[0].has_credits:
            give_room(run, number)
            mark_starved(run, number)
        traffic = next_lane(run, number) if run.rules[0].has_arbiter else next_class(run, number)
        if traffic == NONE:
            return
        if port.queued >> traffic & 1:
            index = first_waiting(run, number, traffic)
        else:
            index = next_of_flows(run, number, traffic)
        if index != NONE:
            if run.rules[0].has_weights:
                charge(run, number, traffic, index)
            transmit(run, number, index)


@kernel_part
def trace(run: PacketRun, code: int) -> None:
    """Note an event: time, kind, number of port or flow, and for arrivals flow and packet.

    Reference: tests/reference/packet.py, Engine.note.
    """
    row = run.trace[run.clock[N_TRACED]]
    kind, number = code & KIND_MASK, code >> KIND_BITS
    row[0] = run.clock[NOW]
    row[1] = kind
    row[2] = number
    if kind in (ARRIVE, DRAIN):
        packet = run.packets[number]
        row[2] = packet.channel
        row[3] = packet.flow
        row[4] = 8 * packet.number + packet.kind
    run.clock[N_TRACED] += 1
