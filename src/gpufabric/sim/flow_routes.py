"""The channels of every flow from GPU to GPU: inside hosts, over the network, across rails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels
from gpufabric.routing.host_path import HostPaths
from gpufabric.routing.modes import Router
from gpufabric.routing.paths import REACHED, WalkedPaths
from gpufabric.routing.walks import Flows
from gpufabric.sim.endpoints import Endpoints
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.row_arrays import below, row_sums, take_rows
from gpufabric.sim.traffic import Traffic
from gpufabric.topology.decision import Decision

__all__ = ["FlowRoutes", "Routed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_FAULTS = 20
MOST_ENTRIES = 400_000_000
"""Channels of all flows together that are held at once: some 20 GB as they are looked through."""
SAMPLE = 256


@dataclass(frozen=True, eq=False)
class Routed:
    """Paths of all flows in one state of the fabric.

    Parameters
    ----------
    paths
        One row a flow; empty where it has no path, or needs none.
    has_path
        bool[n_flows]: False where the destination cannot be reached.
    hops
        int32[n_flows]: switches on the path.
    decisions
        What routing did otherwise than asked.
    """

    paths: Paths
    has_path: Bools
    hops: Ints
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, eq=False)
class FlowRoutes:
    """Finds the paths of one traffic, whatever the fabric's health.

    Parameters
    ----------
    traffic
        The flows.
    endpoints
        The GPUs.
    inside
        Paths inside hosts, and their channels after those of the healthy fabric.
    router
        Finds paths between NIC ports.
    cross_rail
        ``fabric``, ``pxn`` or ``two-step``.
    """

    traffic: Traffic
    endpoints: Endpoints
    inside: HostPaths
    router: Router
    cross_rail: str

    @cached_property
    def is_explicit(self) -> Bools:
        """bool[n_flows]: their paths were given."""
        if self.traffic.routes is None:
            return np.zeros(self.traffic.n_flows, np.bool_)
        given: Bools = np.diff(self.traffic.routes.first) > 0
        return given

    @cached_property
    def is_local(self) -> Bools:
        """bool[n_flows]: they stay inside a host."""
        block = self.endpoints.block
        inside: Bools = np.asarray(block[self.traffic.src] == block[self.traffic.dst])
        return inside & ~self.is_explicit

    @cached_property
    def sender(self) -> Ints:
        """int32[n_flows]: the GPU whose NIC a flow leaves by: another of its host if relayed."""
        src, dst = self.traffic.src, self.traffic.dst
        if self.cross_rail == "fabric" or self.inside.links.nvlink_gbps is None:
            return src
        stays = self.is_local | self.is_explicit
        return np.where(stays, src, self.endpoints.relays(src, dst)).astype(np.int32)

    @cached_property
    def is_relayed(self) -> Bools:
        """bool[n_flows]: they go to another GPU of their host first."""
        return np.asarray(self.sender != self.traffic.src)

    def find(self, channels: Channels) -> Routed:
        """Return the paths of all flows in the fabric as it is.

        Parameters
        ----------
        channels
            Of the fabric in one state of health, with those inside hosts.
        """
        router = self.router.after(channels)
        self._check_size(router)
        free = np.flatnonzero(~self.is_explicit)
        given = np.flatnonzero(self.is_explicit)
        steps = self.cross_rail == "two-step"
        walked = self._walk(router, (self.sender if steps else self.traffic.src)[free], free)
        parts = below([_paths_of(walked), self._given(channels, given)])
        place = np.empty(self.traffic.n_flows, np.int64)
        place[np.concatenate([free, given])] = np.arange(self.traffic.n_flows)
        paths = take_rows(parts, place)
        has_path = np.ones(self.traffic.n_flows, np.bool_)
        has_path[free] = walked.status == REACHED
        decisions = router.tables.decisions if router.has_tables else ()
        return Routed(paths, has_path, _switches_on(channels, paths), decisions)

    def relays(self) -> Paths:
        """Return the rows of the relayed flows inside the source's host, in order of flow."""
        relayed = np.flatnonzero(self.is_relayed)
        number = self.endpoints.number
        walked = self.inside.walk(
            _no_route, number[self.traffic.src[relayed]], number[self.sender[relayed]]
        )
        return _paths_of(walked)

    def _check_size(self, router: Router) -> None:
        """Raise where flows over all shortest paths would fill the memory; a sample tells."""
        flows = np.flatnonzero(~self.is_explicit)
        if router.mode not in {"spray", "adaptive"} or len(flows) <= SAMPLE:
            return
        some = flows[np.linspace(0, len(flows) - 1, SAMPLE).astype(np.int64)]
        found = self._walk(router, self.sender[some], some)
        count = found.channel.size * (len(flows) / SAMPLE)
        if count > MOST_ENTRIES:
            what = _("{flows} flows over all shortest paths cross {count} channels.").format(
                flows=f"{len(flows):,}", count=f"{count:,.0f}"
            )
            expected = _("at most {most}").format(most=f"{MOST_ENTRIES:,}")
            remedy = _("Take --routing ecmp or flowlet, or fewer GPUs (--gpus).")
            raise InputError(Fault("--routing", what, expected, remedy))

    def _walk(self, router: Router, src: Ints, flows: Longs) -> WalkedPaths:
        dst = self.traffic.dst[flows]
        number = self.endpoints.number
        each = self.endpoints.ports.shape[1]
        far = self.endpoints.block[src] != self.endpoints.block[dst]
        # A flow has the same number, and so the same queue pairs, in every state of the fabric.
        used = far[:, None] & (self.endpoints.ports[self.sender[flows]] >= 0)
        used &= self.endpoints.ports[dst] >= 0
        names = (flows[:, None] * each + np.arange(each))[used]
        demand = np.repeat(self.traffic.size_bytes[flows] / each, each).reshape(-1, each)[used]

        def route(src_port: Ints, dst_port: Ints) -> WalkedPaths:
            return router.walk(Flows(src_port, dst_port, names, demand))

        return self.inside.walk(route, number[src], number[dst], pxn=self.cross_rail == "pxn")

    def _given(self, channels: Channels, flows: Longs) -> Paths:
        """Return the rows that the traffic itself brings, checked."""
        routes = self.traffic.routes
        if routes is None:
            empty = np.empty(0, np.int32)
            return Paths(np.zeros(1, np.int64), empty, np.empty(0), np.empty(0))
        rows = take_rows(Paths(routes.first, routes.channel), flows)
        _check_joints(channels, rows, flows)
        delay_s = row_sums(rows.first, channels.latency_ns[rows.channel] * 1e-9)
        return Paths(rows.first, rows.channel, np.ones(rows.channel.size), delay_s)


