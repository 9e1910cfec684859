"""The boxes of a column figure: banks of switches and blocks of hosts, where they stand."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
from gpufabric.report.svg import Box, Drawing, number
from gpufabric.report.topology_column_sizes import (
    BANK_GAP,
    BANK_PAD,
    ELLIPSIS_WIDTH,
    GUTTER,
    TOP_SHARE,
    Density,
    Fitted,
    TilePlan,
    tile_plan,
)
from gpufabric.report.topology_groups import Bank, Cell, Column, Grouped, Pod
from gpufabric.report.topology_words import host_rows, tier_rows, tier_words

__all__ = ["HOST_GAP", "Sheet", "place_all"]

CELL_HEIGHT, TALL_CELL_HEIGHT, CAPTION_HEIGHT = 24.0, 34.0, 18.0
TOP_GAP, POD_GAP, HOST_GAP = 168.0, 124.0, 54.0
POD_HEAD = 44.0
CROSS_ROOM = 40.0
INSET = 14.0
CARD_STEP = 4.0
MAX_CARDS = 2


@dataclass
class Sheet:
    """What is drawn so far, in three layers, and where every cell and host block stands."""

    fabric: Fabric
    fit: Fitted
    lines: Drawing = field(default_factory=Drawing)
    boxes: Drawing = field(default_factory=Drawing)
    labels: Drawing = field(default_factory=Drawing)
    place: list[Box] = field(default_factory=list)
    colour: list[str] = field(default_factory=list)
    vertices: list[np.ndarray] = field(default_factory=list)
    bank_of: dict[int, int] = field(default_factory=dict)
    bank_box: list[Box] = field(default_factory=list)

    @property
    def figure(self) -> Grouped:
        """What is drawn."""
        return self.fit.figure

    @property
    def density(self) -> Density:
        """How close."""
        return self.fit.density

    @property
    def cards(self) -> int:
        """Cards seen behind a bank that stands for several planes."""
        return min(self.figure.planes - self.figure.planes_drawn, MAX_CARDS)

    def add_place(self, box: Box, colour: str, vertices: np.ndarray) -> None:
        """Note a place that links may end on."""
        self.place.append(box)
        self.colour.append(colour)
        self.vertices.append(vertices)


def place_all(sheet: Sheet) -> tuple[float, float]:
    """Place every box from the top down; return width and height of the figure."""
    figure, fit = sheet.figure, sheet.fit
    content = fit.content_width
    y = 10.0 + CARD_STEP * sheet.cards
    if not figure.top and not figure.pods[0].spines and (sheet.fabric.links.tier == 4).any():
        y += CROSS_ROOM
    if figure.top:
        _gutter(sheet, figure.top[0].tier, y + 30)
        _place_banks(_Row(sheet, fit.wide_density), figure.top, Box(GUTTER, y, content, 0))
        y += _height(fit.wide_density, figure.top) + TOP_GAP
    tiers = _tier_heights(sheet, y)
    x = GUTTER + (content - fit.pods_width) / 2
    for index, pod in enumerate(figure.pods):
        many = len(figure.pods) > 1
        if fit.hidden and many and index == len(figure.pods) - 1:
            _ellipsis(sheet, Box(x, tiers.leaf, ELLIPSIS_WIDTH, tiers.bottom - tiers.leaf))
            x += ELLIPSIS_WIDTH + sheet.density.gap
        width = sheet.density.pod_width(pod)
        width += 0 if many or not fit.hidden else ELLIPSIS_WIDTH + sheet.density.gap
        _place_pod(sheet, pod, Box(x, y, width, tiers.bottom - y), tiers)
        x += width + sheet.density.gap
    return GUTTER + content + INSET, tiers.bottom + 4


@dataclass(frozen=True)
class _Tiers:
    """Heights at which the rows of pods begin, and where pods end [px]."""

    spine: float
    leaf: float
    host: float
    host_height: float
    bottom: float


def _tier_heights(sheet: Sheet, y: float) -> _Tiers:
    figure = sheet.figure
    spine = leaf = y
    if figure.pods[0].spines:
        spine = y + POD_HEAD
        _gutter(sheet, 2, spine + 30)
        density = _spine_density(sheet)
        leaf = spine + max(_height(density, pod.spines) for pod in figure.pods) + POD_GAP
    density = sheet.density
    host = leaf + max(_height(density, column.banks) for column in figure.columns) + HOST_GAP
    _gutter(sheet, 1, leaf + 30)
    plans = [_plan(sheet, column) for column in figure.columns]
    host_height = max(plan.height for plan in plans)
    _host_gutter(sheet, host, any(plan.per_row for plan in plans))
    return _Tiers(spine, leaf, host, host_height, host + host_height + 58)


def _place_pod(sheet: Sheet, pod: Pod, box: Box, tiers: _Tiers) -> None:
    if len(sheet.figure.pods) > 1:
        sheet.lines.rect(box, PANEL, HAIRLINE, radius=10)
    if pod.spines:
        row = _Row(sheet, _spine_density(sheet))
        _place_banks(row, pod.spines, Box(box.x, tiers.spine, box.width, 0))
    widths = [sheet.density.column_width(column) for column in pod.columns]
    split = bool(sheet.fit.hidden) and len(sheet.figure.pods) == 1
    extra = ELLIPSIS_WIDTH + sheet.density.gap if split else 0
    x = box.x + (box.width - sum(widths) - sheet.density.gap * (len(widths) - 1) - extra) / 2
    for index, (column, width) in enumerate(zip(pod.columns, widths, strict=True)):
        if split and index == len(widths) - 1:
            _ellipsis(sheet, Box(x, tiers.leaf, ELLIPSIS_WIDTH, tiers.bottom - tiers.leaf))
            x += extra
        _place_banks(_Row(sheet, sheet.density), column.banks, Box(x, tiers.leaf, width, 0))
        _draw_hosts(sheet, column, Box(x, tiers.host, width, tiers.host_height))
        x += width + sheet.density.gap


def _ellipsis(sheet: Sheet, box: Box) -> None:
    for step in (-12, 0, 12):
        sheet.labels.circle(box.middle + step, box.centre, 3, QUIET)
    words = _("{count} more").format(count=f"{sheet.fit.hidden:,}")
    sheet.labels.text(box.middle, box.centre + 24, words, SMALL.middle)


# Banks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A row of banks, all of one density."""

    sheet: Sheet
    density: Density


