"""The fastest ways to divide a training step among the GPUs of a cluster, by trying all sensible.

Sensible: tensor parallelism inside an NVLink domain and within the heads; pipeline stages that
share the layers with at most a tenth lost; full sharding without a pipeline; the least
recomputation that fits into memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpufabric.catalog.workload_constants import training_fit
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.memory import training_memory
from gpufabric.workload.parallelism import RECOMPUTE, TrainingJob, TrainingPlan
from gpufabric.workload.training import SOFTWARE, TrainingEstimate, train
from gpufabric.workload.transformer import Transformer

__all__ = ["SearchResult", "search"]

MICRO_BATCHES = (1, 2, 4, 8)
LONG_SEQUENCE_TOKENS = 16384  # from here on, context parallelism is tried
MOST_UNEVEN = 1.1  # slowest stage over the mean


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Parameters
    ----------
    best
        Fastest plans, the fastest first.
    n_tried
        Plans whose step was computed.
    n_too_large
        Plans that no GPU has the memory for.
    """

    best: tuple[TrainingEstimate, ...]
    n_tried: int
    n_too_large: int


def search(
    model: Transformer,
    cluster: Cluster,
    plan: TrainingPlan,
    software: str = SOFTWARE,
    n_best: int = 5,
    kept: Mapping[str, int | str] | None = None,
) -> SearchResult:
    """Return the fastest plans for a model on a cluster.

    Parameters
    ----------
    model, cluster
        What trains where.
    plan
        Batch, sequence, precision and schedule; its ways are what is searched.
    software
        Program, as the catalogue names it.
    n_best
        How many plans to return, at least 1.
    kept
        What is not searched but stays as given: any of ``tensor``, ``pipeline``, ``context``,
        ``expert``, ``data``, ``zero``, ``micro_batch``, ``chunks``, ``schedule``, ``recompute``.

    Raises
    ------
    InputError
        If no plan divides the GPUs and the batch, or none fits into memory.
    """
    fit = training_fit()
    found: list[TrainingEstimate] = []
    n_too_large = n_tried = 0
    for candidate in _candidates(model, cluster, plan, kept or {}):
        job = _with_least_recomputation(model, cluster, candidate, kept or {})
        if job is None:
            n_too_large += 1
            continue
        n_tried += 1
        found.append(train(job, software, fit))
    if not found:
        if n_too_large:
            what = _("the model needs more memory than {n} GPUs have, whatever the plan.")
            fault = Fault("model", what.format(n=cluster.n_ranks))
        else:
            fault = _no_candidate(model, cluster, plan, kept or {})
        raise InputError([fault])
    found.sort(key=lambda one: one.step_s)
    return SearchResult(tuple(found[: max(1, n_best)]), n_tried, n_too_large)


def _no_candidate(
    model: Transformer, cluster: Cluster, plan: TrainingPlan, kept: Mapping[str, int | str]
) -> Fault:
    """Why nothing could be tried: a way that is kept does not divide, else the batch."""
    n, experts = cluster.n_ranks, model.dimensions.experts
    for name in ("tensor", "pipeline", "context", "data"):
        if n % max(1, int(kept.get(name, 1))):
            what = _("{n} GPUs do not divide into {ways} ways.")
            return Fault(name, what.format(n=n, ways=kept[name]))
    ways = int(kept.get("expert", 1))
    if ways > 1 and (not experts or experts % ways):
        what = _("{n} experts do not divide into {ways} expert ways.")
        return Fault("expert", what.format(n=experts, ways=ways))
    what = _("{batch} sequences cannot be divided among {n} GPUs.")
    return Fault("global_batch", what.format(batch=plan.global_batch, n=n))


def _divisors(number: int, most: int) -> list[int]:
    return [each for each in range(1, min(number, most) + 1) if number % each == 0]


