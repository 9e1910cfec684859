"""The boxes of a small fabric's figure: every switch, every host with its NICs, captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.figure_style import (
    CARD,
    CORE,
    HAIRLINE,
    HEADING,
    LATER,
    MUTED,
    PANEL,
    QUIET,
    SMALL,
    SPINE,
    STRONG,
    TINY,
    ink_on,
    rail_colour,
    tinted,
)
from gpufabric.report.svg import Box, Drawing
from gpufabric.report.topology_detail_sheet import (
    BOX_GAP,
    CROSS_GAP,
    GUTTER,
    HOST_GAP,
    INSET,
    NETWORK_GAP,
    NETWORK_PAD,
    DetailSheet,
    Network,
    short,
)
from gpufabric.report.topology_words import host_rows, model_words, rate, tier_rows, tier_words

__all__ = ["ARC_ROOM", "place_detail"]

BOX_HEIGHT, HOST_HEIGHT, NIC_HEIGHT = 42.0, 60.0, 14.0
NETWORK_HEAD = 20.0
ARC_ROOM = 130.0


def place_detail(sheet: DetailSheet, networks: Sequence[Network], content: float) -> float:
    """Place all boxes; return the height of the figure."""
    tiers = sorted({tier for network in networks for tier in network.rows}, reverse=True)
    gap = min(230.0, max(130.0, content * 0.15))
    arcs = any(len(sheet.ends.get((s, True), ())) for s in networks[0].rows[tiers[0]])
    y = 12 + (NETWORK_HEAD if len(networks) > 1 else 0)
    y += ARC_ROOM if arcs and not sheet.is_pair else 0
    heights: dict[int, tuple[float, float]] = {}
    for tier in tiers:
        heights[tier] = (y, _box_height(sheet))
        _caption(sheet, tier, y)
        y += heights[tier][1] + gap
    pads = 2 * NETWORK_PAD if len(networks) > 1 else 0
    room = content - sheet.networks_width(networks)
    between = NETWORK_GAP + min(60.0, room / max(len(networks) - 1, 1))
    used = sheet.networks_width(networks) + (between - NETWORK_GAP) * (len(networks) - 1)
    x = GUTTER + (content - used) / 2
    for network in networks:
        width = sheet.network_width(network) + pads
        _place_network(sheet, network, (x, width), heights)
        if pads:
            _frame(sheet, network, Box(x, 0, width, 0), heights)
        x += width + between
    _place_hosts(sheet, content, y)
    _link_captions(sheet, heights, y)
    return y + HOST_HEIGHT + 10


def _box_height(sheet: DetailSheet) -> float:
    if not sheet.is_pair:
        return BOX_HEIGHT
    cross = int((sheet.fabric.links.tier == 4).sum())
    return max(BOX_HEIGHT, cross * 2.4 + 14)


def _place_network(
    sheet: DetailSheet,
    network: Network,
    span: tuple[float, float],
    heights: dict[int, tuple[float, float]],
) -> None:
    for tier, rows in network.rows.items():
        y, height = heights[tier]
        gap = CROSS_GAP if sheet.is_pair else BOX_GAP
        free = span[1] - 2 * NETWORK_PAD - sheet.tier_width(rows)
        gap += min(70.0, max(0.0, free / max(len(rows), 1)))
        width = sheet.tier_width(rows) + (gap - BOX_GAP) * (len(rows) - 1)
        if sheet.is_pair:
            width = sheet.tier_width(rows) + (gap - CROSS_GAP) * (len(rows) - 1)
        x = span[0] + (span[1] - width) / 2
        for row in rows:
            box = Box(x, y, sheet.switch_width(row), height)
            _draw_switch(sheet, row, box)
            x += box.width + gap


def _frame(
    sheet: DetailSheet, network: Network, span: Box, heights: dict[int, tuple[float, float]]
) -> None:
    top = min(heights[tier][0] for tier in network.rows) - 10
    bottom = max(sum(heights[tier]) for tier in network.rows) + 10
    head = NETWORK_HEAD
    if any(tier >= 4 for tier in sheet.fabric.links.tier):
        head = ARC_ROOM
    box = Box(span.x, top - head, span.width, bottom - top + head)
    frame = Drawing()
    frame.rect(box, PANEL, HAIRLINE, radius=8)
    frame.extend(sheet.lines)
    sheet.lines = frame
    sheet.labels.text(box.x + NETWORK_PAD, box.y + 16, network.title, HEADING)


def _draw_switch(sheet: DetailSheet, row: int, box: Box) -> None:
    switches = sheet.fabric.switches
    sheet.box[row] = box
    tier, rail = int(switches.tier[row]), int(switches.rail[row])
    colour = rail_colour(rail) if rail >= 0 else {1: QUIET, 2: SPINE, 3: CORE}[tier]
    is_later = bool(switches.stage[row])
    fill = tinted(colour, 0.8) if is_later else colour
    name = str(switches.name[row])
    model = model_words(sheet.fabric.models[int(switches.model[row])])
    sheet.boxes.rect(
        box, fill, colour, radius=5, note=f"{name} {model}", **(LATER if is_later else {})
    )
    words = name if STRONG.width(name) <= box.width - 8 else short(name)
    ink = ink_on(fill)
    two = SMALL.width(model) <= box.width - 8
    sheet.labels.text(
        box.middle, box.centre + (-2 if two else 4), words, STRONG.coloured(ink).middle
    )
    if two:
        sheet.labels.text(box.middle, box.centre + 12, model, TINY.coloured(ink).middle)


def _place_hosts(sheet: DetailSheet, content: float, y: float) -> None:
    hosts = sheet.fabric.hosts
    sheet.host_y = y
    room = content - sheet.hosts_width
    gap = HOST_GAP + min(22.0, room / max(len(hosts), 1))
    used = sheet.hosts_width + (gap - HOST_GAP) * (len(hosts) - 1)
    x = GUTTER + (content - used) / 2
    for host in range(len(hosts)):
        box = Box(x, y, sheet.host_width(host), HOST_HEIGHT)
        _draw_host(sheet, host, box)
        x += box.width + gap


def _draw_host(sheet: DetailSheet, host: int, box: Box) -> None:
    fabric = sheet.fabric
    is_later, is_manager = bool(fabric.hosts.stage[host]), fabric.hosts.role[host] == 1
    name = str(fabric.hosts.name[host])
    model = model_words(fabric.models[int(fabric.hosts.model[host])])
    stroke = MUTED if is_later else tinted(MUTED, 0.35)
    fill = PANEL if is_manager else CARD
    sheet.boxes.rect(
        box, fill, stroke, radius=5, note=f"{name} {model}", **(LATER if is_later else {})
    )
    _draw_nics(sheet, host, box)
    words = name if STRONG.width(name) <= box.width - 6 else short(name)
    sheet.labels.text(box.middle, box.y + 36, words, STRONG.middle)
    gpus = _("{count} GPUs").format(count=int(fabric.hosts.n_gpus[host]))
    if not is_manager and TINY.width(gpus) <= box.width - 6:
        sheet.labels.text(box.middle, box.y + 50, gpus, TINY.middle)


def _draw_nics(sheet: DetailSheet, host: int, box: Box) -> None:
    fabric = sheet.fabric
    nics = np.flatnonzero(fabric.nics.host == host)
    width = sheet.scale.nic - 2
    numbered = TINY.width(str(len(nics) - 1)) <= width - 1 and fabric.hosts.role[host] == 0
    x = box.middle - len(nics) * sheet.scale.nic / 2
    for nic in nics:
        cell = Box(x + 1, box.y + 4, width, NIC_HEIGHT)
        colour = rail_colour(int(fabric.nics.rail[nic]))
        sheet.boxes.rect(cell, colour, radius=2)
        if numbered:
            words = str(int(fabric.nics["index"][nic]))
            ink = TINY.coloured(ink_on(colour)).middle
            sheet.labels.text(cell.middle, cell.y + 10.5, words, ink)
        first, count = int(fabric.nics.port_first[nic]), int(fabric.nics.n_ports[nic])
        for port in range(count):
            sheet.nic_x[first + port] = cell.x + cell.width * (port + 1) / (count + 1)
        x += sheet.scale.nic


def _caption(sheet: DetailSheet, tier: int, y: float) -> None:
    words, later = tier_rows(sheet.fabric)[tier]
    sheet.labels.text(INSET, y + 14, tier_words(tier), HEADING)
    for index, line in enumerate((words, later)):
        sheet.labels.text(
            INSET, y + 30 + 14 * index, SMALL.shortened(line, GUTTER - INSET - 8), SMALL
        )


def _link_captions(
    sheet: DetailSheet, heights: dict[int, tuple[float, float]], host_y: float
) -> None:
    fabric = sheet.fabric
    tops = {0: host_y, **{tier: y for tier, (y, _height) in heights.items()}}
    for tier, (top, height) in heights.items():
        rows = fabric.links.tier == tier
        if not rows.any():
            continue
        y = (top + height + tops[tier - 1]) / 2
        for index, line in enumerate(_counted(fabric, rows)):
            sheet.labels.text(INSET, y + 14 * index, line, SMALL)
    sheet.labels.text(INSET, host_y + 14, _("Hosts"), HEADING)
    for index, line in enumerate(host_rows(fabric, GUTTER - INSET - 8)):
        sheet.labels.text(INSET, host_y + 30 + 14 * index, line, SMALL)


def _counted(fabric: Fabric, rows: np.ndarray) -> Iterator[str]:
    rates, counts = np.unique(fabric.links.gbps[rows], return_counts=True)
    for gbps, count in zip(rates, counts, strict=True):
        yield _("{count} links × {rate}").format(count=f"{count:,}", rate=rate(float(gbps)))
