"""The flows of one bundle as a plain list: the next to end is looked for every time."""

from __future__ import annotations


class Flows:
    """Flows with targets."""

    def __init__(self) -> None:
        self.target: dict[int, float] = {}

    def add(self, flow: int, target: float) -> None:
        self.target[flow] = target

    def remove(self, flow: int) -> None:
        del self.target[flow]

    def least(self) -> float:
        return min(self.target.values())
