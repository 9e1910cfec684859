"""The inference part of a forecast: instances of a model on a candidate's network."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import Block, Span, hashed_slowdowns, slowdown_of, spans_of
from gpufabric.workload.forecast_training import precision_of
from gpufabric.workload.inference import ServingEstimate, ServingPlan, serve
from gpufabric.workload.jitter import Tail, decode_tail
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.transformer import Transformer, preset

__all__ = [
    "JITTER_US",
    "ServingForecast",
    "serving_forecast",
    "serving_numbers",
    "serving_ways",
    "slowed_instance",
]

REFERENCE_MODELS = ("deepseek-v3", "llama3-70b", "llama3-8b")
"""What is served where the spec names no model: the first that fits."""
MOST_SEQUENCES = 32  # of a GPU, where the spec does not say
MOST_EXPERT_WAYS = 64
HASHED_JOBS = 16
"""Placements of hashed flows that are tried."""
JITTER_US = 2.0
"""Mean lateness of one rank's message in one collective [us]; assumed."""
LOW, HIGH = 0.75, 1.33
"""Interval of serving times: the two published services are within 25 %; see the model's page."""


@dataclass(frozen=True)
class ServingForecast:
    """Serving a model on a network.

    Parameters
    ----------
    model
        Name of the model in the catalogue.
    plan
        tensor, expert, sequences, prompt_tokens, output_tokens (numbers), precision (text).
    instance_gpus, n_instances
        GPUs of one instance, and instances that the cluster holds.
    first_token_s, token_s
        Mean time to the first token, and time per output token, without jitter [s].
    low_factor, high_factor
        Factors on both times: the interval of what would be measured. It is no fitted quantile:
        the two published services are within it.
    tokens_per_s
        Output tokens a second of all instances, where all of them decode.
    tokens_per_s_per_gpu
        Output tokens a second and GPU that decodes.
    network_share
        Share of a request's time that waits for communication, 0 to 1.
    transfer_s
        Of the first token's time, keys and values over the network, as much as shows [s].
    p50_s, p99_s
        Time per output token with jitter, quantiles over steps [s].
    memory_gb, available_gb
        Memory that a decoding GPU needs, and has [10**9 byte].
    extrapolates
        In what the estimate goes beyond what was measured.
    full_rate_token_s, hashed_token_s
        Time per output token on a network that gives each NIC its full rate, and where switches
        hash flows onto paths (ECMP); `token_s` has packets spread evenly. None where not
        reckoned [s].
    """

    model: str
    plan: Mapping[str, int | str]
    instance_gpus: int
    n_instances: int
    first_token_s: float
    token_s: float
    low_factor: float
    high_factor: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    network_share: float
    transfer_s: float
    p50_s: float
    p99_s: float
    memory_gb: float
    available_gb: float
    extrapolates: tuple[str, ...]
    full_rate_token_s: float | None = None
    hashed_token_s: float | None = None

    @property
    def fits(self) -> bool:
        """Whether a decoding GPU has the memory."""
        return self.memory_gb <= self.available_gb


def serving_forecast(
    requirement: Requirement, view: NetworkView
) -> tuple[ServingForecast, tuple[str, ...]]:
    """Return the forecast of serving, and what was assumed for it, one sentence each.

    Raises
    ------
    InputError
        If the model is unknown, or does not divide among the GPUs or fit into their memory.
    """
    work = requirement.workload
    models = (work.model,) if work.model is not None else REFERENCE_MODELS
    for name in models:
        try:
            found, assumed = _served(requirement, view, preset(name))
        except InputError:
            if name == models[-1]:
                raise
            continue
        if work.model is None:
            assumed += (_("Model: {name}, for reference.").format(name=name),)
        return found, assumed
    raise AssertionError("the last model returns or raises")


def serving_ways(
    model: Transformer, cluster: Cluster, tensor: int | None, expert: int | None
) -> tuple[int, int]:
    """Return tensor and expert ways of an instance, those that are not given chosen.

    Notes
    -----
    Experts are spread over up to 64 GPUs, with attention whole on each; a model without experts
    is divided inside an NVLink domain, over up to 8 GPUs.
    """
    has_experts = model.dimensions.experts > 0
    if expert is None:
        expert = _power_of_two(min(MOST_EXPERT_WAYS, cluster.n_ranks)) if has_experts else 1
    if tensor is None:
        whole = has_experts and expert > 1
        tensor = 1 if whole else min(8, _power_of_two(cluster.gpus_per_domain))
    return tensor, expert


