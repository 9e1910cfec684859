"""Links sorted into classes that are alike: tier, speed, and the cages at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.host import Host
from gpufabric.catalog.joining import PortEnd, nic_end, switch_end
from gpufabric.catalog.nic import Nic
from gpufabric.catalog.rule import Equipment
from gpufabric.catalog.switch import Switch
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.spec_parts import Candidate
from gpufabric.model.tables import LINK_TIERS
from gpufabric.topology.cages import LinkCages, Stars, find_stars, ports_in_cage
from gpufabric.topology.decision import Decision
from gpufabric.topology.optics import LinkClass, Shared, Side
from gpufabric.topology.switch_choice import SwitchSet

__all__ = ["CablingFacts", "SortedLinks", "sort_links"]

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

_HOST_LINK = 1  # value of links.tier
_MANAGER = 1  # value of hosts.role
_SIDES: tuple[Side, Side] = ("a", "b")


class CablingFacts(Protocol):
    """What cabling must know of a design beside its fabric."""

    @property
    def candidate(self) -> Candidate:
        """What was asked for."""

    @property
    def host(self) -> Host:
        """Catalogue entry of the compute hosts."""

    @property
    def nic(self) -> Nic:
        """Catalogue entry of their compute NICs."""

    @property
    def switches(self) -> SwitchSet:
        """Catalogue entries of the switches."""


@dataclass(frozen=True)
class SortedLinks:
    """Every link's class.

    Parameters
    ----------
    classes
        The classes.
    of_link
        int64[n_links]: class of each link.
    shared
        Ends of classes that have links in the same cages.
    is_manager
        bool[n_links]: the lower end is a manager.
    decisions
        What was assumed of the ends.
    """

    classes: tuple[LinkClass, ...]
    of_link: Int
    shared: tuple[Shared, ...]
    is_manager: npt.NDArray[np.bool_]
    decisions: tuple[Decision, ...]


def sort_links(
    fabric: Fabric, facts: CablingFacts, cages: LinkCages, need_m: Float, catalog: Catalog
) -> SortedLinks:
    """Return the classes of a fabric's links.

    Parameters
    ----------
    fabric, facts
        The fabric and the devices it is made of.
    cages
        Cages at the links' ends.
    need_m
        float64[n_links]: way and slack [m].
    catalog
        Gives the managers' ports.
    """
    lower, upper = _models(fabric)
    is_manager = _is_manager(fabric)
    _rates, rate = np.unique(fabric.links.gbps, return_inverse=True)
    columns = (fabric.links.tier, is_manager, rate.ravel(), lower, upper)
    first, of_link = _alike(columns)
    longest_m = np.zeros(len(first))
    np.maximum.at(longest_m, of_link, need_m)
    n_links = np.bincount(of_link, minlength=len(first))
    stars = find_stars(cages.a, cages.b, cages.n_cages)
    _cage, room = ports_in_cage(fabric)
    per_cage = np.zeros(len(first), np.int64)
    np.maximum.at(per_cage, of_link, room[cages.a])
    decisions: list[Decision] = []
    classes: list[LinkClass] = []
    for index, link in enumerate(first.tolist()):
        gbps = float(fabric.links.gbps[link])
        below = fabric.models[int(lower[link])]
        upper_switch = _switch(facts, fabric.models[int(upper[link])])
        kind = "manager_leaf" if is_manager[link] else LINK_TIERS[int(fabric.links.tier[link])]
        lower_max_w = None
        if kind == "manager_leaf":
            lower_end, notes = _manager_end(below, facts, gbps, catalog)
            decisions += notes
        elif kind == LINK_TIERS[_HOST_LINK]:
            end = nic_end(facts.host, facts.nic)
            lower_end = PortEnd(end.cage, end.side, end.lane_gbps, int(per_cage[index]))
        else:
            lower_end = _switch_end(_switch(facts, below), gbps)
            lower_max_w = _switch(facts, below).max_optic_w
        classes.append(
            LinkClass(
                kind,
                gbps,
                cast('Literal["infiniband", "roce"]', fabric.protocol),
                lower_end,
                _switch_end(upper_switch, gbps),
                lower_max_w,
                upper_switch.max_optic_w,
                int(n_links[index]),
                float(longest_m[index]),
                _far_plugs(stars, of_link == index),
            )
        )
    shared = _shared(cages, of_link)
    return SortedLinks(tuple(classes), of_link, shared, is_manager, tuple(decisions))


def _alike(columns: Sequence[npt.NDArray[np.generic]]) -> tuple[Int, Int]:
    """Return the first link of each class, and int64[n_links]: class; equal in all columns."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = column.astype(np.int64)
        code = code * (int(values.max(initial=0)) + 1) + values
    _codes, first, of_link = np.unique(code, return_index=True, return_inverse=True)
    return first.astype(np.int64), of_link.ravel().astype(np.int64)


