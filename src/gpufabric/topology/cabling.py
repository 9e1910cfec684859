"""Cables: which part each link gets, how long it is, and which links lie in one cable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.part import Part
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.spec_parts import Site
from gpufabric.topology.cable_routes import needed_lengths
from gpufabric.topology.cages import LinkCages, link_cages
from gpufabric.topology.decision import Decision
from gpufabric.topology.footprint import fabric_footprints
from gpufabric.topology.link_classes import CablingFacts, SortedLinks, sort_links
from gpufabric.topology.optics import Media, Side, choose_media, media_name, ordered_lengths

__all__ = ["Cabling", "lay_cables"]

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

_MAX_CONNECTORS = 16  # more than any module has


@dataclass(frozen=True)
class Cabling:
    """A fabric whose links lie in cables.

    Parameters
    ----------
    fabric
        With cable, length and part of every link. ``links.cable`` numbers the physical cables in
        the order in which they are laid, rack by rack.
    media
        What each entry of ``fabric.parts`` stands for.
    cages
        Cages at both ends of each link.
    is_manager
        bool[n_links]: the lower end is a manager.
    decisions
        What was chosen and why.
    """

    fabric: Fabric
    media: tuple[Media, ...]
    cages: LinkCages
    is_manager: npt.NDArray[np.bool_]
    decisions: tuple[Decision, ...]

    @cached_property
    def first_links(self) -> Int:
        """int64[n_cables]: first link of each cable, of those that are there earliest."""
        order = np.argsort(self.fabric.links.stage, kind="stable")
        _cable, first = np.unique(self.fabric.links.cable[order], return_index=True)
        return order[first].astype(np.int64)


def lay_cables(fabric: Fabric, facts: CablingFacts, site: Site, catalog: Catalog) -> Cabling:
    """Return the fabric with part, length and cable of every link, of all stages.

    Parameters
    ----------
    fabric
        With every device in a rack.
    facts
        The design: host, NIC, switches and candidate.
    site
        Floor, tray and slack.
    catalog
        Parts, and the rule of which kind of cable for which length.

    Raises
    ------
    InputError
        If no part joins some links; all such classes of links are named.
    """
    footprints = fabric_footprints(fabric.models, facts.host, facts.switches, catalog)
    need_m = needed_lengths(fabric, footprints, site)
    cages = link_cages(fabric)
    sorted_links = sort_links(fabric, facts, cages, need_m, catalog)
    chosen, reasons = choose_media(
        sorted_links.classes, sorted_links.shared, catalog, facts.candidate.name
    )
    chosen, notes = _manager_cables(chosen, sorted_links, catalog)
    kinds = list(dict.fromkeys(chosen))
    media = _with_unique_names(kinds)
    index = {entry: i for i, entry in enumerate(kinds)}
    part = np.array([index[entry] for entry in chosen], np.int64)[sorted_links.of_link]
    key = _cable_keys(fabric, cages, sorted_links, chosen)
    cable = _in_laying_order(fabric, cages, key, (part, media))
    links = fabric.links.replace(
        cable=cable, part=part, length_m=_lengths(cable, part, media, need_m)
    )
    laid = fabric.replace(links=links, parts=tuple(entry.name for entry in media))
    decisions = (*sorted_links.decisions, *reasons, *notes, _length_decision(site))
    return Cabling(laid, media, cages, sorted_links.is_manager, decisions)


def _with_unique_names(media: Sequence[Media]) -> tuple[Media, ...]:
    """Return the media; equal parts used the other way round get a number in their name."""
    unique: list[Media] = []
    for entry in media:
        again = sum(other.name == entry.name for other in media[: len(unique)])
        unique.append(replace(entry, name=f"{entry.name}-{again + 1}") if again else entry)
    return tuple(unique)


def _manager_cables(
    chosen: tuple[Media, ...], links: SortedLinks, catalog: Catalog
) -> tuple[tuple[Media, ...], tuple[Decision, ...]]:
    """Put the links of each manager into one splitter cable where they are optical."""
    result: list[Media] = []
    notes: list[Decision] = []
    for entry, media in zip(links.classes, chosen, strict=True):
        splitter = _splitter_for(media, catalog) if entry.kind == "manager_leaf" else None
        if splitter is None or media.module_a is None or media.module_b is None:
            result.append(media)
            continue
        result.append(
            Media(
                media_name((media.module_a, splitter, media.module_b)),
                "optics",
                splitter,
                media.module_a,
                media.module_b,
                trunk="a",
                links_per_cable=splitter.link.fan_out,
            )
        )
        notes.append(
            Decision(
                "manager_cables",
                splitter.name,
                _(
                    "The two links of a manager are one splitter cable from one module: one cable "
                    "for each manager. Assumed: the published bill has 2,042 cables for 2,040 "
                    "links and two managers, and does not say how."
                ),
                "NVIDIA RA-11333-001 V11, Tables 7-8",
            )
        )
    return tuple(result), tuple(notes)


def _splitter_for(media: Media, catalog: Catalog) -> Part | None:
    """Return the cheapest 1:2 splitter in place of a plain fibre, of the same maker's kind."""
    if media.kind != "optics" or media.splitter_a or media.splitter_b or media.trunk:
        return None
    fitting = [
        part
        for part in catalog.parts.values()
        if part.form == "splitter"
        and part.link.fan_out == 2
        and part.mates_with == media.cable.mates_with
        and part.link.far_fibre in (None, part.mates_with)
    ]
    prices = [(p.price.mid_usd if p.price else float("inf"), p.name, p) for p in fitting]
    return min(prices, key=lambda entry: entry[:2])[2] if prices else None


