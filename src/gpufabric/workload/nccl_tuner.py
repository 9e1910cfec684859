"""The time that NCCL's own cost model gives each algorithm and protocol, and so what it chooses.

NCCL does not measure: it computes ``latency + bytes / bandwidth`` for every algorithm and protocol
from constants and takes the smallest. Constants: ``catalog/constants/nccl.yaml``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.constants import NcclConstants, Transport, nccl_constants
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.operations import operation

__all__ = [
    "ALGORITHMS",
    "PROTOCOLS",
    "Choice",
    "Steps",
    "allowed",
    "choose",
    "steps_of",
    "tuner_times",
]

Floats = NDArray[np.float64]

ALGORITHMS = ("Ring", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
PROTOCOLS = ("LL", "LL128", "Simple")
PAIRWISE = "Pairwise"
"""Send and receive between pairs: what all-to-all and the like are made of."""

PEERS_AT_ONCE = 16
"""Remote peers that a rank exchanges with at a time; assumed."""

_SIMPLE_ONLY = frozenset({"CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"})
_RING_SLOWS = 1.4  # Simple rings over the network, 64 B or more a rank and channel; Ampere and up


@dataclass(frozen=True)
class Choice:
    """An algorithm and a protocol.

    Parameters
    ----------
    algorithm
        One of ``ALGORITHMS``, or ``Pairwise``.
    protocol
        One of ``PROTOCOLS``.
    """

    algorithm: str
    protocol: str

    def __str__(self) -> str:
        return f"{self.algorithm}/{self.protocol}"


@dataclass(frozen=True)
class Steps:
    """Latency of an algorithm and protocol as NCCL counts it.

    Parameters
    ----------
    inside_us
        Base and steps inside domains [us].
    n_hops
        Steps over the network.
    hop_us
        NCCL's latency of one of these [us].
    """

    inside_us: float
    n_hops: float
    hop_us: float


def allowed(cluster: Cluster, op: str) -> list[Choice]:
    """Return what NCCL may choose from for an operation."""
    kind = operation(op).name
    names = ["Ring"]
    if kind == "all_reduce":
        names.append("Tree")
        if cluster.has_sharp and cluster.n_domains > 1:
            names += ["CollNetDirect", "CollNetChain"]
        if cluster.reduces_in_nvlink:
            names.append("NVLS" if cluster.n_domains == 1 else "NVLSTree")
    elif kind in {"all_gather", "reduce_scatter"}:
        if cluster.reduces_in_nvlink and cluster.n_domains == 1:
            names.append("NVLS")
        if cluster.gpus_per_domain == 1:
            names.append("PAT")
    elif kind not in {"broadcast", "reduce"}:
        return [Choice(PAIRWISE, "Simple")]
    rules = _transport(cluster)
    return [
        Choice(name, protocol)
        for name in names
        if not rules or not rules.algorithms or name in rules.algorithms
        for protocol in PROTOCOLS
        if protocol == "Simple" or name not in _SIMPLE_ONLY
        if not rules or not rules.protocols or protocol in rules.protocols
    ]


def _transport(cluster: Cluster) -> Transport | None:
    """What was set for the cluster's network, where that differs from RDMA."""
    return nccl_constants().transports.get(cluster.network) if cluster.n_domains > 1 else None


def choose(
    cluster: Cluster,
    op: str,
    size_bytes: Floats,
    algorithm: str | None = None,
    protocol: str | None = None,
) -> list[Choice]:
    """Return what NCCL would choose for each size, among what the caller leaves open.

    Parameters
    ----------
    cluster, op
        Where, and which operation.
    size_bytes
        float64[n]: message sizes [byte].
    algorithm, protocol
        Forced, as with ``NCCL_ALGO`` and ``NCCL_PROTO``; several with commas.

    Raises
    ------
    InputError
        If a name is unknown, or NCCL has no such combination here.
    """
    every = allowed(cluster, op)
    wanted = _only(every, algorithm, protocol)
    if wanted[0].algorithm == PAIRWISE:
        return wanted * len(size_bytes)
    times = np.array([tuner_times(cluster, op, choice, size_bytes) for choice in wanted])
    return [wanted[best] for best in times.argmin(axis=0)]


