"""Heat maps of all tiers in one PNG, drawn without a browser."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from gpufabric.core.files import write_bytes
from gpufabric.report.figure_style import HAIRLINE, INK, MUTED
from gpufabric.sim.heat_map import HeatMap

__all__ = ["COLOURS", "colour_of", "write_heat_maps"]

COLOURS = ("#fffbe6", "#fee391", "#fec44f", "#fb8b3c", "#d7301f", "#7f0000")
"""Colours at 0, 20 … 100 % utilisation: pale through orange to dark red."""
ABSENT = "#e4e7eb"

CELL = 9
"""Least side of a cell [px]."""
ROOM = 560
"""Width that few cells are stretched to [px]."""
MARGIN, LABELS, TITLE, GAP = 24, 190, 34, 28
KEY_WIDTH, KEY_HEIGHT = 240, 12


def colour_of(value: float) -> tuple[int, int, int]:
    """Return the colour of a utilisation; grey where there is none.

    Examples
    --------
    >>> colour_of(0.0), colour_of(1.0), colour_of(float("nan"))
    ((255, 251, 230), (127, 0, 0), (228, 231, 235))
    """
    if np.isnan(value):
        return _rgb(ABSENT)
    at = min(max(value, 0.0), 1.0) * (len(COLOURS) - 1)
    low = min(int(at), len(COLOURS) - 2)
    part = at - low
    red, green, blue = (
        round(a + (b - a) * part)
        for a, b in zip(_rgb(COLOURS[low]), _rgb(COLOURS[low + 1]), strict=True)
    )
    return red, green, blue


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def write_heat_maps(maps: Sequence[HeatMap], title: str, path: Path) -> Path:
    """Write a picture with a panel for each tier and direction; return `path`.

    Words in the picture are English, since the font that is always there has Latin letters only.
    """
    fonts = (ImageFont.load_default(15), ImageFont.load_default(11))
    panels = [_size(chart) for chart in maps]
    width = max([LABELS + wide for wide, _high in panels] + [LABELS + ROOM]) + 2 * MARGIN
    height = sum(TITLE + high + GAP for _wide, high in panels) + 2 * MARGIN + TITLE + GAP
    picture = Image.new("RGB", (width, height), "#ffffff")
    draw = ImageDraw.Draw(picture)
    draw.text((MARGIN, MARGIN), title, INK, fonts[0])
    _key(draw, width, fonts[1])
    y = MARGIN + TITLE + GAP
    for chart, (wide, high) in zip(maps, panels, strict=True):
        draw.text((MARGIN, y), _panel_title(chart), INK, fonts[1])
        picture.paste(_cells(chart.values, (wide, high)), (MARGIN + LABELS, y + TITLE - 10))
        _row_names(draw, chart, (y + TITLE - 10, high), fonts[1])
        y += TITLE + high + GAP
    content = io.BytesIO()
    picture.save(content, "PNG", optimize=True)
    return write_bytes(path, content.getvalue())


def _panel_title(chart: HeatMap) -> str:
    words = f"{chart.tier.replace('_', '-')} {chart.way}"
    high, wide = chart.block
    if high * wide > 1:
        words += f"; a cell is the busiest link of {high} devices x {wide} links"
    return words


def _size(chart: HeatMap) -> tuple[int, int]:
    n_rows, n_columns = chart.values.shape
    return n_columns * max(CELL, ROOM // n_columns), n_rows * (CELL if n_rows > 24 else 2 * CELL)


def _cells(values: NDArray[np.float64], size: tuple[int, int]) -> Image.Image:
    colours = np.array([colour_of(float(value)) for value in values.ravel()], np.uint8)
    small = Image.fromarray(colours.reshape(*values.shape, 3))
    return small.resize(size, Image.Resampling.NEAREST)


def _row_names(
    draw: ImageDraw.ImageDraw,
    chart: HeatMap,
    place: tuple[int, int],
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
) -> None:
    top, high = place
    step = max(1, -(-len(chart.rows) * 12 // high))
    each = high / len(chart.rows)
    for row in range(0, len(chart.rows), step):
        name = chart.rows[row].replace("…", "..")
        name = name if len(name) <= 30 else name[:28] + ".."
        centre = top + (row + 0.5) * each
        draw.text((MARGIN + LABELS - 8, centre), name, MUTED, font, anchor="rm")


def _key(
    draw: ImageDraw.ImageDraw, width: int, font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> None:
    left, top = width - MARGIN - KEY_WIDTH, MARGIN + 4
    for step in range(KEY_WIDTH):
        colour = colour_of(step / (KEY_WIDTH - 1))
        draw.line((left + step, top, left + step, top + KEY_HEIGHT), colour)
    draw.rectangle((left, top, left + KEY_WIDTH - 1, top + KEY_HEIGHT), outline=HAIRLINE)
    for share, anchor in ((0.0, "la"), (0.5, "ma"), (1.0, "ra")):
        x = left + share * (KEY_WIDTH - 1)
        draw.text((x, top + KEY_HEIGHT + 4), f"{share:.0%}", MUTED, font, anchor=anchor)
    side = KEY_HEIGHT
    right = left - 2 * GAP
    draw.rectangle((right - side, top, right, top + side), fill=ABSENT, outline=HAIRLINE)
    draw.text((right - side - 8, top + side / 2), "failed or absent", MUTED, font, anchor="rm")
