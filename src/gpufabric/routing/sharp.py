"""Reduction trees of SHARP: switches that add up what their children send, up to one root.

Every network, such as a plane or a rail, that has members gets trees of its own. A switch asks one
parent only. Limits of the chips on children and trees are not known here and not modelled.

Source: R. Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COMHPC 2016, section
III (trees, and in-network reduction of one message a child).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.walk import ecmp_group
from gpufabric.routing.channels import Channels
from gpufabric.routing.paths import AnyInts
from gpufabric.routing.shortest import ShortestPaths, measure_distances

__all__ = ["ReductionTree", "reduction_trees", "trees_of_groups"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReductionTree:
    """One tree.

    Parameters
    ----------
    channels
        What it is made of.
    root
        Row of the switch that has the result first.
    switches
        int32[n]: its switches, the root first, parents before children.
    parent_channel
        int32[n]: channel from each switch to its parent; -1 for the root.
    members
        int32[m]: NIC ports that take part.
    """

    channels: Channels
    root: int
    switches: Ints
    parent_channel: Ints
    members: Ints

    @property
    def up_channels(self) -> Ints:
        """Channels that carry one message each toward the root: of NIC ports, then of switches."""
        return np.concatenate(
            [self.channels.leaving[self.members], self.parent_channel[1:]]
        ).astype(np.int32)

    @property
    def down_channels(self) -> Ints:
        """Channels that carry the result back: the same links, the other way."""
        return self.up_channels ^ 1

    @property
    def depth(self) -> int:
        """Switches on the longest way from a member to the root, both included."""
        level = {self.root: 1}
        for switch, channel in zip(
            self.switches[1:].tolist(), self.parent_channel[1:].tolist(), strict=True
        ):
            level[switch] = level[int(self.channels.head[channel])] + 1
        return max(level.values())

    def children(self, switch: int) -> list[str]:
        """Return the names of the switches and hosts' ports that send to `switch`."""
        channels = self.channels
        below = self.up_channels[channels.head[self.up_channels] == switch]
        fabric = channels.fabric
        return [
            fabric.vertex_name(int(fabric.port_vertex[port]))
            for port in channels.tail_port[below].tolist()
        ]


def reduction_trees(
    shortest: ShortestPaths, members: AnyInts, n_trees: int = 1
) -> tuple[ReductionTree, ...]:
    """Return `n_trees` trees over `members` (NIC ports) in every network that has some.

    The root is a switch from which the farthest member is nearest; of equals, the one that fewest
    trees go through so far, then the lowest row. Trees avoid the links of earlier ones.

    Raises
    ------
    InputError
        If a member has no link, or no switch reaches all members of a network.
    """
    n_edges, n_switches = len(shortest.channels.graph.channel), len(shortest.channels.network_of)
    used, passed = np.zeros(n_edges, np.int64), np.zeros(n_switches, np.int64)
    return _trees(shortest, members, n_trees, used, passed)


def trees_of_groups(
    shortest: ShortestPaths, groups: Sequence[AnyInts]
) -> tuple[tuple[ReductionTree, ...], ...]:
    """Return the trees of each group of NIC ports, one in every network that has some of it.

    Trees of a group avoid the links and roots of those before it.

    Raises
    ------
    InputError
        As ``reduction_trees``.
    """
    n_edges, n_switches = len(shortest.channels.graph.channel), len(shortest.channels.network_of)
    used, passed = np.zeros(n_edges, np.int64), np.zeros(n_switches, np.int64)
    return tuple(_trees(shortest, members, 1, used, passed) for members in groups)


def _trees(
    shortest: ShortestPaths, members: AnyInts, n_trees: int, used: Longs, passed: Longs
) -> tuple[ReductionTree, ...]:
    """Return trees over `members`; the links and switches they use are counted up."""
    channels = shortest.channels
    members = np.unique(np.asarray(members, np.int32))
    unlinked = members[channels.leaf_of[members] < 0]
    if len(unlinked):
        fabric = channels.fabric
        name = fabric.vertex_name(int(fabric.port_vertex[unlinked[0]]))
        what = _("{host} has no link that is up.").format(host=name)
        raise InputError(Fault("members", what))
    network = channels.network_of[channels.leaf_of[members]]
    trees = []
    for number in np.unique(network).tolist():
        mine = members[network == number]
        for _tree in range(n_trees):
            tree = _grow(channels, _root(shortest, mine, passed), mine, used)
            passed[tree.switches] += 1
            trees.append(tree)
    return tuple(trees)


def _root(shortest: ShortestPaths, members: Ints, passed: Longs) -> int:
    """Switch from which the farthest leaf of the members is nearest."""
    channels = shortest.channels
    leafs = np.unique(channels.leaf_of[members])
    inside = np.flatnonzero(channels.network_of == channels.network_of[leafs[0]])
    farthest = np.zeros(len(inside), np.int32)
    for leaf in leafs.tolist():
        steps = shortest.hops(inside, np.full(len(inside), leaf))
        farthest = np.maximum(farthest, np.where(steps < 0, np.iinfo(np.int32).max, steps))
    best = int(farthest.min())
    if best == np.iinfo(np.int32).max:
        name = channels.fabric.switches.name[leafs[0]]
        what = _("no switch reaches all members of the network of {leaf}.").format(leaf=name)
        raise InputError(Fault("members", what))
    equal = inside[farthest == best]
    return int(equal[np.argmin(passed[equal])])


def _grow(channels: Channels, root: int, members: Ints, used: Longs) -> ReductionTree:
    """Lead every leaf to the root, or to a switch that is led there already."""
    _networks, way = measure_distances(
        channels, np.array([root], np.int32), up_down=channels.is_tiered
    )
    graph = channels.graph
    parent: dict[int, int] = {root: -1}
    order = [root]
    for leaf in np.unique(channels.leaf_of[members]).tolist():
        switch, branch = leaf, []
        while switch not in parent:
            edges = ecmp_group(way, switch, root)
            joined = [edge for edge in edges.tolist() if int(graph.head[edge]) in parent]
            edge = min(joined or edges.tolist(), key=lambda edge: (used[edge], edge))
            used[edge] += 1
            parent[switch] = int(graph.channel[edge])
            branch.append(switch)
            switch = int(graph.head[edge])
        order.extend(reversed(branch))
    return ReductionTree(
        channels,
        root,
        np.array(order, np.int32),
        np.array([parent[switch] for switch in order], np.int32),
        members,
    )
