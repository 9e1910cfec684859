"""Whether a subnet is a fat tree by OpenSM's rules, and the order in which ftree walks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.kernels.ftree import Bunches
from gpufabric.kernels.lft import rank_from
from gpufabric.routing.channels import Channels

__all__ = ["FatTree", "NoFatTreeError", "find_fat_tree"]

Ints = npt.NDArray[np.int32]
Index = tuple[int, ...]

FEWEST_RANKS, MOST_RANKS = 2, 8
MOST_BRANCHES = 255  # an index has one byte a rank


class NoFatTreeError(Exception):
    """The subnet is no fat tree; the text says why, in the language in use."""


@dataclass(frozen=True, eq=False)
class FatTree:
    """A subnet that ftree can route.

    Parameters
    ----------
    rank
        int32[n_switches]: 0 for roots; meaningless outside the subnet.
    leafs
        int32[n]: leafs in the order they are routed.
    up, down
        Parallel edges between two switches, upward and downward.
    """

    rank: Ints
    leafs: Ints
    up: Bunches
    down: Bunches


def find_fat_tree(
    channels: Channels, members: Ints, hosts_on: Ints, roots: Ints | None = None
) -> FatTree:
    """Return the tree that `members` form.

    Parameters
    ----------
    channels
        The fabric's channels.
    members
        Rows of the subnet's switches.
    hosts_on
        int32[n_switches]: hosts' ports on each switch.
    roots
        Rows of the roots, as root_guid_file names them; then the tree may be irregular.

    Raises
    ------
    NoFatTreeError
        With the reason, one of those for which OpenSM falls back to minhop.
    """
    leafs = members[hosts_on[members] > 0]
    if len(members) < 2 or int(hosts_on[members].sum()) < 2:
        raise NoFatTreeError(_("it has fewer than two switches or fewer than two hosts' ports"))
    rank = _ranks(channels, members, leafs, roots)
    _check_ranks(channels, members, leafs, rank)
    up, down = (_bunches(channels, members, rank, is_up=is_up) for is_up in (True, False))
    index = _indices(members, leafs, rank, up, down)
    place = np.zeros(len(rank), np.int64)
    for number, switch in enumerate(sorted(index, key=lambda switch: index[switch])):
        place[switch] = number
    # Of equally loaded ones OpenSM takes that to the switch of lowest index.
    up, down = _renumbered(up, place), _renumbered(down, place)
    if roots is None:
        _check_regular(channels, members, rank, up, down)
    return FatTree(rank, leafs[np.argsort(place[leafs], kind="stable")], up, down)


def _ranks(channels: Channels, members: Ints, leafs: Ints, roots: Ints | None) -> Ints:
    rank = np.empty(len(channels.network_of), np.int32)
    rank_from(channels.graph, leafs if roots is None else roots, rank)
    if roots is None:
        rank = rank[members].max() - rank
    return rank


def _check_ranks(channels: Channels, members: Ints, leafs: Ints, rank: Ints) -> None:
    names = channels.fabric.switches.name
    leaf_rank = int(rank[leafs[0]])
    if not FEWEST_RANKS <= leaf_rank + 1 <= MOST_RANKS:
        raise NoFatTreeError(
            _("it has {n} ranks of switches; a tree has {low} to {high}").format(
                n=leaf_rank + 1, low=FEWEST_RANKS, high=MOST_RANKS
            )
        )
    other = leafs[rank[leafs] != leaf_rank]
    if len(other):
        raise NoFatTreeError(
            _("{one} and {other} have hosts but are not of one rank").format(
                one=names[leafs[0]], other=names[other[0]]
            )
        )
    graph = channels.graph
    tail = np.repeat(np.arange(len(rank)), np.diff(graph.first))
    level = np.isin(tail, members) & (rank[tail] == rank[graph.head])
    if level.any():
        at = int(np.argmax(level))
        raise NoFatTreeError(
            _("{one} and {other} are joined and of one rank").format(
                one=names[tail[at]], other=names[graph.head[at]]
            )
        )


def _bunches(channels: Channels, members: Ints, rank: Ints, *, is_up: bool) -> Bunches:
    """Parallel edges, switch by switch, in the order of their first ports."""
    graph = channels.graph
    size = len(rank)
    tail = np.repeat(np.arange(size), np.diff(graph.first))
    step = rank[graph.head] - rank[tail]
    edges = np.flatnonzero(np.isin(tail, members) & ((step < 0) if is_up else (step > 0)))
    pair = tail[edges] * size + graph.head[edges]
    _pairs, leader, inverse = np.unique(pair, return_index=True, return_inverse=True)
    by_port = np.argsort(leader)  # edges are sorted by switch and port, so leaders are too
    number = np.empty(len(leader), np.int64)
    number[by_port] = np.arange(len(leader))
    bunch = number[inverse]
    of_edge = np.argsort(bunch, kind="stable")
    first_edge = np.zeros(len(leader) + 1, np.int32)
    np.cumsum(np.bincount(bunch, minlength=len(leader)), out=first_edge[1:])
    lead = edges[leader[by_port]]
    first = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(tail[lead], minlength=size), out=first[1:])
    return Bunches(
        first=first,
        order=np.arange(len(leader), dtype=np.int32),
        head=graph.head[lead].astype(np.int32),
        first_edge=first_edge,
        edge=edges[of_edge].astype(np.int32),
        load=np.zeros(len(leader), np.int32),
        is_sorted=np.zeros(size, np.int32),
    )


def _heads(bunches: Bunches, switch: int) -> Iterator[int]:
    for bunch in bunches.order[bunches.first[switch] : bunches.first[switch + 1]].tolist():
        yield int(bunches.head[bunch])


def _indices(
    members: Ints, leafs: Ints, rank: Ints, up: Bunches, down: Bunches
) -> dict[int, Index]:
    """Index of each switch: its rank, then one number a rank, shared with its neighbours."""
    start = int(leafs[0])
    index = {start: (int(rank[start]),) + (0,) * int(rank[start])}
    taken = set(index.values())
    queue = [start]
    for switch in queue:
        for bunches, step in ((down, 1), (up, -1)):
            for head in _heads(bunches, switch):
                if head not in index:
                    index[head] = _free_index(index[switch], step, taken)
                    taken.add(index[head])
                    queue.append(head)
    assert len(index) == len(members)  # no link joins switches of one rank
    return index


def _free_index(near: Index, step: int, taken: set[Index]) -> Index:
    """First index not taken that differs from a neighbour's in one place, one rank up or down."""
    place = near[0] + (1 if step > 0 else 0)
    stem = [near[0] + step, *near[1:]]
    while len(stem) <= place:
        stem.append(0)
    for number in range(MOST_BRANCHES):
        stem[place] = number
        if tuple(stem) not in taken:
            return tuple(stem)
    raise NoFatTreeError(
        _("a switch has more than {most} neighbours of one rank").format(most=MOST_BRANCHES)
    )


