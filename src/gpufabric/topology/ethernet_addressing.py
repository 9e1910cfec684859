"""Addresses and AS numbers of a RoCE fabric: loopbacks, link and host addresses, eBGP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.topology.address_pools import (
    LAST_PRIVATE_ASN,
    AddressPools,
    PoolUse,
    check_fit,
    ipv4_text,
    ipv6_text,
    peer_31,
)
from gpufabric.topology.decision import Decision
from gpufabric.topology.host_subnets import HostPlan, host_plan

__all__ = ["EthernetAddressing", "address_ethernet"]

Int = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class EthernetAddressing:
    """The address plan of a RoCE fabric, as offsets within the pools.

    Parameters
    ----------
    pools
        Where the addresses come from.
    use
        How full each pool is.
    loopback
        uint32[n_switches]: offset of each switch's loopback.
    asn
        int64[n_switches]: AS number of each switch.
    link
        int64[n]: rows of the links between switches.
    link_offset
        uint32[n]: offset of the upper end of each, even; the lower end is its /31 peer. None
        where the links are unnumbered.
    hosts
        Prefixes and offsets of the host ports.
    """

    pools: AddressPools
    use: tuple[PoolUse, ...]
    loopback: Unsigned
    asn: Int
    link: Int
    link_offset: Unsigned | None
    hosts: HostPlan

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The scheme in words."""
        return _scheme(is_numbered=self.link_offset is not None)

    @property
    def loopback_ipv4(self) -> Unsigned:
        """uint32[n_switches]: IPv4 loopback of each switch."""
        return _at(self.pools.loopbacks, self.loopback)

    @property
    def upper_ipv4(self) -> Unsigned:
        """uint32[n]: IPv4 address of each switch link's upper end; empty where unnumbered."""
        if self.link_offset is None:
            return np.zeros(0, np.uint32)
        return _at(self.pools.links, self.link_offset)

    @property
    def lower_ipv4(self) -> Unsigned:
        """uint32[n]: IPv4 address of each switch link's lower end; empty where unnumbered."""
        return peer_31(self.upper_ipv4)

    @property
    def gateway_ipv4(self) -> Unsigned:
        """uint32[n]: IPv4 address of the leaf's end of each host link."""
        return _at(self.pools.hosts, self.hosts.offset)

    @property
    def nic_ipv4(self) -> Unsigned:
        """uint32[n]: IPv4 address of the NIC's end of each host link."""
        return peer_31(self.gateway_ipv4)

    def switch_rows(self, fabric: Fabric) -> Iterator[dict[str, Any]]:
        """Yield the name, AS number and loopbacks of each switch."""
        yield from _rows(
            switch=fabric.switches.name.tolist(),
            asn=self.asn.tolist(),
            ipv4=[f"{text}/32" for text in ipv4_text(self.loopback_ipv4)],
            ipv6=[f"{text}/128" for text in ipv6_text(self.pools.ipv6_loopbacks, self.loopback)],
        )

    def link_rows(self, fabric: Fabric) -> Iterator[dict[str, Any]]:
        """Yield both ends of each link between switches, with addresses where it has them."""
        lower, upper = fabric.links.port_a[self.link], fabric.links.port_b[self.link]
        ends = {
            "link": self.link.tolist(),
            **_ends(fabric, "lower", lower),
            **_ends(fabric, "upper", upper),
        }
        if self.link_offset is not None:
            part = self.pools.ipv6_links
            low = peer_31(self.link_offset)
            ends["lower_ipv4"] = [f"{text}/31" for text in ipv4_text(self.lower_ipv4)]
            ends["upper_ipv4"] = [f"{text}/31" for text in ipv4_text(self.upper_ipv4)]
            ends["lower_ipv6"] = [f"{text}/127" for text in ipv6_text(part, low)]
            ends["upper_ipv6"] = [f"{text}/127" for text in ipv6_text(part, self.link_offset)]
        yield from _rows(**ends)

    def host_rows(self, fabric: Fabric) -> Iterator[dict[str, Any]]:
        """Yield the addresses of each host port and the gateway at its leaf."""
        links = fabric.links
        port, leaf = links.port_a[self.hosts.link], links.port_b[self.hosts.link]
        nic = fabric.ports.device[port]
        part, low = self.pools.ipv6_hosts, peer_31(self.hosts.offset)
        yield from _rows(
            host=fabric.hosts.name[fabric.nics.host[nic]].tolist(),
            nic=fabric.nics["index"][nic].tolist(),
            port=fabric.ports.port[port].tolist(),
            plane=links.plane[self.hosts.link].tolist(),
            rail=fabric.nics.rail[nic].tolist(),
            leaf=fabric.switches.name[fabric.ports.device[leaf]].tolist(),
            ipv4=[f"{text}/31" for text in ipv4_text(self.nic_ipv4)],
            gateway_ipv4=ipv4_text(self.gateway_ipv4),
            ipv6=[f"{text}/127" for text in ipv6_text(part, low)],
            gateway_ipv6=ipv6_text(part, self.hosts.offset),
        )

    def subnet_rows(self, fabric: Fabric) -> Iterator[dict[str, Any]]:
        """Yield the prefix of each leaf and rail."""
        subnets = self.hosts.subnets
        yield from _rows(
            leaf=fabric.switches.name[subnets.switch].tolist(),
            plane=subnets.plane.tolist(),
            rail=subnets.rail.tolist(),
            ipv4=self._prefixes(subnets.offset, subnets.size),
            ipv6=self._prefixes_ipv6(subnets.offset, subnets.size),
        )

    def rail_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the prefix of each plane and rail."""
        offset = np.array([subnet.offset for subnet in self.hosts.rails], np.int64)
        size = np.array([subnet.size for subnet in self.hosts.rails], np.int64)
        yield from _rows(
            plane=[subnet.plane for subnet in self.hosts.rails],
            rail=[subnet.rail for subnet in self.hosts.rails],
            ipv4=self._prefixes(offset, size),
            ipv6=self._prefixes_ipv6(offset, size),
            ports=[subnet.n_ports for subnet in self.hosts.rails],
            capacity=[subnet.size // 2 for subnet in self.hosts.rails],
        )

    def _prefixes(self, offset: Int, size: Int) -> list[str]:
        texts = ipv4_text(_at(self.pools.hosts, offset))
        return [
            f"{text}/{33 - n.bit_length()}" for text, n in zip(texts, size.tolist(), strict=True)
        ]

    def _prefixes_ipv6(self, offset: Int, size: Int) -> list[str]:
        texts = ipv6_text(self.pools.ipv6_hosts, offset)
        return [
            f"{text}/{129 - n.bit_length()}" for text, n in zip(texts, size.tolist(), strict=True)
        ]

    def to_json(self, fabric: Fabric) -> dict[str, Any]:
        """Return pools, switches and host prefixes; single links and ports are left out."""
        return {
            "kind": "ethernet",
            "link_addresses": "unnumbered" if self.link_offset is None else "numbered",
            "pools": [row.to_json() for row in self.use],
            "rails": list(self.rail_rows()),
            "subnets": list(self.subnet_rows(fabric)),
            "switches": list(self.switch_rows(fabric)),
        }


def address_ethernet(
    fabric: Fabric, pools: AddressPools, *, is_numbered: bool
) -> EthernetAddressing:
    """Return the address plan of a RoCE fabric.

    Raises
    ------
    InputError
        If a pool is too small.

    Notes
    -----
    * AS numbers: one for each leaf, one for each group of spines, one for all cores of a network
      (eBGP Clos, RFC 7938 section 5.2), from the private four-byte numbers (RFC 6996).
    * Links: a /31 (RFC 3021) and a /127 (RFC 6164) each, parallel ones too; the end nearer to
      the host has the odd address.
    * Hosts: each plane and rail has one prefix, each leaf a part of it, each host port a /31 of
      that. All hosts of the target size count, so growth changes no address.
    """
    links = fabric.links
    link = np.flatnonzero(links.tier > 1)
    asn, asn_use = _as_numbers(fabric, pools)
    n_switches = len(fabric.switches)
    loopback = np.arange(1, n_switches + 1, dtype=np.uint32)
    hosts = host_plan(fabric)
    use = (
        _prefix_use("loopbacks", _("switch loopbacks"), pools.loopbacks, n_switches + 1),
        _prefix_use(
            "links", _("links between switches"), pools.links, 2 * len(link) * int(is_numbered)
        ),
        _prefix_use("hosts", _("links between hosts and leafs"), pools.hosts, hosts.n_taken),
        *asn_use,
    )
    check_fit(use, _remedies())
    return EthernetAddressing(
        pools=pools,
        use=use,
        loopback=loopback,
        asn=asn,
        link=link,
        link_offset=np.arange(len(link), dtype=np.uint32) * np.uint32(2) if is_numbered else None,
        hosts=hosts,
    )


def _scheme(*, is_numbered: bool) -> tuple[Decision, ...]:
    return (
        Decision(
            "asn",
            _("eBGP"),
            _("One AS number a leaf, one a group of spines, one for the cores of a network."),
            "RFC 7938, section 5.2; RFC 6996",
        ),
        Decision(
            "addresses",
            "/31, /127" if is_numbered else _("unnumbered"),
            _(
                "Every host port is a routed link of its own, within one prefix for each plane and "
                "rail and one for each leaf in it."
            ),
            "RFC 3021; RFC 6164" if is_numbered else "RFC 8950",
        ),
    )


def _remedies() -> dict[str, str]:
    larger = _("Give a shorter prefix for this pool.")
    numbers = _("Start the AS numbers lower, or further apart.")
    return {
        "loopbacks": larger,
        "links": _("Give a shorter prefix for this pool, or leave the links unnumbered."),
        "hosts": larger,
        "core_asn": numbers,
        "spine_asn": numbers,
        "leaf_asn": numbers,
    }


def _prefix_use(name: str, purpose: str, prefix: Any, used: int) -> PoolUse:
    return PoolUse(name, purpose, str(prefix), _("addresses"), used, prefix.num_addresses)


def _as_numbers(fabric: Fabric, pools: AddressPools) -> tuple[Int, tuple[PoolUse, ...]]:
    """Return the AS number of each switch, and how full the three ranges are."""
    switches = fabric.switches
    network = _network(fabric)
    pod = switches.pod.astype(np.int64)
    group = network * (int(pod.max(initial=0)) + 2) + pod + 1
    asn = np.zeros(len(switches), np.int64)
    use = []
    for tier, name, first, after, key, purpose in (
        (3, "core_asn", pools.core_asn, pools.spine_asn, network, _("cores, one a network")),
        (2, "spine_asn", pools.spine_asn, pools.leaf_asn, group, _("spines, one a group")),
        (
            1,
            "leaf_asn",
            pools.leaf_asn,
            LAST_PRIVATE_ASN + 1,
            np.arange(len(switches)),
            _("leafs, one each"),
        ),
    ):
        rows = np.flatnonzero(switches.tier == tier)
        kinds, number = np.unique(key[rows], return_inverse=True)
        asn[rows] = first + number
        span = f"{first}-{after - 1}"
        use.append(PoolUse(name, purpose, span, _("AS numbers"), len(kinds), after - first))
    return asn, tuple(use)


def _network(fabric: Fabric) -> Int:
    """Return a number for the separate network of each switch: its plane, and rail if alone."""
    switches = fabric.switches
    plane = switches.plane.astype(np.int64)
    if fabric.family != "rail-only":
        return plane
    return plane * (int(switches.rail.max(initial=0)) + 2) + switches.rail + 1


def _at(prefix: Any, offset: npt.NDArray[Any]) -> Unsigned:
    return (int(prefix.network_address) + offset.astype(np.int64)).astype(np.uint32)


def _ends(fabric: Fabric, name: str, port: npt.NDArray[Any]) -> dict[str, list[Any]]:
    return {
        name: fabric.switches.name[fabric.ports.device[port]].tolist(),
        f"{name}_port": fabric.ports.port[port].tolist(),
    }


def _rows(**columns: list[Any]) -> Iterator[dict[str, Any]]:
    names = list(columns)
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(names, values, strict=True))
