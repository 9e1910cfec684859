"""Serving a language model: time to first token, time per token, and what the network adds.

*Prefill* reads the prompt: a forward pass of training. *Decode* makes one token a step for every
sequence: each step reads all weights in use and all keys and values from memory, and waits for
small collectives. Prefill and decode may run on different GPUs; then keys and values cross the
network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufabric.catalog.constants import collective_fit
from gpufabric.catalog.workload_constants import gpu_compute, gpu_key, training_fit
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.expert_exchange import exchange_s
from gpufabric.workload.parallelism import MOST, TrainingJob, TrainingPlan, placed
from gpufabric.workload.step_work import collective_s
from gpufabric.workload.training import SOFTWARE, forward
from gpufabric.workload.transformer import Transformer

__all__ = ["Decode", "Prefill", "ServingEstimate", "ServingPlan", "serve"]

WEIGHT_BYTES = {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "mxfp8": 1.03, "nvfp4": 0.56}
"""A parameter, block scales included: 32 numbers of mxfp8 share a byte, 16 of nvfp4."""
MEMORY_SHARE = 0.8  # of the data sheet's memory rate that decoding attains; assumed
ACTIVATION_BYTES = 2.0
DISPATCH_BYTES = 1.03  # a number on its way to experts: fp8, and fp32 scales of 128
RESERVED_SHARE = 0.1  # of memory, for activations, graphs and buffers; assumed
KERNELS_PER_LAYER = 12.0
KERNEL_US = 1.5  # a kernel in a captured graph; assumed


@dataclass(frozen=True)
class ServingPlan:
    """How a model is served.

    Parameters
    ----------
    tensor, expert
        Parallel ways of attention and dense blocks, and of experts, in one instance.
    sequences
        Sequences that an instance decodes at once.
    prompt_tokens, output_tokens
        Of one request.
    precision
        Of weights and matrix products.
    cache_bytes
        Of one number of keys and values.
    is_disaggregated
        Whether prefill runs on other GPUs, so that keys and values cross the network.
    utilisation
        Share of the time that prefill is busy; requests wait more the nearer it is to 1.
    """

    tensor: int = 1
    expert: int = 1
    sequences: int = 32
    prompt_tokens: int = 2048
    output_tokens: int = 256
    precision: str = "fp8"
    cache_bytes: float = 2.0
    is_disaggregated: bool = False
    utilisation: float = 0.5


@dataclass(frozen=True)
class Prefill:
    """Time of one prompt.

    Parameters
    ----------
    compute_s, network_s
        Computing, and waiting for collectives.
    wait_s
        Mean wait of a request for its turn.
    transfer_s
        Keys and values to the decoding GPUs, as much of it as shows.
    cache_bytes
        Keys and values of the prompt.
    """

    compute_s: float
    network_s: float
    wait_s: float
    transfer_s: float
    cache_bytes: float

    @property
    def busy_s(self) -> float:
        """Time that the GPUs are taken."""
        return self.compute_s + self.network_s


@dataclass(frozen=True)
class Decode:
    """Time of one step, which makes one token for every sequence.

    Parameters
    ----------
    weights_s, cache_s
        Reading weights, and keys and values.
    compute_s
        Matrix products, as much as does not hide behind reading.
    kernels_s
        Starting kernels.
    network_s
        Collectives, one after the other.
    collectives
        Number of collectives in a step.
    ranks
        That each waits for.
    """

    weights_s: float
    cache_s: float
    compute_s: float
    kernels_s: float
    network_s: float
    collectives: int
    ranks: int

    @property
    def step_s(self) -> float:
        """Time per output token."""
        return self.weights_s + self.cache_s + self.compute_s + self.kernels_s + self.network_s


@dataclass(frozen=True)
class ServingEstimate:
    """What serving a model gives.

    Parameters
    ----------
    plan
        How it is served.
    gpus
        GPUs of an instance.
    prefill, decode
        Times.
    memory_gb, available_gb
        Of a decoding GPU: weights, keys and values; and what it has.
    """

    plan: ServingPlan
    gpus: int
    prefill: Prefill
    decode: Decode
    memory_gb: float
    available_gb: float

    @property
    def fits(self) -> bool:
        """Whether weights, keys and values fit into memory."""
        return self.memory_gb <= self.available_gb

    @property
    def first_token_s(self) -> float:
        """Mean time to the first token."""
        first = self.prefill
        return first.wait_s + first.busy_s + first.transfer_s + self.decode.step_s

    @property
    def decode_tokens_per_s_per_gpu(self) -> float:
        """Tokens a second and decoding GPU."""
        return self.plan.sequences / self.decode.step_s / self.gpus

    @property
    def prefill_tokens_per_s_per_gpu(self) -> float:
        """Prompt tokens a second and GPU that only reads prompts."""
        return self.plan.prompt_tokens / self.prefill.busy_s / self.plan.tensor

    @property
    def request_s(self) -> float:
        """Mean time from request to last token."""
        return self.first_token_s + (self.plan.output_tokens - 1) * self.decode.step_s

    @property
    def network_share(self) -> float:
        """Share of a request's time that waits for communication."""
        waits = self.prefill.network_s + self.prefill.transfer_s
        waits += self.plan.output_tokens * self.decode.network_s
        return waits / self.request_s


