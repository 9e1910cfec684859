"""Records and groups of arrays that kernels share; each field with type, shape and unit.

Words: a *channel* is one direction of a link. A *route* is what one flow uses: channels, each with
the fraction of the flow's rate that crosses it. A *bundle* is the flows of one route, weight and
cap, which have one rate. A *level* is rate / weight; channels fill as levels rise together.

State is kept in arrays of records, one record a channel, bundle or flow: what a step needs of one
of them lies in one or two cache lines, and a kernel that calls another hands over few arrays. (A
kernel gets a tuple of arrays by value, field by field: with one array a field, handing over took
most of the time of a run.) Numbers that lead from record to record are unsigned where none can be
missing: numba then does not look for negative indices. No field may have the name of an
attribute of ``numpy.record``: plain Python would get that instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BUNDLE",
    "CHANGE",
    "CHANNEL",
    "ENTRY",
    "FLOW",
    "MEMBER",
    "Bools",
    "Floats",
    "Indices",
    "Ints",
    "Longs",
    "Records",
    "Routes",
    "Run",
    "Series",
    "Solver",
    "records",
]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Indices = NDArray[np.uint32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Records = Any  # an array of records: its fields have no types that mypy knows

CHANNEL = np.dtype(
    [
        ("capacity", np.float64),  # [byte/s]
        ("load", np.float64),  # rates of the bundles on it that are not free [byte/s]
        ("slope", np.float64),  # load per unit of level of its free bundles
        ("level", np.float64),  # level at which it is full [byte/s]; infinite: it is not
        ("key", np.float64),  # in the heap: level at which it needs attention, or less
        ("first", np.uint32),  # its first member
        ("count", np.uint32),  # its members
        ("n_free", np.int32),  # free ones among them
        ("place", np.int32),  # in the heap, 0 outside
        ("settled", np.int32),  # last round that fixed its level
    ],
    align=True,
)

MEMBER = np.dtype(
    [
        ("load", np.float64),  # load on the channel per unit of the bundle's level
        ("bundle", np.uint32),  # an active bundle on the channel
        ("entry", np.uint32),  # the bundle's entry for the channel
    ],
    align=True,
)

ENTRY = np.dtype(
    [
        ("fraction", np.float64),  # part of the bundle's rate that crosses the channel [1]
        ("channel", np.uint32),
        ("slot", np.uint32),  # the bundle's member of the channel
    ],
    align=True,
)

BUNDLE = np.dtype(
    [
        ("first", np.uint32),  # entries of its route: first … end - 1
        ("end", np.uint32),
        ("weight", np.float64),  # sum of the weights of its active flows, 0 when idle
        ("level", np.float64),  # rate / weight [byte/s]
        ("bottleneck", np.int32),  # the full channel that limits it, -1 when idle
        ("free", np.int32),  # 1: its level is being sought
        ("last_round", np.int32),  # that touched it
        ("root", np.int32),  # its flow that ends next, -1 without flows
        ("n_active", np.int32),  # flows on their way
        ("n_before", np.int32),  # the same before this instant
        ("is_changed", np.int32),  # 1: a flow joined or left at this instant
        ("cap_channel", np.int32),  # the channel that stands for its cap, -1 without
        ("flow_weight", np.float64),  # weight of one flow
        ("flow_cap", np.float64),  # largest rate of one flow [byte/s]
        ("rate", np.float64),  # rate of one flow [byte/s]
        ("since_s", np.float64),  # time at which `served` holds [s]
        ("served", np.float64),  # bytes of a flow that is there since the bundle woke [byte]
        ("carried", np.float64),  # bytes of all its flows [byte]
        ("key", np.float64),  # in the heap: end of its next flow [s]
        ("place", np.int32),  # in the heap, 0 outside
        ("at", np.int32),  # in the row of active bundles
    ],
    align=True,
)

FLOW = np.dtype(
    [
        ("size_bytes", np.float64),  # [byte]
        ("start_s", np.float64),  # earliest start [s]
        ("latency_s", np.float64),  # from the start to the first byte [s]
        ("begun_s", np.float64),  # first byte [s], nan before
        ("finish_s", np.float64),  # last byte [s], nan before
        ("target", np.float64),  # `served` of its bundle at which it ends [byte]
        ("key", np.float64),  # in the heap: first byte [s]
        ("place", np.int32),  # in the heap, 0 outside
        ("status", np.int32),
        ("bundle", np.int32),
        ("waits_for", np.int32),  # predecessors that have not ended
        ("child", np.int32),  # pairing heap of its bundle: first child, -1 without
        ("following", np.int32),  # next sibling, -1 for the last
        ("previous", np.int32),  # sibling before, the parent for a first child, -1 for a root
    ],
    align=True,
)

CHANGE = np.dtype(
    [
        ("time_s", np.float64),  # [s]
        ("capacity", np.float64),  # new capacity of the channel [byte/s]
        ("channel", np.int32),  # -1 for a reroute
        ("flow", np.int32),  # -1 for a capacity
        ("bundle", np.int32),  # new bundle of the flow
    ],
    align=True,
)


def records(dtype: np.dtype[np.void], size: int) -> Records:
    """Return an array of `size` records, all zero, with fields as attributes."""
    return np.zeros(size, dtype).view(np.recarray)


class Routes(NamedTuple):
    """Channels of every route in CSR form."""

    first: Longs  # int64[n_routes + 1]: entries of route r are first[r] … first[r + 1] - 1
    channel: Ints  # int32[n_entries]
    fraction: Floats  # float64[n_entries]: part of the rate that crosses the channel [1]


class Solver(NamedTuple):
    """All that the limited water-filling keeps from one event to the next."""

    channels: Records  # CHANNEL[n_channels]
    members: Records  # MEMBER[n_entries]: those of a channel together
    entries: Records  # ENTRY[n_entries]: those of a bundle together
    bundles: Records  # BUNDLE[n_bundles]
    heap: Indices  # uint32[n_channels + 1]: channels by key
    active: Indices  # uint32[n_bundles + 1]: how many, then the bundles with flows
    touched: Indices  # uint32[n_bundles]: bundles whose level this round may have changed
    tally: Longs  # int64[4]: see the names in adjust.py


class Series(NamedTuple):
    """Bytes per channel in time bins of one width, which doubles when the bins run out."""

    width_s: Floats  # float64[1] [s]
    carried: Floats  # float64[n_bins, n_channels] [byte]; no bins: no series


class Run(NamedTuple):
    """A whole run: what is asked for and what is known so far."""

    solver: Solver
    flows: Records  # FLOW[n_flows]
    order: Indices  # uint32[n_rooted]: flows without predecessors, by first byte
    first_successor: Longs  # int64[n_flows + 1]: flows that wait for each, in CSR form
    successor: Indices  # uint32[n_dependencies]
    changes: Records  # CHANGE[n_changes], by time
    starts: Indices  # uint32[n_flows + 1]: heap of flows whose predecessors have ended
    ends: Indices  # uint32[n_bundles + 1]: heap of bundles by the end of their next flow
    changed: Indices  # uint32[n_bundles]: bundles that a flow joined or left at this instant
    clock: Longs  # int64[5]: see the names in flow.py
    series: Series
