"""The figure of a dragonfly or dragonfly+: its groups on a ring, and one group in detail."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.report.figure_style import (
    CARD,
    HEADING,
    MUTED,
    SMALL,
    SPINE,
    STRONG,
    ink_on,
    rail_colour,
    tinted,
)
from gpufabric.report.svg import Box, Drawing, number
from gpufabric.report.topology_column_sizes import DENSITIES, Fitted
from gpufabric.report.topology_columns import painted
from gpufabric.report.topology_groups import Bundle, bundles, one_group
from gpufabric.report.topology_words import rate

__all__ = ["draw_ring"]

MAX_CARDS, MAX_NAMED = 14, 64
CARD_SIZE = (104.0, 46.0)
MAX_CHORDS = 2100
MIN_RADIUS, MAX_RADIUS = 190.0, 420.0
HIGHLIGHT = rail_colour(1)
GAP = 40.0
INSET_CONTENT = 300.0


def draw_ring(fabric: Fabric) -> tuple[Drawing, tuple[float, float], list[str]]:
    """Return the figure, its width and height, and the notes it needs."""
    ring, ring_size, notes = _ring(fabric)
    fit = next(
        (one for one in _fits(fabric) if one.content_width <= INSET_CONTENT * 1.4),
        list(_fits(fabric))[-1],
    )
    inside, inside_size = painted(fabric, fit)
    height = max(ring_size[1], inside_size[1] + 30)
    whole = Drawing()
    whole.extend(ring, 0, (height - ring_size[1]) / 2)
    x = ring_size[0] + GAP
    whole.text(x + 14, 14, _("Inside one group"), HEADING)
    whole.extend(inside, x, 26)
    planes = fit.figure.planes
    if planes > 1:
        notes.append(_("Plane 0 is drawn; the other {count} are like it.").format(count=planes - 1))
    return whole, (x + inside_size[0], height), notes


def _fits(fabric: Fabric) -> Sequence[Fitted]:
    figure = one_group(fabric)
    return [Fitted(figure, density, min_content=INSET_CONTENT) for density in DENSITIES]


def _ring(fabric: Fabric) -> tuple[Drawing, tuple[float, float], list[str]]:
    switches, hosts = fabric.switches, fabric.hosts
    groups = np.unique(switches.pod[switches.pod >= 0])
    count = len(groups)
    named = count <= MAX_CARDS
    pitch = 128.0 if named else 38.0 if count <= MAX_NAMED else 18.0
    radius = min(MAX_RADIUS, max(MIN_RADIUS, count * pitch / (2 * math.pi)))
    pad = (CARD_SIZE[0] / 2 + 8, CARD_SIZE[1] / 2 + 8) if named else (26.0, 26.0)
    centre = (radius + pad[0], radius + pad[1])
    points = [_point(centre, radius, index, count) for index in range(count)]
    drawing = Drawing()
    notes = _chords(drawing, fabric, points, centre)
    for index, (x, y) in enumerate(points):
        members = hosts.role == 0
        mine = members & (hosts.pod == groups[index])
        is_later = bool((switches.stage[switches.pod == groups[index]] > 0).all())
        if named:
            _card(drawing, (x, y), index, (int(mine.sum()), int(hosts.n_gpus[mine].sum())))
        else:
            _dot(drawing, (x, y), index, count, is_later=is_later)
    return drawing, (2 * centre[0], 2 * centre[1]), notes


def _point(
    centre: tuple[float, float], radius: float, index: int, count: int
) -> tuple[float, float]:
    angle = 2 * math.pi * index / count - math.pi / 2
    return centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)


def _chords(
    drawing: Drawing,
    fabric: Fabric,
    points: Sequence[tuple[float, float]],
    centre: tuple[float, float],
) -> list[str]:
    """Draw the bundles between groups; those of group 1 stand out. Return what to say of them."""
    offset = len(fabric.hosts)
    place = np.full(offset + len(fabric.switches), -1, np.int64)
    plane = fabric.switches.plane == 0
    place[offset:][plane] = fabric.switches.pod[plane]
    found = _merged(bundles(fabric, place, (5,)))
    if not found:
        return []
    drawn = [(a, b) for a, b in found if len(found) <= MAX_CHORDS or a == 0]
    faint = 0.3 if len(found) <= MAX_CHORDS / 4 else 0.16
    for is_first, colour, width, opacity in (
        (False, SPINE, 0.9, faint),
        (True, HIGHLIGHT, 1.5, 0.9),
    ):
        steps = [_chord(points[a], points[b], centre) for a, b in drawn if (a == 0) == is_first]
        drawing.path("".join(steps), colour, width, opacity=opacity)
    counts = sorted({count for count, _gbps in found.values()})
    gbps = {gbps for _count, gbps in found.values()}
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    notes = [
        _("{count} × {rate} between any two groups; those of group 1 stand out.").format(
            count=many, rate=rate(max(gbps))
        )
    ]
    if len(drawn) < len(found):
        notes.append(_("Only the bundles of group 1 are drawn; every group has as many."))
    return notes


def _merged(found: Sequence[Bundle]) -> dict[tuple[int, int], tuple[int, float]]:
    total: dict[tuple[int, int], tuple[int, float]] = {}
    for bundle in found:
        key = (min(bundle.lower, bundle.upper), max(bundle.lower, bundle.upper))
        count, gbps = total.get(key, (0, bundle.gbps))
        total[key] = (count + bundle.n_links, gbps)
    return dict(sorted(total.items()))


def _chord(
    start: tuple[float, float], end: tuple[float, float], centre: tuple[float, float]
) -> str:
    pull = 0.62
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    x = middle[0] + (centre[0] - middle[0]) * pull
    y = middle[1] + (centre[1] - middle[1]) * pull
    return (
        f"M{number(start[0])} {number(start[1])}Q{number(x)} {number(y)} "
        f"{number(end[0])} {number(end[1])}"
    )


def _card(drawing: Drawing, at: tuple[float, float], index: int, size: tuple[int, int]) -> None:
    width, height = CARD_SIZE
    box = Box(at[0] - width / 2, at[1] - height / 2, width, height)
    drawing.rect(box, CARD, HIGHLIGHT if index == 0 else SPINE, radius=8, stroke_width=1.5)
    title = _("Group {number}").format(number=index + 1)
    drawing.text(at[0], at[1] - 6, title, STRONG.middle)
    hosts = _("{count} hosts").format(count=f"{size[0]:,}")
    gpus = _("{count} GPUs").format(count=f"{size[1]:,}")
    drawing.text(at[0], at[1] + 7, hosts, SMALL.middle)
    drawing.text(at[0], at[1] + 19, gpus, SMALL.middle)


def _dot(
    drawing: Drawing, at: tuple[float, float], index: int, count: int, *, is_later: bool
) -> None:
    radius = 14.0 if count <= MAX_NAMED else 6.0
    colour = HIGHLIGHT if index == 0 else SPINE
    fill = tinted(colour, 0.8) if is_later else colour
    note = _("Group {number}").format(number=index + 1)
    drawing.circle(at[0], at[1], radius, fill, note=note, stroke=CARD, stroke_width=1.5)
    if count <= MAX_NAMED:
        drawing.text(at[0], at[1] + 4, str(index + 1), STRONG.coloured(ink_on(fill)).middle)
    elif index % max(1, count // 16) == 0:
        drawing.text(at[0], at[1] + 18, str(index + 1), SMALL.coloured(MUTED).middle)
