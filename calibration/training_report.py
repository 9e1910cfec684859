"""Writes how well the model of training steps meets the measured runs: docs/models page."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from calibration.published_training import own_form
from calibration.training import cross_validate, fit, leave_thirds_out, problem_of
from calibration.training_runs import TrainingRun, read_training_runs, runs_of
from gpufabric.catalog.workload_constants import training_fit
from gpufabric.core.errors import InputError
from gpufabric.core.files import write_text
from gpufabric.workload.training import class_of, train

__all__ = ["PAGE", "check_text", "main", "report_text"]

Floats = NDArray[np.float64]

PAGE = Path(__file__).parents[1] / "docs/models/training-validation.md"
WORST = 10
LEAST_MOVED = 1e-3  # of a constant's logarithm; others depend on no run
LEAST_FOR_ORDER = 4  # runs of a source, for Kendall's tau

# What is known of the runs that the model misses most, by how their names begin.
REASONS = (
    ("bloom_89", "one sequence a micro-batch; why so slow is not known"),
    ("bloom", "head counts and batches that the trials' kernels did not like"),
    ("mbridge", "expert kernels that changed from one release of the program to the next"),
    ("titan_1", "interleaved pipeline whose chunks the table does not give"),
    ("titan", "FP8 by rows, and tensor parallelism hidden or not: one constant for all"),
    ("dgxc_006", "tokens a second and MFU of the source do not agree"),
    ("dgxc", "recomputation and offloading that the source does not state"),
    ("llmf", "few tokens a micro-batch"),
    ("internevo", "batch and sequence assumed"),
    ("fms", "recomputation that the source states only as selective"),
)

HEAD = """# Training: validation

Written by `python -m calibration.training_report`; do not edit. {n} published runs of grade A and B
(`calibration/data/training_runs.csv`, each with source and date), {constants} constants with a
weak pull to a starting value, and not one by run. Error: predicted over measured time of a step,
less 1.

- *fit*: all runs fitted together.
- *third out*: a random third of the runs is predicted with constants fitted on the others, three
  times.
- *source out*: all runs of a source are predicted with constants fitted on the other sources. Most
  programs occur in one source only, so this is the error for a program that was never measured.
- *tau*: Kendall's rank correlation of predicted and measured time within the source.

"""


def report_text(runs: Sequence[TrainingRun]) -> str:
    """Return the page as Markdown."""
    problem = problem_of(runs)
    logs = fit(problem)
    predicted = problem.predict(logs)
    inside = predicted / problem.step_s - 1
    left = np.exp(-cross_validate(problem, runs, logs)) - 1
    third = np.exp(-leave_thirds_out(problem, logs)) - 1
    moved = int(np.sum(np.abs(logs - problem.first) > LEAST_MOVED))
    lines = [HEAD.format(n=len(runs), constants=moved)]
    lines += _by_source(runs, predicted, {"fit": inside, "third out": third, "source out": left})
    lines += ["", *_by_class(runs), "", *_worst(runs, predicted, inside), ""]
    return "\n".join(lines)


def _percent(errors: Floats) -> str:
    return f"{100 * np.median(np.abs(errors)):.1f} %"


def _by_source(
    runs: Sequence[TrainingRun], predicted: Floats, errors: dict[str, Floats]
) -> Iterable[str]:
    yield f"| source | runs | median error: {' | '.join(errors)} | tau |"
    yield f"|---|--:|{'--:|' * len(errors)}--:|"
    groups = np.array([run.group for run in runs])
    measured = np.array([run.step_s for run in runs])
    for group in dict.fromkeys(groups.tolist()):
        here = groups == group
        cells = " | ".join(_percent(each[here]) for each in errors.values())
        tau = "–"
        if here.sum() >= LEAST_FOR_ORDER:
            tau = f"{kendalltau(predicted[here], measured[here]).statistic:.2f}"
        yield f"| {group} | {here.sum()} | {cells} | {tau} |"
    cells = " | ".join(_percent(each) for each in errors.values())
    yield f"| **all** | {len(runs)} | {cells} | |"


def _by_class(runs: Sequence[TrainingRun]) -> Iterable[str]:
    yield "Intervals of 80 %, by class of runs: for what was measured in kind, and what was not:"
    yield ""
    yield "| class | runs | from | to | from, not measured | to |"
    yield "|---|--:|--:|--:|--:|--:|"
    classes = np.array([class_of(run.job) for run in runs])
    for name, error in training_fit().residuals.items():
        bounds = (error.low, error.high, error.far_low, error.far_high)
        cells = " | ".join(f"{100 * np.expm1(each):+.0f} %" for each in bounds)
        yield f"| {name} | {(classes == name).sum()} | {cells} |"


def _worst(runs: Sequence[TrainingRun], predicted: Floats, inside: Floats) -> Iterable[str]:
    yield f"The {WORST} runs missed most:"
    yield ""
    yield "| run | model | GPUs | measured s | predicted s | error | likely reason |"
    yield "|---|---|---|--:|--:|--:|---|"
    for at in np.argsort(-np.abs(np.log1p(inside)))[:WORST]:
        run = runs[at]
        why = next((why for begin, why in REASONS if run.name.startswith(begin)), "not known")
        cluster = run.job.cluster
        yield (
            f"| {run.name} | {run.job.model.name} | {cluster.n_ranks} {cluster.gpu} |"
            f" {run.step_s:.4g} | {predicted[at]:.4g} | {100 * inside[at]:+.0f} % | {why} |"
        )


def check_text(rows: Iterable[Mapping[str, str]]) -> str:
    """Return a table of how well the catalogue's constants meet rows of the published form."""
    runs, left_out = [], []
    for row in rows:
        try:
            made = own_form(row)
            runs += runs_of([made]) if made else []
        except InputError as error:
            made = None
            left_out.append(f"{row['run_id']}: {error}")
        if not made:
            left_out.append(row["run_id"])
    steps = [train(run.job, run.software) for run in runs]
    predicted = np.array([step.step_s for step in steps])
    errors = predicted / np.array([run.step_s for run in runs]) - 1
    held = np.mean(
        [step.low_s <= run.step_s <= step.high_s for step, run in zip(steps, runs, strict=True)]
    )
    lines = [*_by_source(runs, predicted, {"catalogue": errors})]
    lines.append(f"held by the 80 % interval: {100 * held:.0f} %; not asked: {left_out}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Renew the page; with a file of published rows, print how well they are met instead."""
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open(newline="") as lines:
            sys.stdout.write(check_text(csv.DictReader(lines)))
        return
    write_text(PAGE, report_text(read_training_runs()))
    sys.stdout.write(f"{PAGE.relative_to(Path(__file__).parents[1])}\n")


if __name__ == "__main__":
    main()
