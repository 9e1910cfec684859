"""NICs: speeds, how they split, cages, PCIe, power and price."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from gpufabric.catalog.groups import (
    Cage,
    Count,
    Frozen,
    Positive,
    Power,
    Price,
    Range,
    Sourced,
    Text,
)
from gpufabric.catalog.identity import Identity
from gpufabric.core.text import _

__all__ = ["Nic", "NicPorts", "Planes", "PortMode"]


class PortMode(Frozen):
    """One way to run a NIC: so many ports at such a speed."""

    ports: Count
    gbps: Positive


class NicPorts(Sourced):
    """Speeds and cages of a NIC."""

    gbps: Positive = Field(description="All ports together.")
    modes: tuple[PortMode, ...] = Field(min_length=1, description="The widest port first.")
    cages: tuple[Cage, ...] = Field(min_length=1, description="Form factors it is sold with.")
    pcie: Text | None = None
    lane_gbps: Positive | None = Field(
        default=None, description="Fastest electrical lane, where it is not the form factor's."
    )
    instance_gbps: Positive | None = Field(default=None, description="A whole cloud instance.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if any(mode.ports * mode.gbps > self.gbps for mode in self.modes):
            raise ValueError(_("a mode must not exceed the speed of the NIC"))
        return self


class Planes(Sourced):
    """Into how many planes the NIC's speed is split by default on Ethernet."""

    default: Count


class Nic(Identity):
    """One NIC model."""

    device: Literal["nic"]
    protocols: tuple[Literal["infiniband", "roce"], ...]
    deployable: bool = Field(default=True, description="False: cannot be bought for a host.")
    ports: NicPorts
    power: Power | None = None
    price: Price | None = None
    ethernet_planes: Planes | None = None
    annual_failure_rate: Range | None = Field(default=None, description="Failures per year.")

    @property
    def gbps(self) -> float:
        """Speed of all ports together [Gb/s]."""
        return self.ports.gbps

    @property
    def port_modes(self) -> tuple[PortMode, ...]:
        """The ways to run it, the widest port first."""
        return self.ports.modes

    @property
    def cage(self) -> Cage:
        """Form factor of the cage it is most often sold with."""
        return self.ports.cages[0]

    @property
    def pcie(self) -> str | None:
        """PCIe generation and lanes; None where unknown."""
        return self.ports.pcie

    @property
    def ethernet_planes_default(self) -> int | None:
        """Planes its speed is split over by default on Ethernet; None where unknown."""
        return None if self.ethernet_planes is None else self.ethernet_planes.default