def _spine_density(sheet: Sheet) -> Density:
    return sheet.density if len(sheet.figure.pods) > 1 else sheet.fit.wide_density


def _height(density: Density, banks: Sequence[Bank]) -> float:
    """Height of banks that stand side by side [px]."""
    tall = any(density.words(cell, bank)[1] for bank in banks for cell in bank.cells)
    return CAPTION_HEIGHT + (TALL_CELL_HEIGHT if tall else CELL_HEIGHT) + BANK_PAD


def _place_banks(row: _Row, banks: Sequence[Bank], span: Box) -> None:
    """Place banks side by side in the middle of a span."""
    density = row.density
    room = TOP_SHARE * span.width if banks[0].tier > 1 else 0.0
    share = (room - BANK_GAP * (len(banks) - 1)) / max(len(banks), 1)
    x = span.x + (span.width - density.banks_width(banks, room)) / 2
    for bank in banks:
        box = Box(x, span.y, density.bank_width(bank, share), _height(density, banks))
        _draw_bank(row, bank, box, density.gap_between(bank, share))
        x += box.width + BANK_GAP


def _draw_bank(row: _Row, bank: Bank, box: Box, gap: float) -> None:
    sheet, density = row.sheet, row.density
    sheet.bank_box.append(box)
    for step in range(sheet.cards, 0, -1):
        shift = CARD_STEP * step
        shadow = Box(box.x + shift, box.y - shift, box.width, box.height)
        sheet.boxes.rect(shadow, CARD, HAIRLINE, radius=6)
    sheet.boxes.rect(box, CARD, HAIRLINE, radius=6)
    words = next((w for w in _bank_words(row, bank) if TINY.width(w) <= box.width - 10), "")
    sheet.labels.text(box.x + BANK_PAD, box.y + 13, words, TINY)
    fitting = all(
        STRONG.width(density.words(cell, bank)[0]) <= density.cell_width(cell, bank) - 2
        for cell in bank.cells
    )
    x = box.middle - (density.cells_width(bank) + gap * (len(bank.cells) - 1)) / 2
    for cell in bank.cells:
        width = density.cell_width(cell, bank)
        area = Box(x, box.y + CAPTION_HEIGHT, width, box.height - CAPTION_HEIGHT - BANK_PAD)
        sheet.bank_of[len(sheet.place)] = len(sheet.bank_box) - 1
        _draw_cell(sheet, bank, cell, area)
        if fitting:
            _write_cell(row, bank, cell, area)
        x += width + gap


