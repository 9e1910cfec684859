"""Schedules of collectives: messages between ranks, what each waits for, and what they add up.

A schedule is written twice. `Messages` is the whole graph, message by message, for few ranks: it
can be executed, and so proved right. `Phase` is the same merged: equal steps of a pair are one
row, so that a ring over 8,192 ranks has 8,192 rows and not 134 million.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MessageList", "Messages", "Phase", "Schedule", "merged"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Messages:
    """Every message of a collective.

    Ranks from `n_ranks` on are switches: of the NVLink domains first, then of the network.

    Parameters
    ----------
    n_ranks, n_places
        GPUs; GPUs and switches.
    n_chunks
        Pieces that data are cut into.
    chunk_bytes
        float64[n_chunks]: size of each [byte].
    source, target, chunk
        int32[n]: from which rank to which, and which piece.
    adds
        bool[n]: what arrives is added to what is there; else it takes its place.
    step
        int32[n]: number of the step, from 0; those of one step can go at once.
    first, after
        int64[n + 1] and int32[…]: rows of the messages that each message waits for.
    """

    n_ranks: int
    n_places: int
    n_chunks: int
    chunk_bytes: Floats
    source: Ints
    target: Ints
    chunk: Ints
    adds: Bools
    step: Ints
    first: Longs
    after: Ints

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_bytes(self) -> Floats:
        """float64[n]: size of each message [byte]."""
        size: Floats = self.chunk_bytes[self.chunk]
        return size


class MessageList:
    """Messages being written, step by step; a message waits for what its data came from."""

    def __init__(self, n_ranks: int, chunk_bytes: Sequence[float], n_switches: int = 0) -> None:
        self.n_ranks = n_ranks
        self.n_places = n_ranks + n_switches
        self.chunk_bytes = np.asarray(chunk_bytes, np.float64)
        self._rows: list[tuple[int, int, int, bool, int]] = []
        self._after: list[list[int]] = []
        self._arrived: dict[tuple[int, int], list[int]] = {}
        self._step = 0

    def step(self, rows: Iterable[tuple[int, int, int, bool]]) -> None:
        """Add the messages of one step: source, target, chunk, and whether it is added up.

        None of them sees what another of the same step brings.
        """
        fresh: list[tuple[int, int, bool, int]] = []
        for source, target, chunk, adds in rows:
            at = len(self._rows)
            self._rows.append((source, target, chunk, adds, self._step))
            self._after.append(list(self._arrived.get((source, chunk), ())))
            fresh.append((target, chunk, adds, at))
        for target, chunk, adds, at in fresh:
            before = self._arrived.get((target, chunk), [])
            self._arrived[target, chunk] = [*before, at] if adds else [at]
        self._step += 1

    def messages(self) -> Messages:
        """Return all messages."""
        columns = np.array(self._rows, np.int64).reshape(-1, 5).T
        count = np.array([len(rows) for rows in self._after], np.int64)
        return Messages(
            self.n_ranks,
            self.n_places,
            len(self.chunk_bytes),
            self.chunk_bytes,
            columns[0].astype(np.int32),
            columns[1].astype(np.int32),
            columns[2].astype(np.int32),
            columns[3].astype(np.bool_),
            columns[4].astype(np.int32),
            np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
            np.array([at for rows in self._after for at in rows], np.int32),
        )


@dataclass(frozen=True, eq=False)
class Phase:
    """Messages that go at once, each in equal steps one after the other.

    Parameters
    ----------
    name
        What it is, one English word or two.
    source, target
        int32[n]: ranks, or switches after them.
    n_bytes
        float64[n]: all steps together [byte].
    n_steps
        Steps that follow one another: each costs its latency.
    """

    name: str
    source: Ints
    target: Ints
    n_bytes: Floats
    n_steps: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """A collective as phases, each after the one before.

    Parameters
    ----------
    operation, algorithm
        What it does, and how.
    n_ranks, n_places
        GPUs; GPUs and switches.
    size_bytes
        Message size, as nccl-tests counts it [byte].
    phases
        In order.
    """

    operation: str
    algorithm: str
    n_ranks: int
    n_places: int
    size_bytes: float
    phases: tuple[Phase, ...]

    @property
    def sent_bytes(self) -> Floats:
        """float64[n_places]: what each rank and switch sends [byte]."""
        sent = np.zeros(self.n_places)
        for phase in self.phases:
            np.add.at(sent, phase.source, phase.n_bytes)
        return sent

    @property
    def n_steps(self) -> int:
        """Steps that follow one another, of all phases."""
        return sum(phase.n_steps for phase in self.phases)


def merged(messages: Messages) -> dict[tuple[int, int], float]:
    """Return the bytes that each pair of places exchanges, all steps together [byte]."""
    pairs: dict[tuple[int, int], float] = {}
    sizes = messages.n_bytes
    for source, target, size in zip(
        messages.source.tolist(), messages.target.tolist(), sizes.tolist(), strict=True
    ):
        pairs[source, target] = pairs.get((source, target), 0.0) + size
    return pairs
