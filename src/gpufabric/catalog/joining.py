"""Which cables, or modules and fibres, can join two ports at a speed and distance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from gpufabric.catalog.groups import Cage
from gpufabric.catalog.host import Host
from gpufabric.catalog.nic import Nic
from gpufabric.catalog.part import Part
from gpufabric.catalog.switch import Ports

__all__ = ["JoinOption", "PortEnd", "join_options", "nic_end", "switch_end"]

_LANE_GBPS: dict[Cage, float] = {
    "rj45": 1,
    "sfp28": 25,
    "sfp56": 50,
    "qsfp28": 25,
    "qsfp56": 50,
    "qsfp112": 100,
    "qsfp-dd": 50,
    "osfp": 100,
    "osfp1600": 200,
}
"""Electrical lane that each form factor is defined for [Gb/s]."""

_ALSO_TAKES: dict[Cage, tuple[Cage, ...]] = {
    "qsfp56": ("qsfp28",),
    "qsfp112": ("qsfp56", "qsfp28"),
    "qsfp-dd": ("qsfp56", "qsfp28"),
    "osfp1600": ("osfp",),
    "sfp56": ("sfp28",),
}
"""Older plugs that fit a newer cage."""


@dataclass(frozen=True)
class PortEnd:
    """One end of a link.

    Parameters
    ----------
    cage
        Form factor.
    side
        Switches take modules with fins, NICs flat ones.
    lane_gbps
        Fastest electrical lane [Gb/s].
    links_per_cage
        Links of the wanted speed that leave one cage.
    """

    cage: Cage
    side: Literal["switch", "nic"]
    lane_gbps: float
    links_per_cage: int


@dataclass(frozen=True)
class JoinOption:
    """One way to join two ports.

    Parameters
    ----------
    form
        ``dac``, ``acc``, ``aec``, ``aoc``, or ``transceiver`` for modules and fibre.
    near, far
        Modules at the two ends; the cable itself is `near` and `far` is None.
    fibre
        Fibre of one link; None for cables and where a splitter reaches all the way.
    near_splitter, far_splitter
        Splitters at the ends; None where the module's link is not split.
    near_share, far_share
        Links that share one `near` (or `near_splitter`) and one `far`.
    """

    form: str
    near: Part
    far: Part | None = None
    fibre: Part | None = None
    near_splitter: Part | None = None
    far_splitter: Part | None = None
    near_share: int = 1
    far_share: int = 1

    def mid_usd_per_link(self, length_m: float) -> float | None:
        """Middle price of one link `length_m` long [USD]; None where a price is unknown."""
        fibres = self.near.link.fibres_per_link
        pieces: list[tuple[Part, float]] = [(self.near, 1 / self.near_share)]
        if self.far is not None:
            pieces.append((self.far, 1 / self.far_share))
        if self.fibre is not None:
            pieces.append((self.fibre, fibres))
        pieces += [
            (splitter, 1 / splitter.link.fan_out)
            for splitter in (self.near_splitter, self.far_splitter)
            if splitter is not None
        ]
        total = 0.0
        for part, count in pieces:
            if part.price is None:
                return None
            total += part.price.at(length_m)[1] * count
        return total


def switch_end(ports: Ports, gbps: float) -> PortEnd:
    """Return the end that a switch's ports make at `gbps` [Gb/s].

    Raises
    ------
    ValueError
        If the ports do not run at the speed.
    """
    count = ports.count_at(gbps)
    if count is None:
        raise ValueError(f"no port at {gbps:g} Gb/s")
    lane_gbps = ports.lane_gbps or _LANE_GBPS[ports.cage]
    return PortEnd(ports.cage, "switch", lane_gbps, count // ports.cages)


def nic_end(host: Host, nic: Nic, ports_per_nic: int = 1) -> PortEnd:
    """Return the end that the compute NICs of `host` make.

    Parameters
    ----------
    host
        Gives the cage and how many NICs share it.
    nic
        The model behind it.
    ports_per_nic
        Ports that each NIC is split into, all in one cage.
    """
    lane_gbps = nic.ports.lane_gbps or _LANE_GBPS[host.nics.cage]
    per_cage = host.nics.nics_per_cage * ports_per_nic
    return PortEnd(host.nics.cage, "nic", lane_gbps, per_cage)


def join_options(
    parts: Iterable[Part],
    ends: tuple[PortEnd, PortEnd],
    link_gbps: float,
    length_m: float,
    fabric: Literal["infiniband", "roce"],
) -> tuple[JoinOption, ...]:
    """Return every way to join two ports, cheapest per link first; unknown prices last.

    Of equal prices the one with the shorter reach comes first.

    Parameters
    ----------
    parts
        Parts to choose from.
    ends
        Near end, a switch, and far end, a switch or a NIC.
    link_gbps
        Speed of the link [Gb/s].
    length_m
        Length of the link [m].
    fabric
        Protocol on it.
    """
    usable = [
        part
        for part in parts
        if fabric in part.fabrics and (part.reach_m is None or part.reach_m >= length_m)
    ]
    found = [*_cables(usable, ends, link_gbps), *_optics(usable, ends, link_gbps, length_m)]

    def order(option: JoinOption) -> tuple[float, float, str, str]:
        price = option.mid_usd_per_link(length_m)
        far = option.near if option.far is None else option.far
        reach_m = (option.near.reach_m or 0) + (far.reach_m or 0)
        return (math.inf if price is None else price, reach_m, option.near.name, far.name)

    return tuple(sorted(found, key=order))


def _fits(part: Part, plug: Cage | None, end: PortEnd) -> bool:
    """Whether a plug of the part goes into the cage and runs on its lanes."""
    if plug is None or (plug != end.cage and plug not in _ALSO_TAKES.get(end.cage, ())):
        return False
    lane_gbps = part.link.host_lane_gbps or part.link.lane_gbps or 0
    return part.end in (end.side, "both") and lane_gbps <= end.lane_gbps


def _cables(
    parts: Iterable[Part], ends: tuple[PortEnd, PortEnd], link_gbps: float
) -> Iterator[JoinOption]:
    for part in parts:
        if part.far_cage is None or part.link_gbps != link_gbps:
            continue
        links = part.links_per_module
        if links != ends[0].links_per_cage:
            continue
        if links // part.link.fan_out != ends[1].links_per_cage:
            continue
        if _joins(part, part.cage, part.far_cage, ends) or (
            part.link.fan_out == 1 and _joins(part, part.far_cage, part.cage, ends)
        ):
            yield JoinOption(part.form, part, near_share=links)


def _joins(part: Part, near: Cage | None, far: Cage | None, ends: tuple[PortEnd, PortEnd]) -> bool:
    return _fits(part, near, ends[0]) and _fits(part, far, ends[1])


def _optics(
    parts: list[Part], ends: tuple[PortEnd, PortEnd], link_gbps: float, length_m: float
) -> Iterator[JoinOption]:
    modules = [part for part in parts if part.form == "transceiver"]
    for near in modules:
        split = _split(near, link_gbps)
        if not split or not _fits(near, near.cage, ends[0]):
            continue
        if near.links_per_module * split != ends[0].links_per_cage:
            continue
        for far in modules:
            if _fits(far, far.cage, ends[1]) and far.link.lane_gbps == near.link.lane_gbps:
                yield from _pair(parts, (near, far), ends[1], link_gbps, length_m)


def _split(module: Part, link_gbps: float) -> int:
    """Into how many links one link of the module is split; 0 if it cannot be."""
    whole = (module.link_gbps or 0) / link_gbps
    lanes = link_gbps / (module.link.lane_gbps or link_gbps)
    return int(whole) if whole >= 1 and whole == int(whole) and lanes == int(lanes) else 0


def _pair(
    parts: list[Part],
    modules: tuple[Part, Part],
    far_end: PortEnd,
    link_gbps: float,
    length_m: float,
) -> Iterator[JoinOption]:
    """Give the ways to join two modules that have the same lanes."""
    near, far = modules
    splits = (_split(near, link_gbps), _split(far, link_gbps))
    shares = (near.links_per_module * splits[0], far.links_per_module * splits[1])
    if not splits[1] or near.link.fibres_per_link != far.link.fibres_per_link:
        return
    is_full = shares[1] == far_end.links_per_cage
    if splits[0] == 1 and splits[1] == 1:
        fibre = _cheapest(parts, "fibre", near, 1, length_m)
        if is_full and near.mates_with == far.mates_with and fibre is not None:
            yield JoinOption(
                "transceiver", near, far, fibre, near_share=shares[0], far_share=shares[1]
            )
    elif splits[0] == splits[1] and is_full:
        yield from _both_split(parts, modules, splits[0], shares, length_m)
    elif far_end.side == "nic" and far.links_per_module == far_end.links_per_cage:
        splitter = _cheapest(parts, "splitter", near, splits[0], length_m, far)
        if splits[1] in (1, splits[0]) and splitter is not None:
            yield JoinOption(
                "transceiver",
                near,
                far,
                near_splitter=splitter,
                near_share=shares[0],
                far_share=far.links_per_module,
            )


def _both_split(
    parts: list[Part],
    modules: tuple[Part, Part],
    split: int,
    shares: tuple[int, int],
    length_m: float,
) -> Iterator[JoinOption]:
    near, far = modules
    splitter = _cheapest(parts, "splitter", near, split, 1.0, far)
    fibre = _cheapest(parts, "fibre", near, 1, length_m)
    if splitter is not None and fibre is not None:
        yield JoinOption(
            "transceiver",
            near,
            far,
            fibre,
            near_splitter=splitter,
            far_splitter=splitter,
            near_share=shares[0],
            far_share=shares[1],
        )


def _cheapest(
    parts: Iterable[Part],
    form: str,
    near: Part,
    fan_out: int,
    length_m: float,
    far: Part | None = None,
) -> Part | None:
    """Return the cheapest fibre or splitter between the modules' connectors."""
    far_fibre = near.mates_with if far is None else far.mates_with
    fitting = [
        (math.inf if part.price is None else part.price.at(length_m)[1], part.name, part)
        for part in parts
        if part.form == form
        and part.link.fan_out == fan_out
        and part.mates_with == near.mates_with
        and (part.link.far_fibre or part.mates_with) == far_fibre
    ]
    return min(fitting, key=lambda entry: entry[:2])[2] if fitting else None
