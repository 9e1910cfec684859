"""Collectives as schedules: what each algorithm of a collective library sends, rank by rank."""

from __future__ import annotations

from collections.abc import Callable

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.in_switch import (
    half_messages,
    half_phases,
    in_switch_messages,
    in_switch_phases,
)
from gpufabric.workload.logarithmic import logarithmic_messages, logarithmic_phases
from gpufabric.workload.nccl_tuner import PAIRWISE
from gpufabric.workload.operations import operation
from gpufabric.workload.pairwise import (
    all_to_all_messages,
    all_to_all_phases,
    rooted_messages,
    rooted_phases,
    send_receive_messages,
    send_receive_phases,
)
from gpufabric.workload.rings import (
    PASSES,
    chain_messages,
    ring_messages,
    ring_order,
    ring_phases,
)
from gpufabric.workload.schedule import Messages, Phase, Schedule
from gpufabric.workload.trees import tree_messages, tree_phases

__all__ = ["MOST_MESSAGES", "messages_of", "schedule_of"]

MOST_MESSAGES = 2_000_000
"""Most messages that are written one by one."""
MOST_RING_MESSAGES = 10_000_000
"""The same for rings, whose messages are written all at once."""

_IN_SWITCH = frozenset({"NVLS", "NVLSTree", "CollNetDirect", "CollNetChain"})


def schedule_of(
    cluster: Cluster, op: str, algorithm: str, size_bytes: float, *, by_rail: bool = False
) -> Schedule:
    """Return a collective as merged phases.

    Parameters
    ----------
    cluster
        Its domains and their GPUs; ranks count through domains.
    op, algorithm
        What it does, and one of ``nccl_tuner.ALGORITHMS`` or ``Pairwise``.
    size_bytes
        Message size, as nccl-tests counts it [byte].
    by_rail
        All-to-all with PXN: over NVLink first, then inside rails.

    Raises
    ------
    InputError
        If the algorithm does no such operation.
    """
    kind = operation(op).name
    domains, each = cluster.n_domains, cluster.gpus_per_domain
    phases = _phases(kind, algorithm, domains, each, size_bytes, by_rail=by_rail)
    n_switches = domains + 1 if algorithm in _IN_SWITCH else 0
    return Schedule(
        kind, algorithm, cluster.n_ranks, cluster.n_ranks + n_switches, size_bytes, phases
    )


def _phases(
    kind: str, algorithm: str, domains: int, each: int, size_bytes: float, *, by_rail: bool
) -> tuple[Phase, ...]:
    n = domains * each
    makers: dict[tuple[str, str], Callable[[], tuple[Phase, ...]]] = {
        ("alltoall", PAIRWISE): lambda: all_to_all_phases(
            domains, each, size_bytes, by_rail=by_rail
        ),
        ("sendrecv", PAIRWISE): lambda: send_receive_phases(n, size_bytes),
        ("gather", PAIRWISE): lambda: rooted_phases(kind, n, size_bytes),
        ("scatter", PAIRWISE): lambda: rooted_phases(kind, n, size_bytes),
        ("all_reduce", "Tree"): lambda: tree_phases(domains, each, size_bytes),
    }
    for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"):
        makers[name, "Ring"] = lambda: ring_phases(kind, domains, each, size_bytes)
    for name in _IN_SWITCH:
        makers["all_reduce", name] = lambda: in_switch_phases(algorithm, domains, each, size_bytes)
    if domains == 1:
        for name in ("all_gather", "reduce_scatter"):
            makers[name, "NVLS"] = lambda: half_phases(kind, each, size_bytes)
    if each == 1:
        for name in ("all_gather", "reduce_scatter"):
            makers[name, "PAT"] = lambda: logarithmic_phases(kind, n, size_bytes)
    if (kind, algorithm) not in makers:
        raise InputError(_no_such(kind, algorithm))
    return makers[kind, algorithm]()


def _no_such(kind: str, algorithm: str) -> Fault:
    what = _("{algorithm} does no {operation} here.").format(algorithm=algorithm, operation=kind)
    return Fault("--algo", what, _("another algorithm"))


def messages_of(
    cluster: Cluster, op: str, algorithm: str, size_bytes: float, *, by_rail: bool = False
) -> Messages:
    """Return every message of a collective, with what each waits for.

    Raises
    ------
    InputError
        If the algorithm does no such operation, or the messages would be too many.
    """
    kind = operation(op).name
    domains, each, n = cluster.n_domains, cluster.gpus_per_domain, cluster.n_ranks
    most = MOST_RING_MESSAGES if algorithm == "Ring" and kind in PASSES else MOST_MESSAGES
    if n * n * 2 > most:
        what = _("{n} ranks are too many to write every message.").format(n=n)
        raise InputError(Fault("--ranks", what, _("at most {n}").format(n=int((most / 2) ** 0.5))))
    order = ring_order(domains, each)
    makers: dict[tuple[str, str], Callable[[], Messages]] = {
        ("alltoall", PAIRWISE): lambda: all_to_all_messages(
            domains, each, size_bytes, by_rail=by_rail
        ),
        ("sendrecv", PAIRWISE): lambda: send_receive_messages(n, size_bytes),
        ("gather", PAIRWISE): lambda: rooted_messages(kind, n, size_bytes),
        ("scatter", PAIRWISE): lambda: rooted_messages(kind, n, size_bytes),
        ("all_reduce", "Tree"): lambda: tree_messages(domains, each, size_bytes),
    }
    if domains == 1:
        for name in ("all_gather", "reduce_scatter"):
            makers[name, "NVLS"] = lambda: half_messages(kind, each, size_bytes)
    for name in ("all_reduce", "all_gather", "reduce_scatter"):
        makers[name, "Ring"] = lambda: ring_messages(kind, order, size_bytes)
    for name in ("broadcast", "reduce"):
        makers[name, "Ring"] = lambda: chain_messages(kind, order, size_bytes)
    for name in _IN_SWITCH:
        makers["all_reduce", name] = lambda: in_switch_messages(
            algorithm, domains, each, size_bytes
        )
    if each == 1:
        for name in ("all_gather", "reduce_scatter"):
            makers[name, "PAT"] = lambda: logarithmic_messages(kind, n, size_bytes)
    if (kind, algorithm) not in makers:
        raise InputError(_no_such(kind, algorithm))
    return makers[kind, algorithm]()
