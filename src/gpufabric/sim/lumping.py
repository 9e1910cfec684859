"""Channels that the same flows cross in the same parts, made one: an exact, smaller problem.

Where packets are sprayed, all uplinks of a leaf carry the same parts of the same flows. Of such
channels only the smallest can ever be full, so the others may go: max-min fair rates depend on the
constraints alone, and those that others imply change nothing. 66 entries a flow become four.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.bundle import is_plain, make_plain
from gpufabric.kernels.structs import Routes
from gpufabric.sim.flow_problem import Paths

__all__ = ["Lumps", "lump_channels", "plain_paths"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

CHUNK = 1 << 22
SEED = 20_240_901


class Lumps(NamedTuple):
    """A problem's paths over fewer channels.

    Parameters
    ----------
    paths
        The paths, over channels of the original numbers: those that were kept.
    keeper
        int32[n_channels]: the channel that stands for each; itself where it was kept.
    """

    paths: Paths
    keeper: Ints


def plain_paths(paths: Paths, n_channels: int) -> Paths:
    """Return paths that name each channel once a row, with a fraction above 0."""
    if paths.fraction is None:
        fraction = np.ones(paths.channel.size)
    else:
        fraction = np.asarray(paths.fraction, np.float64)
    routes = Routes(paths.first, paths.channel, fraction)
    if not is_plain(routes, n_channels):
        routes = make_plain(routes, n_channels)
    return Paths(routes.first, routes.channel, routes.fraction, paths.latency_s)


def lump_channels(paths: Paths, capacity_gbps: Floats, apart: Longs) -> Lumps:
    """Return the paths without channels that others imply.

    Parameters
    ----------
    paths
        Plain paths (``plain_paths``).
    capacity_gbps
        float64[n_channels].
    apart
        Channels whose capacity changes in the run: they stay.

    Notes
    -----
    Channels are told apart by two sums over their entries of the fraction times a random number of
    the row, added in the order of rows: equal columns give equal sums, bit by bit. That two
    unequal columns agree in both sums has a chance of some 1e-24 for a million channels.
    """
    n_channels = capacity_gbps.size
    keeper = np.arange(n_channels, dtype=np.int32)
    sums = _column_sums(paths, n_channels)
    sums[0, apart] = -1.0 - np.arange(len(apart))
    order = np.lexsort((capacity_gbps, sums[1], sums[0]))
    is_first = np.ones(n_channels, np.bool_)
    is_first[1:] = (np.diff(sums[0, order]) != 0) | (np.diff(sums[1, order]) != 0)
    leader = order[np.maximum.accumulate(np.where(is_first, np.arange(n_channels), 0))]
    keeper[order] = leader
    kept = keeper[paths.channel] == paths.channel
    before = np.concatenate([[0], np.cumsum(kept)])
    assert paths.fraction is not None
    smaller = Paths(before[paths.first], paths.channel[kept], paths.fraction[kept], paths.latency_s)
    return Lumps(smaller, keeper)


def _column_sums(paths: Paths, n_channels: int) -> Floats:
    """float64[2, n_channels]; rows are taken in pieces, to hold little at once."""
    assert paths.fraction is not None
    sums = np.zeros((2, n_channels))
    marks = np.random.default_rng(SEED).uniform(1.0, 2.0, (2, paths.n_paths))
    ends = np.arange(CHUNK, paths.channel.size + CHUNK, CHUNK)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(paths.first, ends, side="right") - 1]))
    cuts[-1] = paths.n_paths
    for start, stop in pairwise(cuts.tolist()):
        piece = slice(paths.first[start], paths.first[stop])
        size = np.diff(paths.first[start : stop + 1])
        for which in range(2):
            weight = np.repeat(marks[which, start:stop], size) * paths.fraction[piece]
            np.add.at(sums[which], paths.channel[piece], weight)
    return sums