def _far_plugs(stars: Stars, mine: npt.NDArray[np.bool_]) -> dict[Side, int]:
    """Return the most far plugs a cable of the class has, by the side of its one plug."""
    plugs: dict[Side, int] = {}
    if stars.at_a[mine].all():
        plugs["a"] = int(stars.plugs_a[mine].max())
    if stars.at_b[mine].all():
        plugs["b"] = int(stars.plugs_b[mine].max())
    return plugs


def _models(fabric: Fabric) -> tuple[Int, Int]:
    """Return int64[n_links] twice: index in `models` of the devices at both ends."""
    model = np.concatenate([fabric.hosts.model, fabric.switches.model]).astype(np.int64)
    ends = (fabric.links.port_a, fabric.links.port_b)
    lower, upper = (model[fabric.port_vertex[port]] for port in ends)
    return lower, upper


def _is_manager(fabric: Fabric) -> npt.NDArray[np.bool_]:
    role = np.concatenate([fabric.hosts.role, np.zeros(len(fabric.switches), np.int8)])
    return np.asarray(role[fabric.port_vertex[fabric.links.port_a]] == _MANAGER)


def _switch(facts: CablingFacts, model: str) -> Switch:
    return next(s for s in facts.switches.by_tier().values() if s.name == model)


def _switch_end(switch: Switch, gbps: float) -> PortEnd:
    """Return a switch's end; a slower link without a breakout takes a whole native port."""
    if switch.port_count_at(gbps) is not None:
        return switch_end(switch.ports, gbps)
    end = switch_end(switch.ports, switch.ports.gbps)
    return PortEnd(end.cage, end.side, end.lane_gbps, switch.ports_per_cage)


def _manager_end(
    model: str, facts: CablingFacts, gbps: float, catalog: Catalog
) -> tuple[PortEnd, tuple[Decision, ...]]:
    """Return a manager's end: its own port of the speed, else one like the hosts'."""
    end = nic_end(facts.host, facts.nic)
    entry = catalog.equipment.get(model)
    if isinstance(entry, Equipment):
        for ports in entry.ports:
            if ports.network == "compute" and ports.gbps == gbps:
                return PortEnd(ports.cage, "nic", end.lane_gbps, 1), ()
    note = Decision(
        "manager_ports",
        end.cage,
        _(
            "{model} has no port of {gbps:g} Gb/s in the catalogue: one like the hosts' is assumed."
        ).format(model=model, gbps=gbps),
        _("assumed"),
    )
    return PortEnd(end.cage, "nic", end.lane_gbps, 1), (note,)


def _shared(cages: LinkCages, of_link: Int) -> tuple[Shared, ...]:
    """Return the ends, as class and side, that meet in a cage."""
    cage = np.concatenate([cages.a, cages.b])
    n_ends = 2 * (int(of_link.max(initial=0)) + 1)
    end = np.concatenate([2 * of_link, 2 * of_link + 1])
    seen = np.unique(cage * n_ends + end)
    same_cage = seen[1:] // n_ends == seen[:-1] // n_ends
    pairs = np.column_stack([seen[:-1][same_cage] % n_ends, seen[1:][same_cage] % n_ends])
    return tuple(
        ((int(one) // 2, _SIDES[int(one) % 2]), (int(two) // 2, _SIDES[int(two) % 2]))
        for one, two in np.unique(pairs, axis=0).tolist()
    )
