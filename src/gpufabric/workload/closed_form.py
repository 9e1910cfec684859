"""Time of one collective in closed form: NCCL's step counts with fitted rates and delays.

The time of a collective over `S` bytes on a pipeline is::

    time = latency factor * NCCL's steps + network * hops + x + 2 sqrt(chunk * x),   x = f S / B

NCCL's steps are those of its cost model, inside domains and over the network; `network` is what a
hop costs besides, by transport.
`f` is the factor to bus bandwidth, `B` the bus bandwidth of the narrowest part: the domain's
NVLink, or all NICs of a domain times their efficiency times what the algorithm gets out of them.
The root is what a pipeline with the best chunk size loses to filling and to the cost of each
chunk: with k chunks the time is x + x d / k + c k, least at k = sqrt(x d / c) (R. Hockney's
model; compare J. Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations",
2007, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.constants import CollectiveFit, collective_fit
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.nccl_tuner import PAIRWISE, Choice, choose, steps_of
from gpufabric.workload.operations import bus_factor, operation

__all__ = [
    "MODEL",
    "MODEL_VERSION",
    "PROTOCOL_SHARE",
    "Estimate",
    "Terms",
    "band_of",
    "estimate",
    "extrapolations",
    "inside_family",
    "interval",
    "terms_of",
    "time_us",
    "wire_factor",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MODEL = "collective-closed-form"
MODEL_VERSION = 2

PROTOCOL_SHARE = {"LL": 0.5, "LL128": 0.92, "Simple": 1.0}
"""Data's share of what a protocol sends: 4 of 8 B, 120 of 128 B (0.92 as NCCL reckons), all."""

BANDS = ((2**20, "small"), (2**26, "middle"), (np.inf, "large"))
"""Classes of message size for errors: up to 1 MiB, up to 64 MiB, above."""

BEYOND = 1.5
"""Factor on the width of an interval where the question goes beyond the measured runs; assumed."""

TREE_GAIN = {2: 2.0, 3: 4 / 3}
"""Bus bandwidth of a double binary tree over 2 and 3 domains against that over many."""

_FAMILY = {
    "Ring": "ring",
    "Tree": "tree",
    "NVLS": "nvls",
    "NVLSTree": "nvls",
    "CollNetDirect": "ring",
    "CollNetChain": "ring",
    "PAT": "ring",
    PAIRWISE: "pairwise",
}


@dataclass(frozen=True)
class Estimate:
    """Times of one collective for several sizes.

    Parameters
    ----------
    size_bytes
        float64[n] [byte].
    time_us, low_us, high_us
        float64[n]: time, and the 80 % interval of what would be measured [us].
    choices
        Algorithm and protocol of each size.
    factor
        From algorithm to bus bandwidth.
    extrapolates
        Why the estimate goes beyond the runs it was fitted on; empty if it does not.
    """

    size_bytes: Floats
    time_us: Floats
    low_us: Floats
    high_us: Floats
    choices: list[Choice]
    factor: float
    extrapolates: tuple[str, ...]

    @property
    def algbw_gbytes_per_s(self) -> Floats:
        """float64[n]: size over time [GB/s]."""
        result: Floats = self.size_bytes / self.time_us / 1e3
        return result

    @property
    def busbw_gbytes_per_s(self) -> Floats:
        """float64[n]: bus bandwidth [GB/s]."""
        return self.algbw_gbytes_per_s * self.factor


class Terms(NamedTuple):
    """What a choice costs beside the fitted constants.

    Parameters
    ----------
    inside_us
        Steps inside domains, with NCCL's base latency [us].
    hops_us
        Steps over the network, as NCCL reckons them [us].
    n_hops
        How many these are; each costs `network_us` besides.
    family
        Which inside rate holds: ``ring``, ``tree``, ``nvls``, ``pairwise``.
    inside_share
        Of that rate.
    wire_gbytes_per_s
        Most bus bandwidth of the network at full efficiency [GB/s]; None inside one domain.
    protocol_share
        Data's share of what is sent.
    """

    inside_us: float
    hops_us: float
    n_hops: float
    family: str
    inside_share: float
    wire_gbytes_per_s: float | None
    protocol_share: float


