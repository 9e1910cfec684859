"""Paths of flows over shortest paths: hashed, weighted, load-aware, striped, or spread over all."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.graph import Ends
from gpufabric.kernels.spread import Behind, Rows, count_spread, fill_spread, walk_weighted
from gpufabric.kernels.walk import (
    Stripes,
    Traffic,
    Wanted,
    walk_by_hash,
    walk_by_load,
    walk_striped,
)
from gpufabric.routing.entropy import Entropy, hash_seeds
from gpufabric.routing.paths import (
    REACHED,
    UNREACHABLE,
    AnyInts,
    Status,
    WalkedPaths,
    ends_of,
    join_paths,
    path_latency_s,
    repeat_paths,
    room_for,
)
from gpufabric.routing.shortest import ShortestPaths

__all__ = ["Flows", "Walker"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Flows:
    """Flows between NIC ports.

    Parameters
    ----------
    src_port, dst_port
        int[n_flows]: rows in ``ports``.
    number
        int64[n_flows]: numbers of the flows for their queue pairs; 0, 1, 2 … where None.
    demand
        float64[n_flows]: what each puts on a channel, for choices by load [any unit]; 1 where
        None.
    """

    src_port: AnyInts
    dst_port: AnyInts
    number: AnyInts | None = None
    demand: Floats | None = None

    def __len__(self) -> int:
        return len(self.src_port)

    @property
    def numbers(self) -> Longs:
        """int64[n_flows]: `number`, given or not."""
        if self.number is None:
            return np.arange(len(self), dtype=np.int64)
        return np.asarray(self.number, np.int64)

    @property
    def demands(self) -> Floats:
        """float64[n_flows]: `demand`, given or not."""
        if self.demand is None:
            return np.ones(len(self))
        return np.asarray(self.demand, np.float64)


@dataclass(frozen=True, eq=False)
class Walker:
    """Finds paths of flows, in one state of the fabric.

    Parameters
    ----------
    shortest
        Shortest paths of the fabric as it is.
    seeds
        int64[n_switches]: hash seed of each switch; ``entropy.hash_seeds`` draws them.
    entropy
        How flows differ for a hash, and into how many queue pairs each is divided.
    is_joined
        One row a flow; otherwise one a queue pair, those of a flow one after the other.
    """

    shortest: ShortestPaths
    seeds: Longs
    entropy: Entropy = field(default_factory=Entropy)
    is_joined: bool = True

    @classmethod
    def of(cls, shortest: ShortestPaths, seed: int = 0, queue_pairs: int = 1) -> Walker:
        """Return a walker whose switches all have seeds of their own."""
        seeds = hash_seeds(shortest.channels.fabric, seed)
        return cls(shortest, seeds, Entropy(seed, queue_pairs))

    def by_hash(self, flows: Flows) -> WalkedPaths:
        """ECMP: every switch picks a next channel by the hash of each queue pair."""
        ends, status, hops = self._ends(flows)
        wanted = self._wanted(flows, hops)
        channel = np.empty(int(wanted.first[-1]), np.int32)
        walk_by_hash(self.shortest.way, ends, wanted, channel)
        return self._collected(wanted.first, channel, status)

    def by_weight(self, flows: Flows) -> WalkedPaths:
        """WCMP: as ECMP, with odds as the capacity behind each channel (for failures)."""
        ends, status, hops = self._ends(flows)
        wanted = self._wanted(flows, hops)
        channel = np.empty(int(wanted.first[-1]), np.int32)
        order = np.argsort(np.repeat(ends.leaf_to, self.entropy.queue_pairs), kind="stable")
        behind = self._behind(is_weighted=True)
        walk_weighted(self.shortest.way, ends, wanted, behind, order, channel)
        return self._collected(wanted.first, channel, status)

    def by_load(self, flows: Flows) -> WalkedPaths:
        """Flowlets under DLB: flows in order, each on the least loaded next channels.

        A flow is divided into as many flowlets as it has queue pairs. Switches know the load of
        their own channels only.
        """
        ends, status, hops = self._ends(flows)
        wanted = self._wanted(flows, hops)
        channel = np.empty(int(wanted.first[-1]), np.int32)
        capacity = self.shortest.channels.capacity_gbps
        traffic = Traffic(capacity, flows.demands, np.zeros(len(capacity)))
        walk_by_load(self.shortest.way, ends, wanted, traffic, channel)
        return self._collected(wanted.first, channel, status)

    def striped(self, flows: Flows) -> WalkedPaths:
        """Static paths: the destination's place alone decides (D-mod-k); one path a flow."""
        ends, status, hops = self._ends(flows)
        first = _offsets(hops)
        wanted = Wanted(first, np.zeros(len(flows), np.int64), self.seeds)
        channel = np.empty(int(first[-1]), np.int32)
        number, leaf_number = self._numbers
        number_to = number[np.asarray(flows.dst_port, np.int64)]
        stripes = Stripes(number_to, leaf_number, self.shortest.channels.lanes)
        walk_striped(self.shortest.way, ends, wanted, stripes, channel)
        latency_s = path_latency_s(self.shortest.channels, first, channel)
        paths = WalkedPaths(first, channel, None, latency_s, status)
        return paths if self.is_joined else repeat_paths(paths, self.entropy.queue_pairs)

    def spread(self, flows: Flows, *, is_weighted: bool = False) -> WalkedPaths:
        """Packet spraying: every switch divides a flow equally over all next channels.

        With `is_weighted` it divides by the capacity behind them, as adaptive routing does once
        queues have told it.
        """
        ends, status, hops = self._ends(flows)
        way = self.shortest.way
        first = np.zeros(len(flows) + 1, np.int64)
        count_spread(way, ends, (hops >= 0).astype(np.int32), first)
        room_for(int(first[-1]))
        rows = Rows(first, np.empty(int(first[-1]), np.int32), np.empty(int(first[-1])))
        order = np.argsort(ends.leaf_to, kind="stable")
        fill_spread(way, ends, self._behind(is_weighted=is_weighted), order, rows)
        # All paths of a flow have as many steps, and the whole flow takes each step.
        latency_s = path_latency_s(self.shortest.channels, first, rows.channel, rows.fraction)
        return WalkedPaths(first, rows.channel, rows.fraction, latency_s, status)

    # Parts ----------------------------------------------------------------------------------

    def _behind(self, *, is_weighted: bool) -> Behind:
        channels = self.shortest.channels
        capacity, bunch = np.empty(0), np.empty(0)
        if is_weighted:
            capacity, bunch = channels.capacity_gbps, channels.bunch_gbps
        return Behind(self.shortest.networks, channels.network_of, capacity, bunch)

    @cached_property
    def _numbers(self) -> tuple[Ints, Ints]:
        """Number of each NIC port on its leaf, and of each leaf in its pod or network."""
        channels = self.shortest.channels
        leaf = channels.leaf_of[channels.endpoints]
        number = np.zeros(len(channels.leaf_of), np.int32)
        number[channels.endpoints] = _rank_within(leaf)
        switches = channels.fabric.switches
        leafs = np.flatnonzero(switches.tier == 1)
        group = channels.network_of[leafs].astype(np.int64) << 32 | switches.pod[leafs]
        by_group = np.argsort(group, kind="stable")
        leaf_number = np.zeros(len(switches), np.int32)
        leaf_number[leafs[by_group]] = _rank_within(group[by_group])
        return number, leaf_number

    def _ends(self, flows: Flows) -> tuple[Ends, Status, Ints]:
        """Where flows enter and leave, their status, and their steps; -1: no channels."""
        ends, status = ends_of(self.shortest.channels, flows.src_port, flows.dst_port)
        hops = self.shortest.hops(ends.leaf_from, ends.leaf_to)
        is_self = np.asarray(flows.src_port) == np.asarray(flows.dst_port)
        status[(status == REACHED) & (hops < 0) & ~is_self] = UNREACHABLE
        hops[(status != REACHED) | is_self] = -1
        return ends, status, hops

    def _wanted(self, flows: Flows, hops: Ints) -> Wanted:
        each = self.entropy.queue_pairs
        if each < 1:
            what = _("{n} queue pairs a flow.").format(n=each)
            raise InputError(Fault("queue_pairs", what, _("1 or more")))
        first = _offsets(np.repeat(hops, each))
        room_for(int(first[-1]))
        key = self.entropy.keys(flows.src_port, flows.dst_port, flows.numbers)
        return Wanted(first, key, self.seeds)

    def _collected(self, first: Longs, channel: Ints, status: Status) -> WalkedPaths:
        """One row a flow from `queue_pairs` consecutive paths each, or those paths."""
        channels, each = self.shortest.channels, self.entropy.queue_pairs
        latency_s = path_latency_s(channels, first, channel)
        paths = WalkedPaths(first, channel, None, latency_s, np.repeat(status, each))
        return join_paths(paths, each) if self.is_joined and each > 1 else paths


def _offsets(hops: Ints) -> Longs:
    """Where each path begins: its edges, and the channels of the two hosts; none where -1."""
    first = np.zeros(len(hops) + 1, np.int64)
    np.cumsum(np.where(hops >= 0, hops + 2, 0), out=first[1:])
    return first


def _rank_within(group: npt.NDArray[np.integer]) -> Ints:
    """Number of each row within its run of equal values."""
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    sizes = np.diff(np.concatenate([starts, [len(group)]]))
    rank: Ints = (np.arange(len(group)) - np.repeat(starts, sizes)).astype(np.int32)
    return rank
