"""Traces played again: what each rank does, when what it waits for has ended.

Rules. An operation begins when all it waits for have ended, and its idle time before it has
passed; of one queue only one goes at a time, the first that could. Collectives of one group go in
the same order on all its ranks: that of the files, as far as dependencies allow. A collective
begins when the last of its ranks is there. A receive ends when the message has come; a send when
it has gone. Ranks without a trace are always there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.trace import (
    COLLECTIVE,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
)

__all__ = ["Job", "Played", "job_of", "order_of", "play"]

Ranks = tuple[int, ...]
Instance = tuple[str, Ranks, int]
_SHOWN = 6
MOST_RANKS = 2**20


@dataclass(frozen=True)
class Job:
    """Traces of a job with what is known of all of them.

    Parameters
    ----------
    traces
        One for each rank, or one that stands for all.
    n_ranks
        Of the job.
    orders
        For each trace: its operations so that none comes before what it waits for.
    members
        For each trace: ranks of the collective of each operation; None for others.
    groups
        All groups, each once.
    n_waits, behind
        For each trace: how many operations each waits for, and which wait for it; the collective
        before of the same group counts.
    meetings
        For each trace: which collective or message an operation is part of.
    """

    traces: tuple[RankTrace, ...]
    n_ranks: int
    orders: tuple[tuple[int, ...], ...]
    members: tuple[tuple[Ranks | None, ...], ...]
    groups: tuple[Ranks, ...]
    n_waits: tuple[list[int], ...]
    behind: tuple[list[list[int]], ...]
    meetings: tuple[dict[int, object], ...]


class Played(NamedTuple):
    """When an operation ran [us], and since when it was ready."""

    rank: int
    place: int
    ready_us: float
    start_us: float
    end_us: float


def job_of(traces: Sequence[RankTrace], n_ranks: int | None = None) -> Job:
    """Return traces as a job.

    Parameters
    ----------
    traces
        One for each rank, or one that stands for all.
    n_ranks
        Of the job; as the traces tell where None.

    Raises
    ------
    InputError
        If operations wait for each other in a circle, a group is unknown or has ranks that are
        not there, or ranks do not do the same collectives.
    """
    told = max(1, *(max(trace.world, trace.rank + 1, 1 + _farthest(trace)) for trace in traces))
    n = n_ranks or told
    if n < told:
        what = _("{n} ranks; the traces tell of {told}.").format(n=n, told=told)
        raise InputError(Fault("--ranks", what, _("{told} or more").format(told=told)))
    if n > MOST_RANKS:
        what = _("{n} ranks.").format(n=n)
        raise InputError(Fault(traces[0].file, what, _("at most {most}").format(most=MOST_RANKS)))
    orders = tuple(order_of(trace) for trace in traces)
    everyone = tuple(range(n))
    members = tuple(_members(trace, everyone) for trace in traces)
    groups = {ranks for row in members for ranks in row if ranks is not None}
    groups |= {ranks for trace in traces for ranks in trace.groups.values() if len(ranks) > 1}
    rows = list(zip(traces, orders, members, strict=True))
    chained = [_chained(*row) for row in rows]
    return Job(
        tuple(traces),
        n,
        orders,
        members,
        tuple(sorted(groups)),
        tuple([len(after) for after in part] for part in chained),
        tuple(_links(part) for part in chained),
        tuple(_instances(rows)),
    )


def _farthest(trace: RankTrace) -> int:
    """Highest rank that a rank sends to or receives from; -1 if it does not.

    Raises
    ------
    InputError
        If it is the rank itself.
    """
    farthest = -1
    for operation in trace.operations:
        if operation.kind in {SEND, RECEIVE} and operation.message is not None:
            if operation.message.peer == trace.rank:
                what = _('"{name}" is from rank {rank} to itself.').format(
                    name=operation.name[:64], rank=trace.rank
                )
                raise InputError(Fault(operation.where, what, _("another rank")))
            farthest = max(farthest, operation.message.peer)
    return farthest


def order_of(trace: RankTrace) -> tuple[int, ...]:
    """Return the places of a rank's operations, none before what it waits for.

    Of several that could be next, the first in the file is.

    Raises
    ------
    InputError
        If there is a circle.
    """
    waiting = [len(operation.after) for operation in trace.operations]
    heap = [place for place, count in enumerate(waiting) if count == 0]
    behind = _links([operation.after for operation in trace.operations])
    order = []
    while heap:
        place = heapq.heappop(heap)
        order.append(place)
        for other in behind[place]:
            waiting[other] -= 1
            if waiting[other] == 0:
                heapq.heappush(heap, other)
    if len(order) < len(waiting):
        circle = _circle(trace, waiting)
        names = " → ".join(trace.operations[at].name[:40] or str(at) for at in circle[:_SHOWN])
        what = _("operations wait for each other in a circle: {names}.").format(names=names)
        raise InputError(Fault(trace.operations[circle[0]].where, what, _("no circle")))
    return tuple(order)


def _circle(trace: RankTrace, waiting: Sequence[int]) -> list[int]:
    """Operations that wait for each other, from those that never could begin."""
    place = next(at for at, count in enumerate(waiting) if count)
    path: dict[int, None] = {}
    while place not in path:
        path[place] = None
        place = next(before for before in trace.operations[place].after if waiting[before])
    steps = list(path)
    return [*steps[steps.index(place) :], place][::-1]


def _members(trace: RankTrace, everyone: Ranks) -> tuple[Ranks | None, ...]:
    """Ranks of the collective of each operation."""
    found: list[Ranks | None] = []
    faults: dict[str, Fault] = {}
    for operation in trace.operations:
        message = operation.message
        if message is None or operation.kind != COLLECTIVE:
            found.append(None)
            continue
        ranks = trace.groups.get(message.group)
        if ranks is None and message.group not in {"", "0"} and _is_named(trace, message.group):
            what = _('the ranks of group "{name}" are not told.').format(name=message.group[:64])
            remedy = _('Put a file such as comm_group.json beside it: {"1": [0, 1]}.')
            faults.setdefault(message.group, Fault(operation.where, what, remedy=remedy))
        found.append(tuple(sorted(ranks)) if ranks else everyone)
        is_whole = ranks is None or len(set(ranks)) == len(ranks)
        if ranks and (trace.rank not in ranks or max(ranks) >= len(everyone) or not is_whole):
            what = _('group "{name}" is {ranks}; the rank is {rank} of {n}.').format(
                name=message.group[:64], ranks=str(list(ranks))[:64], rank=trace.rank,
                n=len(everyone),
            )  # fmt: skip
            faults.setdefault(message.group, Fault(operation.where, what))
    if faults:
        raise InputError(faults.values())
    return tuple(found)


def _is_named(trace: RankTrace, group: str) -> bool:
    """Whether a group without known ranks is one of several, and so cannot be all ranks."""
    return trace.form == "chakra" or bool(trace.groups) or group != "default_pg"


def play(
    job: Job,
    own_us: Callable[[TraceOperation], float],
    collective_us: Callable[[Ranks, Message], float],
    message_us: Callable[[int, int, Message], float],
) -> list[Played]:
    """Return when each operation runs.

    Parameters
    ----------
    job
        The traces.
    own_us
        Time of what a rank does alone [us].
    collective_us
        Time of a collective of some ranks, from when the last is there [us].
    message_us
        Time of a message from a rank to another [us].

    Raises
    ------
    InputError
        If ranks wait for each other for ever.
    """
    player = _Player(job, own_us, collective_us, message_us)
    player.run()
    return player.played


@dataclass
class _Meeting:
    """A collective, or a message, that waits for its ranks."""

    wanted: int
    there: list[tuple[int, int, float]] = field(default_factory=list)


class _Player:
    """The state of a replay: events in order of time, queues, and meetings."""

    def __init__(
        self,
        job: Job,
        own_us: Callable[[TraceOperation], float],
        collective_us: Callable[[Ranks, Message], float],
        message_us: Callable[[int, int, Message], float],
    ) -> None:
        self.job = job
        self.own_us, self.collective_us, self.message_us = own_us, collective_us, message_us
        self.played: list[Played] = []
        self._events: list[tuple[float, int, int, int]] = []  # time, trace, place, is an end
        self._at = {trace.rank: at for at, trace in enumerate(job.traces)}
        self._waiting = [list(waits) for waits in job.n_waits]
        self._busy: set[tuple[int, str]] = set()
        self._queued: dict[tuple[int, str], list[tuple[float, int]]] = {}
        self._meetings: dict[object, _Meeting] = {}
        self._traced: dict[Ranks, int] = {}

    def run(self) -> None:
        for at, waiting in enumerate(self._waiting):
            for place in self.job.orders[at]:
                if waiting[place] == 0:
                    self._ready(0.0, at, place)
        while self._events:
            now_us, is_end, at, place = heapq.heappop(self._events)
            if is_end:
                self._ended(now_us, at, place)
            else:
                self._begin(now_us, at, place)
        n = sum(len(trace.operations) for trace in self.job.traces)
        if len(self.played) < n:
            raise InputError(self._stuck())

    def _push(self, time_us: float, at: int, place: int, *, is_end: bool) -> None:
        heapq.heappush(self._events, (time_us, int(is_end), at, place))

    def _ready(self, now_us: float, at: int, place: int) -> None:
        lead_us = self.job.traces[at].operations[place].lead_us
        self._push(now_us + lead_us, at, place, is_end=False)

    def _begin(self, now_us: float, at: int, place: int) -> None:
        """An operation could begin: it does, or waits for its queue or for other ranks."""
        operation = self.job.traces[at].operations[place]
        if operation.message is not None:
            self._meet(now_us, at, place, operation, operation.message)
            return
        queue = (at, operation.queue)
        if operation.queue and queue in self._busy:
            heapq.heappush(self._queued.setdefault(queue, []), (now_us, place))
            return
        self._start(now_us, now_us, at, place)

    def _start(self, now_us: float, ready_us: float, at: int, place: int) -> None:
        operation = self.job.traces[at].operations[place]
        if operation.queue:
            self._busy.add((at, operation.queue))
        self._run(at, place, ready_us, now_us, now_us + self.own_us(operation))

    def _run(self, at: int, place: int, ready_us: float, start_us: float, end_us: float) -> None:
        self.played.append(Played(self.job.traces[at].rank, place, ready_us, start_us, end_us))
        self._push(end_us, at, place, is_end=True)

    def _meet(
        self, now_us: float, at: int, place: int, operation: TraceOperation, message: Message
    ) -> None:
        """A rank comes to a collective or message; the last that comes lets it begin."""
        ranks = self.job.members[at][place]
        key = self.job.meetings[at][place]
        if operation.kind == COLLECTIVE:
            assert ranks is not None
            wanted = self._traced.get(ranks, 0)
            if not wanted:
                wanted = self._traced[ranks] = sum(rank in self._at for rank in ranks)
        else:
            wanted = 1 + (message.peer in self._at and len(self._at) > 1)
        meeting = self._meetings.setdefault(key, _Meeting(wanted))
        meeting.there.append((at, place, now_us))
        if len(meeting.there) < meeting.wanted:
            return
        largest = max(
            (self._message(other, where) for other, where, _since in meeting.there),
            key=lambda sent: sent.input_bytes,
        )
        if operation.kind == COLLECTIVE:
            assert ranks is not None
            took_us = self.collective_us(ranks, largest)
        else:
            mine = self.job.traces[at].rank
            ends = (mine, message.peer) if operation.kind == SEND else (message.peer, mine)
            took_us = self.message_us(*ends, largest)
        for other, where, ready_us in meeting.there:
            self._run(other, where, ready_us, now_us, now_us + took_us)

    def _message(self, at: int, place: int) -> Message:
        message = self.job.traces[at].operations[place].message
        assert message is not None
        return message

    def _ended(self, now_us: float, at: int, place: int) -> None:
        queue = (at, self.job.traces[at].operations[place].queue)
        if queue[1]:
            self._busy.discard(queue)
            if self._queued.get(queue):
                ready_us, following = heapq.heappop(self._queued[queue])
                self._start(now_us, ready_us, at, following)
        waiting = self._waiting[at]
        for other in self.job.behind[at][place]:
            waiting[other] -= 1
            if waiting[other] == 0:
                self._ready(now_us, at, other)

    def _stuck(self) -> list[Fault]:
        """What the ranks wait for, where none can go on."""
        faults = []
        for meeting in self._meetings.values():
            if 0 < len(meeting.there) < meeting.wanted:
                at, place, _since = meeting.there[0]
                operation = self.job.traces[at].operations[place]
                ranks = sorted(self.job.traces[row[0]].rank for row in meeting.there)
                what = _('"{name}" waits for ever: {n} of {wanted} ranks come to it ({ranks}).')
                what = what.format(
                    name=operation.name[:64], n=len(ranks), wanted=meeting.wanted,
                    ranks=", ".join(map(str, ranks[:_SHOWN])),
                )  # fmt: skip
                expected = _("the same collectives in the same order on all ranks")
                faults.append(Fault(operation.where, what, expected))
        return faults[:_SHOWN]


def _chained(
    trace: RankTrace, order: Sequence[int], members: Sequence[Ranks | None]
) -> list[tuple[int, ...]]:
    """What each operation waits for, the collective of its group before it as well."""
    operations = trace.operations
    found = [operation.after for operation in operations]
    last: dict[tuple[str, Ranks], int] = {}
    for place in order:
        message, ranks = operations[place].message, members[place]
        if message is None or ranks is None:
            continue
        key = (message.group, ranks)
        before = last.get(key)
        if before is not None and before not in found[place]:
            found[place] = (*found[place], before)
        last[key] = place
    return found


def _links(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    behind: list[list[int]] = [[] for _row in rows]
    for place, row in enumerate(rows):
        for before in row:
            behind[before].append(place)
    return behind


def _instances(
    rows: Sequence[tuple[RankTrace, Sequence[int], Sequence[Ranks | None]]],
) -> list[dict[int, object]]:
    """Which collective or message each operation is part of: counted in order, on each rank.

    Raises
    ------
    InputError
        If two ranks do another thing as the same collective of a group.
    """
    found: list[dict[int, object]] = []
    first: dict[object, tuple[TraceOperation, Message]] = {}
    faults: list[Fault] = []
    for trace, order, members in rows:
        count: dict[object, int] = {}
        mine: dict[int, object] = {}
        for place, kind, key in _keys(trace, order, members):
            count[key] = number = count.get(key, -1) + 1
            mine[place] = instance = (key, number)
            operation = trace.operations[place]
            message = operation.message
            assert message is not None
            other = first.setdefault(instance, (operation, message))
            if (kind == COLLECTIVE and not _alike(other[1], message)) or (
                kind != COLLECTIVE and other[1].input_bytes != message.input_bytes
            ):
                faults.append(_differs(operation, message, *other))
        found.append(mine)
    if faults:
        raise InputError(faults[:_SHOWN])
    return found


def _keys(
    trace: RankTrace, order: Sequence[int], members: Sequence[Ranks | None]
) -> Iterator[tuple[int, str, object]]:
    for place in order:
        operation = trace.operations[place]
        message = operation.message
        if message is None:
            continue
        if operation.kind == COLLECTIVE:
            yield place, COLLECTIVE, (message.group, members[place])
        elif operation.kind == SEND:
            yield place, SEND, ("message", trace.rank, message.peer, message.tag)
        elif operation.kind == RECEIVE:
            yield place, RECEIVE, ("message", message.peer, trace.rank, message.tag)


def _alike(one: Message, other: Message) -> bool:
    """Whether two ranks mean the same collective; parts of an all-to-all may differ."""
    if one.operation != other.operation:
        return False
    is_even = one.operation not in {"alltoall", "all_gather", "gather", "scatter", "broadcast"}
    return one.input_bytes == other.input_bytes or not is_even


def _differs(
    operation: TraceOperation, message: Message, first: TraceOperation, told: Message
) -> Fault:
    what = _("{mine} of {size:.0f} B; at {where} it is {other} of {other_size:.0f} B.").format(
        mine=message.operation,
        size=message.input_bytes,
        where=first.where,
        other=told.operation,
        other_size=told.input_bytes,
    )
    return Fault(operation.where, what, _("the same on all ranks of a group"))
