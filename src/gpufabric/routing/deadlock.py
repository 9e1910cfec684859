"""Whether lossless traffic can deadlock under a routing: channels that wait in a circle.

All traffic of one lossless priority (RoCE) or virtual lane (InfiniBand) shares buffers, and each
priority or lane is checked on its own; one that may drop packets cannot deadlock. Turns come from
the forwarding itself, for all paths between hosts, not from the cabling alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.kernels.channel_order import (
    REMOVED,
    find_circle,
    list_turns,
    mark_shortest,
    mark_tables,
    new_turns,
)
from gpufabric.routing.channels import Channels
from gpufabric.routing.paths import WalkedPaths
from gpufabric.routing.shortest import ShortestPaths
from gpufabric.routing.tables import ForwardingTables

__all__ = ["Deadlock", "Turns", "find_deadlock", "turns_of", "turns_of_edges", "turns_of_paths"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

MOST_REMOVED = 64


@dataclass(frozen=True, eq=False)
class Turns:
    """What waits for what: a graph in CSR form.

    Parameters
    ----------
    first
        int64[n + 1]: what follows member m is ``after[first[m]]`` … ``after[first[m + 1] - 1]``.
    after
        int32[n_turns].
    name
        Gives a member's name.
    climb
        int8[n]: 1 for channels that go up a tier, -1 for those that go down, 0 for others.
    """

    first: Longs
    after: Ints
    name: Callable[[int], str]
    climb: npt.NDArray[np.int8]

    @property
    def n_turns(self) -> int:
        """Number of turns."""
        return len(self.after)


@dataclass(frozen=True)
class Deadlock:
    """The outcome of a check.

    Parameters
    ----------
    cycle
        Names of the channels of one circle, in order; empty: no deadlock is possible.
    remove
        Turns to take out of the routing, each a channel and the one after it: without them there
        is no circle.
    is_complete
        False if circles are left even without the turns of `remove`: there are too many.
    n_channels, n_turns
        What was looked at.
    """

    cycle: tuple[str, ...]
    remove: tuple[tuple[str, str], ...]
    is_complete: bool
    n_channels: int
    n_turns: int

    @property
    def is_free(self) -> bool:
        """Whether no deadlock is possible."""
        return not self.cycle

    def describe(self) -> str:
        """Return the verdict in words, the circle hop by hop."""
        counts = {"channels": self.n_channels, "turns": self.n_turns}
        if self.is_free:
            return _("No deadlock: {channels} channels, {turns} turns, no circle.").format(**counts)
        lines = [_("Deadlock is possible: each of these channels waits for the next one:")]
        lines += [f"  {name}" for name in (*self.cycle, self.cycle[0])]
        lines.append(
            _("Without these turns there is no circle:")
            if self.is_complete
            else _("There are many circles; begin with these turns:")
        )
        lines += [f"  {before}  +  {after}" for before, after in self.remove]
        return "\n".join(lines)


def turns_of(forwarding: ShortestPaths | ForwardingTables) -> Turns:
    """Return the turns that traffic between all hosts takes, over ECMP groups or along tables."""
    channels = forwarding.channels
    graph = channels.graph
    bits = new_turns(graph)
    leafs = np.unique(channels.leaf_of[channels.endpoints]).astype(np.int32)
    if isinstance(forwarding, ShortestPaths):
        is_source = np.zeros(len(graph.tier), np.int8)
        is_source[leafs] = 1
        mark_shortest(forwarding.way, forwarding.networks, is_source, bits)
    else:
        _mark_lids(forwarding, leafs, bits)
    first, after = list_turns(graph, bits)
    tail = np.repeat(np.arange(len(graph.tier)), np.diff(graph.first))
    climb = np.sign(graph.tier[graph.head] - graph.tier[tail]).astype(np.int8)
    return Turns(first, after, lambda edge: channels.name(int(graph.channel[edge])), climb)


def _mark_lids(tables: ForwardingTables, leafs: Ints, bits: Longs) -> None:
    channels = tables.channels
    ends = channels.endpoints
    for number in range(len(tables.used)):
        mine = ends[channels.network_of[channels.leaf_of[ends]] == number]
        sources = leafs[channels.network_of[leafs] == number]
        for offset in range(tables.lids.per_port):
            lid = (tables.lids.of_port[mine] + offset).astype(np.int32)
            mark_tables(channels.graph, tables.tables, sources, channels.leaf_of[mine], lid, bits)


def turns_of_paths(
    channels: Channels, paths: WalkedPaths, lane: Ints | None = None, n_lanes: int = 1
) -> Turns:
    """Return the turns of given paths, each a row of channels of one path.

    Parameters
    ----------
    channels
        What the paths are made of.
    paths
        One path a row, not one divided over several.
    lane
        int[n_entries]: virtual lane of each entry, where paths change lanes; all on one where None.
    n_lanes
        Lanes there are.
    """
    lanes = np.zeros(len(paths.channel), np.int64) if lane is None else np.asarray(lane, np.int64)
    member = paths.channel.astype(np.int64) * n_lanes + lanes
    is_last = np.zeros(len(member), np.bool_)
    ends = paths.first[1:][np.diff(paths.first) > 0]
    is_last[ends - 1] = True
    pairs = np.stack([member[:-1], member[1:]], axis=1)[~is_last[:-1]]
    size = len(channels.capacity_gbps) * n_lanes

    def name(number: int) -> str:
        text = channels.name(number // n_lanes)
        return text if n_lanes == 1 else f"{text} VL{number % n_lanes}"

    return _from_pairs(pairs, size, name)


def turns_of_edges(edges: Iterable[tuple[str, str]]) -> Turns:
    """Return the turns given by name: pairs of a buffer or channel and the one after it."""
    number: dict[str, int] = {}
    pairs = [
        (number.setdefault(before, len(number)), number.setdefault(after, len(number)))
        for before, after in edges
    ]
    names = list(number)
    return _from_pairs(np.array(pairs, np.int64).reshape(-1, 2), len(names), lambda n: names[n])


def _from_pairs(pairs: Longs, size: int, name: Callable[[int], str]) -> Turns:
    pairs = np.unique(pairs, axis=0) if len(pairs) else pairs
    first = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(pairs[:, 0], minlength=size), out=first[1:])
    return Turns(first, pairs[:, 1].astype(np.int32), name, np.zeros(size, np.int8))


def find_deadlock(turns: Turns) -> Deadlock:
    """Return whether channels can wait in a circle, one circle, and the turns to remove.

    Examples
    --------
    Flooding closes the circle of two leafs and two top-of-rack switches:

    >>> normal = [("T0-La", "La-T1"), ("T1-Lb", "Lb-T0")]
    >>> find_deadlock(turns_of_edges(normal)).is_free
    True
    >>> flooded = [*normal, ("La-T1", "T1-Lb"), ("Lb-T0", "T0-La")]
    >>> find_deadlock(turns_of_edges(flooded)).cycle
    ('T0-La', 'La-T1', 'T1-Lb', 'Lb-T0')
    """
    after = turns.after.copy()
    circle = find_circle(turns.first, after)
    cycle = tuple(turns.name(member) for member in circle.tolist())
    remove: list[tuple[str, str]] = []
    while len(circle) and len(remove) < MOST_REMOVED:
        before, place = _best_turn(turns, after, circle)
        remove.append((turns.name(before), turns.name(int(after[place]))))
        after[place] = REMOVED
        circle = find_circle(turns.first, after)
    return Deadlock(cycle, tuple(remove), not len(circle), len(turns.climb), turns.n_turns)


def _best_turn(turns: Turns, after: Ints, circle: Ints) -> tuple[int, int]:
    """Turn of a circle to remove: one that breaks all circles, else one that climbs after a fall.

    Returns the channel before it, and the turn's place in `after`.
    """
    found = [
        (before, _place(turns, after, before, following))
        for before, following in _pairs(circle.tolist())
    ]
    found.sort(key=lambda turn: -_is_valley(turns, turn[0], int(after[turn[1]])))
    for before, place in found:
        following = int(after[place])
        after[place] = REMOVED
        is_broken = not len(find_circle(turns.first, after))
        after[place] = following
        if is_broken:
            return before, place
    return found[0]


def _pairs(circle: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(circle, [*circle[1:], circle[0]], strict=True))


def _place(turns: Turns, after: Ints, before: int, following: int) -> int:
    start, end = int(turns.first[before]), int(turns.first[before + 1])
    return start + int(np.flatnonzero(after[start:end] == following)[0])


def _is_valley(turns: Turns, before: int, following: int) -> bool:
    return bool(turns.climb[before] < 0 < turns.climb[following])
