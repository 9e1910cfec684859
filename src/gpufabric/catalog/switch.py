"""Switches: ports, cages, breakouts, latency, buffer, power, size and price."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from gpufabric.catalog.groups import (
    Availability,
    Cage,
    Count,
    Positive,
    Power,
    Price,
    Range,
    Size,
    Sourced,
    Text,
)
from gpufabric.catalog.identity import Identity
from gpufabric.core.text import _

__all__ = ["Optics", "Ports", "Scale", "Switch"]


class Ports(Sourced):
    """A set of equal ports: how many, how fast, in which cages, and what each splits into."""

    count: Count = Field(description="Ports at native speed.")
    gbps: Positive = Field(description="Native speed of a port.")
    cages: Count = Field(description="Cages on the panel; a twin-port cage holds two ports.")
    cage: Cage = Field(description="Form factor of the cages.")
    lane_gbps: Positive | None = Field(
        default=None, description="Fastest electrical lane, where it is not the form factor's."
    )
    breakouts: dict[Positive, Count] = Field(
        default_factory=dict, description="Slower speed: how many ports a native port becomes."
    )
    breakouts_from: Sourced | None = Field(
        default=None, description="Where the breakouts come from, if not from this source."
    )
    capacity_tbps: Positive | None = Field(default=None, description="One direction.")
    capacity_bidirectional_tbps: Positive | None = Field(
        default=None, description="Both directions, as some makers print it."
    )
    network_ports: Count | None = Field(default=None, description="Of these, to the network.")
    fabric_ports: Count | None = Field(default=None, description="Of these, to a cell fabric.")
    serdes: Text | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.count % self.cages:
            raise ValueError(_("count must be a multiple of cages"))
        for gbps, pieces in self.breakouts.items():
            if gbps >= self.gbps:
                raise ValueError(_("a breakout must be slower than the port"))
            if gbps * pieces > self.gbps:
                raise ValueError(_("a breakout must not exceed the speed of the port"))
        return self

    @property
    def ports_per_cage(self) -> int:
        """Ports at native speed in one cage."""
        return self.count // self.cages

    def count_at(self, gbps: float) -> int | None:
        """Ports at `gbps` [Gb/s], native or broken out; None where the speed is not offered."""
        if gbps == self.gbps:
            return self.count
        pieces = self.breakouts.get(gbps)
        return None if pieces is None else self.count * pieces


class Optics(Sourced):
    """Power that the cages can give to modules."""

    max_w: Positive = Field(description="Every cage.")
    max_some_w: Positive | None = Field(default=None, description="A few cages.")
    some_cages: Count | None = Field(default=None, description="How many those few are.")


class Scale(Sourced):
    """Limits of fabrics built from the switch, as published."""

    two_tier_max_endpoints: Count | None = None
    endpoint_gbps: Positive | None = None
    radix: Count | None = Field(default=None, description="Ports at endpoint_gbps.")
    packets_gpps: Positive | None = Field(default=None, description="10**9 packets per second.")


class Switch(Identity):
    """One switch model."""

    device: Literal["switch"]
    asic: Text | None = None
    fabric: Literal["infiniband", "roce"]
    generation: Literal["hdr", "ndr", "xdr", "ethernet"]
    managed: bool | None = Field(default=None, description="Runs its own management software.")
    deployable: bool = Field(
        default=True, description="False: cannot be a leaf or spine of a compute fabric."
    )
    role_hint: Literal["compute", "management", "inband", "asic"] = "compute"
    ports: Ports
    uplinks: Ports | None = Field(default=None, description="A second, different set of ports.")
    hop_latency_ns: Range | None = None
    buffer_mb: Range | None = None
    power: Power | None = None
    optics: Optics | None = None
    size: Size | None = None
    scale: Scale | None = None
    price: Price | None = None
    availability: Availability | None = None
    annual_failure_rate: Range | None = Field(default=None, description="Failures per year.")

    @property
    def ports_per_cage(self) -> int:
        """Ports at native speed in one cage: 2 for a twin-port OSFP."""
        return self.ports.ports_per_cage

    @property
    def max_optic_w(self) -> float | None:
        """Power that every cage can give to its module [W]; None where unknown."""
        return None if self.optics is None else self.optics.max_w

    @property
    def capacity_tbps(self) -> float | None:
        """Published switching capacity in one direction [Tb/s]; None where unknown."""
        if self.ports.capacity_tbps is not None:
            return self.ports.capacity_tbps
        both = self.ports.capacity_bidirectional_tbps
        return None if both is None else both / 2

    def port_count_at(self, gbps: float) -> int | None:
        """Ports at `gbps` [Gb/s], native or broken out; None where the speed is not offered."""
        return self.ports.count_at(gbps)
