"""ibsim netlist: a subnet in the form that ``ibnetdiscover`` prints and ``ibsim`` reads.

The same text is the cabling plan to hold against ``ibnetdiscover`` of the real subnet. Separate
networks (planes, or rails without spines) are separate subnets and become separate files.

GUIDs are invented and the same for the same fabric: 0x0267660100000000 + 0x100 * switch row for
switches, 0x0267660200000000 + 0x100 * port row for adapters (the leading 02 marks a locally
administered EUI-64). Each NIC port is an adapter of its own, as ConnectX presents it. The first
adapter of a file is a fabric manager where there is one: ibsim attaches programs there unless
SIM_HOST says otherwise.

Source: https://github.com/linux-rdma/ibsim, README and ibsim/sim_net.c (what is parsed, and that
the form is that of ``ibnetdiscover``); infiniband-diags, ibnetdiscover(8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError, UnsupportedError, nearest
from gpufabric.core.text import _
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring
from gpufabric.model.fabric import Fabric

__all__ = ["EXPORT", "adapter_guid", "ibsim_netlist", "node_description", "switch_guid"]

Ints = npt.NDArray[np.int64]

_SWITCH_GUID = 0x0267660100000000
_ADAPTER_GUID = 0x0267660200000000
_VENDOR = 0x2C9
_SWITCH_DEVICE = 0xD2F2  # Quantum-2
_ADAPTER_DEVICE = 0x1021  # ConnectX-7

LANE_GBPS = MappingProxyType({"edr": 25.0, "hdr": 50.0, "ndr": 100.0, "xdr": 200.0})
"""Rate of one lane by generation, slowest first [Gb/s]."""

_WIDTHS = (1, 2, 4, 8, 12)


def switch_guid(switch: int) -> int:
    """Return the GUID that exports give to the switch of that row."""
    return _SWITCH_GUID + 0x100 * switch


def adapter_guid(port: int) -> int:
    """Return the GUID of the adapter behind a NIC port; the port's own GUID is one higher."""
    return _ADAPTER_GUID + 0x100 * port


def node_description(fabric: Fabric, port: int) -> str:
    """Return the node description of the adapter behind a NIC port, such as ``host-1 mlx5_3``."""
    row = fabric.ports.row(port)
    nic = fabric.nics.row(row["device"])
    return f"{fabric.hosts['name'][nic['host']]} mlx5_{nic['index'] * nic['n_ports'] + row['port']}"


