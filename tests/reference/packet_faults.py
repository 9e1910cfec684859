"""Faults of a packet run, from the rules of docs/models/packet.md: times, sets and dicts."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from gpufabric.sim.packet_config import ClassKind
from gpufabric.sim.packet_faults import (
    BitErrors,
    LinkDown,
    LinkFlap,
    PacketFault,
    PauseStorm,
    SlowHost,
    SlowLink,
    SmallMtu,
)
from gpufabric.sim.packet_problem import PacketProblem
from tests.reference.packet_random import random_from

if TYPE_CHECKING:
    from tests.reference.packet import Packet
    from tests.reference.packet_ends import Engine

US = 1_000_000
DATA = 0
FAULT, DRAIN = 8, 9  # kinds of events


class Faults:
    """What is wrong now; `down` has all times that a channel was down, `lost` the reasons."""

    def __init__(self, engine: Engine, problem: PacketProblem, random: int) -> None:
        self.engine, self.random = engine, random
        self.gbps = list(engine.gbps)
        self.down: dict[int, list[list[float]]] = {}
        self.errors: dict[int, BitErrors] = {}
        self.limit: dict[int, int] = {}
        self.slow: dict[int, SlowHost] = {}
        self.backlog: Counter[int] = Counter()
        self.free_ps: Counter[int] = Counter()
        self.holding: set[tuple[int, int]] = set()
        self.lost: Counter[str] = Counter()
        rows = [row for fault in problem.faults for row in self.rows(fault)]
        rows += [(round(us * US), 1, at + 1, None) for at, us in enumerate(problem.hops_from_us)]
        rows.sort(key=lambda row: (row[0], row[1]))
        self.schedule = rows

    def rows(self, fault: PacketFault) -> list[tuple[int, int, int, Any]]:
        """Time, 1 at a beginning and 0 at an end, channel, fault."""
        spans = [(fault.start_us, fault.end_us)]
        if isinstance(fault, LinkFlap):
            spans, at, turn = [], fault.start_us, 0
            while at < fault.end_us:
                spans.append((at, min(fault.end_us, at + fault.down_us)))
                turn += 1
                at = fault.start_us + turn * (fault.down_us + fault.up_us)
        channels = [fault.channel]
        if isinstance(fault, LinkDown | LinkFlap | SlowLink):
            channels.append(self.engine.reverse[fault.channel])
        rows: list[tuple[int, int, int, Any]] = [
            (round(time * US), begins, channel, fault)
            for span in spans
            for channel in channels
            for begins, time in zip((1, 0), span, strict=True)
            if time < math.inf
        ]
        if isinstance(fault, LinkDown):
            rows += [
                (round((time + fault.detect_us) * US), begins, channel, "seen")
                for channel in channels
                for begins, time in zip((1, 0), spans[0], strict=True)
                if time + fault.detect_us < math.inf
            ]
        return rows

    def change(self, row: int) -> None:
        _, begins, channel, fault = self.schedule[row]
        hops = self.engine.hops
        if fault is None:
            assert hops is not None
            hops.change_table(channel)
        elif fault == "seen":
            avoided = set() if hops is None else hops.avoided
            avoided.add(channel) if begins else avoided.discard(channel)
        elif isinstance(fault, LinkDown | LinkFlap):
            self.cut(channel) if begins else self.mend(channel)
        elif isinstance(fault, PauseStorm):
            self.storm(row)
        elif isinstance(fault, SlowLink):
            self.gbps[channel] = fault.gbps if begins else self.engine.gbps[channel]
        elif isinstance(fault, BitErrors):
            self.set(self.errors, channel, fault if begins else None)
        elif isinstance(fault, SmallMtu):
            self.set(self.limit, channel, fault.frame_bytes if begins else None)
        else:
            self.set(self.slow, channel, fault if begins else None)

    @staticmethod
    def set(table: dict, channel: int, value: object) -> None:  # type: ignore[type-arg]
        table.pop(channel, None)
        if value is not None:
            table[channel] = value

    def cut(self, channel: int) -> None:
        engine = self.engine
        self.down.setdefault(channel, []).append([engine.now, math.inf])
        engine.ports[channel].paused.clear()
        self.holding = {key for key in self.holding if key[0] != channel}
        head = engine.head[channel]
        if head >= 0:
            pausing = engine.buffers[head].pausing
            pausing -= {key for key in pausing if key[0] == channel}
        engine.kick(channel)

    def mend(self, channel: int) -> None:
        self.down[channel][-1][1] = self.engine.now
        if self.engine.credits is not None:
            self.engine.credits.restart(channel)

    def storm(self, row: int) -> None:
        _, begins, channel, fault = self.schedule[row]
        engine = self.engine
        assert isinstance(fault, PauseStorm)
        engine.send_pfc(channel, fault.traffic_class, pause=begins == 1)
        again = engine.now + round(fault.every_us * US)
        if begins and again < fault.end_us * US:
            engine.at(again, FAULT, row, rare=True)

    def reason(self, packet: Packet, channel: int) -> str | None:
        """Why a packet that should arrive now does not."""
        engine = self.engine
        sent = engine.now - engine.flight(channel, packet.kind)
        begin = sent - engine.serial(packet.wire, self.gbps[channel])
        end = sent + engine.delay[channel]
        if any(cut <= end and mended > begin for cut, mended in self.down.get(channel, [])[-1:]):
            return "link"
        if packet.size > self.limit.get(channel, math.inf):
            return "mtu"
        is_flow_control = engine.credits is not None and packet.kind == 4
        if channel in self.errors and not is_flow_control:
            errors = self.errors[channel]
            kept = (1 - errors.loss_per_packet) * (1 - errors.bit_error_rate) ** (8 * packet.wire)
            drawn, self.random = random_from(self.random)
            if drawn < 1 - kept:
                return "error"
        return None

    def lose(self, packet: Packet, reason: str) -> None:
        self.lost[reason] += 1
        self.engine.dropped[packet.kind] += 1

    def is_stopped(self, packet: Packet) -> bool:
        channel = packet.route[packet.hop]
        reason = self.reason(packet, channel)
        if reason is not None:
            self.lose(packet, reason)
            return True
        return self.engine.head[channel] < 0 and self.waits_in_host(packet, channel)

    def waits_in_host(self, packet: Packet, channel: int) -> bool:
        engine, slow = self.engine, self.slow.get(channel)
        if packet.kind != DATA or (slow is None and self.backlog[channel] == 0):
            return False
        free = max(engine.now, self.free_ps[channel])
        full = self.backlog[channel] + packet.size
        if slow is not None:
            if full > slow.buffer_bytes:
                self.lose(packet, "host")
                return True
            free += int(packet.size * 8000 / slow.gbps)
            key = channel, packet.traffic
            lossless = engine.config.classes[packet.traffic].kind is ClassKind.LOSSLESS
            if lossless and full > slow.xoff_bytes and key not in self.holding:
                self.holding.add(key)
                engine.send_pfc(engine.reverse[channel], packet.traffic, pause=True)
        self.backlog[channel] = full
        self.free_ps[channel] = free
        engine.at(free, DRAIN, packet, rare=True)
        return True

    def drained(self, packet: Packet) -> None:
        channel, engine = packet.route[packet.hop], self.engine
        self.backlog[channel] -= packet.size
        slow = self.slow.get(channel)
        if slow is None or self.backlog[channel] <= slow.xon_bytes:
            for key in sorted(key for key in self.holding if key[0] == channel):
                self.holding.remove(key)
                engine.send_pfc(engine.reverse[channel], key[1], pause=False)
        engine.receive(packet)
