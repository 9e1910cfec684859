"""Faults by time: links that are cut, frames that are spoilt or too long, storms, slow hosts.

The schedule stands in `faults`, a row for each change; `faulty` says how each channel is now. A run
without faults has neither.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_credit import restart
from gpufabric.kernels.packet_events import (
    DRAIN,
    FAULT,
    KIND_BITS,
    NEVER,
    NOW,
    kick,
    push_later,
)
from gpufabric.kernels.packet_port import DATA, NONE, PFC, drop, send_pfc
from gpufabric.kernels.packet_random import FAULT_RANDOM, random_of
from gpufabric.kernels.packet_structs import (
    LOST_BY_ERROR,
    LOST_BY_LINK,
    LOST_BY_SIZE,
    LOST_IN_HOST,
    PacketRun,
)

__all__ = [
    "AVOID",
    "CALM",
    "CUT",
    "LIMIT",
    "LOSE",
    "MEND",
    "SLOW",
    "SPEED",
    "STORM",
    "TABLE",
    "change",
    "drained",
    "is_lost",
    "waits_in_host",
]

CUT, MEND, LOSE, STORM, CALM, SPEED, LIMIT, SLOW, AVOID, TABLE = range(10)  # what changes


@kernel_part
def change(run: PacketRun, row: int) -> None:
    """Do what a row of the schedule says.

    Reference: tests/reference/packet_faults.py, Faults.change.
    """
    fault = run.faults[row]
    channel, what = np.int64(fault.channel), fault.what
    if what == TABLE:
        change_table(run, np.int64(fault.value))
        return
    faulty = run.faulty[channel]
    if what == CUT:
        cut(run, channel)
    elif what == MEND:
        faulty.mended_ps = run.clock[NOW]
        if run.rules[0].has_credits:
            restart(run, channel)
            kick(run, channel)
    elif what == LOSE:
        faulty.loss = fault.value
    elif what == SPEED:
        run.ports[channel].link = fault.value
        run.aside[channel].gbps = fault.gbps
    elif what == LIMIT:
        faulty.limit = fault.value
    elif what == AVOID:
        faulty.is_avoided = fault.value
    elif what == SLOW:
        faulty.host = row if fault.value else NONE
    else:
        storm(run, row)


@kernel_part
def change_table(run: PacketRun, first: int) -> None:
    """Let another table of next hops hold from now on; switches forget their flowlets.

    Reference: tests/reference/packet_route.py, Hops.change_table.
    """
    run.hops.table[0] = first
    for slot in range(run.hops.flowlets.size):
        run.hops.flowlets[slot].flow = NONE


@kernel_part
def cut(run: PacketRun, channel: int) -> None:
    """Take a channel down; what its port was told to pause and what it has paused is forgotten.

    Reference: tests/reference/packet_faults.py, Faults.cut.
    """
    faulty, port, now = run.faulty[channel], run.ports[channel], run.clock[NOW]
    faulty.cut_ps = now
    faulty.mended_ps = NEVER
    faulty.holding = 0
    n_classes = run.rules[0].n_classes
    for traffic in range(n_classes):
        run.inputs[channel * (n_classes + 1) + traffic].is_pausing = 0
        if port.paused >> traffic & 1:
            held = run.held[channel * (n_classes + 1) + traffic]
            held.held_ps += now - held.since_ps
    port.paused = 0
    kick(run, channel)


@kernel_part
def storm(run: PacketRun, row: int) -> None:
    """Let a NIC send XOFF and come back to it later, or XON at the end of a storm.

    Reference: tests/reference/packet_faults.py, Faults.storm.
    """
    fault, now = run.faults[row], run.clock[NOW]
    is_storm = 1 if fault.what == STORM else 0
    send_pfc(run, np.int64(fault.channel), np.int64(fault.value), is_storm)
    if is_storm and now + fault.gap_ps < fault.end_ps:
        push_later(run, now + fault.gap_ps, row << KIND_BITS | FAULT)


@kernel_part
def is_lost(run: PacketRun, index: int, channel: int) -> bool:
    """Tell whether a packet that should arrive now is lost, and drop it then.

    It is where the link was down at any time since the packet began to be sent, where it is longer
    than the port takes, and by chance.

    Reference: tests/reference/packet_faults.py, Faults.reason.
    """
    packet, faulty, port = run.packets[index], run.faulty[channel], run.ports[channel]
    serial = run.serial[port.link + packet.length]
    begin_ps = run.clock[NOW] - serial.arrive_ps
    sent_ps = begin_ps + serial.time_ps
    if faulty.cut_ps <= sent_ps + faulty.wire_ps and faulty.mended_ps > begin_ps:
        lose(run, index, LOST_BY_LINK)
        return True
    if faulty.limit > 0 and packet.n_bytes > faulty.limit:
        lose(run, index, LOST_BY_SIZE)
        return True
    is_flow_control = run.rules[0].has_credits and packet.kind == PFC
    if faulty.loss > 0 and not is_flow_control:
        chance = run.losses[faulty.loss, packet.length]
        if random_of(run, FAULT_RANDOM) < chance:
            lose(run, index, LOST_BY_ERROR)
            return True
    return False


@kernel_part
def lose(run: PacketRun, index: int, reason: int) -> None:
    """Drop a packet and count why.

    Reference: tests/reference/packet_faults.py, Faults.lose.
    """
    run.lost[reason] += 1
    drop(run, index)


@kernel_part
def waits_in_host(run: PacketRun, index: int, channel: int) -> bool:
    """Tell whether a packet that has reached a NIC must wait for its host, or is dropped there.

    Reference: tests/reference/packet_faults.py, Faults.waits_in_host.
    """
    packet, faulty = run.packets[index], run.faulty[channel]
    if packet.kind != DATA or (faulty.host == NONE and faulty.backlog == 0):
        return False
    free_ps = max(run.clock[NOW], faulty.free_ps)
    if faulty.host != NONE:
        fault = run.faults[faulty.host]
        if faulty.backlog + packet.n_bytes > fault.value:
            lose(run, index, LOST_IN_HOST)
            return True
        free_ps += np.int64(packet.n_bytes * 8000 / fault.gbps)
        traffic = np.int64(packet.traffic)
        is_lossless = run.rules[0].lossless >> traffic & 1
        is_over = faulty.backlog + packet.n_bytes > fault.xoff
        if is_lossless and is_over and not faulty.holding >> traffic & 1:
            faulty.holding |= np.int64(1) << traffic
            send_pfc(run, np.int64(run.ports[channel].reverse), traffic, 1)
    faulty.backlog += packet.n_bytes
    faulty.free_ps = free_ps
    push_later(run, free_ps, index << KIND_BITS | DRAIN)
    return True


@kernel_part
def drained(run: PacketRun, index: int, channel: int) -> None:
    """Let a slow host have taken a packet; tell the switch to go on where the buffer is low again.

    Reference: tests/reference/packet_faults.py, Faults.drained.
    """
    packet, faulty = run.packets[index], run.faulty[channel]
    faulty.backlog -= packet.n_bytes
    if faulty.holding == 0:
        return
    if faulty.host != NONE and faulty.backlog > run.faults[faulty.host].xon:
        return
    for traffic in range(run.rules[0].n_classes):
        if faulty.holding >> traffic & 1:
            send_pfc(run, np.int64(run.ports[channel].reverse), traffic, 0)
    faulty.holding = 0
