"""Which flows wait for which, turned around, and whether that can ever end."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel
from gpufabric.kernels.structs import Bools, Ints, Longs

__all__ = ["in_cycle", "successors"]


@kernel
def successors(first: Longs, predecessor: Ints) -> tuple[Longs, Ints]:
    """Flows that wait for each flow, in CSR form, in order of flow.

    Reference: tests/reference/order.py, successors.
    """
    n_flows = first.size - 1
    first_successor = np.zeros(n_flows + 1, np.int64)
    for flow in predecessor:
        first_successor[flow + 1] += 1
    for flow in range(n_flows):
        first_successor[flow + 1] += first_successor[flow]
    at = first_successor[:-1].copy()
    successor = np.empty(predecessor.size, np.int32)
    for flow in range(n_flows):
        for edge in range(first[flow], first[flow + 1]):
            before = predecessor[edge]
            successor[at[before]] = flow
            at[before] += 1
    return first_successor, successor


@kernel
def in_cycle(n_predecessors: Ints, first_successor: Longs, successor: Ints) -> Bools:
    """Tell for each flow whether it waits, directly or not, for flows in a circle.

    Reference: tests/reference/order.py, in_cycle.
    """
    waits_for = n_predecessors.copy()
    ready = np.empty(waits_for.size, np.int32)
    n_ready = 0
    for flow in range(waits_for.size):
        if waits_for[flow] == 0:
            ready[n_ready] = flow
            n_ready += 1
    at = 0
    while at < n_ready:
        flow = ready[at]
        at += 1
        for edge in range(first_successor[flow], first_successor[flow + 1]):
            after = successor[edge]
            waits_for[after] -= 1
            if waits_for[after] == 0:
                ready[n_ready] = after
                n_ready += 1
    return waits_for > 0
