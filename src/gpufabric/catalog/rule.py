"""Equipment beside the fabric, and the rules that hold for whole classes of parts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gpufabric.catalog.groups import Cage, Count, Positive, Power, Price, Range, Size, Sourced, Text
from gpufabric.catalog.identity import Identity

__all__ = [
    "CopperReach",
    "DelayNs",
    "Equipment",
    "EquipmentPorts",
    "FailureRates",
    "MediaLimits",
    "MediaRule",
]


class EquipmentPorts(Sourced):
    """Ports of one kind on a piece of equipment."""

    count: Count
    gbps: Positive
    cage: Cage
    network: Literal["compute", "storage", "inband", "oob"]


class Equipment(Identity):
    """A box that a fabric needs beside switches and hosts."""

    device: Literal["equipment"]
    role: Literal["subnet-manager", "fabric-controller", "management-host"]
    fabrics: tuple[Literal["infiniband", "roce"], ...] = Field(min_length=1)
    ports: tuple[EquipmentPorts, ...] = ()
    size: Size | None = None
    power: Power | None = None
    price: Price | None = None
    annual_failure_rate: Range | None = Field(default=None, description="Failures per year.")
    description: Text | None = None


class MediaLimits(Sourced):
    """Longest link for each kind of cable; longer ones take transceivers and fibre."""

    dac_max_m: Positive
    aec_max_m: Positive
    aoc_max_m: Positive


class CopperReach(Sourced):
    """Longest passive copper link by speed."""

    at_800g_m: Positive
    at_1600g_m: Positive


class MultimodeReach(Sourced):
    """Longest link over multimode fibre or active optical cable."""

    max_m: Positive


class DelayNs(Sourced):
    """Signal delay per metre."""

    fibre_ns_per_m: Positive
    copper_ns_per_m: Positive


class MediaRule(Identity):
    """Which kind of cable to take for which length."""

    device: Literal["media-rule"]
    limits: MediaLimits
    copper: CopperReach
    multimode: MultimodeReach
    delay: DelayNs
    one_asic_ns: Range = Field(description="From NIC to NIC through one switch chip.")


class FailureRates(Identity):
    """Annual failure rates by class, for devices whose own rate is unknown."""

    device: Literal["failure-rates"]
    switch: Range
    nic: Range
    transceiver: Range
    aoc: Range
    copper: Range = Field(description="Passive copper cables.")
    active_copper: Range
    fibre: Range
