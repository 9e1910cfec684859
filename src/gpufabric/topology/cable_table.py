"""The cable table: one row a physical cable, in the order in which a crew lays them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import LINK_TIERS
from gpufabric.topology.cabling import Cabling
from gpufabric.topology.cages import ports_in_cage
from gpufabric.topology.optics import Media

__all__ = ["CABLE_COLUMNS", "LABEL_WIDTH", "cable_rows", "cables_csv"]

LABEL_WIDTH = 24
"""Signs that fit on one line of a flag label; a label has two lines."""

_FAR_ENDS = " | "
_SEVERAL = "+"

_END = (
    ("rack", "Rack of the {end} end."),
    ("unit", "Lowest rack unit of the device."),
    ("device", "Host or switch."),
    ("cage", "Cage on the device's front, from 1."),
    ("lane", "Lane in the cage, from 1; empty where the cage holds one link."),
    ("port", "Port's name in the fabric: NIC of a host, cage and lane of a switch."),
    ("module", "Transceiver in the cage; empty for a cable with fixed plugs."),
)

CABLE_COLUMNS: tuple[tuple[str, str], ...] = (
    ("cable", "Number on both labels: C1 is laid first. A and B: the two fibres of one link."),
    *((f"from_{name}", text.format(end="near")) for name, text in _END),
    *((f"to_{name}", text.format(end="far")) for name, text in _END),
    ("part", "Catalogue name of the cable, fibre or splitter."),
    ("medium", "dac, acc, aec, aoc or optics."),
    ("length_m", "Length to order [m]; that of the longest leg."),
    (
        "links",
        "Links in the cable; 0 in row B of two fibres, so that the sum is the number of links.",
    ),
    ("gbps", "Speed of one link [Gb/s]."),
    ("rail", "Rail, from 0; empty where there is none."),
    ("plane", "Plane, from 0."),
    ("tier", "host_leaf, manager_leaf, leaf_spine, spine_core, leaf_leaf or global."),
    ("stage", "0: laid today. 1: laid when the cluster grows."),
    ("from_label_1", "First line of the near flag label."),
    ("from_label_2", "Second line of the near flag label."),
    ("to_label_1", "First line of the far flag label."),
    ("to_label_2", "Second line of the far flag label."),
)
"""Name and meaning of each column; several far ends stand in one field, apart by ``" | "``."""


class _Plug(NamedTuple):
    """One end of a cable; the fields are those of ``_END`` without the module."""

    rack: str
    unit: int
    device: str
    cage: str
    lane: str
    port: str

    def spot(self, *, whole_cage: bool) -> str:
        """Return where the plug goes, for a label: ``-unit:cage/lane`` behind the rack."""
        lane = "" if whole_cage or not self.lane else f"/{self.lane}"
        return f"-{self.unit:02d}:{self.cage}{lane}"


class _Link(NamedTuple):
    """One link of a cable."""

    near: _Plug
    far: _Plug
    rail: int
    plane: int


def cables_csv(cabling: Cabling) -> bytes:
    """Return the cable table as CSV in UTF-8: a header, then `cable_rows`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for name, _meaning in CABLE_COLUMNS])
    writer.writerows(cable_rows(cabling))
    return text.getvalue().encode()


def cable_rows(cabling: Cabling) -> Iterator[Sequence[Any]]:
    """Yield one row for each physical cable, with the values of `CABLE_COLUMNS`.

    Notes
    -----
    Cables are sorted by the rack of their near end, from the top of the rack down: that is the
    one plug of a breakout cable, else the lower end (host before leaf before spine). A cable
    with several far ends stays one row; its far fields hold one value for each of these ends.
    """
    links = cabling.fabric.links
    order = np.argsort(links.cable, kind="stable")
    begins = np.flatnonzero(np.diff(links.cable[order], prepend=-1)).tolist()
    ends = [*begins[1:], len(order)]
    legs = _legs(cabling, order)
    shared = _shared_fields(cabling, order[begins])
    width = len(str(len(begins)))
    parts = [_parts(media) for media in cabling.media]
    for number, (begin, end, fields) in enumerate(zip(begins, ends, shared, strict=True), 1):
        name = f"C{number:0{width}d}"
        yield from _rows_of_cable(name, legs[begin:end], parts[fields.part], fields)


