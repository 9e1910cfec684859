"""The links of a small fabric's figure: one line each."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from gpufabric.report.figure_style import CORE, INK, LATER, MUTED, SPINE, pill, rail_colour
from gpufabric.report.svg import curve, number
from gpufabric.report.topology_detail_boxes import ARC_ROOM
from gpufabric.report.topology_detail_sheet import DetailSheet
from gpufabric.report.topology_words import rate

__all__ = ["draw_detail_links"]


def draw_detail_links(sheet: DetailSheet) -> None:
    """Draw every link between the boxes of the sheet."""
    _draw_upward(sheet)
    if sheet.is_pair:
        _cross_links(sheet)


def _draw_upward(sheet: DetailSheet) -> None:
    """Draw the links between tiers, and as arcs those between switches of one tier."""
    fabric, links = sheet.fabric, sheet.fabric.links
    x_low, x_high = _link_ends(sheet)
    offset = len(fabric.hosts)
    steps: dict[tuple[str, bool], list[str]] = defaultdict(list)
    arcs: dict[str, list[str]] = defaultdict(list)
    for link in range(len(links)):
        row = links.row(link)
        upper = sheet.box[int(fabric.port_vertex[row["port_b"]]) - offset]
        lower_vertex = int(fabric.port_vertex[row["port_a"]])
        colour = rail_colour(row["rail"]) if row["rail"] >= 0 else SPINE
        if row["tier"] >= 4:
            if not sheet.is_pair:
                lower = sheet.box[lower_vertex - offset]
                arcs[CORE if row["tier"] == 5 else SPINE].append(
                    _arc(x_low[link], lower.y, x_high[link], upper.y)
                )
            continue
        if lower_vertex < offset:
            colour = MUTED if fabric.hosts.role[lower_vertex] else colour
            y_low = sheet.host_y + 4
        else:
            y_low = sheet.box[lower_vertex - offset].y
        steps[colour, bool(row["stage"])].append(
            curve(x_low[link], y_low, x_high[link], upper.bottom)
        )
    width = 1.4 if len(links) <= 200 else 1.0
    for (colour, later), parts in sorted(steps.items()):
        sheet.lines.path("".join(parts), colour, width, opacity=0.8, **(LATER if later else {}))
    for colour, parts in sorted(arcs.items()):
        sheet.lines.path("".join(parts), colour, 1.0, opacity=0.55)


def _arc(x1: float, y1: float, x2: float, y2: float) -> str:
    rise = min(ARC_ROOM - 14, 16 + abs(x2 - x1) * 0.22) * 4 / 3
    top = number(min(y1, y2) - rise)
    start, end = f"{number(x1)} {number(y1)}", f"{number(x2)} {number(y2)}"
    return f"M{start}C{number(x1)} {top} {number(x2)} {top} {end}"


def _link_ends(sheet: DetailSheet) -> tuple[dict[int, float], dict[int, float]]:
    """Return where each link ends on its lower and upper box, spread in the order of the others."""
    fabric, links, offset = sheet.fabric, sheet.fabric.links, len(sheet.fabric.hosts)
    a, b = links.port_a.tolist(), links.port_b.tolist()
    owner = fabric.port_vertex

    def middle(port: int) -> float:
        vertex = int(owner[port])
        return sheet.nic_x[port] if vertex < offset else sheet.box[vertex - offset].middle

    low: dict[int, float] = {}
    high: dict[int, float] = {}
    for link, port in enumerate(a):
        if int(owner[port]) < offset:
            low[link] = sheet.nic_x[port]
    for (switch, _is_upper), mine in sheet.ends.items():
        box = sheet.box[switch]
        other = {
            link: middle(b[link] if int(owner[a[link]]) - offset == switch else a[link])
            for link in mine
        }
        room = box.width - 8
        for position, (_x, link) in enumerate(sorted((at, link) for link, at in other.items())):
            x = box.x + 4 + room * (position + 0.5) / len(mine)
            if int(owner[a[link]]) - offset == switch:
                low[link] = x
            else:
                high[link] = x
    return low, high


def _cross_links(sheet: DetailSheet) -> None:
    links = sheet.fabric.links
    rows = np.flatnonzero(links.tier == 4)
    left, right = sorted(sheet.box.values(), key=lambda box: box.x)[:2]
    steps = []
    for index in range(len(rows)):
        y = left.y + 7 + (left.height - 14) * (index + 0.5) / len(rows)
        steps.append(f"M{number(left.right)} {number(y)}H{number(right.x)}")
    sheet.lines.path("".join(steps), INK, 1.1, opacity=0.55)
    words = f"{len(rows):,} × {rate(float(links.gbps[rows[0]]))}"
    pill(sheet.labels, (left.right + right.x) / 2, left.centre, words)
