"""What a packet run notes, from its definition: all changes are kept, and cut into bins at the end.

A queue of depth d over a span lies in every bin that the span shares time with; a depth that lasts
no time still counts for the deepest of its bin. Bins are as wide as the first width, doubled until
the last change fits.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_problem import PacketProblem
from tests.reference.packet import DATA, PFC, Packet
from tests.reference.packet_credit import Credits
from tests.reference.packet_ends import Engine
from tests.reference.packet_pause import Pauses

ASKED, HELD_BACK, FREED, EXPIRED, OVERRULED = range(5)
Queue = tuple[int, int]  # port and class


@dataclass
class Notes:
    """Everything in the order it happened; times in picoseconds."""

    depths: dict[Queue, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    busy: dict[Queue, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    paused: dict[Queue, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    log: list[list[int]] = field(default_factory=list)
    latencies: Counter[tuple[int, int]] = field(default_factory=Counter)


class TapedEngine(Engine):
    """An engine that keeps what happens."""

    def __init__(self, problem: PacketProblem, config: PacketConfig) -> None:
        self.notes = Notes()
        self.held_since: dict[Queue, int] = {}
        self.refreshes = False
        self.made_at: dict[Packet, int] = {}
        self.tail = [int(x) for x in problem.wires.tail]
        super().__init__(problem, config)
        self.pauses = TapedPauses(self)
        if self.credits is not None:
            self.credits = TapedCredits(self, problem)

    def note_depth(self, number: int, traffic: int) -> None:
        depth = sum(packet.size for packet in self.ports[number].queues[traffic])
        self.notes.depths[number, traffic].append((self.now, depth))

    def enqueue(self, number: int, traffic: int, packet: Packet) -> None:
        super().enqueue(number, traffic, packet)
        self.note_depth(number, traffic)

    def first_waiting(self, number: int, traffic: int) -> Packet:
        packet = super().first_waiting(number, traffic)
        self.note_depth(number, traffic)
        return packet

    def transmit(self, number: int, packet: Packet) -> None:
        if packet.kind != PFC:
            time = self.serial(packet.wire, self.gbps[number])
            self.notes.busy[number, packet.traffic].append((self.now, self.now + time))
        super().transmit(number, packet)

    def note_hold(self, number: int, traffic: int, *, was: bool, why: int = FREED) -> None:
        queue, holds = (number, traffic), traffic in self.ports[number].paused
        if holds and not was:
            self.held_since[queue] = self.now
        if was and not holds:
            self.notes.paused[queue].append((self.held_since.pop(queue), self.now))
        if was is not holds:
            self.notes.log.append([self.now, HELD_BACK if holds else why, *queue, -1, 0, 0])

    def send_pfc(self, number: int, traffic: int, *, pause: bool) -> None:
        super().send_pfc(number, traffic, pause=pause)
        channel = self.reverse[number]
        if pause and self.head[channel] >= 0 and not self.refreshes:
            self.ask(channel, traffic)

    def ask(self, channel: int, traffic: int) -> None:
        waiting: Counter[int] = Counter()
        for output, tail in enumerate(self.tail):
            if tail == self.head[channel]:
                for packet in self.ports[output].queues[traffic]:
                    if packet.came_on == channel:
                        waiting[output] += packet.size
        cause = min(waiting, key=lambda output: (-waiting[output], output), default=-1)
        is_held = cause >= 0 and traffic in self.ports[cause].paused
        self.notes.log.append(
            [self.now, ASKED, channel, traffic, cause, int(is_held), waiting[cause]]
        )

    def make_packet(self, number: int) -> Packet:
        packet = super().make_packet(number)
        self.made_at[packet] = self.now
        return packet

    def receive(self, packet: Packet) -> None:
        if packet.kind == DATA:
            place = latency_place(self.now - self.made_at[packet])
            self.notes.latencies[packet.traffic, place] += 1
        super().receive(packet)

    def close(self) -> None:
        """Let depths and pauses that last go on to the end."""
        for queue, changes in self.notes.depths.items():
            if changes[-1][1]:
                self.note_depth(*queue)
        for queue, since in self.held_since.items():
            self.notes.paused[queue].append((since, self.now))


class TapedPauses(Pauses):
    """Pauses of an engine that keeps what happens."""

    def __init__(self, engine: TapedEngine) -> None:
        super().__init__(engine)
        self.taped = engine
        self.why = FREED

    def stop(self, key: Queue) -> None:
        super().stop(key)
        self.taped.note_hold(*key, was=False)

    def resume(self, key: Queue) -> None:
        super().resume(key)
        self.taped.note_hold(*key, was=True, why=self.why)

    def refresh(self, place: int) -> None:
        """What is asked for again has been noted."""
        self.taped.refreshes = True
        super().refresh(place)
        self.taped.refreshes = False

    def expire(self, place: int) -> None:
        self.why = EXPIRED
        super().expire(place)
        self.why = FREED

    def watch(self, place: int) -> None:
        """A watchdog that forwards ends the pause; one that drops ends only what it does."""
        key = self.key(place)
        was_storm = key in self.storms
        self.why = FREED if was_storm else OVERRULED
        super().watch(place)
        self.why = FREED
        if not was_storm and self.storms.get(key) == "drop":
            self.taped.notes.log.append([self.taped.now, OVERRULED, *key, -1, 0, 0])


class TapedCredits(Credits):
    """Credits of an engine that keeps what happens."""

    def __init__(self, engine: TapedEngine, problem: PacketProblem) -> None:
        super().__init__(engine, problem.faults)
        self.taped = engine

    def mark_starved(self, number: int) -> None:
        port, engine = self.engine.ports[number], self.taped
        before = set(port.paused)
        super().mark_starved(number)
        for lane in range(len(port.queues)):
            if lane in port.paused - before and engine.head[number] >= 0:
                engine.ask(number, lane)
            engine.note_hold(number, lane, was=lane in before)


def latency_place(time: int) -> int:
    """Exact to 64; above, 32 places for each power of two."""
    if time < 64:
        return time
    power = time.bit_length() - 6
    return 64 + 32 * (power - 1) + (time >> power) - 32


def bin_width_ps(notes: Notes, first_ps: int, n_bins: int) -> tuple[int, int]:
    """The width of all bins, and the last time that anything is known of."""
    last = 0
    for spans in (*notes.depths.values(), *notes.busy.values(), *notes.paused.values()):
        last = max(last, *(max(span[0], 0) for span in spans))
    for spans in (*notes.busy.values(), *notes.paused.values()):
        last = max(last, *(span[1] for span in spans))
    while last >= n_bins * first_ps:
        first_ps *= 2
    return first_ps, last


def span_bins(spans: list[tuple[int, int]], width: int, n_bins: int) -> list[int]:
    """Time of the spans in each bin."""
    return [
        sum(max(0, min(until, (at + 1) * width) - max(since, at * width)) for since, until in spans)
        for at in range(n_bins)
    ]


def depth_bins(
    changes: list[tuple[int, int]], width: int, n_bins: int
) -> tuple[list[int], list[int]]:
    """Deepest, and depth times time, in each bin."""
    deepest, filled = [0] * n_bins, [0] * n_bins
    for at in range(n_bins):
        since, until = at * width, (at + 1) * width
        inside = [depth for time, depth in changes if since <= time < until]
        for (begin, depth), (end, _) in itertools.pairwise(changes):
            shared = max(0, min(end, until) - max(begin, since))
            filled[at] += depth * shared
            if shared:
                inside.append(depth)
        deepest[at] = max(inside, default=0)
    return deepest, filled


def cells(engine: TapedEngine, queue: Queue, width: int, n_bins: int) -> list[tuple[Any, ...]]:
    """Deepest, filled, busy and paused of a queue, bin by bin."""
    notes = engine.notes
    deepest, filled = depth_bins(notes.depths.get(queue, []), width, n_bins)
    busy = span_bins(notes.busy.get(queue, []), width, n_bins)
    paused = span_bins(notes.paused.get(queue, []), width, n_bins)
    return list(zip(deepest, filled, busy, paused, strict=True))
