"""Fits the constants of the closed form of collectives on the measured runs.

Every constant has a starting value from published numbers, and a pull towards it: where no run
says more, it stays there. Latencies and chunks of all generations are pulled towards one common
value, which is fitted too, so that what few runs say of one generation is held against the others.
Runs count nearly alike, whatever their number of points; several of one source count less each.
Points that miss by far count little (Cauchy's loss). Errors are those of runs whose whole source
was left out of the fit (cross-validation).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.sparse import csr_array, vstack

from calibration.runs import Run
from gpufabric.catalog.constants import gpu_generations, nccl_constants
from gpufabric.workload.closed_form import band_of, terms_of
from gpufabric.workload.nccl_tuner import choose
from gpufabric.workload.operations import bus_factor

__all__ = [
    "Problem",
    "bands_of",
    "cross_validate",
    "fit",
    "fitted",
    "interval_of",
    "problem_of",
    "start",
]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Pulls: weight of a factor e between a constant and where it is pulled to, against a run of many
# points that misses by 10 %. A pull of 10 says: known within 10 %.
PULL_OF_COMMON = 0.3  # of a common value to its start
PULL_OF_OWN = 0.5  # of a generation's latency and chunk to the common value
PULL_OF_NETWORK = 0.5  # of what a hop costs
PULL_OF_WIRE_CHUNK = 1.0  # of a network's chunk to the common value
PULL_OF_RATES = 4.0  # of rates inside a domain, which data sheets tell
PULL_OF_EFFICIENCY = 10.0  # of a NIC's share of its data sheet
UNIT = 0.1  # relative error that counts one
USUAL_ERROR = 0.15  # relative; a point that misses by much more hardly counts
FEW_POINTS = 2.0  # a run of so many points counts half
LEAST_WIDTH = 0.02  # of an interval to each side

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

NETWORKS = ("none", "rdma", "efa-v1", "efa", "tcpx", "tcpxo", "tcp", "slingshot")

# Starting values. Of a NIC's rate, 46 to 48 of 50 GB/s arrive (NVIDIA/nccl-tests issue 290); the
# others are assumed.
LATENCY_FACTOR, CHUNK_US, WIRE_CHUNK_US = 1.2, 8.0, 8.0
EFFICIENCY, NETWORK_US = 0.95, 2.0
NETWORK_US_OF = {
    "efa-v1": 40.0,
    "efa": 30.0,
    "tcpx": 200.0,
    "tcpxo": 30.0,
    "tcp": 50.0,
    "slingshot": 5.0,
}
EFFICIENCY_OF = {"efa-v1": 0.85, "tcpx": 0.9, "tcp": 0.2}
TREE_SHARE, PAIRWISE_SHARE = 1.0, 0.9  # of a ring's rate

COMMON = {
    "latency_factor": PULL_OF_OWN,
    "chunk_us": PULL_OF_OWN,
    "wire_chunk_us": PULL_OF_WIRE_CHUNK,
}
"""Tables whose values are pulled to a common one, and how much."""


@dataclass(frozen=True, eq=False)
class Problem:
    """All points as arrays; each of the constants by its number.

    Parameters
    ----------
    names
        Of the constants: table and key.
    first, most
        float64[n_constants]: logarithms of the starting values, and of the largest allowed.
    source
        int64[n]: source of each point.
    run
        int64[n]: run of each point.
    fixed_us, n_hops, moved_bytes, wire, inside_share, protocol_share
        float64[n]: as in ``closed_form.Terms``, with hops as NCCL reckons them in `fixed_us`;
        `wire` is infinite inside one domain.
    latency, chunk, rate, efficiency, network, wire_chunk
        int64[n]: numbers of the constants; the last three are -1 inside one domain.
    measured_us
        float64[n].
    """

    names: list[tuple[str, str]]
    first: Floats
    most: Floats
    run: Longs
    source: Longs
    fixed_us: Floats
    n_hops: Floats
    moved_bytes: Floats
    wire: Floats
    inside_share: Floats
    protocol_share: Floats
    latency: Longs
    chunk: Longs
    rate: Longs
    efficiency: Longs
    network: Longs
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
        hops_us = np.where(is_far, self.n_hops * value[self.network], 0.0)
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
            self.network,
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
    for name in NETWORKS:
        values["wire_efficiency", name] = EFFICIENCY_OF.get(name, EFFICIENCY)
        values["network_us", name] = NETWORK_US_OF.get(name, NETWORK_US)
        values["wire_chunk_us", name] = WIRE_CHUNK_US
    values |= {
        (table, "common"): value
        for table, value in zip(COMMON, (LATENCY_FACTOR, CHUNK_US, WIRE_CHUNK_US), strict=True)
    }
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
    sources = list(dict.fromkeys(run.group for run in runs))
    rows = [
        (at, sources.index(run.group), *row)
        for at, run in enumerate(runs)
        for row in _points(run, number)
    ]
    columns = np.array(rows).T
    run, source, latency, chunk, rate, efficiency, network, wire_chunk = columns[:8].astype(
        np.int64
    )
    fixed_us, n_hops, moved_bytes, wire, inside_share, protocol_share, measured_us = columns[8:]
    return Problem(
        names,
        np.log(np.array(list(values.values()))),
        np.log([ceiling(*name, value) for name, value in values.items()]),
        run,
        source,
        fixed_us,
        n_hops,
        moved_bytes,
        wire,
        inside_share,
        protocol_share,
        latency,
        chunk,
        rate,
        efficiency,
        network,
        wire_chunk,
        measured_us,
    )


def _points(run: Run, number: dict[tuple[str, str], int]) -> Iterator[tuple[float, ...]]:
    """Numbers of the constants, terms and time of each point of a run."""
    cluster = run.cluster
    generation, network = cluster.generation, cluster.network
    factor = bus_factor(run.operation, cluster.n_ranks)
    choices = choose(cluster, run.operation, run.size_bytes, run.algorithm)
    for size, time, choice in zip(run.size_bytes, run.time_us, choices, strict=True):
        terms = terms_of(cluster, run.operation, choice)
        wire = terms.wire_gbytes_per_s
        rate = (f"{terms.family}_gbytes_per_s", generation)
        by_network = (
            -1 if wire is None else number[table, network]
            for table in ("wire_efficiency", "network_us", "wire_chunk_us")
        )
        yield (
            number["latency_factor", generation],
            number["chunk_us", generation],
            number[rate] if cluster.gpus_per_domain > 1 else -1,
            *by_network,
            terms.inside_us + terms.hops_us,
            terms.n_hops,
            factor * size,
            math.inf if wire is None else wire,
            terms.inside_share,
            terms.protocol_share,
            time,
        )


def _pulls(problem: Problem) -> tuple[Floats, Floats]:
    """float64[n_constants, n_constants] and [n_constants]: what pulls, times logarithms, less."""
    number = {name: at for at, name in enumerate(problem.names)}
    matrix = np.zeros((len(number), len(number)))
    target = np.zeros(len(number))
    for (table, key), at in number.items():
        if table in COMMON and key != "common":
            matrix[at, at], matrix[at, number[table, "common"]] = COMMON[table], -COMMON[table]
            continue
        pull = PULL_OF_COMMON
        if table.endswith("_gbytes_per_s"):
            pull = PULL_OF_RATES
        elif table in {"wire_efficiency", "network_us"}:
            pull = PULL_OF_EFFICIENCY if table == "wire_efficiency" else PULL_OF_NETWORK
        matrix[at, at] = pull
        target[at] = pull * problem.first[at]
    return matrix, target


def weights(problem: Problem, kept: NDArray[np.bool_]) -> Floats:
    """float64[n]: of the kept points, by the runs and sources that they belong to."""
    count = np.bincount(problem.run[kept], minlength=int(problem.run.max()) + 1)
    pairs = np.unique(np.stack([problem.source[kept], problem.run[kept]]), axis=1)
    n_runs = np.bincount(pairs[0], minlength=int(problem.source.max()) + 1)
    of_run = 1.0 / np.sqrt(count[problem.run] + FEW_POINTS)
    of_source = np.maximum(n_runs[problem.source], 1) ** -0.25
    return np.where(kept, of_run * of_source, 0.0)


def fit(
    problem: Problem, kept: NDArray[np.bool_] | None = None, first: Floats | None = None
) -> Floats:
    """Return the logarithms of the constants that fit the kept points best."""
    kept = np.ones(len(problem.run), np.bool_) if kept is None else kept
    weight = weights(problem, kept) * USUAL_ERROR / UNIT
    matrix, target = _pulls(problem)
    sparse = csr_array(matrix)  # of a point's slopes all but six are zero

    def misses(logs: Floats) -> Floats:
        ratio = np.log(problem.predict(logs) / problem.measured_us) / USUAL_ERROR
        return np.concatenate([weight * _soft(ratio), sparse @ logs - target])

    def slopes(logs: Floats) -> csr_array:
        times, by_constant = problem.slopes(logs)
        ratio = np.log(times / problem.measured_us) / USUAL_ERROR
        rows = (weight * _soft_slope(ratio) / USUAL_ERROR)[:, None] * by_constant
        return vstack([csr_array(rows), sparse], format="csr")

    bounds = (problem.first - np.log(WIDEST), problem.most)
    first = np.clip(problem.first if first is None else first, *bounds)
    found = least_squares(misses, first, jac=slopes, bounds=bounds, xtol=1e-6, ftol=1e-7)
    result: Floats = found.x
    return result


def fitted(problem: Problem, logs: Floats) -> dict[tuple[str, str], float]:
    """Return the constants by table and key, without the common values."""
    values = zip(problem.names, np.exp(logs).tolist(), strict=True)
    return {name: value for name, value in values if name[1] != "common"}


def _soft(ratio: Floats) -> Floats:
    """Root of Cauchy's loss of a miss: like itself when small, hardly growing when large."""
    result: Floats = np.sign(ratio) * np.sqrt(np.log1p(ratio**2))
    return result


def _soft_slope(ratio: Floats) -> Floats:
    soft = np.abs(_soft(ratio))
    inside = np.abs(ratio) / (1 + ratio**2) / np.maximum(soft, 1e-9)
    return np.where(soft > 1e-9, inside, 1.0)


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


def interval_of(errors: Floats, sources: Longs) -> tuple[float, float]:
    """Return between which errors 80 % of the points of a source yet unseen are to be expected.

    Notes
    -----
    Points of one source miss alike, so that k sources tell little of how far the next one may be:
    instead of the quantiles 0.1 and 0.9, those of ``0.1 (k - 1) / (k + 1)`` are taken, as in
    prediction intervals from order statistics (S. Wilks, 1941).
    """
    k = len(set(sources.tolist()))
    tail = 0.1 * (k - 1) / (k + 1)
    low, high = np.quantile(errors, [tail, 1 - tail]).tolist()
    return min(low, -LEAST_WIDTH), max(high, LEAST_WIDTH)


def bands_of(runs: Sequence[Run]) -> NDArray[np.str_]:
    """Return the class of every point, as ``closed_form.band_of`` gives it."""
    return np.array([band_of(run.cluster, float(size)) for run in runs for size in run.size_bytes])
