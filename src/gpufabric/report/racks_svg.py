"""``racks.svg``: the floor with its rows, and an elevation of every kind of rack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.spec_parts import Site
from gpufabric.report.figure_frame import Frame, Key, framed, wrapped
from gpufabric.report.figure_style import (
    CARD,
    CORE,
    HAIRLINE,
    HEADING,
    INK,
    LATER,
    MUTED,
    PANEL,
    QUIET,
    SMALL,
    SPINE,
    STRONG,
    TINY,
    WARNING,
    ink_on,
    rail_colour,
    tinted,
)
from gpufabric.report.rack_kinds import RackDevice, RackKind, rack_kinds
from gpufabric.report.svg import Box, Drawing, number
from gpufabric.report.topology_words import HASH_DIGITS, model_words
from gpufabric.topology.cabinets import POWER_SLACK_W
from gpufabric.topology.floor import Floor, floor_of
from gpufabric.topology.footprint import Footprint
from gpufabric.topology.rack_power import BTU_PER_H_PER_W, RackPower

__all__ = ["racks_svg"]

WIDTH = 1320.0
BESIDE_SHARE = 0.4
INSET, HEAD = 14.0, 28.0
MAX_KINDS = 24
HOST, LEAF, MANAGER = tinted(SPINE, 0.62), rail_colour(4), rail_colour(5)
COLOURS = {0: HOST, 1: LEAF, 2: SPINE, 3: CORE, -1: MANAGER}

UNIT_HEIGHT, RACK_WIDTH, RACK_GAP = 11.0, 150.0, 26.0
SCALE_WIDTH = 22.0
WORDS_HEIGHT = 96.0
MAX_PX_PER_M = 36.0
RACK_DEPTH_M, RACK_FACE_M = 1.2, 0.56
LETTER_ROOM = 12.0


def racks_svg(
    fabric: Fabric, footprints: Mapping[str, Footprint], power: RackPower, site: Site
) -> str:
    """Return the floor plan and the elevations of a placed fabric as a self-contained SVG.

    Parameters
    ----------
    fabric
        With racks filled in.
    footprints
        Room of each model.
    power
        Of every rack, all stages.
    site
        The floor's distances and a rack's power limit.
    """
    kinds = rack_kinds(fabric, footprints, power)
    floor, floor_size = _floor(fabric, site, kinds)
    is_beside = floor_size[0] <= BESIDE_SHARE * WIDTH
    x, y = (floor_size[0] + 56.0, 0.0) if is_beside else (0.0, floor_size[1] + HEAD + 28.0)
    elevations, size = _elevations(fabric, kinds[:MAX_KINDS], site, WIDTH - x)
    body = Drawing()
    body.text(INSET, 12, _("Floor plan"), HEADING)
    body.extend(floor, INSET, HEAD)
    body.text(INSET + x, y + 12, _("Elevations, seen from the cold aisle"), HEADING)
    body.extend(elevations, INSET + x, y + HEAD)
    width = max(floor_size[0], x + size[0]) + 2 * INSET
    height = max(floor_size[1] + HEAD, y + HEAD + size[1])
    frame = _frame(fabric, kinds, power, site)
    return framed(body, (width, height), frame, f"racks-{fabric.content_hash[:8]}")


def _counted(count: int, several: str, one: str) -> str:
    return (one if count == 1 else several).format(count=f"{count:,}")


def _frame(fabric: Fabric, kinds: Sequence[RackKind], power: RackPower, site: Site) -> Frame:
    compute = sum(len(kind.racks) for kind in kinds if not kind.is_network)
    network = sum(len(kind.racks) for kind in kinds if kind.is_network)
    max_w, typical_w = power.total_max_w, power.total_typical_w
    title = _("{racks} racks, {power}").format(racks=f"{compute + network:,}", power=_power(max_w))
    name = str(fabric.attributes.get("spec") or "")
    counts = [
        _counted(compute, _("{count} compute racks"), _("{count} compute rack")),
        _counted(network, _("{count} network racks"), _("{count} network rack")),
        _("at most {power}").format(power=_power(max_w)),
        _("typically {power}").format(power=_power(typical_w)),
        _("heat {heat}").format(heat=_heat(max_w)),
        _("a rack may draw {limit:g} kW").format(limit=site.rack_power_kw),
    ]
    notes = [
        _(
            "Racks hold hosts, switches of the compute fabric and managers, of every stage. "
            "Storage, in-band and out-of-band equipment is in the bill of materials, not placed."
        )
    ]
    if len(kinds) > MAX_KINDS:
        rest = kinds[MAX_KINDS:]
        notes.append(
            _("{kinds} more kinds, {racks} racks, are not drawn.").format(
                kinds=len(rest), racks=sum(len(kind.racks) for kind in rest)
            )
        )
    return Frame(
        title,
        " · ".join([part for part in (name, fabric.name) if part] + counts),
        _legend(fabric, kinds),
        notes,
        (
            _("gpufabric · power at maximum, optics included"),
            _("fabric {digits}").format(digits=fabric.content_hash[:HASH_DIGITS]),
        ),
    )


def _legend(fabric: Fabric, kinds: Sequence[RackKind]) -> list[Key]:
    names = {0: _("Host"), 1: _("Leaf"), 2: _("Spine"), 3: _("Core"), -1: _("Manager")}
    devices = [device for kind in kinds for device in kind.devices]
    keys = [
        Key(names[tier], COLOURS[tier])
        for tier in (0, 1, 2, 3, -1)
        if any(device.tier == tier for device in devices)
    ]
    keys.append(Key(_("Free"), CARD, mark=HAIRLINE))
    if (fabric.hosts.stage > 0).any():
        keys.append(Key(_("Bought when the cluster grows"), MUTED, is_later=True))
    return keys


def _power(watt: float) -> str:
    if watt >= 1e6:
        return f"{watt / 1e6:.2f} MW"
    return f"{watt / 1e3:.1f} kW"


def _heat(watt: float) -> str:
    return f"{watt * BTU_PER_H_PER_W / 1000:,.0f} kBTU/h"


# Floor plan -------------------------------------------------------------------------------


def _floor(
    fabric: Fabric, site: Site, kinds: Sequence[RackKind]
) -> tuple[Drawing, tuple[float, float]]:
    """Return the plan of the floor, its width and height."""
    floor = floor_of(fabric.racks, site)
    margin = 26.0
    span_x = float(floor.x_m.max()) + site.rack_pitch_m
    span_y = float(floor.y_m.max()) + RACK_DEPTH_M
    scale = min(MAX_PX_PER_M, (WIDTH - margin) / span_x)
    width, height = RACK_FACE_M * scale, RACK_DEPTH_M * scale
    drawing = Drawing()
    boxes = {
        rack: Box(margin + x * scale, y * scale, width, height)
        for rack, (x, y) in enumerate(zip(floor.x_m.tolist(), floor.y_m.tolist(), strict=True))
    }
    for kind in kinds:
        steps = "".join(_outline(boxes[rack]) for rack in kind.racks)
        fill, stroke = _kind_colours(kind)
        more = LATER if kind.is_later else {}
        drawing.area(steps, fill, stroke=stroke, stroke_width=0.6, **more)
        if width >= LETTER_ROOM:
            for rack in kind.racks:
                box = boxes[rack]
                words = kind.letter if STRONG.width(kind.letter) <= width - 2 else ""
                font = STRONG.coloured(ink_on(fill)).middle
                drawing.text(box.middle, box.centre + 4, words, font)
    _row_names(drawing, fabric, floor, boxes)
    right = max(box.right for box in boxes.values())
    return drawing, (max(right, HEADING.width(_("Floor plan"))), span_y * scale)


def _outline(box: Box) -> str:
    w, h = number(box.width), number(box.height)
    return f"M{number(box.x)} {number(box.y)}h{w}v{h}h-{w}z"


def _kind_colours(kind: RackKind) -> tuple[str, str]:
    if not kind.devices:
        return CARD, HAIRLINE
    if not kind.is_network:
        return tinted(SPINE, 0.94 if kind.is_later else 0.78), tinted(SPINE, 0.4)
    tiers = [device.tier for device in kind.devices if device.tier > 0]
    colour = COLOURS[max(set(tiers), key=tiers.count)] if tiers else MANAGER
    return tinted(colour, 0.8 if kind.is_later else 0.15), colour


def _row_names(drawing: Drawing, fabric: Fabric, floor: Floor, boxes: Mapping[int, Box]) -> None:
    """Write each row's letters before it, where rows stand far enough apart."""
    rows, first = np.unique(floor.row, return_index=True)
    tops = sorted({boxes[rack].y for rack in first.tolist()})
    pitch = min((lower - upper for upper, lower in pairwise(tops)), default=100.0)
    for row, rack in zip(rows.tolist(), first.tolist(), strict=True):
        if pitch < TINY.size + 2:
            continue
        box = boxes[rack]
        name = str(fabric.racks.name[rack])
        letters = name.rstrip("0123456789").rstrip("-") or str(row + 1)
        drawing.text(box.x - 6, box.centre + 4, letters, SMALL.end)


