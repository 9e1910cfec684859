"""Many runs: what is varied, a key for all that each depends on, and their spread over seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.sim.named_faults import overrides_of
from gpufabric.sim.packet_doubts import doubts
from gpufabric.sim.packet_outcome import COUNTERS
from gpufabric.sim.packet_run import PACKET_MODEL, run_with_engine
from gpufabric.sim.profile import default_profile
from gpufabric.sim.run import Plant, traffic_of
from gpufabric.sim.run_key import content_of, key_of
from gpufabric.sim.scenario import (
    FABRIC_KEYS,
    PROFILE_KEYS,
    SWEEP_KEYS,
    Scenario,
    changed,
    check_scenario,
)
from gpufabric.sim.sweep_journal import Journal
from gpufabric.sim.traffic import PATTERNS, Traffic
from gpufabric.sim.traffic_result import MODEL, MODEL_VERSION
from gpufabric.topology.decision import Decision

__all__ = [
    "METRICS",
    "Axis",
    "Point",
    "SweepRow",
    "by_combination",
    "check_size",
    "combinations",
    "fabric_values",
    "make_points",
    "metric_names",
    "model_of",
    "parse_axes",
    "run_sweep",
    "spread_of",
    "warnings_of",
]

METRICS = (
    "completion_s",
    "fct_p50_us",
    "fct_p99_us",
    "fct_max_us",
    "slowdown_mean",
    "slowdown_p99",
    "bandwidth_share",
    "achieved_gbps",
    "jain_index",
    "finished",
    "unfinished",
    "busiest",
)
"""Numbers kept of every run; units in their names, ``busiest`` the highest utilisation [1]."""

MOST_POINTS = 100_000
MOST_NAMED = 10
"""Points that a warning names."""


@dataclass(frozen=True)
class Axis:
    """One thing that is varied: its key, and the texts of its values in order."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Parameters
    ----------
    number
        Its place in the table.
    values
        Text of the value of each axis.
    plant
        Number of the fabric that it runs on.
    scenario
        The run.
    key
        SHA-256 of everything that its result depends on, in hex.
    """

    number: int
    values: Mapping[str, str]
    plant: int
    scenario: Scenario
    key: str


@dataclass(frozen=True)
class SweepRow:
    """Result of one point: its metrics; None where a run has none."""

    point: Point
    metrics: Mapping[str, float | None]


def parse_axes(asked: Sequence[str], engine: str = "flow") -> tuple[Axis, ...]:
    """Return the axes that ``KEY=VALUE,VALUE`` ask for.

    Parameters
    ----------
    asked
        The words.
    engine
        With ``packet``, the parameters of a profile can be varied too.

    Raises
    ------
    InputError
        If a key is unknown or stands twice, or a value is missing or stands twice.
    """
    axes: list[Axis] = []
    faults = []
    known = (*SWEEP_KEYS, *(PROFILE_KEYS if engine == "packet" else ()))
    for words in asked:
        key, equals, values = words.partition("=")
        axis = Axis(key.strip(), tuple(value.strip() for value in values.split(",")))
        where = f"--sweep {words[:64]}"
        if axis.key in PROFILE_KEYS and engine != "packet":
            faults.append(Fault(where, _("is for --engine packet.")))
        elif axis.key not in known:
            what = _('"{key}" cannot be varied.').format(key=axis.key[:64])
            told = ", ".join(known[: len(SWEEP_KEYS) + 1])
            faults.append(Fault(where, what, told, nearest(axis.key, known)))
        elif not equals or "" in axis.values:
            faults.append(Fault(where, _("a value is missing."), _("KEY=VALUE,VALUE")))
        elif len(set(axis.values)) < len(axis.values):
            faults.append(Fault(where, _("a value stands twice.")))
        elif axis.key in {other.key for other in axes}:
            faults.append(Fault(where, _("the key stands twice."), _("each key once")))
        axes.append(axis)
    if faults:
        raise InputError(faults)
    return tuple(axes)


def make_points(
    scenario: Scenario,
    axes: Sequence[Axis],
    n_seeds: int,
    plants: Mapping[tuple[str, ...], int],
    fabrics: Sequence[tuple[str, str]],
) -> tuple[Point, ...]:
    """Return all combinations of the axes' values, each with all seeds, in order.

    Parameters
    ----------
    scenario
        What is not varied; its seed is the first of the seeds.
    axes
        What is varied.
    n_seeds
        Seeds of each combination.
    plants
        Number of the fabric for the values of the ``FABRIC_KEYS``; empty where not varied.
    fabrics
        Of each fabric the hash of all that runs depend on, and the protocol.

    Raises
    ------
    InputError
        If a value does not fit its key.
    """
    points: list[Point] = []
    for values in combinations(axes):
        plant = plants[fabric_values(values)]
        digest, protocol = fabrics[plant]
        varied = _varied(scenario, values, protocol)
        content = content_of(varied.pattern)
        for seed in range(scenario.seed, scenario.seed + n_seeds):
            mine = replace(varied, seed=seed)
            key = key_of(model_of(mine.engine), [digest, content, mine.to_json()])
            points.append(Point(len(points), values, plant, mine, key))
    return tuple(points)


def _varied(scenario: Scenario, values: Mapping[str, str], protocol: str) -> Scenario:
    """Return the scenario of one combination; a profile is chosen before its parameters."""
    if scenario.engine == "packet" and scenario.profile is None and "profile" not in values:
        scenario = replace(scenario, profile=default_profile(protocol))
    for key in sorted(values, key=lambda one: one != "profile"):
        if key not in FABRIC_KEYS:
            scenario = changed(scenario, key, values[key])
    check_scenario(scenario)
    return scenario


def combinations(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    """Yield all combinations of the axes' values; the last axis varies fastest."""
    keys = [axis.key for axis in axes]
    for texts in itertools.product(*(axis.values for axis in axes)):
        yield dict(zip(keys, texts, strict=True))


