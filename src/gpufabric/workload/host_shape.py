"""A host as its GPUs and NICs stand to each other, from NCCL's topology or nvidia-smi's matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.nccl_topology import NcclTopology, Net, PciDevice
from gpufabric.parse.nvidia_smi_topo import RELATIONS, SmiMatrix, n_nvlinks
from gpufabric.workload.cluster import Cluster

__all__ = [
    "DATA_GBPS",
    "HostShape",
    "ShapeGpu",
    "ShapeNic",
    "cluster_of",
    "pcie_gbps",
    "shape_of_matrix",
    "shape_of_topology",
]

DATA_GBPS = 25.0
"""Least rate of a NIC that may carry collectives; slower ones manage the host. Assumed."""

_MODELS = {
    "sm70": "V100",
    "sm80": "A100",
    "sm90": "H100",
    "sm100": "B200",
    "sm103": "B300",
    "gfx942": "MI300X",
    "gfx950": "MI355X",
}
"""By NCCL's ``sm`` or RCCL's ``gcn``. Source: NVIDIA CUDA GPUs; AMD ROCm, GPU specifications."""


@dataclass(frozen=True)
class ShapeGpu:
    """A GPU.

    Parameters
    ----------
    name, where
        Of the device, and its place in the file.
    numa
        NUMA domain; None where not stated.
    n_links
        NVLink or xGMI links; None where not stated.
    architecture
        As NCCL names it; empty where not stated.
    pcie_gbps
        Of its own PCIe link [Gb/s]; None where not stated.
    has_gdr
        Whether GPUDirect RDMA works; None where not stated.
    """

    name: str
    where: str
    numa: int | None
    n_links: int | None
    architecture: str
    pcie_gbps: float | None
    has_gdr: bool | None


@dataclass(frozen=True)
class ShapeNic:
    """A NIC, all its ports together.

    Parameters
    ----------
    name, where, numa, pcie_gbps, has_gdr
        As of a GPU.
    port_gbps
        Rate of each port that is stated [Gb/s].
    n_ports
        Ports that NCCL may use.
    """

    name: str
    where: str
    numa: int | None
    pcie_gbps: float | None
    has_gdr: bool | None
    port_gbps: tuple[float, ...]
    n_ports: int

    @property
    def carries_data(self) -> bool:
        """Whether collectives may use it: fast enough, or of a rate that is not stated."""
        return not self.port_gbps or max(self.port_gbps) >= DATA_GBPS

    @property
    def rate_gbps(self) -> float | None:
        """What ports and PCIe let through [Gb/s]; None where no rate is stated."""
        if not self.port_gbps:
            return None
        return min(sum(self.port_gbps), self.pcie_gbps or float("inf"))


@dataclass(frozen=True)
class HostShape:
    """GPUs, NICs, and how near they are.

    Parameters
    ----------
    name
        Of the file.
    gpus, nics
        In the file's order.
    distance
        From the indices of a GPU and a NIC to one of ``RELATIONS``.
    n_sockets
        Network interfaces that belong to no PCIe device: bridges, virtual ones.
    topology
        Where it came from, if it was NCCL's file.
    """

    name: str
    gpus: tuple[ShapeGpu, ...]
    nics: tuple[ShapeNic, ...]
    distance: dict[tuple[int, int], str]
    n_sockets: int = 0
    topology: NcclTopology | None = None

    @property
    def data_nics(self) -> tuple[int, ...]:
        """Indices of the NICs that collectives may use."""
        return tuple(at for at, nic in enumerate(self.nics) if nic.carries_data)

    def nearest_nics(self, gpu: int) -> tuple[str | None, tuple[int, ...]]:
        """How near the nearest NICs of a GPU are, and which these are."""
        known = {
            nic: self.distance[gpu, nic] for nic in self.data_nics if (gpu, nic) in self.distance
        }
        if not known:
            return None, ()
        best = min(known.values(), key=RELATIONS.index)
        return best, tuple(nic for nic, relation in known.items() if relation == best)


def pcie_gbps(speed_gtps: float | None, width: int | None) -> float | None:
    """What a PCIe link carries one way after line coding [Gb/s]; None where not stated.

    Notes
    -----
    8 of 10 bits up to 5 GT/s, 128 of 130 above. Source: PCI Express Base Specification 5.0,
    section 4.2.

    Examples
    --------
    >>> pcie_gbps(2.5, 4)
    8.0
    >>> round(pcie_gbps(32.0, 16))
    504
    """
    if not speed_gtps or not width:
        return None
    return speed_gtps * width * (128 / 130 if speed_gtps >= 8 else 0.8)


def shape_of_topology(topology: NcclTopology) -> HostShape:
    """Return the shape of the host that NCCL's topology describes."""
    devices = topology.devices
    gpu_at = [at for at, device in enumerate(devices) if device.kind == "gpu"]
    nic_at = [at for at, device in enumerate(devices) if device.kind == "nic"]
    return HostShape(
        topology.name,
        tuple(_gpu(topology, at) for at in gpu_at),
        tuple(_nic(topology, at) for at in nic_at),
        {
            (gpu, nic): _distance(devices, gpu_at[gpu], nic_at[nic])
            for gpu in range(len(gpu_at))
            for nic in range(len(nic_at))
        },
        sum(net.pci is None for net in topology.nets),
        topology,
    )


