"""Utilisation of a tier as a grid: a row for each device below, a column for each of its links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import LINK_TIERS

__all__ = ["HeatMap", "heat_maps"]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

MOST_ROWS, MOST_COLUMNS = 96, 128
"""Larger tiers are shown in blocks, each with its busiest link."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """One tier in one direction.

    Parameters
    ----------
    tier
        As in ``LINK_TIERS``.
    way
        ``up`` or ``down``.
    rows
        Names of the devices at the lower ends, or of the first and last of a block.
    columns
        Numbers of their links, from 1, in order of ports, or of a block's first link.
    values
        float64[n_rows, n_columns]: utilisation [1]; nan where there is no link that is up.
    block
        Devices and links that one cell stands for.
    """

    tier: str
    way: str
    rows: tuple[str, ...]
    columns: tuple[int, ...]
    values: Floats
    block: tuple[int, int]


def heat_maps(fabric: Fabric, utilisation: Floats) -> list[HeatMap]:
    """Return the tiers of what is built today from below, each up and down.

    Parameters
    ----------
    fabric
        The fabric.
    utilisation
        float64[n_channels]: of the directions of links first [1].
    """
    links = fabric.links
    maps = []
    for tier, words in LINK_TIERS.items():
        mine = np.flatnonzero((links.tier == tier) & (links.stage == 0))
        if not len(mine):
            continue
        mine = mine[np.argsort(links.port_a[mine], kind="stable")]
        lower = fabric.port_vertex[links.port_a[mine]]
        device, row = np.unique(lower, return_inverse=True)
        column = _rank_within(row)
        names = [fabric.vertex_name(int(vertex)) for vertex in device]
        for way in (0, 1):
            grid = np.full((len(device), int(column.max()) + 1), np.nan)
            grid[row, column] = utilisation[2 * mine + way]
            maps.append(_blocked(words, ("up", "down")[way], names, grid))
    return maps


def _rank_within(row: Longs) -> Longs:
    """Number of each link among those of its device."""
    order = np.argsort(row, kind="stable")
    size = np.bincount(row)
    rank = np.empty(len(row), np.int64)
    rank[order] = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    return rank


def _blocked(tier: str, way: str, names: list[str], grid: Floats) -> HeatMap:
    high, wide = (
        -(-size // most) for size, most in zip(grid.shape, (MOST_ROWS, MOST_COLUMNS), strict=True)
    )
    n_rows, n_columns = -(-grid.shape[0] // high), -(-grid.shape[1] // wide)
    padded = np.full((n_rows * high, n_columns * wide), -np.inf)
    padded[: grid.shape[0], : grid.shape[1]] = np.where(np.isnan(grid), -np.inf, grid)
    busiest = padded.reshape(n_rows, high, n_columns, wide).max(axis=(1, 3))
    rows = [names[first : first + high] for first in range(0, len(names), high)]
    return HeatMap(
        tier,
        way,
        tuple(part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}" for part in rows),
        tuple(range(1, grid.shape[1] + 1, wide)),
        np.where(np.isfinite(busiest), busiest, np.nan),
        (high, wide),
    )
