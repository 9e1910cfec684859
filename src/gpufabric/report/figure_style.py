"""Colours, fonts and repeated pieces of all drawings."""

from __future__ import annotations

from gpufabric.report.svg import Box, Drawing, Font

__all__ = [
    "CARD",
    "CORE",
    "GRID",
    "HAIRLINE",
    "HEADING",
    "INK",
    "LABEL",
    "LATER",
    "LETTERS",
    "MUTED",
    "PANEL",
    "QUIET",
    "SMALL",
    "SPINE",
    "STRONG",
    "SUBTITLE",
    "TINY",
    "TITLE",
    "WARNING",
    "ink_on",
    "pill",
    "rail_colour",
    "tinted",
]

INK = "#1f2a37"
MUTED = "#5b6876"
QUIET = "#8a96a3"
HAIRLINE = "#d4dbe3"
GRID = "#eef2f6"
PANEL = "#f6f8fb"
CARD = "#ffffff"
WARNING = "#b3261e"
SPINE = "#3d5a80"
CORE = "#293f5c"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LATER = {"stroke_dasharray": "4 3"}

TITLE = Font(20, INK, bold=True)
SUBTITLE = Font(12, MUTED)
HEADING = Font(12, INK, bold=True)
STRONG = Font(11, INK, bold=True)
LABEL = Font(11, INK)
SMALL = Font(10, MUTED)
TINY = Font(9, MUTED)

# Eight hues that stay apart for the common colour deficiencies; every one is also named by number.
_RAILS = (
    "#4e79a7",
    "#e08b3e",
    "#59a14f",
    "#d0616b",
    "#6fb1ad",
    "#9a76a8",
    "#d9b23d",
    "#94735f",
)


def rail_colour(rail: int) -> str:
    """Return the colour of a rail; grey for none. Eight colours, the next eight are lighter.

    Examples
    --------
    >>> rail_colour(0), rail_colour(8), rail_colour(-1)
    ('#4e79a7', '#809fc0', '#8a96a3')
    """
    if rail < 0:
        return QUIET
    colour = _RAILS[rail % len(_RAILS)]
    return tinted(colour, 0.28) if rail // len(_RAILS) % 2 else colour


def tinted(colour: str, white: float) -> str:
    """Return `colour` mixed with a share of white.

    Examples
    --------
    >>> tinted("#000000", 0.5)
    '#808080'
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * white):02x}" for part in parts)


def ink_on(colour: str) -> str:
    """Return the text colour that reads best on `colour`.

    Examples
    --------
    >>> ink_on("#293f5c"), ink_on("#d9b23d")
    ('#ffffff', '#1f2a37')
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#ffffff" if 0.299 * red + 0.587 * green + 0.114 * blue < 150 else INK


def pill(drawing: Drawing, x: float, y: float, text: str, font: Font = SMALL) -> Box:
    """Write `text` on a rounded white label around the point `x`, `y`; return its box."""
    width = font.width(text) + 14
    box = Box(x - width / 2, y - font.size / 2 - 3.5, width, font.size + 7)
    drawing.rect(box, CARD, HAIRLINE, radius=box.height / 2)
    drawing.text(x, y + font.size * 0.36, text, font.middle)
    return box
