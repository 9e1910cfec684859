"""Rates of ports over time: the share of time that they sent, at the speed that they then had."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.packet import PacketProblem
from gpufabric.sim.packet_faults import SlowLink
from gpufabric.sim.packet_recording import PacketSeries

__all__ = ["rate_gbps"]

Floats = NDArray[np.float64]

PS_PER_US = 1e6


def rate_gbps(problem: PacketProblem, series: PacketSeries, row: int) -> Floats:
    """Return float64[n_bins]: bits that a row of a series sent over time [Gb/s].

    In a bin in which the speed of a link changes, its mean speed is taken.
    """
    channel = int(series.channels[row])
    own_gbps = float(problem.wires.gbps[channel])
    from_us = np.arange(series.n_bins) * series.bin_ps / PS_PER_US
    until_us = from_us + series.bin_ps / PS_PER_US
    speed_gbps = np.full(series.n_bins, own_gbps)
    for fault in problem.faults:
        both = (fault.channel, int(problem.wires.reverse[fault.channel]))
        if isinstance(fault, SlowLink) and channel in both:
            held_us = np.minimum(until_us, fault.end_us) - np.maximum(from_us, fault.start_us)
            share = np.clip(held_us / (until_us - from_us), 0.0, 1.0)
            speed_gbps += share * (fault.gbps - own_gbps)
    sent: Floats = series.busy[row].sum(axis=0) * speed_gbps
    return sent
