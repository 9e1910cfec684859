"""Fits the constants of training steps on the measured runs, and writes them.

Every constant has a starting value and a weak pull towards it: where no run says more, it stays
there. Runs of one configuration count together as one and a half. Errors are those of runs whose
whole source was left out of the fit.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from calibration.training_runs import TrainingRun, read_training_runs
from gpufabric.catalog.constants import gpu_generations
from gpufabric.catalog.workload_constants import (
    gpu_computes,
    gpu_key,
    softwares,
    training_software,
)
from gpufabric.core.files import write_text
from gpufabric.workload.step_time import Shares, parts_of
from gpufabric.workload.step_work import StepWork, work_of
from gpufabric.workload.training import class_of

__all__ = [
    "TARGET",
    "TrainingProblem",
    "cross_validate",
    "fit",
    "fit_text",
    "leave_thirds_out",
    "main",
]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

TARGET = Path(__file__).parents[1] / "src/gpufabric/catalog/constants/training_fit.yaml"
PULL = 0.15  # weight of a factor e between a constant and its start, against a run 0.1 off
PULL_OF_RATES = 0.3  # the same for shares of a data sheet's rate, which are much alike
USUAL_ERROR = 0.1
DIGITS = 4
LEAST_LOW = 0.03  # of half an interval's width

# Starting values: shares of the data sheet's rate that large products attain, memory passes of
# fused kernels, and a few microseconds a kernel.
STARTS = {
    "product_efficiency": 0.7,
    "core_efficiency": 0.7,
    "core_factor": 1.0,
    "odd_core_factor": 8.0,
    "operand_share": 0.3,
    "stream_passes": 1.5,
    "routed_passes": 1.5,
    "mamba_passes": 2.0,
    "kernel_us": 2.0,
    "tensor_exposed": 0.6,
    "expert_exposed": 0.6,
    "expert_far_exposed": 0.8,
    "steal": 0.2,
}
PRECISION_STARTS = {"fp16": 1.0, "bf16": 1.0, "fp8": 0.85, "mxfp8": 0.8, "nvfp4": 0.55}
BOUNDS = {  # by table: least and most
    "product_efficiency": (0.3, 0.95),
    "precision_factor": (0.2, 1.2),
    "core_efficiency": (0.1, 1.2),
    "core_factor": (0.3, 3.0),
    "odd_core_factor": (1.0, 40.0),
    "operand_share": (0.02, 1.5),
    "stream_passes": (0.3, 8.0),
    "routed_passes": (0.3, 12.0),
    "mamba_passes": (0.3, 12.0),
    "kernel_us": (0.1, 30.0),
    "tensor_exposed": (0.02, 4.0),
    "expert_exposed": (0.02, 2.0),
    "expert_far_exposed": (0.02, 3.0),
    "steal": (0.01, 0.8),
}


def starts() -> dict[tuple[str, str], float]:
    """Return the starting value of every constant."""
    keys = {
        "product_efficiency": list(gpu_computes().gpus),
        "core_efficiency": list(gpu_generations().generations),
    }
    single = {"odd_core_factor", "operand_share", "mamba_passes", "steal"}
    values = {
        (table, key): value
        for table, value in STARTS.items()
        for key in keys.get(table, ["all"] if table in single else list(softwares().software))
    }
    return values | {("precision_factor", key): value for key, value in PRECISION_STARTS.items()}


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """All runs as arrays, and the number of each constant that they depend on.

    Parameters
    ----------
    names
        Of the constants: table and key.
    first, least, most
        float64[n_constants]: logarithms of starting values and bounds.
    work
        Amounts, each float64[n].
    index
        By table, int64[n]: the constant of each run.
    is_fixed16
        bool[n]: whether the precision is a 16-bit one, whose factor is 1.
    overlaps
        float64[2, n]: whether programs hide data parallelism, and sends between stages.
    weight, step_s
        float64[n].
    """

    names: list[tuple[str, str]]
    first: Floats
    least: Floats
    most: Floats
    work: StepWork
    index: dict[str, Longs]
    is_fixed16: NDArray[np.bool_]
    overlaps: Floats
    weight: Floats
    step_s: Floats

    def predict(self, logs: Floats) -> Floats:
        """float64[n]: times of all steps for these constants [s]."""
        value = np.exp(logs)
        at = {table: value[index] for table, index in self.index.items()}
        product16 = at["product_efficiency"]
        factor = np.where(self.is_fixed16, 1.0, at["precision_factor"])
        shares = Shares(
            product=product16 * factor,
            product16=product16,
            core=product16 * at["core_efficiency"] * at["core_factor"],
            odd_core=at["odd_core_factor"],
            operand=at["operand_share"],
            stream=at["stream_passes"],
            routed=at["routed_passes"],
            mamba=at["mamba_passes"],
            kernel_s=at["kernel_us"] / 1e6,
            tensor=at["tensor_exposed"],
            expert=at["expert_exposed"],
            expert_far=at["expert_far_exposed"],
            steal=at["steal"],
            overlaps_data=self.overlaps[0],
            overlaps_pipeline=self.overlaps[1],
        )
        return np.asarray(parts_of(self.work, shares).total_s, np.float64)


def problem_of(runs: Sequence[TrainingRun]) -> TrainingProblem:
    """Return the runs as arrays."""
    values = starts()
    names = list(values)
    number = {name: at for at, name in enumerate(names)}
    works = [work_of(run.job, training_software(run.software)) for run in runs]
    keys = [_keys(run) for run in runs]
    index = {
        table: np.array([number[table, key[table]] for key in keys], np.int64) for table in keys[0]
    }
    programs = [training_software(run.software) for run in runs]
    same = Counter((run.source, run.job, run.software) for run in runs)
    weight = [same[run.source, run.job, run.software] ** -0.3 for run in runs]
    return TrainingProblem(
        names,
        np.log([values[name] for name in names]),
        np.log([BOUNDS[table][0] for table, _key in names]),
        np.log([BOUNDS[table][1] for table, _key in names]),
        StepWork(*np.array(works).T),
        index,
        np.array([run.job.plan.precision in {"fp16", "bf16"} for run in runs]),
        np.array([[p.overlaps_data, p.overlaps_pipeline] for p in programs], np.float64).T,
        np.array(weight),
        np.array([run.step_s for run in runs]),
    )


def _keys(run: TrainingRun) -> dict[str, str]:
    """By table, which constant a run depends on."""
    tables = {
        "product_efficiency": gpu_key(run.job.cluster.gpu),
        "precision_factor": run.job.plan.precision,
        "core_efficiency": run.job.cluster.generation,
        "odd_core_factor": "all",
        "operand_share": "all",
        "mamba_passes": "all",
        "steal": "all",
    }
    by_software = (
        "core_factor",
        "stream_passes",
        "routed_passes",
        "kernel_us",
        "tensor_exposed",
        "expert_exposed",
        "expert_far_exposed",
    )
    return tables | dict.fromkeys(by_software, run.software)


def fit(
    problem: TrainingProblem, kept: NDArray[np.bool_] | None = None, first: Floats | None = None
) -> Floats:
    """Return the logarithms of the constants that fit the kept runs best."""
    kept = np.ones(len(problem.step_s), np.bool_) if kept is None else kept
    weight = np.where(kept, problem.weight, 0.0)

    rates = {"product_efficiency", "core_efficiency", "precision_factor"}
    pull = np.where([table in rates for table, _key in problem.names], PULL_OF_RATES, PULL)

    def misses(logs: Floats) -> Floats:
        ratio = np.log(problem.predict(logs) / problem.step_s) / USUAL_ERROR
        soft = np.sign(ratio) * np.sqrt(2 * (np.sqrt(1 + ratio**2) - 1))
        return np.concatenate([weight * soft, pull / USUAL_ERROR * (logs - problem.first)])

    start = problem.first if first is None else first
    inside = np.clip(start, problem.least + 1e-9, problem.most - 1e-9)
    found = least_squares(
        misses, inside, bounds=(problem.least, problem.most), xtol=1e-5, ftol=1e-6, max_nfev=60
    )
    result: Floats = found.x
    return result


def cross_validate(problem: TrainingProblem, runs: Sequence[TrainingRun], logs: Floats) -> Floats:
    """Return ln(measured / predicted) of every run, its whole source left out: float64[n]."""
    groups = np.array([run.group for run in runs])
    errors = np.empty(len(runs))
    for group in dict.fromkeys(groups.tolist()):
        is_out = groups == group
        left = fit(problem, ~is_out, logs)
        errors[is_out] = np.log(problem.step_s / problem.predict(left))[is_out]
    return errors


def leave_thirds_out(problem: TrainingProblem, logs: Floats) -> Floats:
    """Return ln(measured / predicted) of every run, fitted without a random third: float64[n]."""
    errors = np.empty(len(problem.step_s))
    part = np.random.default_rng(1).integers(3, size=len(problem.step_s))
    for number in range(3):
        is_out = part == number
        predicted = problem.predict(fit(problem, ~is_out, logs))
        errors[is_out] = np.log(problem.step_s / predicted)[is_out]
    return errors


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def fit_text(runs: Sequence[TrainingRun]) -> str:
    """Return the content of ``training_fit.yaml``."""
    problem = problem_of(runs)
    logs = fit(problem)
    near = leave_thirds_out(problem, logs)
    far = cross_validate(problem, runs, logs)
    values = dict(zip(problem.names, np.exp(logs), strict=True))
    values |= {("precision_factor", key): 1.0 for key in ("fp16", "bf16")}
    lines = [
        "# Written by `make calibrate` from calibration/data; do not edit.",
        "format_version: 1",
        'source: "make calibrate, calibration/training.py, on the runs in calibration/data"',
        f'date: "{max(run.date for run in runs)}"',
        "kind: derived",
        f"n_runs: {len(runs)}",
    ]
    for table in BOUNDS:
        lines.append(f"{table}:")
        lines += [f"  {key}: {_rounded(v)}" for (name, key), v in values.items() if name == table]
    lines.append("residuals:")
    lines += _residuals(runs, near, far)
    lines.append("measured:")
    lines += _measured(runs)
    return "\n".join(lines) + "\n"


def _residuals(runs: Sequence[TrainingRun], near: Floats, far: Floats) -> Iterable[str]:
    """One class a line: quantiles with a third, and with whole sources left out."""
    classes = np.array([class_of(run.job) for run in runs])
    for name in sorted(set(classes.tolist())):
        here = classes == name
        sources = {run.group for run, is_here in zip(runs, here, strict=True) if is_here}
        words = [f"n_runs: {int(here.sum())}", f"n_sources: {len(sources)}"]
        for prefix, errors in (("", near), ("far_", far)):
            low, high = np.quantile(errors[here], [0.1, 0.9])
            median = float(np.median(np.abs(np.exp(-errors[here]) - 1)))
            words.append(f"{prefix}low: {_rounded(min(low, -LEAST_LOW))}")
            words.append(f"{prefix}high: {_rounded(max(high, LEAST_LOW))}")
            words.append(f"{prefix}median_error: {_rounded(median)}")
        yield f"  {name}: {{{', '.join(words)}}}"


def _measured(runs: Sequence[TrainingRun]) -> Iterable[str]:
    """One GPU a line: how many at most, in which precisions, by which programs."""
    by_gpu: dict[str, list[TrainingRun]] = {}
    for run in runs:
        by_gpu.setdefault(gpu_key(run.job.cluster.gpu), []).append(run)
    for gpu, found in sorted(by_gpu.items()):
        precisions = ", ".join(sorted({run.job.plan.precision for run in found}))
        programs = ", ".join(sorted({run.software for run in found}))
        most = max(run.job.cluster.n_ranks for run in found)
        yield (
            f"  - {{gpu: {gpu}, most_gpus: {most}, precisions: [{precisions}],"
            f" software: [{programs}]}}"
        )


def main() -> None:
    """Renew the constants in the catalogue."""
    write_text(TARGET, fit_text(read_training_runs()))
    sys.stdout.write(f"{TARGET.relative_to(Path(__file__).parents[1])}\n")


if __name__ == "__main__":
    main()
