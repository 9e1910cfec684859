"""Spare parts: what is expected to fail in a year, or a share that the spec gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpufabric.catalog.groups import Range
from gpufabric.core.text import _
from gpufabric.topology.bill import BillLine
from gpufabric.topology.decision import Decision

__all__ = ["RESTOCK_YEARS", "SURE_SPARE", "spares_decision", "spares_of", "with_spares"]

RESTOCK_YEARS = 1.0
"""Time for which the store must last [year]; assumed."""

SURE_SPARE = 50
"""From so many pieces on, at least one spare is kept; assumed."""


def spares_of(quantity: int, rate: Range | None, share_pct: float | None = None) -> int:
    """Return how many spares to keep for `quantity` pieces of one kind.

    Parameters
    ----------
    quantity
        Pieces in use.
    rate
        Failures of one piece in a year; None where unknown.
    share_pct
        Share of the pieces that the spec asks for [%]; goes before the rate.

    Notes
    -----
    ``quantity * rate * 1 year`` failures are expected. From 50 pieces on the number is rounded
    up, and at least 1; below, it is rounded to the nearest, so that a fabric of two switches does
    not buy a third.

    Examples
    --------
    >>> spares_of(1024, None, share_pct=2.0), spares_of(50, None), spares_of(49, None)
    (21, 1, 0)
    """
    if share_pct is not None:
        return math.ceil(round(quantity * share_pct / 100.0, 9))
    expected = 0.0 if rate is None else quantity * rate.value * RESTOCK_YEARS
    if quantity >= SURE_SPARE:
        return max(1, math.ceil(round(expected, 9)))
    return math.floor(expected + 0.5)


def with_spares(
    lines: Iterable[BillLine], rates: Mapping[str, Range | None], share_pct: float | None
) -> list[BillLine]:
    """Return the lines with spares: reckoned over all lines of one part of a section.

    They are kept at the first of its lines, or at the longest cable of it, which takes the place
    of every shorter one.

    Parameters
    ----------
    lines
        Lines without spares.
    rates
        Failures in a year by catalogue name; a thing that is not in it gets no spares.
    share_pct
        As in `spares_of`.
    """
    lines = list(lines)
    total: dict[tuple[str, str], int] = {}
    keeper: dict[tuple[str, str], int] = {}
    for index, line in enumerate(lines):
        if not line.quantity or line.name not in rates:
            continue
        part = (line.section, line.name)
        total[part] = total.get(part, 0) + line.quantity
        if (line.length_m or 0.0) > (lines[keeper.setdefault(part, index)].length_m or 0.0):
            keeper[part] = index
    spares = {
        keeper[part]: spares_of(quantity, rates[part[1]], share_pct)
        for part, quantity in total.items()
    }
    return [replace(line, spares=spares.get(index, 0)) for index, line in enumerate(lines)]


def spares_decision(share_pct: float | None) -> Decision:
    """Return how the spares were reckoned, in words."""
    if share_pct is not None:
        return Decision(
            "spares",
            f"{share_pct:g} %",
            _("Share of every part in use, rounded up, as the spec asks."),
        )
    return Decision(
        "spares",
        _("by failure rate"),
        _(
            "Failures expected in {years:g} year, rounded up, and at least 1 from {sure} pieces "
            "on; rounded to the nearest below that. All lengths of a cable count together, and "
            "the longest is kept. Hosts and NICs in them have none."
        ).format(years=RESTOCK_YEARS, sure=SURE_SPARE),
        _("catalogue failure rates; the period is assumed"),
    )