def _ways(
    model: Transformer, cluster: Cluster, plan: TrainingPlan, kept: Mapping[str, int | str]
) -> Iterator[tuple[int, int, int]]:
    """Tensor, context and pipeline ways that divide the GPUs, heads, layers and batch."""
    n = cluster.n_ranks
    heads = _divisors(model.dimensions.heads, cluster.gpus_per_domain)
    tensors = [each for each in heads if n % each == 0]
    contexts = [1, 2, 4, 8] if plan.sequence_tokens >= LONG_SEQUENCE_TOKENS else [1]
    stages = [each for each in _divisors(n, model.n_layers) if _is_even(model, each, 1)]
    choices = {"tensor": tensors, "context": contexts, "pipeline": stages}
    lists = [[int(kept[name])] if name in kept else found for name, found in choices.items()]
    for tensor, context, pipeline in itertools.product(*lists):
        ways = tensor * context * pipeline
        data = n // ways
        if n % ways or plan.global_batch % data or kept.get("data", data) != data:
            continue
        yield tensor, context, pipeline


def _candidates(
    model: Transformer, cluster: Cluster, plan: TrainingPlan, kept: Mapping[str, int | str]
) -> Iterator[TrainingPlan]:
    """Plans that divide the GPUs, layers, experts and batch; memory not looked at."""
    n = cluster.n_ranks
    micros = [int(kept["micro_batch"])] if "micro_batch" in kept else MICRO_BATCHES
    for tensor, context, pipeline in _ways(model, cluster, plan, kept):
        each = plan.global_batch * tensor * context * pipeline // n
        chunked = _chunks(model, pipeline, kept)
        if not chunked:
            continue
        experts = [
            way
            for way in _divisors(model.dimensions.experts, n // pipeline)
            if not (n // pipeline) % way and kept.get("expert", way) == way
        ]
        if not experts and kept.get("expert", 1) != 1:
            continue
        for expert, micro in itertools.product(experts or [1], micros):
            if each % micro:
                continue
            sharding = [(int(kept.get("zero", 1)), chunk) for chunk in chunked]
            for zero, chunks in sharding if "zero" in kept else [*sharding, (3, chunked[0])]:
                if zero == 3 and pipeline > 1 and "zero" not in kept:
                    continue
                yield replace(
                    plan,
                    tensor=tensor,
                    pipeline=pipeline,
                    context=context,
                    expert=expert,
                    expert_tensor=0,
                    chunks=chunks,
                    zero=zero,
                    micro_batch=micro,
                    schedule=str(kept.get("schedule", "interleaved" if chunks > 1 else "1f1b")),
                )


def _is_even(model: Transformer, pipeline: int, chunks: int) -> bool:
    """Whether stages share the layers, with the matrices of tokens as one each or without."""
    parts = pipeline * chunks
    if (model.n_layers + 2) % parts == 0:
        return True
    return -(-model.n_layers // parts) * parts <= MOST_UNEVEN * model.n_layers


def _chunks(model: Transformer, pipeline: int, kept: Mapping[str, int | str]) -> list[int]:
    """One chunk a stage, and the most that share the layers evenly; none against what is kept."""
    schedule = kept.get("schedule", "")
    is_idle = pipeline == 1 and (int(kept.get("chunks", 1)) > 1 or schedule not in {"", "1f1b"})
    if is_idle:
        return []
    if "chunks" in kept:
        return [int(kept["chunks"])]
    if pipeline == 1 or schedule in {"1f1b", "zero-bubble"}:
        return [1]
    most = [
        chunks
        for chunks in range(2, model.n_layers // pipeline + 1)
        if model.n_layers % (pipeline * chunks) == 0
        or (model.n_layers + 2) % (pipeline * chunks) == 0
    ]
    return most[-1:] if schedule == "interleaved" else [1, *most[-1:]]


def _with_least_recomputation(
    model: Transformer, cluster: Cluster, plan: TrainingPlan, kept: Mapping[str, int | str]
) -> TrainingJob | None:
    tried = [name for name in RECOMPUTE if name != "selective"]
    for recompute in [str(kept["recompute"])] if "recompute" in kept else tried:
        job = TrainingJob(model, cluster, replace(plan, recompute=recompute))
        if training_memory(job).fits:
            return job
    return None
