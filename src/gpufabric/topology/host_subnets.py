"""Prefixes of host ports: one for each plane and rail, a part of it for each leaf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric
from gpufabric.topology.address_pools import power_of_two

__all__ = ["HostPlan", "HostSubnets", "RailSubnet", "host_plan"]

Int = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class RailSubnet:
    """The prefix that holds every host port of one rail in one plane.

    Parameters
    ----------
    plane, rail
        Which it is; rail -1 is that of the managers.
    offset, size
        First address within the pool of hosts, and number of addresses, a power of two.
    n_ports
        Host ports that have an address in it.
    """

    plane: int
    rail: int
    offset: int
    size: int
    n_ports: int


@dataclass(frozen=True, eq=False)
class HostSubnets:
    """The prefix of each leaf and rail: the part of a rail's prefix that one leaf announces.

    Parameters
    ----------
    switch
        int64[n]: row of the leaf.
    plane, rail
        int64[n].
    offset
        int64[n]: first address within the pool of hosts.
    size
        int64[n]: addresses, a power of two.
    """

    switch: Int
    plane: Int
    rail: Int
    offset: Int
    size: Int

    def __len__(self) -> int:
        return len(self.switch)


@dataclass(frozen=True, eq=False)
class HostPlan:
    """Where each host port is in the pool of hosts.

    Parameters
    ----------
    rails, subnets
        Prefixes, by plane and rail, and by leaf.
    link
        int64[n]: rows of the links to hosts.
    offset
        uint32[n]: offset of the leaf's end of each, even; the NIC's port is its /31 peer.
    n_taken
        Addresses that the plan takes, rounded up to whole prefixes.
    """

    rails: tuple[RailSubnet, ...]
    subnets: HostSubnets
    link: Int
    offset: Unsigned
    n_taken: int


def host_plan(fabric: Fabric) -> HostPlan:
    """Return the prefixes and offsets of the host ports of a fabric.

    Notes
    -----
    All prefixes of a kind have one size, that of the fullest, so that a rail's prefix can be
    told from an address. The managers, which have no rail, come behind the last rail.
    """
    host_link, plane, rail, leaf = _host_links(fabric)
    if not len(host_link):
        none = np.zeros(0, np.int64)
        return HostPlan((), HostSubnets(none, none, none, none, none), none, none.astype("u4"), 0)
    start = _starts(plane, rail, leaf)
    count = np.diff(np.append(start, len(host_link)))
    rank = np.arange(len(host_link)) - np.repeat(start, count)
    block = power_of_two(2 * int(count.max()))
    plane, rail, leaf = plane[start], rail[start], leaf[start]
    rail_start = _starts(plane, rail)
    n_leafs = np.diff(np.append(rail_start, len(start)))
    size = power_of_two(int(n_leafs.max()) * block)
    rails_each = power_of_two(int(rail.max()) + 1 + int(rail.min() < 0))
    of_rail = (plane * rails_each + rail % rails_each) * size
    offset = of_rail + (np.arange(len(start)) - np.repeat(rail_start, n_leafs)) * block
    n_ports = np.add.reduceat(count, rail_start).tolist()
    rails = tuple(
        RailSubnet(int(plane[row]), int(rail[row]), int(of_rail[row]), size, ports)
        for row, ports in zip(rail_start.tolist(), n_ports, strict=True)
    )
    subnets = HostSubnets(leaf, plane, rail, offset, np.full(len(start), block, np.int64))
    host_offset = (np.repeat(offset, count) + 2 * rank).astype(np.uint32)
    return HostPlan(rails, subnets, host_link, host_offset, int(of_rail.max()) + size)


def _host_links(fabric: Fabric) -> tuple[Int, Int, Int, Int]:
    """Return row, plane, rail and leaf of each host link, sorted by the last three and by port."""
    links, ports = fabric.links, fabric.ports
    row = np.flatnonzero(links.tier == 1)
    plane = links.plane[row].astype(np.int64)
    rail = fabric.nics.rail[ports.device[links.port_a[row]]].astype(np.int64)
    leaf = ports.device[links.port_b[row]].astype(np.int64)
    order = np.lexsort((links.port_b[row], leaf, rail, plane))
    return row[order], plane[order], rail[order], leaf[order]


def _starts(*columns: Int) -> Int:
    """Return where a new combination begins in columns that are sorted together."""
    new = np.zeros(len(columns[0]), bool)
    new[0] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)
