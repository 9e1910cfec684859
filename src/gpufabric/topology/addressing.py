"""The address plan of a fabric: IP addresses and AS numbers, or LIDs and node descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpufabric.model.fabric import Fabric
from gpufabric.topology.address_pools import AddressPools, PoolUse, peer_31
from gpufabric.topology.ethernet_addressing import EthernetAddressing, address_ethernet
from gpufabric.topology.infiniband_addressing import InfinibandAddressing, address_infiniband

__all__ = [
    "AddressPools",
    "AddressWishes",
    "Addressing",
    "EthernetAddressing",
    "InfinibandAddressing",
    "PoolUse",
    "address",
    "peer_31",
]

Addressing = EthernetAddressing | InfinibandAddressing


@dataclass(frozen=True)
class AddressWishes:
    """What the user may choose about the addresses.

    Parameters
    ----------
    pools
        Pools of a RoCE fabric. None: those of `AddressPools.for_site` by the fabric's name.
    links
        RoCE: whether links between switches have addresses, or are ``unnumbered`` (BGP over
        IPv6 link-local addresses, RFC 8950).
    lmc
        InfiniBand: LID mask control, 0 to 7.
    """

    pools: AddressPools | None = None
    links: Literal["numbered", "unnumbered"] = "numbered"
    lmc: int = 0


def address(fabric: Fabric, wishes: AddressWishes | None = None) -> Addressing:
    """Return the address plan of `fabric`, of all hosts and switches of its target size.

    Raises
    ------
    InputError
        If a pool is too small for the fabric, or the LMC is out of range.
    """
    wishes = wishes or AddressWishes()
    if fabric.protocol == "infiniband":
        return address_infiniband(fabric, wishes.lmc)
    site = f"{fabric.attributes.get('spec', '')}/{fabric.name}"
    pools = wishes.pools or AddressPools.for_site(site)
    return address_ethernet(fabric, pools, is_numbered=wishes.links == "numbered")
