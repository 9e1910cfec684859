"""HPCC from algorithm 1 of Li et al., SIGCOMM 2019, with the ticks of docs/models/packet.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gpufabric.sim.packet_control import Control, ControlKind

if TYPE_CHECKING:
    from tests.reference.packet import Engine, Packet

WAKE = 7


class Stamp(NamedTuple):
    """What a switch writes."""

    time: int
    sent: int
    queued: int
    gbps: float


@dataclass(eq=False)
class Hpcc:
    """State of a sender."""

    trip: int
    base: float
    last: list[Stamp] | None = None
    renewal: int = 0
    stage: int = 0
    load: float = 1.0


def extra(control: Control) -> tuple[int, int]:
    """Bytes that data and ACKs carry more."""
    if control.kind is ControlKind.HPCC:
        return control.hpcc.data_bytes, control.hpcc.ack_bytes
    return 0, 0


def trip_ps(engine: Engine, control: Control, route: list[int], back: list[int]) -> int:
    """Time of a full packet there and its ACK back."""
    headers, more = engine.config.headers, extra(control)
    data = engine.config.transport.mtu_bytes + headers.data_bytes + more[0] + headers.gap_bytes
    ack = headers.ack_bytes + more[1] + headers.gap_bytes
    there, here = (sum(8000 / engine.gbps[at] for at in row) for row in (route, back))
    flat = sum(engine.flight(at, 0) for at in (*route, *back))
    return max(1, math.floor(data * there + ack * here + flat))


def change_rate(engine: Engine, number: int, gbps: float) -> None:
    """The wait after the last packet becomes what it is at the new rate."""
    flow = engine.flows[number]
    flow.next_ps += engine.serial(flow.last_wire, gbps) - engine.serial(flow.last_wire, flow.rate)
    flow.rate = gbps
    if flow.place == "paced" and flow.next_ps < flow.wake_ps:
        flow.wake_ps = max(engine.now, flow.next_ps)
        engine.at(flow.wake_ps, WAKE, number, rare=True)


def take(engine: Engine, packet: Packet) -> None:
    """Renew the rate from what an ACK brings back."""
    flow = engine.flows[packet.flow]
    state, hpcc = flow.hpcc, flow.control.hpcc
    now = packet.stamps
    if state is None or not now:
        return
    before, state.last = state.last, state.last
    if before is None or len(before) != len(now):
        state.last = now
        state.renewal = max(state.renewal, flow.next)
        return
    full = packet.number > state.renewal
    if full or hpcc.reacts_fast:
        state.last = now
        loads = [(0.0, 0)]
        for new, old in zip(now, before, strict=True):
            passed = new.time - old.time
            if passed > 0:
                sent = new.sent // hpcc.byte_unit - old.sent // hpcc.byte_unit
                queued = min(new.queued, old.queued) // hpcc.queue_unit * hpcc.queue_unit
                load = sent * hpcc.byte_unit * 8000 / passed / new.gbps
                load += queued * flow.line / new.gbps / flow.window
                loads.append((load, passed))
        busiest, passed = max(loads, key=lambda one: one[0])
        part = min(passed, state.trip)
        state.load = (state.load * (state.trip - part) + busiest * part) / state.trip
        excess = state.load / hpcc.target_utilization
        jumps = excess >= 1 or state.stage >= hpcc.most_stages
        rate = (state.base / excess if jumps else state.base) + hpcc.additive_gbps
        rate = min(max(rate, hpcc.min_rate_gbps), flow.line)
        change_rate(engine, packet.flow, rate)
        if full:
            state.base, state.stage = rate, 0 if jumps else state.stage + 1
    if full:
        state.renewal = max(state.renewal, flow.next)
