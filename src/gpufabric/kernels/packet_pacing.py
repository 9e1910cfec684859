"""Time between packets of a paced flow, and what a new rate does to a wait that has begun."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_control_structs import HPCC, RCCC, SWIFT
from gpufabric.kernels.packet_events import KIND_BITS, NOW, WAKE, push_later
from gpufabric.kernels.packet_structs import PacketRun

__all__ = [
    "FAILED",
    "LISTED",
    "PACED",
    "UNLISTED",
    "change_rate",
    "gap_ps",
    "pace",
    "sleep",
]

UNLISTED, LISTED, PACED, FAILED = range(4)  # states of a flow


@kernel_part
def gap_ps(run: PacketRun, wire_bytes: int, gbps: float) -> int:
    """Time from one packet to the next at a rate, in whole ticks [ps].

    Reference: tests/reference/packet.py, Engine.serial.
    """
    tick_ps = run.rules[0].tick_ps
    return np.int64(wire_bytes * 8000 / gbps) // tick_ps * tick_ps


@kernel_part
def sleep(run: PacketRun, number: int) -> None:
    """Let a flow wait apart until its next packet is due.

    Reference: tests/reference/packet_ends.py, Engine.next_of_flows.
    """
    flow = run.flows[number]
    flow.state = PACED
    flow.wake_ps = flow.next_ps
    push_later(run, np.int64(flow.next_ps), number << KIND_BITS | WAKE)


@kernel_part
def pace(run: PacketRun, number: int, index: int, wire_bytes: int) -> None:
    """Set when the packet after this one is due, and let switches write into this one.

    Reference: tests/reference/packet_ends.py, Engine.make_packet.
    """
    flow = run.flows[number]
    kind = run.controls[flow.control].kind
    if kind == SWIFT:
        run.notes[index].sent_ps = run.clock[NOW]
        flow.next_ps = run.clock[NOW] + run.pacing[number].wait_ps
    elif kind == RCCC:
        run.notes[index].credit = flow.posted
    elif kind == HPCC:
        run.notes[index].n_stamps = 0
        run.pacing[number].wire_bytes = wire_bytes
        flow.next_ps = run.clock[NOW] + gap_ps(run, wire_bytes, flow.rate_gbps)


@kernel_part
def change_rate(run: PacketRun, number: int, gbps: float) -> None:
    """Set a flow's rate; the wait after the last packet becomes what it is at this rate.

    Reference: tests/reference/packet_hpcc.py, change_rate.
    """
    flow, now = run.flows[number], run.clock[NOW]
    wire_bytes = run.pacing[number].wire_bytes
    before_ps = gap_ps(run, wire_bytes, flow.rate_gbps)
    flow.next_ps += gap_ps(run, wire_bytes, gbps) - before_ps
    flow.rate_gbps = gbps
    if flow.state == PACED and flow.next_ps < flow.wake_ps:
        flow.wake_ps = max(now, flow.next_ps)
        push_later(run, np.int64(flow.wake_ps), number << KIND_BITS | WAKE)
