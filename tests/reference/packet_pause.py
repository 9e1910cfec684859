"""PFC pauses at the ports that obey them, with an end and a watchdog."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.reference.packet import Engine

EXPIRE, REFRESH, WATCH, PURGE = range(10, 14)  # events
US = 1_000_000


class Pauses:
    """What is known of each class of each port: ``(port, class)``; inputs have the same names."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.quanta = engine.config.pause_time.quanta
        self.watchdog = engine.config.watchdog
        self.asked: set[tuple[int, int]] = set()
        self.until: dict[tuple[int, int], int] = {}
        self.again: dict[tuple[int, int], int] = {}
        self.since: dict[tuple[int, int], int] = {}
        self.last_frame: dict[tuple[int, int], int] = {}
        self.watched: set[tuple[int, int]] = set()
        self.storms: dict[tuple[int, int], str] = {}
        self.n_storms: Counter[tuple[int, int]] = Counter()
        self.expired: Counter[tuple[int, int]] = Counter()
        self.dropped: Counter[tuple[int, int]] = Counter()

    def time(self, port: int) -> int:
        """For this long an XOFF holds."""
        return int(self.quanta * 512 * 1000 / self.engine.gbps[port])

    def later(self, key: tuple[int, int], time: int, kind: int) -> None:
        place = key[0] * (len(self.engine.config.classes) + 1) + key[1]
        self.engine.at(time, kind, place, rare=True)

    def key(self, place: int) -> tuple[int, int]:
        return divmod(place, len(self.engine.config.classes) + 1)

    def is_paused(self, key: tuple[int, int]) -> bool:
        return key[1] in self.engine.ports[key[0]].paused

    def hold(self, number: int, traffic: int, *, pause: bool) -> None:
        key, now = (number, traffic), self.engine.now
        if not self.engine.settings.obeys_pfc(number, traffic):
            return
        self.last_frame[key] = now
        self.asked.discard(key)
        if pause:
            self.asked.add(key)
            if self.quanta:
                self.until[key] = now + self.time(number)
                self.later(key, self.until[key], EXPIRE)
        if key in self.storms:
            return
        if pause and not self.is_paused(key):
            self.stop(key)
        elif not pause and self.is_paused(key):
            self.resume(key)

    def stop(self, key: tuple[int, int]) -> None:
        port = self.engine.ports[key[0]]
        port.paused.add(key[1])
        port.n_pauses += 1
        self.since[key] = self.engine.now
        guarded = self.watchdog is not None and self.engine.settings.has_watchdog(*key)
        if guarded and key not in self.watched:
            self.watched.add(key)
            self.later(key, self.engine.now + self.detect, WATCH)

    def resume(self, key: tuple[int, int]) -> None:
        self.engine.ports[key[0]].paused.remove(key[1])
        self.engine.kick(key[0])

    def send(self, channel: int, traffic: int) -> None:
        """Let an input send XOFF, and note when it sends another one."""
        key = channel, traffic
        self.engine.send_pfc(self.engine.reverse[channel], traffic, pause=True)
        if self.quanta:
            part = self.engine.config.pause_time.refresh_part
            self.again[key] = self.engine.now + max(1, int(self.time(key[0]) * part))
            self.later(key, self.again[key], REFRESH)

    def expire(self, place: int) -> None:
        key = self.key(place)
        if key in self.asked and self.until[key] == self.engine.now:
            self.asked.remove(key)
            if key not in self.storms and self.is_paused(key):
                self.expired[key] += 1
                self.resume(key)

    def refresh(self, place: int) -> None:
        key = self.key(place)
        buffer = self.engine.buffers[self.engine.head[key[0]]]
        if key in buffer.pausing and self.again[key] == self.engine.now:
            self.send(*key)

    @property
    def detect(self) -> int:
        assert self.watchdog is not None
        return round(self.watchdog.detect_us * US)

    @property
    def restore(self) -> int:
        assert self.watchdog is not None
        return round(self.watchdog.restore_us * US)

    def watch(self, place: int) -> None:
        key, now = self.key(place), self.engine.now
        if key in self.storms:
            self.look_at_storm(key)
        elif not self.is_paused(key):
            self.watched.remove(key)
        elif self.since[key] + self.detect > now:
            self.later(key, self.since[key] + self.detect, WATCH)
        elif not self.engine.ports[key[0]].queues[key[1]]:
            self.later(key, now + self.detect, WATCH)
        else:
            assert self.watchdog is not None
            self.storms[key] = self.watchdog.action
            self.n_storms[key] += 1
            if self.watchdog.action == "drop":
                self.later(key, now, PURGE)
            else:
                self.resume(key)
            self.later(key, now + self.restore, WATCH)

    def look_at_storm(self, key: tuple[int, int]) -> None:
        now = self.engine.now
        last = now if key in self.asked else self.last_frame[key]
        if last + self.restore > now:
            self.later(key, last + self.restore, WATCH)
            return
        del self.storms[key]
        self.watched.remove(key)
        if self.is_paused(key):
            self.resume(key)

    def drops(self, number: int, traffic: int) -> bool:
        """Whether the watchdog drops a packet that is to leave there; it counts it."""
        if self.storms.get((number, traffic)) != "drop":
            return False
        self.dropped[number, traffic] += 1
        return True

    def purge(self, place: int) -> None:
        key = self.key(place)
        if self.engine.ports[key[0]].queues[key[1]] and self.drops(*key):
            packet = self.engine.take_waiting(*key)
            self.engine.dropped[packet.kind] += 1
            self.later(key, self.engine.now, PURGE)
