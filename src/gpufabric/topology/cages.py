"""Cages at both ends of every link, where in a cage a link sits, and what hangs together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric

__all__ = ["LinkCages", "Stars", "find_stars", "link_cages", "ports_in_cage"]

Int = npt.NDArray[np.int64]


class LinkCages(NamedTuple):
    """Cage at each end of every link."""

    a: npt.NDArray[np.int64]
    """int64[n_links]: cage of the lower end; cages are numbered over the whole fabric."""
    b: npt.NDArray[np.int64]
    """int64[n_links]: cage of the upper end."""
    a_offset_gbps: npt.NDArray[np.float64]
    """float64[n_links]: capacity of the cage below the link's lanes [Gb/s]."""
    b_offset_gbps: npt.NDArray[np.float64]
    """float64[n_links]: the same at the upper end."""
    n_cages: int
    """Cages of the fabric, empty ones included."""


class Stars(NamedTuple):
    """Which links can lie in one cable with fixed plugs."""

    at_a: npt.NDArray[np.bool_]
    """bool[n_links]: one plug in the lower cage, and plugs of its own in each upper one."""
    at_b: npt.NDArray[np.bool_]
    """bool[n_links]: one plug in the upper cage, and plugs of its own in each lower one."""
    plugs_a: npt.NDArray[np.int64]
    """int64[n_links]: upper cages that the lower cage leads to."""
    plugs_b: npt.NDArray[np.int64]
    """int64[n_links]: lower cages that the upper cage leads to."""


def link_cages(fabric: Fabric) -> LinkCages:
    """Return the cages of every link's ends.

    Notes
    -----
    Ports of a cage follow each other; the lanes of a port begin where those of the ports before
    it in the cage end.
    """
    cage, offset_gbps, n_cages = _cages_of_ports(fabric)
    a, b = fabric.links.port_a, fabric.links.port_b
    return LinkCages(cage[a], cage[b], offset_gbps[a], offset_gbps[b], n_cages)


def ports_in_cage(fabric: Fabric) -> tuple[Int, Int]:
    """Return int64[n_ports]: cage of each port, and int64[n_cages]: ports of each cage."""
    cage, _offset_gbps, n_cages = _cages_of_ports(fabric)
    return cage, np.bincount(cage, minlength=n_cages)


def _cages_of_ports(fabric: Fabric) -> tuple[Int, npt.NDArray[np.float64], int]:
    ports = fabric.ports
    key = fabric.port_vertex.astype(np.int64) << 16 | ports.cage.astype(np.int64)
    order = np.arange(len(key))
    if (np.diff(key) < 0).any():
        order = np.argsort(key, kind="stable")
    ranked = key[order]
    begins = np.concatenate([[True], ranked[1:] != ranked[:-1]]) if len(key) else ranked == 0
    number = np.cumsum(begins) - 1
    before_gbps = np.cumsum(ports.gbps[order], dtype=np.float64) - ports.gbps[order]
    offset_gbps = before_gbps - before_gbps[begins][number]
    cage, offset = np.empty(len(key), np.int64), np.empty(len(key))
    cage[order], offset[order] = number, offset_gbps
    return cage, offset, int(begins.sum())


def find_stars(a: Int, b: Int, n_points: int) -> Stars:
    """Return which links belong to a star: one point, and others that lead to it alone.

    Parameters
    ----------
    a, b
        int64[n_links]: the two points of each link, such as cages.
    n_points
        Points in all.

    Examples
    --------
    Points 0 and 1 lead to 5; point 2 leads to 6 and 7, and so does 3.

    >>> stars = find_stars(np.array([0, 1, 2, 2, 3, 3]), np.array([5, 5, 6, 7, 6, 7]), 8)
    >>> stars.at_b.tolist(), stars.plugs_b[:2].tolist()
    ([True, True, False, False, False, False], [2, 2])
    """
    pairs = np.unique(np.minimum(a, b) * n_points + np.maximum(a, b))
    first, second = pairs // n_points, pairs % n_points
    neighbours = np.bincount(first, minlength=n_points) + np.bincount(second, minlength=n_points)
    crowded = np.zeros(n_points, np.int64)
    np.maximum.at(crowded, first, neighbours[second])
    np.maximum.at(crowded, second, neighbours[first])
    return Stars(crowded[a] == 1, crowded[b] == 1, neighbours[a], neighbours[b])
