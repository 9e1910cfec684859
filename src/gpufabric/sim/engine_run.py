"""The flow engine run on as few channels as say the same, and its loads told for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.flow import FlowResult, simulate
from gpufabric.sim.flow_problem import FabricEvents, FlowProblem
from gpufabric.sim.lumping import lump_channels, plain_paths
from gpufabric.sim.traffic_result import TierSeries

__all__ = ["EngineRun", "run_engine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MOST_CELLS = 40_000_000
"""Time bins times channels that are counted: 320 MB."""


class EngineRun(NamedTuple):
    """What the engine said.

    Parameters
    ----------
    flows
        Its result; the loads in it are those of the channels that were kept.
    carried_bytes
        float64[n_channels] [byte].
    keeper
        int32[n_channels]: channel whose load each one has.
    """

    flows: FlowResult
    carried_bytes: Floats
    keeper: Ints

    def tier_series(
        self, capacity_gbps: Floats, tier: NDArray[np.int8], n_tiers: int
    ) -> TierSeries | None:
        """Return the utilisation of each tier over time; of channels that had capacity at first.

        Parameters
        ----------
        capacity_gbps
            float64[n_channels] [Gb/s].
        tier
            int[n_channels]: tier of each channel.
        n_tiers
            Number of tiers.
        """
        load = self.flows.series
        if load is None:
            return None
        n_used = max(1, min(len(load.carried_bytes), round(self.flows.end_s / load.bin_s + 0.5)))
        mean = np.full((n_used, n_tiers), np.nan)
        most = np.full((n_used, n_tiers), np.nan)
        for number in range(n_tiers):
            mine = np.flatnonzero((tier == number) & (capacity_gbps > 0))
            if not len(mine):
                continue
            room = capacity_gbps[mine] * 1.25e8 * load.bin_s
            share = load.carried_bytes[:n_used, self.keeper[mine]] / room
            mean[:, number] = share.mean(axis=1)
            most[:, number] = share.max(axis=1)
        return TierSeries(load.bin_s, mean, most)


def run_engine(
    problem: FlowProblem, events: FabricEvents, until_s: float, n_bins: int
) -> EngineRun:
    """Run a problem.

    Parameters
    ----------
    problem, events
        The problem.
    until_s
        End of the run [s].
    n_bins
        Time bins wanted; fewer where channels are many.
    """
    n_channels = problem.capacity_gbps.size
    paths = plain_paths(problem.paths, n_channels)
    apart = np.unique(events.channel[events.channel >= 0]).astype(np.int64)
    lumps = lump_channels(paths, problem.capacity_gbps, apart)
    bins = min(n_bins, MOST_CELLS // max(n_channels, 1)) // 2 * 2
    result = simulate(
        replace(problem, paths=lumps.paths), events, until_s=until_s, series_bins=bins
    )
    return EngineRun(result, result.carried_bytes[lumps.keeper], lumps.keeper)
