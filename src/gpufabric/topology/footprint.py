"""Room and power of each device that stands in a rack; what is unknown is assumed and marked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.groups import Power, Sourced
from gpufabric.catalog.host import Host
from gpufabric.catalog.rule import Equipment
from gpufabric.catalog.switch import Switch
from gpufabric.core.text import _
from gpufabric.topology.decision import Decision
from gpufabric.topology.switch_choice import SwitchSet

__all__ = [
    "ASSUMED_OPTIC_W_PER_GBPS",
    "Footprint",
    "assumption_decisions",
    "fabric_footprints",
    "host_footprint",
    "host_power_rule",
    "manager_footprint",
    "manager_power_rule",
    "switch_footprint",
    "switch_power_rule",
]

ASSUMED_GPU_W = 1275.0
"""Power of a server for each GPU [W].

Source: SemiAnalysis (2024-06), 700 W for an H100 and 575 W for the rest of its server.
"""

ASSUMED_OTHER_W = 575.0
"""The part of ``ASSUMED_GPU_W`` that is not the GPU [W]; same source."""

ASSUMED_HOST_UNITS = 8
"""Height of an 8-GPU server [rack units]: that of DGX H100."""

ASSUMED_SWITCH_W_PER_TBPS = 67.0
"""Power of a switch with optics for each Tb/s that its ports carry one way [W].