def _gpu(topology: NcclTopology, at: int) -> ShapeGpu:
    device = topology.devices[at]
    gpu = next((gpu for gpu in topology.gpus if gpu.pci == at), None)
    links = [link.count for link in topology.links if link.pci == at and link.kind != "pcilink"]
    return ShapeGpu(
        device.bus_id if gpu is None else f"GPU{gpu.dev}",
        f"{topology.name}:{device.line}",
        topology.cpus[device.cpu].numa,
        sum(links) if links else None,
        "" if gpu is None else gpu.architecture,
        pcie_gbps(device.speed_gtps, device.width),
        None if gpu is None else gpu.has_gdr,
    )


def _nic(topology: NcclTopology, at: int) -> ShapeNic:
    device = topology.devices[at]
    nets: list[Net] = [net for net in topology.nets if net.pci == at]
    stated = {net.has_gdr for net in nets} - {None}
    return ShapeNic(
        ", ".join(net.name for net in nets) or device.bus_id,
        f"{topology.name}:{device.line}",
        topology.cpus[device.cpu].numa,
        pcie_gbps(device.speed_gtps, device.width),
        any(stated) if stated else None,
        tuple(net.speed_gbps for net in nets if net.speed_gbps),
        max(len(nets), 1),
    )


def above(devices: tuple[PciDevice, ...], at: int) -> Iterator[int]:
    """Give the indices of the bridges above a device, the nearest first."""
    parent = devices[at].parent
    while parent is not None:
        yield parent
        parent = devices[parent].parent


def _distance(devices: tuple[PciDevice, ...], first: int, second: int) -> str:
    """As nvidia-smi would call it: by the bridges that a path crosses."""
    ups, downs = list(above(devices, first)), list(above(devices, second))
    shared = next((bridge for bridge in ups if bridge in downs), None)
    if shared is not None:
        return "PIX" if ups[0] == shared == downs[0] else "PXB"
    return "PHB" if devices[first].cpu == devices[second].cpu else "SYS"


def shape_of_matrix(matrix: SmiMatrix) -> HostShape:
    """Return the shape of the host that ``nvidia-smi topo -m`` shows; it states no rates."""
    nics = list(matrix.nics)
    distance = {}
    for gpu_at, gpu in enumerate(matrix.gpus):
        for nic_at, nic in enumerate(nics):
            relation = matrix.relation(gpu, nic)
            if relation in RELATIONS:
                distance[gpu_at, nic_at] = relation
    return HostShape(
        matrix.name,
        tuple(_matrix_gpu(matrix, gpu) for gpu in matrix.gpus),
        tuple(
            ShapeNic(matrix.nic_names.get(nic, nic), _row_of(matrix, nic), None, None, None, (), 1)
            for nic in nics
        ),
        distance,
    )


def _row_of(matrix: SmiMatrix, device: str) -> str:
    line = matrix.lines.get(device)
    return matrix.name if line is None else f"{matrix.name}:{line}"


def _matrix_gpu(matrix: SmiMatrix, gpu: str) -> ShapeGpu:
    links = [n_nvlinks(matrix.relation(gpu, other)) for other in matrix.gpus if other != gpu]
    is_switched = len(set(links)) == 1  # through NVSwitches all links lead to every GPU
    n_links = (links[0] if is_switched else sum(links)) if links else None
    return ShapeGpu(gpu, _row_of(matrix, gpu), matrix.numa.get(gpu), n_links, "", None, None)


def cluster_of(
    shape: HostShape, n_hosts: int, gpu: str | None = None, nic_gbps: float | None = None
) -> Cluster:
    """Return the cluster of `n_hosts` such hosts.

    Parameters
    ----------
    shape
        Of one host.
    n_hosts
        How many there are.
    gpu
        Model; by the file's architecture where None.
    nic_gbps
        Rate of each NIC where the file states none [Gb/s].

    Raises
    ------
    InputError
        If the file has no GPU or tells neither model nor rate, and the caller does not either.
    """
    faults = []
    model = gpu or next((_MODELS[a.architecture] for a in shape.gpus if a.architecture in _MODELS),
                        None)  # fmt: skip
    if not shape.gpus:
        faults.append(Fault(shape.name, _("the file lists no GPU.")))
    elif model is None:
        faults.append(Fault(shape.name, _("the file does not tell the GPU model."), "--gpu H100"))
    nics = [shape.nics[at] for at in shape.data_nics]
    rates = [nic.rate_gbps or nic_gbps for nic in nics]
    if n_hosts > 1 and not rates:
        what = _("the file lists no NIC, and {n} hosts need some.").format(n=n_hosts)
        remedy = _("Take the file on a host with its NICs, or ask for the GPUs of one host.")
        faults.append(Fault(shape.name, what, remedy=remedy))
    elif n_hosts > 1 and None in rates:
        what = _("the file does not tell the rate of all NICs.")
        faults.append(
            Fault(shape.name, what, _("the rate of each, as NCCL's topology file has it"))
        )
    if faults or model is None:
        raise InputError(faults)
    wire = sum(rate for rate in rates if rate is not None) / 8
    return Cluster(
        model,
        len(shape.gpus),
        n_hosts,
        wire if n_hosts > 1 else None,
        n_nics=max(len(nics), 1),
    )
