"""Forwarding tables of a fat tree by OpenSM's ftree, recursively, with dicts.

Source: OpenSM 3.3, osm_ucast_ftree.c; E. Zahavi et al., "Optimized InfiniBand fat-tree routing for
shift all-to-all communication patterns", 2010.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.reference.lft import Tables

Bunch = tuple[int, int]  # from one switch to another


class Climber:
    """Routes destinations one after the other.

    `lanes` gives, for two switches, the pairs of ports (here, there) of their parallel links;
    `index` orders the switches; `rank` is 0 for roots.
    """

    def __init__(
        self,
        lanes: Mapping[Bunch, Sequence[tuple[int, int]]],
        rank: Mapping[int, int],
        index: Mapping[int, int],
        leafs: Sequence[int],
    ) -> None:
        self.lanes, self.rank, self.index, self.leafs = lanes, rank, index, set(leafs)
        self.tables: Tables = [{} for _ in rank]
        self.bunch_load: Counter[Bunch] = Counter()
        self.lane_load: Counter[tuple[int, int, int]] = Counter()
        self.steps: dict[int, int] = {}

    def neighbours(self, switch: int, step: int) -> list[int]:
        """Switches one rank down (1) or up (-1), in order of load, equals in order of index."""
        near = [
            there
            for here, there in self.lanes
            if here == switch and (self.rank[there] - self.rank[switch]) * step > 0
        ]
        return self.in_order(switch, near)

    def in_order(self, switch: int, near: list[int]) -> list[int]:
        return sorted(near, key=lambda there: (self.bunch_load[switch, there], self.index[there]))

    def least_loaded(self, switch: int, there: int) -> int:
        """Number of the first of the parallel links with the fewest routes."""
        lanes = range(len(self.lanes[switch, there]))
        return min(lanes, key=lambda lane: self.lane_load[switch, there, lane])

    def is_nearer(self, switch: int, there: int) -> bool:
        return there not in self.steps or self.steps[switch] + 1 < self.steps[there]

    def write(self, switch: int, there: int, lane: int, lid: int) -> None:
        """Let `there` forward to `switch`."""
        if lid:
            self.tables[there][lid] = self.lanes[switch, there][lane][1]
            self.steps[there] = self.steps[switch] + 1

    def count(self, switch: int, there: int, lane: int) -> None:
        self.bunch_load[switch, there] += 1
        self.lane_load[switch, there, lane] += 1

    def descend(self, switch: int, before: int | None, lid: int) -> bool:
        """Serve all below; tell whether a leaf was."""
        made = switch in self.leafs
        for there in self.neighbours(switch, 1):
            if there == before or not self.is_nearer(switch, there):
                continue
            lane = self.least_loaded(switch, there)
            self.write(switch, there, lane, lid)
            if self.descend(there, None, lid):
                made = True
                self.count(switch, there, lane)
        return made

    def climb(self, switch: int, before: int | None, lid: int, counted: bool) -> None:
        """Serve all below and above; the first way up counts where `counted`."""
        self.descend(switch, before, lid)
        for number, there in enumerate(self.neighbours(switch, -1)):
            is_main = counted and number == 0
            if not lid and not is_main:
                return
            lane = self.least_loaded(switch, there)
            if is_main:
                self.count(switch, there, lane)
            if self.is_nearer(switch, there):
                self.write(switch, there, lane, lid)
                self.climb(there, switch, lid, is_main)


def fat_tree_tables(
    climber: Climber,
    hosts: Sequence[tuple[int, Sequence[tuple[int, int]]]],
    switch_lid: Sequence[int],
) -> Tables:
    """Port by LID for every switch; `hosts` as in ``lft.forwarding_tables``."""
    fullest = max(len(ends) for _, ends in hosts)
    for leaf, ends in hosts:
        for lid, port in ends:
            climber.steps = {leaf: 1}
            climber.tables[leaf][lid] = port
            climber.climb(leaf, None, lid, True)
        climber.steps = {}
        for _ in range(fullest - len(ends)):
            climber.climb(leaf, None, 0, True)
    for switch, lid in enumerate(switch_lid):
        climber.steps = {switch: 0}
        climber.tables[switch][lid] = 0
        climber.climb(switch, None, lid, False)
    return climber.tables
