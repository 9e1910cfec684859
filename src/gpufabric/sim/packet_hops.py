"""Next hops of every switch, for routing packet by packet.

Destinations are grouped by the switch that they hang on, and equal sets of channels are kept once:
a table for 8,192 hosts takes a few MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_route_structs import FLOWLET_SLOT, Hops
from gpufabric.kernels.structs import records

if TYPE_CHECKING:
    from gpufabric.sim.packet_problem import Wires

__all__ = ["HopTable", "hops_of"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
FAR = np.iinfo(np.int16).max


@dataclass(frozen=True, eq=False)
class HopTable:
    """Which channels lead on, from each switch to the destinations behind each switch.

    Parameters
    ----------
    group
        int32[n_switches, n_columns]: group of channels, -1 without a way. Nothing is asked for at
        the destination's own switch.
    column
        int32[n_switches]: column of the destinations that hang on a switch, -1 without any.
    first
        int64[n_groups + 1]: group g has entries first[g] … first[g + 1] of `channel`.
    channel
        int32[n_entries]: channels, equally good.
    seed
        int64[n_switches]: of each switch's hash, 32 bits; each its own where None. Switches with
        equal seeds choose alike, and so do not use some of their channels: hash polarisation.
    """

    group: Ints
    column: Ints
    first: Longs
    channel: Ints
    seed: Longs | None = None

    @property
    def n_columns(self) -> int:
        """Switches with destinations."""
        return int(self.group.shape[1])

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays [byte]."""
        arrays = (self.group, self.column, self.first, self.channel)
        return sum(array.nbytes for array in arrays)

    @classmethod
    def from_wires(
        cls, wires: Wires, without: Sequence[int] = (), seed: Longs | None = None
    ) -> HopTable:
        """Return the table of all shortest paths.

        Parameters
        ----------
        wires
            The channels.
        without
            Channels that no path takes: dead ones.
        seed
            As in the table.
        """
        tail, head = np.asarray(wires.tail), np.asarray(wires.head)
        n_switches = int(max(tail.max(initial=-1), head.max(initial=-1))) + 1
        ends = np.unique(tail[(head < 0) & (tail >= 0)])
        column = np.full(n_switches, -1, np.int32)
        column[ends] = np.arange(ends.size)
        between = np.flatnonzero((tail >= 0) & (head >= 0))
        between = between[~np.isin(between, np.asarray(without, np.int64))]
        between = between[np.argsort(tail[between], kind="stable")]
        tail, head = tail[between], head[between]
        hops_left = _distance(tail, head, ends, n_switches)
        is_next = (hops_left[head] + 1 == hops_left[tail]) & (hops_left[tail] < FAR)
        group = np.full((n_switches, ends.size), -1, np.int32)
        rows: list[Ints] = []
        bounds = np.searchsorted(tail, np.arange(n_switches + 1))
        for switch in range(n_switches):
            mine = slice(bounds[switch], bounds[switch + 1])
            sets, which = np.unique(is_next[mine], axis=1, return_inverse=True)
            number = np.full(sets.shape[1], -1, np.int32)
            for at in np.flatnonzero(sets.any(axis=0)):
                number[at] = len(rows)
                rows.append(between[mine][sets[:, at]].astype(np.int32))
            group[switch] = number[which.ravel()]
        first = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
        channel = np.concatenate([*rows, np.empty(0, np.int32)])
        return cls(group, column, first, channel, seed)


def _distance(tail: Ints, head: Ints, ends: Ints, n_switches: int) -> NDArray[np.int16]:
    """Hops from each switch to each of `ends`, over the channels given; FAR without a way."""
    hops = np.full((n_switches, ends.size), FAR, np.int16)
    hops[ends, np.arange(ends.size)] = 0
    starts = np.flatnonzero(np.r_[True, tail[1:] != tail[:-1]]) if tail.size else tail[:0]
    for step in range(1, n_switches):
        nearest = np.minimum.reduceat(hops[head], starts, axis=0) if tail.size else hops[:0]
        owners = tail[starts]
        is_new = (nearest == step - 1) & (hops[owners] == FAR)
        if not is_new.any():
            break
        hops[owners] = np.where(is_new, step, hops[owners])
    return hops


def hops_of(
    tables: Sequence[HopTable], default_seed: Longs, n_flowlets: int, *, has_flowlets: bool
) -> Hops:
    """Return the kernels' arrays for tables that have the same columns; none without tables."""
    n_switches = default_seed.size
    if not tables:
        none = np.zeros(0, np.int32)
        return Hops(
            none,
            none,
            np.zeros(1, np.int64),
            none,
            default_seed,
            none,
            np.zeros(1, np.int64),
            records(FLOWLET_SLOT, 0),
        )
    n_groups = np.cumsum([0] + [table.first.size - 1 for table in tables])
    n_entries = np.cumsum([0] + [table.channel.size for table in tables])
    groups = [
        np.where(table.group < 0, -1, table.group + before).astype(np.int32).ravel()
        for table, before in zip(tables, n_groups[:-1], strict=True)
    ]
    firsts = [
        table.first[:-1] + before for table, before in zip(tables, n_entries[:-1], strict=True)
    ]
    flowlets = records(FLOWLET_SLOT, n_switches * n_flowlets if has_flowlets else 0)
    flowlets["flow"] = -1
    seed = default_seed if tables[0].seed is None else np.asarray(tables[0].seed, np.int64)
    return Hops(
        group=np.concatenate(groups),
        column=tables[0].column.astype(np.int32),
        first=np.concatenate([*firsts, n_entries[-1:]]).astype(np.int64),
        channel=np.concatenate([table.channel for table in tables]).astype(np.int32),
        seed=seed,
        turn=np.zeros(int(n_groups[-1]), np.int32),
        table=np.zeros(1, np.int64),
        flowlets=flowlets,
    )
