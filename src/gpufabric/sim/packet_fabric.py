"""A fabric and the flows of a traffic turned into what the packet engine is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from gpufabric.model.fabric import Fabric
from gpufabric.model.fibre import FIBRE_NS_PER_M
from gpufabric.routing.channels import Channels
from gpufabric.routing.paths import REACHED, WalkedPaths
from gpufabric.routing.walks import Flows
from gpufabric.sim.flow_problem import Paths, Predecessors
from gpufabric.sim.flow_routes import FlowRoutes
from gpufabric.sim.packet_messages import After
from gpufabric.sim.packet_problem import PacketProblem, Wires
from gpufabric.sim.profile import Profile
from gpufabric.sim.row_arrays import below, take_rows
from gpufabric.sim.switch_facts import SwitchFacts

__all__ = ["PER_PACKET", "QueuePairs", "after_of", "packet_problem", "queue_pairs_of", "wires_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

PS_PER_S = 1e12
PER_PACKET: Mapping[str, str] = MappingProxyType(
    {"spray": "turn", "adaptive": "adaptive", "flowlet": "adaptive_flowlet"}
)
"""Ways to route that choose in every switch anew, and what the packet engine calls them."""


@dataclass(frozen=True, eq=False)
class QueuePairs:
    """The queue pairs that carry flows over the network; flows inside a host have none.

    Parameters
    ----------
    flow
        int64[n_pairs]: flow of each; never falling among those that are routed.
    paths, back
        Channels from NIC to NIC, and those of the ACKs.
    size_bytes
        int64[n_pairs]: its part of the flow, a whole number [byte].
    shared
        int32[n_pairs]: number of the queue pair where flows have them together, each part then a
        message; each its own where None.
    """

    flow: Longs
    paths: Paths
    back: Paths
    size_bytes: Longs
    shared: Ints | None = None

    @property
    def n_own(self) -> int:
        """How many queue pairs there are."""
        return len(self.flow) if self.shared is None else int(self.shared.max(initial=-1)) + 1

    def together(self) -> QueuePairs:
        """Return the same with one set of queue pairs for all flows between the same two ports."""
        first, channel = self.paths.first, self.paths.channel
        ends = np.stack([self.flow, channel[first[:-1]], channel[first[1:] - 1]])
        order = np.lexsort(ends)
        is_new = np.append(True, (np.diff(ends[:, order]) != 0).any(axis=0))[: order.size]
        place = np.arange(order.size)
        rank = np.empty(order.size, np.int64)  # among the parts of its flow between these ports
        rank[order] = place - np.maximum.accumulate(np.where(is_new, place, 0))
        keys = np.stack([ends[1], ends[2], rank])
        _keys, number = np.unique(keys, axis=1, return_inverse=True)
        return replace(self, shared=number.ravel().astype(np.int32))


def wires_of(fabric: Fabric, healthy: Channels) -> Wires:
    """Return the channels of the links; a link that is down keeps its rate, no path uses it.

    Parameters
    ----------
    fabric
        The fabric; the length of its cables gives the delay, 5 ns/m.
    healthy
        Its channels without failures.
    """
    links = fabric.links
    n_channels = 2 * len(links)
    length_m = np.nan_to_num(links.length_m.astype(np.float64))
    delay_ps = np.round(np.repeat(length_m * FIBRE_NS_PER_M * 1000, 2)).astype(np.int64)
    return Wires(
        gbps=np.repeat(links.gbps.astype(np.float64), 2),
        delay_ps=delay_ps,
        tail=healthy.tail.astype(np.int32),
        head=healthy.head.astype(np.int32),
        reverse=(np.arange(n_channels) ^ 1).astype(np.int32),
    )


def queue_pairs_of(routes: FlowRoutes, now: Channels) -> QueuePairs:
    """Return the queue pairs of a traffic, each on one path, with the fabric as it is.

    Where switches choose a path for every packet, only a path's first and last channel count.
    """
    router = routes.router.after(now)
    if router.mode in PER_PACKET:
        router = replace(router, mode="ecmp")
    src_port, dst_port, number, flow = _lanes(routes)
    size_bytes = routes.traffic.size_bytes
    each = routes.endpoints.ports.shape[1]
    there = router.walk(Flows(src_port, dst_port, number, size_bytes[flow] / each), is_joined=False)
    back = router.walk(Flows(dst_port, src_port, number, np.zeros(len(flow))), is_joined=False)
    per_lane = there.n_flows // max(len(flow), 1)
    kept = np.flatnonzero((there.status == REACHED) & (back.status == REACHED))
    given, given_rows = _given(routes, now)
    pair_flow = np.concatenate([np.repeat(flow, per_lane)[kept], given])
    return QueuePairs(
        pair_flow,
        below([take_rows(_rows(there), kept), given_rows]),
        below([take_rows(_rows(back), kept), _reversed(given_rows)]),
        _parts(size_bytes, pair_flow),
    )


def packet_problem(
    pairs: QueuePairs, wires: Wires, start_s: Floats, switches: SwitchFacts, profile: Profile
) -> PacketProblem:
    """Return what the engine is asked.

    Parameters
    ----------
    pairs
        The queue pairs.
    wires
        The channels.
    start_s
        float64[n_flows]: start of each flow [s].
    switches
        What the catalogue knows of the switches.
    profile
        The settings; it says what the catalogue decides.
    """
    n_switches = int(wires.head.max(initial=-1)) + 1
    forwarding_ps = buffer_bytes = None
    if "forwarding_ns" in profile.from_catalog:
        forwarding_ps = np.round(switches.hop_latency_ns[:n_switches] * 1000).astype(np.int64)
    if "buffer.total_bytes" in profile.from_catalog:
        known = switches.buffer_bytes[:n_switches]
        buffer_bytes = np.where(known > 0, known, profile.config.buffer.total_bytes)
    path = None
    if pairs.shared is not None:
        path = np.unique(pairs.shared, return_index=True)[1][pairs.shared].astype(np.int32)
    return PacketProblem(
        wires=wires,
        paths=pairs.paths,
        back=pairs.back,
        size_bytes=pairs.size_bytes,
        start_ps=np.round(start_s[pairs.flow] * PS_PER_S).astype(np.int64),
        forwarding_ps=forwarding_ps,
        buffer_bytes=buffer_bytes,
        path=path,
        queue_pair=pairs.shared,
    )


def after_of(pairs: QueuePairs, waits: Predecessors, delay_s: Floats) -> After:
    """Return which queue pairs wait for which: all of a flow for all of those it waits for.

    Parameters
    ----------
    pairs
        The queue pairs.
    waits
        Flows that each flow waits for.
    delay_s
        float64[n_flows]: from the last byte of the flows it waits for to a flow's start [s].
    """
    n_flows = len(waits.first) - 1
    order = np.argsort(pairs.flow, kind="stable").astype(np.int32)
    count = np.bincount(pairs.flow, minlength=n_flows)
    rows_of_flow = Paths(np.concatenate([[0], np.cumsum(count)]).astype(np.int64), order)
    each = take_rows(rows_of_flow, waits.flow.astype(np.int64))
    of_flow = Paths(each.first[waits.first], each.channel)
    rows = take_rows(of_flow, pairs.flow)
    delay_ps = np.round(delay_s[pairs.flow] * PS_PER_S).astype(np.int64)
    return After(rows.first, rows.channel, delay_ps)


def _lanes(routes: FlowRoutes) -> tuple[Ints, Ints, Longs, Longs]:
    """Return for each NIC port of each routed flow: both ports, a number, the flow."""
    flows = np.flatnonzero(~routes.is_local & ~routes.is_explicit)
    ports = routes.endpoints.ports
    each = ports.shape[1]
    src, dst = ports[routes.sender[flows]], ports[routes.traffic.dst[flows]]
    used = (src >= 0) & (dst >= 0)
    number = (flows[:, None] * each + np.arange(each))[used]
    return src[used], dst[used], number, np.repeat(flows, each).reshape(-1, each)[used]


def _rows(walked: WalkedPaths) -> Paths:
    return Paths(walked.first, walked.channel)


def _given(routes: FlowRoutes, now: Channels) -> tuple[Longs, Paths]:
    """Return the flows whose paths the traffic brings, and those paths from NIC to NIC."""
    flows = np.flatnonzero(routes.is_explicit)
    if not len(flows):
        return flows, Paths(np.zeros(1, np.int64), np.empty(0, np.int32))
    assert routes.traffic.routes is not None
    rows = take_rows(Paths(routes.traffic.routes.first, routes.traffic.routes.channel), flows)
    owner = np.repeat(np.arange(len(flows)), np.diff(rows.first))
    is_link = rows.channel < now.n_link_channels
    size = np.bincount(owner[is_link], minlength=len(flows))
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    return flows, Paths(first, rows.channel[is_link])


def _reversed(rows: Paths) -> Paths:
    """Return the same links the other way round."""
    size = np.diff(rows.first)
    within = np.arange(rows.channel.size) - np.repeat(rows.first[:-1], size)
    at = np.repeat(rows.first[1:] - 1, size) - within
    return Paths(rows.first, rows.channel[at] ^ 1)


def _parts(size_bytes: Floats, pair_flow: Longs) -> Longs:
    """Divide whole bytes of flows over their queue pairs; the first ones take what is left over."""
    count = np.bincount(pair_flow, minlength=len(size_bytes))
    order = np.argsort(pair_flow, kind="stable")
    rank = np.empty(len(pair_flow), np.int64)
    starts = np.cumsum(count) - count
    rank[order] = np.arange(len(pair_flow)) - starts[pair_flow[order]]
    whole = np.round(size_bytes).astype(np.int64)[pair_flow]
    part = whole // count[pair_flow]
    return part + (rank < whole - part * count[pair_flow])
