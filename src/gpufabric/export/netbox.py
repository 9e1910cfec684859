"""NetBox: sites, racks, device types, devices, interfaces and cables as files for bulk import.

Import them in this order: ``1-manufacturers.csv``, ``2-device-roles.csv``, ``3-sites.csv``,
``4-device-types.yaml``, ``5-racks.csv``, ``6-devices.csv``, ``7-interfaces.csv``, ``8-cables.csv``.
Device types carry no interface templates, since breakouts differ from switch to switch; every
interface is in its own file. Each link is a cable of its own; links that share a breakout cable
have the same label. Everything has status ``planned``.

Source: https://github.com/netbox-community/netbox, netbox/dcim/forms/bulk_import.py (columns of
each form) and netbox/dcim/choices.py (interface and cable types);
https://github.com/netbox-community/devicetype-library (YAML).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.host import Host
from gpufabric.catalog.switch import Switch
from gpufabric.core.text import _
from gpufabric.export.interfaces import interface_names
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring, slug
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import SWITCH_TIERS, Table

__all__ = ["EXPORT", "netbox_files"]

Ints = npt.NDArray[np.int64]

_ROLES = MappingProxyType(
    {"host": "2196f3", "manager": "9e9e9e", "leaf": "4caf50", "spine": "ff9800", "core": "f44336"}
)
"""Device roles with their colours."""

_INTERFACE_TYPES = MappingProxyType(
    {
        ("osfp1600", 1600): "1.6tbase-x-osfp1600",
        ("osfp", 800): "800gbase-x-osfp",
        ("osfp", 400): "400gbase-x-osfp",
        ("qsfp-dd", 800): "800gbase-x-qsfpdd",
        ("qsfp-dd", 400): "400gbase-x-qsfpdd",
        ("qsfp112", 400): "400gbase-x-qsfp112",
        ("qsfp56", 200): "200gbase-x-qsfp56",
        ("qsfp28", 100): "100gbase-x-qsfp28",
    }
)
_CABLE_TYPES = MappingProxyType(
    {"dac": "dac-passive", "acc": "dac-active", "aec": "dac-active", "aoc": "aoc"}
)
_UNKNOWN_MAKER = "Unknown"


def netbox_files(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the import files of `fabric` by name; the names begin with the order of import."""
    wiring = Wiring(fabric, options.stage)
    site = slug(fabric.name)
    makers = sorted({_maker(fabric, model, options) for model in _models(wiring)})
    roles = [(name, name, colour) for name, colour in _ROLES.items()]
    return {
        "1-manufacturers.csv": _csv(("name", "slug"), ((name, slug(name)) for name in makers)),
        "2-device-roles.csv": _csv(("name", "slug", "color"), roles),
        "3-sites.csv": _csv(
            ("name", "slug", "status", "comments"),
            [(site, site, "planned", f"gpufabric fabric {fabric.content_hash}")],
        ),
        "4-device-types.yaml": "".join(_device_types(wiring, options)),
        "5-racks.csv": _csv(("site", "name", "status", "width", "u_height"), _racks(fabric, site)),
        "6-devices.csv": _csv(
            (
                *("name", "role", "manufacturer", "device_type", "status", "site"),
                *("rack", "position", "face", "description"),
            ),
            _devices(wiring, site, options),
        ),
        "7-interfaces.csv": _csv(
            ("device", "name", "type", "speed", "enabled", "description"),
            _interfaces(wiring, options),
        ),
        "8-cables.csv": _csv(
            (
                *("side_a_device", "side_a_type", "side_a_name"),
                *("side_b_device", "side_b_type", "side_b_name"),
                *("type", "status", "label", "length", "length_unit", "description"),
            ),
            _cables(wiring, options),
        ),
    }


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


# Models -------------------------------------------------------------------------------------


def _models(wiring: Wiring) -> list[int]:
    """Return the model numbers of the hosts and switches, in order."""
    fabric = wiring.fabric
    used = np.concatenate(
        [fabric.hosts["model"][wiring.hosts], fabric.switches["model"][wiring.switches]]
    )
    numbers: list[int] = np.unique(used).tolist()
    return numbers


def _entry(fabric: Fabric, model: int, options: ExportOptions) -> Switch | Host | None:
    name = fabric.models[model]
    return options.catalog.switches.get(name) or options.catalog.hosts.get(name)


def _maker(fabric: Fabric, model: int, options: ExportOptions) -> str:
    entry = _entry(fabric, model, options)
    return entry.vendor if entry else _UNKNOWN_MAKER


def _device_types(wiring: Wiring, options: ExportOptions) -> Iterator[str]:
    fabric = wiring.fabric
    for model in _models(wiring):
        entry = _entry(fabric, model, options)
        name = fabric.models[model]
        yield "---\n"
        yield f"manufacturer: {json.dumps(_maker(fabric, model, options))}\n"
        yield f"model: {json.dumps(name)}\n"
        yield f"slug: {json.dumps(slug(name))}\n"
        if entry and entry.size and entry.size.ru:
            yield f"u_height: {entry.size.ru:g}\n"
        if entry:
            yield f"description: {json.dumps(entry.title, ensure_ascii=False)}\n"


