"""Bytes per channel over time, in a fixed number of bins that widen as the run goes on."""

from __future__ import annotations

from gpufabric.kernels.jit import kernel
from gpufabric.kernels.structs import Records, Series

__all__ = ["spread"]


@kernel
def spread(entries: Records, series: Series, rate: float, since_s: float, until_s: float) -> None:
    """Add what `rate` moves over a route from `since_s` to `until_s` to the bins of its channels.

    Reference: tests/reference/series.py, spread.
    """
    n_bins, n_channels = series.carried.shape
    while until_s > n_bins * series.width_s[0]:
        widen(series)
    width_s = series.width_s[0]
    at = min(int(since_s / width_s), n_bins - 1)
    while since_s < until_s:
        edge_s = until_s
        if at < n_bins - 1:
            edge_s = min(until_s, (at + 1) * width_s)
        moved = rate * max(0.0, edge_s - since_s)
        for entry in entries:
            if entry.channel < n_channels:
                series.carried[at, entry.channel] += moved * entry.fraction
        since_s = max(since_s, edge_s)
        at += 1


@kernel
def widen(series: Series) -> None:
    """Double the width of the bins: each new one takes up two.

    Reference: tests/reference/series.py, spread.
    """
    n_bins, n_channels = series.carried.shape
    for at in range(n_bins):
        for channel in range(n_channels):
            both = 0.0
            for half in range(2 * at, min(2 * at + 2, n_bins)):
                both += series.carried[half, channel]
            series.carried[at, channel] = both
    series.width_s[0] *= 2.0
