"""Packing of switches and managers into network racks, those of one group together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Site

__all__ = ["POWER_SLACK_W", "Cabinet", "Device", "pack"]

CABLE_UNITS = 1
"""Free rack units below each device of a network rack, for cables; assumed."""

POWER_SLACK_W = 1e-3
"""Rounding that a sum of powers may carry above the rack's limit [W]."""


@dataclass(frozen=True)
class Device:
    """A switch or manager to be placed.

    Parameters
    ----------
    row
        Its row in the fabric's table.
    is_switch
        False for a manager.
    model
        Catalogue name, for messages.
    tier
        Tier of a switch; managers stand with the highest.
    units, max_w
        Height [rack units] and largest power [W].
    serves
        First and last compute rack below it.
    """

    row: int
    is_switch: bool
    model: str
    tier: int
    units: int
    max_w: float
    serves: tuple[int, int]


@dataclass
class Cabinet:
    """A network rack that is being filled from the top down."""

    units: int
    limit_w: float
    devices: list[Device] = field(default_factory=list)
    lowest_units: list[int] = field(default_factory=list)
    power_w: float = 0.0

    def fits(self, devices: Iterable[Device]) -> bool:
        """Tell whether all the devices still go in."""
        bottom, power_w = self._bottom, self.power_w
        for device in devices:
            bottom -= device.units
            power_w += device.max_w
            if bottom < 1 or power_w > self.limit_w + POWER_SLACK_W:
                return False
            bottom -= CABLE_UNITS
        return True

    def put(self, device: Device) -> None:
        """Place a device below the others."""
        self.lowest_units.append(self._bottom - device.units)
        self.devices.append(device)
        self.power_w += device.max_w

    @property
    def _bottom(self) -> int:
        """Lowest unit that is taken, from 1; one above the top of an empty rack."""
        if not self.devices:
            return self.units + 1
        return self.lowest_units[-1] - CABLE_UNITS

    @property
    def serves(self) -> tuple[int, int]:
        """First and last compute rack below its switches (its managers, if it has no switch)."""
        below = [d.serves for d in self.devices if d.is_switch]
        below = below or [d.serves for d in self.devices]
        return min(first for first, _last in below), max(last for _first, last in below)


def pack(devices: Sequence[Device], site: Site) -> list[Cabinet]:
    """Return the network racks that hold the devices, in their order.

    All in one rack where they fit. Else the switches of one tier that serve the same compute
    racks go to the rack of their neighbours if they all fit there, or begin a rack of their own.

    Raises
    ------
    InputError
        If a device alone is more than a rack may hold.
    """
    _check(devices, site)
    limit_w = site.rack_power_kw * 1000.0
    alone = Cabinet(site.rack_units, limit_w)
    if alone.fits(devices):
        for device in devices:
            alone.put(device)
        return [alone] if devices else []
    cabinets: list[Cabinet] = []
    for _tier, peers in groupby(devices, key=lambda device: device.tier):
        current = Cabinet(site.rack_units, limit_w)
        cabinets.append(current)
        for _serves, group in groupby(peers, key=lambda device: device.serves):
            members = list(group)
            if current.devices and not current.fits(members):
                current = Cabinet(site.rack_units, limit_w)
                cabinets.append(current)
            for device in members:
                if not current.fits([device]):
                    current = Cabinet(site.rack_units, limit_w)
                    cabinets.append(current)
                current.put(device)
    return cabinets


def _check(devices: Sequence[Device], site: Site) -> None:
    faults: list[Fault] = []
    for model, units, max_w in sorted({(d.model, d.units, d.max_w) for d in devices}):
        if units > site.rack_units:
            faults.append(
                Fault(
                    "site.rack_units",
                    _("a {model} takes {units} rack units, a rack has {limit}.").format(
                        model=model, units=units, limit=site.rack_units
                    ),
                    _("{units} or more").format(units=units),
                )
            )
        if max_w > site.rack_power_kw * 1000.0 + POWER_SLACK_W:
            faults.append(
                Fault(
                    "site.rack_power_kw",
                    _("a {model} draws up to {kw:.2f} kW, a rack may draw {limit:g} kW.").format(
                        model=model, kw=max_w / 1000.0, limit=site.rack_power_kw
                    ),
                    _("{kw:.2f} or more").format(kw=max_w / 1000.0),
                    _("Raise site.rack_power_kw or choose another switch."),
                )
            )
    if faults:
        raise InputError(faults)
