"""Who waits for whom, turned around, and who waits for ever; with lists and sets."""

from __future__ import annotations

from collections.abc import Sequence


def successors(predecessors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Flows that wait for each flow."""
    return [
        [after for after, before in enumerate(predecessors) for name in before if name == flow]
        for flow in range(len(predecessors))
    ]


def in_cycle(predecessors: Sequence[Sequence[int]]) -> list[bool]:
    """Whether each flow is still waiting when all that can end have ended."""
    ended: set[int] = set()
    while True:
        more = {f for f, before in enumerate(predecessors) if ended.issuperset(before)} - ended
        if not more:
            return [flow not in ended for flow in range(len(predecessors))]
        ended |= more
