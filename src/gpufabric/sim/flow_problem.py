"""What the flow engine is asked: channels, paths, flows, and what happens to the fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FabricEvents", "FlowProblem", "Paths", "Predecessors"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Numbers = Sequence[int] | NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Paths:
    """Channels that flows use, one row a flow or a group of flows, in CSR form.

    A flow on several paths has one row with all their channels, each with the part of the flow's
    rate that crosses it: ``from_shares`` makes such rows.

    Parameters
    ----------
    first
        int64[n_paths + 1]: row r has entries ``first[r]`` … ``first[r + 1] - 1``.
    channel
        int32[n_entries]: channel of each entry.
    fraction
        float64[n_entries]: part of the rate that crosses the channel [1]; all 1 where None.
    latency_s
        float64[n_paths]: time from the start of a flow to its first byte's arrival [s];
        0 where None.
    """

    first: Longs
    channel: Ints
    fraction: Floats | None = None
    latency_s: Floats | None = None

    @classmethod
    def from_lists(
        cls,
        rows: Sequence[Sequence[int]],
        fractions: Sequence[Sequence[float]] | None = None,
        latency_s: Sequence[float] | None = None,
    ) -> Paths:
        """Return paths from lists of channels, one list a row.

        Examples
        --------
        >>> Paths.from_lists([[0, 3], [1]]).first.tolist()
        [0, 2, 3]
        """
        first = np.zeros(len(rows) + 1, np.int64)
        first[1:] = np.cumsum([len(row) for row in rows])
        channel = np.array([c for row in rows for c in row], np.int32)
        fraction = None
        if fractions is not None:
            fraction = np.array([part for row in fractions for part in row], np.float64)
        latency = None if latency_s is None else np.array(latency_s, np.float64)
        return cls(first, channel, fraction, latency)

    @classmethod
    def from_shares(cls, first_path: Longs, share: Floats, paths: Paths) -> Paths:
        """Return one row a flow from flows with several paths each.

        Parameters
        ----------
        first_path
            int64[n_flows + 1]: flow f uses rows ``first_path[f]`` … of `paths`.
        share
            float64[paths.n_paths]: part of its flow's rate on each row [1].
        paths
            The single paths. A flow's latency is the largest of its paths'.
        """
        first_path = np.asarray(first_path, np.int64)
        share = np.asarray(share, np.float64)
        fraction = np.repeat(share, np.diff(paths.first))
        if paths.fraction is not None:
            fraction = fraction * paths.fraction
        latency_s = None
        if paths.latency_s is not None:
            latency_s = np.zeros(first_path.size - 1)
            owner = np.repeat(np.arange(first_path.size - 1), np.diff(first_path))
            np.maximum.at(latency_s, owner, paths.latency_s)
        return cls(paths.first[first_path], paths.channel, fraction, latency_s)

    @property
    def n_paths(self) -> int:
        """Number of rows."""
        return int(self.first.size - 1)


@dataclass(frozen=True, eq=False)
class Predecessors:
    """Flows that must end before others start, in CSR form.

    Parameters
    ----------
    first
        int64[n_flows + 1]: flow f waits for ``flow[first[f]]`` … ``flow[first[f + 1] - 1]``.
    flow
        int32[n_dependencies].
    """

    first: Longs
    flow: Ints


@dataclass(frozen=True, eq=False)
class FlowProblem:
    """Flows over channels, without a fabric: arrays only.

    Parameters
    ----------
    capacity_gbps
        float64[n_channels]: capacity of each direction of each link [Gb/s]; 0: failed.
    paths
        Rows of channels.
    size_bytes
        float64[n_flows] [byte].
    path
        int32[n_flows]: row of `paths` of each flow; flow f uses row f where None.
    start_s
        float64[n_flows]: earliest start [s]; 0 where None.
    weight
        float64[n_flows]: share of a full channel, relative to others there [1]; 1 where None.
    cap_gbps
        float64[n_flows]: largest rate [Gb/s], infinite for none; no caps where None.
    predecessors
        Flows to wait for; none where None.
    """

    capacity_gbps: Floats
    paths: Paths
    size_bytes: Floats
    path: Ints | None = None
    start_s: Floats | None = None
    weight: Floats | None = None
    cap_gbps: Floats | None = None
    predecessors: Predecessors | None = None

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return int(np.size(self.size_bytes))


@dataclass(frozen=True, eq=False)
class FabricEvents:
    """Changes of the fabric in time: a channel's capacity or a flow's path.

    Parameters
    ----------
    time_s
        float64[n_events] [s], in any order; equal times take effect in the order given.
    channel
        int32[n_events]: channel that gets a new capacity; -1 for a reroute.
    capacity_gbps
        float64[n_events]: the new capacity [Gb/s]: 0 is a failure.
    flow
        int32[n_events]: flow that gets a new path; -1 for a capacity.
    path
        int32[n_events]: its new row of ``FlowProblem.paths``. Its latency stays.
    """

    time_s: Floats = field(default_factory=lambda: np.empty(0))
    channel: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    capacity_gbps: Floats = field(default_factory=lambda: np.empty(0))
    flow: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    path: Ints = field(default_factory=lambda: np.empty(0, np.int32))

    @classmethod
    def capacity(cls, time_s: float, channels: Numbers, capacity_gbps: float) -> FabricEvents:
        """Give `channels` a new capacity: 0 fails them, the old value repairs them."""
        channel = np.asarray(channels, np.int32)
        none = np.full(channel.size, -1, np.int32)
        return cls(
            np.full(channel.size, float(time_s)),
            channel,
            np.full(channel.size, float(capacity_gbps)),
            none,
            none,
        )

    @classmethod
    def reroute(cls, time_s: float, flows: Numbers, paths: Numbers) -> FabricEvents:
        """Move `flows`, begun or not, to rows `paths` with the bytes that they have left."""
        flow = np.asarray(flows, np.int32)
        none = np.full(flow.size, -1, np.int32)
        return cls(
            np.full(flow.size, float(time_s)),
            none,
            np.zeros(flow.size),
            flow,
            np.asarray(paths, np.int32),
        )

    def __add__(self, other: FabricEvents) -> FabricEvents:
        return FabricEvents(
            np.concatenate([self.time_s, other.time_s]),
            np.concatenate([self.channel, other.channel]),
            np.concatenate([self.capacity_gbps, other.capacity_gbps]),
            np.concatenate([self.flow, other.flow]),
            np.concatenate([self.path, other.path]),
        )
