"""All-to-all and what else goes straight from rank to rank: by pairs, by rail, and for experts.

With PXN, data for a GPU of another rail first go over NVLink to the host's GPU of that rail, which
sends them with its own: fewer and larger messages, and none that changes rails in the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.schedule import MessageList, Messages, Phase

__all__ = [
    "Experts",
    "all_to_all_messages",
    "all_to_all_phases",
    "expert_phases",
    "mean_hosts_reached",
    "rooted_messages",
    "rooted_phases",
    "send_receive_messages",
    "send_receive_phases",
]

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


def all_to_all_messages(
    n_domains: int,
    each: int,
    size_bytes: float,
    *,
    by_rail: bool = False,
    parts: Floats | None = None,
) -> Messages:
    """Return every message of an all-to-all: chunk ``r n + t`` goes from rank r to rank t.

    Parameters are those of `all_to_all_phases`.
    """
    n = n_domains * each
    rows = MessageList(n, (_parts(n, parts) * size_bytes).ravel().tolist())
    if not by_rail:
        for ahead in range(1, n):
            rows.step((r, (r + ahead) % n, r * n + (r + ahead) % n, False) for r in range(n))
        return rows.messages()
    for ahead in range(1, each):
        rows.step(
            (r, relay, r * n + target, False)
            for r in range(n)
            for relay in [r // each * each + (r + ahead) % each]
            for target in range(relay % each, n, each)
        )
    for ahead in range(1, n_domains):
        rows.step(
            (relay, target, r * n + target, False)
            for relay in range(n)
            for target in [(relay + ahead * each) % n]
            for r in range(relay // each * each, relay // each * each + each)
        )
    return rows.messages()


def all_to_all_phases(
    n_domains: int,
    each: int,
    size_bytes: float,
    *,
    by_rail: bool = False,
    parts: Floats | None = None,
) -> tuple[Phase, ...]:
    """Return an all-to-all merged: every pair at once, or over NVLink first and rails then.

    Parameters
    ----------
    n_domains, each
        Hosts, and GPUs of each.
    size_bytes
        What each rank has to send, its own part included [byte].
    by_rail
        With PXN: NVLink first, then the network inside each rail.
    parts
        float64[n, n]: part of `size_bytes` that rank r sends to rank t (all-to-all-v); equal
        where None.

    Raises
    ------
    InputError
        If `parts` has another shape, or a negative or infinite value.
    """
    n = n_domains * each
    parts = _parts(n, parts)
    if not by_rail or n_domains == 1:
        source, target = np.nonzero(~np.eye(n, dtype=np.bool_))
        sizes = parts[source, target] * size_bytes
        return (_phase("pairs", source, target, sizes, max(n - 1, 1)),)
    by_gpu = parts.reshape(n, n_domains, each)
    relayed = by_gpu.sum(axis=1)  # what rank r sends by way of GPU j of its host
    rank, gpu = np.nonzero(np.arange(n)[:, None] % each != np.arange(each))
    first = _phase(
        "NVLink",
        rank,
        rank // each * each + gpu,
        relayed[rank, gpu] * size_bytes,
        max(each - 1, 1),
    )
    # Of host a to GPU j of host b: what all GPUs of a have for it.
    together = by_gpu.reshape(n_domains, each, n_domains, each).sum(axis=1)
    is_far = ~np.eye(n_domains, dtype=np.bool_)[:, :, None]
    here, there, gpu = np.nonzero(np.broadcast_to(is_far, together.shape))
    second = _phase(
        "rails",
        here * each + gpu,
        there * each + gpu,
        together[here, there, gpu] * size_bytes,
        n_domains - 1,
    )
    return first, second


def _parts(n: int, parts: Floats | None) -> Floats:
    """Part of its data that each rank sends to each: equal where not told."""
    if parts is None:
        return np.full((n, n), 1 / n)
    if parts.shape != (n, n) or not (np.isfinite(parts) & (parts >= 0)).all():
        what = _("the parts have the shape {shape}.").format(shape=parts.shape)
        raise InputError(Fault("parts", what, _("{n} by {n} values, none below 0").format(n=n)))
    return parts


def _phase(name: str, source: object, target: object, sizes: Floats, n_steps: int) -> Phase:
    return Phase(
        name, np.asarray(source, np.int32), np.asarray(target, np.int32), np.asarray(sizes), n_steps
    )


def send_receive_phases(n: int, size_bytes: float) -> tuple[Phase, ...]:
    """Return what sendrecv of nccl-tests does: each rank sends all to the next."""
    rank = np.arange(n)
    return (_phase("neighbours", rank, (rank + 1) % n, np.full(n, size_bytes), 1),)


def send_receive_messages(n: int, size_bytes: float) -> Messages:
    """Return the messages of sendrecv: chunk r goes from rank r to the next."""
    rows = MessageList(n, [size_bytes] * n)
    rows.step((rank, (rank + 1) % n, rank, False) for rank in range(n))
    return rows.messages()


def rooted_messages(operation: str, n: int, size_bytes: float, root: int = 0) -> Messages:
    """Return the messages of gather or scatter: chunk r is that of rank r."""
    rows = MessageList(n, [size_bytes / n] * n)
    others = [rank for rank in range(n) if rank != root]
    if operation == "gather":
        rows.step((rank, root, rank, False) for rank in others)
    else:
        rows.step((root, rank, rank, False) for rank in others)
    return rows.messages()


def rooted_phases(operation: str, n: int, size_bytes: float, root: int = 0) -> tuple[Phase, ...]:
    """Return gather to, or scatter from, one rank: S / n to or from each other."""
    others = np.flatnonzero(np.arange(n) != root)
    roots = np.full(n - 1, root)
    ends = (others, roots) if operation == "gather" else (roots, others)
    return (_phase(operation, ends[0], ends[1], np.full(n - 1, size_bytes / n), 1),)


def mean_hosts_reached(n_hosts: int, n_experts: int, top_k: int, most_hosts: int) -> float:
    """Hosts other than its own that a token goes to, on average.

    A token goes to `top_k` different experts, drawn alike from all, or from those of `most_hosts`
    hosts where the router limits it so (DeepSeek-V3: 4 of 8). Experts are dealt equally to hosts.

    Examples
    --------
    >>> round(mean_hosts_reached(2, 16, 1, 2), 3)
    0.5
    """
    reached = min(most_hosts, n_hosts)
    experts = n_experts // n_hosts * reached
    # Chance that no expert of one of these hosts is among the drawn ones.
    missed = 1.0
    for drawn in range(top_k):
        missed *= max(experts - experts / reached - drawn, 0.0) / (experts - drawn)
    hit = reached * (1.0 - missed)
    return hit * (n_hosts - 1) / n_hosts


@dataclass(frozen=True)
class Experts:
    """A layer of experts.

    Parameters
    ----------
    n_experts
        In all, dealt equally to the hosts.
    top_k
        Experts that a token goes to.
    most_hosts
        Hosts that a token may go to at most; all where None.
    """

    n_experts: int
    top_k: int
    most_hosts: int | None = None


def _gpus_reached(n: int, each: int, experts: Experts, most_hosts: int) -> float:
    """GPUs, the own one with them, that a token goes to on average: once, whatever its experts."""
    if experts.n_experts < n:
        return float(min(experts.top_k, experts.n_experts))
    others = mean_hosts_reached(n, experts.n_experts, experts.top_k, most_hosts * each)
    return others * n / (n - 1)


def expert_phases(
    n_domains: int,
    each: int,
    experts: Experts,
    gpu_bytes: float,
    *,
    combine: bool = False,
) -> tuple[Phase, ...]:
    """Return dispatch or combine of experts as DeepEP does it: once a host over the network.

    A token crosses the network once for each host that has experts for it, to the GPU of the same
    number there, which hands it on over NVLink to the experts' GPUs. Combine goes the other way.

    Parameters
    ----------
    n_domains, each
        Hosts, and GPUs of each.
    experts
        Of the layer.
    gpu_bytes
        Data of all tokens of a GPU, each once [byte].
    combine
        Whether results come back.

    Source: DeepEP README, "normal kernels"; DeepSeek-V3 technical report, section 3.2.2.
    """
    n = n_domains * each
    top_k, most_hosts = experts.top_k, experts.most_hosts or n_domains
    reached = mean_hosts_reached(n_domains, experts.n_experts, top_k, most_hosts)
    rank = np.arange(n)
    phases = []
    if n_domains > 1:
        source, host = np.nonzero(rank[:, None] // each != np.arange(n_domains))
        size = np.full(len(source), gpu_bytes * reached / (n_domains - 1))
        phases.append(_phase("rails", source, host * each + source % each, size, 1))
    if each > 1:
        copies = _gpus_reached(n, each, experts, most_hosts)
        source, gpu = np.nonzero(rank[:, None] % each != np.arange(each))
        size = np.full(len(source), gpu_bytes * copies / each)
        phases.append(_phase("NVLink", source, source // each * each + gpu, size, 1))
    if not combine:
        return tuple(phases)
    return tuple(
        Phase(phase.name, phase.target, phase.source, phase.n_bytes, phase.n_steps)
        for phase in reversed(phases)
    )