def ibsim_netlist(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the netlist of every subnet of `fabric`, by file name.

    Raises
    ------
    UnsupportedError
        If the fabric is not InfiniBand, or a link's rate is no InfiniBand rate.
    InputError
        If the speed cap is no InfiniBand generation.
    """
    if fabric.protocol != "infiniband":
        raise UnsupportedError(
            _("ibsim simulates InfiniBand subnets; this fabric is {protocol}.").format(
                protocol=fabric.protocol
            )
        )
    wiring = Wiring(fabric, options.stage)
    speeds = _Speeds(fabric, options.speed_cap)
    networks = wiring.networks
    names = [f"subnet-{number}.net" for number in range(1, len(networks) + 1)]
    if len(networks) == 1:
        names = ["fabric.net"]
    return {
        name: "\n".join(_lines(wiring, switches, speeds))
        for name, switches in zip(names, networks, strict=True)
    }


class _Speeds:
    """Rates as InfiniBand writes them, such as ``4xNDR``, capped where a reader knows no more."""

    def __init__(self, fabric: Fabric, cap: str) -> None:
        if cap and cap not in LANE_GBPS:
            raise InputError(
                Fault("speed cap", f'"{cap}".', ", ".join(LANE_GBPS), nearest(cap, list(LANE_GBPS)))
            )
        self._generation = fabric.generation
        self.cap = cap
        generations = list(LANE_GBPS)
        self.is_capped = bool(cap) and generations.index(cap) < generations.index(fabric.generation)

    def word(self, gbps: float) -> str:
        """Return width and lane speed of a link."""
        lane_gbps = LANE_GBPS[self._generation]
        width = gbps / lane_gbps
        if width not in _WIDTHS:
            raise UnsupportedError(
                _("{gbps} Gb/s is no rate of {generation} InfiniBand.").format(
                    gbps=f"{gbps:g}", generation=self._generation.upper()
                )
            )
        return f"{width:.0f}x{(self.cap if self.is_capped else self._generation).upper()}"


def _lines(wiring: Wiring, switches: Ints, speeds: _Speeds) -> Iterator[str]:
    fabric = wiring.fabric
    yield f"# gpufabric fabric {fabric.content_hash}, {fabric.family}, {fabric.generation}"
    if speeds.is_capped:
        yield (
            f"# Speed cap: links run at {fabric.generation.upper()} and are written as "
            f"{speeds.cap.upper()}, the fastest that the reader of this file knows."
        )
    ports = wiring.ports_of(switches, "switches")
    linked = ports[wiring.peer[ports] >= 0]
    peers = wiring.peer[linked]
    adapters = np.sort(peers[fabric.ports["is_switch"][peers] == 0])
    role = fabric.hosts["role"][fabric.port_vertex[adapters]]
    for port in adapters[np.argsort(-role, kind="stable")].tolist():
        yield from _adapter(wiring, port, speeds)
    for switch in switches.tolist():
        yield from _switch(wiring, switch, speeds)
    yield ""


def _adapter(wiring: Wiring, port: int, speeds: _Speeds) -> Iterator[str]:
    fabric = wiring.fabric
    guid = adapter_guid(port)
    yield from _identity(_ADAPTER_DEVICE, guid)
    yield f"caguid=0x{guid:016x}"
    yield f'Ca\t1 "H-{guid:016x}"\t\t# "{node_description(fabric, port)}"'
    far = int(wiring.peer[port])
    name, number = wiring.devices(np.array([far]))[0], int(fabric.ports["port"][far]) + 1
    switch = int(fabric.ports["device"][far])
    yield (
        f'[1]({guid + 1:x}) \t"S-{switch_guid(switch):016x}"[{number}]\t\t'
        f'# lid 0 lmc 0 "{name}" lid 0 {speeds.word(float(fabric.ports["gbps"][far]))}'
    )


def _switch(wiring: Wiring, switch: int, speeds: _Speeds) -> Iterator[str]:
    fabric = wiring.fabric
    row = fabric.switches.row(switch)
    guid = switch_guid(switch)
    yield from _identity(_SWITCH_DEVICE, guid)
    yield f"switchguid=0x{guid:016x}({guid:x})"
    yield (
        f'Switch\t{row["n_ports"]} "S-{guid:016x}"\t\t# "{row["name"]}" enhanced port 0 lid 0 lmc 0'
    )
    first = row["port_first"]
    for number, far in enumerate(wiring.peer[first : first + row["n_ports"]].tolist(), 1):
        if far >= 0:
            speed = speeds.word(float(fabric.ports["gbps"][far]))
            yield f"[{number}]\t{_far_end(fabric, far)} lid 0 {speed}"


def _far_end(fabric: Fabric, far: int) -> str:
    """Return the far end of a switch port as ibnetdiscover writes it."""
    if fabric.ports["is_switch"][far]:
        switch = int(fabric.ports["device"][far])
        name = fabric.switches["name"][switch]
        return f'"S-{switch_guid(switch):016x}"[{fabric.ports["port"][far] + 1}]\t\t# "{name}"'
    guid = adapter_guid(far)
    return f'"H-{guid:016x}"[1]({guid + 1:x}) \t\t# "{node_description(fabric, far)}"'


def _identity(device: int, guid: int) -> Sequence[str]:
    return ("", f"vendid=0x{_VENDOR:x}", f"devid=0x{device:x}", f"sysimgguid=0x{guid:016x}")


EXPORT = Export(
    "ibsim",
    ".net",
    lambda: _("InfiniBand subnets for ibsim and OpenSM, as ibnetdiscover prints them"),
    ibsim_netlist,
)
