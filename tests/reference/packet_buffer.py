"""A switch's shared buffer, from the rules of docs/models/packet.md."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from gpufabric.sim.packet_config import ClassKind

if TYPE_CHECKING:
    from tests.reference.packet import Engine


class Buffer:
    """A switch's memory; `used`, `headroom` and `pausing` by channel and class."""

    def __init__(self, engine: Engine, channels: list[int], total_bytes: int) -> None:
        self.engine = engine
        buffer = engine.config.buffer
        self.pool = total_bytes
        for channel in channels:
            for traffic in range(len(engine.config.classes)):
                self.pool -= engine.settings.headroom(channel, traffic)
                if engine.settings.kind(channel, traffic).is_counted:
                    self.pool -= buffer.reserve_bytes
        self.reserve = buffer.reserve_bytes
        self.shared = 0
        self.used: Counter[tuple[int, int]] = Counter()
        self.above: Counter[tuple[int, int]] = Counter()
        self.pausing: set[tuple[int, int]] = set()

    def threshold(self, channel: int, traffic: int) -> int:
        static = self.engine.settings.xoff(channel, traffic)
        if static:
            return static
        power = self.engine.settings.alpha_log2(channel, traffic)
        return math.floor((self.pool - self.shared) * 2.0**power)

    def admit(self, channel: int, traffic: int, size: int) -> bool:
        key = channel, traffic
        over = self.used[key] + size - self.reserve
        share = max(0, min(size, over))
        fits = over <= self.threshold(channel, traffic) and share <= self.pool - self.shared
        if over <= 0 or fits:
            self.used[key] += size
            self.shared += share
            return True
        settings = self.engine.settings
        lossless = settings.kind(channel, traffic) is ClassKind.LOSSLESS
        if lossless and self.above[key] + size <= settings.headroom(channel, traffic):
            self.above[key] += size
            return True
        return False

    def release(self, channel: int, traffic: int, size: int) -> None:
        key = channel, traffic
        high = min(self.above[key], size)
        self.above[key] -= high
        before = max(0, self.used[key] - self.reserve)
        self.used[key] -= size - high
        self.shared -= before - max(0, self.used[key] - self.reserve)

    def must_pause(self, channel: int, traffic: int) -> bool:
        key = channel, traffic
        share = max(0, self.used[key] - self.reserve)
        full = self.above[key] > 0 or share >= self.threshold(channel, traffic)
        able = self.engine.settings.sends_pfc(channel, traffic)
        return key not in self.pausing and full and able

    def may_resume(self, channel: int, traffic: int) -> bool:
        key = channel, traffic
        if key not in self.pausing or self.above[key] > 0:
            return False
        share = max(0, self.used[key] - self.reserve)
        low = share + self.engine.config.buffer.xon_offset_bytes <= self.threshold(channel, traffic)
        return share == 0 or low
