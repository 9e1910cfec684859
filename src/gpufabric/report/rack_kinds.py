"""Racks that look alike, gathered: what stands in each kind, how many there are, its power."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpufabric.model.fabric import Fabric
from gpufabric.topology.floor import row_letters
from gpufabric.topology.footprint import Footprint
from gpufabric.topology.rack_power import RackPower

__all__ = ["RackDevice", "RackKind", "rack_kinds"]

ROLE_MANAGER = 1


class RackDevice(NamedTuple):
    """One device in a rack: lowest unit, height, what it is, and its name in the rack shown."""

    unit: int
    units: int
    model: str
    tier: int
    """0 host, 1 leaf, 2 spine, 3 core, -1 manager."""
    is_later: bool
    name: str


@dataclass(frozen=True)
class RackKind:
    """Racks with the same devices at the same units.

    Parameters
    ----------
    letter
        Name of the kind on the drawing.
    is_network
        True if the racks hold no compute host.
    racks
        Rows of `racks`, in order.
    units
        Height of the rack [rack units].
    devices
        Devices of the first of these racks, from the bottom.
    max_w, typical_w
        Power of one such rack [W].
    """

    letter: str
    is_network: bool
    racks: tuple[int, ...]
    units: int
    devices: tuple[RackDevice, ...]
    max_w: float
    typical_w: float

    @property
    def used_units(self) -> int:
        """Rack units taken."""
        return sum(device.units for device in self.devices)

    @property
    def is_later(self) -> bool:
        """Whether all that stands in it is bought when the cluster grows."""
        return bool(self.devices) and all(device.is_later for device in self.devices)


def rack_kinds(
    fabric: Fabric, footprints: Mapping[str, Footprint], power: RackPower
) -> tuple[RackKind, ...]:
    """Return the kinds of racks: compute racks first, the most frequent first."""
    content = _contents(fabric, footprints)
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rack in range(len(fabric.racks)):
        devices = tuple(sorted(content.get(rack, ())))
        key = (
            int(fabric.racks.kind[rack]),
            int(fabric.racks.units[rack]),
            tuple(device[:-1] for device in devices),
        )
        groups[key].append(rack)
    order = sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[1][0]))
    return tuple(
        _kind(fabric, power, row_letters(index), racks, tuple(sorted(content.get(racks[0], ()))))
        for index, (_key, racks) in enumerate(order)
    )


def _kind(
    fabric: Fabric,
    power: RackPower,
    letter: str,
    racks: list[int],
    devices: tuple[RackDevice, ...],
) -> RackKind:
    first = racks[0]
    return RackKind(
        letter,
        bool(fabric.racks.kind[first] == 1),
        tuple(racks),
        int(fabric.racks.units[first]),
        devices,
        float(power.max_w[first]),
        float(power.typical_w[first]),
    )


def _contents(fabric: Fabric, footprints: Mapping[str, Footprint]) -> dict[int, list[RackDevice]]:
    """Return the devices of every rack."""
    found: dict[int, list[RackDevice]] = defaultdict(list)
    for table, tiers in (
        (fabric.hosts, np.where(fabric.hosts.role == ROLE_MANAGER, -1, 0)),
        (fabric.switches, fabric.switches.tier),
    ):
        rows = zip(
            table.rack.tolist(),
            table.rack_unit.tolist(),
            table.model.tolist(),
            tiers.tolist(),
            table.stage.tolist(),
            table.name.tolist(),
            strict=True,
        )
        for rack, unit, model, tier, stage, name in rows:
            if rack >= 0:
                print_ = footprints[fabric.models[model]]
                found[rack].append(
                    RackDevice(unit, print_.units, print_.model, tier, stage > 0, name)
                )
    return found