def _only(every: list[Choice], algorithm: str | None, protocol: str | None) -> list[Choice]:
    kept = every
    for where, text, names, field in (
        ("--algo", algorithm, (*ALGORITHMS, PAIRWISE), "algorithm"),
        ("--proto", protocol, PROTOCOLS, "protocol"),
    ):
        if text is None:
            continue
        known = {name.lower(): name for name in names}
        wanted = [part.strip() for part in text.split(",")]
        for part in wanted:
            if part.lower() not in known:
                what = _('"{name}" is unknown.').format(name=part[:64])
                raise InputError(Fault(where, what, ", ".join(names), nearest(part, names)))
        chosen = {known[part.lower()] for part in wanted}
        kept = [choice for choice in kept if getattr(choice, field) in chosen]
    if not kept:
        asked = " ".join(part for part in (algorithm, protocol) if part)
        what = _("NCCL cannot do that here: {asked}.").format(asked=asked[:64])
        raise InputError(Fault("--algo", what, ", ".join(str(choice) for choice in every)))
    return kept


def tuner_times(cluster: Cluster, op: str, choice: Choice, size_bytes: Floats) -> Floats:
    """Time that NCCL's cost model gives, in microseconds: float64[n].

    Notes
    -----
    ``time = latency + bytes / bandwidth``, with the latency of ``steps_of`` and of each hop what
    the transport's plugin states (twice for Simple, which flushes), the factor 1.4 for
    Simple rings over the network, and ``tree_correction`` on the bandwidth of trees. Where the
    factors of ``tree_correction`` end, at 2**23 * 64 B, the bandwidth is taken whole.

    Source: NCCL 2.30.7, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime.
    """
    constants = nccl_constants()
    size_bytes = np.asarray(size_bytes, np.float64)
    steps = steps_of(cluster, op, choice)
    rules = _transport(cluster)
    hop_us = steps.hop_us
    if rules is not None:
        hop_us += rules.latency_us * (2 if choice.protocol == "Simple" else 1)
    latency_us = np.full(size_bytes.shape, steps.inside_us + steps.n_hops * hop_us)
    gbytes_per_s = np.full(size_bytes.shape, _algorithm_bandwidth(cluster, op, choice, constants))
    is_all_reduce = operation(op).name == "all_reduce"
    if choice == Choice("Ring", "Simple") and is_all_reduce and cluster.n_domains > 1:
        a_part = size_bytes / (cluster.facts.channels * cluster.n_ranks)
        latency_us = np.where(a_part >= 64, _RING_SLOWS * latency_us, latency_us)
    if choice.algorithm == "Tree" and is_all_reduce:
        factors = np.array(constants.tree_correction[choice.protocol])
        power = np.log2(np.maximum(size_bytes / 64, 1.0)).astype(np.int64)
        inside = power < len(factors) - 1
        slowed = gbytes_per_s * factors[np.minimum(power, len(factors) - 1)]
        gbytes_per_s = np.where(inside, slowed, gbytes_per_s)
    times: Floats = latency_us + size_bytes / (1e3 * gbytes_per_s)
    return times


def steps_of(cluster: Cluster, op: str, choice: Choice) -> Steps:
    """Return the latency of a choice in its parts."""
    constants = nccl_constants()
    at = PROTOCOLS.index(choice.protocol)
    name, each = choice.algorithm, cluster.gpus_per_domain
    if name == PAIRWISE:
        return _pairwise_steps(cluster, constants, at)
    if name == "Ring":
        return _ring_latency(cluster, op, constants, at)
    inside = constants.hardware_latency_us["nvlink"][name][at]
    hop = constants.hardware_latency_us["network"][name][at]
    base = constants.base_latency_us[name][at]
    log2 = math.log2(cluster.n_domains)
    inside_us, n_hops = {
        "Tree": (base + 2 * (each - 1) * inside, 2 * log2),
        "NVLS": (base + inside, 0.0),
        "NVLSTree": (base + inside, 2 * log2),
        "PAT": (base + 2.8 * cluster.n_ranks, log2 / 3.5),
        "CollNetDirect": (2 * (min(1, each - 1) * inside + 0.4 * (each - 1)), 1.0),
        "CollNetChain": (base + 2 * (each - 1) * inside, 1.0),
    }[name]
    return Steps(inside_us, n_hops, hop)


def _pairwise_steps(cluster: Cluster, constants: NcclConstants, at: int) -> Steps:
    """A step to each peer of the domain, and one for `PEERS_AT_ONCE` others."""
    each = cluster.gpus_per_domain
    inside = constants.hardware_latency_us["nvlink"]["Ring"][at]
    base = constants.base_latency_us["Ring"][at]
    n_hops = math.ceil((cluster.n_ranks - each) / PEERS_AT_ONCE)
    hop = constants.hardware_latency_us["network"]["Ring"][at]
    return Steps(base + (each - 1) * inside, n_hops, hop)


