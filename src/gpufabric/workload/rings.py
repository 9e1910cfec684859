"""Collectives on rings and chains: each rank talks to its neighbours alone.

A ring runs through a host from GPU c to the GPU before it and on to GPU c of the next host, so
that with PXN it stays on rail c. One ring starts at each GPU of a host, with an equal part of the
data; together they use all NICs alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.workload.schedule import MessageList, Messages, Phase

__all__ = [
    "PASSES",
    "chain_messages",
    "ring_messages",
    "ring_order",
    "ring_pairs",
    "ring_phases",
    "ring_steps",
]

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


def ring_order(n_domains: int, each: int, channel: int = 0) -> Ints:
    """Return the ranks of one ring in order: int32[n_domains * each].

    Examples
    --------
    >>> ring_order(2, 4, channel=1).tolist()
    [1, 2, 3, 0, 5, 6, 7, 4]
    """
    inside = (np.arange(each) + channel) % each
    order: Ints = (np.arange(n_domains)[:, None] * each + inside).ravel().astype(np.int32)
    return order


def ring_messages(operation: str, order: Ints, size_bytes: float) -> Messages:
    """Return every message of a ring all-reduce, all-gather or reduce-scatter.

    Chunk k ends reduced at the rank in place k of `order`, and begins an all-gather there.

    Source: P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
    workstations", 2009.
    """
    n = len(order)
    place, step = np.arange(n), np.arange(n - 1)[:, None]
    chunks = []
    if operation in {"all_reduce", "reduce_scatter"}:
        chunks.append((place - step - 1) % n)
    n_adding = len(chunks) * n * (n - 1)
    if operation in {"all_reduce", "all_gather"}:
        chunks.append((place - step) % n)
    n_steps = len(chunks) * (n - 1)
    count = n_steps * n
    # What a rank passes on came with the step before, from the rank before.
    before = np.arange(max(n_steps - 1, 0))[:, None] * n + (place - 1) % n
    return Messages(
        n_ranks=n,
        n_places=n,
        n_chunks=n,
        chunk_bytes=np.full(n, size_bytes / n),
        source=np.tile(order, n_steps).astype(np.int32),
        target=np.tile(np.roll(order, -1), n_steps).astype(np.int32),
        chunk=np.concatenate(chunks).ravel().astype(np.int32),
        adds=np.arange(count) < n_adding,
        step=np.repeat(np.arange(n_steps, dtype=np.int32), n),
        first=np.maximum(np.arange(count + 1, dtype=np.int64) - n, 0),
        after=before.ravel().astype(np.int32),
    )


def chain_messages(operation: str, order: Ints, size_bytes: float, n_chunks: int = 4) -> Messages:
    """Return every message of a broadcast from the first rank, or a reduce to it, along a chain."""
    ranks = order.tolist()
    n = len(ranks)
    rows = MessageList(n, [size_bytes / n_chunks] * n_chunks)
    hops = [(ranks[at], ranks[at + 1]) for at in range(n - 1)]
    if operation == "reduce":
        hops = [(target, source) for source, target in reversed(hops)]
    for step in range(len(hops) + n_chunks - 1):
        rows.step(
            (*hops[step - chunk], chunk, operation == "reduce")
            for chunk in range(n_chunks)
            if 0 <= step - chunk < len(hops)
        )
    return rows.messages()


def ring_pairs(n_domains: int, each: int) -> tuple[Ints, Ints, Floats]:
    """Return the pairs that all rings together use, and the part of the data that goes over each.

    Of the `each` rings, one leaves a host at any GPU; the others go on inside.
    """
    n = n_domains * each
    rank = np.arange(n)
    if n_domains == 1:
        return rank.astype(np.int32), ((rank + 1) % n).astype(np.int32), np.ones(n)
    host, gpu = rank // each, rank % each
    ahead = (gpu + 1) % each
    over = ((host + 1) % n_domains) * each + ahead
    if each == 1:
        return rank.astype(np.int32), over.astype(np.int32), np.ones(n)
    inside = host * each + ahead
    source = np.concatenate([rank, rank]).astype(np.int32)
    target = np.concatenate([inside, over]).astype(np.int32)
    part = np.concatenate([np.full(n, (each - 1) / each), np.full(n, 1 / each)])
    return source, target, part


def ring_steps(operation: str, n: int) -> int:
    """Steps that follow one another in a ring over n ranks."""
    return PASSES.get(operation, 1) * (n - 1)


def ring_phases(operation: str, n_domains: int, each: int, size_bytes: float) -> tuple[Phase, ...]:
    """Return a ring collective merged: one phase, in which every pair sends all along.

    All-reduce, all-gather and reduce-scatter: each rank sends (n - 1) / n of the data, once or
    twice. Broadcast and reduce: each but the last sends all of it.
    """
    n = n_domains * each
    source, target, part = ring_pairs(n_domains, each)
    passes = PASSES.get(operation, 1)
    # Broadcast and reduce: each ring is a chain, whose last pair sends nothing.
    sent = size_bytes * passes * (n - 1) / n
    if operation == "reduce":
        source, target = target, source
    return (Phase("ring", source, target, part * sent, ring_steps(operation, n)),)
