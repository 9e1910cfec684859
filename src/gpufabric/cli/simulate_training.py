"""``gpufabric simulate training``: a training step on a fabric, before either is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.cli.fabrics import FabricSource
from gpufabric.cli.loading import CatalogFolder
from gpufabric.cli.workload_options import (
    AsJson,
    Dimensions,
    FabricCandidate,
    Folder,
    Gpu,
    Model,
    Ranks,
    Seed,
    TheFabric,
    model_of,
    network_of,
    option_faults,
)
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.side_by_side import print_paths, terminal
from gpufabric.report.training_page import write_training_page
from gpufabric.report.training_table import (
    findings_of,
    print_training,
    training_json,
    write_parts,
)
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.forecast_training import SEQUENCE_TOKENS, batch_of
from gpufabric.workload.memory import training_memory
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.parallelism import (
    PRECISIONS,
    RECOMPUTE,
    SCHEDULES,
    TrainingJob,
    TrainingPlan,
)
from gpufabric.workload.placement_search import SearchResult, search
from gpufabric.workload.training import SOFTWARE
from gpufabric.workload.training_study import TrainingStudy, study_training
from gpufabric.workload.transformer import Transformer

__all__ = ["TrainingRequest", "run_training", "training"]

OPTIONS = {
    "tensor": "--tp",
    "pipeline": "--pp",
    "context": "--cp",
    "expert": "--ep",
    "expert_tensor": "--etp",
    "data": "--dp",
    "chunks": "--chunks",
    "micro_batch": "--micro-batch",
    "global_batch": "--batch",
    "sequence_tokens": "--seq",
    "zero": "--zero",
    "precision": "--precision",
    "recompute": "--recompute",
    "schedule": "--schedule",
    "gpu": "--gpu",
    "model": "--model",
}
"""Option of each field of a plan."""


SEARCHED = (
    "tensor",
    "pipeline",
    "context",
    "expert",
    "zero",
    "micro_batch",
    "chunks",
    "schedule",
    "recompute",
)
"""Fields of a plan that a search tries, where they are not given."""


@dataclass(frozen=True)
class TrainingRequest:
    """What was asked on the command line.

    Parameters
    ----------
    given
        Fields of the plan that were given, by name, and ``data``.
    """

    view: NetworkView
    model: Transformer
    given: dict[str, int | str]
    software: str
    optimizes: bool
    seed: int
    folder: Path | None
    as_json: bool


def run_training(request: TrainingRequest) -> None:
    """Print and write a training step; end with 1 where it does not fit."""
    try:
        study = _studied(request)
    except InputError as error:
        _tell_no_plan(error, as_json=request.as_json)
        raise
    content = training_json(study, request.view, request.seed)
    paths = []
    if request.folder is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        paths = [
            write_text(request.folder / "training.json", text + "\n"),
            write_parts(study, request.folder / "training.csv"),
            write_training_page(study, request.view, request.folder / "training.html"),
        ]
    if request.as_json:
        content = {**content, "files": [str(path) for path in paths]} if paths else content
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print_training(study, terminal())
        print_paths(paths, terminal())
    if findings_of(study):
        raise typer.Exit(1)


def _tell_no_plan(error: InputError, *, as_json: bool) -> None:
    """End with 1 where a search found that the model fits no plan: a finding, no bad input."""
    words = [fault.what for fault in error.faults if fault.where == OPTIONS["model"]]
    if not words:
        return
    if as_json:
        typer.echo(json.dumps({"fits": False, "findings": words}, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(words))
    raise typer.Exit(1)


def _studied(request: TrainingRequest) -> TrainingStudy:
    with option_faults(OPTIONS):
        found, job = _job(request)
        return study_training(request.view, job, request.software, request.seed, found)


def _job(request: TrainingRequest) -> tuple[SearchResult | None, TrainingJob]:
    """What a search found, if one was asked for, and the job to look at."""
    cluster, given = request.view.cluster, dict(request.given)
    data = given.pop("data", None)
    ways = int(data) if data is not None else None
    plan = replace(TrainingPlan(sequence_tokens=SEQUENCE_TOKENS), **given)  # type: ignore[arg-type]
    if "global_batch" not in given:
        plan = replace(plan, global_batch=_batch(cluster, plan, given, ways))
    if request.optimizes:
        faults = plan.faults()
        if faults:
            raise InputError(faults)
        kept = {name: given[name] for name in SEARCHED if name in given}
        if ways is not None:
            kept["data"] = ways
        found = search(request.model, cluster, plan, request.software, 8, kept)
        return found, found.best[0].job
    faults = [*plan.faults(), *_data_faults(cluster, plan, ways), *_idle_faults(plan, given)]
    if faults:
        raise InputError(faults)
    job = TrainingJob(request.model, cluster, plan)
    return None, job if "recompute" in given else _least_recomputing(job)


def _batch(
    cluster: Cluster, plan: TrainingPlan, given: dict[str, int | str], ways: int | None
) -> int:
    """The batch where none is given: a multiple of what the ways that are given need."""
    own = plan.tensor * plan.pipeline * plan.context
    if ways is None and own > 0 and "tensor" in given and cluster.n_ranks % own == 0:
        ways = cluster.n_ranks // own
    unit = None if ways is None else max(1, ways) * max(1, plan.micro_batch)
    return batch_of(cluster, unit)


def _data_faults(cluster: Cluster, plan: TrainingPlan, ways: int | None) -> Iterator[Fault]:
    """Tell of data-parallel ways that do not use all GPUs."""
    own = plan.tensor * plan.pipeline * plan.context
    if ways is None or ways * own == cluster.n_ranks:
        return
    what = _("tensor x pipeline x context x data is {product}, but there are {n} GPUs.")
    right = cluster.n_ranks // own if own and cluster.n_ranks % own == 0 else None
    remedy = _("Leave it out, or give {right}.").format(right=right) if right else ""
    yield Fault("data", what.format(product=ways * own, n=cluster.n_ranks), remedy=remedy)


def _idle_faults(plan: TrainingPlan, given: dict[str, int | str]) -> Iterator[Fault]:
    """Tell of what was given and would change nothing: chunks and schedules are of a pipeline."""
    name = plan.schedule
    if plan.pipeline == 1:
        what = _("there is no pipeline for it.")
        names = [each for each in ("chunks", "schedule") if given.get(each, 1) not in {1, "1f1b"}]
        yield from (Fault(each, what, remedy=_("Give --pp 2 or more.")) for each in names)
    elif name == "interleaved" and plan.chunks == 1:
        what = _("interleaved needs more than one chunk a stage.")
        yield Fault("schedule", what, remedy=_("Give --chunks 2 or more."))
    elif given.get("schedule") in {"1f1b", "zero-bubble"} and plan.chunks > 1:
        what = _("{name} has one chunk a stage.").format(name=name)
        yield Fault("schedule", what, "interleaved", _("Leave --chunks out."))


def _least_recomputing(job: TrainingJob) -> TrainingJob:
    """The job with the least recomputation that fits; without any where none does."""
    for name in ("none", "full"):
        again = replace(job, plan=replace(job.plan, recompute=name))
        if training_memory(again).fits:
            return again
    return job


_Ways = int | None
_Tp = Annotated[_Ways, typer.Option("--tp", help=_("Tensor-parallel ways."))]
_Pp = Annotated[_Ways, typer.Option("--pp", help=_("Pipeline stages."))]
_Dp = Annotated[_Ways, typer.Option("--dp", help=_("Data-parallel ways. Left out: what is left."))]
_Cp = Annotated[_Ways, typer.Option("--cp", help=_("Context-parallel ways."))]
_Ep = Annotated[_Ways, typer.Option("--ep", help=_("Expert-parallel ways."))]
_Zero = Annotated[_Ways, typer.Option(help=_("ZeRO stage, 0 to 3; 3 is FSDP. Left out: 1."))]
_Chunks = Annotated[_Ways, typer.Option(help=_("Chunks of layers a pipeline stage has."))]
_Micro = Annotated[_Ways, typer.Option("--micro-batch", help=_("Sequences of a micro-batch."))]
_Batch = Annotated[
    _Ways,
    typer.Option("--batch", help=_("Sequences of a step. Left out: about 2,048.")),
]
_Tokens = Annotated[_Ways, typer.Option("--seq", help=_("Tokens of a sequence. Left out: 8,192."))]
_Schedule = Annotated[str | None, typer.Option(metavar="NAME", help=", ".join(SCHEDULES))]
_Recompute = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=", ".join(RECOMPUTE) + _(". Left out: the least that fits.")),
]
_Precision = Annotated[str, typer.Option(metavar="NAME", help=", ".join(PRECISIONS))]
_Software = Annotated[
    str, typer.Option(metavar="NAME", help=_("Training program whose measured shares hold."))
]
_Optimize = Annotated[
    bool, typer.Option("--optimize", help=_("Search the fastest ways; those given are kept."))
]


def training(  # noqa: PLR0913 - one parameter for each option
    fabric: TheFabric,
    *,
    candidate: FabricCandidate = None,
    model: Model = None,
    dims: Dimensions = None,
    gpu: Gpu = None,
    ranks: Ranks = None,
    tp: _Tp = None,
    pp: _Pp = None,
    dp: _Dp = None,
    cp: _Cp = None,
    ep: _Ep = None,
    zero: _Zero = None,
    chunks: _Chunks = None,
    micro_batch: _Micro = None,
    batch: _Batch = None,
    seq: _Tokens = None,
    schedule: _Schedule = None,
    recompute: _Recompute = None,
    precision: _Precision = "bf16",
    software: _Software = SOFTWARE,
    optimize: _Optimize = False,
    seed: Seed = 1,
    as_json: AsJson = False,
    output: Folder = None,
    catalog: CatalogFolder = None,
) -> None:
    """Predict a training step: time, MFU, exposed communication, memory, jitter, GPU-hours lost."""
    ways: dict[str, int | str | None] = {
        "tensor": tp,
        "pipeline": pp,
        "data": dp,
        "context": cp,
        "expert": ep,
        "zero": zero,
        "chunks": chunks,
        "micro_batch": micro_batch,
        "global_batch": batch,
        "sequence_tokens": seq,
        "schedule": schedule,
        "recompute": recompute,
        "precision": precision,
    }
    given = {name: value for name, value in ways.items() if value is not None}
    source = FabricSource(fabric, candidate, catalog)
    network = network_of(source, gpu, ranks)
    asked = (model_of(model, dims, source.given_model), given, software, optimize, seed, output)
    run_training(TrainingRequest(network, *asked, as_json=as_json))
