"""What would turn the advice: each number turned alone, and who wins then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from gpufabric.core.text import _
from gpufabric.planner.advice import Advice, Change, Flip
from gpufabric.planner.quantity_words import choice_label
from gpufabric.report.case_look import case_colour
from gpufabric.report.chart import Chart, layout
from gpufabric.report.figure_style import HAIRLINE, INK, LETTERS, ink_on
from gpufabric.report.risk_charts import number_words

__all__ = ["closeness", "flip_chart", "nearest_flips"]

WIDE = 1.15
"""How many times its start a span ends at that has room for a letter."""
NAMED = 0.4
"""How far the next skill of a team counts as, in natural logarithms of a number."""


def closeness(flip: Flip) -> float:
    """Return how far the nearest change is: 0.1 is about 10 %; infinite where there is none."""
    return min(
        (_distance(flip, change) for change in (flip.below, flip.above) if change), default=math.inf
    )


def _distance(flip: Flip, change: Change) -> float:
    if flip.names:
        return NAMED * abs(change.value - flip.now)
    if flip.now <= 0 or change.value <= 0:
        span = max(abs(value) for value in flip.values) or 1.0
        return 0.3 + abs(change.value - flip.now) / span
    return abs(math.log(change.value / flip.now))


def nearest_flips(flips: Sequence[Flip]) -> list[Flip]:
    """Return what changes the advice, the nearest change first."""
    return sorted((one for one in flips if one.flips), key=closeness)


def flip_chart(advice: Advice) -> Chart | None:
    """Draw who wins as each number goes from a part to a multiple of what is assumed."""
    shown = [one for one in advice.flips if not one.names and one.now > 0]
    shown.sort(key=lambda one: (closeness(one), one.label))
    if not shown:
        return None
    names = _winners(advice, shown)
    labels = [one.label for one in shown]
    letters = dict(zip(names, LETTERS, strict=False))
    data = [_bar(advice, name, shown, letters[name]) for name in names]
    return Chart(
        name="flips",
        title=_("What would turn the advice: one number turned, all others drawn"),
        words=_(
            "Each number goes from a part to a multiple of what it is today or in the mean (1); "
            "colour and letter are the way that is then best. The nearer a change is to the line, "
            "the sooner settle that number."
        ),
        traces=data,
        layout=layout(
            130 + 27 * len(labels),
            barmode="overlay",
            bargap=0.25,
            xaxis={
                "type": "log",
                "title": {"text": _("times today's value")},
                "tickvals": [0.1, 0.2, 0.5, 1, 2, 5, 10],
                "ticktext": ["0.1", "0.2", "0.5", "1", "2", "5", "10"],
                "range": [math.log10(0.11), math.log10(14)],
            },
            yaxis={
                "type": "category",
                "categoryorder": "array",
                "categoryarray": labels,
                "autorange": "reversed",
                "showgrid": False,
            },
            shapes=[
                {
                    "type": "line",
                    "x0": 1,
                    "x1": 1,
                    "yref": "paper",
                    "y0": 0,
                    "y1": 1,
                    "line": {"color": INK, "width": 2},
                }
            ],
        ),
        heads=[_("Number"), _("now"), _("the advice changes")],
        rows=[[one.label, _now(one), _changes(one)] for one in advice.flips],
    )


def _winners(advice: Advice, flips: Sequence[Flip]) -> list[str]:
    found = {name for one in flips for name in one.winners}
    return [case.name for case in advice.ranking if case.name in found]


def _bar(advice: Advice, name: str, flips: Sequence[Flip], letter: str) -> dict[str, Any]:
    case = advice.ranked(name)
    spans = [(one.label, *span) for one in flips for span in _spans(one, name)]
    return {
        "type": "bar",
        "orientation": "h",
        "name": f"{letter} {case.label}",
        "y": [label for label, _low, _high in spans],
        "base": [low for _label, low, _high in spans],
        "x": [high - low for _label, low, high in spans],
        "marker": {
            "color": case_colour(advice, name),
            "line": {"color": HAIRLINE, "width": 0.5},
        },
        "text": [letter if high > WIDE * low else "" for _label, low, high in spans],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"size": 11, "color": ink_on(case_colour(advice, name))},
        "hovertemplate": "%{y}: %{base:.2f} – %{x:.2f}",
    }


def _spans(flip: Flip, name: str) -> Iterator[tuple[float, float]]:
    """Yield the spans, over today's value, in which a case wins."""
    starts = [flip.values[0]]
    winners = [flip.winners[0]]
    for at in range(1, len(flip.values)):
        if flip.winners[at] != winners[-1]:
            starts.append(_edge(flip, flip.values[at - 1], flip.values[at]))
            winners.append(flip.winners[at])
    ends = [*starts[1:], flip.values[-1]]
    for start, end, winner in zip(starts, ends, winners, strict=True):
        if winner == name and end > start:
            yield start / flip.now, end / flip.now


def _edge(flip: Flip, left: float, right: float) -> float:
    """Where between two values the winner changes: as found, or else in the middle."""
    for change in (flip.below, flip.above):
        if change is not None and left <= change.value <= right:
            return change.value
    return math.sqrt(left * right) if left > 0 else (left + right) / 2


def _now(flip: Flip) -> str:
    if flip.names:
        return choice_label(flip.names, flip.now)
    return number_words(flip.now, flip.unit)


def _changes(flip: Flip) -> str:
    """Return a flip's sentence without its label, which stands beside it."""
    return flip.sentence.removeprefix(flip.label).lstrip(":\uff1a ")
