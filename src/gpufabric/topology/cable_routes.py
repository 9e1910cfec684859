"""How long the way of each cable is, from cage to cage over the trays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric
from gpufabric.model.spec_parts import Site
from gpufabric.topology.floor import floor_of
from gpufabric.topology.footprint import Footprint

__all__ = ["device_heights", "needed_lengths", "route_lengths"]

Float = npt.NDArray[np.float64]

RACK_UNIT_M = 0.04445
"""Height of one rack unit [m]: 1.75 inch (EIA-310)."""

RACK_BASE_M = 0.1
"""Height of the first rack unit above the floor [m]; assumed."""

SIDE_RUN_M = 0.3
"""From a cage to the side of its rack, where cables run up and down [m]: half a rack's width."""


def device_heights(fabric: Fabric, footprints: Mapping[str, Footprint]) -> Float:
    """Return float64[n_hosts + n_switches]: middle of each device above the floor [m]."""
    units = np.array([footprints[m].units if m in footprints else 0 for m in fabric.models])
    tables = (fabric.hosts, fabric.switches)
    middle = [table.rack_unit - 1 + units[table.model] / 2.0 for table in tables]
    return RACK_BASE_M + RACK_UNIT_M * np.concatenate(middle)


def route_lengths(
    fabric: Fabric, footprints: Mapping[str, Footprint], site: Site
) -> tuple[Float, npt.NDArray[np.bool_]]:
    """Return float64[n_links]: the way of each link [m]; bool[n_links]: it stays in its rack.

    Notes
    -----
    Within a rack: to the side, up or down, and back: ``0.6 + |height_a - height_b|``. Between
    racks: up to the tray at each end, and along and across the rows between them. The tray may
    lie below the racks.
    """
    rack = np.concatenate([fabric.hosts.rack, fabric.switches.rack]).astype(np.int64)
    height_m = device_heights(fabric, footprints)
    floor = floor_of(fabric.racks, site)
    a = fabric.port_vertex[fabric.links.port_a]
    b = fabric.port_vertex[fabric.links.port_b]
    is_inside = rack[a] == rack[b]
    inside_m = 2 * SIDE_RUN_M + np.abs(height_m[a] - height_m[b])
    to_tray_m = np.abs(site.tray_height_m - height_m)
    along_m = np.abs(floor.x_m[rack[a]] - floor.x_m[rack[b]])
    across_m = np.abs(floor.y_m[rack[a]] - floor.y_m[rack[b]])
    over_m = to_tray_m[a] + to_tray_m[b] + along_m + across_m
    return np.where(is_inside, inside_m, over_m), is_inside


def needed_lengths(fabric: Fabric, footprints: Mapping[str, Footprint], site: Site) -> Float:
    """Return float64[n_links]: way and slack of each link [m].

    Notes
    -----
    ``way * (1 + cable_slack_pct / 100)``, and ``cable_slack_m`` for the loops at both ends of a
    cable that leaves its rack.
    """
    way_m, is_inside = route_lengths(fabric, footprints, site)
    loops_m = np.where(is_inside, 0.0, site.cable_slack_m)
    needed: Float = way_m * (1.0 + site.cable_slack_pct / 100.0) + loops_m
    return needed
