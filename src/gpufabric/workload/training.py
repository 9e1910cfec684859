"""Time of one training step: by parts, with its interval, MFU, and memory.

What is computed comes from the model's FLOPs and memory traffic, what is sent from the closed
form of collectives; the shares that are attained are fitted on published runs. `step_time` states
the rules of overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpufabric.catalog.workload_constants import (
    TrainingFit,
    gpu_compute,
    gpu_key,
    training_fit,
    training_software,
)
from gpufabric.core.text import _
from gpufabric.workload.memory import Memory, training_memory
from gpufabric.workload.parallelism import Group, TrainingJob
from gpufabric.workload.step_time import StepParts, parts_of, shares_of
from gpufabric.workload.step_work import work_of

__all__ = [
    "GROUPS",
    "MODEL",
    "MODEL_VERSION",
    "SOFTWARE",
    "TrainingEstimate",
    "class_of",
    "forward",
    "train",
]

MODEL = "training-step"
MODEL_VERSION = 1
SOFTWARE = "megatron-2026-06"
"""Program that is meant unless another is named: the newest that was measured."""

GROUPS = ("tensor", "expert", "context", "pipeline", "data")


@dataclass(frozen=True)
class TrainingEstimate:
    """One step of a training job.

    Parameters
    ----------
    job, software
        What runs, by which program.
    parts
        Seconds by what they are spent on.
    step_s, low_s, high_s
        Time of a step, and the 80 % interval of what would be measured [s].
    memory
        Of the fullest GPU.
    groups
        Which ranks talk to each other, by kind of parallelism.
    extrapolates
        Why the estimate goes beyond the runs it was fitted on; empty if it does not.
    """

    job: TrainingJob
    software: str
    parts: StepParts
    step_s: float
    low_s: float
    high_s: float
    memory: Memory
    groups: tuple[Group, ...]
    extrapolates: tuple[str, ...]

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens a second and GPU."""
        return self.job.tokens / self.step_s / self.job.cluster.n_ranks

    @property
    def tflops_per_gpu(self) -> float:
        """FLOPs that the model needs, recomputation not counted [TFLOP/s and GPU]."""
        flops = self.job.model.flops_per_token(self.job.plan.sequence_tokens)
        if self.job.plan.trains_adapters:
            flops *= 2 / 3
        return flops * self.tokens_per_s_per_gpu / 1e12

    @property
    def mfu(self) -> float:
        """Share of the data sheet's rate at the plan's precision; attention counted causal."""
        peak = gpu_compute(self.job.cluster.gpu).tflops[self.job.plan.precision]
        return self.tflops_per_gpu / peak

    @property
    def exposed_s(self) -> dict[str, float]:
        """Seconds of communication that show, by group."""
        return {name: float(getattr(self.parts, f"{name}_s")) for name in GROUPS}

    @property
    def network_share(self) -> float:
        """Share of the step that waits for communication over the network."""
        far = {group.name for group in self.groups if group.crosses_network}
        return sum(s for name, s in self.exposed_s.items() if name in far) / self.step_s


def class_of(job: TrainingJob) -> str:
    """Return the class of errors that a job belongs to: dense or experts, one domain or more."""
    kind = "moe" if job.model.dimensions.experts else "dense"
    return f"{kind}-{'single' if job.cluster.n_domains == 1 else 'multi'}"


def train(
    job: TrainingJob, software: str = SOFTWARE, fit: TrainingFit | None = None
) -> TrainingEstimate:
    """Return the time of one step of a training job.

    Parameters
    ----------
    job
        Model, cluster and plan.
    software
        Program, as the catalogue names it.
    fit
        Other constants than the catalogue's.

    Raises
    ------
    InputError
        If the program is unknown.

    Notes
    -----
    The interval is that of runs which the constants were not fitted on: of a third left out where
    GPU, precision and program were measured, of whole sources left out where not.
    """
    fit = fit or training_fit()
    program = training_software(software)
    gpu = gpu_key(job.cluster.gpu)
    shares = shares_of(fit, gpu, job.cluster.generation, job.plan.precision, (software, program))
    parts = parts_of(work_of(job, program), shares)
    step_s = float(parts.total_s)
    reasons = extrapolations(job, software, fit)
    error = fit.residuals[class_of(job)]
    low, high = (error.far_low, error.far_high) if reasons else (error.low, error.high)
    return TrainingEstimate(
        job,
        software,
        StepParts(*(float(part) for part in parts)),
        step_s,
        step_s * float(np.exp(low)),
        step_s * float(np.exp(high)),
        training_memory(job),
        tuple(job.group(name) for name in GROUPS),
        reasons,
    )


def forward(job: TrainingJob, software: str = SOFTWARE) -> tuple[float, float]:
    """Seconds of computing and of communication of one forward pass of one micro-batch.

    Notes
    -----
    Of a step without recomputation, products and memory traffic are a third, cores of attention
    1 of 3.5, tensor parallelism two of five collectives, experts two of four.
    """
    fit, program = training_fit(), training_software(software)
    gpu, precision = gpu_key(job.cluster.gpu), job.plan.precision
    shares = shares_of(fit, gpu, job.cluster.generation, precision, (software, program))
    plain = replace(job, plan=replace(job.plan, recompute="none", trains_adapters=False))
    work = work_of(plain, program)
    once = work._replace(
        core_s=work.core_s * 3 / 3.5, odd_core_s=0.0, gradient_s=0.0, micro_batches=1.0
    )
    parts = parts_of(once, shares)
    network_s = float(parts.tensor_s) * 2 / 5 + float(parts.expert_s) / 2
    return float(parts.compute_s) / 3, network_s + float(parts.context_s) / 3


def extrapolations(job: TrainingJob, software: str, fit: TrainingFit) -> tuple[str, ...]:
    """Return in what the question goes beyond the measured runs, one sentence each."""
    gpu = gpu_key(job.cluster.gpu)
    mine = next((row for row in fit.measured if row.gpu == gpu), None)
    if mine is None:
        return (_("No training run on this GPU: {name}.").format(name=gpu),)
    reasons = []
    if job.plan.precision not in mine.precisions:
        reasons.append(
            _("No run on {gpu} in {precision}.").format(gpu=gpu, precision=job.plan.precision)
        )
    if software not in mine.software:
        reasons.append(_("No run on {gpu} by {name}.").format(gpu=gpu, name=software))
    if job.cluster.n_ranks > mine.most_gpus:
        reasons.append(
            _("{n} GPUs; measured were at most {most}.").format(
                n=job.cluster.n_ranks, most=mine.most_gpus
            )
        )
    if job.plan.schedule == "zero-bubble":
        reasons.append(_("No run with the zero-bubble schedule."))
    return tuple(reasons)