# Elevations -------------------------------------------------------------------------------


def _elevations(
    fabric: Fabric, kinds: Sequence[RackKind], site: Site, room: float
) -> tuple[Drawing, tuple[float, float]]:
    """Return the elevations in lines of at most `room` pixels, and their width and height."""
    drawing = Drawing()
    x, y, tallest, widest = 0.0, 0.0, 0.0, 0.0
    for kind in kinds:
        height = kind.units * UNIT_HEIGHT + WORDS_HEIGHT
        if x + SCALE_WIDTH + RACK_WIDTH > room:
            x, y, tallest = 0.0, y + tallest + 20, 0.0
        _elevation(drawing, fabric, kind, Box(x, y, SCALE_WIDTH + RACK_WIDTH, height), site)
        x += SCALE_WIDTH + RACK_WIDTH + RACK_GAP
        tallest, widest = max(tallest, height), max(widest, x)
    return drawing, (widest, y + tallest)


def _elevation(drawing: Drawing, fabric: Fabric, kind: RackKind, area: Box, site: Site) -> None:
    rack = Box(area.x + SCALE_WIDTH, area.y + 20, RACK_WIDTH, kind.units * UNIT_HEIGHT)
    title = _("{letter}: {count} racks") if len(kind.racks) > 1 else _("{letter}: {count} rack")
    drawing.text(
        rack.x, area.y + 12, title.format(letter=kind.letter, count=f"{len(kind.racks):,}"), HEADING
    )
    frame = Box(rack.x - 3, rack.y - 3, rack.width + 6, rack.height + 6)
    drawing.rect(frame, PANEL, QUIET, radius=4)
    lines = [
        f"M{number(rack.x)} {number(rack.bottom - unit * UNIT_HEIGHT)}H{number(rack.right)}"
        for unit in range(1, kind.units)
    ]
    drawing.path("".join(lines), HAIRLINE, 0.5)
    for unit in (1, *range(5, kind.units + 1, 5)):
        y = rack.bottom - (unit - 0.5) * UNIT_HEIGHT + 3.2
        drawing.text(rack.x - 7, y, str(unit), TINY.end)
    for device in kind.devices:
        _device(drawing, device, rack)
    _elevation_words(drawing, fabric, kind, rack, site)


