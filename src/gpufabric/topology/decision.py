"""What a design chose where the rules leave a choice, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Decision", "Place"]

Place = Callable[..., str]
"""Gives where a field of the candidate stands in the spec, for a fault."""


@dataclass(frozen=True)
class Decision:
    """One choice of the design, said so that a reader can disagree with it.

    Parameters
    ----------
    topic
        What was chosen, one stable English word such as ``spines``.
    choice
        What it is.
    why
        The reason, with the numbers.
    source
        Where the rule or number comes from; empty where the reason says it all.
    is_warning
        True if the reader should act on it.
    """

    topic: str
    choice: str
    why: str
    source: str = ""
    is_warning: bool = False

    def to_json(self) -> dict[str, str | bool]:
        """Return the decision as a mapping."""
        return {
            "topic": self.topic,
            "choice": self.choice,
            "why": self.why,
            "source": self.source,
            "warning": self.is_warning,
        }