def _legs(cabling: Cabling, order: npt.NDArray[np.int64]) -> list[_Link]:
    """Return the links in the given order, each with its near and far plug."""
    fabric, links = cabling.fabric, cabling.fabric.links
    at_b = np.array([media.trunk == "b" for media in cabling.media])[links.part]
    near = np.where(at_b, links.port_b, links.port_a)[order]
    far = np.where(at_b, links.port_a, links.port_b)[order]
    cage, per_cage = ports_in_cage(fabric)
    lanes = per_cage[cage]
    return list(
        map(
            _Link,
            _plugs(fabric, near, lanes[near]),
            _plugs(fabric, far, lanes[far]),
            links.rail[order].tolist(),
            links.plane[order].tolist(),
        )
    )


def _plugs(
    fabric: Fabric, port: npt.NDArray[np.int32], lanes: npt.NDArray[np.int64]
) -> Iterator[_Plug]:
    """Yield the place of each port."""
    vertex = fabric.port_vertex[port]
    rack = np.concatenate([fabric.hosts.rack, fabric.switches.rack])[vertex]
    unit = np.concatenate([fabric.hosts.rack_unit, fabric.switches.rack_unit])[vertex]
    device = np.concatenate([fabric.hosts.name, fabric.switches.name])[vertex]
    cage = (fabric.ports.cage[port] + 1).astype(str)
    lane = np.where(lanes > 1, (fabric.ports.lane[port] + 1).astype(str), "")
    return map(
        _Plug,
        fabric.racks.name[rack].tolist(),
        unit.tolist(),
        device.tolist(),
        cage.tolist(),
        lane.tolist(),
        _port_names(fabric, port, cage, lane),
    )


def _port_names(
    fabric: Fabric,
    port: npt.NDArray[np.int32],
    cage: npt.NDArray[np.str_],
    lane: npt.NDArray[np.str_],
) -> list[str]:
    """Return the ports' names as ``Fabric.port_name`` gives them."""
    nic = np.where(fabric.ports.is_switch[port] == 1, 0, fabric.ports.device[port])
    several = fabric.nics.n_ports[nic] > 1
    suffix = np.where(several, np.char.add("p", fabric.ports.port[port].astype(str)), "")
    of_nic = np.char.add(np.char.add("nic", fabric.nics["index"][nic].astype(str)), suffix)
    of_switch = np.char.add(cage, np.where(lane == "", "", np.char.add("/", lane)))
    names: list[str] = np.where(fabric.ports.is_switch[port] == 1, of_switch, of_nic).tolist()
    return names


class _Shared(NamedTuple):
    """What all links of a cable have in common, as printed."""

    part: int
    length_m: str
    gbps: str
    tier: str
    stage: int


def _shared_fields(cabling: Cabling, first: npt.NDArray[np.int64]) -> Iterator[_Shared]:
    """Yield what the links of each cable have in common; `first` is one link of each."""
    links = cabling.fabric.links
    tier_names = np.array(["", *LINK_TIERS.values()])
    tier = np.where(cabling.is_manager[first], "manager_leaf", tier_names[links.tier[first]])
    return map(
        _Shared,
        links.part[first].tolist(),
        _printed(links.length_m[first]),
        _printed(links.gbps[first]),
        tier.tolist(),
        links.stage[cabling.first_links].tolist(),
    )


def _printed(numbers: npt.NDArray[np.float32]) -> list[str]:
    """Return numbers without a superfluous ``.0``."""
    values, index = np.unique(numbers, return_inverse=True)
    texts = [f"{round(value, 3):g}" for value in values.tolist()]
    return [texts[i] for i in index.ravel().tolist()]


# One cable ----------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """What the rows of one medium have in common."""

    near_module: str
    far_module: str
    cable: str
    kind: str
    marks: Sequence[str]
    whole_cage: bool