def _device(drawing: Drawing, device: RackDevice, rack: Box) -> None:
    box = Box(
        rack.x + 1,
        rack.bottom - (device.unit - 1 + device.units) * UNIT_HEIGHT + 0.5,
        rack.width - 2,
        device.units * UNIT_HEIGHT - 1,
    )
    colour = COLOURS[device.tier]
    fill = tinted(colour, 0.8) if device.is_later else colour
    ink = ink_on(fill)
    model = model_words(device.model)
    drawing.rect(
        box,
        fill,
        colour if device.is_later else "",
        radius=2,
        note=f"{device.name} {model}",
        **(LATER if device.is_later and device.units >= 3 else {}),
    )
    if device.units >= 3:
        name = STRONG.shortened(device.name, box.width - 10)
        drawing.text(box.middle, box.centre - 1, name, STRONG.coloured(ink).middle)
        words = TINY.shortened(model, box.width - 10)
        drawing.text(box.middle, box.centre + 11, words, TINY.coloured(ink).middle)
        return
    font = TINY.coloured(ink)
    name = font.shortened(device.name, box.width - 10)
    drawing.text(box.x + 5, box.centre + 3.2, name, font)
    room = box.width - 10 - font.width(name) - 8
    if font.width(model) <= room:
        drawing.text(box.right - 5, box.centre + 3.2, model, font.end)


def _elevation_words(
    drawing: Drawing, fabric: Fabric, kind: RackKind, rack: Box, site: Site
) -> None:
    names = fabric.racks.name
    first, last = str(names[kind.racks[0]]), str(names[kind.racks[-1]])
    shown = (
        _("Shown: {name}").format(name=first)
        if first == last
        else _("Shown: {name}, last {last}").format(name=first, last=last)
    )
    limit_w = site.rack_power_kw * 1000 + POWER_SLACK_W
    most = _("At most {power} of {limit:g} kW").format(
        power=_power(kind.max_w), limit=site.rack_power_kw
    )
    lines = [
        (shown, SMALL),
        (most, SMALL.coloured(WARNING if kind.max_w > limit_w else INK)),
        (_("Typically {power}").format(power=_power(kind.typical_w)), SMALL),
        (_("Heat {heat}").format(heat=_heat(kind.max_w)), SMALL),
        (_("{used} of {units} units used").format(used=kind.used_units, units=kind.units), SMALL),
    ]
    y = rack.bottom + 18
    for words, font in lines:
        line = next(iter(wrapped(words, font, RACK_WIDTH + RACK_GAP - 4)), "")
        drawing.text(rack.x, y, line, font)
        y += 14