def _bank_words(row: _Row, bank: Bank) -> Iterator[str]:
    """Yield what to write on a bank, the longest first."""
    counts = {len(cell.rows) for cell in bank.cells}
    count = f"{bank.n_switches:,}"
    if not row.density.counts_in_cells and len(bank.cells) > 1 and counts != {1}:
        each = counts.pop() if len(counts) == 1 else 0
        count = f"{len(bank.cells)} × {each:,}" if each else count
    names = {1: _("{count} leafs"), 2: _("{count} spines"), 3: _("{count} cores")}
    if bank.n_switches == 1:
        names = {1: _("{count} leaf"), 2: _("{count} spine"), 3: _("{count} core")}
    words = names[bank.tier].format(count=count)
    planes = row.sheet.figure.planes
    if planes > 1:
        plane = _("plane {plane}").format(plane=bank.plane)
        if row.sheet.cards:
            plane = _("plane {plane} of {planes}").format(plane=bank.plane, planes=planes)
        yield f"{plane} · {words}"
        yield plane
    yield words


def _colour(bank: Bank, cell: Cell) -> str:
    return rail_colour(cell.rail) if cell.rail >= 0 else {1: QUIET, 2: SPINE, 3: CORE}[bank.tier]


def _draw_cell(sheet: Sheet, bank: Bank, cell: Cell, box: Box) -> None:
    colour = _colour(bank, cell)
    sheet.add_place(box, colour, cell.rows + len(sheet.fabric.hosts))
    names = sheet.fabric.switches.name
    note = str(names[cell.rows[0]])
    if len(cell.rows) > 1:
        note += f" … {names[cell.rows[-1]]}"
    if cell.is_later:
        sheet.boxes.rect(box, tinted(colour, 0.8), colour, radius=3, note=note, **LATER)
    else:
        sheet.boxes.rect(box, colour, radius=3, note=note)


def _write_cell(row: _Row, bank: Bank, cell: Cell, box: Box) -> None:
    sheet = row.sheet
    first, second = row.density.words(cell, bank)
    colour = _colour(bank, cell)
    ink = ink_on(tinted(colour, 0.8) if cell.is_later else colour)
    strong, small = STRONG.coloured(ink).middle, SMALL.coloured(ink).middle
    if first and second:
        sheet.labels.text(box.middle, box.y + 15, first, strong)
        sheet.labels.text(box.middle, box.y + 28, second, small)
    else:
        sheet.labels.text(box.middle, box.centre + 4, first or second, strong if first else small)


# Hosts ------------------------------------------------------------------------------------


def _plan(sheet: Sheet, column: Column) -> TilePlan:
    return tile_plan(sheet.fabric, sheet.figure, column, sheet.density.column_width(column))


