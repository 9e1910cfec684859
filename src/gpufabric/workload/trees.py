"""All-reduce on two binary trees over the hosts, with a chain inside each.

In one tree about half of the hosts are leaves; in its mirror image (or shifted by one, where the
number is odd) they are in the middle. Each tree takes half of the data, so that every host sends
about as much as any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.workload.schedule import MessageList, Messages, Phase

__all__ = ["depths", "parents", "tree_depth", "tree_messages", "tree_pairs", "tree_phases"]

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


def parents(n: int, tree: int) -> Ints:
    """Return the parent of each host in the first or second tree, -1 for the root: int32[n].

    In the first tree the lowest set bit of a number tells its height: its parent has that bit
    cleared and the next set, or is the number without the bit where that is too large.

    Source: P. Sanders, J. Speck, J. Träff, "Two-tree algorithms for full bandwidth broadcast,
    reduction and scan", Parallel Computing 35, 2009.

    Examples
    --------
    >>> parents(8, 0).tolist()
    [-1, 2, 4, 2, 0, 6, 4, 6]
    >>> parents(4, 1).tolist()
    [1, 3, 1, -1]
    """
    number = np.arange(n, dtype=np.int64)
    bit = number & -number
    above = (number ^ bit) | (bit << 1)
    first = np.where(above < n, above, number ^ bit)
    first[0] = -1
    if tree == 0:
        return first.astype(np.int32)
    if n % 2 == 0:
        mirrored = np.where(first[::-1] < 0, -1, n - 1 - first[::-1])
        return mirrored.astype(np.int32)
    shifted = np.roll(np.where(first < 0, -1, (first + 1) % n), 1)
    return shifted.astype(np.int32)


def depths(parent: Ints) -> Ints:
    """Return the distance of each host from the root: int32[n]."""
    depth = np.full(len(parent), -1, np.int32)
    depth[parent < 0] = 0
    while (depth < 0).any():
        known = (depth < 0) & (depth[parent] >= 0)
        depth[known] = depth[parent[known]] + 1
    return depth


def tree_depth(n_domains: int) -> int:
    """Steps from the deepest host to the root, in the deeper of the two trees."""
    return max(int(depths(parents(n_domains, tree)).max()) for tree in (0, 1))


def tree_messages(n_domains: int, each: int, size_bytes: float) -> Messages:
    """Return every message of an all-reduce: two chunks, a tree each, and chains inside."""
    n = n_domains * each
    rows = MessageList(n, [size_bytes / 2] * 2)
    for at in range(each - 1, 0, -1):
        rows.step(
            (host * each + at, host * each + at - 1, chunk, True)
            for host in range(n_domains)
            for chunk in (0, 1)
        )
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
        rows.step((h * each, p * each, tree, True) for h, p, tree, depth in edges if depth == level)
    for level in range(1, deepest + 1):
        rows.step(
            (p * each, h * each, tree, False) for h, p, tree, depth in edges if depth == level
        )
    for at in range(1, each):
        rows.step(
            (host * each + at - 1, host * each + at, chunk, False)
            for host in range(n_domains)
            for chunk in (0, 1)
        )
    return rows.messages()


def tree_pairs(n_domains: int) -> tuple[Ints, Ints, Floats]:
    """Return child, parent and part of the data of all edges of both trees."""
    child, parent = [], []
    for tree in (0, 1):
        above = parents(n_domains, tree)
        hosts = np.flatnonzero(above >= 0)
        child.append(hosts)
        parent.append(above[hosts])
    source = np.concatenate(child).astype(np.int32)
    return source, np.concatenate(parent).astype(np.int32), np.full(len(source), 0.5)


def tree_phases(n_domains: int, each: int, size_bytes: float) -> tuple[Phase, ...]:
    """Return an all-reduce on two trees merged: all edges up and down at once, chunk after chunk.

    One pair of trees for each GPU of a host, whose chain ends at that GPU; each takes an equal
    part of the data. Inside, a pair of neighbours carries the data of all chains but one.
    """
    rank = np.arange(n_domains * each)
    host, gpu = rank // each, rank % each
    behind = host * each + (gpu - 1) % each
    sources, targets, sizes = [], [], []
    if each > 1:
        size = np.full(len(rank), size_bytes * (each - 1) / each)
        sources += [rank, behind]
        targets += [behind, rank]
        sizes += [size, size]
    if n_domains > 1:
        child, parent, part = tree_pairs(n_domains)
        gpus = np.arange(each)
        low = (child[:, None].astype(np.int64) * each + gpus).ravel()
        high = (parent[:, None].astype(np.int64) * each + gpus).ravel()
        size = np.repeat(part, each) * size_bytes / each
        sources += [low, high]
        targets += [high, low]
        sizes += [size, size]
    n_steps = 2 * (each - 1 + (tree_depth(n_domains) if n_domains > 1 else 0))
    return (
        Phase(
            "tree",
            np.concatenate(sources).astype(np.int32),
            np.concatenate(targets).astype(np.int32),
            np.concatenate(sizes),
            n_steps,
        ),
    )
