"""Packets one by one, written from the rules of docs/models/packet.md: objects, lists, one heap.

Events at the same picosecond happen in this order: starts; arrivals, the shorter delay first; ends
of sending, the shorter first; alpha, rate checks, increases, time-outs; then arrivals with rare
delays, ends of sending of rare sizes, and paced flows. Within one of these, first made comes first.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from typing import Any

from gpufabric.sim.packet_config import ClassKind, PacketConfig
from gpufabric.sim.packet_faults import SlowLink
from gpufabric.sim.packet_messages import Operation
from gpufabric.sim.packet_problem import PacketProblem
from tests.reference.packet_buffer import Buffer
from tests.reference.packet_cct import Fecn
from tests.reference.packet_control import set_control, waiting
from tests.reference.packet_credit import Credits
from tests.reference.packet_faults import Faults
from tests.reference.packet_grant import GRANT, Granters
from tests.reference.packet_hpcc import Stamp, extra
from tests.reference.packet_pause import EXPIRE, PURGE, REFRESH, WATCH, Pauses
from tests.reference.packet_random import mix, random_from
from tests.reference.packet_records import Flow, Message, Packet, Port
from tests.reference.packet_route import Hops
from tests.reference.packet_settings import Settings
from tests.reference.packet_turns import charge, next_by_weight

START, SENT, ARRIVE, ALPHA, DECREASE, INCREASE, TIMEOUT, WAKE = range(8)
FAULT, DRAIN = 8, 9
DATA, ACK, NAK, CNP, PFC = range(5)
ORDER = {FAULT: -1, START: 0, ARRIVE: 1, SENT: 2, ALPHA: 3, DECREASE: 4, INCREASE: 5, TIMEOUT: 6}
RARE = 7
US = 1_000_000


class Engine:
    """A run; `trace` has a row for each event."""

    def __init__(self, problem: PacketProblem, config: PacketConfig) -> None:
        self.config, self.after = config, problem.after
        wires = problem.wires
        self.gbps = [float(x) for x in wires.gbps]
        self.delay = [int(x) for x in wires.delay_ps]
        self.head = [int(x) for x in wires.head]
        self.reverse = [int(x) for x in wires.reverse]
        self.forwarding = {-1: 0} | {
            head: round(config.forwarding_ns * 1000)
            if problem.forwarding_ps is None
            else int(problem.forwarding_ps[head])
            for head in set(self.head) - {-1}
        }
        n = len(config.classes)
        self.ports = [
            Port(
                [deque() for _ in range(n)],
                [deque() for _ in range(n)],
                last=n - 1,
                credit=[0] * n,
                most=[0] * n,
            )
            for _ in self.gbps
        ]
        self.pauses = Pauses(self)
        self.granters = Granters(self)
        self.settings = Settings(wires, config, self.headroom)
        own = list(range(problem.n_flows))
        of_message = own if problem.queue_pair is None else [int(one) for one in problem.queue_pair]
        self.messages = [self.message(problem, at, pair) for at, pair in enumerate(of_message)]
        self.flows = [
            self.flow(problem, [at for at in own if of_message[at] == pair])
            for pair in sorted(set(of_message))
        ]
        self.buffers = {
            switch: Buffer(
                self,
                [c for c, head in enumerate(self.head) if head == switch],
                config.buffer.total_bytes
                if problem.buffer_bytes is None
                else int(problem.buffer_bytes[switch]),
            )
            for switch in set(self.head) - {-1}
        }
        self.now = self.free_by = 0
        self.heap: list[tuple[int, int, int, int, int, Any]] = []
        self.made = 0
        self.kicks: list[int] = []
        self.trace: list[tuple[int, int, int, int, int]] = []
        self.sent: Counter[int] = Counter()
        self.received: Counter[int] = Counter()
        self.dropped: Counter[int] = Counter()
        self.state, self.drawn = mix(config.seed), 0
        self.credits = None if config.credits is None else Credits(self, problem.faults)
        self.fecn = None if config.fecn is None else Fecn(self)
        self.regular_sizes = self.common_sizes()
        more = {extra(control)[1] for control in config.flow_controls} - {0}
        reads = any(one.operation is Operation.READ for one in self.messages)
        most = min(6, 36 // (3 + len(more) + reads + len(self.regular_sizes)))
        self.hops = Hops(self, problem.hops) if problem.hops else None
        self.faults = Faults(self, problem, mix(config.seed + 1))
        count = Counter(self.link(channel) for channel in range(len(self.gbps)))
        for one in problem.faults:
            if isinstance(one, SlowLink):
                for channel in (one.channel, self.reverse[one.channel]):
                    count[(one.gbps, *self.link(channel)[1:])] += 0
        self.regular_links = sorted(count, key=lambda link: (-count[link], link))[:most]
        for row, (time, *_) in enumerate(self.faults.schedule):
            self.at(time, FAULT, row)
        starts = [0] * problem.n_flows if problem.start_ps is None else problem.start_ps
        self.starts = [int(start) for start in starts]
        rows = waiting(problem)
        self.left = {number: set(row) for number, row in enumerate(rows)}
        for number in range(problem.n_flows):
            if not rows[number]:
                self.at(self.starts[number], START, number)

    def message(self, problem: PacketProblem, number: int, pair: int) -> Message:
        size = int(problem.size_bytes[number])
        n = max(1, math.ceil(size / self.config.transport.mtu_bytes))
        operation = Operation.WRITE
        if problem.operation is not None:
            operation = Operation(int(problem.operation[number]))
        return Message(pair, size, n, operation)

    def flow(self, problem: PacketProblem, messages: list[int]) -> Flow:
        """A queue pair, its messages one behind the other."""
        number = messages[0]
        row = number if problem.path is None else int(problem.path[number])
        route, back = (
            [int(c) for c in paths.channel[paths.first[row] : paths.first[row + 1]]]
            for paths in (problem.paths, problem.back)
        )
        n = 0
        for one in messages:
            self.messages[one].first = n
            n = self.messages[one].end
        line = self.gbps[route[0]]
        traffic = self.config.data_class
        if problem.traffic_class is not None:
            traffic = int(problem.traffic_class[number])
        of_class = 0 if problem.control is None else int(problem.control[number])
        control = self.config.flow_controls[of_class]
        flow = Flow(route, back, messages, n, line, line, line, traffic, of_class, control)
        flow.operation = self.messages[number].operation
        set_control(self, flow)
        return flow

    def message_of(self, flow: Flow, number: int) -> Message:
        """The message that a packet belongs to."""
        found = [self.messages[one] for one in flow.messages if self.messages[one].end > number]
        return found[0]

    def size_of(self, flow: Flow, number: int) -> int:
        mtu, message = self.config.transport.mtu_bytes, self.message_of(flow, number)
        at = number - message.first
        payload = min(mtu, message.size - at * mtu)
        headers = self.config.headers
        size = payload + headers.data_bytes + extra(flow.control)[0]
        if message.operation is Operation.WRITE and at == 0:
            size += headers.first_bytes
        if message.operation is Operation.READ and at in {0, message.n - 1}:
            size += headers.response_bytes
        return size

    def common_sizes(self) -> set[int]:
        count: Counter[int] = Counter()
        for flow in self.flows:
            count.update(self.size_of(flow, number) for number in range(flow.n))
        return set(sorted(count, key=lambda size: (-count[size], -size))[:3])

    def flight(self, channel: int, kind: int) -> int:
        if kind == PFC:
            return self.delay[channel] + round(self.config.pause_reaction_ns * 1000)
        return self.delay[channel] + self.forwarding[self.head[channel]]

    def link(self, channel: int) -> tuple[float, int, int, int]:
        cut = 0 if self.credits is None else self.credits.cuts.get(channel, 0)
        return self.gbps[channel], self.flight(channel, DATA), self.flight(channel, PFC), cut

    def serial(self, wire: int, gbps: float) -> int:
        return int(wire * 8000 / gbps) // self.config.tick_ps * self.config.tick_ps

    def headroom(self, channel: int, delay: int) -> int:
        headers = self.config.headers
        full = self.config.transport.mtu_bytes + headers.data_bytes + headers.first_bytes
        wait = 2 * delay + self.forwarding[self.head[channel]]
        full += max(extra(control)[0] for control in self.config.flow_controls)
        wait += int(self.config.pause_reaction_ns * 1000)
        frames = 2 * (full + headers.gap_bytes) + headers.pfc_bytes + headers.gap_bytes
        return math.ceil(wait * self.gbps[channel] / 8000) + frames + 2 * full

    def at(self, time: int, kind: int, what: Any, delay: int = 0, *, rare: bool = False) -> None:
        """Let an event happen; `delay` orders those of one kind."""
        rank = RARE if rare else ORDER[kind]
        self.made += 1
        heapq.heappush(self.heap, (time, rank, 0 if rare else delay, self.made, kind, what))

    def run(self, until: float = math.inf) -> None:
        while self.heap and self.heap[0][0] <= until:
            self.now, rank, _, _, kind, what = heapq.heappop(self.heap)
            self.free_by = self.now - (rank < ORDER[SENT])
            self.note(kind, what)
            self.happen(kind, what)
            while self.kicks:
                self.start(self.kicks.pop(0))

    def note(self, kind: int, what: Any) -> None:
        if kind in (ARRIVE, DRAIN):
            number = what.route[what.hop]
            self.trace.append((self.now, kind, number, what.flow, 8 * what.number + what.kind))
        else:
            self.trace.append((self.now, kind, what, 0, 0))

    def happen(self, kind: int, what: Any) -> None:
        acts = {
            START: self.begin,
            SENT: self.kick,
            ARRIVE: self.arrive,
            ALPHA: self.renew_alpha,
            DECREASE: self.check_rate,
            INCREASE: self.raise_by_timer,
            TIMEOUT: self.time_out,
            WAKE: self.wake,
            FAULT: self.faults.change,
            DRAIN: self.faults.drained,
            EXPIRE: self.pauses.expire,
            REFRESH: self.pauses.refresh,
            WATCH: self.pauses.watch,
            PURGE: self.pauses.purge,
            GRANT: self.granters.grant,
        }
        acts[kind](what)

    # Ports -----------------------------------------------------------------------------------

    def kick(self, number: int) -> None:
        self.kicks.append(number)

    def start(self, number: int) -> None:
        port = self.ports[number]
        while port.free <= self.free_by:
            if self.credits is not None:
                self.credits.free_room(number)
            if port.pfc:
                self.transmit(number, port.pfc.popleft())
                continue
            traffic = self.next_of_port(number)
            if traffic is None:
                return
            if port.queues[traffic]:
                packet = self.first_waiting(number, traffic)
            else:
                packet = self.next_of_flows(port.flows[traffic].popleft())
            if packet is not None:
                if not self.config.classes[traffic].is_strict:
                    charge(port.credit, traffic, packet.wire)
                self.transmit(number, packet)

    def next_of_port(self, number: int) -> int | None:
        if self.credits is not None:
            return self.credits.next_lane(number)
        return self.next_class(self.ports[number])

    def next_class(self, port: Port) -> int | None:
        classes = self.config.classes
        able = [
            at
            for at in range(len(classes))
            if at not in port.paused and (port.queues[at] or port.flows[at])
        ]
        strict = [at for at in able if classes[at].is_strict]
        if strict:
            return max(strict)
        weights = [0 if one.is_strict else one.weight for one in classes]
        if able and any(weights):
            quanta = [self.config.quantum_bytes * weight for weight in weights]
            port.last = next_by_weight(able, port.last, port.credit, quanta)
            return port.last
        if able:
            after = [at for at in able if at > port.last]
            port.last = min(after or able)
            return port.last
        return None

    def first_waiting(self, number: int, traffic: int) -> Packet:
        packet, port = self.take_waiting(number, traffic), self.ports[number]
        if packet.came_on < 0:
            return packet
        depth = sum(other.size for other in port.queues[traffic])
        if packet.kind == DATA and packet.stamps is not None:
            gbps = self.faults.gbps[number]
            packet.stamps.append(Stamp(self.now, port.sent_wire, depth, gbps))
        if self.fecn is not None:
            self.fecn.mark(number, packet, depth)
        ecn = self.settings.ecn(number, traffic)
        if ecn is not None:
            self.mark(number, packet, depth, ecn)
        return packet

    def take_waiting(self, number: int, traffic: int) -> Packet:
        packet = self.ports[number].queues[traffic].popleft()
        came = packet.came_on
        if came < 0:
            return packet
        if self.settings.kind(came, traffic).is_counted:
            buffer = self.buffers[self.head[came]]
            buffer.release(came, traffic, packet.size)
            if buffer.may_resume(came, traffic):
                buffer.pausing.remove((came, traffic))
                self.send_pfc(self.reverse[came], traffic, pause=False)

        return packet

    def mark(self, number: int, packet: Packet, depth: int, ecn: tuple[int, int, float]) -> None:
        kmin, kmax, pmax = ecn
        if depth > kmin:
            if depth <= kmax and self.draw() >= pmax * (depth - kmin) / (kmax - kmin):
                return
            packet.marked = True
            self.ports[number].marked += 1

    def draw(self) -> float:
        if self.config.draws:
            self.drawn += 1
            return self.config.draws[(self.drawn - 1) % len(self.config.draws)]
        drawn, self.state = random_from(self.state)
        return drawn

    def transmit(self, number: int, packet: Packet) -> None:
        port, gbps = self.ports[number], self.faults.gbps[number]
        if self.credits is not None:
            self.credits.spend(number, packet)
        time = self.serial(packet.wire, gbps)
        rare = packet.kind == DATA and packet.size not in self.regular_sizes
        rare = rare or (gbps, *self.link(number)[1:]) not in self.regular_links
        delay = time
        if self.credits is not None:
            delay = self.credits.time_to_enough(number, packet, time)
        delay += self.flight(number, packet.kind)
        self.at(self.now + delay, ARRIVE, packet, delay, rare=rare)
        port.free, port.sending = self.now + time, packet
        port.sent_wire += packet.wire
        self.made += 1
        port.rank = (RARE, 0, 0) if rare else (ORDER[SENT], time, self.made)
        port.asked = False
        leaves = self.credits is not None and number in self.credits.frees
        if leaves or port.pfc or any(port.queues) or any(port.flows):
            self.look_later(number)

    def look_later(self, number: int) -> None:
        """Look at what waits as soon as the port is free; in the order of the begin of sending."""
        port = self.ports[number]
        if not port.asked:
            port.asked = True
            rank, delay, made = port.rank
            self.made += 1
            heapq.heappush(self.heap, (port.free, rank, delay, made or self.made, SENT, number))

    def look(self, number: int) -> None:
        """Let a port send what waits, now or when it is free."""
        if self.ports[number].free <= self.free_by:
            self.kick(number)
        else:
            self.look_later(number)

    def enqueue(self, number: int, traffic: int, packet: Packet) -> None:
        port = self.ports[number]
        port.queues[traffic].append(packet)
        depth = sum(other.size for other in port.queues[traffic])
        port.most[traffic] = max(port.most[traffic], depth)
        self.look(number)

    def send_pfc(self, number: int, traffic: int, *, pause: bool) -> None:
        self.send_link_packet(number, 2 * traffic + pause)

    def send_link_packet(self, number: int, content: int) -> None:
        headers = self.config.headers
        size = headers.pfc_bytes
        self.sent[PFC] += 1
        frame = Packet(PFC, -1, content, size, size + headers.gap_bytes, -1, [number])
        self.ports[number].pfc.append(frame)
        self.look(number)

    # Arrivals --------------------------------------------------------------------------------

    def arrive(self, packet: Packet) -> None:
        channel = packet.route[packet.hop]
        if self.credits is not None and packet.kind != PFC:
            self.credits.take_room(channel, packet)
        if self.faults.is_stopped(packet):
            self.forget_room(packet, channel)
            return
        if packet.kind == PFC:
            self.received[PFC] += 1
            if self.credits is not None:
                self.credits.take_limit(self.reverse[channel], packet)
                return
            pause = packet.number % 2 == 1
            self.pauses.hold(self.reverse[channel], packet.number // 2, pause=pause)
            return
        if self.head[channel] < 0:
            self.receive(packet)
        else:
            self.forward(packet, channel)

    def forget_room(self, packet: Packet, channel: int) -> None:
        if self.credits is not None and packet.kind != PFC and self.head[channel] >= 0:
            self.credits.give_back(channel, packet.lane, packet.size)

    def forward(self, packet: Packet, channel: int) -> None:
        packet.hop += 1
        if self.hops is not None:
            chosen = self.hops.next_hop(packet, channel)
            if chosen is None:
                self.forget_room(packet, channel)
                self.faults.lose(packet, "route")
                return
            packet.route = [*packet.route[: packet.hop], chosen]
        packet.came_on, packet.came_lane = channel, packet.lane
        traffic, out = self.settings.queue(channel, packet.traffic), packet.route[packet.hop]
        packet.lane = traffic
        kind = self.settings.kind(channel, traffic)
        if self.pauses.drops(out, traffic):
            self.dropped[packet.kind] += 1
            return
        if not kind.is_counted:
            self.enqueue(out, traffic, packet)
            return
        buffer, tail = self.buffers[self.head[channel]], self.config.buffer.tail_bytes
        depth = sum(other.size for other in self.ports[out].queues[traffic])
        too_deep = kind is ClassKind.LOSSY and 0 < tail < depth + packet.size
        if too_deep or not buffer.admit(channel, traffic, packet.size):
            self.dropped[packet.kind] += 1
            return
        self.enqueue(out, traffic, packet)
        if kind is ClassKind.LOSSLESS and buffer.must_pause(channel, traffic):
            buffer.pausing.add((channel, traffic))
            self.pauses.send(channel, traffic)
