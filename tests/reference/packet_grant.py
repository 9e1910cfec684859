"""Credit that receivers grant, from the rules of docs/models/packet.md."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.reference.packet_hpcc import trip_ps

if TYPE_CHECKING:
    from tests.reference.packet_ends import Engine
    from tests.reference.packet_records import Flow, Packet

GRANT = 14


@dataclass(eq=False)
class Credit:
    """What the two ends of a flow know: packets that may be sent; the receiver's plans in ps."""

    initial: int
    each: int
    early_ps: int
    wait_ps: int
    limit: int = 0
    held: int = 0
    granted: int = 0
    demand: int = 0

    def post(self, before: int, posted: int, *, is_idle: bool) -> None:
        """More to send: a sender that had nothing left has its initial credit again."""
        if is_idle:
            self.held = max(self.held, before + self.initial)
        self.limit = min(self.held, posted)


def first_credit(engine: Engine, flow: Flow) -> Credit:
    """What a sender may send before any grant: a round trip's packets, or what it is given."""
    rccc, mtu = flow.control.rccc, engine.config.transport.mtu_bytes
    headers, gbps = engine.config.headers, engine.gbps[flow.route[-1]]
    wire = mtu + headers.data_bytes + headers.gap_bytes
    trip = trip_ps(engine, flow.control, flow.route, flow.back)
    packets = math.ceil(trip / int(wire * 8000 / min(flow.line, gbps)))
    wait = int(wire * 8000 / (gbps * rccc.credit_rate))
    initial = packets
    if rccc.initial_credit_bytes:
        initial = math.ceil(rccc.initial_credit_bytes / mtu)
    return Credit(initial, max(1, rccc.credit_bytes // mtu), packets * wait, wait)


class Granters:
    """For each receiving port, the flows that want credit, in turn, and until when it is booked."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rows: defaultdict[int, deque[int]] = defaultdict(deque)
        self.booked: defaultdict[int, int] = defaultdict(int)
        self.earliest: defaultdict[int, int] = defaultdict(int)
        self.planned: set[int] = set()

    def learn(self, packet: Packet) -> None:
        flow = self.engine.flows[packet.flow]
        credit, port = flow.credit, flow.back[0]
        if credit is None or packet.credit <= credit.demand:
            return
        before, credit.demand = credit.demand, packet.credit
        if credit.granted < before:  # it waits in the row
            return
        credit.granted = max(credit.granted, before + credit.initial)
        self.book(port, (min(credit.granted, credit.demand) - before) * credit.wait_ps)
        if credit.granted < credit.demand:
            self.rows[port].append(packet.flow)
            self.plan(port)

    def book(self, port: int, time_ps: int) -> None:
        self.booked[port] = max(self.booked[port], self.engine.now) + time_ps

    def plan(self, port: int) -> None:
        if self.rows[port] and port not in self.planned:
            self.planned.add(port)
            credit = self.engine.flows[self.rows[port][0]].credit
            assert credit is not None
            time = max(self.engine.now, self.booked[port] - credit.early_ps, self.earliest[port])
            self.engine.at(time, GRANT, port, rare=True)

    def grant(self, port: int) -> None:
        self.planned.remove(port)
        number = self.rows[port][0]
        credit = self.engine.flows[number].credit
        assert credit is not None
        if self.booked[port] - credit.early_ps <= self.engine.now:
            self.rows[port].popleft()
            more = min(credit.each, credit.demand - credit.granted)
            credit.granted += more
            self.book(port, more * credit.wait_ps)
            self.earliest[port] = self.engine.now + more * credit.wait_ps
            self.engine.send_credit(number)
            if credit.granted < credit.demand:
                self.rows[port].append(number)
        self.plan(port)

    def take(self, packet: Packet) -> None:
        flow = self.engine.flows[packet.flow]
        if flow.credit is not None:
            credit = flow.credit
            credit.held = max(credit.held, packet.credit)
            credit.limit = max(credit.limit, min(credit.held, flow.posted))
