"""Fits the constants of the closed form of collectives on the measured runs.

Every constant has a starting value from published numbers, and a weak pull towards it: where no
run says more, it stays there. Each run counts alike, whatever its number of points. Errors are
those of runs whose whole source was left out of the fit (cross-validation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration.runs import Run
from gpufabric.catalog.constants import gpu_generations, nccl_constants
from gpufabric.workload.closed_form import band_of, terms_of
from gpufabric.workload.cluster import TRANSPORTS
from gpufabric.workload.nccl_tuner import choose
from gpufabric.workload.operations import bus_factor

__all__ = ["Problem", "bands_of", "cross_validate", "fit", "problem_of", "start"]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

PULL = 0.3  # weight of a factor e between a constant and its start, against a run 0.1 off
PULL_OF_RATES = 2.0  # the same for rates inside a domain, which data sheets tell
USUAL_ERROR = 0.1  # relative; a point that misses by more counts less (soft L1)

WIDEST = 100.0  # factor between a constant and its start that no fit needs
# One direction of all NVLinks of a GPU by data sheet [GB/s], where it is known.
LINKS = {
    "volta": 150.0,
    "ampere": 300.0,
    "hopper": 450.0,
    "grace-hopper": 450.0,
    "blackwell": 900.0,
    "nvl72": 900.0,
    "cdna3": 448.0,
    "cdna4": 537.6,
}

# Starting values, where no better is known.
LATENCY_FACTOR, CHUNK_US, WIRE_CHUNK_US = 1.2, 8.0, 8.0
EFFICIENCY, HOP_FACTOR = 0.95, 1.5
HOPS_OF = {"efa": 8.0, "tcpx": 20.0, "tcpxo": 10.0, "tcp": 10.0}
EFFICIENCY_OF = {"tcpx": 0.5, "tcp": 0.2}
TREE_SHARE, PAIRWISE_SHARE = 1.0, 0.9  # of a ring's rate


@dataclass(frozen=True, eq=False)
class Problem:
    """All points as arrays; each of the constants by its number.

    Parameters
    ----------
    names
        Of the constants: table and key.
    first, most
        float64[n_constants]: logarithms of the starting values, and of the largest allowed.
    run
        int64[n]: run of each point.
    fixed_us, hops_us, moved_bytes, wire, inside_share, protocol_share
        float64[n]: as in ``closed_form.Terms``; `wire` is infinite inside one domain.
    latency, chunk, rate, efficiency, hop, wire_chunk
        int64[n]: numbers of the constants; the last three are -1 inside one domain.
    measured_us
        float64[n].
    """

    names: list[tuple[str, str]]
    first: Floats
    most: Floats
    run: Longs
    fixed_us: Floats
    hops_us: Floats
    moved_bytes: Floats
    wire: Floats
    inside_share: Floats
    protocol_share: Floats
    latency: Longs
    chunk: Longs
    rate: Longs
    efficiency: Longs
    hop: Longs
    wire_chunk: Longs
    measured_us: Floats

    def predict(self, logs: Floats) -> Floats:
        """float64[n]: times of all points for these constants [us]."""
        return self._parts(logs)[0]

    def _parts(self, logs: Floats) -> tuple[Floats, ...]:
        """Times, and what of them hangs on each kind of constant."""
        value = np.exp(logs)
        is_far = np.isfinite(self.wire)
        wire = np.where(is_far, self.wire * value[self.efficiency], np.inf)
        inside = np.where(self.rate < 0, np.inf, value[self.rate] * self.inside_share)
        moved_us = self.moved_bytes / (np.minimum(inside, wire) * self.protocol_share) / 1e3
        near_us = value[self.chunk]
        far_us = np.where(is_far, value[self.wire_chunk], 0.0)
        fixed_us = value[self.latency] * self.fixed_us
        hops_us = np.where(is_far, self.hops_us * value[self.hop], 0.0)
        root_us = np.sqrt((near_us + far_us) * moved_us)
        times = fixed_us + hops_us + moved_us + 2 * root_us
        moving_us = -(moved_us + root_us)
        return (
            times,
            fixed_us,
            hops_us,
            root_us * near_us / (near_us + far_us),
            root_us * far_us / (near_us + far_us),
            np.where(inside <= wire, moving_us, 0.0),
            np.where(inside > wire, moving_us, 0.0),
        )

    def slopes(self, logs: Floats) -> tuple[Floats, Floats]:
        """Times, and float64[n, n_constants]: derivatives of their logarithms by the constants'."""
        times, *parts = self._parts(logs)
        slopes = np.zeros((len(times), len(logs)))
        points = np.arange(len(times))
        columns = (
            self.latency,
            self.hop,
            self.chunk,
            self.wire_chunk,
            self.rate,
            self.efficiency,
        )
        for column, part in zip(columns, parts, strict=True):
            there = column >= 0
            slopes[points[there], column[there]] += (part / times)[there]
        return times, slopes


def start() -> dict[tuple[str, str], float]:
    """Return the starting value of every constant."""
    values: dict[tuple[str, str], float] = {}
    efficiencies = nccl_constants().nvls_efficiency
    for name, generation in gpu_generations().generations.items():
        rate = generation.nvlink_gbytes_per_s
        values["latency_factor", name] = LATENCY_FACTOR
        values["chunk_us", name] = CHUNK_US
        values["ring_gbytes_per_s", name] = rate
        values["tree_gbytes_per_s", name] = rate * TREE_SHARE
        values["nvls_gbytes_per_s", name] = rate * 2 * efficiencies.get(generation.tuner, 0.8) * 0.9
        values["pairwise_gbytes_per_s", name] = rate * PAIRWISE_SHARE
    for name in TRANSPORTS:
        values["wire_efficiency", name] = EFFICIENCY_OF.get(name, EFFICIENCY)
        values["hop_factor", name] = HOPS_OF.get(name, HOP_FACTOR)
        values["wire_chunk_us", name] = WIRE_CHUNK_US
    return values


