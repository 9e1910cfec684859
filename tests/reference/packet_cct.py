"""InfiniBand's congestion control from annex A10 of the specification: FECN, BECN and CCT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.packet_arbiter import blocks

if TYPE_CHECKING:
    from tests.reference.packet import Flow, Packet
    from tests.reference.packet_ends import Engine

ALPHA = 3
US = 1_000_000


class Fecn:
    """Marks of the switches: packets since the last one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.since: dict[int, int] = {}

    def mark(self, number: int, packet: Packet, depth: int) -> None:
        fecn, credit = self.engine.config.fecn, self.engine.credits
        assert fecn is not None
        assert credit is not None
        key = number, packet.lane
        after = credit.sent[key] + 2 * blocks(packet.size)
        room = 64 * credit.room(self.engine.reverse[number])
        deep = fecn.threshold > 0 and depth > room * (16 - fecn.threshold) // 16
        if after > credit.limit[key] or not deep or packet.size < fecn.packet_bytes:
            return
        self.since[number] = self.since.get(number, 0) + 1
        if self.since[number] > fecn.marking_rate:
            self.since[number] = 0
            packet.marked = True
            self.engine.ports[number].marked += 1


def rate(flow: Flow) -> float:
    """Line rate less the waits of the table."""
    return flow.line / (1.0 + flow.control.cct.delays[flow.cct_index])


def first_index(flow: Flow) -> None:
    """Where a flow begins."""
    flow.cct_index = flow.control.cct.ccti_min
    flow.rate = rate(flow)


def take_becn(engine: Engine, number: int) -> None:
    flow = engine.flows[number]
    cct = flow.control.cct
    if flow.acked < flow.n:
        flow.cct_index = min(len(cct.delays) - 1, flow.cct_index + cct.ccti_increase)
        flow.rate = rate(flow)
        if not flow.slowed:
            flow.slowed = True
            wait(engine, number)


def run_down(engine: Engine, number: int) -> None:
    flow = engine.flows[number]
    least = flow.control.cct.ccti_min
    flow.slowed = False
    if flow.acked < flow.n and flow.cct_index > least:
        flow.cct_index -= 1
        flow.rate = rate(flow)
        if flow.cct_index > least:
            flow.slowed = True
            wait(engine, number)


def wait(engine: Engine, number: int) -> None:
    period = round(engine.flows[number].control.cct.ccti_timer_us * US)
    engine.at(engine.now + period, ALPHA, number, rare=True)
