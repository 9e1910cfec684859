"""The device catalogue: switches, NICs, hosts, cabling parts, prices, each with its source."""

from __future__ import annotations

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.joining import JoinOption, PortEnd, join_options, nic_end, switch_end
from gpufabric.catalog.load import device_schema, load_catalog
from gpufabric.catalog.models import (
    DEVICE_KINDS,
    AnyDevice,
    Equipment,
    FailureRates,
    Host,
    MediaRule,
    Nic,
    Part,
    Price,
    Range,
    Sourced,
    Switch,
)

__all__ = [
    "DEVICE_KINDS",
    "AnyDevice",
    "Catalog",
    "Equipment",
    "FailureRates",
    "Host",
    "JoinOption",
    "MediaRule",
    "Nic",
    "Part",
    "PortEnd",
    "Price",
    "Range",
    "Sourced",
    "Switch",
    "device_schema",
    "join_options",
    "load_catalog",
    "nic_end",
    "switch_end",
]
