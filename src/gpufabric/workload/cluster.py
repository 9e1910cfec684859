"""A cluster as collective libraries see it: NVLink domains, GPUs, NICs, and the transport."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufabric.catalog.constants import (
    Generation,
    generation_of,
    gpu_generations,
    link_share_of,
)
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["TRANSPORTS", "Cluster"]

TRANSPORTS = ("none", "rdma", "efa", "tcpx", "tcpxo", "tcp", "slingshot")
"""How data cross the network: RDMA (InfiniBand or RoCE v2), AWS EFA, GPUDirect TCPX and TCPXO,
plain TCP, HPE Slingshot; ``none`` where all GPUs share one NVLink domain."""

FIRST_EFA = frozenset({"volta", "ampere"})
"""GPUs of the instances with EFA's first generation: P3dn, P4d and P4de.
Source: AWS, Amazon EC2 instance types, accelerated computing."""


@dataclass(frozen=True)
class Cluster:
    """GPUs in equal domains, and the network between these.

    Parameters
    ----------
    gpu
        Model, such as ``H100``; the catalogue tells its generation.
    gpus_per_domain
        GPUs that NVLink (or xGMI, PCIe) joins: those of a host, or of an NVL72 rack.
    n_domains
        Number of domains.
    wire_gbytes_per_s
        What all NICs of a domain send together, one direction [GB/s]; None with one domain.
    transport
        One of ``TRANSPORTS``.
    n_nics
        NICs of a domain.
    has_nvls
        Whether the NVLink switches reduce; by the generation where None.
    has_sharp
        Whether the network's switches reduce (CollNet).
    has_amd_cpu
        Whether the hosts have AMD processors: NCCL counts 2 us a step for them, 1 us for Intel.
    slowed
        Names of groups of ranks with how many times slower than at full NIC rate the network is
        for them; see `crossing`. Groups that are not named have the full rate.
    """

    gpu: str
    gpus_per_domain: int
    n_domains: int = 1
    wire_gbytes_per_s: float | None = None
    transport: str = "rdma"
    n_nics: int = 8
    has_nvls: bool | None = None
    has_sharp: bool = False
    has_amd_cpu: bool = False
    slowed: tuple[tuple[str, float], ...] = ()
    generation: str = field(init=False)
    link_share: float = field(init=False)

    def __post_init__(self) -> None:
        faults = []
        for where, count in (("gpus_per_domain", self.gpus_per_domain), ("hosts", self.n_domains)):
            if count < 1:
                faults.append(Fault(where, _("the value is {value}.").format(value=count), "1 …"))
        if self.transport not in TRANSPORTS:
            what = _('"{name}" is unknown.').format(name=self.transport[:64])
            faults.append(Fault("transport", what, ", ".join(TRANSPORTS)))
        wire = self.wire_gbytes_per_s
        if self.n_domains > 1 and not (wire is not None and 0 < wire < float("inf")):
            what = _("the value is {value}.").format(value=wire)
            faults.append(Fault("wire_gbytes_per_s", what, _("more than 0")))
        if faults:
            raise InputError(faults)
        object.__setattr__(self, "generation", generation_of(self.gpu))
        object.__setattr__(self, "link_share", link_share_of(self.gpu))

    @property
    def n_ranks(self) -> int:
        """GPUs of all domains."""
        return self.gpus_per_domain * self.n_domains

    def slowdown(self, name: str) -> float:
        """How many times slower than at full NIC rate the network is for groups of this name."""
        return dict(self.slowed).get(name, 1.0)

    @property
    def network(self) -> str:
        """The transport as constants tell it apart: ``efa-v1`` for EFA's first generation."""
        is_first = self.transport == "efa" and self.generation in FIRST_EFA
        return "efa-v1" if is_first else self.transport

    @property
    def facts(self) -> Generation:
        """What the catalogue says of the GPU's generation, with the links that this GPU has."""
        found = gpu_generations().generations[self.generation]
        if self.link_share == 1:
            return found
        rate = found.nvlink_gbytes_per_s * self.link_share
        return found.model_copy(update={"nvlink_gbytes_per_s": rate})

    @property
    def reduces_in_nvlink(self) -> bool:
        """Whether NVLS can be used: a generation that has it, and more than two GPUs a domain."""
        has_nvls = self.facts.nvls if self.has_nvls is None else self.has_nvls
        return has_nvls and self.gpus_per_domain > 2
