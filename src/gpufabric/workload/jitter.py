"""Iteration time as a distribution: the slowest of many ranks, flapping links, colliding flows.

A step ends when its last rank ends. Three things make it late:

- *Ranks*: each is late by an exponential time; of n ranks the slowest counts, in the mean
  ``H(n) = 1 + 1/2 + ... + 1/n`` times one rank's mean.
- *Flaps*: links go down by a Poisson process, and a step with one waits for the transport.
- *Collisions*: where flows are hashed onto uplinks, the fullest uplink slows all that wait for
  it. The hash stays as it is for a whole job, so that one draw holds for all its steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.workload.inference import ServingEstimate
from gpufabric.workload.parallelism import TrainingJob
from gpufabric.workload.training import TrainingEstimate, train

__all__ = [
    "Hashing",
    "Jitter",
    "StepDistribution",
    "Tail",
    "collision_factors",
    "decode_tail",
    "distribution",
]

Floats = NDArray[np.float64]

HOURS_A_MONTH = 730.0
MOST_LATE_US = 1_000_000_000
"""A thousand seconds: nobody waits longer for a message."""
SLOWDOWNS = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Factors for which a step is computed; between them it is interpolated."""


@dataclass(frozen=True)
class Hashing:
    """Flows hashed onto the uplinks of leaves (ECMP).

    Parameters
    ----------
    leaves
        Leaf switches.
    flows
        Flows that leave each leaf at once: NICs below it times connections each.
    uplinks
        Of each leaf.
    """

    leaves: int
    flows: int
    uplinks: int


@dataclass(frozen=True)
class Jitter:
    """What makes steps late.

    Parameters
    ----------
    rank_share
        Mean lateness of one rank, as a share of its computing time; assumed.
    links
        Links of which a step needs all.
    flaps_per_link_month
        Failures of a link in a month of 730 hours. 0.00057 of NIC-to-leaf links a month: Qian et
        al., "Alibaba HPN", SIGCOMM 2024, section 2.
    flap_stall_s
        What a step loses by one: time until the transport goes on; assumed.
    hashing
        How flows collide; None where packets are sprayed.
    """

    rank_share: float = 0.002
    links: int = 0
    flaps_per_link_month: float = 0.00057
    flap_stall_s: float = 10.0
    hashing: Hashing | None = None

    def __post_init__(self) -> None:
        faults = [
            Fault(name, _("the value is {value}.").format(value=getattr(self, name)), "0 …")
            for name in ("rank_share", "links", "flaps_per_link_month", "flap_stall_s")
            if not 0 <= getattr(self, name) < float("inf")
        ]
        hashing = self.hashing
        if hashing and min(hashing.leaves, hashing.flows, hashing.uplinks) < 1:
            what = _("leaves, flows and uplinks are {values}.").format(
                values=f"{hashing.leaves}, {hashing.flows}, {hashing.uplinks}"
            )
            faults.append(Fault("hashing", what, "1 …"))
        if faults:
            raise InputError(faults)


@dataclass(frozen=True, eq=False)
class StepDistribution:
    """Times of steps with all that makes them late.

    Parameters
    ----------
    base_s
        A step without jitter [s].
    step_s
        float64[n_jobs, n_steps]: one row for each job, whose hash is drawn anew [s].
    factor
        float64[n_jobs]: the fullest uplink's load over the mean.
    by_cause_s
        Expected seconds a step by cause: ranks, flaps (too rare to be counted in the steps
        drawn), and collisions over the jobs drawn.
    gpus
        That wait.
    """

    base_s: float
    step_s: Floats
    factor: Floats
    by_cause_s: dict[str, float]
    gpus: int

    @property
    def mean_s(self) -> float:
        """Expected time of a step."""
        return self.base_s + sum(self.by_cause_s.values())

    def quantile_s(self, share: float) -> float:
        """Time that this share of steps does not exceed."""
        return float(np.quantile(self.step_s, share))

    def lost_gpu_hours(self, n_steps: int) -> float:
        """GPU-hours that jitter costs in so many steps."""
        return (self.mean_s - self.base_s) * n_steps * self.gpus / 3600


