"""Shortest paths to every leaf, as steps to go: what ECMP next hops are read from.

In a fabric of neighbouring tiers paths climb first and descend then, as under eBGP with one AS
number for the spines of a group (RFC 7938) and under up/down routing. In others, such as a
dragonfly, every shortest path counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.kernels.distance import fill_distances
from gpufabric.kernels.graph import UNREACHED, Distances, Networks, Way
from gpufabric.kernels.walk import ecmp_group
from gpufabric.routing.channels import Channels

__all__ = ["ShortestPaths", "measure_distances", "shortest_paths"]

Ints = npt.NDArray[np.int32]
AnyInts = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class ShortestPaths:
    """Steps from every switch to every leaf of its network.

    Parameters
    ----------
    channels
        What the paths are made of.
    networks
        Switches and leafs of each network.
    way
        The steps, and whether paths never climb after a step down.
    """

    channels: Channels
    networks: Networks
    way: Way

    def hops(self, switch: AnyInts, leaf: AnyInts) -> Ints:
        """Return int32[n]: steps from each switch to each leaf; -1 where no path is."""
        switch, leaf = np.asarray(switch), np.asarray(leaf)
        steps = np.full(len(switch), UNREACHED, np.int32)
        network = self.channels.network_of
        known = (switch >= 0) & (leaf >= 0)
        known &= network[switch] == network[leaf]
        row = self.way.distances.row[leaf[known]]
        steps[known] = self.way.distances.hops[row + self.way.distances.place[switch[known]]]
        return steps

    def next_channels(self, switch: int, leaf: int) -> Ints:
        """Return the channels by which `switch` may forward to the hosts of `leaf`, in port order.

        On Ethernet they are an ECMP group; on InfiniBand the output ports that adaptive routing may
        choose among (an AR group).
        """
        graph = self.channels.graph
        if self.hops(np.array([switch]), np.array([leaf]))[0] <= 0:
            return np.empty(0, np.int32)
        group: Ints = graph.channel[ecmp_group(self.way, switch, leaf)]
        return group

    @cached_property
    def n_bytes(self) -> int:
        """Memory of the steps [byte]."""
        return self.way.distances.hops.nbytes


def measure_distances(channels: Channels, targets: Ints, *, up_down: bool) -> tuple[Networks, Way]:
    """Return the steps from every switch to `targets` (rows of switches), by network."""
    networks = channels.networks(targets)
    n_switches = len(channels.network_of)
    place = np.empty(n_switches, np.int32)
    sizes = np.diff(networks.first)
    place[networks.switch] = np.arange(n_switches) - np.repeat(networks.first[:-1], sizes)
    width = np.repeat(sizes, np.diff(networks.first_target))
    row = np.full(n_switches, -1, np.int64)
    row[networks.target] = np.cumsum(width) - width
    hops = np.full(int(width.sum()), UNREACHED, np.int8)
    way = Way(channels.graph, Distances(row, place, hops), up_down)
    fill_distances(way, networks)
    return networks, way


def shortest_paths(channels: Channels, *, up_down: bool | None = None) -> ShortestPaths:
    """Return the steps to every leaf that serves a host.

    Parameters
    ----------
    channels
        The fabric's channels; failed ones are avoided.
    up_down
        Whether paths may not climb again after a step down; None: where tiers allow it. In a
        fabric of other links this is without effect.
    """
    valley_free = channels.is_tiered and up_down is not False
    leafs = np.unique(channels.leaf_of[channels.endpoints]).astype(np.int32)
    networks, way = measure_distances(channels, leafs, up_down=valley_free)
    return ShortestPaths(channels, networks, way)
