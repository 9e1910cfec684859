"""How soon flows could end at best: what no routing can undercut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["work_bound_s"]

Floats = NDArray[np.float64]


def work_bound_s(
    key: NDArray[np.integer], size_bytes: Floats, start_s: Floats, rate_gbps: Floats
) -> float:
    """Earliest time by which servers of known rates can have moved all their bytes [s].

    Parameters
    ----------
    key
        int[n]: server of each piece of work.
    size_bytes, start_s
        float64[n]: the piece, and the earliest time that it can begin [byte, s].
    rate_gbps
        float64[n]: rate of its server [Gb/s]; pieces of rate 0 are left out.

    Notes
    -----
    What starts at t or later must be moved after t: the bound of one server is the largest, over
    all t, of t + (bytes that start at t or later) / rate. A server that never idles while it has
    work reaches it.

    Examples
    --------
    Two pieces of 1 GB at once on a server of 8 Gb/s (1 GB/s), and one of 1 GB after 5 s:

    >>> start = np.array([0.0, 0.0, 5.0])
    >>> work_bound_s(np.zeros(3, int), np.full(3, 1e9), start, np.full(3, 8.0))
    6.0
    """
    used = rate_gbps > 0
    if not used.any():
        return 0.0
    key, start_s = key[used], start_s[used]
    work_s = size_bytes[used] / (rate_gbps[used] * 1.25e8)
    order = np.lexsort((-start_s, key))
    total = np.cumsum(work_s[order])
    is_first = np.concatenate([[True], np.diff(key[order]) != 0])
    before = np.where(is_first, total - work_s[order], -np.inf)
    since = total - np.maximum.accumulate(before)
    return float((start_s[order] + since).max())