def inside_family(choice: Choice) -> str:
    """Return which rate inside a domain holds for a choice."""
    return _FAMILY[choice.algorithm]


def wire_factor(cluster: Cluster, op: str, choice: Choice) -> float:
    """Bus bandwidth over what all NICs of a domain send, at full efficiency.

    Notes
    -----
    With n ranks on N domains of g, W the NICs' rate of a domain:

    - Ring: each domain sends what its ring carries: W.
    - Tree, NVLSTree all-reduce: half of S goes up and down each of two binary trees. A domain in
      the middle of one (3 halves sent) is a leaf of the other (1 half): it sends 2 S, so the bus
      bandwidth is ``W (n - 1) / n``. Of two domains each sends S, of three the busiest 1.5 S.
    - CollNet: each domain sends S and receives S: bus bandwidth ``2 W (n - 1) / n``.
    - All-to-all: g S (n - g) / n leave a domain: ``W (n - 1) / (g (n - g))``.
    - Gather and scatter: S (N - 1) / N cross one domain's NICs: ``W N (n - 1) / ((N - 1) n)``.
    - Send and receive to the next rank: one pair crosses, by one NIC.
    """
    domains, n, each = cluster.n_domains, cluster.n_ranks, cluster.gpus_per_domain
    kind = operation(op).name
    name = choice.algorithm
    if kind == "alltoall":
        return (n - 1) / (each * (n - each))
    if kind == "sendrecv":
        return 1.0 / cluster.n_nics
    if kind in {"gather", "scatter"}:
        return domains / (domains - 1) * (n - 1) / n
    if name in {"Tree", "NVLSTree"}:
        return TREE_GAIN.get(domains, 1.0) * (n - 1) / n
    if name.startswith("CollNet"):
        return 2 * (n - 1) / n
    return 1.0


def terms_of(cluster: Cluster, op: str, choice: Choice) -> Terms:
    """Return what a choice costs beside the fitted constants."""
    steps = steps_of(cluster, op, choice)
    family = inside_family(choice)
    each = cluster.gpus_per_domain
    wire = None
    if cluster.n_domains > 1 and cluster.wire_gbytes_per_s is not None:
        wire = cluster.wire_gbytes_per_s * wire_factor(cluster, op, choice)
    return Terms(
        steps.inside_us,
        steps.n_hops * steps.hop_us,
        steps.n_hops,
        family,
        (each - 1) / each if family == "nvls" else 1.0,
        wire,
        PROTOCOL_SHARE[choice.protocol],
    )


def time_us(
    cluster: Cluster, op: str, choice: Choice, size_bytes: Floats, fit: CollectiveFit | None = None
) -> Floats:
    """Time of one collective with a given algorithm and protocol, in microseconds: float64[n]."""
    fit = fit or collective_fit()
    terms = terms_of(cluster, op, choice)
    generation, network = cluster.generation, cluster.network
    rates = {
        "ring": fit.ring_gbytes_per_s,
        "tree": fit.tree_gbytes_per_s,
        "nvls": fit.nvls_gbytes_per_s,
        "pairwise": fit.pairwise_gbytes_per_s,
    }[terms.family]
    inside = rates[generation] * cluster.link_share * terms.inside_share
    bus = np.inf if cluster.gpus_per_domain == 1 else inside
    latency_us = fit.latency_factor[generation] * (terms.inside_us + terms.hops_us)
    chunk_us = fit.chunk_us[generation]
    if terms.wire_gbytes_per_s is not None:
        bus = min(bus, terms.wire_gbytes_per_s * fit.wire_efficiency[network])
        latency_us += terms.n_hops * fit.network_us[network]
        chunk_us += fit.wire_chunk_us[network]
    bus *= terms.protocol_share
    moved_us = bus_factor(op, cluster.n_ranks) * np.asarray(size_bytes, np.float64) / bus / 1e3
    times: Floats = latency_us + moved_us + 2 * np.sqrt(chunk_us * moved_us)
    return times


