"""How the ways to have a network look in figures: a hue a candidate, a shade and a dash a way."""

from __future__ import annotations

from gpufabric.planner.advice import Advice
from gpufabric.report.figure_style import HAIRLINE, rail_colour, tinted

__all__ = ["candidate_colour", "case_colour", "case_dash", "shaded"]


def candidate_colour(number: int) -> str:
    """Return the colour of a candidate, by its place in the spec."""
    return rail_colour(number)


def case_colour(advice: Advice, name: str) -> str:
    """Return the colour of a way: its candidate's, darker with hired experts, pale if subscribed.

    Grey for one that is not ranked.
    """
    case = next((one for one in advice.ranking if one.name == name), None)
    if case is None:
        return HAIRLINE
    names = [plan.name for plan in advice.economics.plan.candidates]
    colour = candidate_colour(names.index(case.candidate))
    if case.is_hired:
        return shaded(colour, 0.35)
    return tinted(colour, 0.45) if case.offer else colour


def case_dash(advice: Advice, name: str) -> str:
    """Return how a line of a way is drawn."""
    case = advice.ranked(name)
    if case.is_hired:
        return "dot"
    return "dash" if case.offer else "solid"


def shaded(colour: str, black: float) -> str:
    """Return `colour` mixed with a share of black.

    Examples
    --------
    >>> shaded("#ffffff", 0.5)
    '#808080'
    """
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part * (1 - black)):02x}" for part in parts)
