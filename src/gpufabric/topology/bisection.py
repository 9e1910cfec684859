"""Injection and bisection bandwidth of a Fabric, exactly, from its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric

__all__ = ["Bandwidth", "bandwidth"]

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bandwidth:
    """What the hosts can send and what the network can carry between two halves of them.

    Parameters
    ----------
    injection_gbps
        All compute NIC ports that have a link, one direction [Gb/s].
    between_hosts_gbps
        Most that the first half of the hosts (in cabling order) can send to the second half, one
        direction [Gb/s].
    between_hosts_ideal_gbps
        What the smaller of these halves could send [Gb/s].
    between_rails_gbps
        Most that the NICs of the first half of the rails can send to those of the second half,
        one direction [Gb/s]; None with one rail.
    between_rails_ideal_gbps
        What the smaller of these halves could send [Gb/s].
    rails_are_apart
        True if no path joins different rails, by design.
    """

    injection_gbps: float
    between_hosts_gbps: float
    between_hosts_ideal_gbps: float
    between_rails_gbps: float | None
    between_rails_ideal_gbps: float
    rails_are_apart: bool

    @property
    def share(self) -> float:
        """Bisection over ideal, of the worse pair of halves: 1.0 is non-blocking.

        Where rails are apart by design, only halves of the hosts are compared.
        """
        ideal = self.between_hosts_ideal_gbps
        share = self.between_hosts_gbps / ideal if ideal else 1.0
        if self.between_rails_gbps is None or self.rails_are_apart:
            return share
        ideal = self.between_rails_ideal_gbps
        return min(share, self.between_rails_gbps / ideal if ideal else 1.0)

    @property
    def bisection_gbps(self) -> float:
        """Bisection bandwidth, one direction [Gb/s]: the share of half the injection."""
        return self.share * self.between_hosts_ideal_gbps


def bandwidth(fabric: Fabric, stage: int = 1) -> Bandwidth:
    """Return injection and bisection bandwidth of the hosts of `stage` and before, in Gb/s.

    Notes
    -----
    Two pairs of halves are taken: hosts against hosts, and rails against rails. The second shows
    what the first cannot: a core that is oversubscribed under rail groups is passed by no traffic
    that stays on its rail. Bisection is one direction; both together are twice as much. Injection
    is not bisection: a page that calls ``hosts x NIC rate`` "bisection" states twice the value.

    Every network is a tree of leafs, spine groups and a core, whose links are striped evenly, so
    it carries as much as the tree of the summed capacities: pair the two halves' traffic under
    each leaf, pass on what a leaf's uplinks hold, pair under each spine group, pass on what its
    uplinks hold, and pair the rest at the core. Between dragonfly groups, the smallest of the
    cuts through whole groups is taken. ``tests/topology/test_invariants.py`` holds the value
    against a maximum flow over the single links.
    """
    rows = _host_links(fabric, stage)
    links = fabric.links
    apart = fabric.family == "rail-only" or fabric.attributes.get("plane_mode") == "nics"
    if not len(rows):
        return Bandwidth(0.0, 0.0, 0.0, None, 0.0, apart)
    gbps = links.gbps[rows].astype(np.float64)
    host = fabric.port_vertex[links.port_a[rows]].astype(np.int64)
    hosts = np.unique(host)
    hosts_flow, hosts_ideal = _flow(fabric, rows, np.isin(host, hosts[: len(hosts) // 2]))
    rail = fabric.nics.rail[fabric.ports.device[links.port_a[rows]]]
    n_rails = int(rail.max()) + 1
    rails_flow, rails_ideal = None, 0.0
    if n_rails > 1:
        rails_flow, rails_ideal = _flow(fabric, rows, rail < n_rails // 2)
    return Bandwidth(float(gbps.sum()), hosts_flow, hosts_ideal, rails_flow, rails_ideal, apart)


def _flow(fabric: Fabric, host_links: Int, in_first: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the most that the first half can send to the second, and the ideal [Gb/s]."""
    gbps = fabric.links.gbps[host_links].astype(np.float64)
    ideal = float(min(gbps[in_first].sum(), gbps[~in_first].sum()))
    leaf = fabric.ports.device[fabric.links.port_b[host_links]].astype(np.int64)
    n_switches = len(fabric.switches)
    first = _sums(leaf[in_first], gbps[in_first], n_switches)
    second = _sums(leaf[~in_first], gbps[~in_first], n_switches)
    up = _uplinks(fabric)
    total, first, second = _pair(first, second, up)
    pod = fabric.switches.pod.astype(np.int64)
    network = _networks(fabric)
    key = network * (int(pod.max(initial=0)) + 2) + pod + 1
    is_leaf = fabric.switches.tier == 1
    group, first_g, second_g, up_g = _by_group(fabric, key, is_leaf, first, second)
    if fabric.family in ("dragonfly", "dragonfly+"):
        return total + _between_groups(fabric, first_g, second_g), ideal
    paired, first_g, second_g = _pair(first_g, second_g, up_g)
    return total + paired + _across(network[group], first_g, second_g), ideal


