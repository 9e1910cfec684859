"""Weighted max-min fair rates, written from the definition.

An allocation is max-min fair when no flow's level (rate / weight) can be raised without lowering
that of a flow whose level is not higher. Progressive filling reaches it: raise the levels of all
flows together; a flow stops when a channel of its route is full or when it meets its own cap.

Source: D. Bertsekas, R. Gallager, Data Networks, 2nd edition, section 6.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

CAP = -1
UNLIMITED = -2

Route = Sequence[tuple[int, float]]


def progressive_filling(
    capacity: Sequence[float],
    routes: Sequence[Route],
    weights: Sequence[float],
    caps: Sequence[float],
) -> tuple[list[float], list[int]]:
    """Rates of the flows and what limits each: a channel, ``CAP`` or ``UNLIMITED``.

    A route is a list of (channel, fraction of the flow's rate that crosses it). The arithmetic is
    exact, in fractions, so that two channels are full together only when they really are.
    """
    room = [Fraction(value) for value in capacity]
    routes = [[(c, Fraction(part)) for c, part in route if part > 0] for route in routes]
    weight = [Fraction(value) for value in weights]
    rate: dict[int, Fraction] = {}
    limit: dict[int, int] = {}
    rising = set(range(len(routes)))
    while rising:
        stops = []
        for channel, left in enumerate(room):
            slope = sum(weight[f] * p for f in rising for c, p in routes[f] if c == channel)
            if slope > 0:
                stops.append((left / slope, channel))
        stops += [(Fraction(caps[f]) / weight[f], CAP) for f in rising if caps[f] < math.inf]
        if not stops:
            limit.update(dict.fromkeys(rising, UNLIMITED))
            break
        level = min(stops)[0]
        full = {channel for stop, channel in stops if stop == level and channel != CAP}
        for f in sorted(rising):
            crossed = [c for c, _ in routes[f] if c in full]
            capped = caps[f] < math.inf and Fraction(caps[f]) / weight[f] == level
            if not crossed and not capped:
                continue
            rate[f] = weight[f] * level
            limit[f] = crossed[0] if crossed else CAP
            rising.remove(f)
            for c, part in routes[f]:
                room[c] -= rate[f] * part
    rates = [float(rate[f]) if f in rate else math.inf for f in range(len(routes))]
    return rates, [limit[f] for f in range(len(routes))]
