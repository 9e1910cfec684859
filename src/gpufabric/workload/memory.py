"""Memory that one GPU needs for training, by what takes it."""

from __future__ import annotations

from dataclasses import dataclass

from gpufabric.catalog.workload_constants import gpu_compute
from gpufabric.workload.parallelism import TrainingJob

__all__ = ["Memory", "training_memory"]

WEIGHT_BYTES, GRADIENT_BYTES, OPTIMIZER_BYTES = 2.0, 4.0, 12.0
"""Per parameter: bf16 weights, fp32 gradients, Adam in fp32 (master weight and two moments);
Rajbhandari et al., arXiv:1910.02054, section 3."""
NUMBER_BYTES = 2.0  # an activation in bf16
LOGIT_BYTES = 4.0  # a logit in bf16, and its gradient in place of the softmax
RESERVED_GB = 2.0
"""CUDA context and NCCL buffers; assumed, compare the 1.3 to 1.6 GB of kernels that the BLOOM
chronicles report."""


@dataclass(frozen=True)
class Memory:
    """Memory of the fullest GPU, the one of the first pipeline stage [10**9 byte].

    Parameters
    ----------
    weights_gb, gradients_gb, optimizer_gb, activations_gb, reserved_gb
        By what takes it.
    available_gb
        Of the GPU.
    """

    weights_gb: float
    gradients_gb: float
    optimizer_gb: float
    activations_gb: float
    reserved_gb: float
    available_gb: float

    @property
    def total_gb(self) -> float:
        """All of it."""
        return (
            self.weights_gb
            + self.gradients_gb
            + self.optimizer_gb
            + self.activations_gb
            + self.reserved_gb
        )

    @property
    def fits(self) -> bool:
        """Whether the GPU has as much."""
        return self.total_gb <= self.available_gb


def training_memory(job: TrainingJob) -> Memory:
    """Return the memory that training needs on the fullest GPU.

    Notes
    -----
    Activations follow Korthikanti et al., arXiv:2205.05198: about what each kernel writes, in
    16 bit, divided by tensor and context ways; the first stage keeps as many micro-batches as
    there are stages. With full recomputation only the input of each layer is kept, and one
    layer's insides. Programs that keep activations in 8 bit, move them to the host, or compute
    norms again need less: a fifth of the published runs would not fit by this reckoning.
    """
    model, plan = job.model, job.plan
    own = model.parameters - model.expert_parameters
    dense = (own - model.embedding_parameters) / (plan.tensor * plan.pipeline)
    matrix = model.dimensions.hidden * model.dimensions.vocabulary
    dense += (model.embedding_parameters if plan.pipeline == 1 else matrix) / plan.tensor
    experts = model.expert_parameters / (plan.expert * job.expert_tensor_ways * plan.pipeline)
    share = [(dense, job.data_ways * plan.context), (experts, job.expert_data_ways)]
    weights = sum(count / (ways if plan.zero >= 3 else 1) for count, ways in share)
    if plan.zero >= 3:  # two layers at a time are gathered: one in use, one coming
        weights += min(1.0, 2 / model.n_layers) * sum(count for count, _ways in share)
    gradients = sum(count / (ways if plan.zero >= 2 else 1) for count, ways in share)
    optimizer = sum(count / (ways if plan.zero >= 1 else 1) for count, ways in share)
    if plan.trains_adapters:
        gradients = optimizer = 0.0
    return Memory(
        weights * WEIGHT_BYTES / 1e9,
        gradients * GRADIENT_BYTES / 1e9,
        optimizer * OPTIMIZER_BYTES / 1e9,
        _activations(job) / 1e9,
        RESERVED_GB,
        gpu_compute(job.cluster.gpu).memory_gb,
    )


def _activations(job: TrainingJob) -> float:
    model, plan = job.model, job.plan
    tokens = plan.micro_batch * plan.sequence_tokens / plan.context / plan.tensor
    layer: float = sum(
        b.number * (b.width + b.routed_width) for b in model.blocks if b.kind != "head"
    )
    layer *= NUMBER_BYTES / model.n_layers
    kept = NUMBER_BYTES * model.dimensions.hidden if plan.recompute == "full" else layer
    layers = model.n_layers / plan.pipeline
    in_flight: float = min(job.n_micro_batches, plan.pipeline)
    if plan.chunks > 1:
        in_flight *= 1 + (plan.pipeline - 1) / (plan.pipeline * plan.chunks)
    logits = LOGIT_BYTES * model.dimensions.vocabulary if plan.pipeline == 1 else 0.0
    once = layer if plan.recompute == "full" else 0.0
    return tokens * (kept * layers * in_flight + once + logits)
