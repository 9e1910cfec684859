"""The floor: where each rack stands, and which places the network racks take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.model.spec_parts import Site
from gpufabric.model.tables import Table

__all__ = ["Floor", "SlotChoice", "choose_slots", "floor_of", "lay_floor", "row_letters"]

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

CROSS_AISLE_M = 2.4
"""Width of the aisle between two columns of rows [m]: two tiles of a door and a cart; assumed."""


@dataclass(frozen=True)
class Floor:
    """Places of racks on the floor, row after row.

    Parameters
    ----------
    row, position
        int64[n]: row on the floor and place in the row, both from 0.
    x_m, y_m
        float64[n]: middle of the rack along the rows and across them [m].
    columns
        Rows stand in so many columns side by side.
    """

    row: Int
    position: Int
    x_m: Float
    y_m: Float
    columns: int

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class SlotChoice:
    """Which place each rack takes.

    Parameters
    ----------
    compute
        int64[n_compute]: place of each compute rack, in their order.
    network
        int64[n_network]: place of each network rack, in their order.
    """

    compute: Int
    network: Int


def lay_floor(n_racks: int, site: Site) -> Floor:
    """Return the places of `n_racks` racks: full rows one after the other.

    Notes
    -----
    Many rows stand in columns side by side, so that the floor is about square: with rows of
    length L and pitch P there are ``floor(sqrt(rows * P / (L + aisle)))`` columns. Every other
    column counts its rows backwards, so that row follows on row.

    Examples
    --------
    >>> floor = lay_floor(12, Site())
    >>> int(floor.row[11]), int(floor.position[11]), float(floor.y_m[11])
    (1, 1, 2.4)
    """
    place = np.arange(n_racks, dtype=np.int64)
    row, position = place // site.racks_per_row, place % site.racks_per_row
    return _with_distances(row, position, site)


def floor_of(racks: Table, site: Site) -> Floor:
    """Return where the racks of a fabric stand on the floor of `site`."""
    return _with_distances(racks["row"].astype(np.int64), racks["position"].astype(np.int64), site)


def _with_distances(row: Int, position: Int, site: Site) -> Floor:
    n_rows = int(row.max(initial=-1)) + 1
    column_m = site.racks_per_row * site.rack_pitch_m + CROSS_AISLE_M
    columns = max(1, math.floor(math.sqrt(n_rows * site.row_pitch_m / column_m)))
    per_column = -(-n_rows // columns) if n_rows else 1
    column, depth = row // per_column, row % per_column
    depth = np.where(column % 2 == 1, per_column - 1 - depth, depth)
    return Floor(
        row,
        position,
        np.asarray(column * column_m + position * site.rack_pitch_m, np.float64),
        np.asarray(depth * site.row_pitch_m, np.float64),
        columns,
    )


def choose_slots(
    floor: Floor, n_compute: int, serves: Sequence[tuple[int, int]], racks_per_row: int
) -> SlotChoice:
    """Return the places of compute and network racks: each network rack amid what it serves.

    Parameters
    ----------
    floor
        Places, as many as racks.
    n_compute
        Compute racks; they take what is left, in their order.
    serves
        First and last compute rack that each network rack serves.
    racks_per_row
        Racks of one row.

    Notes
    -----
    Racks that serve more choose first; each takes the free place nearest, along rows and across
    them, to the middle of the places that its compute racks will take.
    """
    free = np.ones(len(floor), bool)
    network = np.zeros(len(serves), np.int64)
    stretch = len(floor) / max(n_compute, 1)
    order = sorted(range(len(serves)), key=lambda i: (serves[i][0] - serves[i][1], serves[i], i))
    for rack in order:
        first, last = serves[rack]
        low = min(math.floor(first * stretch), len(floor) - 1)
        high = max(low + 1, min(math.ceil((last + 1) * stretch), len(floor)))
        network[rack] = _nearest_free(floor, free, (low, high), 2 * racks_per_row)
        free[network[rack]] = False
    return SlotChoice(np.flatnonzero(free)[:n_compute], network)


def _nearest_free(
    floor: Floor, free: npt.NDArray[np.bool_], wanted: tuple[int, int], margin: int
) -> int:
    middle_x = float(floor.x_m[slice(*wanted)].mean())
    middle_y = float(floor.y_m[slice(*wanted)].mean())
    low, high = max(0, wanted[0] - margin), wanted[1] + margin
    candidates = low + np.flatnonzero(free[low:high])
    if not len(candidates):
        candidates = np.flatnonzero(free)
    away_m = np.abs(floor.x_m[candidates] - middle_x) + np.abs(floor.y_m[candidates] - middle_y)
    return int(candidates[np.argmin(np.round(away_m, 6))])


def row_letters(row: int) -> str:
    """Return the letters painted on a row, from 0: A to Z, then AA, AB, ….

    Examples
    --------
    >>> [row_letters(row) for row in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters = ""
    row += 1
    while row:
        row, rest = divmod(row - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