def _renumbered(bunches: Bunches, place: npt.NDArray[np.int64]) -> Bunches:
    """Number the bunches of each switch by the place of the switch they lead to."""
    owner = np.repeat(np.arange(len(bunches.first) - 1), np.diff(bunches.first))
    order = np.lexsort((place[bunches.head], owner))
    sizes = np.diff(bunches.first_edge)[order]
    first_edge = np.zeros(len(order) + 1, np.int32)
    np.cumsum(sizes, out=first_edge[1:])
    within = np.arange(len(bunches.edge)) - np.repeat(first_edge[:-1], sizes)
    edge = bunches.edge[np.repeat(bunches.first_edge[order], sizes) + within]
    return bunches._replace(head=bunches.head[order], first_edge=first_edge, edge=edge)


def _check_regular(
    channels: Channels, members: Ints, rank: Ints, up: Bunches, down: Bunches
) -> None:
    """Compare every switch with the first of its rank, as OpenSM does."""
    names = channels.fabric.switches.name
    lowest = int(rank[members].max())
    model: dict[int, int] = {}
    for switch in members.tolist():
        first = model.setdefault(int(rank[switch]), switch)
        pair = {"one": names[first], "other": names[switch]}
        if _count(up, first) != _count(up, switch):
            raise NoFatTreeError(
                _("{one} and {other} have links up to different numbers of switches").format(**pair)
            )
        is_leaf = rank[switch] == lowest
        if not is_leaf and _count(down, first) != _count(down, switch):
            raise NoFatTreeError(
                _("{one} and {other} have links down to different numbers of switches").format(
                    **pair
                )
            )
        widths = set(_widths(up, switch)) - set(_widths(up, first)[:1])
        if switch != first and widths:
            raise NoFatTreeError(
                _("{one} and {other} have different numbers of links up to a switch").format(**pair)
            )
        if not is_leaf and _widths(down, first)[:1] != _widths(down, switch)[:1]:
            raise NoFatTreeError(
                _("{one} and {other} have different numbers of links down to a switch").format(
                    **pair
                )
            )


def _count(bunches: Bunches, switch: int) -> int:
    return int(bunches.first[switch + 1] - bunches.first[switch])


def _widths(bunches: Bunches, switch: int) -> list[int]:
    order = bunches.order[bunches.first[switch] : bunches.first[switch + 1]]
    widths: list[int] = (bunches.first_edge[order + 1] - bunches.first_edge[order]).tolist()
    return widths
