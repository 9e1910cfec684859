"""Hosts: GPUs, NVLink, NICs in rail order, power, size and price."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpufabric.catalog.groups import Cage, Count, Positive, Power, Price, Range, Size, Sourced, Text
from gpufabric.catalog.identity import Identity, Name
from gpufabric.core.text import _

__all__ = [
    "Accelerators",
    "Host",
    "HostNics",
    "Management",
    "RackParts",
    "RackPower",
    "Racking",
    "ScaleUp",
    "StorageNics",
]


class Accelerators(Sourced):
    """The GPUs of a host."""

    count: Count
    model: Text
    memory_gb: Positive | None = Field(default=None, description="Per GPU.")


class ScaleUp(Sourced):
    """The network between the GPUs of one host or rack."""

    technology: Literal["nvlink", "infinity-fabric", "ualink"]
    generation: Count | None = None
    gbytes_per_s_per_gpu: Positive = Field(description="Both directions together, as printed.")
    domain_gpus: Count
    total_tbytes_per_s: Positive | None = None
    switch_chips: Count | None = None


class HostNics(Sourced):
    """The compute NICs of a host, in order, with the rail of each."""

    model: Name = Field(description="Name of a NIC in the catalogue.")
    count: Count
    gbps: Positive = Field(description="Speed of one NIC here.")
    rail_pattern: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        min_length=1, description="Rail of NIC i; a shorter pattern repeats over the NICs."
    )
    cage: Cage = Field(description="Form factor of the cages on this host.")
    nics_per_cage: Count = Field(default=1, description="2: two NICs behind a twin-port cage.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.count % len(self.rail_pattern):
            raise ValueError(_("count must be a multiple of the length of rail_pattern"))
        if self.count % self.nics_per_cage:
            raise ValueError(_("count must be a multiple of nics_per_cage"))
        if set(self.rail_pattern) != set(range(max(self.rail_pattern) + 1)):
            raise ValueError(_("rails must be numbered from 0 without gaps"))
        return self

    @property
    def rails(self) -> tuple[int, ...]:
        """Rail of each NIC, in NIC order."""
        return self.rail_pattern * (self.count // len(self.rail_pattern))

    @property
    def n_rails(self) -> int:
        """How many rails the host has."""
        return max(self.rail_pattern) + 1


class StorageNics(Sourced):
    """NICs for storage and the in-band network."""

    count: Count
    ports: Count = Field(description="All ports together.")
    gbps: Positive = Field(description="Speed of one port.")
    cage: Cage = "qsfp112"


class Management(Sourced):
    """1 Gb/s ports to the out-of-band network, such as BMCs."""

    ports: Count


class RackParts(Sourced):
    """What a rack-mounted host is made of."""

    compute_trays: Count
    switch_trays: Count | None = None
    power_shelves: Text | None = None


class RackPower(Sourced):
    """Power of a rack filled with this host, as published."""

    hosts: Count
    rack_w: Positive
    ru: Count | None = None
    feeds: Text | None = None


class Racking(Sourced):
    """How many of the host stand in one rack of a published design."""

    hosts_per_rack: Count
    cooling: Literal["air", "liquid"] | None = None


class Host(Identity):
    """One host model: a chassis, or a rack that works as one host."""

    device: Literal["host"]
    mount: Literal["chassis", "rack"] = "chassis"
    accelerators: Accelerators
    scale_up: ScaleUp | None = None
    nics: HostNics
    storage_nics: StorageNics | None = None
    management: Management
    size: Size | None = None
    rack: RackParts | None = None
    power: Power | None = None
    rack_power: tuple[RackPower, ...] = ()
    racking: Racking | None = None
    price: Price | None = None
    annual_failure_rate: Range | None = Field(default=None, description="Failures per year.")

    @property
    def gpus(self) -> int:
        """GPUs in the host."""
        return self.accelerators.count

    @property
    def gpu(self) -> str:
        """Name of the GPU."""
        return self.accelerators.model

    @property
    def gpu_memory_gb(self) -> float | None:
        """Memory of one GPU [GB]; None where unknown."""
        return self.accelerators.memory_gb

    @property
    def nvlink(self) -> ScaleUp | None:
        """NVLink; None where the host has none or its GPUs talk another way."""
        scale_up = self.scale_up
        return scale_up if scale_up is not None and scale_up.technology == "nvlink" else None

    @property
    def management_ports(self) -> int:
        """Ports to the out-of-band network."""
        return self.management.ports
