"""Routing packet by packet, from the rules of docs/models/packet.md: dicts and lists."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpufabric.sim.packet_hops import HopTable
from tests.reference.packet_random import hash_of, mix, random_from

if TYPE_CHECKING:
    from tests.reference.packet import Packet
    from tests.reference.packet_ends import Engine

DATA = 0


class Hops:
    """What switches know and remember; `avoided` has channels known to be down."""

    def __init__(self, engine: Engine, tables: tuple[HopTable, ...]) -> None:
        self.engine, self.tables = engine, tables
        self.now = tables[0]
        self.avoided: set[int] = set()
        self.turn: Counter[tuple[int, int]] = Counter()
        self.flowlets: dict[tuple[int, int], tuple[int, int, int]] = {}
        seed = engine.config.seed
        self.random = mix(seed + 2)
        self.hash_seed = mix(seed + 3) % 2**32

    def seed(self, switch: int) -> int:
        if self.now.seed is not None:
            return int(self.now.seed[switch])
        return mix(self.engine.config.seed + 4 + switch) % 2**32

    def next_hop(self, packet: Packet, channel: int) -> int | None:
        engine = self.engine
        flow, switch = engine.flows[packet.flow], engine.head[channel]
        end = flow.back if packet.route[0] == flow.route[0] else flow.route
        if engine.head[end[0]] == switch:
            return engine.reverse[end[0]]
        column = int(self.now.column[engine.head[end[0]]])
        group = int(self.now.group[switch, column])
        return None if group < 0 else self.member(packet, switch, group)

    def able(self, group: int) -> list[int]:
        first, end = self.now.first[group : group + 2]
        return [int(c) for c in self.now.channel[first:end] if int(c) not in self.avoided]

    def member(self, packet: Packet, switch: int, group: int) -> int | None:
        channels, routing = self.able(group), self.engine.config.routing
        if not channels:
            return None
        goes = packet.route[0] == self.engine.flows[packet.flow].route[0]
        name = 2 * packet.flow + (not goes)
        mixed = hash_of(hash_of(name, self.hash_seed), self.seed(switch))
        classes = routing.classes or range(8)
        if packet.kind != DATA or packet.traffic not in classes or routing.mode == "ecmp":
            return channels[mixed % len(channels)]
        key = self.tables.index(self.now), group
        if not routing.mode.endswith("flowlet"):
            return self.fresh(channels, key, packet.traffic)
        slot = switch, mixed % routing.flowlet_slots
        owner, channel, last = self.flowlets.get(slot, (-1, -1, 0))
        gap = self.engine.now - last > round(routing.flowlet_gap_us * 1e6)
        if owner != name or gap or channel in self.avoided:
            channel = self.fresh(channels, key, packet.traffic)
        self.flowlets[slot] = name, channel, self.engine.now
        return channel

    def fresh(self, channels: list[int], key: tuple[int, int], traffic: int) -> int:
        mode = self.engine.config.routing.mode
        if mode in ("random", "flowlet"):
            drawn, self.random = random_from(self.random)
            return channels[int(drawn * len(channels))]
        at = self.turn[key] % len(channels)
        self.turn[key] = (at + 1) % len(channels)
        row = channels[at:] + channels[:at]
        if mode == "turn":
            return row[0]
        return min(row, key=lambda channel: self.waiting(channel, traffic))

    def waiting(self, channel: int, traffic: int) -> int:
        port = self.engine.ports[channel]
        n_bytes = sum(packet.size for packet in port.queues[traffic])
        if port.sending is not None and port.free > self.engine.free_by:
            n_bytes += port.sending.size
        return n_bytes

    def change_table(self, number: int) -> None:
        self.now = self.tables[number]
        self.flowlets.clear()
