"""What a network makes of a spec's workload, before it is built: the forecast of one candidate.

``forecast`` is pure: the same spec, host and fabric give the same numbers. It prints nothing and
reads no files but the constants of the catalogue. All times are closed forms; the flow and the
packet engine are not run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpufabric.catalog.host import Host
from gpufabric.core.errors import InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import Requirement
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import Block, Span, slowdown_of
from gpufabric.workload.forecast_serving import ServingForecast, serving_forecast
from gpufabric.workload.forecast_training import TrainingForecast, training_forecast
from gpufabric.workload.network_view import view_of

__all__ = [
    "CollectiveForecast",
    "WorkloadForecast",
    "forecast",
    "slowed_cluster",
    "told_digits",
]

DIGITS = 6
"""Significant digits of numbers in files: far more than the intervals warrant."""

OPERATIONS = (("all_reduce", (2.0**20, 2.0**26, 2.0**30, 2.0**33)), ("alltoall", (2.0**30,)))
"""Collectives that every forecast tells, and their sizes as nccl-tests counts them [byte]."""


@dataclass(frozen=True)
class CollectiveForecast:
    """One collective of one size over all GPUs.

    Parameters
    ----------
    operation
        As nccl-tests names it: ``all_reduce`` or ``alltoall``.
    size_bytes
        Message size, as nccl-tests counts it [byte].
    algorithm, protocol
        What NCCL would choose.
    time_us
        Time [us].
    busbw_gbytes_per_s, low_gbytes_per_s, high_gbytes_per_s
        Bus bandwidth, and the 80 % interval of what would be measured [GB/s = 10**9 byte/s].
    slowdown
        How many times slower than at full NIC rate the network is for it: 1 where it does not
        block.
    """

    operation: str
    size_bytes: int
    algorithm: str
    protocol: str
    time_us: float
    busbw_gbytes_per_s: float
    low_gbytes_per_s: float
    high_gbytes_per_s: float
    slowdown: float


@dataclass(frozen=True)
class WorkloadForecast:
    """What a candidate's network makes of the workload.

    Parameters
    ----------
    kind
        ``training`` or ``inference``, as the spec says.
    gpu
        Model of the GPUs, as the catalogue names it.
    n_gpus
        Today's GPUs.
    collectives
        Bus bandwidths over all GPUs; empty where nothing is known of the GPU or there is one.
    training
        Step time, its parts, MFU, memory, jitter and GPU-hours lost; None for inference, or
        where it cannot be told: see `unknown`.
    serving
        Times of tokens, tokens a second, shares and tail; None for training or likewise.
    extrapolates
        In what the numbers go beyond the measured runs, one sentence each; the intervals are
        then wider.
    assumed
        What the spec leaves open and was chosen here, one sentence each.
    unknown
        Why parts are missing, one sentence each; empty if none is.
    sources
        Where the constants come from.
    """

    kind: str
    gpu: str
    n_gpus: int
    collectives: tuple[CollectiveForecast, ...] = ()
    training: TrainingForecast | None = None
    serving: ServingForecast | None = None
    extrapolates: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    sources: tuple[str, ...] = field(default=(), repr=False)

    @property
    def exposed_share(self) -> float | None:
        """Share of the time, 0 to 1, in which GPUs wait for communication; None where unknown.

        Of a training step, or of a request from its first to its last moment.
        """
        if self.training is not None:
            return self.training.exposed_share
        return None if self.serving is None else self.serving.network_share

    @property
    def lost_gpu_hours_per_day(self) -> float | None:
        """GPU-hours a day of all GPUs that wait for communication or jitter; None if unknown."""
        if self.training is not None:
            return sum(self.training.lost_gpu_hours_per_day.values())
        share = self.exposed_share
        return None if share is None else share * self.n_gpus * 24


def forecast(requirement: Requirement, host: Host, fabric: Fabric) -> WorkloadForecast:
    """Return what a candidate's network makes of a spec's workload.

    Parameters
    ----------
    requirement
        The spec: kind, model, parallelism, precision, batch and lengths; what it leaves open is
        chosen and told.
    host
        The catalogue's entry of the host, such as ``Design.host``.
    fabric
        The candidate's fabric; today's hosts and links (stage 0) are taken.

    Returns
    -------
    WorkloadForecast
        With `unknown` saying why something is missing, such as a GPU without constants, or a
        model that fits no plan. Nothing is raised for these.

    Notes
    -----
    Model and parallelism are the same for every candidate of a spec: they are chosen on a network
    that gives each NIC its full rate, so that candidates differ by their networks only. How a
    candidate slows each group of ranks is reckoned by ``crossing``; without GPUDirect RDMA hosts
    slow all that leave them too (``network_view.copying_hosts``).
    """
    kind = requirement.workload.kind
    n_gpus = int(fabric.hosts.n_gpus[(fabric.hosts.role == 0) & (fabric.hosts.stage <= 0)].sum())
    try:
        view = view_of(fabric, host.gpu, has_gpudirect=requirement.workload.gpudirect is not False)
    except InputError as error:
        return WorkloadForecast(kind, host.gpu, n_gpus, unknown=_words(error))
    collectives, reasons = _collectives(view.cluster, view.blocks)
    if any(block.name == "host" for block in view.blocks):
        reasons += (_("What impairments cost is modelled, not fitted."),)
    bare = WorkloadForecast(
        kind, host.gpu, n_gpus, collectives, extrapolates=reasons, sources=_sources()
    )
    make: Callable[..., tuple[TrainingForecast | ServingForecast, tuple[str, ...]]] = (
        training_forecast if kind == "training" else serving_forecast
    )
    try:
        found, assumed = make(requirement, view)
    except InputError as error:
        return replace(bare, unknown=_words(error))
    reasons = tuple(dict.fromkeys((*reasons, *found.extrapolates)))
    known = replace(bare, extrapolates=reasons, assumed=assumed)
    if isinstance(found, TrainingForecast):
        return replace(known, training=found)
    return replace(known, serving=found)


def _collectives(
    cluster: Cluster, blocks: tuple[Block, ...]
) -> tuple[tuple[CollectiveForecast, ...], tuple[str, ...]]:
    if cluster.n_ranks < 2:
        return (), ()
    rows: list[CollectiveForecast] = []
    reasons: list[str] = []
    for op, sizes in OPERATIONS:
        slowed, slowdown = slowed_cluster(cluster, blocks, op)
        found = estimate(slowed, op, np.array(sizes))
        reasons += found.extrapolates
        for at, size in enumerate(sizes):
            gain = size * found.factor / 1e3
            rows.append(
                CollectiveForecast(
                    op,
                    int(size),
                    found.choices[at].algorithm,
                    found.choices[at].protocol,
                    float(found.time_us[at]),
                    float(found.busbw_gbytes_per_s[at]),
                    gain / float(found.high_us[at]),
                    gain / float(found.low_us[at]),
                    slowdown,
                )
            )
    return tuple(rows), tuple(dict.fromkeys(reasons))


def slowed_cluster(
    cluster: Cluster, blocks: tuple[Block, ...], operation: str
) -> tuple[Cluster, float]:
    """Return the hosts at the rate that the network leaves a collective, and how much it slows."""
    slowdown = slowdown_of(Span(cluster.n_domains, 1, operation == "alltoall"), blocks)
    wire = cluster.wire_gbytes_per_s
    return replace(cluster, wire_gbytes_per_s=wire / slowdown if wire else wire), slowdown


def _words(error: InputError) -> tuple[str, ...]:
    return tuple(
        " ".join(part for part in (fault.what, fault.remedy) if part) for fault in error.faults
    )


def _sources() -> tuple[str, ...]:
    return (
        "catalog/constants/collective_fit.yaml, docs/models/collective.md",
        "catalog/constants/training_fit.yaml, docs/models/training.md",
        "docs/models/inference.md",
    )


def told_digits(value: Any) -> Any:
    """Return JSON-like values with numbers rounded to `DIGITS` significant digits.

    Examples
    --------
    >>> told_digits({"step_s": [1.23456789, 12345678], "model": "llama3-8b"})
    {'step_s': [1.23457, 12345678], 'model': 'llama3-8b'}
    """
    if isinstance(value, dict):
        return {key: told_digits(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [told_digits(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
