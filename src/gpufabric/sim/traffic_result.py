"""What a run of traffic gave: times, rates, loads, and what they are worth against the ideal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.channel_table import ChannelTable
from gpufabric.sim.flow import FINISHED, PENDING, RUNNING, STALLED, WAITING
from gpufabric.sim.packet_outcome import PacketOutcome
from gpufabric.sim.traffic import Traffic
from gpufabric.topology.decision import Decision

__all__ = [
    "FAILED",
    "MODEL",
    "MODEL_VERSION",
    "STATUS_WORDS",
    "UNREACHABLE",
    "TierSeries",
    "TrafficResult",
    "jain_index",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MODEL = "flow"
MODEL_VERSION = 1
"""Raised with every change of the model that changes results; see docs/models/flow.md."""

UNREACHABLE = 5
"""Status of a flow that has no path; the others are those of the flow engine."""

FAILED = 6
"""Status of a flow whose queue pair used up its retries, in the packet engine."""

STATUS_WORDS = {
    WAITING: "waiting",
    PENDING: "pending",
    RUNNING: "running",
    STALLED: "stalled",
    FINISHED: "finished",
    UNREACHABLE: "unreachable",
    FAILED: "failed",
}

PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0))
BITS_PER_GB = 8e-9


def jain_index(values: Floats) -> float | None:
    """Jain's fairness index: 1 where all are equal, 1 / n where one has everything.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.

    Examples
    --------
    >>> jain_index(np.array([2.0, 2.0])), jain_index(np.array([4.0, 0.0]))
    (1.0, 0.5)
    """
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (values.size * squares) if squares > 0 else None


@dataclass(frozen=True, eq=False)
class TierSeries:
    """Utilisation over time, a column for each tier and direction.

    Parameters
    ----------
    bin_s
        Width of a time bin [s].
    mean, most
        float64[n_bins, n_tiers]: mean over the channels of the tier, and the busiest of them [1].
    """

    bin_s: float
    mean: Floats
    most: Floats


@dataclass(frozen=True, eq=False)
class TrafficResult:
    """How traffic went.

    Parameters
    ----------
    traffic
        What was asked.
    names
        Name of each endpoint that the traffic counts.
    status
        int8[n_flows]: as the flow engine says, or ``UNREACHABLE``.
    release_s, finish_s
        float64[n_flows]: when it may start, and last byte [s]; nan where not.
    ideal_s
        float64[n_flows]: completion time of the flow alone in the healthy fabric [s].
    left_bytes
        float64[n_flows]: what has not arrived [byte].
    hops
        int32[n_flows]: switches on its path.
    bound_s
        No routing could bring the flows that finished to an end earlier than this [s].
    end_s
        End of the run [s].
    channels
        The channels, and what they could carry when the run began.
    carried_bytes
        float64[n_channels] [byte].
    series
        Utilisation over time; None where not asked for.
    head
        What the run was made with, for JSON: fabric, model, seed, options.
    decisions
        What was assumed, and what routing did otherwise than asked.
    packets
        Counters of the packet engine; None from the flow engine.
    """

    traffic: Traffic
    names: NDArray[np.str_]
    status: NDArray[np.int8]
    release_s: Floats
    finish_s: Floats
    ideal_s: Floats
    left_bytes: Floats
    hops: Ints
    bound_s: float
    end_s: float
    channels: ChannelTable
    carried_bytes: Floats
    series: TierSeries | None
    head: dict[str, Any]
    decisions: tuple[Decision, ...]
    packets: PacketOutcome | None = None

    # Flows ----------------------------------------------------------------------------------

    @cached_property
    def is_finished(self) -> NDArray[np.bool_]:
        """bool[n_flows]: whether the last byte has arrived."""
        return np.asarray(self.status == FINISHED)

    @cached_property
    def fct_s(self) -> Floats:
        """float64[n_flows]: completion time [s]; nan unless finished."""
        return np.where(self.is_finished, self.finish_s - self.release_s, np.nan)

    @cached_property
    def slowdown(self) -> Floats:
        """float64[n_flows]: completion time over that of the flow alone [1]; at least 1."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.fct_s / self.ideal_s
        # A flow that takes no time alone and none here is not slowed down.
        return np.where((self.ideal_s == 0) & (self.fct_s == 0), 1.0, ratio)

    @cached_property
    def mean_gbps(self) -> Floats:
        """float64[n_flows]: size over completion time [Gb/s]; nan unless finished."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = self.traffic.size_bytes * BITS_PER_GB / self.fct_s
        return np.where(self.fct_s > 0, rate, np.nan)

    # The run --------------------------------------------------------------------------------

    @property
    def completion_s(self) -> float | None:
        """From the first start to the last byte of what finished [s]; None where nothing did."""
        if not self.is_finished.any():
            return None
        return float(self.finish_s[self.is_finished].max() - self._first_start_s)

    @property
    def _first_start_s(self) -> float:
        return float(self.traffic.start_s.min(initial=np.inf))

    @cached_property
    def status_counts(self) -> dict[str, int]:
        """Flows of each status that occurs."""
        found = np.bincount(self.status, minlength=len(STATUS_WORDS))
        return {word: int(found[code]) for code, word in STATUS_WORDS.items() if found[code]}

    @property
    def bandwidth_share(self) -> float | None:
        """Achieved over ideal bandwidth [1]: the bound over the completion time."""
        took_s = self.completion_s
        if took_s is None or took_s <= 0:
            return None
        return min(1.0, (self.bound_s - self._first_start_s) / took_s)

    @property
    def achieved_gbps(self) -> float | None:
        """Bytes of the flows that finished over the completion time [Gb/s]."""
        took_s = self.completion_s
        if took_s is None or took_s <= 0:
            return None
        done_bytes = float(self.traffic.size_bytes[self.is_finished].sum())
        return done_bytes * BITS_PER_GB / took_s

    @property
    def fairness(self) -> float | None:
        """Jain's index of the mean rates of flows that crossed a switch; of all where none did."""
        counted = np.isfinite(self.mean_gbps)
        crossed = counted & (self.hops > 0)
        return jain_index(self.mean_gbps[crossed if crossed.any() else counted])

    def utilisation(self) -> Floats:
        """float64[n_channels]: carried over capacity times duration [1]; nan where that is 0."""
        room = self.channels.capacity_gbps * 1.25e8 * self.end_s
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.carried_bytes / room
        return np.where(room > 0, share, np.nan)

    def busiest(self, count: int) -> list[int]:
        """Return the channels of the highest utilisation, the busiest first; idle ones left out."""
        share = np.nan_to_num(self.utilisation())
        order = np.argsort(-share, kind="stable")[:count]
        return [int(channel) for channel in order if share[channel] > 0]

    # For people -----------------------------------------------------------------------------

    def summary(self, n_busiest: int = 10) -> dict[str, Any]:
        """Return everything but the single flows and channels, as ``--json`` prints it."""
        return {
            **self.head,
            "flows": {"total": self.traffic.n_flows, **self.status_counts},
            "bytes": {
                "total": float(self.traffic.size_bytes.sum()),
                "undelivered": float(self.left_bytes.sum()),
            },
            "completion_s": self.completion_s,
            "fct_us": _spread(self.fct_s[self.is_finished] * 1e6),
            "slowdown": _spread(self.slowdown[self.is_finished]),
            "bandwidth": {
                "achieved_gbps": self.achieved_gbps,
                "ideal_gbps": self._ideal_gbps(),
                "share": self.bandwidth_share,
            },
            "jain_index": self.fairness,
            **self._packets(),
            "tiers": self.tiers(),
            "busiest": [self._busy(channel) for channel in self.busiest(n_busiest)],
            "decisions": [decision.to_json() for decision in self.decisions],
        }

    def _packets(self) -> dict[str, Any]:
        return {} if self.packets is None else {"packets": self.packets.summary(self.channels.name)}

    def _ideal_gbps(self) -> float | None:
        achieved, share = self.achieved_gbps, self.bandwidth_share
        return achieved / share if achieved is not None and share else None

    def _busy(self, channel: int) -> dict[str, Any]:
        return {
            "channel": channel,
            "name": self.channels.name(channel),
            "tier": self.channels.tiers[self.channels.tier[channel]],
            "utilisation": float(self.utilisation()[channel]),
        }

    def tiers(self) -> list[dict[str, Any]]:
        """Return channels, mean, median and highest utilisation of each tier and direction."""
        share = self.utilisation()
        rows = []
        for number, tier in enumerate(self.channels.tiers):
            mine = share[(self.channels.tier == number) & np.isfinite(share)]
            if mine.size:
                rows.append(
                    {
                        "tier": tier,
                        "channels": int(mine.size),
                        "mean": float(mine.mean()),
                        "median": float(np.median(mine)),
                        "most": float(mine.max()),
                    }
                )
        return rows


def _spread(values: Floats) -> dict[str, float] | None:
    """Mean and percentiles; a percentile is the value of a flow, never between two."""
    if not values.size:
        return None
    cuts = np.percentile(values, [cut for _name, cut in PERCENTILES], method="inverted_cdf")
    found = {name: float(value) for (name, _cut), value in zip(PERCENTILES, cuts, strict=True)}
    return {"mean": float(values.mean()), **found}
