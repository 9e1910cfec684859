"""The measured training runs that the constants are fitted on, as jobs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpufabric.workload.cluster import Cluster
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.transformer import Transformer, preset

__all__ = ["TrainingRun", "read_training_runs", "runs_of", "training_run"]

FILE = Path(__file__).parent / "data" / "training_runs.csv"


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """One measured run.

    Parameters
    ----------
    name, source, date, grade
        Of the run, as ``data/training_runs.csv`` has them.
    job
        What ran.
    software
        By which program.
    step_s
        Measured time of one step [s].
    """

    name: str
    source: str
    date: str
    grade: str
    job: TrainingJob
    software: str
    step_s: float

    @property
    def group(self) -> str:
        """The source without its page, which is what cross-validation leaves out whole."""
        return self.source.split("@")[0].split("#")[0]


def read_training_runs(file: Path = FILE) -> list[TrainingRun]:
    """Return all runs of grade A and B."""
    with file.open(newline="") as lines:
        return runs_of(csv.DictReader(lines))


def runs_of(rows: Iterable[Mapping[str, str]]) -> list[TrainingRun]:
    """Return rows in our form as runs, those of grade C left out."""
    return [training_run(row) for row in rows if row["grade"] in {"A", "B"}]


def training_run(row: Mapping[str, str]) -> TrainingRun:
    """Return one row in our form as a run."""
    wire = row["wire_gbytes_per_s"]
    each = int(row["gpus_per_domain"])
    gpus = int(row["gpus"])
    cluster = Cluster(
        row["gpu"],
        each,
        -(-gpus // each),
        float(wire) if wire else None,
        "rdma",
        n_nics=max(1, min(8, each)) if each <= 8 else each,
    )
    numbers = (
        "tensor",
        "pipeline",
        "chunks",
        "context",
        "expert",
        "expert_tensor",
        "zero",
        "micro_batch",
    )
    plan = TrainingPlan(
        **{name: int(row[name]) for name in numbers},
        global_batch=int(row["global_batch"]),
        sequence_tokens=int(row["sequence_tokens"]),
        precision=row["precision"],
        recompute=row["recompute"],
        schedule="interleaved" if int(row["chunks"]) > 1 else "1f1b",
        trains_adapters=row["adapters"] == "yes",
    )
    job = TrainingJob(_shaped(row), cluster, plan)
    step_s = float(row["step_s"])
    return TrainingRun(
        row["run"], row["source"], row["date"], row["grade"], job, row["software"], step_s
    )


def _shaped(row: Mapping[str, str]) -> Transformer:
    model = preset(row["model"])
    if row["layers"]:
        model = model.with_layers(int(row["layers"]))
    if not row["hidden"]:
        return model
    hidden, heads = int(row["hidden"]), int(row["heads"])
    changed = {
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_size": hidden // heads,
        "mlp_width": 4 * hidden,
    }
    return replace(model, dimensions=model.dimensions.model_copy(update=changed))
