from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from calibration.collectives import Problem, fit, interval_of, problem_of, weights
from calibration.runs import FOLDER, Run, read_runs
from calibration.training_report import PAGE as TRAINING_PAGE
from calibration.validation import FIGURE, PAGE, TARGETS, page_text, targets
from calibration.validation_figure import figure_text
from calibration.validation_points import Points, nccl_us, plain_us, points_of
from calibration.write_fit import TARGET, fit_text
from gpufabric.catalog.constants import collective_fit
from gpufabric.workload.closed_form import estimate

SHARED = Path(__file__).parents[3] / "shared/measurements/nccl_tests.csv"


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return read_runs()


@pytest.fixture(scope="module")
def problem(runs: list[Run]) -> Problem:
    return problem_of(runs)


@pytest.fixture(scope="module")
def points(runs: list[Run]) -> Points:
    return points_of(runs)


def numbers(text: str) -> tuple[str, list[float]]:
    """A text without its numbers, and these."""
    pattern = r"(?<![\w.@])[-+]?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])"
    return re.sub(pattern, "#", text), [float(found) for found in re.findall(pattern, text)]


def test_the_constants_are_those_that_the_runs_give(runs: list[Run]) -> None:
    # Other processors round otherwise in the last digits, and a fit ends a little elsewhere.
    ours, theirs = numbers(TARGET.read_text()), numbers(fit_text(runs))
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], rel=0.01, abs=0.002)


def test_the_fit_reckons_as_the_product_does(runs: list[Run], problem: Problem) -> None:
    predicted = problem.predict(fit(problem))
    at = 0
    for run in runs:
        found = estimate(run.cluster, run.operation, run.size_bytes, run.algorithm)
        here = slice(at, at := at + len(run.size_bytes))
        assert found.time_us == pytest.approx(predicted[here], rel=0.01), run.name
        assert found.extrapolates == (), run.name  # it was fitted on this very run


def test_slopes_are_those_of_the_times(problem: Problem) -> None:
    logs = fit(problem)
    times, slopes = problem.slopes(logs)
    step = 1e-6
    for at in range(len(logs)):
        moved = logs.copy()
        moved[at] += step
        by_hand = np.log(problem.predict(moved) / times) / step
        assert slopes[:, at] == pytest.approx(by_hand, abs=1e-4), problem.names[at]


def test_the_targets_are_met(points: Points) -> None:
    for place, error in targets(points).items():
        assert error <= TARGETS[place], place


def test_intervals_hold_what_they_say(points: Points) -> None:
    errors = np.log1p(points.error)
    for band, residuals in collective_fit().residuals.items():
        here = points.band == band
        held = np.mean((errors[here] >= residuals.low) & (errors[here] <= residuals.high))
        assert 0.7 <= held <= 0.9, band
        # The same where the point's own source had no say in the interval either.
        assert 0.65 <= points.is_held[here].mean() <= 0.9, band


def test_an_interval_by_hand() -> None:
    # Three sources: a tail of 0.1 x 2 / 4 to each side of 0 … 1; one source tells only its ends.
    errors = np.linspace(0.0, 1.0, 101)
    assert interval_of(errors, np.arange(101) % 3) == pytest.approx((-0.02, 0.95))
    assert interval_of(errors - 0.5, np.zeros(101, np.int64)) == pytest.approx((-0.5, 0.5))


def test_runs_and_sources_count_nearly_alike(problem: Problem) -> None:
    every = np.ones(len(problem.run), np.bool_)
    weight = weights(problem, every)
    total = np.bincount(problem.run, weight**2)
    count = np.bincount(problem.run)
    source = np.bincount(problem.run, problem.source) / count
    n_runs = np.bincount(source.astype(np.int64))[source.astype(np.int64)]
    assert total == pytest.approx(count / (count + 2) / np.sqrt(n_runs))
    out = problem.source == 0
    assert (weights(problem, ~out)[out] == 0).all()


def test_the_plain_model_by_hand(runs: list[Run]) -> None:
    run = next(run for run in runs if run.name == "iss_nccltests252_h100_2n_ring")
    # 4 + 4 H100 with 4 x 25 GB/s: 90 GB/s and 30 us; 2 x 7 / 8 of the bytes.
    assert plain_us(run) == pytest.approx(30 + 1.75 * run.size_bytes / 90e3)
    # NCCL: base 8.4, 12 steps of 3.4, 2 of 14, all times 1.4; 100 GB/s x 8 / 14.
    latency = 1.4 * (8.4 + 12 * 3.4 + 2 * 14)
    assert nccl_us(run) == pytest.approx(latency + run.size_bytes / (100e3 * 8 / 14))


def test_the_page_tells_what_the_runs_give(runs: list[Run], points: Points) -> None:
    # The order of the runs missed most may change with the last digits.
    made = page_text(runs, points, TRAINING_PAGE.read_text())
    ours, theirs = (numbers(without_worst(text)) for text in (PAGE.read_text(), made))
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], rel=0.05, abs=2.0)


def without_worst(text: str) -> str:
    before, rest = text.split("## Runs missed most")
    return before + rest.split("## Others")[1]


def test_the_figure_shows_every_point(runs: list[Run], points: Points) -> None:
    names = [run.name for run in runs]
    made = figure_text(points, names)
    n_large = int((points.size_bytes >= 2**20).sum())
    for text in (made, FIGURE.read_text()):
        assert text.count("measured") - text.count("measured [GB/s]") >= len(points.run)
        assert len(re.findall(r"<circle [^>]*><title>", text)) == len(points.run) + n_large
    assert all(name in made for name in names)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared measurements are not here")
def test_our_points_are_the_published_ones(runs: Sequence[Run]) -> None:
    published: dict[str, set[tuple[float, float, float]]] = {}
    with SHARED.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if row["size_bytes"]:
                published.setdefault(row["run_id"], set()).add(
                    values(row, ("size_bytes", "time_us", "busbw_gbps_bytes"))
                )
    with (FOLDER / "collective_points.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            point = values(row, ("size_bytes", "time_us", "busbw_gbytes_per_s"))
            assert point in published[row["run"]], row
    assert {run.name for run in runs} <= set(published)


def values(row: dict[str, str], fields: tuple[str, str, str]) -> tuple[float, float, float]:
    first, second, third = (float(row[field] or 0) for field in fields)
    return first, second, third
