"""A priority queue as a plain dict: the smallest is looked for every time."""

from __future__ import annotations

import math


class Heap:
    """Things with keys; any may be moved or dropped."""

    def __init__(self) -> None:
        self.key: dict[int, float] = {}

    def set_key(self, thing: int, key: float) -> None:
        self.key[thing] = key

    def drop(self, thing: int) -> None:
        self.key.pop(thing, None)

    def least(self) -> float:
        return min(self.key.values())

    def second_key(self) -> float:
        return sorted([*self.key.values(), math.inf, math.inf])[1]
