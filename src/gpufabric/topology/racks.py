"""Racks: which one every host, switch and manager stands in, and at which unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.host import Host
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.spec_parts import Candidate, Site
from gpufabric.model.tables import SCHEMAS, Table
from gpufabric.topology.cabinets import POWER_SLACK_W, Cabinet, Device, pack
from gpufabric.topology.decision import Decision
from gpufabric.topology.floor import Floor, SlotChoice, choose_slots, lay_floor, row_letters
from gpufabric.topology.footprint import Footprint, assumption_decisions, fabric_footprints
from gpufabric.topology.host_racks import HostRacks, fill_racks, hosts_per_rack
from gpufabric.topology.switch_choice import SwitchSet

__all__ = ["Placement", "arrange", "place", "rack_stages"]

Int = npt.NDArray[np.int64]

_COMPUTE, _NETWORK = 0, 1  # values of racks.kind
_LEAF = 1  # value of switches.tier
_MANAGER = 1  # value of hosts.role


@dataclass(frozen=True)
class Placement:
    """A fabric whose devices stand in racks.

    Parameters
    ----------
    fabric
        With racks, and rack and unit of every host and switch.
    footprints
        Room and power of each model.
    decisions
        What was chosen and why.
    """

    fabric: Fabric
    footprints: Mapping[str, Footprint]
    decisions: tuple[Decision, ...]


def place(
    fabric: Fabric,
    host: Host,
    switches: SwitchSet,
    site: Site,
    candidate: Candidate,
    catalog: Catalog | None = None,
) -> Fabric:
    """Return the fabric with all its devices in racks; `arrange` gives the reasons too."""
    return arrange(fabric, host, switches, site, candidate, catalog).fabric


def arrange(
    fabric: Fabric,
    host: Host,
    switches: SwitchSet,
    site: Site,
    candidate: Candidate,
    catalog: Catalog | None = None,
) -> Placement:
    """Return the fabric with all its devices in racks, of every stage, and the reasons.

    Parameters
    ----------
    fabric
        As designed.
    host, switches
        Catalogue entries of the design.
    site
        Limits of a rack, and the floor.
    candidate
        Gives ``hosts_per_rack``.
    catalog
        Gives the managers' power and height; without it they are assumed.

    Raises
    ------
    InputError
        If one host or switch is more than a rack may hold, or ``hosts_per_rack`` too many.

    Notes
    -----
    Hosts fill racks from the bottom in their order, and an SU begins a rack where that wastes at
    most an eighth of the room. Switches stand from the top of network racks, where their cables
    leave: those of one tier that serve the same racks together, amid what they serve. Leafs that
    serve a rack alone, in a design with ``hosts_per_rack``, stand between that rack's hosts.
    """
    prints = fabric_footprints(_standing_models(fabric), host, switches, catalog)
    mine = prints[host.name]
    per_rack, first = hosts_per_rack(host, mine, site, candidate)
    hosts = fill_racks(fabric.hosts.su[fabric.hosts.role != _MANAGER], per_rack)
    room = _Room(fabric, prints, mine, site, hosts, _served_racks(fabric, hosts))
    top = _NO_TOPS
    notes: tuple[Decision, ...] = ()
    if candidate.hosts_per_rack is not None and not mine.is_rack:
        top, notes = _top_of_rack(room)
    cabinets = pack(_devices(room, top), site)
    floor = lay_floor(len(hosts.count) + len(cabinets), site)
    ranges = [cabinet.serves for cabinet in cabinets]
    slots = choose_slots(floor, len(hosts.count), ranges, site.racks_per_row)
    placed = _placed(room, top, cabinets, slots)
    placed = placed.replace(racks=_rack_table(placed, room, floor, slots))
    decisions = (first, *notes, _floor_decision(floor, cabinets, site))
    return Placement(placed, prints, (*decisions, *assumption_decisions(prints.values())))


def _standing_models(fabric: Fabric) -> list[str]:
    """Return the models that stand in racks: those of hosts, managers and switches."""
    rows = np.unique(np.concatenate([fabric.hosts.model, fabric.switches.model]))
    return [fabric.models[row] for row in rows.tolist()]


@dataclass(frozen=True)
class _Room:
    """What all steps of the placing read."""

    fabric: Fabric
    prints: Mapping[str, Footprint]
    mine: Footprint
    """Of a compute host."""
    site: Site
    hosts: HostRacks
    serves: Int
    """int64[n_switches, 2]: first and last compute rack below each switch."""

    def switch_print(self, switch: int) -> Footprint:
        """Return the footprint of a switch by its row."""
        return self.prints[self.fabric.models[int(self.fabric.switches.model[switch])]]


@dataclass(frozen=True)
class _TopOfRack:
    """Leafs that stand in compute racks: rows of `switches`, their racks and units."""

    switch: Int
    rack: Int
    unit: Int
    units: int = 0
    """Height of each."""


_NO_TOPS = _TopOfRack(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _served_racks(fabric: Fabric, hosts: HostRacks) -> Int:
    """Return int64[n_switches, 2]: first and last compute rack below each switch.

    A switch with no host below it serves the whole floor.
    """
    n_hosts, n_racks = len(fabric.hosts), len(hosts.count)
    low = np.full(n_hosts + len(fabric.switches), n_racks, np.int64)
    high = np.full(n_hosts + len(fabric.switches), -1, np.int64)
    compute = np.flatnonzero(fabric.hosts.role != _MANAGER)
    low[compute] = hosts.rack
    high[compute] = hosts.rack
    lower = fabric.port_vertex[fabric.links.port_a]
    upper = fabric.port_vertex[fabric.links.port_b]
    for tier in (1, 2, 3):
        mine = fabric.links.tier == tier
        np.minimum.at(low, upper[mine], low[lower[mine]])
        np.maximum.at(high, upper[mine], high[lower[mine]])
    idle = high < 0
    low[idle], high[idle] = 0, n_racks - 1
    return np.column_stack([low, high])[n_hosts:]


# Leafs among the hosts ----------------------------------------------------------------------


def _top_of_rack(room: _Room) -> tuple[_TopOfRack, tuple[Decision, ...]]:
    """Choose the leafs that stand among the hosts of the one rack they serve."""
    fabric, mine, site = room.fabric, room.mine, room.site
    leafs = np.flatnonzero(fabric.switches.tier == _LEAF)
    rack = _rack_of_leafs(room.serves[leafs])
    if rack is None or (fabric.switches.rail[leafs] >= 0).any():
        return _NO_TOPS, ()
    leaf = room.switch_print(int(leafs[0]))
    each, most = int(np.bincount(rack).max()), int(room.hosts.count.max())
    units = most * mine.units + each * leaf.units
    power_w = most * mine.max_w + each * leaf.max_w
    if units > site.rack_units or power_w > site.rack_power_kw * 1000.0 + POWER_SLACK_W:
        why = _(
            "{hosts} hosts and {leafs} leafs would draw {kw:g} kW and take {units} units: the "
            "leafs stand in network racks instead, and host cables are longer."
        ).format(hosts=most, leafs=each, kw=round(power_w / 1000.0, 3), units=units)
        return _NO_TOPS, (Decision("leaf_racks", _("network racks"), why, is_warning=True),)
    order = np.argsort(rack, kind="stable")
    ranked = rack[order]
    unit = 1 + room.hosts.below_middle[ranked] * mine.units + _rank_in_group(ranked) * leaf.units
    why = _("Each serves one rack and stands between its hosts, so that host cables are short.")
    decision = Decision("leaf_racks", _("compute racks"), why)
    return _TopOfRack(leafs[order], ranked, unit, leaf.units), (decision,)


def _rack_of_leafs(serves: Int) -> Int | None:
    """Deal the leafs to the racks they serve; None if some serve more racks than they are."""
    groups, group, count = np.unique(serves, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()
    racks = groups[:, 1] - groups[:, 0] + 1
    if (racks > count).any():
        return None
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(serves), np.int64)
    rank[order] = _rank_in_group(group[order])
    chosen: Int = groups[group, 0] + rank * racks[group] // count[group]
    return chosen


def _rank_in_group(ranked: Int) -> Int:
    """Return the place of each entry among its equals, from 0, in a sorted array.

    Examples
    --------
    >>> _rank_in_group(np.array([4, 4, 7, 9, 9, 9])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    begins = np.searchsorted(ranked, ranked, side="left")
    rank: Int = np.arange(len(ranked)) - begins
    return rank


# Network racks ------------------------------------------------------------------------------


def _devices(room: _Room, top: _TopOfRack) -> list[Device]:
    """Return what goes to network racks: tier by tier, by the racks served, managers last."""
    switches, hosts, serves = room.fabric.switches, room.fabric.hosts, room.serves
    is_top = np.zeros(len(switches), bool)
    is_top[top.switch] = True
    rows = np.flatnonzero(~is_top)
    keys = (rows, switches.plane[rows], serves[rows, 1], serves[rows, 0], switches.tier[rows])
    devices = [
        _device(
            room.switch_print(row),
            (row, True),
            int(switches.tier[row]),
            (int(serves[row, 0]), int(serves[row, 1])),
        )
        for row in rows[np.lexsort(keys)].tolist()
    ]
    highest = max((device.tier for device in devices), default=_LEAF)
    whole = (0, len(room.hosts.count) - 1)
    for row in np.flatnonzero(hosts.role == _MANAGER).tolist():
        mine = room.prints[room.fabric.models[int(hosts.model[row])]]
        devices.append(_device(mine, (row, False), highest, whole))
    return devices


def _device(mine: Footprint, row: tuple[int, bool], tier: int, serves: tuple[int, int]) -> Device:
    return Device(row[0], row[1], mine.model, tier, mine.units, mine.max_w, serves)


# Tables -------------------------------------------------------------------------------------


def _placed(room: _Room, top: _TopOfRack, cabinets: list[Cabinet], slots: SlotChoice) -> Fabric:
    """Return the fabric with rack and unit of every device."""
    fabric, hosts = room.fabric, room.hosts
    host_rack = np.full(len(fabric.hosts), -1, np.int64)
    host_unit = np.zeros(len(fabric.hosts), np.int64)
    compute = np.flatnonzero(fabric.hosts.role != _MANAGER)
    gap = np.bincount(top.rack, minlength=len(hosts.count)) * top.units
    is_above = hosts.slot >= hosts.below_middle[hosts.rack]
    host_rack[compute] = slots.compute[hosts.rack]
    host_unit[compute] = 1 + hosts.slot * room.mine.units + is_above * gap[hosts.rack]
    switch_rack = np.full(len(fabric.switches), -1, np.int64)
    switch_unit = np.zeros(len(fabric.switches), np.int64)
    switch_rack[top.switch] = slots.compute[top.rack]
    switch_unit[top.switch] = top.unit
    for cabinet, slot in zip(cabinets, slots.network, strict=True):
        for device, unit in zip(cabinet.devices, cabinet.lowest_units, strict=True):
            rack, units = (switch_rack, switch_unit) if device.is_switch else (host_rack, host_unit)
            rack[device.row], units[device.row] = slot, unit
    return fabric.replace(
        hosts=fabric.hosts.replace(rack=host_rack, rack_unit=host_unit),
        switches=fabric.switches.replace(rack=switch_rack, rack_unit=switch_unit),
    )


def _rack_table(fabric: Fabric, room: _Room, floor: Floor, slots: SlotChoice) -> Table:
    prints, mine, site = room.prints, room.mine, room.site
    max_w = np.array([prints[m].max_w if m in prints else 0.0 for m in fabric.models])
    power_w = np.zeros(len(floor))
    for table in (fabric.hosts, fabric.switches):
        np.add.at(power_w, table.rack, max_w[table.model])
    kind = np.full(len(floor), _COMPUTE)
    kind[slots.network] = _NETWORK
    width = max(2, len(str(site.racks_per_row)))
    names = [
        f"{row_letters(row)}{position + 1:0{width}d}"
        for row, position in zip(floor.row.tolist(), floor.position.tolist(), strict=True)
    ]
    own_units = mine.units if mine.is_rack else site.rack_units
    return SCHEMAS["racks"].table(
        len(floor),
        name=names or "",
        kind=kind,
        row=floor.row,
        position=floor.position,
        units=np.where(kind == _COMPUTE, own_units, site.rack_units),
        power_w=power_w,
    )


def rack_stages(fabric: Fabric) -> Int:
    """Return 0 for each rack that holds something today, and 1 for those that follow."""
    stages = np.ones(len(fabric.racks), np.int64)
    for table in (fabric.hosts, fabric.switches):
        today = table.rack[table.stage == 0]
        stages[today[today >= 0]] = 0
    return stages


def _floor_decision(floor: Floor, cabinets: list[Cabinet], site: Site) -> Decision:
    rows = int(floor.row.max(initial=-1)) + 1
    why = _(
        "{compute} racks hold hosts, {network} hold switches and managers, amid the racks they "
        "serve. Rows of {n} racks stand in {columns} column(s), so that the floor is about square. "
        "One unit below each switch is kept free for cables."
    ).format(
        network=f"{len(cabinets):,}",
        compute=f"{len(floor) - len(cabinets):,}",
        n=site.racks_per_row,
        columns=floor.columns,
    )
    choice = _("{racks} racks in {rows} rows").format(racks=f"{len(floor):,}", rows=f"{rows:,}")
    return Decision("floor", choice, why, _("site of the spec; the rest assumed"))
