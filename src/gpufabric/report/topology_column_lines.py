"""The links of a column figure: lines or ribbons between its boxes, and labels that count them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from gpufabric.report.figure_style import LATER, SPINE, pill
from gpufabric.report.svg import curve, number
from gpufabric.report.topology_column_boxes import CARD_STEP, HOST_GAP, Sheet
from gpufabric.report.topology_groups import Bundle, bundles
from gpufabric.report.topology_words import rate

__all__ = ["draw_links"]

MAX_LINES = 700
FEW_LINES = 150
CHUNKS = 6
EDGE = 3.0


def draw_links(sheet: Sheet) -> None:
    """Draw and count the bundles between all places of the sheet."""
    where = np.full(len(sheet.fabric.hosts) + len(sheet.fabric.switches), -1, np.int64)
    for place, vertices in enumerate(sheet.vertices):
        where[vertices] = place
    _host_lines(sheet, bundles(sheet.fabric, where, (1,)))
    for tier in (2, 3):
        found = bundles(sheet.fabric, where, (tier,))
        if len(found) <= MAX_LINES:
            _switch_lines(sheet, found)
        else:
            _ribbons(sheet, found)
        _count_upward(sheet, found)
    _cross_links(sheet, bundles(sheet.fabric, where, (4,)))


def _host_lines(sheet: Sheet, found: Sequence[Bundle]) -> None:
    """Draw one line from each cell to its hosts; dashed where none of its links is built today."""
    steps: dict[tuple[str, bool], list[str]] = defaultdict(list)
    total: dict[int, dict[float, int]] = defaultdict(lambda: defaultdict(int))
    today = {(bundle.lower, bundle.upper) for bundle in found if not bundle.is_later}
    for bundle in found:
        cell, block = sheet.place[bundle.upper], sheet.place[bundle.lower]
        bank = sheet.bank_of[bundle.upper]
        x = min(max(cell.middle, block.x + 6), block.right - 6)
        bottom = sheet.bank_box[bank].bottom
        is_later = (bundle.lower, bundle.upper) not in today
        steps[sheet.colour[bundle.upper], is_later].append(
            curve(x, block.y, cell.middle, bottom) + f"V{number(cell.bottom)}"
        )
        total[bank][bundle.gbps] += bundle.n_links
    for (colour, later), parts in sorted(steps.items()):
        more = LATER if later else {}
        sheet.lines.path("".join(dict.fromkeys(parts)), colour, 2, opacity=0.75, **more)
    for bank, rates in total.items():
        box = sheet.bank_box[bank]
        pill(sheet.labels, box.middle, box.bottom + HOST_GAP / 2, _words(rates))


def _words(rates: Mapping[float, int]) -> str:
    return " + ".join(f"{count:,} × {rate(gbps)}" for gbps, count in sorted(rates.items()))


def _switch_lines(sheet: Sheet, found: Sequence[Bundle]) -> None:
    """Draw one line for each pair of cells; ends are spread over the cell's width.

    Lines are painted in rounds, so that no rail covers all others.
    """
    low_x = _spread(sheet, [(b.lower, b.upper) for b in found])
    high_x = _spread(sheet, [(b.upper, b.lower) for b in found])
    steps: dict[tuple[int, str, bool], list[str]] = defaultdict(list)
    for index, bundle in enumerate(found):
        low, high = sheet.place[bundle.lower], sheet.place[bundle.upper]
        top = sheet.bank_box[sheet.bank_of[bundle.upper]].bottom
        bottom = sheet.bank_box[sheet.bank_of[bundle.lower]].y
        key = (bundle.upper % CHUNKS, sheet.colour[bundle.lower], bundle.is_later)
        steps[key].append(
            f"M{number(high_x[index])} {number(high.bottom)}V{number(top)}"
            + curve(high_x[index], top, low_x[index], bottom).replace("M", "L", 1)
            + f"V{number(low.y)}"
        )
    few = len(found) <= FEW_LINES
    opacity, width = (0.75, 1.3) if few else (0.42, 0.8)
    for (_chunk, colour, later), parts in sorted(steps.items()):
        more = LATER if later else {}
        sheet.lines.path("".join(parts), colour, width, opacity=opacity, **more)


def _spread(sheet: Sheet, ends: Sequence[tuple[int, int]]) -> list[float]:
    """Return the x at which each line ends on its own place, in the order of the other ends."""
    at: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for index, (mine, other) in enumerate(ends):
        at[mine].append((sheet.place[other].middle, index))
    found = [0.0] * len(ends)
    for mine, others in at.items():
        box = sheet.place[mine]
        room = box.width - 2 * EDGE
        for position, (_x, index) in enumerate(sorted(others)):
            found[index] = box.x + EDGE + room * (position + 0.5) / len(others)
    return found


def _ribbons(sheet: Sheet, found: Sequence[Bundle]) -> None:
    """Draw one band for each pair of banks, where single lines would be too many."""
    pairs = dict.fromkeys((sheet.bank_of[b.lower], sheet.bank_of[b.upper]) for b in found)
    opacity = round(max(0.055, min(0.13, 0.85 / len(pairs))), 3)
    for low, high in pairs:
        below, above = sheet.bank_box[low], sheet.bank_box[high]
        y1, y2 = number(above.bottom), number(below.y)
        middle = number((above.bottom + below.y) / 2)
        left, right = number(below.x + EDGE), number(below.right - EDGE)
        top_left, top_right = number(above.x + EDGE), number(above.right - EDGE)
        steps = (
            f"M{left} {y2}C{left} {middle} {top_left} {middle} {top_left} {y1}"
            f"H{top_right}C{top_right} {middle} {right} {middle} {right} {y2}Z"
        )
        sheet.lines.area(steps, SPINE, opacity=opacity)


def _count_upward(sheet: Sheet, found: Sequence[Bundle]) -> None:
    """Write above each bank what goes up from it."""
    total: dict[int, dict[float, int]] = defaultdict(lambda: defaultdict(int))
    for bundle in found:
        total[sheet.bank_of[bundle.lower]][bundle.gbps] += bundle.n_links
    for bank, rates in total.items():
        box = sheet.bank_box[bank]
        pill(sheet.labels, box.middle, box.y - 20 - CARD_STEP * sheet.cards, _words(rates))


def _cross_links(sheet: Sheet, found: Sequence[Bundle]) -> None:
    """Draw the links between leafs of one bank: the two of a pair, or a full mesh of routers."""
    total: dict[int, dict[float, int]] = defaultdict(lambda: defaultdict(int))
    steps: dict[int, list[str]] = defaultdict(list)
    for bundle in found:
        bank = sheet.bank_of[bundle.lower]
        total[bank][bundle.gbps] += bundle.n_links
        a, b = sheet.place[bundle.lower], sheet.place[bundle.upper]
        if bundle.lower == bundle.upper:
            continue
        top, edge = sheet.bank_box[bank].y, number(a.y)
        rise = number(top - 8 - 22 * min(1.0, abs(b.middle - a.middle) / 240))
        steps[bank].append(
            f"M{number(a.middle)} {edge}C{number(a.middle)} {rise} {number(b.middle)} {rise} "
            f"{number(b.middle)} {edge}"
        )
    for parts in steps.values():
        width, opacity = (2.0, 0.6) if len(parts) == 1 else (0.8, 0.25)
        sheet.lines.path("".join(parts), SPINE, width, opacity=opacity)
    for bank, rates in total.items():
        box = sheet.bank_box[bank]
        pill(sheet.labels, box.middle, box.y - 24, _words(rates))
