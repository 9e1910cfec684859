"""Bytes per channel and bin, when everything is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """A constant rate over a route for a while."""

    route: Sequence[tuple[int, float]]
    rate: float
    since: float
    until: float


def width(pieces: Sequence[Piece], first_width: float, n_bins: int) -> float:
    """The first width, doubled until the last piece ends within the bins."""
    while max(piece.until for piece in pieces) > n_bins * first_width:
        first_width *= 2
    return first_width


def spread(
    pieces: Sequence[Piece], bin_width: float, n_bins: int, n_channels: int
) -> list[list[float]]:
    """Bytes of each bin and channel: rate times the time that piece and bin share."""
    carried = [[0.0] * n_channels for _ in range(n_bins)]
    for at in range(n_bins):
        for piece in pieces:
            since = max(piece.since, at * bin_width)
            until = min(piece.until, (at + 1) * bin_width)
            for channel, fraction in piece.route:
                carried[at][channel] += piece.rate * fraction * max(0.0, until - since)
    return carried
