"""Arrays of per-packet routing; each with type, shape and unit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpufabric.kernels.structs import Ints, Longs, Records

__all__ = ["FLOWLET_SLOT", "Hops"]

FLOWLET_SLOT = np.dtype(
    [
        ("last_ps", np.int64),  # last packet of the flow [ps]
        ("flow", np.int32),  # 2 * flow, 1 more on its way back; -1: empty
        ("channel", np.int32),  # that the flow keeps to
    ],
    align=True,
)


class Hops(NamedTuple):
    """Tables of next hops, one after the other, and what switches remember."""

    group: Ints  # int32[n_tables * n_switches * n_columns]: -1: no way
    column: Ints  # int32[n_switches]: of `group`, for destinations behind the switch
    first: Longs  # int64[n_groups + 1]
    channel: Ints  # int32[n_entries]: of group g: first[g] … first[g + 1]
    seed: Longs  # int64[n_switches]: of the switch's hash, 32 bits
    turn: Ints  # int32[n_groups]: whose turn it is
    table: Longs  # int64[1]: first entry in `group` of the table that holds now
    flowlets: Records  # FLOWLET_SLOT[n_switches * n_flowlets]
