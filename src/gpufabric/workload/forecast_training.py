"""The training part of a forecast: one step on a candidate's network, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.workload_constants import gpu_compute
from gpufabric.core.errors import InputError
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import Block, Span, hashed_slowdowns, slowdown_of, spans_of
from gpufabric.workload.jitter import Jitter, StepDistribution, distribution
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.parallelism import GROUP_NAMES, TrainingJob, TrainingPlan
from gpufabric.workload.placement_search import search
from gpufabric.workload.training import TrainingEstimate, train
from gpufabric.workload.transformer import preset

__all__ = [
    "JitterForecast",
    "TrainingForecast",
    "batch_of",
    "collided_s",
    "jittered",
    "on_network",
    "precision_of",
    "training_forecast",
    "training_numbers",
]

Floats = NDArray[np.float64]

REFERENCE_MODELS = ("llama3-70b", "llama3-8b")
"""What trains where the spec names no model: the first that fits."""
SEQUENCE_TOKENS = 8192
GLOBAL_BATCH = 2048
"""Sequences of a step: 16.8 million tokens, as Llama 3 405B ends with (arXiv:2407.21783)."""
JOBS = 50
STEPS = 400
PRECISIONS = {"bf16": "bf16", "fp8": "fp8", "fp4": "nvfp4"}


@dataclass(frozen=True)
class JitterForecast:
    """Time of a step as a distribution: ranks that are late, links that flap, flows that collide.

    Parameters
    ----------
    mean_s, p50_s, p99_s
        Mean (flaps counted by their expectation) and quantiles over jobs and steps [s].
    by_cause_s
        Expected seconds a step by cause: ``ranks``, ``flaps``, ``collisions`` [s].
    """

    mean_s: float
    p50_s: float
    p99_s: float
    by_cause_s: Mapping[str, float]


@dataclass(frozen=True)
class TrainingForecast:
    """One training step on a network.

    Parameters
    ----------
    model
        Name of the model in the catalogue.
    plan
        Parallel ways and batch: tensor, pipeline, context, expert, data, chunks, zero,
        micro_batch, global_batch, sequence_tokens (numbers); precision, recompute, schedule.
    step_s, low_s, high_s
        Time of a step without jitter, and the 80 % interval of what would be measured [s].
    tokens_per_s
        Tokens a second of all GPUs, without jitter.
    mfu
        Model FLOPs over the data sheet's rate at the plan's precision, 0 to 1.
    compute_s, bubble_s, optimizer_s
        Parts of the step [s].
    exposed_s
        Seconds of a step in which communication shows, by group: tensor, expert, context,
        pipeline, data [s].
    full_rate_step_s
        Time of the step on a network that gives each NIC its full rate [s].
    hashed_step_s
        Time of the step where switches hash flows onto paths (ECMP), the mean over jobs, without
        other jitter [s]; `step_s` has packets or flows spread evenly. Both for any protocol.
    memory_gb, available_gb
        Memory that the fullest GPU needs, and has [10**9 byte].
    jitter
        The step as a distribution.
    lost_gpu_hours_per_day
        GPU-hours a day of all GPUs by cause: ``communication`` (exposed), ``jitter``.
    extrapolates
        In what the estimate goes beyond the measured runs.
    """

    model: str
    plan: Mapping[str, int | str]
    step_s: float
    low_s: float
    high_s: float
    tokens_per_s: float
    mfu: float
    compute_s: float
    bubble_s: float
    optimizer_s: float
    exposed_s: Mapping[str, float]
    full_rate_step_s: float
    hashed_step_s: float
    memory_gb: float
    available_gb: float
    jitter: JitterForecast
    lost_gpu_hours_per_day: Mapping[str, float]
    extrapolates: tuple[str, ...]

    @property
    def exposed_share(self) -> float:
        """Share of a step in which communication shows, 0 to 1."""
        return sum(self.exposed_s.values()) / self.step_s

    @property
    def fits(self) -> bool:
        """Whether the fullest GPU has the memory."""
        return self.memory_gb <= self.available_gb


def training_forecast(
    requirement: Requirement, view: NetworkView
) -> tuple[TrainingForecast, tuple[str, ...]]:
    """Return the forecast of a step, and what was assumed for it, one sentence each.

    Raises
    ------
    InputError
        If the model is unknown, or no plan divides the GPUs or fits into memory.
    """
    job, assumed = _chosen(requirement, view.cluster)
    full = train(job)
    found = train(on_network(job, view.blocks))
    late_s = collided_s(found, view.blocks, requirement.seed)
    jitter = jittered(found, view, late_s, requirement.seed)
    return training_numbers(found, jitter, full.step_s, late_s), assumed


def training_numbers(
    found: TrainingEstimate, jitter: StepDistribution, full_rate_step_s: float, late_s: Floats
) -> TrainingForecast:
    """Return a step's estimate, its distribution and what collisions add as plain numbers."""
    job, parts, memory = found.job, found.parts, found.memory
    plan = job.plan
    gpu_hours = 24.0 * job.cluster.n_ranks
    exposed_s = found.exposed_s
    spread = JitterForecast(
        jitter.mean_s, jitter.quantile_s(0.5), jitter.quantile_s(0.99), dict(jitter.by_cause_s)
    )
    return TrainingForecast(
        job.model.name,
        {
            "tensor": plan.tensor,
            "pipeline": plan.pipeline,
            "context": plan.context,
            "expert": plan.expert,
            "data": job.data_ways,
            "chunks": plan.chunks,
            "zero": plan.zero,
            "micro_batch": plan.micro_batch,
            "global_batch": plan.global_batch,
            "sequence_tokens": plan.sequence_tokens,
            "precision": plan.precision,
            "recompute": plan.recompute,
            "schedule": plan.schedule,
        },
        found.step_s,
        found.low_s,
        found.high_s,
        job.tokens / found.step_s,
        found.mfu,
        float(parts.compute_s),
        float(parts.bubble_s),
        float(parts.optimizer_s),
        exposed_s,
        full_rate_step_s,
        found.step_s + float(late_s.mean()),
        memory.total_gb,
        memory.available_gb,
        spread,
        {
            "communication": gpu_hours * sum(exposed_s.values()) / jitter.mean_s,
            "jitter": gpu_hours * (jitter.mean_s - jitter.base_s) / jitter.mean_s,
        },
        found.extrapolates,
    )


