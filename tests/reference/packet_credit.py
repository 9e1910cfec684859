"""InfiniBand's credits from section 7.9 of the specification: whole counts, never modulo 4096."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from gpufabric.sim.packet_faults import PacketFault, SlowLink
from tests.reference.packet_arbiter import Arbiter, blocks

if TYPE_CHECKING:
    from tests.reference.packet import Engine, Flow, Packet

PFC = 4
FURTHEST = 2048
Lane = tuple[int, int]


class Credits:
    """Both ends of every channel and lane."""

    def __init__(self, engine: Engine, faults: tuple[PacketFault, ...]) -> None:
        self.engine = engine
        self.sent: Counter[Lane] = Counter()
        self.received: Counter[Lane] = Counter()
        self.held: Counter[Lane] = Counter()
        self.most_held: Counter[Lane] = Counter()
        self.waiting: set[Lane] = set()
        self.updates: Counter[Lane] = Counter()
        lanes = range(len(engine.config.classes))
        keys = [(channel, lane) for channel in range(len(engine.gbps)) for lane in lanes]
        self.told = {key: min(FURTHEST, self.room(key[0])) for key in keys}
        self.limit = dict(self.told)
        self.told_of: dict[int, int] = {}
        self.frees: dict[int, tuple[int, int, int]] = {}
        self.cuts = self.cut_times(faults)
        rules = engine.config.arbitration
        self.arbiters = [] if rules is None else [Arbiter(rules) for _ in engine.gbps]

    def cut_times(self, faults: tuple[PacketFault, ...]) -> dict[int, int]:
        """Time until the first bytes have come, of channels whose switch cuts through."""
        engine, config = self.engine, self.engine.config
        assert config.credits is not None
        rough = {one.channel for one in faults}
        rough |= {engine.reverse[channel] for channel in rough}
        cuts = {}
        for channel, head in enumerate(engine.head):
            out = [at for at in range(len(engine.head)) if engine.head[engine.reverse[at]] == head]
            speeds = [engine.gbps[at] for at in out]
            speeds += [f.gbps for f in faults if isinstance(f, SlowLink) and f.channel in out]
            if head < 0 or channel in rough or max(speeds) > engine.gbps[channel]:
                continue
            time = engine.serial(config.credits.cut_through_bytes, engine.gbps[channel])
            if time:
                cuts[channel] = time
        return cuts

    def time_to_enough(self, number: int, packet: Packet, time: int) -> int:
        """Time until so much of a packet is sent that the far end may forward it."""
        cut = self.cuts.get(number, 0)
        return cut if packet.kind != PFC and 0 < cut < time else time

    def room(self, channel: int) -> int:
        config = self.engine.config
        assert config.credits is not None
        if config.credits.buffer_bytes:
            return config.credits.buffer_bytes // 64
        headers = config.headers
        full = config.transport.mtu_bytes + headers.data_bytes + headers.first_bytes
        engine = self.engine
        wait = 2 * engine.delay[channel] + engine.forwarding[engine.head[channel]]
        wait += int(config.pause_reaction_ns * 1000)
        frames = 3 * (full + headers.gap_bytes) + headers.pfc_bytes + headers.gap_bytes
        late = 64 * (config.credits.update_blocks + 2 * blocks(full))
        return (math.ceil(wait * engine.gbps[channel] / 8000) + frames + late) // 64

    def limit_now(self, key: Lane) -> int:
        return self.received[key] + min(FURTHEST, self.room(key[0]) - self.held[key])

    def tell(self, key: Lane) -> None:
        config = self.engine.config
        assert config.credits is not None
        news = self.limit_now(key) - self.told[key]
        if key not in self.waiting and news >= config.credits.update_blocks:
            self.waiting.add(key)
            self.engine.send_link_packet(self.engine.reverse[key[0]], key[1])

    def stamp(self, number: int, packet: Packet) -> None:
        key = self.engine.reverse[number], packet.number % 16
        self.told[key] = self.limit_now(key)
        self.waiting.remove(key)
        self.updates[key] += 1
        self.told_of[id(packet)] = self.told[key]
        packet.number = self.told[key] % 4096 * 16 + key[1]

    def take_limit(self, number: int, packet: Packet) -> None:
        self.limit[number, packet.number % 16] = self.told_of.pop(id(packet))
        self.engine.kick(number)

    def take_room(self, channel: int, packet: Packet) -> None:
        key = channel, packet.lane
        self.received[key] += blocks(packet.size)
        self.held[key] += blocks(packet.size)
        assert self.held[key] <= self.room(channel)
        self.most_held[key] = max(self.most_held[key], self.held[key])
        if self.engine.head[channel] < 0:
            self.held[key] -= blocks(packet.size)
        self.tell(key)

    def spend(self, number: int, packet: Packet) -> None:
        if packet.kind == PFC:
            self.stamp(number, packet)
            return
        if packet.came_on >= 0:
            self.frees[number] = packet.came_on, packet.came_lane, blocks(packet.size)
        key = number, packet.lane
        self.sent[key] += blocks(packet.size)
        assert self.sent[key] <= self.limit[key]
        if self.arbiters:
            self.arbiters[number].charge(packet)

    def free_room(self, number: int) -> None:
        """Give back the room of the packet that has left."""
        freed = self.frees.pop(number, None)
        if freed is not None:
            channel, lane, some = freed
            self.held[channel, lane] -= some
            self.tell((channel, lane))

    def give_back(self, channel: int, lane: int, size: int) -> None:
        self.held[channel, lane] -= blocks(size)
        self.tell((channel, lane))

    def restart(self, channel: int) -> None:
        for lane in range(len(self.engine.config.classes)):
            self.told[channel, lane] = self.limit[channel, lane] = self.limit_now((channel, lane))
        self.engine.kick(channel)

    def next_bytes(self, number: int, lane: int) -> int:
        port = self.engine.ports[number]
        if port.queues[lane]:
            return port.queues[lane][0].size
        flow: Flow = self.engine.flows[port.flows[lane][0]]
        if flow.next < (flow.posted if flow.credit is None else flow.credit.limit):
            return self.engine.size_of(flow, flow.next)
        return self.engine.config.transport.mtu_bytes + self.engine.config.headers.data_bytes

    def next_lane(self, number: int) -> int | None:
        """Lane that the port serves next."""
        port = self.engine.ports[number]
        self.mark_starved(number)
        if self.arbiters:
            return self.arbiters[number].next_lane(port)
        return self.engine.next_class(port)

    def mark_starved(self, number: int) -> None:
        port = self.engine.ports[number]
        for lane in range(len(port.queues)):
            if not port.queues[lane] and not port.flows[lane]:
                continue
            need = self.sent[number, lane] + blocks(self.next_bytes(number, lane))
            if need <= self.limit[number, lane]:
                port.paused.discard(lane)
            elif lane not in port.paused:
                port.paused.add(lane)
                port.n_pauses += 1