def _host_links(fabric: Fabric, stage: int) -> Int:
    links = fabric.links
    mask = (links.tier == 1) & (links.stage <= stage)
    rows = np.flatnonzero(mask)
    owner = fabric.port_vertex[links.port_a[rows]]
    compute: Int = rows[fabric.hosts.role[owner] == 0]
    return compute


def _networks(fabric: Fabric) -> Int:
    """Return a number for the separate network of each switch."""
    switches = fabric.switches
    plane = switches.plane.astype(np.int64)
    if fabric.family != "rail-only":
        return plane
    return plane * 4096 + switches.rail


def _sums(place: npt.NDArray[Any], gbps: npt.NDArray[Any], count: int) -> Float:
    """Add up rates by place; float64[count]."""
    return np.asarray(np.bincount(place, gbps, count), np.float64)


def _uplinks(fabric: Fabric) -> Float:
    """Return what each leaf can send up or across [Gb/s]."""
    links, ports = fabric.links, fabric.ports
    upper = links.tier > 1
    total = np.zeros(len(fabric.switches))
    for side in (links.port_a, links.port_b):
        device = ports.device[side[upper]]
        total += _sums(device, links.gbps[upper], len(total))
    return total


def _pair(first: Float, second: Float, up: Float) -> tuple[float, Float, Float]:
    """Pair the halves in each place; return the paired sum and what passes on upward."""
    local = np.minimum(first, second)
    return (
        float(local.sum()),
        np.minimum(first - local, up),
        np.minimum(second - local, up),
    )


def _by_group(
    fabric: Fabric, key: Int, is_leaf: npt.NDArray[np.bool_], first: Float, second: Float
) -> tuple[Int, Float, Float, Float]:
    """Sum what leafs pass on by spine group; return a member of each, sums, and uplinks."""
    groups, member, inverse = np.unique(key[is_leaf], return_index=True, return_inverse=True)
    first_g = _sums(inverse, first[is_leaf], len(groups))
    second_g = _sums(inverse, second[is_leaf], len(groups))
    links, ports = fabric.links, fabric.ports
    core = links.tier == 3
    spine = ports.device[links.port_a[core]]
    up = _sums(np.searchsorted(groups, key[spine]), links.gbps[core], len(groups))
    return np.flatnonzero(is_leaf)[member], first_g, second_g, up


def _across(network: Int, first: Float, second: Float) -> float:
    """Pair at the core what spine groups pass on, network by network."""
    total = 0.0
    for one in np.unique(network):
        mine = network == one
        total += float(min(first[mine].sum(), second[mine].sum()))
    return total


def _between_groups(fabric: Fabric, first: Float, second: Float) -> float:
    """Return the smallest cut through whole groups, after pairing inside each group."""
    local = np.minimum(first, second)
    first, second = first - local, second - local
    n_groups = len(first)
    links = fabric.links
    is_global = links.tier == 5
    pairs = n_groups * (n_groups - 1) / 2
    each = float(links.gbps[is_global].sum()) / pairs if pairs else 0.0
    order = np.argsort(second - first, kind="stable")
    best = float("inf")
    for size in range(n_groups + 1):
        inside, outside = order[:size], order[size:]
        cut = second[inside].sum() + first[outside].sum() + size * (n_groups - size) * each
        best = min(best, float(cut))
    return float(local.sum()) + best
