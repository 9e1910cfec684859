"""Draws measured against predicted bus bandwidth, and the error by size, as one SVG file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.validation_points import FABRICS, Points
from gpufabric.report.figure_style import (
    GRID,
    HAIRLINE,
    HEADING,
    INK,
    LABEL,
    MUTED,
    SMALL,
    SUBTITLE,
    TITLE,
    rail_colour,
)
from gpufabric.report.svg import Box, Drawing, number

__all__ = ["figure_text"]

Floats = NDArray[np.float64]

WIDTH, HEIGHT = 1180.0, 640.0
LEFT = Box(72, 110, 470, 440)
RIGHT = Box(640, 110, 510, 440)
RATES = (0.5, 1000.0)  # GB/s
SIZES = (2.0**9, 2.0**36)
RATIOS = (0.2, 5.0)
MIB = 2.0**20
TOLERANCE = 1.25
RADIUS = 2.6
TICKS_OF_SIZE = ((10, "1 KiB"), (15, "32 KiB"), (20, "1 MiB"), (25, "32 MiB"), (30, "1 GiB"),
                 (35, "32 GiB"))  # fmt: skip


@dataclass(frozen=True)
class Axes:
    """A panel with logarithmic axes."""

    box: Box
    across: tuple[float, float]
    up: tuple[float, float]

    def x(self, value: float) -> float:
        """Place of a value on the horizontal axis [px]."""
        return self.box.x + self.box.width * _share(value, self.across)

    def place(self, across: float, up: float) -> tuple[float, float]:
        """Place of a point [px]."""
        return self.x(across), self.y(up)

    def y(self, value: float) -> float:
        """Place of a value on the vertical axis [px]."""
        return self.box.bottom - self.box.height * _share(value, self.up)


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = np.log(ends)
    return float(np.clip((np.log(value) - low) / (high - low), 0.0, 1.0))


def figure_text(points: Points, names: list[str]) -> str:
    """Return the SVG file; `names` are those of the runs."""
    drawing = Drawing()
    drawing.text(28, 40, "Collectives: predicted and measured", TITLE)
    subtitle = (
        f"{len(points.run)} points of {len(names)} public runs; each predicted by constants "
        "fitted without its source"
    )
    drawing.text(28, 62, subtitle, SUBTITLE)
    rates = Axes(LEFT, RATES, RATES)
    ratios = Axes(RIGHT, SIZES, RATIOS)
    _rates_panel(drawing, rates)
    _ratios_panel(drawing, ratios)
    colours = {name: rail_colour(at) for at, name in enumerate(FABRICS.values())}
    predicted = points.bus_gbytes_per_s * (1 + points.error)
    for at, fabric in enumerate(points.fabric.tolist()):
        size, measured = float(points.size_bytes[at]), float(points.bus_gbytes_per_s[at])
        note = (
            f"{names[points.run[at]]}, {size:.0f} B: measured {measured:.3g} GB/s, "
            f"predicted {predicted[at]:.3g} GB/s"
        )
        places = [ratios.place(size, 1 + float(points.error[at]))]
        if size >= MIB:
            places.append(rates.place(measured, float(predicted[at])))
        for x, y in places:
            drawing.circle(x, y, RADIUS, colours[fabric], note=note, fill_opacity=0.55)
    _legend(drawing, colours)
    return drawing.written(
        WIDTH,
        HEIGHT,
        "Predicted against measured bus bandwidth",
        "Left: bus bandwidth of messages from 1 MiB on; right: predicted over measured by size.",
    )


def _rates_panel(drawing: Drawing, axes: Axes) -> None:
    box = axes.box
    drawing.text(box.x, box.y - 14, "Bus bandwidth from 1 MiB on", HEADING)
    drawing.rect(box, "#ffffff", HAIRLINE)
    for value in (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0):
        _line(drawing, axes.x(value), box.y, axes.x(value), box.bottom, GRID)
        _line(drawing, box.x, axes.y(value), box.right, axes.y(value), GRID)
        drawing.text(axes.x(value), box.bottom + 18, f"{value:g}", SMALL.middle)
        drawing.text(box.x - 8, axes.y(value) + 4, f"{value:g}", SMALL.end)
    low, high = RATES
    corners = [
        (axes.x(low), axes.y(low * TOLERANCE)),
        (axes.x(high / TOLERANCE), axes.y(high)),
        (axes.x(high), axes.y(high)),
        (axes.x(high), axes.y(high / TOLERANCE)),
        (axes.x(low * TOLERANCE), axes.y(low)),
        (axes.x(low), axes.y(low)),
    ]
    steps = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "Z"
    drawing.area(steps, MUTED, fill_opacity=0.1)
    _line(drawing, axes.x(low), axes.y(low), axes.x(high), axes.y(high), INK)
    drawing.text(box.middle, box.bottom + 38, "measured [GB/s]", LABEL.middle)
    _upright(drawing, box.x - 44, box.centre, "predicted [GB/s]")


def _ratios_panel(drawing: Drawing, axes: Axes) -> None:
    box = axes.box
    drawing.text(box.x, box.y - 14, "Predicted over measured, by message size", HEADING)
    drawing.rect(box, "#ffffff", HAIRLINE)
    top, bottom = axes.y(TOLERANCE), axes.y(1 / TOLERANCE)
    drawing.rect(Box(box.x, top, box.width, bottom - top), MUTED, fill_opacity=0.1)
    for power, words in TICKS_OF_SIZE:
        x = axes.x(2.0**power)
        _line(drawing, x, box.y, x, box.bottom, GRID)
        drawing.text(x, box.bottom + 18, words, SMALL.middle)
    for value in (0.2, 0.33, 0.5, 0.8, 1.0, 1.25, 2.0, 3.0, 5.0):
        y = axes.y(value)
        _line(drawing, box.x, y, box.right, y, INK if value == 1.0 else GRID)
        drawing.text(box.x - 8, y + 4, f"{value:g}", SMALL.end)
    drawing.text(box.middle, box.bottom + 38, "message size", LABEL.middle)
    _upright(drawing, box.x - 48, box.centre, "predicted / measured")


def _legend(drawing: Drawing, colours: dict[str, str]) -> None:
    x, y = 28.0, HEIGHT - 24
    for words, colour in colours.items():
        drawing.circle(x + 5, y - 4, 5, colour, fill_opacity=0.8)
        drawing.text(x + 16, y, words, LABEL)
        x += 16 + LABEL.width(words) + 22
    words = "grey: within 25 %; farther off than 5: on the edge"
    drawing.text(WIDTH - 30, y, words, SMALL.end)


def _line(drawing: Drawing, x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
    steps = f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"
    drawing.path(steps, colour, 1.0)


def _upright(drawing: Drawing, x: float, y: float, words: str) -> None:
    turn = f"rotate(-90 {number(x)} {number(y)})"
    drawing.text(x, y, words, LABEL.middle, transform=turn)