def estimate(
    cluster: Cluster,
    op: str,
    size_bytes: Floats,
    algorithm: str | None = None,
    protocol: str | None = None,
    fit: CollectiveFit | None = None,
) -> Estimate:
    """Return times of one collective, with the algorithm that NCCL would choose or a forced one.

    Raises
    ------
    InputError
        If the operation, algorithm or protocol is unknown or impossible here.
    """
    fit = fit or collective_fit()
    sizes = np.atleast_1d(np.asarray(size_bytes, np.float64))
    choices = choose(cluster, op, sizes, algorithm, protocol)
    times = np.zeros(sizes.shape)
    for choice in dict.fromkeys(choices):
        chosen = np.array([other == choice for other in choices])
        times[chosen] = time_us(cluster, op, choice, sizes[chosen], fit)
    reasons = extrapolations(cluster, op, sizes, fit)
    low, high = interval(cluster, sizes, fit, is_wide=bool(reasons))
    return Estimate(
        sizes,
        times,
        times * low,
        times * high,
        choices,
        bus_factor(op, cluster.n_ranks),
        reasons,
    )


def band_of(cluster: Cluster, size_bytes: float) -> str:
    """Return the class of errors that a size belongs to: domains and transport, and the band."""
    band = next(name for most, name in BANDS if size_bytes < most)
    if cluster.n_domains == 1:
        return f"single-{band}"
    return f"rdma-{band}" if cluster.transport == "rdma" else f"other-{band}"


def interval(
    cluster: Cluster, size_bytes: Floats, fit: CollectiveFit | None = None, *, is_wide: bool = False
) -> tuple[Floats, Floats]:
    """Return the factors on the time between which 80 % of healthy runs lie: two float64[n].

    Parameters
    ----------
    cluster, size_bytes
        Where, and message sizes [byte]; they tell the class of errors (`band_of`).
    fit
        Whose errors; those of the catalogue where None.
    is_wide
        Whether the question goes beyond what was measured, so that `BEYOND` widens the interval.
    """
    fit = fit or collective_fit()
    sizes = np.atleast_1d(np.asarray(size_bytes, np.float64))
    errors = [fit.residuals[band_of(cluster, float(size))] for size in sizes]
    widen = BEYOND if is_wide else 1.0
    low = np.exp([widen * error.low for error in errors])
    high = np.exp([widen * error.high for error in errors])
    return low, high


def extrapolations(cluster: Cluster, op: str, sizes: Floats, fit: CollectiveFit) -> tuple[str, ...]:
    """Return in what the question goes beyond the measured runs, one sentence each."""
    kind = operation(op).name
    reasons = []
    is_far = cluster.n_domains > 1
    transport = cluster.transport if is_far else "none"
    mine = [row for row in fit.measured if row.generation == cluster.generation]
    if not mine:
        reasons.append(_("No run of this GPU generation: {name}.").format(name=cluster.generation))
    roads = [row for row in fit.measured if row.transport == transport]
    if not roads:
        reasons.append(_("No run over this transport: {name}.").format(name=transport))
    both = [row for row in mine if row.transport == transport]
    if mine and roads and not both:
        reasons.append(_("No run of this GPU generation over this transport."))
    if not any(row.operation == kind for row in roads or fit.measured):
        reasons.append(_("No run of {name} over this transport.").format(name=kind))
    most = max((row.most_domains for row in roads), default=1)
    if cluster.n_domains > most:
        reasons.append(
            _("{n} hosts or NVLink domains; measured were at most {most}.").format(
                n=cluster.n_domains, most=most
            )
        )
    largest = max((row.most_bytes for row in both or roads), default=0)
    if float(sizes.max(initial=0)) > 2 * largest > 0:
        reasons.append(_("Sizes above {most} bytes were not measured.").format(most=largest))
    return tuple(reasons)