def _parts(media: Media) -> _Parts:
    modules = (media.module_a, media.module_b)
    near, far = modules[::-1] if media.trunk == "b" else modules
    return _Parts(
        near.name if near is not None else "",
        far.name if far is not None else "",
        media.cable.name,
        media.kind,
        "ABCDEFGH"[: media.cables_per_link] if media.cables_per_link > 1 else ("",),
        media.kind != "optics",
    )


def _rows_of_cable(
    number: str, legs: Sequence[_Link], parts: _Parts, fields: _Shared
) -> Iterator[Sequence[Any]]:
    """Yield the row of one cable, or of each of the equal fibres that a link takes."""
    first = legs[0]
    near, fars = first.near, [first.far]
    rail: str | int = "" if first.rail < 0 else first.rail
    plane: str | int = first.plane
    far_fields: Sequence[object] = first.far
    if len(legs) > 1:
        near = _one_plug([leg.near for leg in legs])
        fars = [_one_plug(plugs) for plugs in _by_cage([leg.far for leg in legs])]
        rail = _several(leg.rail for leg in legs if leg.rail >= 0)
        plane = _several(leg.plane for leg in legs)
        far_fields = [_listed(column) for column in zip(*fars, strict=True)]
    before = (
        *near,
        parts.near_module,
        *far_fields,
        parts.far_module,
        parts.cable,
        parts.kind,
        fields.length_m,
    )
    after = (
        fields.gbps,
        rail,
        plane,
        fields.tier,
        fields.stage,
    )
    for index, mark in enumerate(parts.marks):
        name, n_links = number + mark, 0 if index else len(legs)
        labels = _labels(name, near, fars, whole_cage=parts.whole_cage)
        yield (name, *before, n_links, *after, *labels)


def _by_cage(plugs: Sequence[_Plug]) -> Iterator[list[_Plug]]:
    """Yield the plugs of the links that end in one cage together."""
    for _cage, same in groupby(plugs, key=lambda plug: (plug.device, plug.cage)):
        yield list(same)


def _one_plug(plugs: Sequence[_Plug]) -> _Plug:
    """Return the plug that several links share: its lanes and ports are listed."""
    first = plugs[0]
    if len(plugs) == 1:
        return first
    return _Plug(
        first.rack,
        first.unit,
        first.device,
        _several(plug.cage for plug in plugs),
        _several(plug.lane for plug in plugs if plug.lane),
        _several(plug.port for plug in plugs),
    )


def _several(values: Iterable[object]) -> str:
    return _SEVERAL.join(dict.fromkeys(map(str, values)))


def _listed(column: Sequence[object]) -> str:
    """Return the values of several far ends in one field; empty if all are."""
    return _FAR_ENDS.join(map(str, column)) if any(value != "" for value in column) else ""


def _labels(
    number: str, near: _Plug, fars: Sequence[_Plug], *, whole_cage: bool
) -> tuple[str, str, str, str]:
    """Return both lines of the near label, and of the far ones: own place, then the other's."""
    here = near.spot(whole_cage=whole_cage)
    there = [far.spot(whole_cage=whole_cage) for far in fars]
    own, back = f"{number} ", _line("> ", near.rack, here)
    if len(fars) == 1:
        rack = fars[0].rack
        return (
            _line(own, near.rack, here),
            _line("> ", rack, there[0]),
            _line(own, rack, there[0]),
            back,
        )
    ends = list(zip(fars, there, strict=True))
    return (
        _line(own, near.rack, here),
        _line("> ", fars[0].rack, f"{there[0]} +{len(fars) - 1}"),
        _FAR_ENDS.join(_line(own, far.rack, spot) for far, spot in ends),
        _FAR_ENDS.join(back for _end in ends),
    )


def _line(start: str, rack: str, spot: str) -> str:
    """Return one line; of a rack's name too long for it, the end is kept."""
    line = f"{start}{rack}{spot}"
    if len(line) <= LABEL_WIDTH:
        return line
    return f"{start}{rack[len(line) - LABEL_WIDTH :]}{spot}"
