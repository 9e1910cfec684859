"""The devices of the catalogue: switch, NIC, host, part, equipment, and the rules for them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpufabric.catalog.groups import (
    Availability,
    Cage,
    Kind,
    Power,
    Price,
    Range,
    Size,
    Sourced,
)
from gpufabric.catalog.host import Accelerators, Host, HostNics, RackPower, ScaleUp, StorageNics
from gpufabric.catalog.nic import Nic, NicPorts, PortMode
from gpufabric.catalog.part import Form, Link, Part
from gpufabric.catalog.rule import Equipment, EquipmentPorts, FailureRates, MediaRule
from gpufabric.catalog.switch import Ports, Switch

__all__ = [
    "DEVICE_KINDS",
    "Accelerators",
    "Availability",
    "Cage",
    "Device",
    "Equipment",
    "EquipmentPorts",
    "FailureRates",
    "Form",
    "Host",
    "HostNics",
    "Kind",
    "Link",
    "MediaRule",
    "Nic",
    "NicPorts",
    "Part",
    "PortMode",
    "Ports",
    "Power",
    "Price",
    "RackPower",
    "Range",
    "ScaleUp",
    "Size",
    "Sourced",
    "StorageNics",
    "Switch",
]

AnyDevice = Switch | Nic | Host | Part | Equipment | MediaRule | FailureRates
"""Any entry of the catalogue."""

Device = Annotated[AnyDevice, Field(discriminator="device")]
"""Any entry of the catalogue, told apart by its ``device`` key."""

DEVICE_KINDS: dict[str, type[AnyDevice]] = {
    "switch": Switch,
    "nic": Nic,
    "host": Host,
    "part": Part,
    "equipment": Equipment,
    "media-rule": MediaRule,
    "failure-rates": FailureRates,
}
"""The model behind each value of the ``device`` key."""
