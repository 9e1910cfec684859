"""What surrounds every drawing: title, legend, notes and the fabric's hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpufabric.report.figure_style import (
    CARD,
    GRID,
    HAIRLINE,
    LABEL,
    LATER,
    MUTED,
    SMALL,
    SUBTITLE,
    TITLE,
)
from gpufabric.report.svg import Box, Drawing, Font, number

__all__ = ["Frame", "Key", "framed", "wrapped"]

MARGIN = 28.0
MIN_WIDTH = 860.0
_GRID_STEP = 28
_BETWEEN = " · "


@dataclass(frozen=True)
class Key:
    """One entry of the legend: a box or a line, and what it stands for."""

    words: str
    fill: str
    is_line: bool = False
    is_later: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Frame:
    """The words around a drawing.

    Parameters
    ----------
    title, subtitle
        One line each; the subtitle wraps.
    legend
        Entries, left to right.
    notes
        Sentences below the drawing.
    footer
        Left and right end of the last line.
    """

    title: str
    subtitle: str
    legend: Sequence[Key]
    notes: Sequence[str]
    footer: tuple[str, str]


def wrapped(text: str, font: Font, width: float) -> Iterator[str]:
    """Yield the lines of `text` that fit `width` pixels; a word too long for one is broken."""
    line = ""
    for word in text.split(" "):
        rest = word
        trial = f"{line} {rest}" if line else rest
        if font.width(trial) <= width:
            line = trial
            continue
        if line:
            yield line
        while font.width(rest) > width:
            cut = len(rest)
            while cut > 1 and font.width(rest[:cut]) > width:
                cut -= 1
            yield rest[:cut]
            rest = rest[cut:]
        line = rest
    if line:
        yield line


def _parted(text: str, width: float) -> Iterator[str]:
    """Yield the lines of a subtitle, broken between its parts where these fit a line."""
    line = ""
    for part in text.split(_BETWEEN):
        trial = f"{line}{_BETWEEN}{part}" if line else part
        if SUBTITLE.width(trial) <= width:
            line = trial
            continue
        if line:
            yield line
        *full, line = wrapped(part, SUBTITLE, width)
        yield from full
    if line:
        yield line


def framed(body: Drawing, size: tuple[float, float], frame: Frame, key: str) -> str:
    """Return the finished SVG of a `body` of the given width and height."""
    width = max(size[0] + 2 * MARGIN, MIN_WIDTH)
    inner = width - 2 * MARGIN
    drawing = Drawing()
    y = MARGIN + TITLE.size
    for line in wrapped(frame.title, TITLE, inner):
        drawing.text(MARGIN, y, line, TITLE)
        y += TITLE.size * 1.3
    y -= 4
    for line in _parted(frame.subtitle, inner):
        drawing.text(MARGIN, y, line, SUBTITLE)
        y += SUBTITLE.size * 1.45
    y = _legend(drawing, frame.legend, y + 8, width)
    top, height = y + 10, size[1]
    _grid(drawing, Box(MARGIN, top, inner, height + 24))
    drawing.extend(body, (width - size[0]) / 2, top + 12)
    y = top + height + 24 + 22
    for note in frame.notes:
        for line in wrapped(note, SMALL, inner):
            drawing.text(MARGIN, y, line, SMALL)
            y += SMALL.size * 1.5
    y += 4
    drawing.path(f"M{number(MARGIN)} {number(y)}H{number(width - MARGIN)}", HAIRLINE, 1)
    left, right = frame.footer
    drawing.text(MARGIN, y + 18, left, SMALL)
    drawing.text(width - MARGIN, y + 18, right, SMALL.end)
    description = " ".join([frame.subtitle, *frame.notes])
    return drawing.written(width, y + 18 + 18, frame.title, description, key=key)


def _legend(drawing: Drawing, entries: Sequence[Key], y: float, width: float) -> float:
    if not entries:
        return y
    x, size = MARGIN, 11.0
    for entry in entries:
        long = 22.0 if entry.is_line else size
        needed = long + 6 + LABEL.width(entry.words) + 18
        if x + needed - 18 > width - MARGIN and x > MARGIN:
            x, y = MARGIN, y + 20
        _symbol(drawing, entry, Box(x, y, long, size))
        drawing.text(x + long + 6, y + size - 1.5, entry.words, LABEL.coloured(MUTED))
        x += needed
    return y + size + 6


def _symbol(drawing: Drawing, entry: Key, box: Box) -> None:
    later = LATER if entry.is_later else {}
    if entry.is_line:
        steps = f"M{number(box.x)} {number(box.centre)}H{number(box.right)}"
        drawing.path(steps, entry.fill, 2.5, **later)
    elif entry.is_later:
        drawing.rect(box, CARD, entry.fill, radius=2, **LATER)
    else:
        drawing.rect(box, entry.fill, entry.mark, radius=2)


def _grid(drawing: Drawing, box: Box) -> None:
    """Paint the sheet that the drawing lies on."""
    drawing.rect(box, "#fcfdfe", GRID, radius=8)
    steps = [
        f"M{number(box.x + at)} {number(box.y + 1)}V{number(box.bottom - 1)}"
        for at in range(_GRID_STEP, int(box.width) - 4, _GRID_STEP)
    ]
    steps += [
        f"M{number(box.x + 1)} {number(box.y + at)}H{number(box.right - 1)}"
        for at in range(_GRID_STEP, int(box.height) - 4, _GRID_STEP)
    ]
    drawing.path("".join(steps), GRID, 0.6)