def fabric_values(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the ``FABRIC_KEYS``; empty where not varied."""
    return tuple(values.get(key, "") for key in FABRIC_KEYS)


def check_size(axes: Sequence[Axis], n_seeds: int) -> None:
    """Raise if the runs are none or too many.

    Raises
    ------
    InputError
        If they are.
    """
    count = n_seeds * math.prod(len(axis.values) for axis in axes)
    if n_seeds < 1 or count > MOST_POINTS:
        what = _("{n} runs.").format(n=count)
        raise InputError(Fault("--sweep, --seeds", what, _("1 to {most}").format(most=MOST_POINTS)))


def model_of(engine: str) -> tuple[str, int]:
    """Return name and version of an engine's model."""
    return PACKET_MODEL if engine == "packet" else (MODEL, MODEL_VERSION)


def metric_names(engine: str) -> tuple[str, ...]:
    """Return the numbers that are kept of every run of an engine."""
    return (*METRICS, *COUNTERS) if engine == "packet" else METRICS


def run_sweep(
    points: Sequence[Point],
    plants: Sequence[Plant],
    journal: Journal | None,
    told: Callable[[int], None],
) -> list[SweepRow]:
    """Return the result of every point, in order; those in the journal are not run again.

    Parameters
    ----------
    points, plants
        The runs and the fabrics.
    journal
        Where each result is put down as soon as it is there; None: nowhere.
    told
        Called with the number of results so far.

    Notes
    -----
    joblib's ``parallel_config`` says where the runs take place; the results are the same anywhere.
    """
    done = {} if journal is None else dict(journal.known(point.key for point in points))
    missing = [point for point in points if point.key not in done]
    told(len(points) - len(missing))
    for key, metrics in _results(missing, plants):
        done[key] = metrics
        if journal is not None:
            journal.add(key, metrics)
        told(len(points) - len(missing) + sum(point.key in done for point in missing))
    if journal is not None:
        journal.put_in_order([point.key for point in points])
    return [SweepRow(point, done[point.key]) for point in points]


def _results(
    points: Sequence[Point], plants: Sequence[Plant]
) -> Iterator[tuple[str, dict[str, float | None]]]:
    # Arrays are sent whole: mapped ones are read-only, and kernels would be compiled anew for them.
    yield from Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)(
        _jobs(points, plants)
    )