def slowed_instance(
    cluster: Cluster, n_gpus: int, plan: ServingPlan, blocks: tuple[Block, ...]
) -> Cluster:
    """Return the first GPUs of a cluster as one instance, slowed as the network's blocks do it.

    Raises
    ------
    InputError
        If the GPUs are not whole hosts, nor part of one.
    """
    each = cluster.gpus_per_domain
    if n_gpus > each and n_gpus % each:
        what = _("{n} GPUs are not whole hosts of {each}.").format(n=n_gpus, each=each)
        raise InputError(Fault("--gpus", what, _("a multiple of {each}").format(each=each)))
    inside = min(each, n_gpus)
    wire = cluster.wire_gbytes_per_s
    spans = _spans(cluster, n_gpus, plan)
    return replace(
        cluster,
        gpus_per_domain=inside,
        n_domains=max(1, n_gpus // each),
        wire_gbytes_per_s=wire * inside / each if wire else wire,
        n_nics=max(1, cluster.n_nics * inside // each),
        slowed=tuple((name, slowdown_of(span, blocks)) for name, span in spans.items()),
    )


def _spans(cluster: Cluster, n_gpus: int, plan: ServingPlan) -> dict[str, Span]:
    """How the groups of an instance lie over hosts."""
    groups = [("tensor", plan.tensor, 1), ("expert", plan.expert, 1)]
    spans = spans_of(cluster, groups)
    if plan.is_disaggregated:  # to as many hosts, the next ones: all of it leaves its block
        spans["transfer"] = Span(cluster.n_domains, max(1, n_gpus // cluster.gpus_per_domain))
    return spans


@dataclass(frozen=True)
class _Instance:
    """What one instance serves, and how its groups lie over hosts."""

    model: Transformer
    cluster: Cluster
    plan: ServingPlan
    spans: Mapping[str, Span]

    def token_s(self, slowed: Iterable[tuple[str, float]]) -> float:
        """Time per output token with groups slowed otherwise [s]."""
        cluster = replace(self.cluster, slowed=tuple(slowed))
        return serve(self.model, cluster, self.plan).decode.step_s


def _hashed_s(instance: _Instance, blocks: tuple[Block, ...], seed: int) -> float:
    """Time per output token where switches hash flows, the mean over few placements [s]."""
    random = np.random.default_rng([seed, 2])
    drawn = {
        name: hashed_slowdowns(span, blocks, random.random(HASHED_JOBS))
        for name, span in instance.spans.items()
    }
    times = [
        instance.token_s((name, float(values[job])) for name, values in drawn.items())
        for job in range(HASHED_JOBS if drawn else 1)
    ]
    return float(np.mean(times))


def serving_numbers(model: str, found: ServingEstimate, tail: Tail, n_gpus: int) -> ServingForecast:
    """Return an estimate of serving and its tail as plain numbers, for a cluster of so many."""
    plan = found.plan
    n_instances = n_gpus // found.gpus
    extrapolates = (_("No constant was fitted on serving; the intervals are assumed."),)
    return ServingForecast(
        model,
        {
            "tensor": plan.tensor,
            "expert": plan.expert,
            "sequences": plan.sequences,
            "prompt_tokens": plan.prompt_tokens,
            "output_tokens": plan.output_tokens,
            "precision": plan.precision,
        },
        found.gpus,
        n_instances,
        found.first_token_s,
        found.decode.step_s,
        LOW,
        HIGH,
        found.decode_tokens_per_s_per_gpu * found.gpus * n_instances,
        found.decode_tokens_per_s_per_gpu,
        found.network_share,
        found.prefill.transfer_s,
        tail.p50_s,
        tail.p99_s,
        found.memory_gb,
        found.available_gb,
        extrapolates,
    )


def _served(
    requirement: Requirement, view: NetworkView, model: Transformer
) -> tuple[ServingForecast, tuple[str, ...]]:
    work, assumed, cluster = requirement.workload, list[str](), view.cluster
    ways = work.parallelism
    n = cluster.n_ranks
    tensor, expert = serving_ways(model, cluster, ways.tp, ways.ep)
    gpus = math.lcm(tensor, expert)
    if ways.ep is None and ways.tp is None:
        what = _("An instance: {gpus} GPUs, {tensor} tensor and {expert} expert ways.")
        assumed.append(what.format(gpus=gpus, tensor=tensor, expert=expert))
    plan = ServingPlan(
        tensor=tensor,
        expert=expert,
        sequences=work.sequences or MOST_SEQUENCES * gpus,
        prompt_tokens=work.prompt_tokens or 2048,
        output_tokens=work.output_tokens or 256,
        precision=precision_of(requirement, cluster.gpu, ("fp8", "bf16")),
        is_disaggregated=n >= 2 * gpus and cluster.n_domains > 1,
    )
    if gpus > n:
        what = _("An instance takes {gpus} GPUs, and there are {n}.").format(gpus=gpus, n=n)
        raise InputError(Fault("workload.parallelism", what))
    instance = slowed_instance(cluster, gpus, plan, view.blocks)
    found = serve(model, instance, plan)
    while work.sequences is None and not found.fits and plan.sequences >= 2 * gpus:
        plan = replace(plan, sequences=plan.sequences // 2)
        found = serve(model, instance, plan)
    if not found.fits:
        what = _("{model} needs {need:.0f} GB a GPU, and {have:.0f} GB are there.")
        what = what.format(model=model.name, need=found.memory_gb, have=found.available_gb)
        raise InputError(Fault("workload.model", what))
    if work.sequences is None:
        what = _("An instance decodes {n} sequences at once.").format(n=f"{plan.sequences:,}")
        assumed.append(what)
    if work.prompt_tokens is None or work.output_tokens is None:
        what = _("A request: {prompt} tokens of prompt, {output} of answer.")
        assumed.append(
            what.format(prompt=f"{plan.prompt_tokens:,}", output=f"{plan.output_tokens:,}")
        )
    if work.precision is None:
        assumed.append(_("Precision: {name}.").format(name=plan.precision))
    assumed.append(_("Tokens a second are those of all GPUs decoding."))
    assumed.append(_("A message is late by {us:g} µs in the mean.").format(us=JITTER_US))
    tail = decode_tail(found, JITTER_US, seed=requirement.seed)
    told = serving_numbers(model.name, found, tail, n)
    one = _Instance(model, instance, plan, _spans(cluster, gpus, plan))
    others = replace(
        told,
        full_rate_token_s=min(told.token_s, one.token_s(())),
        hashed_token_s=max(told.token_s, _hashed_s(one, view.blocks, requirement.seed)),
    )
    return others, tuple(assumed)


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)
