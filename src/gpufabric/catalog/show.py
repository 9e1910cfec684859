"""The catalogue as rows to list and groups to show, each group with its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.groups import Sourced, kind_meanings
from gpufabric.catalog.host import Host
from gpufabric.catalog.models import AnyDevice
from gpufabric.catalog.nic import Nic
from gpufabric.catalog.part import Part
from gpufabric.catalog.rule import Equipment
from gpufabric.catalog.switch import Ports, Switch
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = [
    "LIST_KINDS",
    "DeviceRow",
    "ShownGroup",
    "device_groups",
    "device_json",
    "device_rows",
]

LIST_KINDS = ("switch", "nic", "host", "part", "equipment", "media-rule", "failure-rates")
"""What a listing can be limited to."""

_PROVENANCE = frozenset(Sourced.model_fields)
_IDENTITY = ("name", "title", "aliases", "vendor")
_SHOWN_IF_UNKNOWN = frozenset(
    {
        "annual_failure_rate",
        "asic",
        "buffer_mb",
        "generation",
        "hop_latency_ns",
        "managed",
        "max_w",
        "memory_gb",
        "optics",
        "pcie",
        "power",
        "power_w",
        "price",
        "size",
        "typical_w",
        "weight_kg",
    }
)
"""Numbers that every such device has, so that their absence is worth a word."""


@dataclass(frozen=True)
class DeviceRow:
    """One line of a listing."""

    name: str
    kind: str
    vendor: str
    title: str
    summary: str
    origin: str

    def to_json(self) -> dict[str, str]:
        """Return the line as a mapping of strings."""
        return {
            "name": self.name,
            "kind": self.kind,
            "vendor": self.vendor,
            "title": self.title,
            "summary": self.summary,
            "origin": self.origin,
        }


@dataclass(frozen=True)
class ShownGroup:
    """Numbers that share one source.

    Parameters
    ----------
    title
        Name of the group in the device file; empty for what the device is called.
    rows
        Name and value of each number, as text.
    source, date, kind, note
        Where they come from; empty for names, and for what is unknown.
    """

    title: str
    rows: tuple[tuple[str, str], ...]
    source: str = ""
    date: str = ""
    kind: str = ""
    note: str = ""

    @property
    def meaning(self) -> str:
        """What the kind of source means."""
        return kind_meanings().get(self.kind, "")


def device_rows(catalog: Catalog, kind: str | None = None) -> tuple[DeviceRow, ...]:
    """Return a line for each device, or for each of one kind.

    Raises
    ------
    InputError
        If there is no such kind.
    """
    if kind is not None and kind not in LIST_KINDS:
        raise InputError(
            Fault(
                "--kind",
                _('"{value}" found.').format(value=kind),
                _("one of {names}").format(names=", ".join(LIST_KINDS)),
                nearest(kind, LIST_KINDS),
            )
        )
    return tuple(
        DeviceRow(
            device.name,
            device.device,
            device.vendor,
            device.title,
            _summary(device),
            catalog.origins.get(device.name, ""),
        )
        for device in catalog.devices
        if kind is None or device.device == kind
    )


def device_json(catalog: Catalog, device: AnyDevice) -> dict[str, Any]:
    """Return the device as its file holds it, with the file if it is the user's.

    What is unknown is null.
    """
    content = {name: _plain(value) for name, value in device.model_dump().items()}
    return {**content, "origin": catalog.origins.get(device.name)}


def device_groups(device: AnyDevice) -> tuple[ShownGroup, ...]:
    """Return the device as groups: what it is called, each group of numbers, what is unknown."""
    named: list[tuple[str, str]] = []
    plain: list[tuple[str, str]] = []
    unknown: list[tuple[str, str]] = []
    groups: list[ShownGroup] = []
    for name in type(device).model_fields:
        value = getattr(device, name)
        found = list(_sourced(name, value))
        if found:
            groups.extend(found)
        elif value is None and name in _SHOWN_IF_UNKNOWN:
            unknown.append((name, _("unknown")))
        elif value not in (None, ()) and name != "format_version":
            (named if name in _IDENTITY else plain).append((name, _text(value)))
    head = ShownGroup("", (*named, *plain))
    tail = [ShownGroup("unknown", tuple(unknown))] if unknown else []
    return (head, *groups, *tail)


def _plain(value: object) -> object:
    """Return `value` as JSON has it, with whole numbers as a file writes them."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _sourced(name: str, value: object) -> Iterator[ShownGroup]:
    """Give the groups that a field holds: itself, those in it, or those of its list."""
    if isinstance(value, Sourced):
        yield ShownGroup(
            name,
            tuple(_rows(value)),
            value.source if value.primary is None else f"{value.source}: {value.primary}",
            value.date,
            value.kind,
            value.note or "",
        )
        for inner in type(value).model_fields:
            if isinstance(getattr(value, inner), Sourced):
                yield from _sourced(f"{name}.{inner}", getattr(value, inner))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _sourced(f"{name}[{index}]", item)


def _rows(group: Sourced) -> Iterator[tuple[str, str]]:
    for name in type(group).model_fields:
        value = getattr(group, name)
        if name in _PROVENANCE or isinstance(value, Sourced):
            continue
        if value is None and name in _SHOWN_IF_UNKNOWN:
            yield name, _("unknown")
        elif value is not None and value not in ((), {}):
            yield name, _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
    if isinstance(value, BaseModel):
        return " x ".join(_text(item) for item in dict(value).values())
    if isinstance(value, tuple):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items())
    return str(value)


def _summary(device: AnyDevice) -> str:
    """What the device is, in a few words."""
    if isinstance(device, Switch):
        sets = [device.ports, *([] if device.uplinks is None else [device.uplinks])]
        return " + ".join(_ports_text(ports) for ports in sets) + f", {device.generation}"
    if isinstance(device, Nic):
        modes = " / ".join(f"{mode.ports}x{mode.gbps:g}G" for mode in device.port_modes)
        return f"{modes}, {', '.join(device.ports.cages)}"
    if isinstance(device, Host):
        nics = device.nics
        return f"{device.gpus} x {device.gpu}, {nics.count} x {nics.gbps:g}G {nics.model}"
    if isinstance(device, Part):
        return _part_text(device)
    return device.role if isinstance(device, Equipment) else ""


def _ports_text(ports: Ports) -> str:
    return f"{ports.count} x {ports.gbps:g}G {ports.cage}"


def _part_text(part: Part) -> str:
    pieces: list[str] = [part.form]
    if part.link_gbps is not None:
        pieces.append(f"{part.links_per_module}x{part.link_gbps:g}G")
    pieces += [cage for cage in (part.cage, part.far_cage) if cage is not None]
    if part.mates_with is not None:
        pieces.append(part.mates_with)
    if part.reach_m is not None:
        pieces.append(_("up to {reach:g} m").format(reach=part.reach_m))
    return ", ".join(pieces)
