"""``addresses.csv``: every switch, link end and host port with its addresses or LID."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from gpufabric.model.fabric import Fabric
from gpufabric.topology.addressing import Addressing, InfinibandAddressing
from gpufabric.topology.ethernet_addressing import EthernetAddressing

__all__ = ["ADDRESS_COLUMNS", "address_rows", "addresses_csv"]

ADDRESS_COLUMNS = (
    ("kind", "switch, link (between switches), host (a host port) or subnet (of a leaf)."),
    ("device", "Switch, lower end of a link, host, or leaf."),
    ("port", "Port of the device; empty for a whole switch or subnet."),
    ("ipv4", "Address, or prefix of a subnet."),
    ("ipv6", "Likewise."),
    ("asn", "AS number of a switch."),
    ("peer", "Upper end of a link, or leaf of a host port."),
    ("peer_port", "Port of the peer."),
    ("peer_ipv4", "Address of the peer: the gateway of a host port."),
    ("peer_ipv6", "Likewise."),
    ("plane", "Plane, from 0."),
    ("rail", "Rail, from 0."),
    ("lid", "InfiniBand: LID that a subnet manager is expected to give."),
    ("description", "InfiniBand: node description."),
)
"""Name and meaning of each column."""


def addresses_csv(addressing: Addressing, fabric: Fabric) -> bytes:
    """Return the address plan as CSV in UTF-8: a header, then `address_rows`."""
    text = io.StringIO()
    names = [name for name, _meaning in ADDRESS_COLUMNS]
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(address_rows(addressing, fabric))
    return text.getvalue().encode()


def address_rows(addressing: Addressing, fabric: Fabric) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of `addresses.csv`."""
    if isinstance(addressing, InfinibandAddressing):
        yield from _infiniband(addressing, fabric)
    else:
        yield from _ethernet(addressing, fabric)


def _infiniband(plan: InfinibandAddressing, fabric: Fabric) -> Iterator[Mapping[str, Any]]:
    for row in plan.switch_rows(fabric):
        yield {
            "kind": "switch",
            "device": row["switch"],
            "lid": row["lid"],
            "description": row["description"],
        }
    for row in plan.port_rows(fabric):
        yield {
            "kind": "host",
            "device": row["host"],
            "port": f"nic{row['nic']}p{row['port']}",
            "lid": row["lid"],
            "description": row["description"],
        }


def _ethernet(plan: EthernetAddressing, fabric: Fabric) -> Iterator[Mapping[str, Any]]:
    for row in plan.switch_rows(fabric):
        yield {
            "kind": "switch",
            "device": row["switch"],
            "asn": row["asn"],
            "ipv4": row["ipv4"],
            "ipv6": row["ipv6"],
        }
    for row in plan.link_rows(fabric):
        yield {
            "kind": "link",
            "device": row["lower"],
            "port": row["lower_port"],
            "ipv4": row.get("lower_ipv4", ""),
            "ipv6": row.get("lower_ipv6", ""),
            "peer": row["upper"],
            "peer_port": row["upper_port"],
            "peer_ipv4": row.get("upper_ipv4", ""),
            "peer_ipv6": row.get("upper_ipv6", ""),
        }
    for row in plan.host_rows(fabric):
        yield {
            "kind": "host",
            "device": row["host"],
            "port": f"nic{row['nic']}p{row['port']}",
            "ipv4": row["ipv4"],
            "ipv6": row["ipv6"],
            "peer": row["leaf"],
            "peer_ipv4": row["gateway_ipv4"],
            "peer_ipv6": row["gateway_ipv6"],
            "plane": row["plane"],
            "rail": row["rail"],
        }
    for row in plan.subnet_rows(fabric):
        yield {
            "kind": "subnet",
            "device": row["leaf"],
            "ipv4": row["ipv4"],
            "ipv6": row["ipv6"],
            "plane": row["plane"],
            "rail": row["rail"],
        }
