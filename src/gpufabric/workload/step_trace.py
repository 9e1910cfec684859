"""A training step, or a collective, written as traces: what each rank does and waits for.

A step is written layer by layer. Every pipeline stage is as long as the slowest; the schedule is
one forward, one backward (1F1B), whatever the plan says. A layer's computing is cut into as many
pieces as it has collectives of tensor, expert and context parallelism, and these come after the
pieces. Gradients are reduced layer by layer behind the last micro-batch's backward pass (ZeRO 0
and 1), or behind each (ZeRO 2 and 3); ZeRO 3 gathers the next layer's parameters while one
computes. The optimizer comes last; ZeRO 1 and 2 gather parameters after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufabric.catalog.workload_constants import training_software
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMPUTE,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
)
from gpufabric.workload.operations import operation
from gpufabric.workload.parallelism import TrainingJob
from gpufabric.workload.schedule import Messages
from gpufabric.workload.step_messages import Use, border_bytes, data_messages, inner_messages
from gpufabric.workload.step_work import work_of
from gpufabric.workload.training import SOFTWARE, train

__all__ = ["MOST_WRITTEN", "collective_traces", "message_traces", "step_traces"]

MOST_WRITTEN = 20_000_000
"""Most operations of all ranks together."""

FORM = "gpufabric"
_BY_OPERATION = {"all_gather", "gather"}


def collective_traces(n_ranks: int, op: str, size_bytes: float) -> list[RankTrace]:
    """Return one collective of all ranks, as a node that the reader's own algorithm does.

    Parameters
    ----------
    n_ranks
        GPUs.
    op, size_bytes
        What it does, and its size as nccl-tests counts it [byte].

    Raises
    ------
    InputError
        If there is no such operation, or a trace cannot say it.
    """
    kind = operation(op).name
    if kind == "sendrecv":
        what = _("{operation} is no collective of a trace.").format(operation=kind)
        raise InputError(Fault("--op", what, _("another operation")))
    given = size_bytes / n_ranks if kind in _BY_OPERATION else size_bytes
    row = TraceOperation("", kind, COLLECTIVE, 0.0, (), Message(kind, given))
    return [RankTrace("", FORM, rank, (row,), {}, n_ranks) for rank in range(n_ranks)]


def message_traces(messages: Messages) -> list[RankTrace]:
    """Return a collective's messages as sends and receives, so that its algorithm is kept.

    Raises
    ------
    InputError
        If switches add up on the way: a trace knows only ranks.
    """
    if messages.n_places > messages.n_ranks:
        what = _("switches that reduce cannot be written as sends and receives.")
        raise InputError(Fault("--algo", what, "Ring, Tree, PAT, Pairwise"))
    rows: list[list[TraceOperation]] = [[] for _rank in range(messages.n_ranks)]
    arrived: list[int] = []  # place of each message's receive at its target
    columns = zip(messages.source.tolist(), messages.target.tolist(), strict=True)
    sizes = messages.n_bytes.tolist()
    for at, (source, target) in enumerate(columns):
        waits = messages.after[messages.first[at] : messages.first[at + 1]].tolist()
        after = tuple(arrived[before] for before in waits)
        name = f"{source} → {target}"
        sent = Message("sendrecv", sizes[at], "", target, at)
        rows[source].append(TraceOperation("", name, SEND, 0.0, after, sent))
        arrived.append(len(rows[target]))
        came = Message("sendrecv", sizes[at], "", source, at)
        rows[target].append(TraceOperation("", name, RECEIVE, 0.0, (), came))
    return [
        RankTrace("", FORM, rank, tuple(mine), {}, messages.n_ranks)
        for rank, mine in enumerate(rows)
    ]


def step_traces(job: TrainingJob, software: str = SOFTWARE) -> Iterator[RankTrace]:
    """Yield what each rank does in one step of a training job, rank by rank.

    Raises
    ------
    InputError
        If the program is unknown, or there would be too many operations.
    """
    step = _Step(job, software)
    n = step.n_operations * job.cluster.n_ranks
    if n > MOST_WRITTEN:
        what = _("{n} operations in all.").format(n=n)
        raise InputError(
            Fault(
                "global_batch",
                what,
                _("at most {most}").format(most=MOST_WRITTEN),
                _("Ask for fewer GPUs, or fewer micro-batches."),
            )
        )
    for rank in range(job.cluster.n_ranks):
        yield _RankWriter(step, rank).trace()


class _Step:
    """What all ranks have in common."""

    def __init__(self, job: TrainingJob, software: str) -> None:
        self.job = job
        program = training_software(software)
        work = work_of(job, program)
        parts = train(job, software).parts
        self.n_micro = job.n_micro_batches
        self.n_layers = max(1, round(work.layers))
        self.n_stages = job.plan.pipeline
        share = work.layers / job.model.n_layers
        self.inner = tuple(
            use._replace(forward=use.forward * share, backward=use.backward * share)
            for use in inner_messages(job, program)
        )
        self.shared = () if job.plan.trains_adapters else data_messages(job)
        self.is_sharded = job.plan.zero >= 2
        self.gathers_ahead = job.plan.zero == 3
        passes = 2.0 if job.plan.trains_adapters else 3.0
        passes += 1.0 if job.plan.recompute == "full" else 0.0
        micro_us = float(parts.compute_s) * 1e6 / self.n_micro
        self.forward_us = micro_us / passes
        self.backward_us = micro_us - self.forward_us
        self.optimizer_us = float(parts.optimizer_s) * 1e6

    @property
    def n_operations(self) -> int:
        """About how many one rank has."""
        inner = sum(use.number for use in self.inner)
        shared = sum(use.number for use in self.shared) * self.n_layers
        a_micro = 2 * inner + 2 * self.n_layers + 4 + (shared if self.is_sharded else 0)
        return int(self.n_micro * a_micro + shared + 1)

    def uses_of(self, layer: int, *, forward: bool) -> list[Use]:
        """Collectives of one layer in one pass: those of the whole stage, dealt to its layers."""
        found = []
        for use in self.inner:
            times = use.forward if forward else use.backward
            upper, lower = (int(times * at / self.n_layers + 1e-9) for at in (layer + 1, layer))
            found += [use] * (upper - lower)
        return found


class _RankWriter:
    """One rank's operations being written."""

    def __init__(self, step: _Step, rank: int) -> None:
        self.step, self.rank = step, rank
        job = step.job
        self.groups = {
            name: job.ranks_with(name, rank)
            for name in dict.fromkeys(use.group for use in (*step.inner, *step.shared))
        }
        self.stage_ranks = job.cluster.n_ranks // step.n_stages
        self.stage = rank // self.stage_ranks
        self.rows: list[TraceOperation] = []
        self.last = -1  # the operation that the next one of the program waits for
        self.before_last = -1  # the computing before the last
        self.reduced: list[int] = []
        self._exact_us = self._written_us = 0.0

    def trace(self) -> RankTrace:
        """Return all that the rank does."""
        step = self.step
        ahead = min(step.n_stages - self.stage - 1, step.n_micro)
        for micro in range(ahead):
            self._forward(micro)
        for micro in range(step.n_micro):
            if micro + ahead < step.n_micro:
                self._forward(micro + ahead)
            self._backward(micro)
        self._finish()
        return RankTrace(
            "", FORM, self.rank, tuple(self.rows), self.groups, step.job.cluster.n_ranks
        )

    def _add(self, row: TraceOperation) -> int:
        self.rows.append(row)
        return len(self.rows) - 1

    def _compute(self, name: str, time_us: float, *also: int) -> None:
        """Computing in whole microseconds, as traces count; the rest is carried on."""
        self._exact_us += time_us
        whole_us = float(round(self._exact_us - self._written_us))
        self._written_us += whole_us
        self.before_last = self.last
        after = _known(self.last, *also)
        self.last = self._add(TraceOperation("", name, COMPUTE, whole_us, after, queue="gpu"))

    def _collect(self, use: Use, name: str, size_bytes: float, after: int) -> int:
        ranks = self.groups[use.group]
        given = size_bytes / len(ranks) if use.operation in _BY_OPERATION else size_bytes
        message = Message(use.operation, given, use.group)
        return self._add(TraceOperation("", name, COLLECTIVE, 0.0, _known(after), message))

    def _send(self, name: str, kind: str, stage: int, tag: int) -> int:
        peer = self.rank + (stage - self.stage) * self.stage_ranks
        message = Message("sendrecv", border_bytes(self.step.job), "", peer, tag)
        return self._add(TraceOperation("", name, kind, 0.0, _known(self.last), message))

    def _forward(self, micro: int) -> None:
        if self.stage > 0:
            name = f"activations of {micro} come"
            self.last = self._send(name, RECEIVE, self.stage - 1, 2 * micro)
        for layer in range(self.step.n_layers):
            self._layer(micro, layer, forward=True)
        if self.stage < self.step.n_stages - 1:
            self._send(f"activations of {micro} go", SEND, self.stage + 1, 2 * micro)

    def _backward(self, micro: int) -> None:
        step = self.step
        if self.stage < step.n_stages - 1:
            name = f"gradients of {micro} come"
            self.last = self._send(name, RECEIVE, self.stage + 1, 2 * micro + 1)
        for layer in reversed(range(step.n_layers)):
            self._layer(micro, layer, forward=False)
            if step.is_sharded or micro == step.n_micro - 1:
                self._reduce(micro, layer)
        if self.stage > 0:
            self._send(f"gradients of {micro} go", SEND, self.stage - 1, 2 * micro + 1)

    def _layer(self, micro: int, layer: int, *, forward: bool) -> None:
        step = self.step
        way = "forward" if forward else "backward"
        gathered = self._gather_ahead(micro, layer, way) if step.gathers_ahead else []
        time_us = (step.forward_us if forward else step.backward_us) / step.n_layers
        uses = step.uses_of(layer, forward=forward)
        for at in range(max(1, len(uses))):
            self._compute(f"{way} {micro} layer {layer}", time_us / max(1, len(uses)), *gathered)
            if at < len(uses):
                use = uses[at]
                name = f"{use.group} {use.operation} {way} {micro} layer {layer}"
                self.last = self._collect(use, name, use.size_bytes, self.last)

    def _gather_ahead(self, micro: int, layer: int, way: str) -> list[int]:
        """Parameters of a layer, asked for while the one before computes."""
        return [
            self._collect(
                use,
                f"{use.group} {use.operation} {way} {micro} layer {layer}",
                use.size_bytes / self.step.n_layers,
                self.before_last,
            )
            for use in self.step.shared
            if use.shown_as == "gather"
        ]

    def _reduce(self, micro: int, layer: int) -> None:
        for use in self.step.shared:
            if use.shown_as == "reduce":
                name = f"{use.group} {use.operation} {micro} layer {layer}"
                size_bytes = use.size_bytes / self.step.n_layers
                self.reduced.append(self._collect(use, name, size_bytes, self.last))

    def _finish(self) -> None:
        """The optimizer, after all gradients; and new parameters to all."""
        step = self.step
        self._compute("optimizer", step.optimizer_us, *self.reduced)
        if step.gathers_ahead:
            return
        for layer in range(step.n_layers):
            for use in step.shared:
                if use.shown_as == "gather":
                    name = f"{use.group} {use.operation} layer {layer}"
                    self._collect(use, name, use.size_bytes / step.n_layers, self.last)


def _known(*places: int) -> tuple[int, ...]:
    """Operations to wait for, each once; -1 is none."""
    return tuple(dict.fromkeys(at for at in places if at >= 0))