Derived: QM9700 draws 1,720 W with active cables on 64 x 400 Gb/s (NVIDIA QM97x0 manual).
"""

ASSUMED_OPTIC_W_PER_GBPS = 17.0 / 800.0
"""Power of a module for each Gb/s [W]: 17 W for MMS4X00 at 800 Gb/s (NVIDIA, 2025)."""

ASSUMED_TYPICAL_SHARE = 0.8
"""Typical power as a share of the largest where no typical figure was read; assumed."""

ASSUMED_MANAGER_W = 800.0
ASSUMED_MANAGER_UNITS = 1
"""A manager that is in no catalogue is reckoned as a common 1U server; assumed."""

CAGES_PER_UNIT = 32
"""Cages on one rack unit of a switch front, for a switch of unknown height: as on QM9700."""

_WITHOUT_OPTICS = frozenset({"passive cables", "no optics"})
"""What the catalogue writes where a figure counts no optics."""


@dataclass(frozen=True)
class Footprint:
    """Room and power of one device.

    Parameters
    ----------
    model
        Catalogue name.
    units
        Height [rack units].
    max_w
        Largest power, optics in every cage included [W].
    typical_w
        Typical power [W].
    is_rack
        True if the device is a rack of its own.
    typical_has_optics
        False if `typical_w` counts no optics.
    assumed
        Which of height, largest and typical power were assumed, in words.
    """

    model: str
    units: int
    max_w: float
    typical_w: float
    is_rack: bool = False
    typical_has_optics: bool = True
    assumed: tuple[str, ...] = ()


def fabric_footprints(
    models: Iterable[str], host: Host, switches: SwitchSet, catalog: Catalog | None
) -> dict[str, Footprint]:
    """Return the footprint of every model of a fabric that stands in a rack, by its name.

    Parameters
    ----------
    models
        Names that the fabric uses; NICs among them are left out.
    host, switches
        Entries of the design.
    catalog
        Gives the managers; without it they are assumed.
    """
    known = {switch.name: switch_footprint(switch) for switch in switches.by_tier().values()}
    known[host.name] = host_footprint(host)
    for model in models:
        if model in known or (catalog is not None and model in catalog.nics):
            continue
        known[model] = manager_footprint(model, catalog)
    return known


def host_footprint(host: Host) -> Footprint:
    """Return the footprint of a compute host.

    Notes
    -----
    Where the largest power is unknown it is assumed to be that of the GPUs (or 1,275 W a GPU)
    and 575 W a GPU for the rest of the server.
    """
    power = host.power
    gpu_w = power.gpu_w if power is not None else None
    each_w = ASSUMED_GPU_W if gpu_w is None else gpu_w + ASSUMED_OTHER_W
    max_w, typical_w, words = _host_power(power, host.gpus * each_w)
    units = ASSUMED_HOST_UNITS * math.ceil(host.gpus / 8)
    if host.size is not None:
        units = math.ceil(host.size.ru)
    assumed = (*((_("height"),) if host.size is None else ()), *words)
    return Footprint(
        host.name, units, max_w, typical_w, is_rack=host.mount == "rack", assumed=assumed
    )


def switch_footprint(switch: Switch) -> Footprint:
    """Return the footprint of a switch; its largest power counts a module in every cage.

    Notes
    -----
    In this order: the maker's largest figure with active cables; its figure with optics; its
    largest or typical figure without optics and the cages' power limit (17 W for 800 Gb/s where
    that is unknown) times the cages; 67 W for each Tb/s of the ports.

    Examples
    --------
    >>> from gpufabric.catalog.load import load_catalog
    >>> switch_footprint(load_catalog().switch("qm9700")).max_w
    1720.0
    """
    assumed: list[str] = []
    if switch.size is None:
        units = max(1, math.ceil(switch.ports.cages / CAGES_PER_UNIT))
        assumed.append(_("height"))
    else:
        units = math.ceil(switch.size.ru)
    max_w, is_assumed = _switch_max_w(switch)
    if is_assumed:
        assumed.append(_("largest power"))
    typical_w = switch.power.typical_w if switch.power is not None else None
    has_optics = True
    if typical_w is None:
        typical_w = ASSUMED_TYPICAL_SHARE * max_w
        assumed.append(_("typical power"))
    elif switch.power is not None:
        has_optics = switch.power.typical_is not in _WITHOUT_OPTICS
    return Footprint(
        switch.name, units, max_w, typical_w, typical_has_optics=has_optics, assumed=tuple(assumed)
    )


def _switch_max_w(switch: Switch) -> tuple[float, bool]:
    """Return the largest power of a switch with optics [W], and whether it is assumed."""
    ports, power = switch.ports, switch.power
    total_gbps = ports.count * ports.gbps
    if power is None or (power.max_w is None and power.typical_w is None):
        if power is not None and power.with_optics_w is not None:
            return power.with_optics_w, False
        return ASSUMED_SWITCH_W_PER_TBPS * total_gbps / 1000.0, True
    if power.max_w is not None and power.max_is not in _WITHOUT_OPTICS:
        return power.max_w, False
    if power.with_optics_w is not None:
        return power.with_optics_w, False
    bare_w = power.max_w or power.typical_w or 0.0
    if switch.max_optic_w is not None:
        return bare_w + ports.cages * switch.max_optic_w, True
    return bare_w + total_gbps * ASSUMED_OPTIC_W_PER_GBPS, True


def manager_footprint(model: str, catalog: Catalog | None) -> Footprint:
    """Return the footprint of a fabric manager: that of the catalogue, or of a 1U server."""
    entry = catalog.equipment.get(model) if catalog is not None else None
    size = entry.size if isinstance(entry, Equipment) else None
    power = entry.power if isinstance(entry, Equipment) else None
    units = ASSUMED_MANAGER_UNITS if size is None else math.ceil(size.ru)
    max_w, typical_w, words = _host_power(power, ASSUMED_MANAGER_W)
    assumed = (*((_("height"),) if size is None else ()), *words)
    return Footprint(model, units, max_w, typical_w, assumed=assumed)


def _host_power(power: Power | None, otherwise_w: float) -> tuple[float, float, tuple[str, ...]]:
    """Return largest and typical power of a server [W], and which of them are assumed."""
    assumed: list[str] = []
    max_w = power.max_w if power is not None else None
    typical_w = power.typical_w if power is not None else None
    if max_w is None:
        max_w = max(otherwise_w, typical_w or 0.0)
        assumed.append(_("largest power"))
    if typical_w is None:
        typical_w = ASSUMED_TYPICAL_SHARE * max_w
        assumed.append(_("typical power"))
    return max_w, typical_w, tuple(assumed)


def host_power_rule() -> Sourced:
    """Return what stands behind the power of a host of which the catalogue knows none."""
    return Sourced(
        source=_(
            "rule for hosts: {watts:,.0f} W a GPU (SemiAnalysis); typically {share:g} % of it, "
            "assumed"
        ).format(watts=ASSUMED_GPU_W, share=100 * ASSUMED_TYPICAL_SHARE),
        date="2024-06",
        kind="assumed",
    )


def switch_power_rule() -> Sourced:
    """Return what stands behind the power of a switch of which the catalogue knows none."""
    return Sourced(
        source=_(
            "rule for switches: {watts:g} W for each Tb/s of the ports, as QM9700 draws with "
            "active cables; typically {share:g} % of it, assumed"
        ).format(watts=ASSUMED_SWITCH_W_PER_TBPS, share=100 * ASSUMED_TYPICAL_SHARE),
        date="2026-09",
        kind="assumed",
    )


def manager_power_rule() -> Sourced:
    """Return what stands behind the power of a manager of which the catalogue knows none."""
    return Sourced(
        source=_(
            "rule for managers: {watts:g} W of a common 1U server; typically {share:g} % of it, "
            "assumed"
        ).format(watts=ASSUMED_MANAGER_W, share=100 * ASSUMED_TYPICAL_SHARE),
        date="2026-11",
        kind="assumed",
    )


def assumption_decisions(footprints: Iterable[Footprint]) -> tuple[Decision, ...]:
    """Return one decision for each device of which something was assumed."""
    return tuple(
        Decision(
            "footprint",
            print_.model,
            _(
                "Assumed: {what}. Reckoned with {units} rack units, {max_w:,.0f} W at most and "
                "{typical_w:,.0f} W typically."
            ).format(
                what=", ".join(print_.assumed),
                units=print_.units,
                max_w=print_.max_w,
                typical_w=print_.typical_w,
            ),
            _("assumed; rules in docs/models/cabling.md"),
        )
        for print_ in footprints
        if print_.assumed
    )
