"""``gpufabric simulate inference``: serving a model on a fabric, before either is there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.catalog.workload_constants import gpu_compute
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
from gpufabric.report.serving_page import write_serving_page
from gpufabric.report.serving_table import (
    findings_of,
    print_serving,
    serving_json,
    write_batches,
)
from gpufabric.report.side_by_side import print_paths, terminal
from gpufabric.workload.forecast_serving import JITTER_US
from gpufabric.workload.inference import ServingPlan
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.parallelism import MOST, PRECISIONS
from gpufabric.workload.serving_study import (
    ServingQuestion,
    ServingStudy,
    chosen_plan,
    study_serving,
)

__all__ = ["ServingRequest", "inference", "run_inference"]

OPTIONS = {
    "tensor": "--tp",
    "expert": "--ep",
    "sequences": "--sequences",
    "prompt_tokens": "--prompt",
    "output_tokens": "--answer",
    "utilisation": "--busy",
    "precision": "--precision",
    "wire_gbytes_per_s": "--disaggregated",
    "jitter_us": "--jitter-us",
    "latency_us": "--latency-us",
    "gpu": "--gpu",
}
"""Option of each field of a plan."""


@dataclass(frozen=True)
class ServingRequest:
    """What was asked on the command line."""

    view: NetworkView
    question: ServingQuestion
    ways: tuple[int | None, int | None]
    folder: Path | None
    as_json: bool


def run_inference(request: ServingRequest) -> None:
    """Print and write what serving gives; end with 1 where it does not fit or is overloaded."""
    study = _studied(request)
    content = serving_json(study, request.view, request.question.seed)
    paths = []
    if request.folder is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        paths = [
            write_text(request.folder / "inference.json", text + "\n"),
            write_batches(study, request.folder / "inference.csv"),
            write_serving_page(study, request.view, request.folder / "inference.html"),
        ]
    if request.as_json:
        content = {**content, "files": [str(path) for path in paths]} if paths else content
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print_serving(study, request.view, terminal())
        print_paths(paths, terminal())
    if findings_of(study):
        raise typer.Exit(1)


def _studied(request: ServingRequest) -> ServingStudy:
    question = request.question
    faults = [
        Fault(option, _("the value is {value}.").format(value=ways), "1 …")
        for option, ways in zip(("--tp", "--ep"), request.ways, strict=True)
        if ways is not None and ways < 1
    ]
    if faults:
        raise InputError(faults)
    plan = chosen_plan(question.model, request.view.cluster, question.plan, request.ways)
    with option_faults(OPTIONS):
        return study_serving(
            request.view,
            ServingQuestion(
                question.model,
                plan,
                question.rate_per_s,
                question.jitter_us,
                question.latency_us,
                question.seed,
            ),
        )


_Ways = int | None
_Tp = Annotated[_Ways, typer.Option("--tp", help=_("Tensor-parallel ways of an instance."))]
_Ep = Annotated[_Ways, typer.Option("--ep", help=_("Expert-parallel ways of an instance."))]
_Sequences = Annotated[
    int | None,
    typer.Option(
        "--sequences", help=_("Sequences that an instance decodes at once. Left out: 256.")
    ),
]
_Prompt = Annotated[int, typer.Option("--prompt", help=_("Tokens of a prompt."))]
_Answer = Annotated[int, typer.Option("--answer", help=_("Tokens of an answer."))]
_Precision = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=", ".join(PRECISIONS) + _(". Left out: fp8, else bf16.")),
]
_Apart = Annotated[
    bool,
    typer.Option(
        "--disaggregated/--together", help=_("Prefill on other GPUs: keys and values are sent.")
    ),
]
_Rate = Annotated[
    float | None,
    typer.Option("--rate", help=_("Requests a second of the cluster, in place of --sequences.")),
]
_Busy = Annotated[
    float | None,
    typer.Option("--busy", help=_("Share of the time that prefill is busy. Left out: 0.5.")),
]
_Jitter = Annotated[
    float, typer.Option("--jitter-us", help=_("Mean lateness of a message [µs]; assumed."))
]
_Latency = Annotated[
    float, typer.Option("--latency-us", help=_("More latency of every collective [µs]."))
]


def inference(  # noqa: PLR0913 - one parameter for each option
    fabric: TheFabric,
    *,
    candidate: FabricCandidate = None,
    model: Model = None,
    dims: Dimensions = None,
    gpu: Gpu = None,
    ranks: Ranks = None,
    tp: _Tp = None,
    ep: _Ep = None,
    sequences: _Sequences = None,
    prompt: _Prompt = 2048,
    answer: _Answer = 256,
    precision: _Precision = None,
    disaggregated: _Apart = False,
    rate: _Rate = None,
    busy: _Busy = None,
    jitter_us: _Jitter = JITTER_US,
    latency_us: _Latency = 0.0,
    seed: Seed = 1,
    as_json: AsJson = False,
    output: Folder = None,
    catalog: CatalogFolder = None,
) -> None:
    """Predict serving: time to first token, per token, tokens a second, network share, tail."""
    _check_rate(rate, sequences, busy, is_disaggregated=disaggregated)
    source = FabricSource(fabric, candidate, catalog)
    network = network_of(source, gpu, ranks)
    served = model_of(model, dims, source.given_model)
    plan = ServingPlan(
        sequences=256 if sequences is None else sequences,
        prompt_tokens=prompt,
        output_tokens=answer,
        precision=precision or _precision(network.cluster.gpu),
        is_disaggregated=disaggregated,
        utilisation=0.5 if busy is None else busy,
    )
    question = ServingQuestion(served, plan, rate, jitter_us, latency_us, seed)
    run_inference(ServingRequest(network, question, (tp, ep), output, as_json))


def _check_rate(
    rate: float | None, sequences: int | None, busy: float | None, *, is_disaggregated: bool
) -> None:
    """Refuse what a rate decides itself."""
    if rate is None:
        return
    faults = []
    if not 0 < rate <= MOST:
        what = _("the value is {value}.").format(value=rate)
        faults.append(Fault("--rate", what, _("more than 0, at most {most:,}").format(most=MOST)))
    if sequences is not None:
        faults.append(Fault("--sequences", _("--rate tells how many there are.")))
    if busy is not None and not is_disaggregated:
        faults.append(Fault("--busy", _("--rate tells how busy prefill is.")))
    if faults:
        raise InputError(faults)


def _precision(gpu: str) -> str:
    has = gpu_compute(gpu, "--gpu").tflops
    return next((name for name in ("fp8", "bf16") if name in has), "fp16")
