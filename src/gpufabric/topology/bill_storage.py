"""Lines of the storage network: switches, managers, and cables of an assumed length."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpufabric.catalog.collection import Catalog
from gpufabric.core.text import _
from gpufabric.topology.bill import BillLine, unit_price
from gpufabric.topology.bill_cables import (
    HOST_END,
    SWITCH_END,
    CableCounts,
    CableKey,
    ModuleKey,
    cable_lines,
)
from gpufabric.topology.bill_devices import manager_line, switch_line
from gpufabric.topology.decision import Decision
from gpufabric.topology.design import Design
from gpufabric.topology.footprint import switch_footprint
from gpufabric.topology.optics import LinkClass, Media, ordered_lengths
from gpufabric.topology.storage_network import LINK_M, MANAGERS, StorageCounts, StorageDesign

__all__ = ["StorageLines", "storage_lines"]


@dataclass(frozen=True)
class StorageLines:
    """Lines of a storage network, and what was assumed for them."""

    lines: tuple[BillLine, ...]
    decisions: tuple[Decision, ...]


def storage_lines(
    storage: StorageDesign, design: Design, appliance: str, catalog: Catalog
) -> StorageLines:
    """Return the lines of a storage network, all in the section ``storage``.

    `appliance` is the catalogue name of its subnet managers.
    """
    switch = storage.switch
    lines: list[BillLine] = []
    for use in ("leaf", "spine", "core"):
        counts = (getattr(storage.today, use), getattr(storage.later, use))
        lines.append(switch_line("storage", use, switch, counts))
    managers = MANAGERS if switch.fabric == "infiniband" else 0
    if managers:
        lines.append(manager_line("storage", appliance, (managers, managers), catalog))
    cables, decisions = _cables(storage, design, catalog)
    return StorageLines((*lines, *cables), decisions)


def _cables(
    storage: StorageDesign, design: Design, catalog: Catalog
) -> tuple[list[BillLine], tuple[Decision, ...]]:
    """Return modules and cables, or one line without a price where no part is known."""
    if not storage.laid:
        return [_open_line(storage)], ()
    names = (design.host.name, storage.switch.name)
    today, total = (_count(names, storage.laid, now) for now in (storage.today, storage.later))
    prints = {storage.switch.name: switch_footprint(storage.switch)}
    lines = cable_lines(today, total, "storage", prints, catalog)
    why = _(
        "Modules and fibre of {length:g} m for every link, assumed: the storage network is not "
        "placed in racks. Cables and modules of the storage targets are not counted."
    ).format(length=LINK_M)
    return lines, (Decision("storage cables", f"{LINK_M:g} m", why),)


def _count(
    names: tuple[str, str], laid: Iterable[tuple[LinkClass, Media]], now: StorageCounts
) -> CableCounts:
    """Return modules and cables of one stage; links are spread evenly over the switches."""
    counts = CableCounts()
    host, name = names
    above: dict[str, Literal["leaf", "spine", "core"]] = {
        "host_leaf": "leaf",
        "leaf_spine": "spine",
        "spine_core": "core",
    }
    below: dict[str, Literal["leaf", "spine"]] = {"leaf_spine": "leaf", "spine_core": "spine"}
    for link_class, media in laid:
        kind, links = link_class.kind, int(getattr(now, link_class.kind))
        length_m = float(ordered_lengths(media.cable, np.array([link_class.need_m]))[0])
        cables = -(-links // media.links_per_cable) * media.cables_per_link
        counts.cables[CableKey(kind, media.cable.name, round(length_m, 3))] += cables
        if media.module_a is not None and link_class.lower.side == "nic":
            key = ModuleKey(HOST_END, host, media.module_a.name)
            counts.modules[key] += links
        elif media.module_a is not None:
            key = ModuleKey(SWITCH_END, name, media.module_a.name)
            switches = int(getattr(now, below[kind]))
            counts.modules[key] += _cages(links, switches, link_class.lower.links_per_cage)
        if media.module_b is not None:
            key = ModuleKey(SWITCH_END, name, media.module_b.name)
            switches = int(getattr(now, above[kind]))
            counts.modules[key] += _cages(links, switches, link_class.upper.links_per_cage)
    return counts


def _cages(links: int, switches: int, per_cage: int) -> int:
    """Return the cages that `links` take when they are spread evenly over the switches."""
    if not switches:
        return 0
    each, over = divmod(links, switches)
    return over * -(-(each + 1) // per_cage) + (switches - over) * -(-each // per_cage)


def _open_line(storage: StorageDesign) -> BillLine:
    links = [
        counts.host_leaf + counts.leaf_spine + counts.spine_core
        for counts in (storage.today, storage.later)
    ]
    return BillLine(
        section="storage",
        category="fibre",
        use="host_leaf",
        name="storage-link",
        title=_("Storage link, parts open"),
        quantity=links[0],
        later=links[1] - links[0],
        price=unit_price(None),
        note=_("no part of the catalogue joins these ports"),
    )
