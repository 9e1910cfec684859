"""Interface names: what a network OS calls a switch port, and what a host calls a NIC port.

A port lies in a cage (from 0) at a lane (from 0) of so many in that cage. A cage has electrical
lanes: 8 in OSFP and QSFP-DD, 4 in QSFP; ``width`` below. In a cage with one port:

========  ==================================  ===========================================
NOS       one port in the cage                several (breakout, or twin-port cage)
========  ==================================  ===========================================
cumulus   ``swp<cage+1>``                     ``swp<cage+1>s<lane>``
sonic     ``Ethernet<cage*width>``            ``Ethernet<cage*width + lane*width/lanes>``
eos       ``Ethernet<cage+1>/1``              ``Ethernet<cage+1>/<1 + lane*width/lanes>``
nxos      ``Ethernet1/<cage+1>``              ``Ethernet1/<cage+1>/<lane+1>``
junos     ``et-0/0/<cage>``                   ``et-0/0/<cage>:<lane>``
nvos      ``sw<cage+1>p1``                    ``sw<cage+1>p<lane+1>``
========  ==================================  ===========================================

A host names the ports of NIC ``i`` ``nic<i>``, or ``nic<i>p<port>`` where a NIC has several: the
name that the design uses and that a udev rule can give.

Source: NVIDIA Cumulus Linux 5 user guide, "Switch Port Attributes" (swp1s0); SONiC wiki, "Port
Configuration" (first lane of the port); Arista EOS user manual, "Ethernet Ports" (first lane of the
port); Cisco NX-OS interfaces guide, "breakout"; Junos OS interfaces guide, "channelized
interfaces"; NVIDIA NVOS user manual, "Interfaces" (sw1p1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.export.registry import ExportOptions
from gpufabric.model.fabric import Fabric

__all__ = ["NOSES", "interface_names", "nos_of_models"]

Ints = npt.NDArray[np.int64]


class _CageForm(NamedTuple):
    """Electrical lanes and native ports of a cage."""

    width: int
    native: int


class _Place(NamedTuple):
    """Where a port lies on its switch."""

    cage: int
    lane: int
    lanes: int
    cage_form: _CageForm

    @property
    def first_lane(self) -> int:
        """First electrical lane of the port within its cage, from 0."""
        return self.lane * self.cage_form.width // self.lanes


def _cumulus(place: _Place) -> str:
    return f"swp{place.cage + 1}" + (f"s{place.lane}" if place.lanes > 1 else "")


def _sonic(place: _Place) -> str:
    return f"Ethernet{place.cage * place.cage_form.width + place.first_lane}"


def _eos(place: _Place) -> str:
    return f"Ethernet{place.cage + 1}/{place.first_lane + 1}"


def _nxos(place: _Place) -> str:
    return f"Ethernet1/{place.cage + 1}" + (f"/{place.lane + 1}" if place.lanes > 1 else "")


def _junos(place: _Place) -> str:
    return f"et-0/0/{place.cage}" + (f":{place.lane}" if place.lanes > 1 else "")


def _nvos(place: _Place) -> str:
    pieces = max(1, place.lanes // place.cage_form.native)
    port, part = divmod(place.lane, pieces)
    return f"sw{place.cage + 1}p{port + 1}" + (f"s{part + 1}" if pieces > 1 else "")


NOSES: Mapping[str, Callable[[_Place], str]] = MappingProxyType(
    {
        "cumulus": _cumulus,
        "sonic": _sonic,
        "eos": _eos,
        "nxos": _nxos,
        "junos": _junos,
        "nvos": _nvos,
    }
)
"""How each network OS names a port."""

_NOS_OF_VENDOR = MappingProxyType(
    {"nvidia": "cumulus", "arista": "eos", "cisco": "nxos", "juniper": "junos"}
)

_WIDTH_OF_CAGE = MappingProxyType({"osfp": 8, "osfp1600": 8, "qsfp-dd": 8, "sfp28": 1, "sfp56": 1})
_OTHER_WIDTH = 4


def nos_of_models(fabric: Fabric, options: ExportOptions) -> list[str]:
    """Return the network OS of each of ``fabric.models`` when it is a switch.

    It is the one asked for, else ``nvos`` for InfiniBand, else that of the vendor, else ``sonic``.

    Raises
    ------
    InputError
        If the network OS asked for is not known.
    """
    if options.nos and options.nos not in NOSES:
        raise InputError(
            Fault(
                "nos",
                f'"{options.nos}".',
                ", ".join(NOSES),
                nearest(options.nos, list(NOSES)),
            )
        )
    return [_nos(model, fabric.protocol, options) for model in fabric.models]


def _nos(model: str, protocol: str, options: ExportOptions) -> str:
    if options.nos:
        return options.nos
    if protocol == "infiniband":
        return "nvos"
    switch = options.catalog.switches.get(model)
    vendor = switch.vendor.lower() if switch else ""
    return _NOS_OF_VENDOR.get(vendor, "sonic")


def interface_names(fabric: Fabric, ports: Ints, options: ExportOptions) -> list[str]:
    """Return the interface name of each port, of switches and hosts."""
    is_switch = fabric.ports["is_switch"][ports] == 1
    names = np.empty(len(ports), object)
    names[is_switch] = _switch_names(fabric, ports[is_switch], options)
    names[~is_switch] = _nic_names(fabric, ports[~is_switch])
    written: list[str] = names.tolist()
    return written


def _switch_names(fabric: Fabric, ports: Ints, options: ExportOptions) -> list[str]:
    name_by = [NOSES[nos] for nos in nos_of_models(fabric, options)]
    forms = [_cage_form(model, options.catalog) for model in fabric.models]
    models = fabric.switches["model"][fabric.ports["device"][ports]]
    return [
        name_by[model](_Place(cage, lane, lanes, forms[model]))
        for model, cage, lane, lanes in zip(
            models.tolist(),
            fabric.ports["cage"][ports].tolist(),
            fabric.ports["lane"][ports].tolist(),
            _lanes_in_cage(fabric)[ports].tolist(),
            strict=True,
        )
    ]


def _nic_names(fabric: Fabric, ports: Ints) -> list[str]:
    nic = fabric.ports["device"][ports]
    return [
        f"nic{index}p{port}" if n_ports > 1 else f"nic{index}"
        for index, port, n_ports in zip(
            fabric.nics["index"][nic].tolist(),
            fabric.ports["port"][ports].tolist(),
            fabric.nics["n_ports"][nic].tolist(),
            strict=True,
        )
    ]


def _cage_form(model: str, catalog: Catalog) -> _CageForm:
    switch = catalog.switches.get(model)
    if switch is None:
        return _CageForm(8, 1)
    return _CageForm(_WIDTH_OF_CAGE.get(switch.ports.cage, _OTHER_WIDTH), switch.ports_per_cage)


def _lanes_in_cage(fabric: Fabric) -> Ints:
    """int64[n_ports]: ports in the cage of each port."""
    ports = fabric.ports
    key = fabric.port_vertex.astype(np.int64) << 16 | ports["cage"]
    _unique, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    lanes: Ints = counts[inverse]
    return lanes
