"""What one training step does, as seconds at data-sheet rates, before any fitted share."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from gpufabric.catalog.workload_constants import Software, gpu_compute
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.parallelism import Group, TrainingJob
from gpufabric.workload.step_messages import (
    NUMBER_BYTES,
    border_bytes,
    data_messages,
    inner_messages,
    local_parameters,
    tokens_of,
)
from gpufabric.workload.transformer import Block, Product

__all__ = ["StepWork", "collective_s", "work_of"]

PRODUCT_BYTES = {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "mxfp8": 1.0, "nvfp4": 0.5}
TILE = 128  # numbers; matrix units work on tiles of 128 by 128 (NVIDIA, tile quantization)
ALIGNED = 8  # numbers of a head; otherwise no tensor cores in unfused attention (NVIDIA, ibid.)
ADAM_BYTES = 30.0  # a parameter: fp32 gradient, weight and two moments read, three written, bf16
GRADIENT_BYTES = 8.0  # a parameter and micro-batch: fp32 gradients read and written again
CORE_BACKWARD = 2.5  # FLOPs of a fused core backwards over forwards: one product is done again
KERNELS = {"attention": 12, "windowed": 12, "mlp": 7, "moe": 24, "mamba": 14, "head": 6}
"""Kernels that a block starts forwards, counted in Megatron-Core's modules; twice that
backwards. Only their sum times a fitted time matters."""


class StepWork(NamedTuple):
    """One step of the slowest pipeline stage; each per micro-batch unless told otherwise.

    Parameters
    ----------
    product_s, product16_s
        Matrix products at the precision's rate, and those that stay in 16 bit (output head).
    core_s
        Cores of attention and Mamba at the 16-bit rate.
    odd_core_s
        Of these, cores whose heads are not multiples of 8 numbers and not fused.
    operand_s
        Operands and results of products through memory.
    stream_s, routed_s, mamba_s
        Numbers between kernels through memory, once read and once written, forwards and
        backwards; those of experts and of Mamba apart.
    kernels
        Kernels started.
    gradient_s
        Gradients added up in memory.
    tensor_s, expert_s, expert_far_s, context_s, pipeline_s
        Communication of each group, one after the other; of experts inside an NVLink domain or
        over the network; `pipeline_s` of one stage's border.
    reduce_s, gather_s
        Of data parallelism: gradients and parameters. Per step, or per micro-batch if
        `is_sharded`.
    is_sharded
        1 where data parallelism divides gradients and parameters (ZeRO 2 and 3).
    optimizer_s
        Per step: the optimizer's memory.
    micro_batches
        Number in a step.
    bubble
        Micro-batches that the pipeline waits.
    layers
        Layers of a stage.
    stages
        Pipeline stages.
    """

    product_s: float
    product16_s: float
    core_s: float
    odd_core_s: float
    operand_s: float
    stream_s: float
    routed_s: float
    mamba_s: float
    kernels: float
    gradient_s: float
    tensor_s: float
    expert_s: float
    expert_far_s: float
    context_s: float
    pipeline_s: float
    reduce_s: float
    gather_s: float
    is_sharded: float
    optimizer_s: float
    micro_batches: float
    bubble: float
    layers: float
    stages: float


class _Amounts(NamedTuple):
    """Amounts of one block, forwards and backwards, per micro-batch and GPU."""

    product_s: float
    core_s: float
    odd_core_s: float
    operand_s: float
    stream_s: float
    routed_s: float
    mamba_s: float
    kernels: float


def work_of(job: TrainingJob, software: Software) -> StepWork:
    """Return what one step of the slowest pipeline stage does.

    Notes
    -----
    Layers are spread evenly. Where layers + 2 divide among the stages and chunks but layers do
    not, the matrices of tokens count as a layer each (Megatron's and the BLOOM team's way);
    otherwise the last stage has the output head beside its layers.
    """
    model, plan = job.model, job.plan
    rates = gpu_compute(job.cluster.gpu)
    amounts = [(block, _amounts(job, software, block)) for block in model.blocks]
    inner = [(block, each) for block, each in amounts if block.kind != "head"]
    head = next(each for block, each in amounts if block.kind == "head")
    layers, has_head, bubble = _stage(job, inner, head)
    share = layers / model.n_layers
    total = [
        sum(block.number * each[at] for block, each in inner) * share
        for at in range(len(_Amounts._fields))
    ]
    heads = has_head * model.dimensions.predicted_tokens
    local = local_parameters(job)
    slow16 = rates.tflops[plan.precision] / _sixteen_tflops(job)
    fields = dict(zip(_Amounts._fields, total, strict=True))
    fields["operand_s"] += heads * head.operand_s
    fields["stream_s"] += heads * head.stream_s
    fields["kernels"] += heads * head.kernels
    tensor_s, expert_s, context_s = _inner_communication(job, software, share)
    reduce_s, gather_s = _data_communication(job)
    is_divided = plan.zero >= 1
    is_far = job.group("expert").crosses_network
    adam = sum(count / (ways if is_divided else 1) for count, ways in local)
    idle = 0.0 if plan.trains_adapters else 1.0
    return StepWork(
        **fields,
        product16_s=heads * head.product_s * slow16,
        gradient_s=idle * _memory_s(job, sum(count for count, _ways in local) * GRADIENT_BYTES),
        tensor_s=tensor_s,
        expert_s=0.0 if is_far else expert_s,
        expert_far_s=expert_s if is_far else 0.0,
        context_s=context_s,
        pipeline_s=_border(job),
        reduce_s=idle * reduce_s,
        gather_s=gather_s if plan.zero >= 3 else idle * gather_s,
        is_sharded=float(plan.zero >= 2),
        optimizer_s=idle * _memory_s(job, adam * ADAM_BYTES),
        micro_batches=float(job.n_micro_batches),
        bubble=bubble,
        layers=layers,
        stages=float(plan.pipeline),
    )


def _memory_s(job: TrainingJob, n_bytes: float) -> float:
    return n_bytes / gpu_compute(job.cluster.gpu).memory_gbytes_per_s / 1e9


def _sixteen_tflops(job: TrainingJob) -> float:
    return gpu_compute(job.cluster.gpu).tflops["fp16"]


def _passes(job: TrainingJob) -> float:
    """How often products are done, the forward pass counted as one."""
    passes = 2.0 if job.plan.trains_adapters else 3.0
    return passes + (1.0 if job.plan.recompute == "full" else 0.0)


def _amounts(job: TrainingJob, software: Software, block: Block) -> _Amounts:
    plan, model = job.plan, job.model
    tokens = tokens_of(job)
    rates = gpu_compute(job.cluster.gpu)
    passes = _passes(job)
    flops = operands = 0.0
    for product in block.products:
        each, n_bytes = _product(job, product, tokens)
        flops += each
        operands += n_bytes
    is_core = block.kind in {"attention", "windowed", "mamba"}
    context = model.context(block.kind, plan.sequence_tokens)
    if not software.fuses_attention and block.kind == "attention":
        context *= 2  # the whole square is computed, then masked
    core = model.core_flops(block.kind, context) * tokens / plan.tensor if is_core else 0.0
    again = 1.0 if plan.recompute in {"full", "selective"} else 0.0
    core *= 1 + again + (CORE_BACKWARD if software.fuses_attention else 2.0)
    sixteen = _sixteen_tflops(job)
    is_odd = not software.fuses_attention and model.dimensions.head_size % ALIGNED > 0
    width: float = block.width
    if not software.fuses_attention and block.kind == "attention":
        width += 2 * model.dimensions.heads * plan.sequence_tokens
    if not software.splits_sequence and block.kind != "head":
        width += 2 * model.dimensions.hidden * (plan.tensor - 1)  # norms and residuals on each
    moved = 2 * NUMBER_BYTES * tokens / plan.tensor * passes
    return _Amounts(
        product_s=flops * passes / rates.tflops[plan.precision] / 1e12,
        core_s=core / sixteen / 1e12,
        odd_core_s=core / sixteen / 1e12 if is_odd and block.kind == "attention" else 0.0,
        operand_s=_memory_s(job, operands * passes),
        stream_s=0.0 if block.kind == "mamba" else _memory_s(job, width * moved),
        routed_s=_memory_s(job, block.routed_width * moved),
        mamba_s=_memory_s(job, width * moved) if block.kind == "mamba" else 0.0,
        kernels=KERNELS[block.kind] * passes,
    )


def _padded(size: float) -> float:
    return -(-size // TILE) * TILE


def _product(job: TrainingJob, product: Product, tokens: float) -> tuple[float, float]:
    """FLOPs of one product forwards on one GPU, in whole tiles, and bytes of its operands."""
    plan, dimensions = job.plan, job.model.dimensions
    rows, columns = float(product.rows), float(product.columns)
    ways = plan.tensor if product.is_split else 1
    if product.is_expert:
        # Each rank has experts / ways of them, and of all its group's tokens as many as it sent.
        ways = job.expert_tensor_ways
        count = dimensions.experts / plan.expert
        height = tokens / plan.tensor * ways * product.copies / count
    else:
        count = float(product.copies)
        height = tokens if product.is_split else tokens / plan.tensor
    rows, columns = (rows, columns / ways) if columns >= rows else (rows / ways, columns)
    size = PRODUCT_BYTES[plan.precision]
    flops = 2.0 * height * _padded(rows) * _padded(columns) * count
    n_bytes = count * (size * (height * rows + rows * columns) + NUMBER_BYTES * height * columns)
    return flops, n_bytes


def _stage(
    job: TrainingJob, inner: list[tuple[Block, _Amounts]], head: _Amounts
) -> tuple[float, float, float]:
    """Layers and heads of the slowest stage, and micro-batches of its time that it waits."""
    model, plan = job.model, job.plan
    parts = plan.pipeline * plan.chunks
    layers = model.n_layers
    layer_s = sum(block.number * each.product_s + each.core_s for block, each in inner) / layers
    head_s = head.product_s * model.dimensions.predicted_tokens
    if parts == 1:
        return float(layers), 1.0, 0.0
    if layers % parts and (layers + 2) % parts == 0:
        most = (layers + 2) / plan.pipeline
        options = [(most, 0.0), (most - 1, 1.0)]
    else:
        most = float(-(-layers // parts)) * plan.chunks
        options = [(most, 0.0), (max(1.0, layers - most * (plan.pipeline - 1)), 1.0)]
    slowest, has_head = max(options, key=lambda option: option[0] * layer_s + option[1] * head_s)
    mean_s = (layers * layer_s + head_s) / plan.pipeline
    slow_s = slowest * layer_s + has_head * head_s
    bubble = (plan.pipeline - 1) / plan.chunks * mean_s / slow_s
    if plan.schedule == "zero-bubble":
        bubble /= 3  # of forward, backward by inputs and by weights, only the first is waited for
    return slowest, has_head, bubble


def collective_s(group: Group, op: str, n_bytes: float) -> float:
    """Seconds of one collective over `n_bytes` as nccl-tests counts them."""
    if group.cluster is None or n_bytes <= 0:
        return 0.0
    return _on_cluster_s(group.cluster, op, n_bytes)


@functools.lru_cache(maxsize=4096)
def _on_cluster_s(cluster: Cluster, op: str, n_bytes: float) -> float:
    """The same; kept, as a search asks for few sizes very often."""
    return float(estimate(cluster, op, np.array([n_bytes])).time_us[0]) / 1e6


def _inner_communication(
    job: TrainingJob, software: Software, share: float
) -> tuple[float, float, float]:
    """Seconds of tensor, expert and context parallelism of one micro-batch."""
    seconds = {"tensor": 0.0, "expert": 0.0, "context": 0.0}
    for use in inner_messages(job, software):
        once_s = collective_s(job.group(use.group), use.operation, use.size_bytes)
        seconds[use.shown_as] += share * use.number * once_s
    return seconds["tensor"], seconds["expert"], seconds["context"]


def _data_communication(job: TrainingJob) -> tuple[float, float]:
    """Seconds to add up gradients, and to gather parameters."""
    seconds = {"reduce": 0.0, "gather": 0.0}
    for use in data_messages(job):
        once_s = collective_s(job.group(use.group), use.operation, use.size_bytes)
        seconds[use.shown_as] += use.number * once_s
    return seconds["reduce"], seconds["gather"]


def _border(job: TrainingJob) -> float:
    """Seconds to send one micro-batch's activations over a border of two stages."""
    group = job.group("pipeline")
    if group.cluster is None:
        return 0.0
    wire = group.cluster.wire_gbytes_per_s
    rate = group.cluster.facts.nvlink_gbytes_per_s
    if wire is not None:
        rate = min(rate, wire / max(1, group.inside))
    return border_bytes(job) / rate / 1e9
