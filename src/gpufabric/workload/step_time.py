"""A training step's time from its amounts and the fitted shares; one step, or arrays of steps.

Rules of overlap:

- Tensor and expert parallelism are waited for, up to a fitted share that the program hides.
- Context parallelism hides behind attention's core; what is longer shows.
- Sends between stages show once a micro-batch each way unless the program hides them; filling and
  draining the pipeline always shows them.
- Data parallelism without sharding moves once a step: hidden, gradients behind the last backward
  pass and parameters behind the first forward pass, where the program overlaps; else all shows.
- Sharded (ZeRO 2 and 3) it moves with each micro-batch: the longer of the two counts, the first
  layer's share always shows, and what is hidden slows computing by a fitted share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.workload_constants import Software, TrainingFit
from gpufabric.workload.step_work import StepWork

__all__ = ["Shares", "StepParts", "parts_of", "shares_of"]

Number = float | NDArray[np.float64]
BACKWARD, FORWARD = 0.6, 0.3
"""Of a micro-batch's time, what gradients and parameters can hide behind: two thirds and one
third, less the layer that must be done first; assumed."""


class Shares(NamedTuple):
    """Fitted constants for one GPU, precision and program, or arrays of them.

    Parameters
    ----------
    product
        Attained share of the data sheet's rate, for products at the plan's precision.
    product16
        The same in 16 bit.
    core, odd_core
        For cores of attention; slowdown of cores without tensor cores.
    operand, stream, routed, mamba
        Times that each kind of memory traffic counts.
    kernel_s
        Seconds that each kernel adds.
    tensor, expert, expert_far
        Shares of communication that show.
    steal
        Share of hidden communication that slows computing.
    overlaps_data, overlaps_pipeline
        1 where the program hides them.
    """

    product: Number
    product16: Number
    core: Number
    odd_core: Number
    operand: Number
    stream: Number
    routed: Number
    mamba: Number
    kernel_s: Number
    tensor: Number
    expert: Number
    expert_far: Number
    steal: Number
    overlaps_data: Number
    overlaps_pipeline: Number


class StepParts(NamedTuple):
    """Seconds of one step, by what they are spent on.

    Parameters
    ----------
    compute_s
        Products, attention and memory, all micro-batches.
    tensor_s, expert_s, context_s, pipeline_s, data_s
        Communication that shows, by group.
    bubble_s
        Waiting for the pipeline.
    optimizer_s
        The optimizer.
    """

    compute_s: Number
    tensor_s: Number
    expert_s: Number
    context_s: Number
    pipeline_s: Number
    data_s: Number
    bubble_s: Number
    optimizer_s: Number

    @property
    def total_s(self) -> Number:
        """All of them."""
        return sum(self[1:], self[0])


def shares_of(
    fit: TrainingFit, gpu: str, generation: str, precision: str, names: tuple[str, Software]
) -> Shares:
    """Return the fitted constants for one GPU, generation, precision, and program by name."""
    name, software = names
    product = fit.product_efficiency[gpu]
    return Shares(
        product=product * fit.precision_factor[precision],
        product16=product,
        core=product * fit.core_efficiency[generation] * fit.core_factor[name],
        odd_core=fit.odd_core_factor["all"],
        operand=fit.operand_share["all"],
        stream=fit.stream_passes[name],
        routed=fit.routed_passes[name],
        mamba=fit.mamba_passes["all"],
        kernel_s=fit.kernel_us[name] / 1e6,
        tensor=fit.tensor_exposed[name],
        expert=fit.expert_exposed[name],
        expert_far=fit.expert_far_exposed[name],
        steal=fit.steal["all"],
        overlaps_data=float(software.overlaps_data),
        overlaps_pipeline=float(software.overlaps_pipeline),
    )


def parts_of(work: StepWork, shares: Shares) -> StepParts:
    """Return the seconds of a step by what they are spent on."""
    core_s = (work.core_s + work.odd_core_s * (shares.odd_core - 1)) / shares.core
    compute_s = (
        work.product_s / shares.product
        + work.product16_s / shares.product16
        + core_s
        + work.operand_s * shares.operand
        + work.stream_s * shares.stream
        + work.routed_s * shares.routed
        + work.mamba_s * shares.mamba
        + work.kernels * shares.kernel_s
        + work.gradient_s
    )
    tensor_s = work.tensor_s * shares.tensor
    expert_s = work.expert_s * shares.expert + work.expert_far_s * shares.expert_far
    context_s = np.maximum(0.0, work.context_s - core_s)
    border_s = 2 * work.pipeline_s * (1 - shares.overlaps_pipeline)
    micro_s = compute_s + tensor_s + expert_s + context_s + border_s
    n = work.micro_batches
    fill_s = 2 * (work.stages - 1) * work.pipeline_s
    return StepParts(
        compute_s=n * compute_s,
        tensor_s=n * tensor_s,
        expert_s=n * expert_s,
        context_s=n * context_s,
        pipeline_s=n * border_s + fill_s,
        data_s=_data_s(work, shares, micro_s),
        bubble_s=work.bubble * micro_s,
        optimizer_s=work.optimizer_s,
    )


def _data_s(work: StepWork, shares: Shares, micro_s: Number) -> Number:
    """Seconds of data parallelism that show in a step."""
    both_s = work.reduce_s + work.gather_s
    hidden_s = np.minimum(both_s, micro_s)
    sharded_s = work.micro_batches * (
        both_s - hidden_s + shares.steal * hidden_s + hidden_s / work.layers
    )
    behind_s = np.minimum(work.reduce_s, BACKWARD * micro_s)
    behind_s = behind_s + np.minimum(work.gather_s, FORWARD * micro_s)
    shown_s = both_s - shares.overlaps_data * behind_s * (1 - shares.steal)
    return np.where(work.is_sharded > 0, sharded_s, shown_s)
