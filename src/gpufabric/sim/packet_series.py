"""What a packet run noted over time, channel by channel, drawn together for each tier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.channel_table import ChannelTable
from gpufabric.sim.packet_recording import PacketSeries
from gpufabric.sim.traffic_result import TierSeries

__all__ = ["queues_of_tiers", "series_of_tiers"]

Floats = NDArray[np.float64]

PS_PER_S = 1e12


def series_of_tiers(series: PacketSeries, channels: ChannelTable) -> TierSeries:
    """Return utilisation over time: share of the time that channels of a tier sent."""
    busy = series.busy.sum(axis=1)
    return TierSeries(
        series.bin_ps / PS_PER_S,
        _by_tier(busy, series, channels, np.mean),
        _by_tier(busy, series, channels, np.max),
    )


def queues_of_tiers(series: PacketSeries, channels: ChannelTable) -> tuple[Floats, Floats]:
    """Return the deepest queue of each tier [byte] and the share paused of its most paused class.

    Both are float64[n_bins, n_tiers]; nan for tiers without a channel that is up.
    """
    deepest, paused = series.deepest_bytes.max(axis=1), series.paused.max(axis=1)
    return (
        _by_tier(deepest, series, channels, np.max),
        _by_tier(paused, series, channels, np.max),
    )


def _by_tier(
    values: Floats, series: PacketSeries, channels: ChannelTable, draw: Callable[..., Floats]
) -> Floats:
    """Return float64[n_bins, n_tiers] from float64[n, n_bins]."""
    found = np.full((series.n_bins, len(channels.tiers)), np.nan)
    is_up = channels.capacity_gbps[series.channels] > 0
    for tier in np.unique(channels.tier[series.channels[is_up]]).tolist():
        rows = is_up & (channels.tier[series.channels] == tier)
        found[:, tier] = draw(values[rows], axis=0)
    return found
