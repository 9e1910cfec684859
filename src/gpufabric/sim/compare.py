"""The same traffic over and over under several settings: how long it takes, and how evenly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from gpufabric.sim.compare_variants import Variant
from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_outcome import COUNTERS, PacketOutcome
from gpufabric.sim.packet_prepared import PreparedRun
from gpufabric.sim.packet_run import PACKET_MODEL
from gpufabric.sim.run_key import content_of, key_of
from gpufabric.sim.sweep_journal import Journal

__all__ = ["Compared", "Iteration", "Trial", "run_trials"]

Floats = NDArray[np.float64]

PS_PER_S = 1e12
STREAM = 4
"""Number of the random stream that the hosts' delays are drawn from."""
CHUNK = 5
"""Iterations that one worker does at a time."""

PERCENTILES = (("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0))


@dataclass(frozen=True)
class Trial:
    """One variant on one fabric.

    Parameters
    ----------
    fabric
        Name of the fabric.
    variant
        The settings.
    prepared
        Number of the prepared run that it takes place on.
    """

    fabric: str
    variant: Variant
    prepared: int


class Iteration(NamedTuple):
    """One iteration: its time, from the first start [s]; completion times; counters."""

    took_s: float  # nan where a flow did not finish
    fct_s: Floats  # of the flows over the network that finished
    unfinished: int
    counters: dict[str, float]

    def to_metrics(self) -> dict[str, Any]:
        """Return all of it as a journal keeps it."""
        took_s = self.took_s if np.isfinite(self.took_s) else None
        head = {"took_s": took_s, "fct_s": self.fct_s.tolist(), "unfinished": self.unfinished}
        return {**head, **self.counters}

    @classmethod
    def from_metrics(cls, metrics: Mapping[str, Any]) -> Iteration | None:
        """Return what a journal kept; None if something is missing."""
        if not {"took_s", "fct_s", "unfinished", *COUNTERS} <= set(metrics):
            return None
        took_s = metrics["took_s"]
        return cls(
            np.nan if took_s is None else took_s,
            np.array(metrics["fct_s"], np.float64),
            metrics["unfinished"],
            {name: metrics[name] for name in COUNTERS},
        )


@dataclass(frozen=True, eq=False)
class Compared:
    """All iterations of one trial.

    Parameters
    ----------
    trial
        What was run.
    iterations
        In order.
    """

    trial: Trial
    iterations: tuple[Iteration, ...]

    @property
    def took_s(self) -> Floats:
        """float64[n]: times of the iterations in which all flows finished [s]."""
        took_s = np.array([one.took_s for one in self.iterations])
        return np.sort(took_s[np.isfinite(took_s)])

    @property
    def fct_s(self) -> Floats:
        """float64[n]: completion times of all flows of all iterations [s]."""
        return np.sort(np.concatenate([one.fct_s for one in self.iterations]))

    @property
    def has_drops(self) -> bool:
        """Whether some packet was lost."""
        return any(one.counters["drops"] for one in self.iterations)

    def summary(self) -> dict[str, Any]:
        """Return what the table shows, as JSON carries it."""
        took_s = self.took_s
        n_cut = len(self.iterations) - len(took_s)
        n_late = int(sum(one.unfinished for one in self.iterations))
        counters = {
            name: float(np.mean([one.counters[name] for one in self.iterations]))
            for name in COUNTERS
        }
        return {
            "fabric": self.trial.fabric,
            "variant": self.trial.variant.name,
            "protocol": self.trial.variant.protocol,
            "profile": self.trial.variant.profile.to_json(),
            "faults": [repr(fault) for fault in self.trial.variant.faults],
            "iterations": len(self.iterations),
            "unfinished_iterations": n_cut,
            "unfinished_flows": n_late,
            "iteration_us": _spread(took_s * 1e6, n_cut),
            "coefficient_of_variation": None if n_cut else _variation(took_s),
            "fct_us": _spread(self.fct_s * 1e6, n_late),
            "per_iteration": counters,
        }


def _spread(values: Floats, n_missing: int) -> dict[str, float | None] | None:
    """Return mean and percentiles; what never came is longer than all, so a percentile may be None.

    None where nothing came at all.
    """
    if not values.size:
        return None
    found: dict[str, float | None] = {"mean": None if n_missing else float(values.mean())}
    for name, cut in PERCENTILES:
        at = max(0, math.ceil(cut / 100 * (values.size + n_missing) - 1e-9) - 1)
        found[name] = float(values[at]) if at < values.size else None
    return found


def _variation(values: Floats) -> float | None:
    """Return standard deviation over mean; None for fewer than two values."""
    return float(values.std(ddof=1) / values.mean()) if values.size > 1 else None


def run_trials(
    trials: Sequence[Trial],
    runs: Sequence[PreparedRun],
    n_iterations: int,
    times: tuple[float, float],
    told: Callable[[int], None],
    journal: Journal | None = None,
) -> list[Compared]:
    """Return all iterations of all trials, in order.

    Parameters
    ----------
    trials
        What is compared.
    runs
        Prepared runs that they take place on; queue pairs keep their paths in all iterations.
    n_iterations
        Iterations of each; all trials see the same ones.
    times
        Each iteration, every host begins so much later at most, drawn evenly [us]; end of an
        iteration, finished or not [s].
    told
        Called with the number of iterations so far.
    journal
        Where each iteration is put down as soon as it is there; those in it are not run again.

    Notes
    -----
    joblib's ``parallel_config`` says where the runs take place; the results are the same anywhere.
    """
    keys = _keys(trials, runs, n_iterations, times)
    found = _known(keys, journal)
    told(sum(len(one) for one in found))
    for trial, iterations in Parallel(
        return_as="generator_unordered", batch_size=1, max_nbytes=None
    )(_jobs(trials, runs, found, n_iterations, times)):
        found[trial].update(iterations)
        if journal is not None:
            for number, iteration in iterations.items():
                journal.add(keys[trial][number], iteration.to_metrics())
        told(sum(len(one) for one in found))
    if journal is not None:
        journal.put_in_order([key for row in keys for key in row])
    return [
        Compared(trial, tuple(found[at][number] for number in range(n_iterations)))
        for at, trial in enumerate(trials)
    ]


def _keys(
    trials: Sequence[Trial],
    runs: Sequence[PreparedRun],
    n_iterations: int,
    times: tuple[float, float],
) -> list[list[str]]:
    """Return what a journal knows each iteration by: all that its result depends on."""
    keys = []
    for trial in trials:
        run, variant = runs[trial.prepared], trial.variant
        content = content_of(run.scenario.pattern)
        parts = [run.plant.digest, content, run.scenario.to_json(), *times]
        parts += [variant.profile.to_json(), [repr(fault) for fault in variant.faults]]
        one = key_of(PACKET_MODEL, ["compare", *parts])
        keys.append([f"{one}-{number}" for number in range(n_iterations)])
    return keys


def _known(keys: Sequence[Sequence[str]], journal: Journal | None) -> list[dict[int, Iteration]]:
    """Return the iterations of each trial that the journal has."""
    found: list[dict[int, Iteration]] = []
    for row in keys:
        done = {} if journal is None else dict(journal.known(row))
        mine = {at: Iteration.from_metrics(done[key]) for at, key in enumerate(row) if key in done}
        found.append({at: one for at, one in mine.items() if one is not None})
    return found


def _jobs(
    trials: Sequence[Trial],
    runs: Sequence[PreparedRun],
    found: Sequence[Mapping[int, Iteration]],
    n_iterations: int,
    times: tuple[float, float],
) -> Iterator[Any]:
    for first in range(0, n_iterations, CHUNK):
        for at, trial in enumerate(trials):
            last = min(first + CHUNK, n_iterations)
            numbers = tuple(number for number in range(first, last) if number not in found[at])
            if numbers:
                yield delayed(_work)(at, runs[trial.prepared], trial.variant, numbers, times)


def _work(
    trial: int,
    run: PreparedRun,
    variant: Variant,
    numbers: Sequence[int],
    times: tuple[float, float],
) -> tuple[int, dict[int, Iteration]]:
    skew_us, until_s = times
    return trial, {one: _iteration(run, variant, one, skew_us, until_s) for one in numbers}


def _iteration(
    run: PreparedRun, variant: Variant, number: int, skew_us: float, until_s: float
) -> Iteration:
    """Run one iteration; its number draws marks and the hosts' delays."""
    seed = run.scenario.seed
    traffic = run.routes.traffic
    random = np.random.default_rng(np.random.SeedSequence([seed, STREAM, number]))
    late_s = random.uniform(0.0, skew_us * 1e-6, run.plant.endpoints.n_hosts)
    start_s = traffic.start_s + late_s[run.plant.endpoints.block[traffic.src]]
    problem = run.problem(variant.profile, start_s, variant.faults)
    config = run.config(seed + number, variant.profile)
    result = simulate_packets(problem, config, until_ps=round(until_s * PS_PER_S))
    done = result.flows.delivered_ps >= 0
    flow = run.pairs.flow
    last_s = np.zeros(traffic.n_flows)
    np.maximum.at(last_s, flow, result.flows.delivered_ps / PS_PER_S)
    late = np.bincount(flow, ~done, minlength=traffic.n_flows) > 0
    used = np.bincount(flow, minlength=traffic.n_flows) > 0
    end_s = last_s + run.host_s
    whole = used & ~late
    unfinished = int(late.sum())
    took_s = float(end_s[whole].max(initial=0.0) - start_s[used].min(initial=np.inf))
    return Iteration(
        took_s=np.nan if unfinished or not used.any() else took_s,
        fct_s=(end_s - start_s)[whole],
        unfinished=unfinished,
        counters=PacketOutcome(result, run.pairs, variant.profile, problem).counters(),
    )
