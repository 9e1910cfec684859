"""Cables, modules and splitters of the compute fabric: counted link by link and cage by cage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import LINK_TIERS
from gpufabric.topology.bill import BillLine, Section, part_power, unit_price, with_later
from gpufabric.topology.cabling import Cabling
from gpufabric.topology.footprint import Footprint
from gpufabric.topology.optics import Side

__all__ = ["CableCounts", "CableKey", "ModuleKey", "cable_lines", "count_cables"]

Int = npt.NDArray[np.int64]

HOST_END, MANAGER_END, SWITCH_END = "host-end", "manager-end", "switch-end"
_ENDS = (HOST_END, MANAGER_END, SWITCH_END)
_SIDES: tuple[Side, Side] = ("a", "b")


@dataclass(frozen=True, order=True)
class ModuleKey:
    """Modules of one kind at one kind of device: their end, model of the device, and part."""

    end: str
    device: str
    part: str


@dataclass(frozen=True, order=True)
class CableKey:
    """Cables or splitters of one kind: links they serve, part, and length in metres."""

    kind: str
    part: str
    length_m: float


@dataclass
class CableCounts:
    """What the links of a fabric take.

    Parameters
    ----------
    modules, filling
        Transceivers in cages that have a link, and in cages that have none.
    cables, splitters
        Cables of every kind, and splitters between a module and its fibre.
    """

    modules: Counter[ModuleKey] = field(default_factory=Counter)
    filling: Counter[ModuleKey] = field(default_factory=Counter)
    cables: Counter[CableKey] = field(default_factory=Counter)
    splitters: Counter[CableKey] = field(default_factory=Counter)


def count_cables(
    cabling: Cabling, stage: int, *, fill_cages: bool, catalog: Catalog
) -> CableCounts:
    """Return cables, modules and splitters of the links of `stage` and before.

    Notes
    -----
    A module is one pair of device and cage that has a link over optics: a twin-port module
    serves two links. With `fill_cages`, each cage of a switch that has no link gets the module
    that is most common at switches of that model, as in the bill of NVIDIA RA-11333-001 V11.
    """
    links = cabling.fabric.links
    rows = np.flatnonzero((links.stage <= stage) & (links.part >= 0))
    counts = CableCounts()
    kinds = _kinds(cabling)
    for side in _SIDES:
        _count_modules(counts, cabling, side, rows)
        _count_splitters(counts, cabling, side, (rows, kinds))
    _count_laid(counts, cabling, stage, kinds)
    if fill_cages:
        _fill(counts, cabling, rows, stage, catalog)
    return counts


def _kinds(cabling: Cabling) -> npt.NDArray[np.str_]:
    """Return the kind of each link: its tier, with the managers' links apart."""
    names = np.array(["", *LINK_TIERS.values()])
    kinds = names[cabling.fabric.links.tier].astype("U16")
    kinds[cabling.is_manager] = "manager_leaf"
    return kinds


def _count_modules(counts: CableCounts, cabling: Cabling, side: Side, rows: Int) -> None:
    """Add the modules at one side of the links: one for each cage with a link.

    The links of a manager that lie in one cable take one module there.
    """
    fabric = cabling.fabric
    modules = [media.module(side) for media in cabling.media]
    names = ["" if module is None else module.name for module in modules]
    parts, part = np.unique(np.array(names), return_inverse=True)
    part = part.reshape(-1)[fabric.links.part[rows]]
    port = fabric.links[f"port_{side}"][rows]
    at_switch = fabric.ports.is_switch[port] == 1
    at_manager = ~at_switch & cabling.is_manager[rows]
    cage = (cabling.cages.a if side == "a" else cabling.cages.b)[rows]
    place = np.where(at_manager, -1 - fabric.links.cable[rows].astype(np.int64), cage)
    end = np.where(at_switch, 2, np.where(at_manager, 1, 0))
    _place, first = np.unique(place, return_index=True)
    kind = np.stack([end[first], _model(fabric, port[first]), part[first]])
    for (at, model, index), count in _tally(kind):
        if parts[index]:
            key = ModuleKey(_ENDS[at], fabric.models[model], str(parts[index]))
            counts.modules[key] += count


def _model(fabric: Fabric, port: npt.NDArray[np.int32]) -> Int:
    """Return the model of the host or switch that owns each port."""
    models = np.concatenate([fabric.hosts.model, fabric.switches.model]).astype(np.int64)
    return models[fabric.port_vertex[port]]


def _count_splitters(
    counts: CableCounts,
    cabling: Cabling,
    side: Side,
    where: tuple[Int, npt.NDArray[np.str_]],
) -> None:
    """Add the splitters at one side: one for each connector of a module that is split."""
    rows, kinds = where
    cages = cabling.cages
    cage, offset_gbps = (
        (cages.a, cages.a_offset_gbps) if side == "a" else (cages.b, cages.b_offset_gbps)
    )
    for index, media in enumerate(cabling.media):
        splitter = media.splitter_a if side == "a" else media.splitter_b
        module = media.module(side)
        if splitter is None or module is None or not module.link_gbps:
            continue
        mine = rows[cabling.fabric.links.part[rows] == index]
        connector = np.floor(offset_gbps[mine] / module.link_gbps).astype(np.int64)
        _key, first = np.unique(cage[mine] << 8 | connector, return_index=True)
        for kind, count in Counter(kinds[mine[first]].tolist()).items():
            counts.splitters[CableKey(kind, splitter.name, 0.0)] += count