def distribution(
    estimate: TrainingEstimate,
    jitter: Jitter,
    n_steps: int = 1000,
    n_jobs: int = 20,
    seed: int = 1,
    collided_s: Floats | None = None,
) -> StepDistribution:
    """Return times of steps of a training job with jitter.

    Parameters
    ----------
    estimate
        The step without.
    jitter
        What makes it late.
    n_steps, n_jobs
        Steps of a job, and jobs, each with its own hash.
    seed
        Of the random numbers; the same gives the same.
    collided_s
        float64[n_jobs]: seconds that collisions add to each step of a job, where they are known
        better than from `jitter.hashing` [s].
    """
    random = np.random.default_rng(seed)
    gpus = estimate.job.cluster.n_ranks
    size = (n_jobs, n_steps)
    mean_s = jitter.rank_share * float(estimate.parts.compute_s)
    ranks_s = slowest_of(gpus, mean_s, random.random(size))
    factor = np.ones(n_jobs)
    if jitter.hashing is not None and estimate.job.cluster.n_domains > 1:
        factor = collision_factors(jitter.hashing, n_jobs, random)
    if collided_s is None:
        collided_s = np.interp(factor, SLOWDOWNS, _slowed(estimate)) - estimate.step_s
    month_s = HOURS_A_MONTH * 3600
    rate = jitter.links * jitter.flaps_per_link_month / month_s * estimate.step_s
    flaps_s = random.poisson(rate, size) * jitter.flap_stall_s
    harmonic = float(np.sum(1 / np.arange(1, gpus + 1)))
    return StepDistribution(
        estimate.step_s,
        estimate.step_s + ranks_s + flaps_s + collided_s[:, None],
        factor,
        {
            "ranks": mean_s * harmonic,
            "flaps": rate * jitter.flap_stall_s,
            "collisions": float(collided_s.mean()),
        },
        gpus,
    )


def slowest_of(n: int, mean: float, uniform: Floats) -> Floats:
    """Lateness of the slowest of `n` ranks, each late by an exponential time of this mean.

    Notes
    -----
    ``P(all <= t) = (1 - exp(-t / mean))**n``, solved for t at a uniform number in [0, 1).
    """
    logs = np.log(np.maximum(uniform, np.finfo(np.float64).tiny)) / n
    late: Floats = -mean * np.log(-np.expm1(logs))
    return late


def collision_factors(hashing: Hashing, n_jobs: int, random: np.random.Generator) -> Floats:
    """The fullest uplink's load over the mean of all, for each job: float64[n_jobs], at least 1.

    Each flow takes one uplink of its leaf at random.
    """
    factors = np.ones(n_jobs)
    for job in range(n_jobs):
        uplink = random.integers(hashing.uplinks, size=(hashing.leaves, hashing.flows))
        first = np.arange(hashing.leaves)[:, None] * hashing.uplinks
        load = np.bincount((first + uplink).ravel(), minlength=hashing.leaves * hashing.uplinks)
        factors[job] = load.max() * hashing.uplinks / hashing.flows
    return np.maximum(factors, 1.0)


def _slowed(estimate: TrainingEstimate) -> list[float]:
    """Times of the step with the network so many times slower."""
    job = estimate.job
    wire = job.cluster.wire_gbytes_per_s
    times = []
    for slowdown in SLOWDOWNS:
        slower = replace(job.cluster, wire_gbytes_per_s=wire / slowdown if wire else wire)
        again = TrainingJob(job.model, slower, job.plan)
        times.append(train(again, estimate.software).step_s)
    return times


@dataclass(frozen=True)
class Tail:
    """Time per output token with jitter of the network.

    Parameters
    ----------
    base_s, mean_s, p50_s, p99_s, p999_s
        Without jitter, and with: mean and quantiles over steps [s].
    """

    base_s: float
    mean_s: float
    p50_s: float
    p99_s: float
    p999_s: float


def decode_tail(
    estimate: ServingEstimate,
    jitter_us: float,
    latency_us: float = 0.0,
    n_steps: int = 2000,
    seed: int = 1,
) -> Tail:
    """Return what jitter of the network does to the time per output token.

    Parameters
    ----------
    estimate
        Serving without jitter.
    jitter_us
        Mean lateness of one rank's message in one collective, exponential [us].
    latency_us
        More latency of every collective than assumed, such as of one more tier of switches [us].
    n_steps
        Steps that are drawn.
    seed
        Of the random numbers.

    Notes
    -----
    Each collective waits for the slowest of its ranks, one after the other: latenesses add up.
    """
    faults = [
        Fault(name, _("the value is {value}.").format(value=value), f"0 … {MOST_LATE_US:,}")
        for name, value in (("jitter_us", jitter_us), ("latency_us", latency_us))
        if not 0 <= value <= MOST_LATE_US
    ]
    if faults:
        raise InputError(faults)
    decode = estimate.decode
    random = np.random.default_rng(seed)
    uniform = random.random((n_steps, max(1, decode.collectives)))
    late_s = slowest_of(decode.ranks, jitter_us / 1e6, uniform).sum(axis=1)
    always_s = decode.step_s + decode.collectives * latency_us / 1e6
    times = always_s + (late_s if decode.collectives else 0.0 * late_s)
    p50, p99, p999 = np.quantile(times, [0.5, 0.99, 0.999])
    return Tail(decode.step_s, float(times.mean()), float(p50), float(p99), float(p999))
