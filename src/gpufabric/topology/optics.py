"""Which cable, or which modules and fibre, each class of links gets."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.joining import JoinOption, PortEnd, join_options
from gpufabric.catalog.part import Part
from gpufabric.catalog.rule import MediaRule
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.topology.decision import Decision
from gpufabric.topology.footprint import ASSUMED_OPTIC_W_PER_GBPS

__all__ = [
    "LinkClass",
    "Media",
    "Shared",
    "choose_media",
    "media_name",
    "ordered_lengths",
]

Float = npt.NDArray[np.float64]
Side = Literal["a", "b"]
Shared = tuple[tuple[int, Side], ...]
"""Ends, as class and side, that have links in the same cages: they take the same module."""

_SIDES: tuple[Side, Side] = ("b", "a")

_RANK: Mapping[str, int] = {"dac": 0, "acc": 1, "aec": 1, "aoc": 2, "transceiver": 3}
"""Kinds of cable in the order of the rule: from the shortest reach to the longest."""

_READ = frozenset({"measured", "datasheet", "datasheet-via-secondary"})
"""Kinds of source that count more for a reach than the rule for its class."""

_LINEAR_DRIVE = "lpo"
"""Word in the name of a module without its own retimer."""

_NAME_WIDTH = 60  # a fabric's file takes 64 signs; a number behind a name may need some
_HASH_WIDTH = 8

_SCARCE_MODULES = 1e9  # price of what has none, so that it is chosen last [USD]


@dataclass(frozen=True)
class LinkClass:
    """Links that are alike and get the same parts.

    Parameters
    ----------
    kind
        ``host_leaf``, ``manager_leaf``, ``leaf_spine``, ``spine_core``, ``leaf_leaf``, ``global``.
    gbps
        Speed of one link [Gb/s].
    fabric
        Protocol on it.
    lower, upper
        Ends: `lower` is a host's, a manager's or the lower switch's.
    lower_max_w, upper_max_w
        Power that a cage gives to its module [W]; None where unknown.
    n_links
        How many.
    need_m
        Longest route with slack [m].
    far_plugs
        By side: if every cage there can hold the one plug of a cable whose other plugs are alone
        in their cages, how many such plugs there are at most. Empty if the links must lie apart.
    """

    kind: str
    gbps: float
    fabric: Literal["infiniband", "roce"]
    lower: PortEnd
    upper: PortEnd
    lower_max_w: float | None
    upper_max_w: float | None
    n_links: int
    need_m: float
    far_plugs: Mapping[Side, int]


@dataclass(frozen=True)
class Media:
    """What joins the two ends of a link: one entry of ``Fabric.parts``.

    Parameters
    ----------
    name
        The parts' names joined by ``+``, lower end first.
    kind
        ``dac``, ``acc``, ``aec``, ``aoc`` or ``optics``.
    cable
        Cable, fibre or splitter that is laid.
    module_a, module_b
        Modules in the lower and upper end's cage; None for a cable with fixed plugs.
    splitter_a, splitter_b
        Splitters between module and fibre; None where the cable ends in the module.
    trunk
        Side at which several links share one plug of the cable; empty if none do.
    links_per_cable
        Links that one cable carries at most.
    cables_per_link
        Cables that one link takes: 2 for a module with two connectors a link.
    """

    name: str
    kind: str
    cable: Part
    module_a: Part | None
    module_b: Part | None
    splitter_a: Part | None = None
    splitter_b: Part | None = None
    trunk: Side | Literal[""] = ""
    links_per_cable: int = 1
    cables_per_link: int = 1

    @property
    def reach_m(self) -> float:
        """Longest link that all its parts allow [m]."""
        parts = (self.cable, self.module_a, self.module_b)
        return min((p.reach_m for p in parts if p is not None and p.reach_m), default=math.inf)

    def module(self, side: Side) -> Part | None:
        """Return the module at one side."""
        return self.module_a if side == "a" else self.module_b


def ordered_lengths(cable: Part, need_m: Float) -> Float:
    """Return the lengths to order: the shortest sold, else whole metres [m].

    Examples
    --------
    >>> from gpufabric.catalog.load import load_catalog
    >>> ordered_lengths(load_catalog().part("mfp7e10-n"), np.array([3.1, 5.0, 41.0])).tolist()
    [5.0, 5.0, 50.0]
    """
    whole_m = np.ceil(np.round(need_m, 6))
    if not cable.lengths_m:
        return np.maximum(whole_m, 1.0)
    sold_m = np.array(sorted(cable.lengths_m))
    index = np.searchsorted(sold_m, np.round(need_m, 6))
    fits = index < len(sold_m)
    return np.where(fits, sold_m[np.minimum(index, len(sold_m) - 1)], whole_m)


def media_name(pieces: Iterable[Part | None]) -> str:
    """Return the names of the parts joined by ``+``; a long name is cut and ends in a hash.

    Examples
    --------
    >>> from gpufabric.catalog.load import load_catalog
    >>> part = load_catalog().part
    >>> media_name((part("mma4z00-ns400"), part("mfp7e10-n"), part("mma4z00-ns")))
    'mma4z00-ns400+mfp7e10-n+mma4z00-ns'
    """
    name = "+".join(part.name for part in pieces if part is not None)
    if len(name) <= _NAME_WIDTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_WIDTH]
    return f"{name[: _NAME_WIDTH - _HASH_WIDTH - 1]}+{digest}"


def choose_media(
    classes: Sequence[LinkClass], shared: Sequence[Shared], catalog: Catalog, candidate: str
) -> tuple[tuple[Media, ...], tuple[Decision, ...]]:
    """Return the media of each class, and why.

    Parameters
    ----------
    classes
        All classes of a fabric.
    shared
        Ends of different classes that share cages.
    catalog
        Parts to choose from, and the rule of which kind of cable for which length.
    candidate
        Name for messages.

    Raises
    ------
    InputError
        With one fault for each class that no part can join.

    Notes
    -----
    A class gets one medium, that of its longest link. Kinds are tried from copper to optics; a
    part counts up to its reach where that was read in its maker's papers, else up to the rule's
    limit for its kind as well. Of one kind the cheapest is taken. Cables with fixed plugs fit
    only where the cages at one end lead to no other cages; classes that share cages take the
    same module there. Modules without a retimer (LPO) are taken only where there are no others.
    In InfiniBand switches with several links a cage, beyond passive copper come modules and
    fibre, as in NVIDIA's reference designs (RA-11333-001 V11, Tables 7-8; RA-11127-001 V5,
    Table 4.2), not active cables.
    """
    options = [_options(entry, catalog) for entry in classes]
    faults = [
        _fault(entry, catalog, candidate)
        for entry, found in zip(classes, options, strict=True)
        if not found
    ]
    if faults:
        raise InputError(faults)
    chosen: list[Media | None] = [None] * len(classes)
    for members in _joint(len(classes), shared):
        picked = _pick(members, classes, options, shared)
        if picked is None:
            raise InputError([_fault(classes[i], catalog, candidate) for i in members])
        for index, media in zip(members, picked, strict=True):
            chosen[index] = media
    result = tuple(media for media in chosen if media is not None)
    decisions = tuple(
        _decision(entry, media, catalog.media_rule)
        for entry, media in zip(classes, result, strict=True)
    )
    return result, decisions


# Options of one class -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Priced:
    """A medium that fits a class, and what one link of it costs [USD]."""

    media: Media
    link_usd: float


def _options(entry: LinkClass, catalog: Catalog) -> list[_Priced]:
    """Return the media that fit a class, the preferred kind first, then the cheapest."""
    found: dict[str, _Priced] = {}
    for near in _SIDES:
        for option in _joined(entry, near, catalog, entry.need_m):
            media = _media(option, near)
            if _is_allowed(entry, (option, near), media, catalog.media_rule):
                price = option.mid_usd_per_link(entry.need_m)
                usd = _SCARCE_MODULES if price is None else price
                found.setdefault(media.name, _Priced(media, usd))
    kept = [p for p in found.values() if not _is_linear(p.media)] or list(found.values())
    if entry.fabric == "infiniband" and entry.upper.links_per_cage > 1:
        kept = [p for p in kept if p.media.kind in ("dac", "optics")] or kept
    return sorted(
        kept,
        key=lambda p: (_rank(p.media), p.link_usd, _sum_of_reaches(p.media), p.media.name),
    )


def _joined(
    entry: LinkClass, near: Side, catalog: Catalog, length_m: float
) -> Iterator[JoinOption]:
    """Yield the options with the near end at one side; that end must be a switch."""
    ends = (entry.upper, entry.lower) if near == "b" else (entry.lower, entry.upper)
    if ends[0].side == "switch":
        yield from join_options(catalog.parts.values(), ends, entry.gbps, length_m, entry.fabric)


def _media(option: JoinOption, near: Side) -> Media:
    """Return the medium that an option makes, its ends by side instead of near and far."""
    far: Side = "a" if near == "b" else "b"
    if option.far is None:
        several = option.near_share > 1
        return Media(
            option.near.name,
            option.form,
            option.near,
            None,
            None,
            trunk=near if several else "",
            links_per_cable=option.near_share,
        )
    modules = {near: option.near, far: option.far}
    splitters = {near: option.near_splitter, far: option.far_splitter}
    cable, trunk, legs = option.fibre, "", 1
    if cable is None:
        assert option.near_splitter is not None, "optics lie in a fibre or a splitter"
        cable, trunk, legs = option.near_splitter, near, option.near_splitter.link.fan_out
        splitters = {near: None, far: None}
    pieces = (modules["a"], splitters["a"], cable, splitters["b"], modules["b"])
    return Media(
        media_name(pieces),
        "optics",
        cable,
        modules["a"],
        modules["b"],
        splitters["a"],
        splitters["b"],
        "a" if trunk == "a" else "b" if trunk == "b" else "",
        legs,
        option.near.link.fibres_per_link,
    )


def _is_allowed(
    entry: LinkClass, joined: tuple[JoinOption, Side], media: Media, rule: MediaRule
) -> bool:
    """Whether a medium may be used: its reach, its plugs, and the power of its modules."""
    option, near = joined
    ordered_m = float(ordered_lengths(media.cable, np.array([entry.need_m]))[0])
    if ordered_m > media.reach_m:
        return False
    if media.kind != "optics":
        if ordered_m > _limit_m(media.cable, rule, entry.gbps):
            return False
        if entry.far_plugs.get(near, math.inf) > option.near.link.fan_out:
            return False
    for part, limit_w in (
        (media.module_a or media.cable, entry.lower_max_w),
        (media.module_b or media.cable, entry.upper_max_w),
    ):
        if limit_w is not None and _plug_w(part) > limit_w:
            return False
    return True


def _plug_w(part: Part) -> float:
    """Return the largest power of a module or plug [W]; where unknown, as others of its speed."""
    if part.power_w is not None:
        return part.power_w.high
    return (part.gbps or 0.0) * ASSUMED_OPTIC_W_PER_GBPS


def _limit_m(part: Part, rule: MediaRule, gbps: float) -> float:
    """Return how long a cable with fixed plugs may be [m]."""
    reach_m = part.reach_m or math.inf
    if part.link.kind in _READ:
        return reach_m
    if part.form == "dac":
        by_speed = rule.copper.at_1600g_m if gbps >= 1600 else rule.copper.at_800g_m
        return min(reach_m, rule.limits.dac_max_m, by_speed)
    if part.form in ("acc", "aec"):
        return min(reach_m, rule.limits.aec_max_m)
    return min(reach_m, rule.limits.aoc_max_m)


def _sum_of_reaches(media: Media) -> float:
    """Return a measure of how much reach is bought [m], to prefer the lesser at equal price."""
    parts = (media.module_a or media.cable, media.module_b or media.cable)
    return sum(part.reach_m or 0.0 for part in parts)


def _rank(media: Media) -> int:
    return _RANK["transceiver" if media.kind == "optics" else media.kind]


def _is_linear(media: Media) -> bool:
    parts = (media.module_a, media.module_b)
    return any(part is not None and _LINEAR_DRIVE in part.name.split("-") for part in parts)


# Classes together ---------------------------------------------------------------------------


def _joint(n_classes: int, shared: Sequence[Shared]) -> list[list[int]]:
    """Return the classes that must be decided together."""
    group = list(range(n_classes))
    for ends in shared:
        for index, _side in ends[1:]:
            old, new = group[index], group[ends[0][0]]
            group = [new if g == old else g for g in group]
    return [[i for i in range(n_classes) if group[i] == g] for g in dict.fromkeys(group)]


def _pick(
    members: Sequence[int],
    classes: Sequence[LinkClass],
    options: Sequence[Sequence[_Priced]],
    shared: Sequence[Shared],
) -> list[Media] | None:
    """Return the media of classes that share cages: the cheapest with one module a cage."""
    if len(members) == 1:
        return [options[members[0]][0].media]
    place = {index: i for i, index in enumerate(members)}
    constraints = [ends for ends in shared if ends[0][0] in place]
    best: tuple[float, list[Media]] | None = None
    modular = [[p for p in options[i] if p.media.kind == "optics"] for i in members]
    for combination in product(*modular):
        if not all(
            len({_module_name(combination[place[i]].media, side) for i, side in ends}) == 1
            for ends in constraints
        ):
            continue
        usd = sum(
            p.link_usd * classes[i].n_links for p, i in zip(combination, members, strict=True)
        )
        if best is None or usd < best[0]:
            best = (usd, [p.media for p in combination])
    return None if best is None else best[1]


def _module_name(media: Media, side: Side) -> str:
    module = media.module(side)
    return "" if module is None else module.name


# Words --------------------------------------------------------------------------------------


def _fault(entry: LinkClass, catalog: Catalog, candidate: str) -> Fault:
    """Say which links cannot be joined, and what to do."""
    near = [option for side in _SIDES for option in _joined(entry, side, catalog, 0.0)]
    reach_m = max((_media(option, "b").reach_m for option in near), default=0.0)
    if not near:
        remedy = _("Choose another switch or host, or add the part with --catalog.")
    elif reach_m < entry.need_m:
        remedy = _("Known parts reach {m:g} m: shorten the floor with site.racks_per_row.").format(
            m=reach_m
        )
    else:
        remedy = _("Known parts do not fit the cages' power or the links that share a cage.")
    return Fault(
        _('candidate "{name}": cabling').format(name=candidate),
        _(
            "no part joins {kind} links of {gbps:g} Gb/s from {lower} cages ({lower_n} a cage) to "
            "{upper} cages ({upper_n} a cage) over {m:.1f} m."
        ).format(
            kind=entry.kind,
            gbps=entry.gbps,
            lower=entry.lower.cage,
            lower_n=entry.lower.links_per_cage,
            upper=entry.upper.cage,
            upper_n=entry.upper.links_per_cage,
            m=entry.need_m,
        ),
        remedy=remedy,
    )


def _decision(entry: LinkClass, media: Media, rule: MediaRule) -> Decision:
    limit_m = media.reach_m if media.kind == "optics" else _limit_m(media.cable, rule, entry.gbps)
    if media.kind != "optics":
        why = _("{n:,} links of at most {m:.1f} m: within the {limit:g} m of {kind} cables.")
    elif entry.far_plugs:
        why = _(
            "{n:,} links, the longest {m:.1f} m: cables with fixed plugs do not reach that or do "
            "not fit these cages; optics reach {limit:g} m."
        )
    else:
        why = _(
            "{n:,} links of at most {m:.1f} m whose cages lead to several others: only modules "
            "with a fibre for each link can join them, up to {limit:g} m."
        )
    text = why.format(n=entry.n_links, m=entry.need_m, limit=limit_m, kind=media.kind.upper())
    if media.splitter_a is not None:
        text += " " + _(
            "The links of one connector lead to several devices at both ends: a splitter at each, "
            "and single fibres between them."
        )
    text += " " + _("One medium for the whole class, so that parts and spares stay few.")
    return Decision(f"media_{entry.kind}", media.name, text, rule.limits.source)