def serve(
    model: Transformer, cluster: Cluster, plan: ServingPlan, software: str = SOFTWARE
) -> ServingEstimate:
    """Return what serving a model on an instance gives.

    Parameters
    ----------
    model, cluster
        What is served; all GPUs of the cluster are one instance.
    plan
        How.
    software
        Whose fitted shares hold for prefill.

    Raises
    ------
    InputError
        If the plan does not fit the cluster or model; all faults together.

    Notes
    -----
    Of E experts with k a token, B tokens use ``E (1 - (1 - k / E)**B)`` in the mean: of those the
    weights are read. Reading and computing overlap, the longer counts. Keys and values are sent
    layer by layer while prefill goes on: the longer counts, and the last layer shows. A request
    waits as in a queue with one server of constant time (M/D/1).
    """
    faults = _faults(model, cluster, plan)
    if faults:
        raise InputError(faults)
    model = _with_spare_experts(model, plan)
    decode = _decode(model, cluster, plan)
    context = plan.prompt_tokens + plan.output_tokens
    per_gpu = plan.sequences * plan.tensor / cluster.n_ranks
    cache = per_gpu * context * cache_bytes_per_token(model, plan, context) / _split(model, plan)
    dense, experts = _weights(model, plan)
    rates = gpu_compute(cluster.gpu)
    return ServingEstimate(
        plan,
        cluster.n_ranks,
        _prefill(model, cluster, plan, software),
        decode,
        (dense + experts + cache) / 1e9,
        rates.memory_gb * (1 - RESERVED_SHARE),
    )


