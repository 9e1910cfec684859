"""An all-reduce that switches add up (SHARP), message by message, for the packet engine.

Every switch of the tree gets a unit that adds up: an end of its own, with a link to the switch for
each neighbour in the tree, as fast as the link to that neighbour. A segment goes up when those of
all children have come, and down to every child when that of the parent has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.routing.sharp import ReductionTree
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet_messages import After, Operation
from gpufabric.sim.packet_problem import PacketProblem, Wires
from gpufabric.sim.row_arrays import below

__all__ = [
    "MOST_MESSAGES",
    "AddingTree",
    "Sharp",
    "SharpProblem",
    "n_messages_of",
    "sharp_problem",
    "sharp_problems",
]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

T = TypeVar("T")

MOST_MESSAGES = 10_000_000


@dataclass(frozen=True)
class Sharp:
    """How switches add up.

    Parameters
    ----------
    segment_bytes
        Data that are added up and sent on as one message [byte].
    reduction_ns
        From the last of the children's segments to the sum, beside the two ways through the switch
        that lead to the unit and back [ns].

    Notes
    -----
    Mechanism: R. Graham et al., SHArP, COMHPC 2016, section III. Line rate, as the second
    generation streams it (R. Graham et al., ISC 2020). Segments of a packet, and a sum that takes a
    second way through the switch and no more, are assumed. Limits on trees and on data under way
    are not modelled.
    """

    segment_bytes: int = 4096
    reduction_ns: float = 0.0


@dataclass(frozen=True)
class AddingTree:
    """Who sends to whom.

    Parameters
    ----------
    members
        int32[m]: channel from each member's NIC port to its switch.
    parents
        int32[n - 1]: channel from each switch but the root to its parent.
    root
        The switch that has the sum first.
    """

    members: Ints
    parents: Ints
    root: int

    @classmethod
    def from_reduction(cls, tree: ReductionTree) -> AddingTree:
        """Return the tree that routing has found, for wires of the same channels."""
        leaving = tree.channels.leaving[tree.members].astype(np.int32)
        return cls(leaving, tree.parent_channel[1:].astype(np.int32), tree.root)


class SharpProblem(NamedTuple):
    """What the engine is asked, which messages bring members the sum, and how many in each tree."""

    problem: PacketProblem
    to_members: Ints
    n_ends: tuple[int, ...]


def sharp_problem(
    wires: Wires, tree: AddingTree, size_bytes: int, sharp: Sharp | None = None
) -> SharpProblem:
    """Return the messages of one all-reduce over a tree.

    Parameters
    ----------
    wires
        The fabric's channels; those of the units are put behind them.
    tree
        The tree.
    size_bytes
        What every member has, and gets [byte].
    sharp
        How switches add up.

    Raises
    ------
    InputError
        If the tree is none, or the messages are too many.
    """
    sharp = sharp or Sharp()
    n_segments = max(1, -(-size_bytes // sharp.segment_bytes))
    edges = np.concatenate([tree.members, tree.parents]).astype(np.int64)
    _check(wires, tree, 2 * edges.size * n_segments)
    units, whole = _with_units(wires, tree, edges)
    rows = [_rows(wires, units, int(edge)) for edge in edges]
    paths = Paths.from_lists([row for row, _back in rows] + [back for _row, back in rows])
    back = Paths.from_lists([back for _row, back in rows] + [row for row, _back in rows])
    n_pairs = 2 * edges.size  # one up and one down each edge
    pair = np.repeat(np.arange(n_pairs, dtype=np.int32), n_segments)
    size = np.full(n_segments, sharp.segment_bytes, np.int64)
    size[-1] = size_bytes - (n_segments - 1) * sharp.segment_bytes
    waits, adds = _waits(wires, tree, edges)
    delay_ps = np.where(adds, round(sharp.reduction_ns * 1000), 0)
    segment = np.arange(n_segments)
    problem = PacketProblem(
        whole,
        paths,
        back,
        np.tile(size, n_pairs),
        path=pair,
        queue_pair=pair,
        operation=np.full(pair.size, Operation.SEND, np.int32),
        after=After.from_lists(
            [[n_segments * one + at for one in row] for row in waits for at in segment.tolist()],
            np.repeat(delay_ps, n_segments),
        ),
    )
    last = edges.size + np.arange(tree.members.size)
    ends = (n_segments * last[:, None] + segment).ravel().astype(np.int32)
    return SharpProblem(problem, ends, (ends.size,))


def sharp_problems(
    wires: Wires,
    trees: Sequence[AddingTree],
    size_bytes: Sequence[int],
    sharp: Sharp | None = None,
) -> SharpProblem:
    """Return the messages of several all-reduces at once, each over a tree of its own.

    Parameters
    ----------
    wires
        The fabric's channels.
    trees
        One at least; they may share links.
    size_bytes
        Of each tree, what every member has, and gets [byte].
    sharp
        How switches add up.

    Raises
    ------
    InputError
        If a tree is none, or its messages are too many.
    """
    parts: list[SharpProblem] = []
    for tree, size in zip(trees, size_bytes, strict=True):
        parts.append(sharp_problem(wires, tree, size, sharp))
        wires = parts[-1].problem.wires
    return _together(parts)


def _together(parts: Sequence[SharpProblem]) -> SharpProblem:
    """Return the problems as one; each has the channels of those before it."""
    problems = [part.problem for part in parts]
    n_messages = np.cumsum([0, *(one.n_flows for one in problems)])
    n_pairs = np.cumsum([0, *(len(one.paths.first) - 1 for one in problems)])
    pair = [_given(one.path) + n for one, n in zip(problems, n_pairs[:-1], strict=True)]
    waits = [_given(one.after) for one in problems]
    delays = [_given(one.delay_ps) for one in waits]
    after = below([Paths(one.first, one.flow) for one in waits])
    shift = np.repeat(n_messages[:-1], [one.flow.size for one in waits])
    numbers = np.concatenate(pair).astype(np.int32)
    problem = PacketProblem(
        problems[-1].wires,
        below([one.paths for one in problems]),
        below([one.back for one in problems]),
        np.concatenate([one.size_bytes for one in problems]),
        path=numbers,
        queue_pair=numbers,
        operation=np.concatenate([_given(one.operation) for one in problems]),
        after=After(after.first, (after.channel + shift).astype(np.int32), np.concatenate(delays)),
    )
    ends = [part.to_members + n for part, n in zip(parts, n_messages[:-1], strict=True)]
    n_ends = tuple(part.to_members.size for part in parts)
    return SharpProblem(problem, np.concatenate(ends).astype(np.int32), n_ends)


def _given(value: T | None) -> T:
    """Return what ``sharp_problem`` always gives."""
    assert value is not None
    return value


def n_messages_of(tree: AddingTree, size_bytes: int, sharp: Sharp | None = None) -> int:
    """Return how many messages an all-reduce over a tree is."""
    segment_bytes = (sharp or Sharp()).segment_bytes
    return 2 * (tree.members.size + tree.parents.size) * max(1, -(-size_bytes // segment_bytes))


def _check(wires: Wires, tree: AddingTree, n_messages: int) -> None:
    faults = []
    if n_messages > MOST_MESSAGES:
        what = _("{n} messages are too many.").format(n=f"{n_messages:,}")
        faults.append(Fault("segment_bytes", what, _("at most {most}").format(most=MOST_MESSAGES)))
    tails = wires.tail[tree.parents]
    reached = {*wires.head[tree.members].tolist(), *wires.head[tree.parents].tolist()}
    if (
        reached != {tree.root, *tails.tolist()}
        or tree.root in tails
        or len(set(tails)) < tails.size
    ):
        what = _("its channels do not lead every member to switch {root}.").format(root=tree.root)
        faults.append(Fault("tree", what))
    if faults:
        raise InputError(faults)


def _with_units(
    wires: Wires, tree: AddingTree, edges: Longs
) -> tuple[dict[tuple[int, int], int], Wires]:
    """Return the channel into the unit for each edge and switch, and the wires with all of them."""
    ends = [(int(edge), int(wires.head[edge])) for edge in edges]
    ends += [(int(edge), int(wires.tail[edge])) for edge in tree.parents]
    first = wires.n_channels
    units = {end: first + 2 * at for at, end in enumerate(ends)}
    switch = np.array([switch for _edge, switch in ends], np.int32)
    nic = np.full(switch.size, -1, np.int32)
    number = np.arange(first, first + 2 * switch.size, dtype=np.int32)
    gbps = np.repeat([wires.gbps[edge] for edge, _switch in ends], 2)
    return units, Wires(
        gbps=np.concatenate([wires.gbps, gbps]),
        delay_ps=np.concatenate([wires.delay_ps, np.zeros(2 * switch.size, np.int64)]),
        tail=np.concatenate([wires.tail, np.column_stack([switch, nic]).ravel()]),
        head=np.concatenate([wires.head, np.column_stack([nic, switch]).ravel()]),
        reverse=np.concatenate([wires.reverse, first + ((number - first) ^ 1)]),
    )


def _rows(
    wires: Wires, units: dict[tuple[int, int], int], edge: int
) -> tuple[list[int], list[int]]:
    """Return the channels of an edge upward and downward, from unit or NIC to unit."""
    into = units[edge, int(wires.head[edge])]
    up, down = [edge, into], [into + 1, int(wires.reverse[edge])]
    below = units.get((edge, int(wires.tail[edge])))
    if below is not None:
        up, down = [below + 1, *up], [*down, below]
    return up, down


def _waits(
    wires: Wires, tree: AddingTree, edges: Longs
) -> tuple[list[list[int]], NDArray[np.bool_]]:
    """Return, for each way up and then each way down, those it waits for, and if it is a sum."""
    n = edges.size
    heads, tails = wires.head[edges].tolist(), wires.tail[edges].tolist()
    below: dict[int, list[int]] = {}
    for at, switch in enumerate(heads):
        below.setdefault(switch, []).append(at)
    above = {tails[at]: n + at for at in range(tree.members.size, n)}
    up = [[] if at < tree.members.size else below[tails[at]] for at in range(n)]
    down = [below[tree.root] if head == tree.root else [above[head]] for head in heads]
    adds = [at >= tree.members.size for at in range(n)] + [head == tree.root for head in heads]
    return up + down, np.array(adds)
