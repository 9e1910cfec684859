"""Arbitration of virtual lanes from section 7.6.9 of the InfiniBand specification."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpufabric.sim.packet_infiniband_config import Arbitration
    from tests.reference.packet import Packet, Port


def blocks(size: int) -> int:
    """Credits of a packet."""
    return math.ceil(size / 64)


class Table:
    """Lanes with weights, each in its turn."""

    def __init__(self, lanes: tuple[int, ...], weights: tuple[int, ...]) -> None:
        self.entries = list(zip(lanes, weights, strict=True))
        self.row = list(range(len(self.entries)))  # the one at work first
        self.left = self.entries[0][1] if self.entries else 0

    def entry_of(self, able: set[int]) -> int | None:
        if self.row and self.left > 0 and self.entries[self.row[0]][0] in able:
            return self.row[0]
        for entry in self.row[1:] + self.row[:1]:
            lane, weight = self.entries[entry]
            if weight and lane in able:
                return entry
        return None

    def charge(self, entry: int, size: int) -> None:
        if entry != self.row[0] or self.left <= 0:
            while self.row[0] != entry:
                self.row.append(self.row.pop(0))
            self.left = self.entries[entry][1]
        self.left -= blocks(size)


class Arbiter:
    """One port."""

    def __init__(self, rules: Arbitration) -> None:
        self.high = Table(rules.high_lanes, rules.high_weights)
        self.low = Table(rules.low_lanes, rules.low_weights)
        limit = {255: math.inf, 0: 1}.get(rules.high_limit, 64 * rules.high_limit)
        self.limit = self.limit_left = limit
        self.picked: tuple[Table, int] | None = None

    def next_lane(self, port: Port) -> int | None:
        able = {
            lane
            for lane in range(len(port.queues))
            if lane not in port.paused and (port.queues[lane] or port.flows[lane])
        }
        high, low = self.high.entry_of(able), self.low.entry_of(able)
        if high is not None and (low is None or self.limit_left > 0):
            self.picked = self.high, high
        elif low is not None:
            self.picked = self.low, low
        else:
            return None
        table, entry = self.picked
        return table.entries[entry][0]

    def charge(self, packet: Packet) -> None:
        assert self.picked is not None
        table, entry = self.picked
        table.charge(entry, packet.size)
        if table is self.low or self.limit_left <= 0:
            self.limit_left = self.limit
        if table is self.high:
            self.limit_left -= blocks(packet.size)
