"""Rows of channels in CSR form, put side by side or one below the other, without loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.flow_problem import Paths

__all__ = ["below", "beside", "fixed_rows", "row_sums", "take_rows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


def fixed_rows(channel: Ints) -> Paths:
    """Return the rows of a table of channels, int32[n_rows, n_columns]; -1 is left out.

    Examples
    --------
    >>> fixed_rows(np.array([[4, 5], [6, -1]])).channel.tolist()
    [4, 5, 6]
    """
    used = channel >= 0
    first = np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int64)
    values = channel[used].astype(np.int32)
    return Paths(first, values, np.ones(len(values)))


def beside(parts: Sequence[Paths]) -> Paths:
    """Return rows that are made of the same rows of all parts, in that order.

    Examples
    --------
    >>> one, two = fixed_rows(np.array([[1], [2]])), fixed_rows(np.array([[7], [-1]]))
    >>> beside([one, two]).channel.tolist()
    [1, 7, 2]
    """
    sizes = np.array([np.diff(part.first) for part in parts])
    first = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))]).astype(np.int64)
    channel = np.empty(int(first[-1]), np.int32)
    fraction = np.empty(int(first[-1]))
    start = first[:-1].copy()
    for part, size in zip(parts, sizes, strict=True):
        place = np.repeat(start - part.first[:-1], size) + np.arange(part.channel.size)
        channel[place] = part.channel
        fraction[place] = 1.0 if part.fraction is None else part.fraction
        start += size
    return Paths(first, channel, fraction, _added([part.latency_s for part in parts]))


def _added(delays: Sequence[Floats | None]) -> Floats | None:
    known = [delay for delay in delays if delay is not None]
    return np.sum(known, axis=0) if known else None


def below(parts: Sequence[Paths]) -> Paths:
    """Return the rows of all parts, one part below the other."""
    offsets = np.cumsum([0, *(part.channel.size for part in parts)])
    first = [part.first[:-1] + at for part, at in zip(parts, offsets[:-1], strict=True)]
    return Paths(
        np.concatenate([*first, offsets[-1:]]).astype(np.int64),
        np.concatenate([part.channel for part in parts]),
        np.concatenate(
            [
                np.ones(part.channel.size) if part.fraction is None else part.fraction
                for part in parts
            ]
        ),
        np.concatenate(
            [np.zeros(part.n_paths) if part.latency_s is None else part.latency_s for part in parts]
        ),
    )


def take_rows(paths: Paths, rows: Longs) -> Paths:
    """Return the given rows, in that order."""
    size = np.diff(paths.first)[rows]
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    place = np.repeat(paths.first[:-1][rows] - first[:-1], size) + np.arange(first[-1])
    return Paths(
        first,
        paths.channel[place],
        None if paths.fraction is None else paths.fraction[place],
        None if paths.latency_s is None else paths.latency_s[rows],
    )


def row_sums(first: Longs, values: Floats) -> Floats:
    """float64[n_rows]: sum of the values of each row; 0 for an empty one."""
    owner = np.repeat(np.arange(first.size - 1), np.diff(first))
    return np.bincount(owner, values, minlength=first.size - 1).astype(np.float64)