def _no_route(src_port: Ints, _dst_port: Ints) -> WalkedPaths:
    """Give no path: for flows that stay inside hosts."""
    assert not len(src_port)
    nothing = np.empty(0, np.int32)
    return WalkedPaths(np.zeros(1, np.int64), nothing, None, np.empty(0), np.empty(0, np.int8))


def _paths_of(walked: WalkedPaths) -> Paths:
    """Return the paths; delays are whole picoseconds, so that equal ones are equal bit by bit."""
    fraction = walked.fraction
    if fraction is None:
        fraction = np.ones(walked.channel.size)
    return Paths(walked.first, walked.channel, fraction, np.round(walked.latency_s, 12))


def _check_joints(channels: Channels, rows: Paths, flows: Longs) -> None:
    """Raise where a link of a given path does not begin where the one before it ends."""
    n_links = channels.n_link_channels
    owner = channels.fabric.port_vertex
    at = np.arange(1, rows.channel.size)
    before, after = rows.channel[at - 1], rows.channel[at]
    joined = ~np.isin(at, rows.first) & (before < n_links) & (after < n_links)
    at, before, after = at[joined], before[joined], after[joined]
    broken = owner[channels.head_port[before]] != owner[channels.tail_port[after]]
    faults = []
    for place in np.flatnonzero(broken)[:MOST_FAULTS]:
        row = int(np.searchsorted(rows.first, at[place], side="right")) - 1
        what = _("{after} does not begin where {before} ends.").format(
            after=channels.name(int(after[place])), before=channels.name(int(before[place]))
        )
        faults.append(Fault(_("row {row}, path").format(row=int(flows[row]) + 1), what))
    if faults:
        raise InputError(faults)


def _switches_on(channels: Channels, paths: Paths) -> Ints:
    """Return the switches that each row passes: its steps that leave one."""
    inside = len(channels.capacity_gbps) - channels.n_link_channels
    tail = np.concatenate([channels.tail, np.full(inside, -1)])
    assert paths.fraction is not None
    steps = row_sums(paths.first, np.where(tail[paths.channel] >= 0, paths.fraction, 0.0))
    return np.round(steps).astype(np.int32)
