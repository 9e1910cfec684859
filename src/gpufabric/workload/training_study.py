"""All that one asks of a training job on a network: step, jitter, scaling, other plans."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import InputError
from gpufabric.workload.forecast_training import (
    TrainingForecast,
    collided_s,
    jittered,
    on_network,
    training_numbers,
)
from gpufabric.workload.jitter import StepDistribution
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.parallelism import TrainingJob
from gpufabric.workload.placement_search import SearchResult
from gpufabric.workload.training import TrainingEstimate, train

__all__ = ["ScalePoint", "TrainingStudy", "study_training"]


@dataclass(frozen=True)
class ScalePoint:
    """The same plan on fewer GPUs, with as many sequences for each data-parallel way.

    Parameters
    ----------
    n_gpus
        GPUs.
    step_s, low_s, high_s
        Time of a step, and its 80 % interval [s].
    tokens_per_s_per_gpu, mfu
        Rate of the step.
    """

    n_gpus: int
    step_s: float
    low_s: float
    high_s: float
    tokens_per_s_per_gpu: float
    mfu: float


@dataclass(frozen=True, eq=False)
class TrainingStudy:
    """A training job on a network.

    Parameters
    ----------
    estimate
        The step on the network, without jitter.
    numbers
        The same as plain numbers, with what is lost.
    steps
        The step as a distribution.
    scaling
        The same plan on fewer GPUs, rising.
    search
        Other plans, where one was searched.
    """

    estimate: TrainingEstimate
    numbers: TrainingForecast
    steps: StepDistribution
    scaling: tuple[ScalePoint, ...]
    search: SearchResult | None

    @property
    def fits(self) -> bool:
        """Whether the fullest GPU has the memory."""
        return self.estimate.memory.fits

    def quantiles_s(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times that these shares of steps do not exceed [s]."""
        found: NDArray[np.float64] = np.quantile(self.steps.step_s, shares)
        return found


def study_training(
    view: NetworkView,
    job: TrainingJob,
    software: str,
    seed: int,
    search: SearchResult | None = None,
) -> TrainingStudy:
    """Return all that one asks of a training job on a network.

    Parameters
    ----------
    view
        The network.
    job
        On a cluster at full NIC rate.
    software
        Program, as the catalogue names it.
    seed
        Of the random numbers.
    search
        What a search found, of which `job` is the best.
    """
    full = train(job, software)
    found = train(on_network(job, view.blocks), software)
    late_s = collided_s(found, view.blocks, seed)
    steps = jittered(found, view, late_s, seed)
    numbers = training_numbers(found, steps, full.step_s, late_s)
    return TrainingStudy(found, numbers, steps, _scaling(view, found), search)


def _scaling(view: NetworkView, found: TrainingEstimate) -> tuple[ScalePoint, ...]:
    """The plan with data-parallel ways 1, 2, 4 … of its own, where these are whole hosts."""
    job, each = found.job, found.job.cluster.gpus_per_domain
    unit = job.plan.tensor * job.plan.pipeline * job.plan.context
    per_way = job.plan.global_batch // job.data_ways
    ways = {2**step for step in range(job.data_ways.bit_length())} | {job.data_ways}
    points = []
    for data in sorted(ways):
        n = unit * data
        if n > job.cluster.n_ranks or (n % each and n > each):
            continue
        smaller = replace(
            job.cluster,
            gpus_per_domain=min(n, each),
            n_domains=max(1, n // each),
            slowed=(),
        )
        plan = replace(job.plan, global_batch=per_way * data)
        try:
            one = train(
                on_network(TrainingJob(job.model, smaller, plan), view.blocks), found.software
            )
        except InputError:
            continue  # experts that do not divide among so few
        points.append(
            ScalePoint(n, one.step_s, one.low_s, one.high_s, one.tokens_per_s_per_gpu, one.mfu)
        )
    return tuple(points)
