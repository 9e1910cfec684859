"""An SVG drawing, written element by element, self-contained and the same for the same input."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

__all__ = ["Box", "Drawing", "Font", "curve", "number", "text_width", "xml_text"]

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans CJK SC', sans-serif"

# Advance widths of the printable ASCII characters in DejaVu Sans and its bold, in 1/1000 em (font
# version 2.37, table hmtx): the widest of the fonts named above, so that text fits in all of them.
_REGULAR = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)  # fmt: skip
_BOLD = (
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696,
    696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683,
    683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771,
    724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665,
    343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712, 365, 712, 838,
)  # fmt: skip
_OTHER = {"·": 380, "–": 500, "—": 1000, "…": 1000}
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_WIDE = 1000
_UNKNOWN = 840


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of `text` in a font of `size` pixels [px], at most.

    Examples
    --------
    >>> round(text_width("leaf-01", 10), 1)
    34.9
    """
    widths = _BOLD if bold else _REGULAR
    total = 0
    for sign in text:
        code = ord(sign)
        if 32 <= code < 127:
            total += widths[code - 32]
        elif unicodedata.east_asian_width(sign) in "WF":
            total += _WIDE
        else:
            total += _OTHER.get(sign, _UNKNOWN)
    return total * size / 1000


def number(value: float) -> str:
    """Return a coordinate with at most one decimal.

    Examples
    --------
    >>> number(12.0), number(12.25), number(-0.04)
    ('12', '12.2', '0')
    """
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def curve(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return the path of a link that leaves and arrives vertically."""
    middle = number((y1 + y2) / 2)
    if abs(x1 - x2) < 0.05:
        return f"M{number(x1)} {number(y1)}V{number(y2)}"
    start, end = f"{number(x1)} {number(y1)}", f"{number(x2)} {number(y2)}"
    return f"M{start}C{number(x1)} {middle} {number(x2)} {middle} {end}"


@dataclass(frozen=True)
class Box:
    """A rectangle: left, top, width and height [px]."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Right edge [px]."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Lower edge [px]."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """Horizontal middle [px]."""
        return self.x + self.width / 2

    @property
    def centre(self) -> float:
        """Vertical middle [px]."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Font:
    """How one kind of text looks.

    Parameters
    ----------
    size
        Height of the font [px].
    fill
        Colour.
    bold
        True for weight 700.
    anchor
        Which point of the text is placed: ``start``, ``middle`` or ``end``.
    """

    size: float
    fill: str
    bold: bool = False
    anchor: str = "start"

    @property
    def middle(self) -> Font:
        """The same, placed by its middle."""
        return replace(self, anchor="middle")

    @property
    def end(self) -> Font:
        """The same, placed by its end."""
        return replace(self, anchor="end")

    def coloured(self, fill: str) -> Font:
        """Return the same in another colour."""
        return replace(self, fill=fill)

    def width(self, text: str) -> float:
        """Width of `text` in this font [px], at most."""
        return text_width(text, self.size, bold=self.bold)

    def shortened(self, text: str, width: float) -> str:
        """Return `text`, cut with an ellipsis where it is wider than `width` pixels.

        Examples
        --------
        >>> Font(10, "#000000").shortened("a-very-long-switch-name", 60)
        'a-very-lo…'
        """
        if self.width(text) <= width:
            return text
        kept = text
        while kept and self.width(kept + "…") > width:
            kept = kept[:-1]
        return kept + "…" if kept else ""


class Drawing:
    """The elements of one drawing, in the order they are painted."""

    def __init__(self) -> None:
        self._elements: list[str] = []

    def add(self, element: str) -> None:
        """Append one element, written out."""
        self._elements.append(element)

    def rect(
        self,
        box: Box,
        fill: str,
        stroke: str = "",
        *,
        radius: float = 0,
        note: str = "",
        **more: object,
    ) -> None:
        """Append a rectangle; `note` is shown when the pointer rests on it."""
        shape = (
            f'<rect x="{number(box.x)}" y="{number(box.y)}" width="{number(box.width)}"'
            f' height="{number(box.height)}"'
        )
        if radius:
            shape += f' rx="{number(radius)}"'
        shape += f' fill="{fill}"' + (f' stroke="{stroke}"' if stroke else "") + _attributes(more)
        self.add(_closed(shape, "rect", note))

    def circle(
        self, x: float, y: float, radius: float, fill: str, *, note: str = "", **more: object
    ) -> None:
        """Append a circle."""
        shape = (
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}"'
            + _attributes(more)
        )
        self.add(_closed(shape, "circle", note))

    def text(self, x: float, y: float, text: str, font: Font, **more: object) -> None:
        """Append one line of text with its baseline at `y`."""
        if not text:
            return
        size, fill = number(font.size), font.fill
        shape = f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" fill="{fill}"'
        if font.anchor != "start":
            shape += f' text-anchor="{font.anchor}"'
        if font.bold:
            shape += ' font-weight="700"'
        self.add(f"{shape}{_attributes(more)}>{_escaped(text)}</text>")

    def path(
        self, steps: str, stroke: str, width: float, *, note: str = "", **more: object
    ) -> None:
        """Append a line."""
        if not steps:
            return
        shape = f'<path d="{steps}" fill="none" stroke="{stroke}" stroke-width="{number(width)}"'
        self.add(_closed(shape + _attributes(more), "path", note))

    def area(self, steps: str, fill: str, *, note: str = "", **more: object) -> None:
        """Append a filled shape."""
        shape = f'<path d="{steps}" fill="{fill}"' + _attributes(more)
        self.add(_closed(shape, "path", note))

    def extend(self, other: Drawing, dx: float = 0, dy: float = 0) -> None:
        """Append all elements of another drawing, moved."""
        if dx or dy:
            self.add(f'<g transform="translate({number(dx)} {number(dy)})">')
            self._elements.extend(other._elements)
            self.add("</g>")
        else:
            self._elements.extend(other._elements)

    def written(
        self, width: float, height: float, title: str, description: str, *, key: str = "0"
    ) -> str:
        """Return the SVG file; `key` makes its ids unlike those of another drawing on a page."""
        w, h = number(width), number(height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
            f'viewBox="0 0 {w} {h}" role="img" aria-labelledby="title-{key} desc-{key}" '
            f"font-family={quoteattr(FONT)}>"
        )
        body = [
            head,
            f'<title id="title-{key}">{_escaped(title)}</title>',
            f'<desc id="desc-{key}">{_escaped(description)}</desc>',
            f'<rect width="{w}" height="{h}" fill="#ffffff"/>',
            *self._elements,
            "</svg>",
        ]
        return "\n".join(body) + "\n"


def xml_text(text: str) -> str:
    """Return `text` without the signs that no XML file may hold.

    Examples
    --------
    >>> xml_text("a" + chr(0) + "b")
    'ab'
    """
    return _NOT_IN_XML.sub("", text)


def _escaped(text: str) -> str:
    return escape(xml_text(text))


def _attributes(more: dict[str, object]) -> str:
    return "".join(
        f" {name.replace('_', '-')}={quoteattr(_value(value))}"
        for name, value in more.items()
        if value not in (None, "")
    )


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) and abs(value) >= 1 else str(value)


def _closed(shape: str, name: str, note: str) -> str:
    return f"{shape}><title>{_escaped(note)}</title></{name}>" if note else f"{shape}/>"
