"""Turns of a routing, path by path, and whether they close a circle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from tests.reference.distance import Out
from tests.reference.walk import Edge, paths

Turn = tuple[Edge, Edge]


def turns_of_tables(
    follow: Callable[[int, int, int], Sequence[Edge]],
    leafs: Sequence[int],
    targets: Sequence[tuple[int, int]],
) -> set[Turn]:
    """Turns from all leafs to all targets (leaf, LID); `follow` gives the edges of a path."""
    turns: set[Turn] = set()
    for leaf_to, lid in targets:
        for leaf in leafs:
            path = follow(leaf, leaf_to, lid)
            turns.update(pairwise(path))
    return turns


def turns_of_shortest(
    out: Out, tier: Sequence[int], leafs: Sequence[int], up_down: bool
) -> set[Turn]:
    """Turns on all shortest paths between leafs."""
    turns: set[Turn] = set()
    for start in leafs:
        for leaf in leafs:
            for path in paths(out, tier, start, leaf, up_down):
                turns.update(pairwise(path))
    return turns


def has_circle(turns: Iterable[tuple[object, object]]) -> bool:
    """Whether something is left after taking away, again and again, what nothing follows."""
    after: dict[object, set[object]] = {}
    for before, following in turns:
        after.setdefault(before, set()).add(following)
        after.setdefault(following, set())
    while True:
        ends = {member for member, others in after.items() if not others}
        if not ends:
            return bool(after)
        after = {member: others - ends for member, others in after.items() if member not in ends}


def is_circle(cycle: Sequence[object], turns: Mapping[object, set[object]]) -> bool:
    """Whether each member is followed by the next, and the last by the first."""
    return all(
        following in turns.get(before, set())
        for before, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    )
