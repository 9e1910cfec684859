"""The measured collectives that the constants are fitted on, as rows of arrays."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpufabric.workload.cluster import Cluster
from gpufabric.workload.operations import bus_factor

__all__ = ["Run", "read_runs"]

FOLDER = Path(__file__).parent / "data"
SMALLEST_BYTES = 1024
"""Below, the time is that of the smallest message; such points would only count it many times."""


@dataclass(frozen=True, eq=False)
class Run:
    """One measured run.

    Parameters
    ----------
    name, source, date, grade
        Of the run, as ``data/collective_runs.csv`` has them.
    cluster
        Where it ran.
    operation, algorithm
        What ran; algorithm None where the library chose.
    size_bytes, time_us
        float64[n]: what was measured [byte], [us].
    """

    name: str
    source: str
    date: str
    grade: str
    cluster: Cluster
    operation: str
    algorithm: str | None
    size_bytes: NDArray[np.float64]
    time_us: NDArray[np.float64]

    @property
    def factor(self) -> float:
        """From algorithm to bus bandwidth."""
        return bus_factor(self.operation, self.cluster.n_ranks)

    @property
    def group(self) -> str:
        """The source without its page, which is what cross-validation leaves out whole."""
        return self.source.split("@")[0].split("#")[0]


def read_runs(folder: Path = FOLDER) -> list[Run]:
    """Return all runs with at least one point of 1 KiB or more."""
    points: dict[str, list[tuple[float, float, float]]] = {}
    with (folder / "collective_points.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            point = (
                float(row["size_bytes"]),
                float(row["time_us"] or 0),
                float(row["busbw_gbytes_per_s"] or 0),
            )
            points.setdefault(row["run"], []).append(point)
    with (folder / "collective_runs.csv").open(newline="") as file:
        runs = [_run(row, points[row["run"]]) for row in csv.DictReader(file)]
    return [run for run in runs if len(run.size_bytes)]


def _run(row: dict[str, str], points: list[tuple[float, float, float]]) -> Run:
    wire = row["wire_gbytes_per_s"]
    cluster = Cluster(
        row["gpu"],
        int(row["gpus_per_domain"]),
        int(row["domains"]),
        float(wire) if wire else None,
        row["transport"],
        n_nics=int(row["nics"] or 8),
        has_nvls=False if row["nvls"] == "no" else None,
        has_sharp=row["sharp"] == "yes",
    )
    factor = bus_factor(row["operation"], cluster.n_ranks)
    # Where a source gives bus bandwidth only, the time follows from it.
    times = [t or size * factor / busbw / 1e3 for size, t, busbw in points]
    kept = [at for at, (size, _t, _b) in enumerate(points) if size >= SMALLEST_BYTES]
    return Run(
        row["run"],
        row["source"],
        row["date"],
        row["grade"],
        cluster,
        row["operation"],
        row["algorithm"] or None,
        np.array([points[at][0] for at in kept]),
        np.array([times[at] for at in kept]),
    )
