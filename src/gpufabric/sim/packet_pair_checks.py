"""Messages of one queue pair, checked: they must have in common what belongs to the queue pair."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_messages import Operation

__all__ = ["check_queue_pairs", "check_shared_pairs"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class _Messages(Protocol):
    """What is known of messages, each with its queue pair."""

    @property
    def n_flows(self) -> int: ...
    @property
    def pairs(self) -> Longs: ...
    @property
    def has_messages(self) -> bool: ...
    @property
    def queue_pair(self) -> Ints: ...
    @property
    def path(self) -> Ints: ...
    @property
    def traffic_class(self) -> Ints: ...
    @property
    def control(self) -> Ints: ...
    @property
    def operation(self) -> Ints: ...


def check_queue_pairs(checks: ArrayChecks, given: Ints | None, n_flows: int) -> Ints:
    """Return the queue pair of each message; each has its own where None."""
    if given is None:
        return np.arange(n_flows, dtype=np.int32)
    pairs = checks.ints("queue_pair", given, n_flows, 0, max(1, n_flows))
    n_pairs = int(pairs.max(initial=-1)) + 1
    unused = np.bincount(pairs, minlength=n_pairs) == 0
    if not checks.faults and unused.any():
        what = _("no message has queue pair {number}.").format(number=int(np.argmax(unused)))
        checks.fault("queue_pair", what, _("numbers from 0 without a gap"))
    return pairs


def check_shared_pairs(checks: ArrayChecks, messages: _Messages) -> None:
    """Note messages of one queue pair that differ in what belongs to the queue pair, and READs."""
    if not messages.has_messages:
        return
    leader = messages.pairs[messages.queue_pair]
    for name in ("path", "traffic_class", "control"):
        values = getattr(messages, name)
        _note(checks, values != values[leader], name, _("that of the first of its queue pair"))
    shared = np.bincount(messages.queue_pair)[messages.queue_pair] > 1
    is_read = shared & (messages.operation == Operation.READ)
    _note(checks, is_read, "operation", _("WRITE or SEND, where a queue pair has several messages"))


def _note(checks: ArrayChecks, wrong: NDArray[np.bool_], name: str, expected: str) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        what = _("it does not fit its queue pair.")
        checks.fault(f"{name}[{at}]", what, expected)