def _with_spare_experts(model: Transformer, plan: ServingPlan) -> Transformer:
    """The model with as many more copies of experts as make their number divide among GPUs."""
    d = model.dimensions
    experts = -(-d.experts // plan.expert) * plan.expert
    return replace(model, dimensions=d.model_copy(update={"experts": experts}))


def cache_bytes_per_token(model: Transformer, plan: ServingPlan, context: int) -> float:
    """Bytes of keys and values of one token, all layers: mean over a context so long.

    Notes
    -----
    Grouped heads: two times ``kv_heads * head_size`` numbers a layer; compressed (MLA):
    ``kv_rank + rope_size``; with a window only its tokens are kept.
    """
    d = model.dimensions
    value = d.value_size or d.head_size
    width = d.kv_rank + d.rope_size if d.kv_rank else d.kv_heads * (d.head_size + value)
    full = d.attention_blocks - d.windowed_blocks
    kept = full + d.windowed_blocks * min(1.0, d.window / context)
    return kept * width * plan.cache_bytes


def _split(model: Transformer, plan: ServingPlan) -> int:
    """Ways by which tensor parallelism divides keys and values: at most by heads, MLA not."""
    return 1 if model.dimensions.kv_rank else min(plan.tensor, model.dimensions.kv_heads)


def _faults(model: Transformer, cluster: Cluster, plan: ServingPlan) -> list[Fault]:
    n, experts = cluster.n_ranks, model.dimensions.experts
    found = []
    for name in ("tensor", "expert", "sequences", "prompt_tokens", "output_tokens"):
        if not 1 <= getattr(plan, name) <= MOST:
            what = _("the value is {value}.").format(value=getattr(plan, name))
            found.append(Fault(name, what, f"1 … {MOST:,}"))
    if found:
        return found
    if n % plan.tensor:
        what = _("{n} GPUs do not divide into {ways} tensor ways.")
        found.append(Fault("tensor", what.format(n=n, ways=plan.tensor)))
    if plan.expert > 1 and (not experts or n % plan.expert):
        what = _("{n} GPUs and {experts} experts do not divide into {ways} expert ways.")
        found.append(Fault("expert", what.format(n=n, experts=experts, ways=plan.expert)))
    if not 0 <= plan.utilisation < 1:
        what = _("the value is {value}.").format(value=plan.utilisation)
        found.append(Fault("utilisation", what, _("0 up to, not including, 1")))
    tflops = gpu_compute(cluster.gpu).tflops
    if plan.precision not in tflops:
        what = _("{gpu} has no {precision}.")
        what = what.format(gpu=cluster.gpu[:64], precision=plan.precision[:64])
        found.append(Fault("precision", what, ", ".join(tflops)))
    if plan.is_disaggregated and cluster.wire_gbytes_per_s is None:
        what = _("keys and values need a network between prefill and decode.")
        found.append(Fault("wire_gbytes_per_s", what, _("more than 0")))
    return found


def _weights(model: Transformer, plan: ServingPlan) -> tuple[float, float]:
    """Bytes of weights on one GPU: what every token passes, and experts."""
    size = WEIGHT_BYTES[plan.precision]
    matrix = model.dimensions.hidden * model.dimensions.vocabulary
    own = model.parameters - model.expert_parameters - model.embedding_parameters
    ways = plan.expert if plan.expert > 1 else plan.tensor
    dense = (own * size + 2 * matrix * ACTIVATION_BYTES) / plan.tensor
    return dense, model.expert_parameters * size / ways


def _prefill(model: Transformer, cluster: Cluster, plan: ServingPlan, software: str) -> Prefill:
    """One prompt on each group of tensor-parallel GPUs at a time."""
    training = TrainingPlan(
        tensor=plan.tensor,
        expert=plan.expert,
        zero=0,
        global_batch=cluster.n_ranks // plan.tensor,
        sequence_tokens=plan.prompt_tokens,
        precision=plan.precision,
    )
    job = TrainingJob(model, cluster, training)
    compute_s, network_s = forward(job, software)
    busy_s = compute_s + network_s
    wait_s = plan.utilisation * busy_s / 2 / (1 - plan.utilisation)
    cache = plan.prompt_tokens * cache_bytes_per_token(model, plan, plan.prompt_tokens)
    transfer_s = 0.0
    if plan.is_disaggregated and cluster.wire_gbytes_per_s is not None:
        share = min(1.0, plan.tensor / cluster.gpus_per_domain)
        efficiency = collective_fit().wire_efficiency[cluster.network]
        wire = cluster.wire_gbytes_per_s / cluster.slowdown("transfer")
        whole_s = cache / (wire * share * efficiency) / 1e9
        layers = model.n_layers
        transfer_s = max(whole_s - busy_s * (layers - 1) / layers, whole_s / layers)
    return Prefill(compute_s, network_s, wait_s, transfer_s, cache)


def _decode(model: Transformer, cluster: Cluster, plan: ServingPlan) -> Decode:
    d, rates = model.dimensions, gpu_compute(cluster.gpu)
    local = plan.sequences * plan.tensor / cluster.n_ranks  # sequences of a tensor group
    context = plan.prompt_tokens + plan.output_tokens / 2
    memory = rates.memory_gbytes_per_s * 1e9 * MEMORY_SHARE
    dense, experts = _weights(model, plan)
    ways = plan.expert if plan.expert > 1 else plan.tensor
    tokens = plan.sequences * ways / cluster.n_ranks  # that share the experts of these GPUs
    used = 1 - (1 - d.experts_per_token / d.experts) ** tokens if d.experts else 0.0
    weights_s = (dense + experts * used) / memory
    cache = local * context * cache_bytes_per_token(model, plan, int(context))
    cache_s = cache / _split(model, plan) / memory
    flops = 2.0 * model.active_parameters * local / plan.tensor
    peak = rates.tflops[plan.precision] * 1e12
    compute_s = flops / (peak * training_fit().product_efficiency[gpu_key(cluster.gpu)])
    network_s, collectives, ranks = _decode_network(model, cluster, plan, local)
    return Decode(
        weights_s,
        cache_s,
        max(0.0, compute_s - weights_s),
        model.n_layers * KERNELS_PER_LAYER * KERNEL_US / 1e6,
        network_s,
        collectives,
        ranks,
    )


def _decode_network(
    model: Transformer, cluster: Cluster, plan: ServingPlan, local: float
) -> tuple[float, int, int]:
    """Seconds of collectives in a step, their number, and the ranks that each waits for.

    Two all-reduces a layer by tensor parallelism; experts get tokens and give them back.
    """
    d = model.dimensions
    seconds, number, ranks = 0.0, 0, 1
    if plan.tensor > 1:
        blocks = d.attention_blocks + d.mamba_blocks + d.mlp_blocks
        blocks += d.moe_blocks if plan.expert == 1 else 0
        size = max(1.0, local) * d.hidden * ACTIVATION_BYTES
        seconds += blocks * collective_s(
            placed(cluster, "tensor", plan.tensor, 1), "all_reduce", size
        )
        number, ranks = number + blocks, plan.tensor
    if plan.expert > 1:
        width = (d.expert_input or d.hidden) * d.experts_per_token
        size = max(1.0, local / plan.tensor) * width
        experts = placed(cluster, "expert", plan.expert, 1)
        both = (DISPATCH_BYTES, ACTIVATION_BYTES)
        seconds += d.moe_blocks * sum(exchange_s(experts, size * each) for each in both)
        number, ranks = number + 2 * d.moe_blocks, max(ranks, plan.expert)
    return seconds, number, ranks
