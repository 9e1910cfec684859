"""What flows would get at best: each alone in the fabric, or all at the rate of their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.routing.channels import Channels
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.flow_routes import FlowRoutes
from gpufabric.sim.traffic import Traffic
from gpufabric.sim.work_bound import work_bound_s

__all__ = ["Ideal", "ideal_in_fabric", "ideal_on_links"]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


class _Work(NamedTuple):
    """Bytes of flows that one kind of server must move; a server is a NIC, or a GPU's NVLink."""

    flow: Longs
    server: Longs
    part: Floats
    rate_gbps: Floats


@dataclass(frozen=True, eq=False)
class Ideal:
    """What flows would get at best.

    Parameters
    ----------
    flow_s
        float64[n_flows]: completion time of each flow alone [s].
    """

    flow_s: Floats
    traffic: Traffic
    work: Sequence[_Work]

    def bound_s(self, counted: Bools) -> float:
        """Return the time before which the counted flows cannot all have ended [s].

        The latest of: a flow alone; and, for each server at an end of flows, all its bytes one
        after the other at its full rate. Waiting for other flows is not reckoned with.
        """
        traffic = self.traffic
        if not counted.any():
            return 0.0
        bounds = [float((traffic.start_s + self.flow_s)[counted].max())]
        for work in self.work:
            mine = counted[work.flow]
            flow = work.flow[mine]
            bounds.append(
                work_bound_s(
                    work.server[mine],
                    traffic.size_bytes[flow] * work.part[mine],
                    traffic.start_s[flow],
                    work.rate_gbps[mine],
                )
            )
        return max(bounds)


def _alone_s(traffic: Traffic, rate_gbps: Floats, latency_s: Floats) -> Floats:
    if traffic.cap_gbps is not None:
        rate_gbps = np.minimum(rate_gbps, traffic.cap_gbps)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone_s = traffic.size_bytes / (rate_gbps * 1.25e8)
    return latency_s + np.where(traffic.size_bytes == 0, 0.0, alone_s)


def ideal_on_links(traffic: Traffic, paths: Paths, capacity_gbps: Floats) -> Ideal:
    """Return the ideal of flows whose paths are given: every channel on them is a server."""
    assert paths.latency_s is not None
    flow = np.repeat(np.arange(paths.n_paths), np.diff(paths.first))
    rate_gbps = capacity_gbps[paths.channel]
    work = _Work(flow, paths.channel.astype(np.int64), np.ones(len(flow)), rate_gbps)
    alone_s = _alone_s(traffic, _least(paths, rate_gbps), paths.latency_s)
    return Ideal(alone_s, traffic, [work])


def _least(paths: Paths, rate_gbps: Floats) -> Floats:
    least = np.full(paths.n_paths, np.inf)
    np.minimum.at(least, np.repeat(np.arange(paths.n_paths), np.diff(paths.first)), rate_gbps)
    return least


def ideal_in_fabric(routes: FlowRoutes, healthy: Channels, paths: Paths) -> Ideal:
    """Return the ideal of flows between GPUs: only NICs and what lies inside hosts limit them.

    The NICs are those of the flow's own ends, also where another GPU of the host sends for it
    (PXN): what is lost because rails are separate then shows against the ideal.

    Parameters
    ----------
    routes
        The flows.
    healthy
        The fabric without failures, with the channels inside hosts.
    paths
        The paths when the run begins, for their delays and their channels inside hosts.
    """
    traffic, ports = routes.traffic, routes.endpoints.ports
    assert paths.latency_s is not None
    rate_gbps = np.full(traffic.n_flows, np.inf)
    work = []
    nic = ports[:, 0].astype(np.int64)
    outside = np.flatnonzero(~routes.is_local)
    leaving = np.where(ports >= 0, healthy.leaving[ports], -1)
    together = np.where(leaving >= 0, healthy.capacity_gbps[leaving], 0.0).sum(axis=1)
    for ends in (traffic.src, traffic.dst):
        mine = ends[outside]
        rate_gbps[outside] = np.minimum(rate_gbps[outside], together[mine])
        work.append(_Work(outside, nic[mine], np.ones(len(outside)), together[mine]))
    work.append(_inside(healthy, paths))
    np.minimum.at(rate_gbps, work[-1].flow, work[-1].rate_gbps / work[-1].part)
    return Ideal(_alone_s(traffic, rate_gbps, paths.latency_s), traffic, work)


def _inside(healthy: Channels, paths: Paths) -> _Work:
    assert paths.fraction is not None
    at = np.flatnonzero(paths.channel >= healthy.n_link_channels)
    flow = np.repeat(np.arange(paths.n_paths), np.diff(paths.first))[at]
    channel = paths.channel[at].astype(np.int64)
    return _Work(flow, channel, paths.fraction[at], healthy.capacity_gbps[channel])
