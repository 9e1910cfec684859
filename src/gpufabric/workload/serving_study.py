"""All that one asks of serving a model on a network: tokens, tail, batches, a rate of requests."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.forecast_serving import (
    ServingForecast,
    serving_numbers,
    serving_ways,
    slowed_instance,
)
from gpufabric.workload.inference import ServingEstimate, ServingPlan, serve
from gpufabric.workload.jitter import Tail, decode_tail
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.training import SOFTWARE
from gpufabric.workload.transformer import Transformer

__all__ = [
    "BatchPoint",
    "JitterPoint",
    "RateAnswer",
    "ServingQuestion",
    "ServingStudy",
    "chosen_plan",
    "study_serving",
]

JITTERS_US = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
MOST_BATCH = 2**20
ROUNDS = 60
NEAR = 0.5  # sequences


@dataclass(frozen=True)
class BatchPoint:
    """Decoding so many sequences at once.

    Parameters
    ----------
    sequences
        Of an instance.
    token_s
        Time per output token [s].
    tokens_per_s_per_gpu
        Output tokens a second and GPU.
    network_share
        Share of a step that waits for communication.
    fits
        Whether keys and values fit.
    """

    sequences: int
    token_s: float
    tokens_per_s_per_gpu: float
    network_share: float
    fits: bool


@dataclass(frozen=True)
class JitterPoint:
    """Time per output token where messages are late by so much in the mean.

    Parameters
    ----------
    jitter_us
        Mean lateness of one rank's message [us].
    p50_s, p99_s, p999_s
        Quantiles over steps [s].
    """

    jitter_us: float
    p50_s: float
    p99_s: float
    p999_s: float


@dataclass(frozen=True)
class RateAnswer:
    """What a rate of requests asks of the cluster.

    Parameters
    ----------
    requests_per_s
        Of the whole cluster.
    prefill_instances, decode_instances
        How the instances are used; the same ones, where prefill and decode share GPUs.
    utilisation
        Share of the time that prefill is busy; at 1 and above requests wait for ever.
    sequences
        Sequences that an instance decodes at once (Little's law).
    """

    requests_per_s: float
    prefill_instances: int
    decode_instances: int
    utilisation: float
    sequences: int


@dataclass(frozen=True)
class ServingStudy:
    """Serving a model on a network.

    Parameters
    ----------
    model
        The model.
    estimate
        One instance on the network, without jitter.
    numbers
        The same as plain numbers.
    full_rate
        The instance on a network that gives each NIC its full rate.
    tail
        Time per output token with jitter.
    by_batch, by_jitter
        The same for other batches and other jitter.
    rate
        What a rate of requests asks, where one is given.
    """

    model: Transformer
    estimate: ServingEstimate
    numbers: ServingForecast
    full_rate: ServingEstimate
    tail: Tail
    by_batch: tuple[BatchPoint, ...]
    by_jitter: tuple[JitterPoint, ...]
    rate: RateAnswer | None

    @property
    def is_overloaded(self) -> bool:
        """Whether prefill cannot follow the rate of requests."""
        return self.rate is not None and self.rate.utilisation >= 1


@dataclass(frozen=True)
class ServingQuestion:
    """What is asked of serving.

    Parameters
    ----------
    model, plan
        The model, and how it is served.
    rate_per_s
        Requests a second of the cluster; None: `plan` says sequences and utilisation.
    jitter_us, latency_us
        Mean lateness of a message, and more latency of every collective [us].
    seed
        Of the random numbers.
    """

    model: Transformer
    plan: ServingPlan
    rate_per_s: float | None = None
    jitter_us: float = 2.0
    latency_us: float = 0.0
    seed: int = 1


def study_serving(view: NetworkView, asked: ServingQuestion) -> ServingStudy:
    """Return all that one asks of serving a model on a network.

    Raises
    ------
    InputError
        If the plan does not fit the model or the cluster.
    """
    model, plan = asked.model, asked.plan
    gpus = max(plan.tensor, plan.expert)
    if gpus > view.cluster.n_ranks or gpus % plan.tensor or gpus % plan.expert:
        what = _("{tensor} tensor and {expert} expert ways have no place on {n} GPUs.")
        what = what.format(tensor=plan.tensor, expert=plan.expert, n=view.cluster.n_ranks)
        raise InputError(Fault("tensor", what))
    cluster = slowed_instance(view.cluster, gpus, plan, view.blocks)
    rate = None
    if asked.rate_per_s is not None:
        rate = _answer(asked, cluster, view.cluster.n_ranks // gpus)
        busy = min(rate.utilisation, 0.999)
        plan = replace(plan, sequences=rate.sequences, utilisation=busy)
    found = serve(model, cluster, plan, SOFTWARE)
    tail = decode_tail(found, asked.jitter_us, asked.latency_us, seed=asked.seed)
    jitters = {*JITTERS_US, asked.jitter_us}
    return ServingStudy(
        model,
        found,
        serving_numbers(model.name, found, tail, view.cluster.n_ranks),
        serve(model, replace(cluster, slowed=()), plan, SOFTWARE),
        tail,
        tuple(_batches(model, cluster, plan)),
        tuple(_jitter_point(found, each, asked) for each in sorted(jitters)),
        rate,
    )


def chosen_plan(
    model: Transformer, cluster: Cluster, plan: ServingPlan, ways: tuple[int | None, int | None]
) -> ServingPlan:
    """Return a plan with the ways that are not given chosen."""
    tensor, expert = serving_ways(model, cluster, *ways)
    return replace(plan, tensor=tensor, expert=expert)


def _jitter_point(found: ServingEstimate, jitter_us: float, asked: ServingQuestion) -> JitterPoint:
    tail = decode_tail(found, jitter_us, asked.latency_us, seed=asked.seed)
    return JitterPoint(jitter_us, tail.p50_s, tail.p99_s, tail.p999_s)


def _batches(model: Transformer, cluster: Cluster, plan: ServingPlan) -> list[BatchPoint]:
    """Batches of a sequence for eight GPUs, two, four … and as asked, until memory is full."""
    points = []
    sizes = {cluster.n_ranks * 2**step // 8 for step in range(13)} - {0}
    for size in sorted(sizes | {plan.sequences}):
        found = serve(model, cluster, replace(plan, sequences=size), SOFTWARE)
        decode = found.decode
        points.append(
            BatchPoint(
                size,
                decode.step_s,
                found.decode_tokens_per_s_per_gpu,
                decode.network_s / decode.step_s,
                found.fits,
            )
        )
        if not found.fits and size >= plan.sequences:
            break
    return points


def _answer(asked: ServingQuestion, cluster: Cluster, n_instances: int) -> RateAnswer:
    """What a rate asks.

    Notes
    -----
    Disaggregated, prefill gets as many instances as keep it no busier than the plan's
    `utilisation`, and decode the rest. Little's law: sequences at once = rate x time that each
    decodes.
    """
    rate, plan = asked.rate_per_s, asked.plan
    assert rate is not None
    bare = serve(asked.model, cluster, replace(plan, sequences=1, utilisation=0.0), SOFTWARE)
    servers = cluster.n_ranks // plan.tensor
    busy_s = bare.prefill.busy_s
    if not plan.is_disaggregated:
        prefill = decode = n_instances
    else:
        wanted = rate * busy_s / servers / plan.utilisation
        prefill = min(max(1, math.ceil(wanted)), max(1, n_instances - 1))
        decode = max(1, n_instances - prefill)
    utilisation = rate * busy_s / servers / prefill
    return RateAnswer(rate, prefill, decode, utilisation, _in_flight(asked, cluster, rate / decode))


def _in_flight(asked: ServingQuestion, cluster: Cluster, rate: float) -> int:
    """Sequences that an instance decodes at once: where arrivals and departures are equal."""
    sequences = 1.0
    for _round in range(ROUNDS):
        plan = replace(asked.plan, sequences=max(1, round(sequences)))
        step_s = serve(asked.model, cluster, plan, SOFTWARE).decode.step_s
        again = min(float(MOST_BATCH), rate * asked.plan.output_tokens * step_s)
        if abs(again - sequences) < NEAR:
            break
        sequences = again
    return max(1, round(sequences))