# Racks and devices --------------------------------------------------------------------------


def _racks(fabric: Fabric, site: str) -> Iterator[tuple[object, ...]]:
    for name, units in zip(
        fabric.racks["name"].tolist(), fabric.racks["units"].tolist(), strict=True
    ):
        yield site, name, "planned", 19, units


def _devices(wiring: Wiring, site: str, options: ExportOptions) -> Iterator[tuple[object, ...]]:
    fabric = wiring.fabric
    for row in wiring.hosts.tolist():
        role = "manager" if fabric.hosts["role"][row] else "host"
        yield _device(fabric, fabric.hosts, row, (role, site), options)
    for row in wiring.switches.tolist():
        role = SWITCH_TIERS[int(fabric.switches["tier"][row])]
        yield _device(fabric, fabric.switches, row, (role, site), options)


def _device(
    fabric: Fabric, table: Table, row: int, role_and_site: tuple[str, str], options: ExportOptions
) -> tuple[object, ...]:
    role, site = role_and_site
    facts = table.row(row)
    is_placed = facts["rack"] >= 0
    notes = [f"{key} {facts[key]}" for key in ("plane", "rail", "su") if facts.get(key, -1) >= 0]
    return (
        facts["name"],
        role,
        _maker(fabric, facts["model"], options),
        fabric.models[facts["model"]],
        "planned",
        site,
        str(fabric.racks["name"][facts["rack"]]) if is_placed else "",
        facts["rack_unit"] if is_placed and facts["rack_unit"] else "",
        "front" if is_placed else "",
        ", ".join(notes),
    )


# Interfaces and cables ----------------------------------------------------------------------


def _interfaces(wiring: Wiring, options: ExportOptions) -> Iterator[tuple[object, ...]]:
    fabric = wiring.fabric
    ports = np.concatenate(
        [wiring.ports_of(wiring.nics, "nics"), wiring.ports_of(wiring.switches, "switches")]
    )
    rates = fabric.ports["gbps"][ports].tolist()
    rows = zip(
        wiring.devices(ports),
        interface_names(fabric, ports, options),
        map(partial(_interface_type, fabric), _cages(fabric, ports, options), rates),
        (round(gbps * 1e6) for gbps in rates),  # kb/s
        fabric.ports["port"][ports].tolist(),
        strict=True,
    )
    for device, name, kind, speed_kbps, port in rows:
        yield device, name, kind, speed_kbps, "true", f"port {port + 1}"


def _cages(fabric: Fabric, ports: Ints, options: ExportOptions) -> list[str]:
    """Return the form factor of the cage of each port, by the catalogue; empty if unknown."""
    catalog = options.catalog
    hosts = [catalog.hosts.get(name) for name in fabric.models]
    switches = [catalog.switches.get(name) for name in fabric.models]
    of_host = np.array([host.nics.cage if host else "" for host in hosts])
    of_switch = np.array([switch.ports.cage if switch else "" for switch in switches])
    is_switch = fabric.ports["is_switch"][ports] == 1
    device = fabric.ports["device"][ports]
    cages = np.empty(len(ports), object)
    cages[is_switch] = of_switch[fabric.switches["model"][device[is_switch]]]
    host = fabric.nics["host"][device[~is_switch]]
    cages[~is_switch] = of_host[fabric.hosts["model"][host]]
    written: list[str] = cages.tolist()
    return written


def _interface_type(fabric: Fabric, cage: str, gbps: float) -> str:
    if fabric.protocol == "infiniband":
        return f"infiniband-{fabric.generation}"
    return _INTERFACE_TYPES.get((cage, round(gbps)), "other")


def _cables(wiring: Wiring, options: ExportOptions) -> Iterator[tuple[object, ...]]:
    fabric = wiring.fabric
    names = [*fabric.parts, ""]  # part -1: open
    kinds = [*(_cable_type(name, options) for name in fabric.parts), ""]
    ends = [
        zip(wiring.devices(ports), interface_names(fabric, ports, options), strict=True)
        for ports in wiring.ends
    ]
    facts = [
        fabric.links[column][wiring.links].tolist() for column in ("cable", "length_m", "part")
    ]
    for (a, a_name), (b, b_name), cable, length_m, part in zip(*ends, *facts, strict=True):
        has_length = not math.isnan(length_m)
        yield (
            *(a, "dcim.interface", a_name),
            *(b, "dcim.interface", b_name),
            *(kinds[part], "planned", f"C{cable + 1:06d}"),
            *((f"{length_m:.2f}", "m") if has_length else ("", "")),
            names[part],
        )


def _cable_type(part: str, options: ExportOptions) -> str:
    entry = options.catalog.parts.get(part)
    if entry is None:
        return ""
    fibre = entry.link.fibre or ""
    optical = "mmf-om4" if fibre.startswith("om4") else "smf-os2" if fibre else ""
    return _CABLE_TYPES.get(entry.form, optical)


EXPORT = Export(
    "netbox",
    ".csv",
    lambda: _("devices, interfaces and cables for bulk import into NetBox"),
    netbox_files,
)
