"""A sweep of thresholds, loads and seeds on the packet engine, by however many workers."""

from __future__ import annotations

import joblib
import pytest

from gpufabric.sim.scenario import Scenario
from gpufabric.sim.sweep import Point, SweepRow, make_points, metric_names, parse_axes, run_sweep
from gpufabric.sim.traffic import PatternOptions
from tests.sim.plants import HALF_SMALL_LEAFS, plant

ASKED = ("ecn.kmin_bytes=5000,100000", "bytes=20kB,200kB")
N_SEEDS = 2


@pytest.fixture(scope="module")
def points() -> tuple[Point, ...]:
    scenario = Scenario("permutation", PatternOptions(1e4), n_gpus=32, engine="packet")
    fabrics = [(plant(HALF_SMALL_LEAFS, 32).digest, "roce")]
    return make_points(scenario, parse_axes(ASKED, "packet"), N_SEEDS, {("", ""): 0}, fabrics)


def rows_with(points: tuple[Point, ...], backend: str, n_workers: int) -> list[SweepRow]:
    with joblib.parallel_config(backend=backend, n_jobs=n_workers):
        return run_sweep(points, [plant(HALF_SMALL_LEAFS, 32)], None, lambda _done: None)


@pytest.fixture(scope="module")
def alone(points: tuple[Point, ...]) -> list[SweepRow]:
    return rows_with(points, "sequential", 1)


@pytest.mark.parametrize(("backend", "n_workers"), [("threading", 3), ("loky", 2)])
def test_results_are_the_same_whatever_the_workers(
    points: tuple[Point, ...], alone: list[SweepRow], backend: str, n_workers: int
) -> None:
    assert rows_with(points, backend, n_workers) == alone


def test_thresholds_loads_and_seeds_matter(alone: list[SweepRow]) -> None:
    assert set(alone[0].metrics) == set(metric_names("packet"))
    assert all(row.metrics["unfinished"] == 0 for row in alone)
    marks = [row.metrics["ecn_marks"] or 0 for row in alone]
    low, high = marks[:4], marks[4:]
    assert sum(low) > sum(high)
    assert low[0] != low[2]
    assert low[0] != low[1] or low[2] != low[3]