def _ring_latency(cluster: Cluster, op: str, constants: NcclConstants, at: int) -> Steps:
    domains = cluster.n_domains
    inside = constants.hardware_latency_us["nvlink"]["Ring"][at]
    row = "Tree" if cluster.gpus_per_domain == 1 else "Ring"
    hop = constants.hardware_latency_us["network"][row][at]
    passes = 2 if operation(op).name == "all_reduce" else 1
    n_hops = 0 if domains == 1 else passes * (domains - 1)
    if domains > 1:
        overhead = (2.0 if cluster.has_amd_cpu else 1.0) * (3 if at == 2 else 1)
        inside = max(inside, overhead)
    base = constants.base_latency_us["Ring"][at]
    return Steps(base + (_ring_steps(cluster, op) - n_hops) * inside, n_hops, hop)


def _ring_steps(cluster: Cluster, op: str) -> int:
    name = operation(op).name
    if name == "all_reduce":
        return 2 * (cluster.n_ranks - 1)
    return cluster.n_ranks - 1 if operation(op).is_split else cluster.n_ranks


def _algorithm_bandwidth(
    cluster: Cluster, op: str, choice: Choice, constants: NcclConstants
) -> float:
    """Bytes a time that NCCL reckons with [GB/s]."""
    name, domains = choice.algorithm, cluster.n_domains
    inside = cluster.facts.nvlink_gbytes_per_s
    wire = cluster.wire_gbytes_per_s or inside
    n_channels = cluster.facts.channels
    tuner, row = cluster.facts.tuner, 0 if domains == 1 else 1 if domains == 2 else 2
    if name in {"NVLS", "NVLSTree"}:
        bus = _nvls_bandwidth(cluster, op, name, constants)
    else:
        is_near = domains <= 2 or name.startswith("CollNet")
        bus = inside if domains == 1 or (is_near and name == "Tree") else min(inside, wire)
        if name == "Ring":
            bus = _ring_cap(bus, choice.protocol, tuner, row, n_channels, constants)
        elif name == "Tree":
            bus = _tree_cap(bus, choice.protocol, tuner, row, n_channels, constants)
        elif name == "PAT":
            bus *= 0.75
        elif name == "CollNetDirect":
            fan = cluster.gpus_per_domain / n_channels
            bus *= (0.85 if tuner in {"hopper", "blackwell"} else 1.0) / max(
                fan - (fan - 1) / 2, 1.0
            )
    if name in {"Ring", "NVLS", "NVLSTree"}:
        return bus * cluster.n_ranks / _ring_steps(cluster, op)
    return bus * 0.5


def _nvls_bandwidth(cluster: Cluster, op: str, name: str, constants: NcclConstants) -> float:
    facts, each = cluster.facts, cluster.gpus_per_domain
    row = 0 if cluster.n_domains == 1 else 1 if cluster.n_domains == 2 else 2
    passes = 2.0 if operation(op).name == "all_reduce" else (each - 1) / each
    share = (facts.channels - 1) / facts.channels
    inside = facts.nvlink_gbytes_per_s * constants.nvls_efficiency[facts.tuner] * share * passes
    if name == "NVLS":
        return inside
    wire = (cluster.wire_gbytes_per_s or inside) * (2 if cluster.n_domains <= 2 else 1)
    cap = facts.channels * constants.nvls_tree_channel_gbytes_per_s[facts.tuner][row]
    return min(inside, wire, cap)


def _ring_cap(
    bus: float, protocol: str, tuner: str, row: int, n_channels: int, constants: NcclConstants
) -> float:
    if protocol == "LL":
        return min(constants.ll_most_gbytes_per_s[tuner][row], bus * 0.5)
    if protocol == "LL128":
        cap = n_channels * constants.ring_ll128_channel_gbytes_per_s[tuner][row]
        return min(bus * 0.92, cap)
    return bus


def _tree_cap(
    bus: float, protocol: str, tuner: str, row: int, n_channels: int, constants: NcclConstants
) -> float:
    bus = min(bus * 0.92, n_channels * constants.tree_channel_gbytes_per_s[tuner][row])
    if protocol == "LL":
        return min(bus / 3.8, constants.ll_most_gbytes_per_s[tuner][row])
    if protocol == "LL128":
        cap = n_channels * constants.tree_ll128_channel_gbytes_per_s[tuner][row]
        return min(bus * (7 / 9 if row == 0 else 120 / 128), cap)
    return bus