def _count_laid(
    counts: CableCounts, cabling: Cabling, stage: int, kinds: npt.NDArray[np.str_]
) -> None:
    """Add the cables that are laid: one for each number in ``links.cable``."""
    links = cabling.fabric.links
    rows = cabling.first_links
    rows = rows[(links.stage[rows] <= stage) & (links.part[rows] >= 0)]
    laid = Counter(
        zip(
            kinds[rows].tolist(),
            links.part[rows].tolist(),
            np.round(links.length_m[rows].astype(np.float64), 3).tolist(),
            strict=True,
        )
    )
    for (kind, part, length_m), count in laid.items():
        media = cabling.media[part]
        counts.cables[CableKey(kind, media.cable.name, length_m)] += count * media.cables_per_link


def _fill(counts: CableCounts, cabling: Cabling, rows: Int, stage: int, catalog: Catalog) -> None:
    """Add a module for each cage without a link of every switch."""
    fabric = cabling.fabric
    switches, n_models = fabric.switches, len(fabric.models)
    port = np.concatenate([fabric.links.port_a[rows], fabric.links.port_b[rows]])
    cage = np.concatenate([cabling.cages.a[rows], cabling.cages.b[rows]])
    at_switch = fabric.ports.is_switch[port] == 1
    _cage, first = np.unique(cage[at_switch], return_index=True)
    taken = np.bincount(_model(fabric, port[at_switch][first]), minlength=n_models)
    present = np.bincount(switches.model[switches.stage <= stage], minlength=n_models)
    for index, model in enumerate(fabric.models):
        if not present[index]:
            continue
        free = int(present[index]) * catalog.switch(model).ports.cages - int(taken[index])
        there = [
            (count, key)
            for key, count in counts.modules.items()
            if key.end == SWITCH_END and key.device == model
        ]
        if there and free:
            counts.filling[max(there)[1]] += free


def _tally(columns: Int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield each different column, and how often it is there."""
    kinds, counts = np.unique(columns, axis=1, return_counts=True)
    for column, count in enumerate(counts.tolist()):
        yield tuple(kinds[:, column].tolist()), count


# Lines --------------------------------------------------------------------------------------


def cable_lines(
    today: CableCounts,
    total: CableCounts,
    section: Section,
    prints: Mapping[str, Footprint],
    catalog: Catalog,
) -> list[BillLine]:
    """Return the lines of modules, cables and splitters, for today and later.

    Parameters
    ----------
    today, total
        Counts today, and at the target size.
    section
        Network they belong to.
    prints
        Power of the devices, which may hold that of the modules in them.
    catalog
        Parts by name.
    """
    lines = [
        _module_line(key, (today, total), section, prints.get(key.device), catalog)
        for key in sorted({*today.modules, *total.modules, *today.filling, *total.filling})
    ]
    hold_optics = all(
        device.typical_has_optics for name, device in prints.items() if name in catalog.switches
    )
    for now, later in ((today.cables, total.cables), (today.splitters, total.splitters)):
        lines += [
            _cable_line(key, (now[key], later[key]), (section, hold_optics), catalog)
            for key in sorted({*now, *later})
        ]
    return lines


def _module_line(
    key: ModuleKey,
    counts: tuple[CableCounts, CableCounts],
    section: Section,
    device: Footprint | None,
    catalog: Catalog,
) -> BillLine:
    part = catalog.part(key.part)
    today, total = (entry.modules[key] + entry.filling[key] for entry in counts)
    filling = counts[0].filling[key]
    at_switch = key.end == SWITCH_END
    in_typical = not at_switch or (device is not None and device.typical_has_optics)
    note = _("one a cage of {device} with a link").format(device=key.device)
    if filling:
        note += ", " + _("and {n:,} in cages without one").format(n=filling)
    line = BillLine(
        section,
        part.form,
        key.end,
        part.name,
        part.title,
        today,
        price=unit_price(part.price),
        power=part_power(part.power_w, is_in_typical=in_typical, is_in_max=True),
        note=note,
    )
    return with_later(line, total)


def _cable_line(
    key: CableKey, counts: tuple[int, int], where: tuple[Section, bool], catalog: Catalog
) -> BillLine:
    """Return the line of a cable; its ends at switches draw power, those at hosts are theirs."""
    part = catalog.part(key.part)
    section, hold_optics = where
    length_m = key.length_m or None
    ends = 1 if key.kind in ("host_leaf", "manager_leaf") else 2
    line = BillLine(
        section,
        part.form,
        key.kind,
        part.name,
        part.title,
        counts[0],
        length_m=length_m,
        price=unit_price(part.price, length_m),
        power=part_power(part.power_w, is_in_typical=hold_optics, is_in_max=True, ends=ends),
        note=_("splitters at a module") if length_m is None else "",
    )
    return with_later(line, counts[1])
