"""A job's traces on a fabric: time of the step, and what of communication shows.

Computing takes its measured time, scaled where the fabric's GPU is another; communication takes
what the fabric gives, by closed form, flows or packets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMMUNICATION,
    MARK,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
)
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.group_times import GroupTimes, Took
from gpufabric.workload.on_fabric import check_scenario, cluster_of
from gpufabric.workload.replay import Job, Played, job_of, play
from gpufabric.workload.trace_work import ComputeTimes

__all__ = [
    "MODEL",
    "MODEL_VERSION",
    "Kind",
    "RankTimes",
    "ReplayOptions",
    "Replayed",
    "replay_traces",
]

MODEL = "trace-replay"
MODEL_VERSION = 1

Ranks = tuple[int, ...]


@dataclass(frozen=True)
class ReplayOptions:
    """How traces are played.

    Parameters
    ----------
    level
        ``closed``, ``flow`` or ``packet``.
    traced_gpu
        GPU that the trace was taken on; as the trace tells where empty, else the fabric's.
    n_ranks
        Ranks of the job; as the traces tell where None.
    """

    level: str = "closed"
    traced_gpu: str = ""
    n_ranks: int | None = None


@dataclass(frozen=True)
class RankTimes:
    """What one rank spends its step on [us].

    Parameters
    ----------
    rank
        Its number.
    end_us
        When its last operation ends.
    compute_us
        Time in which it computes, copies or works on the host.
    communication_us
        Time in which it communicates or waits for other ranks to.
    exposed_us
        The part of that in which it does nothing else.
    """

    rank: int
    end_us: float
    compute_us: float
    communication_us: float
    exposed_us: float


@dataclass(frozen=True)
class Kind:
    """All communication of one operation, group size and input.

    Parameters
    ----------
    operation, n_ranks, input_bytes
        What it is.
    crosses_network
        Whether its ranks are on several hosts.
    number
        How often a rank does it, of all ranks together.
    each_us
        Time of one by the model [us].
    measured_us
        Mean of the times in the trace, which hold waiting for other ranks; 0 where none [us].
    exposed_us
        Time that ranks do nothing else, mean of all ranks [us].
    """

    operation: str
    n_ranks: int
    input_bytes: float
    crosses_network: bool
    number: int
    each_us: float
    measured_us: float
    exposed_us: float


@dataclass(frozen=True)
class Replayed:
    """Result of a replay.

    Parameters
    ----------
    job, cluster, level
        What ran where, by which model.
    step_us, low_us, high_us
        From the beginning to the end of the last rank; with all communication at the low or the
        high end of its 80 % interval [us].
    ranks
        By rank.
    kinds
        Communication by kind, what shows most first.
    played
        When each operation ran.
    notes
        What was left out or taken for something, and how often.
    extrapolates
        Why times go beyond the measured runs; empty if they do not.
    """

    job: Job
    cluster: Cluster
    level: str
    step_us: float
    low_us: float
    high_us: float
    ranks: tuple[RankTimes, ...]
    kinds: tuple[Kind, ...]
    played: tuple[Played, ...]
    notes: Mapping[str, int]
    extrapolates: tuple[str, ...]

    @property
    def exposed_us(self) -> float:
        """Communication that shows, mean of all ranks [us]."""
        return sum(rank.exposed_us for rank in self.ranks) / len(self.ranks)


def replay_traces(
    traces: Sequence[RankTrace],
    plant: Plant,
    catalog: Catalog,
    scenario: Scenario,
    options: ReplayOptions | None = None,
) -> Replayed:
    """Return how the step of a trace goes on a fabric.

    Parameters
    ----------
    traces
        One for each rank, or one that stands for all; rank r runs on the fabric's GPU r.
    plant, catalog
        The fabric, and what is known of its hosts.
    scenario
        Routing, failures and seed of flows and packets.
    options
        Level of model, the traced GPU, and the number of ranks.

    Raises
    ------
    InputError
        If the traces cannot be played, or the fabric has too few GPUs.
    """
    asked = options or ReplayOptions()
    check_scenario(plant, scenario)
    n_gpus = len(plant.endpoints)
    is_untold = asked.n_ranks is None and len(traces) == 1 and not traces[0].world
    job = job_of(traces, n_gpus if is_untold else asked.n_ranks)
    if job.n_ranks > n_gpus:
        what = _("{n} ranks; the fabric has {gpus} GPUs.").format(n=job.n_ranks, gpus=n_gpus)
        raise InputError(Fault(job.traces[0].file, what, _("a fabric with as many GPUs")))
    cluster = cluster_of(plant, catalog)
    times = GroupTimes(plant, cluster, asked.level, scenario, job.groups)
    computing = ComputeTimes(cluster.gpu, asked.traced_gpu or job.traces[0].gpu)
    middle, low, high = (_played(job, times, computing, end) for end in ("time", "low", "high"))
    by_rank: dict[int, list[Played]] = {trace.rank: [] for trace in job.traces}
    for row in middle:
        by_rank[row.rank].append(row)
    return Replayed(
        job=job,
        cluster=cluster,
        level=asked.level,
        step_us=_end(middle),
        low_us=_end(low),
        high_us=_end(high),
        ranks=tuple(_rank_times(trace, by_rank[trace.rank]) for trace in job.traces),
        kinds=_kinds(job, by_rank, times),
        played=tuple(middle),
        notes=_notes(job, times, computing, is_untold=is_untold),
        extrapolates=tuple(times.extrapolates),
    )


def _end(rows: Iterable[Played]) -> float:
    return max((row.end_us for row in rows), default=0.0)


def _played(job: Job, times: GroupTimes, computing: ComputeTimes, end: str) -> list[Played]:
    def of(took: Took) -> float:
        found: float = getattr(took, f"{end}_us")
        return found

    def collective_us(ranks: Ranks, message: Message) -> float:
        return of(times.collective(ranks, message.operation, message.input_bytes))

    def message_us(source: int, target: int, message: Message) -> float:
        return of(times.message(source, target, message.input_bytes))

    return play(job, computing.time_us, collective_us, message_us)


def _notes(
    job: Job, times: GroupTimes, computing: ComputeTimes, *, is_untold: bool
) -> dict[str, int]:
    notes: Counter[str] = Counter()
    if is_untold:
        notes[_("the trace does not tell the number of ranks: all GPUs of the fabric")] += 1
    for trace in job.traces:
        notes.update(trace.notes)
    n = sum(len(trace.operations) for trace in job.traces)
    if len(job.traces) < job.n_ranks:
        text = _("one trace stands for {n} ranks: the others are never late")
        notes[text.format(n=job.n_ranks)] += 1
    if computing.product_ratio != 1 or computing.memory_ratio != 1:
        text = _("computing scaled from {traced} to {gpu}: products x {product:.3f}, other kernels "
                 "x {memory:.3f}")  # fmt: skip
        notes[
            text.format(
                traced=computing.traced,
                gpu=computing.gpu,
                product=computing.product_ratio,
                memory=computing.memory_ratio,
            )
        ] += 1
    if times.uneven:
        notes[_("groups not alike on their hosts: reckoned with the fewest a host")] += len(
            times.uneven
        )
    for text, count in computing.notes.items():
        notes[text] += -(-count // 3)  # counted once for each end of the interval
    return {text: min(count, n) for text, count in notes.items()}


def _rank_times(trace: RankTrace, rows: Iterable[Played]) -> RankTimes:
    own, sent, end_us = [], [], 0.0
    for row in rows:
        operation = trace.operations[row.place]
        end_us = max(end_us, row.end_us)
        if operation.kind in COMMUNICATION:
            sent.append((row.ready_us, row.end_us))
        elif operation.kind != MARK:
            own.append((row.start_us, row.end_us))
    own, sent = _united(own), _united(sent)
    return RankTimes(trace.rank, end_us, _length(own), _length(sent), _uncovered(sent, own))


def _united(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans of time without overlap, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _length(spans: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def _uncovered(spans: list[tuple[float, float]], by: list[tuple[float, float]]) -> float:
    """Length of spans less what other spans cover; both without overlap and in order."""
    left, at = _length(spans), 0
    for start, end in spans:
        while at < len(by) and by[at][1] <= start:
            at += 1
        look = at
        while look < len(by) and by[look][0] < end:
            left -= min(end, by[look][1]) - max(start, by[look][0])
            look += 1
    return max(left, 0.0)


class _Sum:
    """One kind of communication being counted."""

    def __init__(self) -> None:
        self.number = 0
        self.each_us = self.measured_us = self.exposed_us = 0.0
        self.measured = 0


def _kinds(
    job: Job, by_rank: Mapping[int, Sequence[Played]], times: GroupTimes
) -> tuple[Kind, ...]:
    sums: dict[tuple[str, int, float, bool], _Sum] = {}
    for at, trace in enumerate(job.traces):
        spans: dict[tuple[str, int, float, bool], list[tuple[float, float]]] = {}
        own = []
        for row in by_rank[trace.rank]:
            operation = trace.operations[row.place]
            if operation.kind not in COMMUNICATION:
                if operation.kind != MARK:
                    own.append((row.start_us, row.end_us))
                continue
            key, took_us = _kind_of(trace, operation, job.members[at][row.place], times)
            spans.setdefault(key, []).append((row.ready_us, row.end_us))
            total = sums.setdefault(key, _Sum())
            total.number += 1
            total.each_us += took_us
            total.measured_us += operation.duration_us
            total.measured += operation.duration_us > 0
        covered = _united(own)
        for key, mine in spans.items():
            sums[key].exposed_us += _uncovered(_united(mine), covered)
    kinds = [
        Kind(
            *key,
            total.number,
            total.each_us / total.number,
            total.measured_us / max(total.measured, 1),
            total.exposed_us / len(job.traces),
        )
        for key, total in sums.items()
    ]
    return tuple(sorted(kinds, key=lambda kind: (-kind.exposed_us, kind.operation)))


def _kind_of(
    trace: RankTrace, operation: TraceOperation, ranks: Ranks | None, times: GroupTimes
) -> tuple[tuple[str, int, float, bool], float]:
    message = operation.message
    if message is None:
        return (_("untold"), 0, 0.0, False), operation.duration_us
    if operation.kind == COLLECTIVE:
        assert ranks is not None
        took = times.collective(ranks, message.operation, message.input_bytes)
        n = len(ranks)
    else:
        ends = (trace.rank, message.peer)
        source, target = ends if operation.kind == SEND else ends[::-1]
        took, n = times.message(source, target, message.input_bytes), 2
    key = (message.operation, n, message.input_bytes, took.crosses_network)
    return key, took.time_us
