"""Collective operations: their names, and the factor from algorithm to bus bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = ["OPERATIONS", "Operation", "bus_bandwidth", "bus_factor", "operation"]


@dataclass(frozen=True)
class Operation:
    """A collective operation, as nccl-tests names and measures it.

    Parameters
    ----------
    name
        Such as ``all_reduce``.
    program
        The program of nccl-tests that measures it.
    passes
        How often each byte crosses the slowest boundary, for many ranks.
    is_split
        Whether a rank keeps its own part, which then need not move: factor (n - 1) / n.
    reduces
        Whether data are added up on the way.
    """

    name: str
    program: str
    passes: float
    is_split: bool
    reduces: bool


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        row[0]: Operation(*row)
        for row in (
            ("all_reduce", "all_reduce_perf", 2.0, True, True),
            ("all_gather", "all_gather_perf", 1.0, True, False),
            ("reduce_scatter", "reduce_scatter_perf", 1.0, True, True),
            ("alltoall", "alltoall_perf", 1.0, True, False),
            ("broadcast", "broadcast_perf", 1.0, False, False),
            ("reduce", "reduce_perf", 1.0, False, True),
            ("sendrecv", "sendrecv_perf", 1.0, False, False),
            ("gather", "gather_perf", 1.0, True, False),
            ("scatter", "scatter_perf", 1.0, True, False),
        )
    }
)
"""By name. Source: nccl-tests, doc/PERFORMANCE.md, section "Bus bandwidth"."""

_ALIASES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "all_to_all": "alltoall",
    "all_to_all_v": "alltoall",
    "alltoallv": "alltoall",
    "send_recv": "sendrecv",
}


def operation(name: str, where: str = "--op") -> Operation:
    """Return the operation of a name; ``allreduce``, ``all-reduce`` and ``all_reduce`` are one.

    Raises
    ------
    InputError
        If there is none of that name.

    Examples
    --------
    >>> operation("All-Reduce").name
    'all_reduce'
    """
    key = name.strip().lower().replace("-", "_").removesuffix("_perf")
    key = _ALIASES.get(key, key)
    if key not in OPERATIONS:
        raise InputError(
            Fault(
                where,
                _('there is no operation "{name}".').format(name=name[:64]),
                ", ".join(OPERATIONS),
                nearest(key, list(OPERATIONS)),
            )
        )
    return OPERATIONS[key]


def bus_factor(name: str, n_ranks: int) -> float:
    """Return the factor from algorithm to bus bandwidth.

    Raises
    ------
    InputError
        If there is no such operation, or fewer than two ranks.

    Examples
    --------
    >>> bus_factor("all_reduce", 8)
    1.75
    """
    kind = operation(name)
    if n_ranks < 2:
        raise InputError(Fault("--ranks", _("{n} ranks.").format(n=n_ranks), _("2 or more")))
    share = (n_ranks - 1) / n_ranks if kind.is_split else 1.0
    return kind.passes * share


def bus_bandwidth(name: str, n_ranks: int, size_bytes: float, time_us: float) -> float:
    """Bus bandwidth of one collective, in GB/s (10**9 bytes per second).

    Bus bandwidth scales algorithm bandwidth so that the value can be held against the rate of the
    slowest link, whatever the number of ranks.

    Parameters
    ----------
    name
        Of the operation.
    n_ranks
        Number of GPUs taking part, at least 2.
    size_bytes
        Message size as nccl-tests prints it: the whole buffer, not one rank's share [byte].
    time_us
        Time of one operation [us].

    Notes
    -----
    ``busbw = size / time * factor(n)``; for all-reduce the factor is ``2 (n - 1) / n``.

    Source: nccl-tests, doc/PERFORMANCE.md, section "Bus bandwidth".

    Examples
    --------
    Eight GPUs reduce 1 GB in 40 ms:

    >>> bus_bandwidth("all_reduce", 8, 10**9, 40_000.0)
    43.75
    """
    return size_bytes / time_us / 1e3 * bus_factor(name, n_ranks)
