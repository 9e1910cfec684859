"""Switches and channels as routing kernels see them; each field with type, shape and unit.

Words: an *edge* is a usable channel between two switches, numbered so that the edges that leave one
switch stand together in port order. Channels from and to hosts are no edges: they begin and end a
path. A *network* is a set of switches that edges join; planes and rails without spines are several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.structs import Ints, Longs

__all__ = ["MAX_HOPS", "UNREACHED", "Bytes", "Distances", "Ends", "Graph", "Networks", "Way"]

Bytes = NDArray[np.int8]

UNREACHED = -1

# A packet dies after so many hops: InfiniBand architecture specification, volume 1, C14-9 (directed
# routes hold 63), and the usual time to live of IP.
MAX_HOPS = 63


class Graph(NamedTuple):
    """Usable channels between switches."""

    first: Longs  # int64[n_switches + 1]: edges that leave switch s are first[s] … first[s + 1] - 1
    channel: Ints  # int32[n_edges]
    head: Ints  # int32[n_edges]: the switch it leads to
    tier: Ints  # int32[n_switches]: 1 leaf, 2 spine, 3 core


class Networks(NamedTuple):
    """Switches of each network, and the switches that paths are sought to."""

    first: Longs  # int64[n_networks + 1]
    switch: Ints  # int32[n_switches]: those of one network together, in order of row
    first_target: Longs  # int64[n_networks + 1]
    target: Ints  # int32[n_targets]: those of one network together, in order of row


class Distances(NamedTuple):
    """Steps from every switch to every target of its network."""

    row: Longs  # int64[n_switches]: where the row of a target begins in `hops`; -1: no target
    place: Ints  # int32[n_switches]: column of a switch in the rows of its network
    hops: Bytes  # int8[n_entries]: edges to cross; UNREACHED where no path is


class Way(NamedTuple):
    """The shortest paths of a fabric, as steps to go."""

    graph: Graph
    distances: Distances
    up_down: bool  # paths never climb after a step down


class Ends(NamedTuple):
    """Where flows enter and leave the switches."""

    leaf_from: Ints  # int32[n_flows]: switch of the source
    leaf_to: Ints  # int32[n_flows]: switch of the destination
    channel_in: Ints  # int32[n_flows]: channel from the source's NIC port
    channel_out: Ints  # int32[n_flows]: channel to the destination's NIC port