def on_network(job: TrainingJob, blocks: tuple[Block, ...]) -> TrainingJob:
    """Return the job with each group of ranks slowed as the network's blocks do it."""
    slowed = tuple((name, slowdown_of(span, blocks)) for name, span in _spans(job).items())
    return TrainingJob(job.model, replace(job.cluster, slowed=slowed), job.plan)


def collided_s(found: TrainingEstimate, blocks: tuple[Block, ...], seed: int) -> Floats:
    """Seconds that hashing adds to each step of a job, for `JOBS` jobs: float64[JOBS].

    Parameters
    ----------
    found
        The step on the network without.
    blocks
        Of the network.
    seed
        Of the random numbers.
    """
    job, random = found.job, np.random.default_rng([seed, 1])
    drawn = {
        name: hashed_slowdowns(span, blocks, random.random(JOBS))
        for name, span in _spans(job).items()
    }
    late_s = np.zeros(JOBS)
    for at in range(JOBS if drawn else 0):
        slowed = tuple((name, float(values[at])) for name, values in drawn.items())
        again = TrainingJob(job.model, replace(job.cluster, slowed=slowed), job.plan)
        late_s[at] = max(0.0, train(again, found.software).step_s - found.step_s)
    return late_s


def jittered(
    found: TrainingEstimate, view: NetworkView, late_s: Floats, seed: int
) -> StepDistribution:
    """Return the step as a distribution over jobs and steps.

    Parameters
    ----------
    found
        The step without jitter.
    view
        Whose links from NICs to leafs flap. On Ethernet its switches hash; InfiniBand routes
        adaptively, and flows do not collide.
    late_s
        What collisions add: see `collided_s`.
    seed
        Of the random numbers.
    """
    is_hashed = view.fabric.protocol == "roce"
    return distribution(
        found,
        Jitter(links=view.n_host_links),
        STEPS,
        JOBS,
        seed,
        late_s if is_hashed else 0 * late_s,
    )


def _spans(job: TrainingJob) -> dict[str, Span]:
    groups = [(name, *job.size_and_stride(name)) for name in GROUP_NAMES]
    return spans_of(job.cluster, groups)


def precision_of(requirement: Requirement, gpu: str, otherwise: tuple[str, ...]) -> str:
    """Return the precision of the spec, or the first of `otherwise` that the GPU has."""
    given = requirement.workload.precision
    if given is not None:
        return PRECISIONS[given]
    has = gpu_compute(gpu).tflops
    return next((name for name in otherwise if name in has), "fp16")


def _chosen(requirement: Requirement, cluster: Cluster) -> tuple[TrainingJob, tuple[str, ...]]:
    """The job that a spec asks for, and what it leaves open."""
    work = requirement.workload
    assumed = []
    tokens = work.sequence_tokens or SEQUENCE_TOKENS
    ways = work.parallelism
    names = {"tensor": "tp", "pipeline": "pp", "data": "dp", "expert": "ep", "context": "cp"}
    kept = {name: getattr(ways, short) for name, short in names.items() if getattr(ways, short)}
    batch = work.global_batch or batch_of(cluster, kept.get("data"))
    if work.global_batch is None or work.sequence_tokens is None:
        what = _("Batch: {n} sequences of {tokens} tokens a step.")
        assumed.append(what.format(n=f"{batch:,}", tokens=f"{tokens:,}"))
    plan = TrainingPlan(
        global_batch=batch,
        sequence_tokens=tokens,
        precision=precision_of(requirement, cluster.gpu, ("bf16",)),
    )
    if work.precision is None:
        assumed.append(_("Precision: {name}.").format(name=plan.precision))
    if len(kept) < len(names):
        assumed.append(_("Parallelism: the fastest that was found, the same for all candidates."))
    models = (work.model,) if work.model is not None else REFERENCE_MODELS
    for name in models:
        try:
            best = search(preset(name), cluster, plan, n_best=1, kept=kept).best[0]
        except InputError:
            if name == models[-1]:
                raise
            continue
        if work.model is None:
            assumed.append(_("Model: {name}, for reference.").format(name=name))
        return best.job, tuple(assumed)
    raise AssertionError("the last model returns or raises")


def batch_of(cluster: Cluster, data_ways: int | None) -> int:
    """About `GLOBAL_BATCH` sequences, as many for each data-parallel way or eight GPUs."""
    n = cluster.n_ranks
    unit = data_ways or (n // 8 if n % 8 == 0 else n)
    return unit * max(1, round(GLOBAL_BATCH / unit))
