"""Fits the constants of collectives and writes them into the catalogue, errors included."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.collectives import (
    Problem,
    bands_of,
    cross_validate,
    fit,
    fitted,
    interval_of,
    problem_of,
)
from calibration.runs import Run, read_runs
from gpufabric.core.files import write_text

__all__ = ["TARGET", "fit_text", "main"]

Floats = NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "src/gpufabric/catalog/constants/collective_fit.yaml"
DIGITS = 4
TABLES = (
    "latency_factor",
    "chunk_us",
    "ring_gbytes_per_s",
    "tree_gbytes_per_s",
    "nvls_gbytes_per_s",
    "pairwise_gbytes_per_s",
    "wire_efficiency",
    "network_us",
    "wire_chunk_us",
)


def rounded(value: float) -> float:
    """Return a number with four significant digits, so that no machine's last bits show."""
    return float(f"{value:.{DIGITS}g}")


def fit_text(runs: Sequence[Run]) -> str:
    """Return the content of ``collective_fit.yaml``."""
    problem = problem_of(runs)
    logs = fit(problem)
    left_out = cross_validate(problem, runs)
    dates = max(run.date for run in runs)
    lines = [
        "# Written by `make calibrate` from calibration/data; do not edit.",
        "format_version: 1",
        'source: "make calibrate, calibration/collectives.py, on the runs in calibration/data"',
        f'date: "{dates}"',
        "kind: derived",
        f"n_runs: {len(runs)}",
        f"n_points: {len(problem.run)}",
    ]
    values = fitted(problem, logs)
    for table in TABLES:
        lines.append(f"{table}:")
        lines += [f"  {key}: {rounded(v)}" for (name, key), v in values.items() if name == table]
    lines.append("residuals:")
    lines += _residuals(problem, runs, left_out)
    lines.append("measured:")
    lines += _measured(runs)
    return "\n".join(lines) + "\n"


def _residuals(problem: Problem, runs: Sequence[Run], left_out: Floats) -> Iterable[str]:
    """One class a line, from errors of points whose whole source was left out of the fit."""
    bands = bands_of(runs)
    for band in sorted(set(bands.tolist())):
        here = bands == band
        sources = problem.source[here]
        low, high = interval_of(left_out[here], sources)
        error = float(np.median(np.abs(np.exp(left_out[here]) - 1)))
        yield (
            f"  {band}: {{n_points: {int(here.sum())}, n_sources: {len(set(sources.tolist()))},"
            f" low: {rounded(low)}, high: {rounded(high)}, median_error: {rounded(error)}}}"
        )


def _measured(runs: Sequence[Run]) -> Iterable[str]:
    kinds: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        transport = run.cluster.transport if run.cluster.n_domains > 1 else "none"
        key = (run.cluster.generation, transport, run.operation)
        kinds.setdefault(key, []).append(run)
    for (generation, transport, operation), found in sorted(kinds.items()):
        sizes = np.concatenate([run.size_bytes for run in found])
        yield (
            f"  - {{generation: {generation}, transport: {transport}, operation: {operation},"
            f" n_runs: {len(found)}, n_sources: {len({run.group for run in found})},"
            f" most_domains: {max(run.cluster.n_domains for run in found)},"
            f" least_bytes: {math.floor(sizes.min())}, most_bytes: {math.ceil(sizes.max())}}}"
        )


def main() -> None:
    """Renew the constants in the catalogue."""
    write_text(TARGET, fit_text(read_runs()))
    sys.stdout.write(f"{TARGET.relative_to(Path(__file__).parents[1])}\n")


if __name__ == "__main__":
    main()
