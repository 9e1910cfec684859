"""The channels of a Fabric: two for each link, with rate, delay and the switches they join.

Channel ``2 * link`` goes from the link's lower end to its upper end, ``2 * link + 1`` back.
Failures make a new object; numbers never change. Channels inside hosts (``host_path``) come last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gpufabric.core.text import _
from gpufabric.kernels.graph import Graph, Networks
from gpufabric.model.fabric import Fabric
from gpufabric.model.fibre import FIBRE_NS_PER_M
from gpufabric.topology.decision import Decision

__all__ = ["ChannelBlock", "Channels", "channels_of"]

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ChannelBlock:
    """Channels inside hosts of one kind, one after the other.

    Parameters
    ----------
    what
        What they join, such as ``GPU to NVLink``.
    first
        Number of the first one.
    owners
        Name of the owner of each, such as ``host-01 GPU 3``.
    """

    what: str
    first: int
    owners: npt.NDArray[np.str_]

    @property
    def end(self) -> int:
        """Number after the last one."""
        return self.first + len(self.owners)


@dataclass(frozen=True, eq=False)
class Channels:
    """Channels of one fabric, at one stage and in one state of health.

    Parameters
    ----------
    fabric
        The fabric; managers are hosts here.
    link_up
        bool[n_links]: built, and not failed. A link that fails in one direction is down in both:
        link training and BFD see to that.
    capacity_gbps
        float64[n_channels]: rate; 0 where down [Gb/s].
    latency_ns
        float64[n_channels]: cable delay, and the delay of the switch that the channel leaves [ns].
    decisions
        What was assumed about delays.
    blocks
        Channels inside hosts.
    """

    fabric: Fabric
    link_up: Bools
    capacity_gbps: Floats
    latency_ns: Floats
    decisions: tuple[Decision, ...] = ()
    blocks: tuple[ChannelBlock, ...] = ()

    @property
    def n_link_channels(self) -> int:
        """Channels that are directions of links."""
        return 2 * len(self.fabric.links)

    @cached_property
    def tail_port(self) -> Ints:
        """int32[n_link_channels]: port that each channel leaves, row in ``ports``."""
        links = self.fabric.links
        return np.column_stack([links.port_a, links.port_b]).ravel()

    @cached_property
    def head_port(self) -> Ints:
        """int32[n_link_channels]: port that each channel leads to."""
        links = self.fabric.links
        return np.column_stack([links.port_b, links.port_a]).ravel()

    @cached_property
    def switch_of_port(self) -> Ints:
        """int32[n_ports]: switch that owns each port; -1 for ports of NICs."""
        ports = self.fabric.ports
        return np.where(ports.is_switch == 1, ports.device, -1).astype(np.int32)

    @cached_property
    def tail(self) -> Ints:
        """int32[n_link_channels]: switch that each channel leaves; -1: a host."""
        return self.switch_of_port[self.tail_port]

    @cached_property
    def head(self) -> Ints:
        """int32[n_link_channels]: switch that each channel leads to; -1: a host."""
        return self.switch_of_port[self.head_port]

    @cached_property
    def leaving(self) -> Ints:
        """int32[n_ports]: channel that leaves each port; -1 where no link is up."""
        leaving = np.full(len(self.fabric.ports), -1, np.int32)
        up = np.flatnonzero(np.repeat(self.link_up, 2))
        leaving[self.tail_port[up]] = up
        return leaving

    @cached_property
    def leaf_of(self) -> Ints:
        """int32[n_ports]: switch at the other end of each NIC port's link; -1 without."""
        leaf = np.full(len(self.fabric.ports), -1, np.int32)
        mine = self.fabric.ports.is_switch == 0
        linked = np.flatnonzero(mine & (self.leaving >= 0))
        leaf[linked] = self.head[self.leaving[linked]]
        return leaf

    @cached_property
    def endpoints(self) -> Ints:
        """int32[n]: NIC ports that a switch serves, by switch, then in order of its ports."""
        linked = np.flatnonzero(self.leaf_of >= 0)
        return linked[np.argsort(self.head_port[self.leaving[linked]], kind="stable")].astype(
            np.int32
        )

    @cached_property
    def graph(self) -> Graph:
        """The usable channels between switches, by switch, then in order of its ports."""
        n_switches = len(self.fabric.switches)
        usable = np.repeat(self.link_up, 2) & (self.tail >= 0) & (self.head >= 0)
        usable &= self.tail != self.head
        channel = np.flatnonzero(usable)
        channel = channel[np.argsort(self.tail_port[channel], kind="stable")]
        first = np.zeros(n_switches + 1, np.int64)
        np.cumsum(np.bincount(self.tail[channel], minlength=n_switches), out=first[1:])
        return Graph(
            first,
            channel.astype(np.int32),
            np.ascontiguousarray(self.head[channel]),
            self.fabric.switches.tier.astype(np.int32),
        )

    @cached_property
    def edge_of(self) -> Ints:
        """int32[n_link_channels]: place of each channel in ``graph``; -1 outside."""
        edge = np.full(self.n_link_channels, -1, np.int32)
        edge[self.graph.channel] = np.arange(len(self.graph.channel))
        return edge

    @cached_property
    def bunch_of_edge(self) -> Longs:
        """int64[n_edges]: number of the pair of switches that each edge leads from and to."""
        graph = self.graph
        tail = np.repeat(np.arange(len(graph.tier)), np.diff(graph.first))
        pair = tail * len(graph.tier) + graph.head
        return np.asarray(np.unique(pair, return_inverse=True)[1], np.int64)

    @cached_property
    def lanes(self) -> Ints:
        """int32[n_edges]: parallel edges between the same two switches, itself included."""
        lanes: Ints = np.bincount(self.bunch_of_edge)[self.bunch_of_edge].astype(np.int32)
        return lanes

    @cached_property
    def bunch_gbps(self) -> Floats:
        """float64[n_edges]: rate of all edges between the same two switches [Gb/s]."""
        rate = self.capacity_gbps[self.graph.channel]
        total = np.bincount(self.bunch_of_edge, rate).astype(np.float64)
        return np.asarray(total[self.bunch_of_edge], np.float64)

    @cached_property
    def network_of(self) -> Ints:
        """int32[n_switches]: number of the network of each switch, by its first switch."""
        graph = self.graph
        size = len(graph.tier)
        tail = np.repeat(np.arange(size), np.diff(graph.first))
        matrix = coo_array((np.ones(len(tail), np.int8), (tail, graph.head)), shape=(size, size))
        label = connected_components(matrix, directed=False)[1]
        _labels, first, inverse = np.unique(label, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int32)
        rank[np.argsort(first)] = np.arange(len(first))
        return np.asarray(rank[inverse], np.int32)

    def networks(self, targets: Ints) -> Networks:
        """Return the networks with those of `targets` (rows of switches) that lie in each."""
        network = self.network_of
        n_networks = int(network.max(initial=-1)) + 1
        targets = np.unique(targets).astype(np.int32)

        def grouped(rows: Ints) -> tuple[Longs, Ints]:
            first = np.zeros(n_networks + 1, np.int64)
            np.cumsum(np.bincount(network[rows], minlength=n_networks), out=first[1:])
            return first, rows[np.argsort(network[rows], kind="stable")]

        every = np.arange(len(network), dtype=np.int32)
        return Networks(*grouped(every), *grouped(targets))

    @cached_property
    def is_tiered(self) -> bool:
        """Whether every usable channel joins neighbouring tiers, and all hosts are on leafs."""
        graph = self.graph
        tail = np.repeat(np.arange(len(graph.tier)), np.diff(graph.first))
        steps = np.abs(graph.tier[tail] - graph.tier[graph.head])
        leafs = self.leaf_of[self.endpoints]
        return bool((steps == 1).all() and (graph.tier[leafs] == 1).all())

    # Health ---------------------------------------------------------------------------------

    def with_failures(
        self,
        *,
        links: Iterable[int] = (),
        switches: Iterable[int] = (),
        channels: Iterable[int] = (),
    ) -> Channels:
        """Return the channels with some links, all links of some switches, or channels down."""
        up = self.link_up.copy()
        up[np.fromiter(links, np.int64)] = False
        up[np.fromiter(channels, np.int64) // 2] = False
        dead = np.zeros(len(self.fabric.switches) + 1, np.bool_)  # the last stands for hosts
        dead[np.fromiter(switches, np.int64)] = True
        up &= ~(dead[self.tail[::2]] | dead[self.head[::2]])
        return self._with_links(up)

    def with_capacity(self, links: Iterable[int], gbps: float) -> Channels:
        """Return the channels with both directions of some links at another rate [Gb/s]."""
        rows = np.fromiter(links, np.int64)
        if gbps <= 0:
            return self.with_failures(links=rows)
        capacity = self.capacity_gbps.copy()
        chosen = np.concatenate([2 * rows, 2 * rows + 1])
        capacity[chosen] = np.where(np.repeat(self.link_up, 2)[chosen], gbps, 0.0)
        return replace(self, capacity_gbps=capacity)

    def _with_links(self, up: Bools) -> Channels:
        capacity = self.capacity_gbps.copy()
        capacity[: self.n_link_channels][np.repeat(~up, 2)] = 0.0
        return replace(self, link_up=up, capacity_gbps=capacity)

    # Names ----------------------------------------------------------------------------------

    def name(self, channel: int) -> str:
        """Return a channel as a person reads it, such as ``leaf-01[33] > spine-02[1]``."""
        if channel >= self.n_link_channels:
            block = next(b for b in self.blocks if b.first <= channel < b.end)
            return f"{block.owners[channel - block.first]}: {block.what}"
        ends = (int(self.tail_port[channel]), int(self.head_port[channel]))
        fabric = self.fabric
        names = [
            f"{fabric.vertex_name(int(fabric.port_vertex[end]))}[{fabric.port_name(end)}]"
            for end in ends
        ]
        return " > ".join(names)


def channels_of(
    fabric: Fabric,
    *,
    stage: int = 0,
    hop_latency_ns: Floats | None = None,
    cable_ns_per_m: float = FIBRE_NS_PER_M,
) -> Channels:
    """Return the channels of a fabric with all links of `stage` and before up.

    Parameters
    ----------
    fabric
        The fabric.
    stage
        0 for what is built today, 1 for everything.
    hop_latency_ns
        float64[n_switches]: delay from a switch's input to its output [ns]; ``latency`` knows the
        catalogue's. Without it, switches are said to be without delay.
    cable_ns_per_m
        Delay of a cable [ns/m].
    """
    links = fabric.links
    up = links.stage <= stage
    length_m = links.length_m.astype(np.float64)
    decisions = []
    unknown = int(np.isnan(length_m[up]).sum())
    if unknown:
        decisions.append(_no_delay(_("{n} cables").format(n=unknown), _("their length")))
    latency_ns = np.repeat(np.nan_to_num(length_m) * cable_ns_per_m, 2)
    if hop_latency_ns is None:
        decisions.append(_no_delay(_("switches"), _("the delay of a hop")))
        hop_latency_ns = np.zeros(len(fabric.switches))
    capacity = np.repeat(np.where(up, links.gbps, 0.0).astype(np.float64), 2)
    bare = Channels(fabric, up, capacity, latency_ns, tuple(decisions))
    from_switch = bare.tail >= 0
    latency_ns[from_switch] += hop_latency_ns[bare.tail[from_switch]]
    return bare


def _no_delay(what: str, unknown: str) -> Decision:
    return Decision(
        "latency",
        _("without the delay of {what}").format(what=what),
        _("{unknown} is unknown; finish times are too early by that.").format(unknown=unknown),
        is_warning=True,
    )
