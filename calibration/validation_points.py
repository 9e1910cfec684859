"""Every measured point with what was predicted for it, its whole source left out of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.collectives import (
    LINKS,
    bands_of,
    cross_validate,
    fit,
    interval_of,
    problem_of,
)
from calibration.runs import Run
from gpufabric.workload.closed_form import wire_factor
from gpufabric.workload.nccl_tuner import Choice, allowed, choose, tuner_times

__all__ = ["Points", "points_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Names = NDArray[np.str_]

# The plain model's constants: those of calculon's H100 systems (calculon-ai/calculon,
# systems/h100_80g_nvl8.json): 65 % of NVLink and 10 us, 90 % of the network and 20 us.
PLAIN_SHARE, PLAIN_US = 0.65, 10.0
PLAIN_WIRE_SHARE, PLAIN_WIRE_US = 0.9, 20.0

FABRICS = {
    "none": "one NVLink or xGMI domain",
    "rdma": "InfiniBand and RoCE v2",
    "efa-v1": "EFA, first generation",
    "efa": "EFA",
    "tcpx": "TCPX",
    "tcpxo": "TCPXO",
    "slingshot": "Slingshot",
}


@dataclass(frozen=True, eq=False)
class Points:
    """All points, run after run.

    Parameters
    ----------
    run
        int64[n]: index of the run.
    size_bytes, measured_us
        float64[n].
    bus_gbytes_per_s
        float64[n]: measured bus bandwidth [GB/s].
    error, fit_error, plain_error, nccl_error
        float64[n]: predicted over measured bus bandwidth, less 1: with the source left out, with
        it, by the plain latency-and-bandwidth model, and by NCCL's own cost model.
    is_held
        bool[n]: whether the 80 % interval of the other sources of its class holds the point.
    band, fabric, generation, algorithm
        str[n].
    is_good
        bool[n]: whether the run is of grade A.
    """

    run: NDArray[np.int64]
    size_bytes: Floats
    measured_us: Floats
    bus_gbytes_per_s: Floats
    error: Floats
    fit_error: Floats
    plain_error: Floats
    nccl_error: Floats
    is_held: Bools
    band: Names
    fabric: Names
    generation: Names
    algorithm: Names
    is_good: Bools

    @property
    def is_far(self) -> Bools:
        """bool[n]: whether the run was on more than one domain."""
        result: Bools = self.fabric != FABRICS["none"]
        return result


def points_of(runs: Sequence[Run]) -> Points:
    """Return the points of all runs."""
    problem = problem_of(runs)
    left_out = cross_validate(problem, runs)
    inside = np.log(problem.measured_us / problem.predict(fit(problem)))
    bands = bands_of(runs)
    sizes = np.concatenate([run.size_bytes for run in runs])
    choices = [
        choice
        for run in runs
        for choice in choose(run.cluster, run.operation, run.size_bytes, run.algorithm)
    ]
    places = [runs[at].cluster for at in problem.run]
    return Points(
        problem.run,
        sizes,
        problem.measured_us,
        problem.moved_bytes / problem.measured_us / 1e3,
        np.expm1(left_out),
        np.expm1(inside),
        problem.measured_us / np.concatenate([plain_us(run) for run in runs]) - 1,
        problem.measured_us / np.concatenate([nccl_us(run) for run in runs]) - 1,
        _held(left_out, bands, problem.source),
        bands,
        np.array([FABRICS["none" if c.n_domains == 1 else c.network] for c in places]),
        np.array([cluster.generation for cluster in places]),
        np.array([choice.algorithm for choice in choices]),
        np.array([runs[at].grade == "A" for at in problem.run]),
    )


def _held(left_out: Floats, bands: Names, sources: NDArray[np.int64]) -> Bools:
    """Whether the interval that the other sources of its class give holds each point."""
    held = np.zeros(len(left_out), np.bool_)
    for band in sorted(set(bands.tolist())):
        for source in sorted(set(sources[bands == band].tolist())):
            mine = (bands == band) & (sources == source)
            others = (bands == band) & (sources != source)
            low, high = interval_of(left_out[others], sources[others])
            held[mine] = (left_out[mine] >= low) & (left_out[mine] <= high)
    return held


def plain_us(run: Run) -> Floats:
    """Time by latency and bandwidth alone, as analytical simulators reckon it: float64[n]."""
    cluster = run.cluster
    nvlink = LINKS.get(cluster.generation, cluster.facts.nvlink_gbytes_per_s)
    bus = np.inf if cluster.gpus_per_domain == 1 else PLAIN_SHARE * nvlink
    latency_us = PLAIN_US
    if cluster.n_domains > 1 and cluster.wire_gbytes_per_s is not None:
        choice = allowed(cluster, run.operation)[0]
        wire = cluster.wire_gbytes_per_s * wire_factor(cluster, run.operation, choice)
        bus = min(bus, PLAIN_WIRE_SHARE * wire)
        latency_us += PLAIN_WIRE_US
    result: Floats = latency_us + run.factor * run.size_bytes / bus / 1e3
    return result


def nccl_us(run: Run) -> Floats:
    """Time by NCCL's own cost model with its published constants: float64[n]."""
    cluster, op, sizes = run.cluster, run.operation, run.size_bytes
    choices = choose(cluster, op, sizes, run.algorithm)
    if choices[0].algorithm == "Pairwise":  # for which NCCL has no model
        ring = tuner_times(cluster, "all_gather", Choice("Ring", "Simple"), sizes)
        result: Floats = ring
        return result
    return np.array(
        [
            tuner_times(cluster, op, choice, sizes[at : at + 1])[0]
            for at, choice in enumerate(choices)
        ]
    )
