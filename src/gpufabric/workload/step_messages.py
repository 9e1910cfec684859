"""Which collectives a training step does, how large they are, and how often.

Tensor parallelism with sequence parallelism: a gather and a scatter-add around each block, both
passes, and a gather more backwards (Korthikanti et al., arXiv:2205.05198); without, an all-reduce.
Experts: tokens there and back, both passes; where each expert is divided, its ranks gather all
their tokens, and add up. Context: keys and values pass the ring, and their gradients. Data: ZeRO 0
reduces all to all; ZeRO 1 scatters sums once a step and gathers parameters once; ZeRO 2 does so
with each micro-batch's gradients; ZeRO 3 gathers before each pass, twice.
"""

from __future__ import annotations

from typing import NamedTuple

from gpufabric.catalog.workload_constants import Software
from gpufabric.workload.parallelism import TrainingJob

__all__ = [
    "NUMBER_BYTES",
    "Use",
    "border_bytes",
    "data_messages",
    "inner_messages",
    "local_parameters",
    "tokens_of",
]

NUMBER_BYTES = 2.0  # activations and their gradients in 16 bit
DISPATCH_BYTES = {"fp16": 2.0, "bf16": 2.0, "fp8": 2.0, "mxfp8": 2.0, "nvfp4": 2.0}


class Use(NamedTuple):
    """One collective of a training step.

    Parameters
    ----------
    group
        Kind of parallelism whose ranks do it.
    shown_as
        Kind that its time is counted under.
    operation, size_bytes
        As nccl-tests names and counts it [byte].
    forward, backward
        How often in each pass of one micro-batch, of all layers of the model; of data
        parallelism, how often at the passes or at the end of a step.
    """

    group: str
    shown_as: str
    operation: str
    size_bytes: float
    forward: float
    backward: float

    @property
    def number(self) -> float:
        """In both passes."""
        return self.forward + self.backward


def tokens_of(job: TrainingJob) -> float:
    """Tokens of a micro-batch on the ranks of one tensor-parallel group."""
    plan = job.plan
    return plan.micro_batch * plan.sequence_tokens / plan.context


def inner_messages(job: TrainingJob, software: Software) -> tuple[Use, ...]:
    """Return the collectives of tensor, expert and context parallelism of one micro-batch."""
    again = 1.0 if job.plan.recompute == "full" else 0.0
    return (
        *_tensor(job, software, again),
        *_expert_tensor(job, again),
        *_expert(job, again),
        *_context(job, again),
    )


def _tensor(job: TrainingJob, software: Software, again: float) -> tuple[Use, ...]:
    plan, d = job.plan, job.model.dimensions
    if plan.tensor == 1:
        return ()
    size = tokens_of(job) * d.hidden * NUMBER_BYTES
    blocks = d.attention_blocks + d.mlp_blocks + d.mamba_blocks
    blocks += d.moe_blocks if d.shared_width else 0
    if not software.splits_sequence:
        return (Use("tensor", "tensor", "all_reduce", size, blocks, (1 + again) * blocks),)
    return (
        Use("tensor", "tensor", "all_gather", size, blocks, (2 + again) * blocks),
        Use("tensor", "tensor", "reduce_scatter", size, blocks, (1 + again) * blocks),
    )


def _expert_tensor(job: TrainingJob, again: float) -> tuple[Use, ...]:
    plan, d = job.plan, job.model.dimensions
    if job.expert_tensor_ways == 1 or not d.moe_blocks:
        return ()
    width = (d.expert_input or d.hidden) * d.experts_per_token
    size = tokens_of(job) / plan.tensor * job.expert_tensor_ways * width * NUMBER_BYTES
    times = (d.moe_blocks, (1 + again) * d.moe_blocks)
    return tuple(
        Use("expert_tensor", "tensor", name, size, *times)
        for name in ("all_gather", "reduce_scatter")
    )


def _expert(job: TrainingJob, again: float) -> tuple[Use, ...]:
    plan, d = job.plan, job.model.dimensions
    if plan.expert == 1:
        return ()
    width = (d.expert_input or d.hidden) * d.experts_per_token
    size = tokens_of(job) / plan.tensor * width * DISPATCH_BYTES[plan.precision]
    blocks = d.moe_blocks
    return (Use("expert", "expert", "alltoall", size, 2 * blocks, (2 + 2 * again) * blocks),)


def _context(job: TrainingJob, again: float) -> tuple[Use, ...]:
    plan, d = job.plan, job.model.dimensions
    if plan.context == 1:
        return ()
    keys_and_values = 2 * d.kv_heads * d.head_size / min(plan.tensor, d.kv_heads)
    size = tokens_of(job) * keys_and_values * NUMBER_BYTES * plan.context
    blocks = d.attention_blocks
    return (Use("context", "context", "all_gather", size, blocks, (2 + again) * blocks),)


def local_parameters(job: TrainingJob) -> list[tuple[float, int]]:
    """Parameters of one GPU before data parallelism divides them, and its ways."""
    model, plan = job.model, job.plan
    dense = (model.parameters - model.expert_parameters) / (plan.tensor * plan.pipeline)
    experts = model.expert_parameters / (plan.expert * job.expert_tensor_ways * plan.pipeline)
    return [(dense, job.data_ways * plan.context), (experts, job.expert_data_ways)]


def data_messages(job: TrainingJob) -> tuple[Use, ...]:
    """Return the collectives of data parallelism, over all parameters of one GPU.

    They are done once a step; each micro-batch where gradients are divided (ZeRO 2 and 3).
    """
    zero = job.plan.zero
    found = []
    for (count, ways), name in zip(local_parameters(job), ("data", "expert_data"), strict=True):
        if ways == 1 or not count:
            continue
        size = count * NUMBER_BYTES
        if zero == 0:
            found.append(Use(name, "reduce", "all_reduce", size, 0, 1))
            continue
        found.append(Use(name, "reduce", "reduce_scatter", size, 0, 1))
        found.append(Use(name, "gather", "all_gather", size, 1, 1 if zero == 3 else 0))
    return tuple(found)


def border_bytes(job: TrainingJob) -> float:
    """Activations of one micro-batch that a rank sends over a border of two stages [byte]."""
    return tokens_of(job) * job.model.dimensions.hidden * NUMBER_BYTES / job.plan.tensor
