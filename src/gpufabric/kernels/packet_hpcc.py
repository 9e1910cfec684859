"""HPCC: switches write time, bytes sent and queue into packets, which set the rate of the sender.

Y. Li et al., SIGCOMM 2019, algorithm 1. The use of a link is what it sent between two packets of
the flow, over what it could have sent, and its queue over what a round trip takes.
"""

from __future__ import annotations

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import NOW
from gpufabric.kernels.packet_pacing import change_rate
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["take_telemetry", "write_telemetry"]


@kernel_part
def write_telemetry(run: PacketRun, index: int, number: int, queued: int) -> None:
    """Write into a packet what the port knows that it leaves by.

    Reference: tests/reference/packet.py, Engine.first_waiting.
    """
    note, most = run.notes[index], run.rules[0].most_stamps
    if note.n_stamps < 0 or note.n_stamps >= most:
        return
    row = run.stamps[index * most + note.n_stamps]
    row.time_ps = run.clock[NOW]
    row.n_bytes = run.ports[number].wire_bytes
    row.queued = queued
    row.gbps = run.aside[number].gbps
    note.n_stamps += 1


@kernel_part
def take_telemetry(run: PacketRun, number: int, index: int, expected: int) -> None:
    """Renew a flow's rate from what an ACK, packet `index`, brings back.

    Reference: tests/reference/packet_hpcc.py, take.
    """
    flow, pace = run.flows[number], run.pacing[number]
    control = run.controls[flow.control]
    n_stamps = run.notes[index].n_stamps
    if n_stamps <= 0:
        return
    if pace.renewal == 0 or pace.n_stamps != n_stamps:
        pace.n_stamps = n_stamps
        keep_stamps(run, number, index, n_stamps)
        pace.renewal = max(pace.renewal, flow.next)
        return
    is_full = expected > pace.renewal
    if is_full or control.reacts_fast:
        average_load(run, number, index)
        keep_stamps(run, number, index, n_stamps)
        renew_rate(run, number, is_full)
    if is_full:
        pace.renewal = max(pace.renewal, flow.next)


@kernel_part
def keep_stamps(run: PacketRun, number: int, index: int, n_stamps: int) -> None:
    """Keep what the switches wrote, to be held against the next ACK's.

    Reference: tests/reference/packet_hpcc.py, take.
    """
    most = run.rules[0].most_stamps
    for hop in range(n_stamps):
        source, target = run.stamps[index * most + hop], run.past[number * most + hop]
        target.time_ps = source.time_ps
        target.n_bytes = source.n_bytes
        target.queued = source.queued


@kernel_part
def average_load(run: PacketRun, number: int, index: int) -> None:
    """Let the use of the busiest link since the last ACK enter the average.

    Reference: tests/reference/packet_hpcc.py, take.
    """
    flow, pace, most = run.flows[number], run.pacing[number], run.rules[0].most_stamps
    control = run.controls[flow.control]
    busiest, busiest_ps = 0.0, 0
    for hop in range(pace.n_stamps):
        now, before = run.stamps[index * most + hop], run.past[number * most + hop]
        passed_ps = now.time_ps - before.time_ps
        if passed_ps <= 0:
            continue
        sent = now.n_bytes // control.byte_unit - before.n_bytes // control.byte_unit
        queued = min(now.queued, before.queued) // control.queue_unit * control.queue_unit
        load = sent * control.byte_unit * 8000 / passed_ps / now.gbps
        load += queued * flow.line_gbps / now.gbps / flow.window
        if load > busiest:
            busiest, busiest_ps = load, passed_ps
    trip_ps = pace.base_rtt_ps
    busiest_ps = min(busiest_ps, trip_ps)
    pace.load = (pace.load * (trip_ps - busiest_ps) + busiest * busiest_ps) / trip_ps


@kernel_part
def renew_rate(run: PacketRun, number: int, is_full: bool) -> None:  # noqa: FBT001
    """Set the rate from the average use: a jump to the target, or an additive step.

    Reference: tests/reference/packet_hpcc.py, take.
    """
    flow, pace = run.flows[number], run.pacing[number]
    control = run.controls[flow.control]
    excess = pace.load / control.target
    if excess >= 1.0 or pace.stage >= control.most_stages:
        gbps, stage = pace.base_gbps / excess + control.ai_gbps, 0
    else:
        gbps, stage = pace.base_gbps + control.ai_gbps, pace.stage + 1
    gbps = min(max(gbps, control.min_gbps), flow.line_gbps)
    change_rate(run, number, gbps)
    if is_full:
        pace.base_gbps = gbps
        pace.stage = stage
