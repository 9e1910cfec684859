"""Collectives that switches add up: NVLS inside NVLink domains, SHARP (CollNet) in the network.

GPU c of every domain owns chunk c. NVLS: all GPUs of a domain send a chunk to the NVLink switch,
which adds them up on the way to the owner, and sends what the owner returns to all. Between
domains the owners of a chunk use trees (NVLSTree), or the network's switch (SHARP).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpufabric.workload.schedule import MessageList, Messages, Phase
from gpufabric.workload.trees import depths, parents, tree_depth, tree_pairs

__all__ = ["half_messages", "half_phases", "in_switch_messages", "in_switch_phases"]


def in_switch_messages(algorithm: str, n_domains: int, each: int, size_bytes: float) -> Messages:
    """Return every message of an all-reduce with NVLS, NVLSTree or CollNetDirect."""
    n = n_domains * each
    n_chunks = 2 * each  # a half of each owner's chunk for each tree
    rows = MessageList(n, [size_bytes / n_chunks] * n_chunks, n_domains + 1)
    network = n + n_domains
    owned = [
        (host, chunk, host * each + chunk // 2)
        for host in range(n_domains)
        for chunk in range(n_chunks)
    ]
    rows.step(
        (host * each + gpu, n + host, chunk, True)
        for host, chunk, _owner in owned
        for gpu in range(each)
    )
    rows.step((n + host, owner, chunk, False) for host, chunk, owner in owned)
    if algorithm == "NVLSTree":
        for step in _tree_steps(n_domains):
            rows.step(
                (source * each + chunk // 2, target * each + chunk // 2, chunk, adds)
                for chunk in range(n_chunks)
                for source, target, tree, adds in step
                if chunk % 2 == tree
            )
    elif algorithm != "NVLS":
        rows.step((owner, network, chunk, True) for _host, chunk, owner in owned)
        rows.step((network, owner, chunk, False) for _host, chunk, owner in owned)
    rows.step((owner, n + host, chunk, False) for host, chunk, owner in owned)
    rows.step(
        (n + host, host * each + gpu, chunk, False)
        for host, chunk, _owner in owned
        for gpu in range(each)
    )
    return rows.messages()


def _tree_steps(n_domains: int) -> Iterator[list[tuple[int, int, int, bool]]]:
    """Steps of both trees over domains: source, target, tree, and whether it is added up."""
    trees = [parents(n_domains, tree) for tree in (0, 1)]
    levels = [depths(parent) for parent in trees]
    deepest = max(int(level.max()) for level in levels)
    edges = [
        (host, int(trees[tree][host]), tree, int(levels[tree][host]))
        for tree in (0, 1)
        for host in range(n_domains)
        if trees[tree][host] >= 0
    ]
    for level in range(deepest, 0, -1):
        yield [(host, above, tree, True) for host, above, tree, depth in edges if depth == level]
    for level in range(1, deepest + 1):
        yield [(above, host, tree, False) for host, above, tree, depth in edges if depth == level]


def in_switch_phases(
    algorithm: str, n_domains: int, each: int, size_bytes: float
) -> tuple[Phase, ...]:
    """Return the same merged: all at once, chunk after chunk.

    A GPU sends S to the NVLink switch to be added up and its own S / g to be spread; it receives
    its own S / g added up, and S.
    """
    n = n_domains * each
    rank = np.arange(n)
    switch = n + rank // each
    moved = np.full(n, size_bytes + size_bytes / each)
    sources, targets, sizes = [rank, switch], [switch, rank], [moved, moved]
    n_steps = 4
    if algorithm == "NVLSTree":
        child, parent, part = tree_pairs(n_domains)
        low = (child[:, None].astype(np.int64) * each + np.arange(each)).ravel()
        high = (parent[:, None].astype(np.int64) * each + np.arange(each)).ravel()
        size = np.repeat(part, each) * size_bytes / each
        sources += [low, high]
        targets += [high, low]
        sizes += [size, size]
        n_steps += 2 * tree_depth(n_domains)
    elif algorithm != "NVLS":
        network = np.full(n, n + n_domains)
        size = np.full(n, size_bytes / each)
        sources += [rank, network]
        targets += [network, rank]
        sizes += [size, size]
        n_steps += 2
    return (
        Phase(
            algorithm,
            np.concatenate(sources).astype(np.int32),
            np.concatenate(targets).astype(np.int32),
            np.concatenate(sizes),
            n_steps,
        ),
    )


def half_messages(operation: str, n: int, size_bytes: float) -> Messages:
    """Return an all-gather or reduce-scatter with NVLS in one domain: one half of an all-reduce.

    GPU c owns chunk c. Gather: it sends its chunk to the switch once, which sends it to all
    others. Scatter: all send every chunk to the switch, which adds them up on the way to the owner.
    """
    rows = MessageList(n, [size_bytes / n] * n, 2)
    if operation == "all_gather":
        rows.step((rank, n, rank, False) for rank in range(n))
        rows.step(
            (n, rank, chunk, False) for chunk in range(n) for rank in range(n) if rank != chunk
        )
    else:
        rows.step((rank, n, chunk, True) for rank in range(n) for chunk in range(n))
        rows.step((n, rank, rank, False) for rank in range(n))
    return rows.messages()


def half_phases(operation: str, n: int, size_bytes: float) -> tuple[Phase, ...]:
    """Return the same merged."""
    rank = np.arange(n, dtype=np.int32)
    switch = np.full(n, n, np.int32)
    if operation == "all_gather":
        sizes = size_bytes / n, size_bytes * (n - 1) / n
    else:
        sizes = size_bytes, size_bytes / n
    up, down = (np.full(n, size) for size in sizes)
    return (
        Phase(
            "NVLS",
            np.concatenate([rank, switch]),
            np.concatenate([switch, rank]),
            np.concatenate([up, down]),
            2,
        ),
    )
