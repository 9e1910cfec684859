"""The texts of an SVG as boxes on the sheet, read without the code that drew them."""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

SVG = "{http://www.w3.org/2000/svg}"

# Em widths by class of sign in DejaVu Sans, rounded up; bold is a tenth wider.
NARROW, DIGIT, WIDE = set("ijlI.,:;'|!f-r()[] t/"), set("0123456789"), set("mwMW@%")


class TextBox(NamedTuple):
    """One text with its box [px]."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: TextBox) -> bool:
        """Whether two boxes share more than half a pixel."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > 0.5
            and min(self.bottom, other.bottom) - max(self.top, other.top) > 0.5
        )


def width_of(text: str, size: float, *, bold: bool) -> float:
    """Width of a text [px], from a coarse table of its own."""
    em = 0.0
    for sign in text:
        if unicodedata.east_asian_width(sign) in "WF":
            em += 1.0
        elif sign in NARROW:
            em += 0.36
        elif sign in WIDE:
            em += 0.93
        else:
            em += 0.66 if sign.isupper() else 0.61
    return em * size * (1.08 if bold else 1.0)


def texts(svg: str) -> list[TextBox]:
    """Return the texts of an SVG with their boxes."""
    return list(_walk(ET.fromstring(svg), 0.0, 0.0))


def sheet(svg: str) -> tuple[float, float]:
    """Return width and height of the view box."""
    _x, _y, width, height = ET.fromstring(svg).attrib["viewBox"].split()
    return float(width), float(height)


def _walk(element: ET.Element, dx: float, dy: float) -> Iterator[TextBox]:
    move = element.get("transform", "")
    if move:
        assert move.startswith("translate(")
        x, y = move.removeprefix("translate(").rstrip(")").split()
        dx, dy = dx + float(x), dy + float(y)
    if element.tag == f"{SVG}text":
        yield _box(element, dx, dy)
    for child in element:
        yield from _walk(child, dx, dy)


def _box(element: ET.Element, dx: float, dy: float) -> TextBox:
    text = element.text or ""
    size = float(element.attrib["font-size"])
    width = width_of(text, size, bold=element.get("font-weight") == "700")
    x, y = float(element.attrib["x"]) + dx, float(element.attrib["y"]) + dy
    left = (
        x - {"start": 0.0, "middle": width / 2, "end": width}[element.get("text-anchor", "start")]
    )
    return TextBox(text, left, y - 0.74 * size, left + width, y + 0.12 * size)