# Cables -------------------------------------------------------------------------------------


def _cable_keys(
    fabric: Fabric, cages: LinkCages, links: SortedLinks, chosen: tuple[Media, ...]
) -> Int:
    """Return int64[n_links]: equal for the links of one cable, different for others."""
    n_links = len(fabric.links)
    key = np.arange(n_links, dtype=np.int64)
    lower = fabric.port_vertex[fabric.links.port_a].astype(np.int64)
    step = n_links + cages.n_cages * _MAX_CONNECTORS + len(fabric.hosts)
    for index, media in enumerate(chosen):
        mine = links.of_link == index
        side: Side = "b" if media.trunk == "b" else "a"
        cage = (cages.b if side == "b" else cages.a)[mine]
        if media.kind != "optics":
            key[mine] = n_links + cage * _MAX_CONNECTORS
        elif media.trunk and links.classes[index].kind == "manager_leaf":
            key[mine] = n_links + cages.n_cages * _MAX_CONNECTORS + lower[mine]
        elif media.trunk:
            offset_gbps = (cages.b_offset_gbps if side == "b" else cages.a_offset_gbps)[mine]
            module = media.module(side)
            gbps = module.link_gbps if module is not None else None
            connector = np.floor(offset_gbps / gbps) if gbps else np.zeros(len(cage))
            key[mine] = n_links + cage * _MAX_CONNECTORS + connector.astype(np.int64)
        key[mine] += index * step
    return key


def _in_laying_order(
    fabric: Fabric, cages: LinkCages, key: Int, laid: tuple[Int, tuple[Media, ...]]
) -> Int:
    """Return int64[n_links]: number of each link's cable, from 0, rack by rack.

    A cable is laid from its trunk, else from its lower end: by rack on the floor, from the top
    of the rack down, by cage and lane.
    """
    part, media = laid
    at_b = np.array([entry.trunk == "b" for entry in media])[part]
    rack = np.concatenate([fabric.hosts.rack, fabric.switches.rack])
    unit = np.concatenate([fabric.hosts.rack_unit, fabric.switches.rack_unit])
    port = np.where(at_b, fabric.links.port_b, fabric.links.port_a)
    vertex = fabric.port_vertex[port]
    cage = np.where(at_b, cages.b, cages.a)
    order = np.lexsort((port, cage, -unit[vertex].astype(np.int64), rack[vertex]))
    _keys, first, inverse = np.unique(key[order], return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    cable = np.empty(len(key), np.int64)
    cable[order] = number[inverse.ravel()]
    return cable


def _lengths(cable: Int, part: Int, media: tuple[Media, ...], need_m: Float) -> Float:
    """Return float64[n_links]: ordered length of each link's cable, its longest leg's [m]."""
    longest_m = np.zeros(int(cable.max(initial=-1)) + 1)
    np.maximum.at(longest_m, cable, need_m)
    length_m = longest_m[cable]
    for index, entry in enumerate(media):
        mine = part == index
        length_m[mine] = ordered_lengths(entry.cable, length_m[mine])
    return length_m


def _length_decision(site: Site) -> Decision:
    why = _(
        "Up to a tray at {tray:g} m, along rows ({rack_m:g} m a rack) and across them ({row_m:g} m "
        "a row), down; {pct:g} % and {extra:g} m of slack, rounded up to a length that is sold."
    ).format(
        tray=site.tray_height_m,
        rack_m=site.rack_pitch_m,
        row_m=site.row_pitch_m,
        pct=site.cable_slack_pct,
        extra=site.cable_slack_m,
    )
    source = _("site of the spec, defaults assumed; docs/models/cabling.md")
    return Decision("cable_lengths", _("route and slack"), why, source)
