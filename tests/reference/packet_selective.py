"""Selective repeat with sets of packet numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class Selective:
    """What sender and receiver of a flow know beyond what is in order."""

    reorder: int
    kept: set[int] = field(default_factory=set)
    sacked: set[int] = field(default_factory=set)
    highest: int = 0
    repeat: int = 0

    def lost(self) -> int | None:
        """The next packet to send again."""
        missing = [
            at for at in range(self.repeat, self.highest - self.reorder) if at not in self.sacked
        ]
        return missing[0] if missing else None
