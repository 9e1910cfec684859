"""Steps to a target, written from the definition.

A fabric is a list of lists: ``out[s]`` holds the switches that the edges of switch s lead to, in
order of its ports. With `up_down` a path climbs tiers first and descends then.

Source: any textbook on breadth-first search, over (switch, whether the path has descended).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

Out = Sequence[Sequence[int]]


def moves(
    out: Out, tier: Sequence[int], switch: int, descended: bool, up_down: bool
) -> Iterator[tuple[int, int, bool]]:
    """Legal next steps: number of the edge among the switch's, its head, and what follows."""
    for number, head in enumerate(out[switch]):
        climbs, falls = tier[head] > tier[switch], tier[head] < tier[switch]
        if not up_down:
            yield number, head, False
        elif falls or (climbs and not descended):
            yield number, head, descended or falls


def hops_from(
    out: Out, tier: Sequence[int], start: int, up_down: bool, descended: bool = False
) -> dict[int, int]:
    """Fewest steps from a switch to every other that it reaches."""
    steps = {(start, descended): 0}
    queue = deque(steps)
    while queue:
        switch, fallen = queue.popleft()
        for _, head, after in moves(out, tier, switch, fallen, up_down):
            if (head, after) not in steps:
                steps[head, after] = steps[switch, fallen] + 1
                queue.append((head, after))
    fewest: dict[int, int] = {}
    for (switch, _), count in steps.items():
        fewest[switch] = min(count, fewest.get(switch, count))
    return fewest


def hops_to(out: Out, tier: Sequence[int], target: int, up_down: bool) -> dict[int, int]:
    """Fewest steps to a target from every switch that reaches it."""
    found = {}
    for switch in range(len(out)):
        reached = hops_from(out, tier, switch, up_down)
        if target in reached:
            found[switch] = reached[target]
    return found
