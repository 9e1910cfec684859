"""PAT: all-gather and reduce-scatter in log2(n) steps, for one GPU a host.

In step k a rank sends what it has, 2**k pieces at most, to the rank 2**k ahead (Bruck's order).
Reduce-scatter is the same graph backwards, with sums in place of copies.

Source: S. Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
2025; J. Bruck et al., 1997.
"""

from __future__ import annotations

import numpy as np

from gpufabric.workload.schedule import MessageList, Messages, Phase

__all__ = ["logarithmic_messages", "logarithmic_phases"]


def _steps(n: int) -> list[tuple[int, int]]:
    """Distance and number of pieces of each step of the all-gather."""
    steps, distance = [], 1
    while distance < n:
        steps.append((distance, min(distance, n - distance)))
        distance *= 2
    return steps


def logarithmic_messages(operation: str, n: int, size_bytes: float) -> Messages:
    """Return every message of an all-gather or reduce-scatter; rank r owns chunk r."""
    rows = MessageList(n, [size_bytes / n] * n)
    steps = _steps(n)
    if operation == "all_gather":
        for distance, count in steps:
            rows.step(
                (r, (r + distance) % n, (r - back) % n, False)
                for r in range(n)
                for back in range(count)
            )
    else:
        for distance, count in reversed(steps):
            rows.step(
                ((r + distance) % n, r, (r - back) % n, True)
                for r in range(n)
                for back in range(count)
            )
    return rows.messages()


def logarithmic_phases(operation: str, n: int, size_bytes: float) -> tuple[Phase, ...]:
    """Return the same merged: one phase for each step."""
    rank = np.arange(n, dtype=np.int32)
    phases = []
    for distance, count in _steps(n):
        ahead = ((rank + distance) % n).astype(np.int32)
        size = np.full(n, size_bytes * count / n)
        ends = (rank, ahead) if operation == "all_gather" else (ahead, rank)
        phases.append(Phase(f"step {distance}", *ends, size, 1))
    return tuple(phases if operation == "all_gather" else reversed(phases))
