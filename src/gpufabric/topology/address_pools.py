"""Pools that the addresses of a RoCE fabric are taken from, and how full a plan makes them."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = [
    "AddressPools",
    "PoolUse",
    "check_fit",
    "ipv4_text",
    "ipv6_text",
    "peer_31",
    "power_of_two",
]

IPv4 = ipaddress.IPv4Network
IPv6 = ipaddress.IPv6Network

HOSTS = IPv4("10.0.0.0/9")
LINKS = IPv4("10.128.0.0/10")
LOOPBACKS = IPv4("10.255.0.0/16")
ALL_IPV6 = IPv6("fd67:7075:6600::/48")
"""Default pools, chosen by this project from the private prefixes (RFC 1918, RFC 4193)."""

LAST_PRIVATE_ASN = 4_294_967_294
FIRST_PRIVATE_ASN = 4_200_000_000
"""Private four-byte AS numbers, RFC 6996 section 5."""


@dataclass(frozen=True)
class AddressPools:
    """Where the addresses and AS numbers of a RoCE fabric come from.

    Parameters
    ----------
    hosts
        IPv4 prefix of the links between hosts and leafs; one part of it for every plane and rail.
    links
        IPv4 prefix of the links between switches, a /31 each.
    loopbacks
        IPv4 prefix of the switches' loopbacks, a /32 each.
    ipv6
        IPv6 prefix of all, /62 or shorter. Its first three /64 are for loopbacks, links and
        hosts; an IPv6 address ends in the number that its IPv4 twin has within its own pool.
    core_asn, spine_asn, leaf_asn
        First AS number of the cores (one per network), of the groups of spines, of the leafs.
    """

    hosts: IPv4 = HOSTS
    links: IPv4 = LINKS
    loopbacks: IPv4 = LOOPBACKS
    ipv6: IPv6 = ALL_IPV6
    core_asn: int = 4_200_000_000
    spine_asn: int = 4_200_010_000
    leaf_asn: int = 4_201_000_000

    def __post_init__(self) -> None:
        faults = [*self._overlaps(), *self._numbers()]
        if faults:
            raise InputError(faults)

    @classmethod
    def for_site(cls, name: str) -> AddressPools:
        """Return the default pools, with an IPv6 prefix of the site's own.

        Notes
        -----
        RFC 4193 section 3.2 wants 40 random bits in a unique local prefix, so that two sites
        can be joined later. They are drawn from SHA-256 of `name`, and so stay the same.
        """
        bits = hashlib.sha256(name.encode()).digest()[:5]
        return cls(ipv6=IPv6((int.from_bytes(b"\xfd" + bits + bytes(10), "big"), 48)))

    @property
    def ipv6_loopbacks(self) -> IPv6:
        """The /64 of the switches' loopbacks."""
        return self._ipv6_part(0)

    @property
    def ipv6_links(self) -> IPv6:
        """The /64 of the links between switches."""
        return self._ipv6_part(1)

    @property
    def ipv6_hosts(self) -> IPv6:
        """The /64 of the links between hosts and leafs."""
        return self._ipv6_part(2)

    def _ipv6_part(self, index: int) -> IPv6:
        return IPv6((int(self.ipv6.network_address) + (index << 64), 64))

    def _overlaps(self) -> Iterable[Fault]:
        prefixes = {name: getattr(self, name) for name in ("hosts", "links", "loopbacks")}
        names = list(prefixes)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                if prefixes[first].overlaps(prefixes[second]):
                    yield Fault(
                        f"pools.{second}",
                        _("{second} overlaps {first}, the pool of {name}.").format(
                            second=prefixes[second], first=prefixes[first], name=first
                        ),
                        remedy=_("Give every pool a prefix of its own."),
                    )
        if self.ipv6.prefixlen > 62:
            yield Fault(
                "pools.ipv6",
                _("{prefix} is too small.").format(prefix=self.ipv6),
                _("/62 or shorter, such as a /48"),
            )

    def _numbers(self) -> Iterable[Fault]:
        first = (self.core_asn, self.spine_asn, self.leaf_asn)
        if not FIRST_PRIVATE_ASN <= first[0] < first[1] < first[2] <= LAST_PRIVATE_ASN:
            yield Fault(
                "pools.core_asn",
                _("the AS numbers {numbers} do not rise.").format(
                    numbers=", ".join(str(number) for number in first)
                ),
                _("rising numbers from {low} to {high}").format(
                    low=FIRST_PRIVATE_ASN, high=LAST_PRIVATE_ASN
                ),
            )

    def to_json(self) -> dict[str, Any]:
        """Return the pools as texts and numbers."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value if isinstance(value, int) else str(value) for name, value in values.items()
        }


@dataclass(frozen=True)
class PoolUse:
    """One row of an address plan: a pool, what it is for, and how full it is.

    Parameters
    ----------
    name
        Stable English name, a field of `AddressPools` or a kind of LIDs.
    purpose
        What its members are given to.
    span
        Prefix, or first and last number.
    unit
        What is counted.
    used, capacity
        Members that the plan takes, rounding up to whole prefixes included, and members in all.
    """

    name: str
    purpose: str
    span: str
    unit: str
    used: int
    capacity: int

    def to_json(self) -> dict[str, Any]:
        """Return the row as a mapping."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def check_fit(use: Sequence[PoolUse], remedies: dict[str, str]) -> None:
    """Check that no pool is asked for more than it has.

    Raises
    ------
    InputError
        With one fault for each pool that is too small; `remedies` gives what helps by its name.
    """
    faults = [
        Fault(
            f"pools.{row.name}",
            _("{span} has {capacity} {unit}, and the plan takes {used}.").format(
                span=row.span, capacity=f"{row.capacity:,}", unit=row.unit, used=f"{row.used:,}"
            ),
            remedy=remedies.get(row.name, ""),
        )
        for row in use
        if row.used > row.capacity
    ]
    if faults:
        raise InputError(faults)


def peer_31(address: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the other address of each /31: the last bit turned over.

    Setting the last bit instead (``address | 1``) gives odd addresses their own value, and such
    hosts then route to themselves (SemiAnalysisAI/InferenceX#1569).

    Examples
    --------
    >>> [ipv4_text(peer_31(np.array([end], np.uint32)))[0] for end in (0xC0A80200, 0xC0A80201)]
    ['192.168.2.1', '192.168.2.0']
    """
    return np.bitwise_xor(address, np.uint32(1))


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`.

    Examples
    --------
    >>> [power_of_two(number) for number in (0, 1, 62, 64, 65)]
    [1, 1, 64, 64, 128]
    """
    return 1 << max(0, number - 1).bit_length()


def ipv4_text(addresses: npt.NDArray[Any]) -> list[str]:
    """Return the addresses in dotted form."""
    return [
        f"{address >> 24}.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"
        for address in addresses.tolist()
    ]


def ipv6_text(prefix: IPv6, offsets: npt.NDArray[Any]) -> list[str]:
    """Return the addresses at `offsets` within a /64, in the form of RFC 5952."""
    base = int(prefix.network_address)
    return [str(ipaddress.IPv6Address(base + offset)) for offset in offsets.tolist()]
