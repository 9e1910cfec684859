"""What is wrong with a host's shape: far or shared NICs, slow links, odd rates, lost NVLinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpufabric.core.errors import Fault
from gpufabric.core.text import _
from gpufabric.workload.host_shape import HostShape, ShapeNic, pcie_gbps

__all__ = ["HostFinding", "host_findings"]

PORT_GBPS = (1, 10, 25, 40, 50, 56, 100, 200, 400, 800, 1600)
"""Rates of Ethernet and InfiniBand ports. Source: IEEE 802.3; InfiniBand specification."""

_NEAR = frozenset({"PIX", "PXB"})


@dataclass(frozen=True)
class HostFinding:
    """One thing found.

    Parameters
    ----------
    rule
        Its name.
    severity
        ``warning``, or ``note`` where it may be meant so.
    fault
        Where, what, what is expected, what to do.
    impairment
        Which of `impairment.IMPAIRMENTS` shows what it costs; empty if none.
    """

    rule: str
    severity: str
    fault: Fault
    impairment: str = ""


def host_findings(shape: HostShape) -> list[HostFinding]:
    """Return what is wrong with a host, in the order of the rules."""
    found: list[HostFinding] = []
    for rule in (_far, _shared, _only_sockets, _no_gdr, _slow_links, _slow_bridges, _slow_slots,
                 _odd_rates, _two_ports, _lost_links, _no_classes):  # fmt: skip
        found += rule(shape)
    return found


def _far(shape: HostShape) -> Iterator[HostFinding]:
    """GPUs whose nearest NIC is not behind the same PCIe switches."""
    for at, gpu in enumerate(shape.gpus):
        relation, nics = shape.nearest_nics(at)
        if relation is None or relation in _NEAR:
            continue
        names = ", ".join(shape.nics[nic].name for nic in nics)
        what = _("{gpu}: its nearest NIC is {relation} away: {names}.").format(
            gpu=gpu.name, relation=relation, names=names
        )
        remedy = _("Put a NIC behind the GPU's PCIe switch, or let NVLink carry to one (PXN).")
        yield HostFinding(
            "far_nic",
            "warning",
            Fault(gpu.where, what, "PIX, PXB", remedy),
            "far_nic" if relation == "SYS" else "",
        )


def _shared(shape: HostShape) -> Iterator[HostFinding]:
    n_nics, n_gpus = len(shape.data_nics), len(shape.gpus)
    if 0 < n_nics < n_gpus:
        what = _("{gpus} GPUs share {nics} NICs.").format(gpus=n_gpus, nics=n_nics)
        yield HostFinding("shared_nic", "note", Fault(shape.name, what), "shared_nic")


def _only_sockets(shape: HostShape) -> Iterator[HostFinding]:
    """The file lists interfaces, but none that collectives should use."""
    if shape.gpus and not shape.data_nics and (shape.nics or shape.n_sockets):
        what = _("no NIC of 25 Gb/s or more: NCCL uses TCP sockets.")
        remedy = _("Look whether the RDMA driver is loaded and the container sees its devices.")
        yield HostFinding("only_sockets", "warning", Fault(shape.name, what, "", remedy), "tcp")


def _no_gdr(shape: HostShape) -> Iterator[HostFinding]:
    for nic in (shape.nics[at] for at in shape.data_nics):
        if nic.has_gdr is False:
            what = _("{nic}: GPUDirect RDMA is off.").format(nic=nic.name)
            fault = Fault(nic.where, what, 'gdr="1"', _("Load nvidia-peermem or use DMA-BUF."))
            yield HostFinding("no_gdr", "warning", fault, "gdr_off")


def _slow_links(shape: HostShape) -> Iterator[HostFinding]:
    """A GPU's or NIC's link that is slower than those of its like."""
    if shape.topology is None:
        return
    alike: dict[tuple[str, str, str], list[float]] = {}
    devices = [device for device in shape.topology.devices if device.kind in {"gpu", "nic"}]
    for device in devices:
        rate = pcie_gbps(device.speed_gtps, device.width)
        if rate is not None:
            alike.setdefault((device.kind, device.vendor, device.device), []).append(rate)
    for device in devices:
        rate = pcie_gbps(device.speed_gtps, device.width)
        best = max(alike.get((device.kind, device.vendor, device.device), [0.0]))
        if rate is not None and rate < best * 0.99:
            what = _("{bus_id} runs at {speed:g} GT/s x{width}, others like it faster.").format(
                bus_id=device.bus_id, speed=device.speed_gtps, width=device.width
            )
            expected = _("{rate:.0f} Gb/s").format(rate=best)
            remedy = _("Seat the card again; look at lspci -vv, LnkSta against LnkCap.")
            yield HostFinding(
                "slow_link",
                "warning",
                Fault(f"{shape.name}:{device.line}", what, expected, remedy),
                "degraded_nic" if device.kind == "nic" else "",
            )


def _slow_bridges(shape: HostShape) -> Iterator[HostFinding]:
    """A bridge whose link upwards is slower than a GPU's or NIC's below it."""
    if shape.topology is None:
        return
    devices = shape.topology.devices
    for at, device in enumerate(devices):
        up = pcie_gbps(device.speed_gtps, device.width)
        below = [
            pcie_gbps(other.speed_gtps, other.width) or 0.0
            for other in devices
            if other.parent == at and other.kind in {"gpu", "nic", "bridge"}
        ]
        if up is None or not below or up >= max(below) * 0.99:
            continue
        what = _("bridge {bus_id}: {up:.0f} Gb/s up, but {below:.0f} Gb/s below it.").format(
            bus_id=device.bus_id, up=up, below=max(below)
        )
        remedy = _("Some switches report a wrong speed: state the true one in NCCL_TOPO_FILE.")
        yield HostFinding(
            "slow_bridge", "warning", Fault(f"{shape.name}:{device.line}", what, "", remedy)
        )


def _slow_slots(shape: HostShape) -> Iterator[HostFinding]:
    """A NIC whose ports are faster than its PCIe link."""
    for nic in (shape.nics[at] for at in shape.data_nics):
        ports = sum(nic.port_gbps)
        if nic.pcie_gbps is not None and nic.pcie_gbps < ports * 0.99:
            what = _("{nic}: {ports:g} Gb/s of ports on {pcie:.0f} Gb/s of PCIe.").format(
                nic=nic.name, ports=ports, pcie=nic.pcie_gbps
            )
            yield HostFinding("slow_slot", "warning", Fault(nic.where, what), "degraded_nic")


def _odd_rates(shape: HostShape) -> Iterator[HostFinding]:
    for nic in shape.nics:
        for rate in sorted({rate for rate in nic.port_gbps if rate not in PORT_GBPS}):
            what = _("{nic}: {rate:g} Gb/s is no rate of a port.").format(nic=nic.name, rate=rate)
            near = min(PORT_GBPS, key=lambda known, rate=rate: abs(known - rate))  # type: ignore[misc]
            expected = _("such as {rate}").format(rate=near)
            remedy = _("NCCL builds its rings from this number: state the port's true rate.")
            yield HostFinding("odd_rate", "warning", Fault(nic.where, what, expected, remedy))
    yield from _unequal_rates([shape.nics[at] for at in shape.data_nics])


def _unequal_rates(nics: list[ShapeNic]) -> Iterator[HostFinding]:
    """A NIC whose ports are slower than those of most others."""
    rates = [max(nic.port_gbps) for nic in nics if nic.port_gbps]
    if len(rates) < 3:
        return
    usual, n_usual = Counter(rates).most_common(1)[0]
    if n_usual * 2 <= len(rates):
        return
    for nic in nics:
        if nic.port_gbps and max(nic.port_gbps) < usual:
            what = _("{nic}: {rate:g} Gb/s, where most have {usual:g} Gb/s.").format(
                nic=nic.name, rate=max(nic.port_gbps), usual=usual
            )
            remedy = _("Look at the cable, the optic and the switch port's speed.")
            fault = Fault(nic.where, what, f"{usual:g} Gb/s", remedy)
            yield HostFinding("unequal_rate", "warning", fault, "degraded_nic")


def _two_ports(shape: HostShape) -> Iterator[HostFinding]:
    nics = [nic for nic in shape.nics if nic.carries_data and nic.n_ports > 1]
    if nics:
        what = _("{n} NICs have two ports: NCCL may use one of them only.").format(n=len(nics))
        remedy = _("Compare the channels in NCCL's log with the ports.")
        yield HostFinding("two_ports", "note", Fault(nics[0].where, what, "", remedy), "one_port")


def _lost_links(shape: HostShape) -> Iterator[HostFinding]:
    """A GPU with fewer NVLink or xGMI links than the others, or none."""
    stated = [gpu for gpu in shape.gpus if gpu.n_links is not None]
    most = max((gpu.n_links or 0 for gpu in stated), default=0)
    for gpu in shape.gpus:
        if most and (gpu.n_links or 0) < most:
            what = _("{gpu} has {n} NVLink or xGMI links, others have {most}.").format(
                gpu=gpu.name, n=gpu.n_links or 0, most=most
            )
            fault = Fault(gpu.where, what, f"{most}", _("Look at nvidia-smi nvlink -s."))
            yield HostFinding("lost_link", "warning", fault, "nvlink_down")
    if shape.topology is not None:
        own = {device.bus_id for device in shape.topology.devices}
        for link in shape.topology.links:
            if link.target in own and link.target == shape.topology.devices[link.pci].bus_id:
                what = _("{kind} of {bus_id} leads to itself.").format(
                    kind=link.kind, bus_id=link.target
                )
                fault = Fault(f"{shape.name}:{link.line}", what)
                yield HostFinding("link_to_itself", "warning", fault)


def _no_classes(shape: HostShape) -> Iterator[HostFinding]:
    if shape.topology is None:
        return
    unknown = [device for device in shape.topology.devices if device.kind == "unknown"]
    if unknown:
        what = _("{n} devices have no class: whether GPU or NIC, only the host knows.").format(
            n=len(unknown)
        )
        where = f"{shape.name}:{unknown[0].line}"
        remedy = _("Dump the topology on the host: NCCL_TOPO_DUMP_FILE.")
        yield HostFinding("no_class", "note", Fault(where, what, "", remedy))
