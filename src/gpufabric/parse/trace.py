"""What ranks of a job did, as traces tell it: operations, and what each waits for.

All trace formats are read into this form: Chakra execution traces, PyTorch profiles (Kineto) and
dumps of PyTorch's flight recorder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = [
    "COLLECTIVE",
    "COMMUNICATION",
    "COMPUTE",
    "HOST",
    "MARK",
    "MEMORY",
    "MOST_BYTES",
    "MOST_OPERATIONS",
    "MOST_US",
    "RECEIVE",
    "SEND",
    "Message",
    "RankTrace",
    "TraceOperation",
    "checked_amount",
]

COMPUTE, HOST, MEMORY, MARK = "compute", "host", "memory", "mark"
COLLECTIVE, SEND, RECEIVE = "collective", "send", "receive"
COMMUNICATION = frozenset({COLLECTIVE, SEND, RECEIVE})

MOST_US = 1e12
"""Longest time of an operation: 11 days [us]."""
MOST_BYTES = 2**50
"""Largest message [byte]."""
MOST_OPERATIONS = 5_000_000
"""Most operations of one rank."""


@dataclass(frozen=True, slots=True)
class Message:
    """What an operation sends.

    Parameters
    ----------
    operation
        Such as ``all_reduce``, as nccl-tests names it; ``sendrecv`` between two.
    input_bytes
        What one rank puts in [byte]: of an all-gather its own part, of a reduce-scatter, a
        broadcast, a scatter the whole.
    group
        Name of the ranks that take part; empty for all.
    peer
        The other rank of a send or receive, -1 where there is none.
    tag
        Tells messages of the same pair apart.
    """

    operation: str
    input_bytes: float
    group: str = ""
    peer: int = -1
    tag: int = 0


@dataclass(frozen=True, slots=True)
class TraceOperation:
    """One thing that a rank does.

    Parameters
    ----------
    where
        Place in its file.
    name, kind
        As the trace names it, and one of the kinds above.
    duration_us
        As measured; of communication too. 0 where the trace does not tell [us].
    after
        Operations of the same rank that must have ended, by their place in the list.
    message
        Of communication; None otherwise, and where the trace does not tell it.
    flops, moved_bytes
        Work of computing, where the trace tells: operations, and bytes through memory.
    queue
        Operations of one queue go one at a time; of an empty one they go when they can.
    lead_us
        Idle time between the end of what it waits for and its beginning [us].
    """

    where: str
    name: str
    kind: str
    duration_us: float
    after: tuple[int, ...] = ()
    message: Message | None = None
    flops: float = 0.0
    moved_bytes: float = 0.0
    queue: str = ""
    lead_us: float = 0.0


@dataclass(frozen=True)
class RankTrace:
    """All that one rank does.

    Parameters
    ----------
    file, form
        Where it was read from, and its format.
    rank
        Number of the rank.
    operations
        In the order of the file.
    groups
        Ranks of each group that the trace tells.
    world
        Ranks of the job; 0 where the trace does not tell.
    gpu
        Model that it ran on; empty where the trace does not tell.
    notes
        What was left out or taken for something, by sentence, and how often.
    """

    file: str
    form: str
    rank: int
    operations: tuple[TraceOperation, ...]
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    world: int = 0
    gpu: str = ""
    notes: Mapping[str, int] = field(default_factory=Counter)


def checked_amount(value: float, most: float, where: str, what: str) -> float:
    """Return `value` if it is none below 0 and not above `most`.

    Raises
    ------
    InputError
        If it is.
    """
    if not 0 <= value <= most:
        text = _("{what} is {value:.4g}.").format(what=what, value=value)
        raise InputError(Fault(where, text, _("0 to {most:.4g}").format(most=most)))
    return float(value)
