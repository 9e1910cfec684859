"""What would change the advice: one number turned at a time, and who wins then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpufabric.core.text import _, listed
from gpufabric.planner.quantity_words import SHARES, choice_label, unit_words

__all__ = ["Change", "Flip", "Knob", "flip", "number_text"]

Winner = Callable[[float], str]
"""Who wins with the knob at a value: the name of a case."""

STEPS = 9
"""Halvings by which the place of a change is narrowed."""


@dataclass(frozen=True)
class Change:
    """A value from which on another case wins.

    Parameters
    ----------
    value
        Of the knob.
    winner
        Name of the case that wins beyond it, seen from today's value.
    """

    value: float
    winner: str


@dataclass(frozen=True)
class Flip:
    """One knob, and who wins as it is turned.

    Parameters
    ----------
    key, label, unit
        Stable name of the knob, the same in words, and the unit of its values (empty for names).
    now
        Today's value; for a quantity that is drawn, the mean of its draws.
    names
        Of the values where they are no numbers, such as ``none``, ``basic``, ``expert``; else
        empty.
    values, winners
        Values that were looked at, ascending, and the name of the case that wins there.
    below, above
        The nearest change on each side of the value at which the advised case wins and that is
        nearest to today's; None where the advice holds to the end
        of `values`.
    sentence
        The same as a sentence.
    """

    key: str
    label: str
    unit: str
    now: float
    names: tuple[str, ...]
    values: tuple[float, ...]
    winners: tuple[str, ...]
    below: Change | None
    above: Change | None
    sentence: str

    @property
    def flips(self) -> bool:
        """Whether the advice changes anywhere."""
        return self.below is not None or self.above is not None


@dataclass(frozen=True)
class Knob:
    """What is turned.

    Parameters
    ----------
    key, label, unit
        As in `Flip`.
    now
        Today's value.
    values
        Values to look at, ascending.
    names
        Of the values; empty for numbers.
    is_continuous
        Whether a change may lie between two values.
    is_drawn
        Whether it is drawn, so that today's value is the mean of its draws.
    """

    key: str
    label: str
    unit: str
    now: float
    values: tuple[float, ...]
    names: tuple[str, ...] = ()
    is_continuous: bool = True
    is_drawn: bool = False


def flip(knob: Knob, winner_at: Winner, advised: str) -> Flip:
    """Return who wins as a knob is turned.

    Parameters
    ----------
    knob
        What is turned.
    winner_at
        Who wins at a value.
    advised
        Who wins today.
    """
    values = tuple(sorted({*knob.values, knob.now}))
    winners = tuple(winner_at(value) for value in values)
    turned = replace(knob, values=values)
    anchor = _anchor(turned, winners, advised)
    below = _change(turned, winners, (winner_at, advised), anchor, is_above=False)
    above = _change(turned, winners, (winner_at, advised), anchor, is_above=True)
    return Flip(
        knob.key,
        knob.label,
        knob.unit,
        knob.now,
        knob.names,
        values,
        winners,
        below,
        above,
        _sentence(knob, advised, below, above),
    )


def _anchor(knob: Knob, winners: Sequence[str], advised: str) -> float:
    """The value next to today's at which the advised case wins.

    That is today's, unless the choice is close: a knob at its most likely value is not the same as
    a knob that is drawn.
    """
    won = [value for value, name in zip(knob.values, winners, strict=True) if name == advised]
    return min(won, key=lambda value: abs(value - knob.now), default=knob.now)


def _change(
    knob: Knob,
    winners: Sequence[str],
    contest: tuple[Winner, str],
    anchor: float,
    *,
    is_above: bool,
) -> Change | None:
    winner_at, advised = contest
    pairs = list(zip(knob.values, winners, strict=True))
    side = (
        [pair for pair in pairs if pair[0] > anchor]
        if is_above
        else [pair for pair in reversed(pairs) if pair[0] < anchor]
    )
    good = anchor
    for value, name in side:
        if name != advised:
            at = _narrowed(good, value, winner_at, advised) if knob.is_continuous else value
            return Change(at, name)
        good = value
    return None


def _narrowed(good: float, bad: float, winner_at: Winner, advised: str) -> float:
    for _step in range(STEPS):
        middle = (good + bad) / 2
        if winner_at(middle) == advised:
            good = middle
        else:
            bad = middle
    return (good + bad) / 2


def _sentence(knob: Knob, advised: str, below: Change | None, above: Change | None) -> str:
    if below is None and above is None:
        what = _("{label}: {winner} stays best from {low} to {high}{unit}.")
        return what.format(
            label=knob.label,
            winner=advised,
            low=_told(knob, knob.values[0]),
            high=_told(knob, knob.values[-1]),
            unit=_unit(knob),
        )
    parts = []
    if below is not None:
        what = (
            _("{winner} is best below {value}{unit}")
            if knob.is_continuous
            else _("{winner} is best from {value}{unit} down")
        )
        parts.append(
            what.format(value=_told(knob, below.value), unit=_unit(knob), winner=below.winner)
        )
    if above is not None:
        what = (
            _("{winner} is best above {value}{unit}")
            if knob.is_continuous
            else _("{winner} is best from {value}{unit} up")
        )
        parts.append(
            what.format(value=_told(knob, above.value), unit=_unit(knob), winner=above.winner)
        )
    words = _("in the mean {value}{unit}") if knob.is_drawn else _("now {value}{unit}")
    now = words.format(value=_told(knob, knob.now), unit=_unit(knob))
    what = _("{label}: {changes} ({now}).")
    return what.format(label=knob.label, changes=listed(parts), now=now)


def _told(knob: Knob, value: float) -> str:
    if knob.names:
        return choice_label(knob.names, value)
    return number_text(100 * value if knob.unit in SHARES else value)


def _unit(knob: Knob) -> str:
    if knob.unit in SHARES:
        return " %"
    return f" {unit_words(knob.unit)}" if knob.unit not in ("", "1") else ""


def number_text(value: float) -> str:
    """Return a number to three digits, grouped.

    Examples
    --------
    >>> number_text(0.012345), number_text(12345.6), number_text(0.0)
    ('0.0123', '12,300', '0')
    """
    exact = float(f"{value:.3g}")
    return f"{exact:,.0f}" if abs(exact) >= 1000 or exact == int(exact) else f"{exact:.3g}"
