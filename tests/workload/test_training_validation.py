"""The model of training steps against published runs, in this project's own form."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from calibration.published_training import COLUMNS, own_form
from calibration.training import TARGET, fit_text
from calibration.training_report import PAGE, check_text, report_text
from calibration.training_runs import FILE, read_training_runs, training_run
from gpufabric.workload.training import train

SHARED = Path(__file__).parents[3] / "shared" / "measurements" / "training_runs.csv"
MOST_ERROR = 0.12  # median |error| of a step's time
LEAST_TAU = 0.8  # Kendall's, within each source of at least ten runs


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[tuple[float, float, bool]]]:
    """By source: predicted and measured time, and whether the interval holds the measured."""
    found = defaultdict(list)
    for run in read_training_runs():
        step = train(run.job, run.software)
        is_inside = step.low_s <= run.step_s <= step.high_s
        found[run.group].append((step.step_s, run.step_s, is_inside))
    return found


def test_the_median_error_is_small(pairs: dict[str, list[tuple[float, float, bool]]]) -> None:
    every = np.array([pair for found in pairs.values() for pair in found])
    assert len(every) > 450
    assert np.median(np.abs(every[:, 0] / every[:, 1] - 1)) < MOST_ERROR
    assert every[:, 2].mean() > 0.7


def test_configurations_keep_their_order(
    pairs: dict[str, list[tuple[float, float, bool]]],
) -> None:
    for name, found in pairs.items():
        if len(found) < 10:
            continue
        predicted, measured, _inside = np.array(found).T
        tau = kendalltau(predicted, measured).statistic
        assert round(tau, 2) >= LEAST_TAU, name


def numbers(text: str) -> tuple[str, list[float]]:
    """A text without its numbers, and these."""
    pattern = r"(?<![\w.@])[-+]?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])"
    return re.sub(pattern, "#", text), [float(found) for found in re.findall(pattern, text)]


def test_the_constants_are_those_that_the_runs_give() -> None:
    # Other processors round otherwise in the last digits, and a fit ends a little elsewhere.
    ours, theirs = numbers(TARGET.read_text()), numbers(fit_text(read_training_runs()))
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], rel=0.03, abs=0.005)


def test_the_page_tells_what_the_runs_give() -> None:
    # The order of the runs missed most may change with the last digits.
    page, made = (
        text.split("runs missed most")[0]
        for text in (PAGE.read_text(), report_text(read_training_runs()))
    )
    ours, theirs = numbers(page), numbers(made)
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], rel=0.05, abs=1.0)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared measurements are not here")
def test_our_rows_are_the_published_ones() -> None:
    with SHARED.open(newline="") as lines:
        made = {row["run_id"]: own_form(row) for row in csv.DictReader(lines)}
    with FILE.open(newline="") as lines:
        for row in csv.DictReader(lines):
            assert tuple(row) == COLUMNS
            assert row == made[row["run"]]
            assert training_run(row).step_s > 0

    rows = [row for row in made.values() if row is not None]
    assert len(rows) > 450


@pytest.mark.skipif(not SHARED.exists(), reason="the shared measurements are not here")
def test_rows_of_the_published_form_can_be_checked() -> None:
    with SHARED.open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["run_id"].startswith("llmf_1")]
    text = check_text(rows)
    assert "mosaicml/llm-foundry" in text
    assert "held by the 80 % interval" in text
