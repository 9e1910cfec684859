"""Who paused whom: pauses as spans of time, each with its cause, and the roots they all come from.

An input asks for a pause when its buffer fills. Most of its bytes wait in one queue of its switch.
If that queue is paused itself for half of the time that the pause lasts, or was when it was asked
for, that is the cause; otherwise the queue is the root: there the traffic is more than the link
takes. A NIC that asks for pauses is a root too. A sender without credits on an InfiniBand link is
told of in the same way; where nothing of its own waits behind the link, the link itself is the
root: its credits come back more slowly than it could send.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_tape_structs import (
    ASKED,
    CAUSE,
    CAUSE_HELD,
    CHANNEL,
    CLASS,
    EXPIRED,
    FREED,
    HELD_BACK,
    OVERRULED,
    TIME,
    WHAT,
)
from gpufabric.sim.packet_recording import PauseLog

__all__ = [
    "Ending",
    "PauseEdge",
    "PauseRoot",
    "PauseSpans",
    "pause_edges",
    "pause_roots",
    "pause_spans",
    "root_channel",
]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

NONE = -1
ENDED = 7  # place in a span
Lane = tuple[int, int]  # channel and class


class Ending(IntEnum):
    """What ended a pause."""

    NONE = 0
    """Nothing: it lasted to the end of the run."""
    XON = 1
    """The far end, or its credits."""
    TIME = 2
    """The time of the frame."""
    WATCHDOG = 3
    """The watchdog: from then on it dropped or forwarded what the pause kept waiting."""


ENDINGS = {FREED: Ending.XON, EXPIRED: Ending.TIME, OVERRULED: Ending.WATCHDOG}


@dataclass(frozen=True)
class PauseSpans:
    """Pauses in the order in which they took effect.

    Parameters
    ----------
    channel, traffic
        int32[n]: the port that stood still (the sending end of the channel), and the class.
    asked_ps
        int64[n]: when the far end asked for it [ps]; -1: not known, as of a NIC. Of one that the
        far end asked for again, but after the time of the one before: when that was over.
    from_ps, until_ps
        int64[n]: when it took effect and ended, or the run did [ps].
    at
        int32[n]: channel whose queue held most of the far end's bytes; -1: not known.
    cause
        int32[n]: the pause that stopped that queue; -1: none did, this one is a root.
    root
        int32[n]: the last one in its row of causes; itself for a root. Causes that go round in a
        circle (a deadlock) have the first of them as root.
    level
        int32[n]: how many causes lie between it and its root.
    ended
        int32[n]: what ended it, an ``Ending``.
    n_lost
        Events that there was no room to note.
    """

    channel: Ints
    traffic: Ints
    asked_ps: Longs
    from_ps: Longs
    until_ps: Longs
    at: Ints
    cause: Ints
    root: Ints
    level: Ints
    ended: Ints
    n_lost: int

    def __len__(self) -> int:
        return int(self.channel.size)

    @property
    def paused_ps(self) -> Longs:
        """int64[n]: how long each lasted [ps]."""
        return self.until_ps - self.from_ps


@dataclass(frozen=True)
class PauseRoot:
    """A place that pauses come from.

    Parameters
    ----------
    channel, traffic
        The queue that more bytes came to than left, and its class; where a NIC asked for pauses or
        a link had too few credits, its channel.
    is_nic
        Whether a NIC asked.
    from_ps
        First pause that took effect [ps].
    n_pauses, paused_ps
        Of the pauses that it caused, those of causes in between too [ps].
    channels
        int32[n]: the ports that stood still because of it.
    levels
        The longest row of causes; 1: nobody but its neighbours stood still.
    n_expired, n_overruled
        Of its pauses, those that their time ended, and those that a watchdog did.
    """

    channel: int
    traffic: int
    is_nic: bool
    from_ps: int
    n_pauses: int
    paused_ps: int
    channels: Ints
    levels: int
    n_expired: int
    n_overruled: int


@dataclass(frozen=True)
class PauseEdge:
    """A port that stood still because another one did, or because a root was full.

    Parameters
    ----------
    cause, channel
        Channels of the cause and of the port that stood still.
    traffic
        Class.
    is_root
        The cause did not stand still itself.
    n_pauses, paused_ps
        How often and for how long [ps].
    """

    cause: int
    channel: int
    traffic: int
    is_root: bool
    n_pauses: int
    paused_ps: int


def pause_spans(log: PauseLog) -> PauseSpans:
    """Put the events of a run together; see ``Recording.pause_rows``."""
    asked: dict[Lane, tuple[int, int, int]] = {}
    still: dict[Lane, int] = {}
    of_lane: dict[Lane, list[int]] = defaultdict(list)
    spans: list[list[int]] = []
    for row in log.rows.tolist():
        lane = row[CHANNEL], row[CLASS]
        if row[WHAT] == ASKED:
            trigger = still.get((row[CAUSE], row[CLASS]), NONE) if row[CAUSE_HELD] else NONE
            asked[lane] = row[TIME], row[CAUSE], trigger
        elif row[WHAT] == HELD_BACK:
            at_ps, at, trigger = asked.pop(lane, (NONE, NONE, NONE))
            before = of_lane[lane][-1] if of_lane[lane] else NONE
            if at_ps == NONE and before != NONE and spans[before][ENDED] == Ending.TIME:
                at_ps, at, trigger = _asked_again(spans[before])
            still[lane] = len(spans)
            of_lane[lane].append(len(spans))
            spans.append([*lane, at_ps, row[TIME], log.end_ps, at, trigger, 0])
        elif lane in still:
            span = spans[still.pop(lane)]
            span[4], span[ENDED] = row[TIME], ENDINGS[row[WHAT]]
    for span in spans:
        span[6] = _cause(span, spans, of_lane[span[5], span[1]])
    table = np.array(spans, np.int64).reshape(-1, 8).T
    short = [column.astype(np.int32) for column in table]
    root, level = _roots(short[6].tolist())
    return PauseSpans(
        channel=short[0],
        traffic=short[1],
        asked_ps=table[2],
        from_ps=table[3],
        until_ps=table[4],
        at=short[5],
        cause=short[6],
        root=root,
        level=level,
        ended=short[ENDED],
        n_lost=log.n_lost,
    )


def _asked_again(before: list[int]) -> tuple[int, int, int]:
    """Return since when a pause is asked for that follows one whose time was over, and for what."""
    is_nic = before[2] == NONE
    return NONE if is_nic else before[4], before[5], before[6]


def _cause(span: list[int], spans: list[list[int]], others: list[int]) -> int:
    """Return the pause that lasts longest of those that hold half of a span, or its trigger."""
    first_ps = span[3] if span[2] == NONE else span[2]
    until_ps, total_ps, longest_ps, longest = span[4], 0, 0, span[6]
    at = bisect.bisect_right(others, first_ps, key=lambda other: spans[other][4])
    while at < len(others) and spans[others[at]][3] < until_ps:
        other = spans[others[at]]
        shared_ps = min(until_ps, other[4]) - max(first_ps, other[3])
        total_ps += shared_ps
        if shared_ps > longest_ps:
            longest_ps, longest = shared_ps, others[at]
        at += 1
    return longest if 2 * total_ps >= until_ps - first_ps > 0 else span[6]


def _roots(cause: list[int]) -> tuple[Ints, Ints]:
    """Return the root and the level of every span; of a circle of causes the first span is root."""
    above = _without_circles(cause)
    root, level = [NONE] * len(cause), [0] * len(cause)
    for span in range(len(cause)):
        row, at = [span], span
        while root[at] == NONE and above[at] != NONE:
            at = above[at]
            row.append(at)
        if root[at] == NONE:
            root[at] = at
        for lower, upper in zip(row[-2::-1], row[:0:-1], strict=True):
            root[lower], level[lower] = root[upper], level[upper] + 1
    return np.array(root, np.int32), np.array(level, np.int32)


def _without_circles(cause: list[int]) -> list[int]:
    above, seen_from = list(cause), [NONE] * len(cause)
    for span in range(len(cause)):
        row, at = [], span
        while at != NONE and seen_from[at] == NONE:
            seen_from[at] = span
            row.append(at)
            at = above[at]
        if at != NONE and seen_from[at] == span:
            above[min(row[row.index(at) :])] = NONE
    return above


def _root_key(spans: PauseSpans, span: int) -> tuple[int, int, bool]:
    """Return the channel, class and kind of the root that a root span comes from."""
    at = spans.channel[span] if spans.at[span] == NONE else spans.at[span]
    return int(at), int(spans.traffic[span]), bool(spans.asked_ps[span] == NONE)


def root_channel(spans: PauseSpans, span: int) -> int:
    """Return the channel of the root that a pause comes from, as ``PauseRoot`` names it."""
    return _root_key(spans, int(spans.root[span]))[0]


def pause_roots(spans: PauseSpans) -> list[PauseRoot]:
    """Return the roots, the one that cost most time first."""
    members: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
    for span, root in enumerate(spans.root.tolist()):
        members[_root_key(spans, root)].append(span)
    roots = [
        PauseRoot(
            *key,
            from_ps=int(spans.from_ps[rows].min()),
            n_pauses=len(rows),
            paused_ps=int(spans.paused_ps[rows].sum()),
            channels=np.unique(spans.channel[rows]),
            levels=int(spans.level[rows].max()) + 1,
            n_expired=int((spans.ended[rows] == Ending.TIME).sum()),
            n_overruled=int((spans.ended[rows] == Ending.WATCHDOG).sum()),
        )
        for key, rows in members.items()
    ]
    return sorted(roots, key=lambda root: (-root.paused_ps, root.channel, root.traffic))


def pause_edges(spans: PauseSpans) -> list[PauseEdge]:
    """Return who paused whom, summed over time, the longest first."""
    rows: dict[tuple[int, int, int, bool], list[int]] = defaultdict(list)
    for span in range(len(spans)):
        cause, channel = int(spans.cause[span]), int(spans.channel[span])
        at = int(spans.channel[cause]) if cause != NONE else _root_key(spans, span)[0]
        rows[at, channel, int(spans.traffic[span]), cause == NONE].append(span)
    edges = [
        PauseEdge(*key, n_pauses=len(which), paused_ps=int(spans.paused_ps[which].sum()))
        for key, which in rows.items()
    ]
    return sorted(edges, key=lambda edge: (-edge.paused_ps, edge.channel, edge.traffic))