def _draw_hosts(sheet: Sheet, column: Column, box: Box) -> None:
    sheet.add_place(box, MUTED, column.hosts)
    sheet.boxes.rect(box, CARD, HAIRLINE, radius=6)
    plan = _plan(sheet, column)
    if plan.per_row:
        _draw_tiles(sheet, column, plan, box)
    else:
        words = _("{count} SUs") if not sheet.figure.by_su else _("{count} hosts")
        sheet.labels.text(
            box.middle, box.centre + 4, words.format(count=f"{plan.count:,}"), STRONG.middle
        )
    _host_words(sheet, column, box)


def _draw_tiles(sheet: Sheet, column: Column, plan: TilePlan, box: Box) -> None:
    step = plan.size + 2
    x0 = box.middle - (min(plan.per_row, plan.count) * step - 2) / 2
    y0 = box.centre - (plan.rows * step - 2) / 2
    steps: dict[int, list[str]] = defaultdict(list)
    size = number(plan.size)
    for index, state in enumerate(_tile_states(sheet, column, plan.count)):
        x, y = x0 + index % plan.per_row * step, y0 + index // plan.per_row * step
        steps[state].append(f"M{number(x)} {number(y)}h{size}v{size}h-{size}z")
    fills = {0: tinted(SPINE, 0.62), 1: tinted(SPINE, 0.92), 2: CARD}
    strokes = {0: "", 1: tinted(SPINE, 0.45), 2: HAIRLINE}
    for state, parts in sorted(steps.items()):
        sheet.boxes.area("".join(parts), fills[state], stroke=strokes[state])


def _tile_states(sheet: Sheet, column: Column, count: int) -> Iterator[int]:
    """Yield 0 for what is built today, 1 for what comes later, 2 for a free place."""
    stages = sheet.fabric.hosts.stage[column.hosts]
    if not sheet.figure.by_su:
        su = sheet.fabric.hosts.su[column.hosts]
        stages = stages[np.unique(su, return_index=True)[1]]
    yield from (int(stage) for stage in stages)
    yield from itertools.repeat(2, count - len(stages))


def _host_words(sheet: Sheet, column: Column, box: Box) -> None:
    gpus = f"{int(sheet.fabric.hosts.n_gpus[column.hosts].sum()):,}"
    hosts = f"{len(column.hosts):,}"
    title = column.title
    if not sheet.figure.by_su and column.n_sus > 1:
        title = _("{pod}: {count} SUs").format(pod=title, count=f"{column.n_sus:,}")
    sheet.labels.text(box.middle, box.bottom + 18, title, STRONG.middle)
    words = _("{hosts} hosts · {gpus} GPUs").format(hosts=hosts, gpus=gpus)
    lines = [words]
    if SMALL.width(words) > box.width + sheet.density.gap - 6:
        lines = [
            _("{count} hosts").format(count=hosts),
            _("{count} GPUs").format(count=gpus),
        ]
    for index, line in enumerate(lines):
        sheet.labels.text(box.middle, box.bottom + 33 + 14 * index, line, SMALL.middle)


# Captions of the rows ---------------------------------------------------------------------


def _gutter(sheet: Sheet, tier: int, y: float) -> None:
    words, later = tier_rows(sheet.fabric)[tier]
    width = GUTTER - INSET - 8
    sheet.labels.text(INSET, y, tier_words(tier), HEADING)
    sheet.labels.text(INSET, y + 16, SMALL.shortened(words, width), SMALL)
    sheet.labels.text(INSET, y + 31, SMALL.shortened(later, width), SMALL)


def _host_gutter(sheet: Sheet, y: float, has_tiles: bool) -> None:  # noqa: FBT001
    tile = _("1 tile = 1 host") if sheet.figure.by_su else _("1 tile = 1 SU")
    lines = host_rows(sheet.fabric, GUTTER - INSET - 8) + ([tile] if has_tiles else [])
    sheet.labels.text(INSET, y + 14, _("Hosts"), HEADING)
    for index, line in enumerate(lines):
        sheet.labels.text(INSET, y + 30 + 15 * index, line, SMALL)