def ceiling(table: str, key: str, value: float) -> float:
    """Return the largest value that a constant may take: no link sends more than it can.

    Rates inside a domain: the links of a GPU, one direction; with reduction in the switch, twice
    that. Efficiency: 1. All else: `WIDEST` times its starting value.
    """
    if table == "wire_efficiency":
        return 1.0
    if table.endswith("_gbytes_per_s"):
        rate = LINKS.get(key, gpu_generations().generations[key].nvlink_gbytes_per_s * 1.25)
        return rate * (2.0 if table.startswith(("nvls", "tree")) else 1.0)
    return value * WIDEST


def problem_of(runs: Sequence[Run]) -> Problem:
    """Return the points of all runs with the constants that each depends on."""
    values = start()
    names = list(values)
    number = {name: at for at, name in enumerate(names)}
    rows: list[tuple[float, ...]] = []
    for at, run in enumerate(runs):
        cluster = run.cluster
        factor = bus_factor(run.operation, cluster.n_ranks)
        choices = choose(cluster, run.operation, run.size_bytes, run.algorithm)
        for size, time, choice in zip(run.size_bytes, run.time_us, choices, strict=True):
            terms = terms_of(cluster, run.operation, choice)
            is_far = terms.wire_gbytes_per_s is not None
            generation, transport = cluster.generation, cluster.transport
            has_inside = cluster.gpus_per_domain > 1
            rate = number[f"{terms.family}_gbytes_per_s", generation] if has_inside else -1
            rows.append(
                (
                    at,
                    terms.inside_us,
                    terms.hops_us,
                    factor * size,
                    terms.wire_gbytes_per_s if terms.wire_gbytes_per_s is not None else math.inf,
                    terms.inside_share,
                    terms.protocol_share,
                    number["latency_factor", generation],
                    number["chunk_us", generation],
                    rate,
                    number["wire_efficiency", transport] if is_far else -1,
                    number["hop_factor", transport] if is_far else -1,
                    number["wire_chunk_us", transport] if is_far else -1,
                    time,
                )
            )
    columns = np.array(rows).T
    run, latency, chunk, rate, efficiency, hop, wire_chunk = columns[[0, *range(7, 13)]].astype(
        np.int64
    )
    fixed_us, hops_us, moved_bytes, wire, inside_share, protocol_share, measured_us = columns[
        [*range(1, 7), 13]
    ]
    return Problem(
        names,
        np.log(np.array(list(values.values()))),
        np.log([ceiling(*name, value) for name, value in values.items()]),
        run,
        fixed_us,
        hops_us,
        moved_bytes,
        wire,
        inside_share,
        protocol_share,
        latency,
        chunk,
        rate,
        efficiency,
        hop,
        wire_chunk,
        measured_us,
    )


def fit(
    problem: Problem, kept: NDArray[np.bool_] | None = None, first: Floats | None = None
) -> Floats:
    """Return the logarithms of the constants that fit the kept points best."""
    kept = np.ones(len(problem.run), np.bool_) if kept is None else kept
    count = np.bincount(problem.run[kept], minlength=int(problem.run.max()) + 1)
    weight = 1.0 / np.sqrt(np.maximum(count[problem.run], 1))
    weight = np.where(kept, weight, 0.0)
    is_rate = np.array([table.endswith("_gbytes_per_s") for table, _key in problem.names])
    pull = np.where(is_rate, PULL_OF_RATES, PULL)

    def misses(logs: Floats) -> Floats:
        ratio = np.log(problem.predict(logs) / problem.measured_us) / USUAL_ERROR
        return np.concatenate([weight * _soft(ratio), pull * (logs - problem.first)])

    def slopes(logs: Floats) -> Floats:
        times, by_constant = problem.slopes(logs)
        ratio = np.log(times / problem.measured_us) / USUAL_ERROR
        rows = (weight * _soft_slope(ratio) / USUAL_ERROR)[:, None] * by_constant
        return np.concatenate([rows, np.diag(pull)])

    bounds = (problem.first - np.log(WIDEST), problem.most)
    first = np.clip(problem.first if first is None else first, *bounds)
    found = least_squares(misses, first, jac=slopes, bounds=bounds, xtol=1e-6, ftol=1e-7)
    result: Floats = found.x
    return result


def _soft(ratio: Floats) -> Floats:
    """Soft L1 of a miss: like itself when small, like its root when large."""
    result: Floats = np.sign(ratio) * np.sqrt(2 * (np.sqrt(1 + ratio**2) - 1))
    return result


def _soft_slope(ratio: Floats) -> Floats:
    soft = np.abs(_soft(ratio))
    root = np.sqrt(1 + ratio**2)
    return np.where(soft > 1e-9, np.abs(ratio) / root / np.maximum(soft, 1e-9), 1.0)


def cross_validate(problem: Problem, runs: Sequence[Run]) -> Floats:
    """Return ln(measured / predicted) of every point, its whole source left out: float64[n]."""
    groups = [run.group for run in runs]
    every = fit(problem)
    errors = np.empty(len(problem.run))
    for group in dict.fromkeys(groups):
        is_out = np.array([groups[at] == group for at in problem.run])
        logs = fit(problem, ~is_out, every)
        errors[is_out] = np.log(problem.measured_us / problem.predict(logs))[is_out]
    return errors


def bands_of(runs: Sequence[Run]) -> NDArray[np.str_]:
    """Return the class of every point, as ``closed_form.band_of`` gives it."""
    return np.array([band_of(run.cluster, float(size)) for run in runs for size in run.size_bytes])
