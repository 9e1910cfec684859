"""NCCL's and RCCL's topology files (``NCCL_TOPO_DUMP_FILE``, ``NCCL_TOPO_FILE``) as tables.

A file is a tree: processors, below them PCIe bridges and devices, below a device its GPU or NICs,
below a GPU its NVLink or xGMI. Files written by hand for ``NCCL_TOPO_FILE`` leave most of it out;
NCCL then asks the machine, so a missing attribute is a fact (None), not a fault.

Source: NCCL 2.30.7, src/graph/topo.cc and xml.cc; RCCL, src/graph/xml.cc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.parse.xml_elements import Element, read_xml

__all__ = ["Cpu", "Gpu", "GpuLink", "NcclTopology", "Net", "PciDevice", "parse_nccl_topology"]

_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_SPEED = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*GT/s.*")
_CLASSES = (
    ("0x0300", "gpu"),
    ("0x0302", "gpu"),
    ("0x0380", "gpu"),
    ("0x1200", "gpu"),
    ("0x0200", "nic"),
    ("0x0207", "nic"),
    ("0x0604", "bridge"),
    ("0x0680", "nvswitch"),
)
"""PCI class codes; source: PCI Code and ID Assignment Specification."""

_LINKS = {"nvlink": "nvlink", "xgmi": "xgmi", "c2c": "c2c", "pcilink": "pcilink"}
_TAGS = ("system", "cpu", "pci", "gpu", "nic", "net", *_LINKS)


@dataclass(frozen=True)
class Cpu:
    """A processor's NUMA domain."""

    numa: int
    arch: str
    vendor: str
    line: int


@dataclass(frozen=True)
class PciDevice:
    """A PCIe device or bridge.

    Parameters
    ----------
    bus_id
        As written, in lower case.
    kind
        ``gpu``, ``nic``, ``bridge``, ``nvswitch`` or ``unknown``.
    cpu
        Index of its processor.
    parent
        Index of the bridge above; None below the processor itself.
    speed_gtps, width
        Of its link upwards [GT/s per lane], [lane]; None where not stated.
    vendor, device
        As written; empty where not stated.
    line
        In the file.
    """

    bus_id: str
    kind: str
    cpu: int
    parent: int | None
    speed_gtps: float | None
    width: int | None
    vendor: str
    device: str
    line: int


@dataclass(frozen=True)
class Gpu:
    """A GPU: index of its device, NCCL's numbers, architecture, whether GPUDirect RDMA works."""

    pci: int
    dev: int
    rank: int | None
    architecture: str
    has_gdr: bool | None
    line: int


@dataclass(frozen=True)
class Net:
    """A port that NCCL may use: its device's index (None if virtual), rate [Gb/s], GPUDirect."""

    name: str
    pci: int | None
    cpu: int
    speed_gbps: float | None
    port: int | None
    guid: str
    has_gdr: bool | None
    line: int


@dataclass(frozen=True)
class GpuLink:
    """Links side by side from a GPU (index of its device) to a target's bus id."""

    pci: int
    kind: str
    target: str
    target_class: str
    count: int
    line: int


@dataclass(frozen=True)
class NcclTopology:
    """What one file says; `warnings` are lines that were understood in part or not at all."""

    name: str
    version: str
    cpus: tuple[Cpu, ...]
    devices: tuple[PciDevice, ...]
    gpus: tuple[Gpu, ...]
    nets: tuple[Net, ...]
    links: tuple[GpuLink, ...]
    warnings: tuple[Fault, ...]


@dataclass
class _Tables:
    name: str
    cpus: list[Cpu] = field(default_factory=list)
    devices: list[PciDevice] = field(default_factory=list)
    gpus: list[Gpu] = field(default_factory=list)
    nets: list[Net] = field(default_factory=list)
    links: list[GpuLink] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def fault(self, element: Element, what: str, expected: str = "", remedy: str = "") -> None:
        self.faults.append(Fault(f"{self.name}:{element.line}", what, expected, remedy))

    def warn(self, element: Element, what: str, expected: str = "", remedy: str = "") -> None:
        self.warnings.append(Fault(f"{self.name}:{element.line}", what, expected, remedy))

    def number(self, element: Element, key: str, least: int = 0) -> int | None:
        """The whole number of an attribute; None where absent or, with a fault, no number."""
        text = element.attributes.get(key)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or value < least:
            what = _('{tag}: {key} is "{value}".').format(tag=element.tag, key=key, value=text[:32])
            self.fault(element, what, _("a whole number of {least} or more").format(least=least))
            return None
        return value

    def flag(self, element: Element, key: str) -> bool | None:
        value = self.number(element, key)
        return None if value is None else value > 0


