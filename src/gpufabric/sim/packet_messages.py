"""Kinds of messages, and which ones wait for which."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks

__all__ = ["After", "Operation", "check_after"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Operation(IntEnum):
    """What an RDMA message does; data go along its row of ``paths`` whatever it is."""

    WRITE = 0
    """The first packet says where the data go (RETH)."""
    SEND = 1
    """The receiver decides where they go."""
    READ = 2
    """The receiver of the data asks for them, along ``back``; no ACKs."""


@dataclass(frozen=True)
class After:
    """Messages that must be over before others start: the graph of a collective.

    Parameters
    ----------
    first
        int64[n_flows + 1]: row f of `flow` begins at ``first[f]``.
    flow
        int32[n_entries]: flows that flow f waits for, row by row; an empty row waits for none.
    delay_ps
        int64[n_flows]: from the end of the last one to the start [ps]; 0 where None.
    until_acked
        A flow is over when its ACK has come back, not when its last byte has arrived.
    """

    first: Longs
    flow: Ints
    delay_ps: Longs | None = None
    until_acked: bool = False

    @classmethod
    def from_lists(
        cls, rows: list[list[int]], delay_ps: Longs | None = None, *, until_acked: bool = False
    ) -> After:
        """Return it from one list of flows for each flow."""
        first = np.cumsum([0, *map(len, rows)])
        flow = np.array([one for row in rows for one in row], np.int32)
        return cls(first, flow, delay_ps, until_acked)

    def released(self) -> tuple[Longs, Ints]:
        """Return the same graph the other way: row f has the flows that wait for f."""
        n_flows = self.first.size - 1
        child = np.repeat(np.arange(n_flows, dtype=np.int32), np.diff(self.first))
        order = np.argsort(self.flow, kind="stable")
        n_children = np.bincount(self.flow, minlength=n_flows)
        return np.concatenate([[0], np.cumsum(n_children)]).astype(np.int64), child[order]


def check_after(checks: ArrayChecks, after: After | None, queue_pair: Ints) -> After | None:
    """Return the graph in the kernels' types; note what is wrong, and flows that wait in a ring.

    A message also waits for the one before it on its queue pair.
    """
    n_flows = queue_pair.size
    if after is None:
        return None
    flow = checks.ints("after.flow", after.flow, None, 0, max(1, n_flows))
    first = checks.csr("after.first", after.first, flow.size, n_flows)
    delay_ps = np.zeros(n_flows, np.int64) if after.delay_ps is None else after.delay_ps
    delay_ps = np.ascontiguousarray(delay_ps, np.int64)
    if delay_ps.shape != (n_flows,) or (delay_ps < 0).any():
        expected = _("{n} values, none below 0").format(n=n_flows)
        checks.fault("after.delay_ps", _("the array does not fit."), expected)
    checked = After(first, flow, delay_ps, after.until_acked)
    if not checks.faults:
        stuck = _in_a_ring(_in_turn(checked, queue_pair))
        if stuck.any():
            what = _("flow {flow} waits for itself, over others or at once.").format(
                flow=int(np.argmax(stuck))
            )
            checks.fault("after", what, remedy=_("Leave one of the flows of the ring free."))
    return checked


def _in_turn(after: After, queue_pair: Ints) -> After:
    """Return the graph in which messages wait for those before them on their queue pair, too."""
    order = np.argsort(queue_pair, kind="stable").astype(np.int32)
    follows = np.flatnonzero(np.diff(queue_pair[order]) == 0)
    waits = np.repeat(np.arange(queue_pair.size), np.diff(after.first))
    waits = np.concatenate([waits, order[follows + 1]])
    flow = np.concatenate([after.flow, order[follows]])
    first = np.concatenate([[0], np.cumsum(np.bincount(waits, minlength=queue_pair.size))])
    return After(first.astype(np.int64), flow[np.argsort(waits, kind="stable")])


def _in_a_ring(after: After) -> NDArray[np.bool_]:
    """Tell which flows never start: those in a ring, and those that wait for one."""
    first, child = after.released()
    n_left = np.diff(after.first)
    ready = np.flatnonzero(n_left == 0)
    while ready.size:
        sizes = first[ready + 1] - first[ready]
        starts = np.repeat(first[ready] - np.cumsum(sizes) + sizes, sizes)
        freed = child[starts + np.arange(sizes.sum())]
        n_left = n_left - np.bincount(freed, minlength=n_left.size)
        candidates = np.unique(freed)
        ready = candidates[n_left[candidates] == 0]
    return n_left > 0