def _jobs(points: Sequence[Point], plants: Sequence[Plant]) -> Iterator[Any]:
    """Yield the calls; files of flows are read here, since a cluster may not have them."""
    flows: dict[tuple[int, str], Traffic] = {}
    for point in points:
        traffic = None
        if point.scenario.pattern not in PATTERNS:
            place = (point.plant, point.scenario.pattern)
            if place not in flows:
                flows[place] = traffic_of(plants[point.plant], point.scenario)
            traffic = flows[place]
        yield delayed(_work)(point.key, plants[point.plant], point.scenario, traffic)


def _work(
    key: str, plant: Plant, scenario: Scenario, traffic: Traffic | None
) -> tuple[str, dict[str, float | None]]:
    result = run_with_engine(plant, replace(scenario, n_bins=0), traffic)
    return key, metrics_of(result.summary(0))


def metrics_of(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the ``METRICS`` of a run's summary."""
    fct, slowdown = summary["fct_us"] or {}, summary["slowdown"] or {}
    finished = summary["flows"].get("finished", 0)
    values = (
        summary["completion_s"],
        fct.get("p50"),
        fct.get("p99"),
        fct.get("max"),
        slowdown.get("mean"),
        slowdown.get("p99"),
        summary["bandwidth"]["share"],
        summary["bandwidth"]["achieved_gbps"],
        summary["jain_index"],
        float(finished),
        float(summary["flows"]["total"] - finished),
        max((row["most"] for row in summary["tiers"]), default=None),
    )
    counters = {name: summary["packets"][name] for name in COUNTERS} if "packets" in summary else {}
    return {**dict(zip(METRICS, values, strict=True)), **counters}


def warnings_of(points: Sequence[Point]) -> list[str]:
    """Return what is hardly meant of the settings that are varied, each once, with its points."""
    places: dict[str, dict[str, None]] = {}
    for point in points:
        for doubt in _doubts_of(point.scenario):
            values = " ".join(f"{key}={value}" for key, value in point.values.items())
            places.setdefault(f"{doubt.topic}: {doubt.why}", {})[values] = None
    found = []
    for words, named in places.items():
        told = "; ".join(list(named)[:MOST_NAMED])
        if len(named) > MOST_NAMED:
            told += _(" and {n} more").format(n=len(named) - MOST_NAMED)
        found.append(f"{words} ({told})" if told else words)
    return found


def _doubts_of(scenario: Scenario) -> tuple[Decision, ...]:
    if scenario.profile is None:
        return ()
    config = scenario.profile.config
    overrides = (*config.overrides, *overrides_of(scenario.faults))
    return doubts(replace(config, overrides=overrides))


def by_combination(rows: Iterable[SweepRow]) -> list[tuple[Mapping[str, str], list[SweepRow]]]:
    """Return the rows of each combination of values together, in order."""
    groups: dict[tuple[str, ...], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row.point.values.values()), []).append(row)
    return [(group[0].point.values, group) for group in groups.values()]


def spread_of(rows: Sequence[SweepRow], metric: str) -> dict[str, float] | None:
    """Return mean, least, median and most of a metric over seeds; None where no run has it."""
    found = [row.metrics[metric] for row in rows]
    values = np.array([value for value in found if value is not None], np.float64)
    if not values.size:
        return None
    return {
        "mean": float(values.mean()),
        "min": float(values.min()),
        "median": float(np.median(values)),
        "max": float(values.max()),
    }