def parse_nccl_topology(text: str, name: str = "topology.xml") -> NcclTopology:
    """Return the tables of one topology file.

    Parameters
    ----------
    text
        The whole file.
    name
        How messages call it.

    Raises
    ------
    InputError
        With line and reason of everything that is damaged.

    Examples
    --------
    >>> found = parse_nccl_topology(
    ...     '<system version="1"><cpu numaid="0"><pci busid="0000:3b:00.0" class="0x030200"'
    ...     ' link_speed="32.0 GT/s PCIe" link_width="16"/></cpu></system>'
    ... )
    >>> found.devices[0].kind, found.devices[0].speed_gtps, found.devices[0].width
    ('gpu', 32.0, 16)
    """
    root = read_xml(text, name)
    tables = _Tables(name)
    if root.tag != "system":
        what = _("the root element is <{tag}>.").format(tag=root.tag[:32])
        tables.fault(root, what, "<system>", _("Give a dump of NCCL's topology."))
        raise InputError(tables.faults)
    for child in root.children:
        if child.tag == "cpu":
            _read_cpu(tables, child)
        else:
            _misplaced(tables, child, "system")
    _check_targets(tables)
    if not tables.devices and not tables.nets and not tables.faults:
        tables.fault(root, _("the file has no device."), "<pci>")
    if tables.faults:
        raise InputError(tables.faults)
    return NcclTopology(
        name,
        root.attributes.get("version", ""),
        tuple(tables.cpus),
        tuple(tables.devices),
        tuple(tables.gpus),
        tuple(tables.nets),
        tuple(tables.links),
        tuple(tables.warnings),
    )


def _read_cpu(tables: _Tables, element: Element) -> None:
    numa = tables.number(element, "numaid", least=-1)
    if "numaid" not in element.attributes:
        tables.fault(element, _("cpu has no numaid."), 'numaid="0"')
    about = element.attributes
    tables.cpus.append(Cpu(numa or 0, about.get("arch", ""), about.get("vendor", ""), element.line))
    cpu = len(tables.cpus) - 1
    for child in element.children:
        if child.tag == "pci":
            _read_pci(tables, child, cpu, None)
        elif child.tag == "nic":
            _read_nic(tables, child, cpu, None)
        else:
            _misplaced(tables, child, "cpu")


def _read_pci(tables: _Tables, element: Element, cpu: int, parent: int | None) -> None:
    bus_id = element.attributes.get("busid", "").lower()
    if not _BUS_ID.fullmatch(bus_id):
        what = _('pci: busid is "{value}".').format(value=bus_id[:32])
        tables.fault(element, what, "0000:3b:00.0")
    elif bus_id in tables.lines:
        what = _("busid {bus_id} is given twice, first in line {line}.").format(
            bus_id=bus_id, line=tables.lines[bus_id]
        )
        tables.fault(element, what, _("each device once"))
    tables.lines.setdefault(bus_id, element.line)
    tables.devices.append(
        PciDevice(
            bus_id,
            _kind_of(element),
            cpu,
            parent,
            _speed(tables, element),
            tables.number(element, "link_width") or None,
            element.attributes.get("vendor", ""),
            element.attributes.get("device", ""),
            element.line,
        )
    )
    own = len(tables.devices) - 1
    for child in element.children:
        if child.tag == "pci":
            _read_pci(tables, child, cpu, own)
        elif child.tag == "gpu":
            _read_gpu(tables, child, own)
        elif child.tag == "nic":
            _read_nic(tables, child, cpu, own)
        elif child.tag == "pcilink":
            _read_link(tables, child, own)
        else:
            _misplaced(tables, child, "pci")


def _kind_of(element: Element) -> str:
    tags = {child.tag for child in element.children}
    for tag, kind in (("gpu", "gpu"), ("nic", "nic"), ("pci", "bridge")):
        if tag in tags:
            return kind
    code = element.attributes.get("class", "").lower()
    return next((kind for start, kind in _CLASSES if code.startswith(start)), "unknown")


def _speed(tables: _Tables, element: Element) -> float | None:
    text = element.attributes.get("link_speed", "")
    if not text.strip() or text.strip().lower().startswith("unknown"):
        return None
    match = _SPEED.fullmatch(text)
    if match is None:
        what = _('pci: link_speed is "{value}".').format(value=text[:32])
        tables.fault(element, what, "16.0 GT/s PCIe")
        return None
    return float(match[1])


def _read_gpu(tables: _Tables, element: Element, pci: int) -> None:
    dev = tables.number(element, "dev")
    if "dev" not in element.attributes:
        tables.fault(element, _("gpu has no dev."), 'dev="0"')
    architecture = element.attributes.get("gcn") or "sm" + element.attributes.get("sm", "")
    tables.gpus.append(
        Gpu(
            pci,
            dev or 0,
            tables.number(element, "rank", least=-1),
            architecture,
            tables.flag(element, "gdr"),
            element.line,
        )
    )
    for child in element.children:
        if child.tag in _LINKS:
            _read_link(tables, child, pci)
        else:
            _misplaced(tables, child, "gpu")


def _read_link(tables: _Tables, element: Element, pci: int) -> None:
    about = element.attributes
    count = tables.number(element, "count", least=0)
    tables.links.append(
        GpuLink(
            pci,
            _LINKS[element.tag],
            about.get("target", "").lower(),
            about.get("tclass", "").lower(),
            1 if count is None else count,
            element.line,
        )
    )
    if element.tag in {"nvlink", "xgmi"} and not about.get("target"):
        what = _("{tag} has no target.").format(tag=element.tag)
        tables.fault(element, what, 'target="0000:3b:00.0"')


def _read_nic(tables: _Tables, element: Element, cpu: int, pci: int | None) -> None:
    for child in element.children:
        if child.tag != "net":
            _misplaced(tables, child, "nic")
            continue
        name = child.attributes.get("name", "")
        if not name:
            tables.fault(child, _("net has no name."), 'name="mlx5_0"')
        speed_mbps = tables.number(child, "speed")
        tables.nets.append(
            Net(
                name,
                pci,
                cpu,
                speed_mbps / 1000 if speed_mbps else None,
                tables.number(child, "port"),
                child.attributes.get("guid", ""),
                tables.flag(child, "gdr"),
                child.line,
            )
        )


def _misplaced(tables: _Tables, element: Element, inside: str) -> None:
    """A known element in the wrong place is damage; an unknown one is a newer NCCL's."""
    if element.tag in _TAGS:
        what = _("<{tag}> stands in <{inside}>.").format(tag=element.tag, inside=inside)
        tables.fault(element, what, _("its place in NCCL's order: system, cpu, pci, gpu or nic"))
        return
    what = _("<{tag}> is unknown and was left out.").format(tag=element.tag[:32])
    tables.warn(element, what, ", ".join(_TAGS), nearest(element.tag, _TAGS))


def _check_targets(tables: _Tables) -> None:
    """A link to a GPU or NVSwitch that the file does not list, or to itself, is doubtful."""
    for link in tables.links:
        element = Element(link.kind, {}, link.line)
        if link.target and link.target == tables.devices[link.pci].bus_id:
            tables.warn(
                element,
                _("{kind} of {bus_id} leads to itself.").format(kind=link.kind, bus_id=link.target),
            )
        elif link.target.startswith(("fffffff", "ffff:")) or link.target_class.startswith("0x0680"):
            continue  # NVSwitches are not listed
        elif link.target and link.target not in tables.lines:
            what = _("{kind} leads to {target}, which the file does not list.").format(
                kind=link.kind, target=link.target
            )
            tables.warn(element, what)
