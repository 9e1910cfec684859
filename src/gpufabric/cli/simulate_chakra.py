"""``gpufabric simulate chakra``: a training step or a collective as Chakra execution traces."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.cli.fabrics import FabricSource
from gpufabric.cli.loading import CatalogFolder
from gpufabric.cli.simulate_collective import sizes_of
from gpufabric.cli.workload_options import option_faults
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.files import writing
from gpufabric.core.text import _
from gpufabric.parse.trace import RankTrace
from gpufabric.sim.run import plant_of
from gpufabric.workload.chakra_writer import chakra_files
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.collectives import messages_of
from gpufabric.workload.nccl_tuner import ALGORITHMS, PAIRWISE
from gpufabric.workload.on_fabric import cluster_of
from gpufabric.workload.operations import OPERATIONS
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.step_trace import collective_traces, message_traces, step_traces
from gpufabric.workload.training import SOFTWARE
from gpufabric.workload.transformer import preset

__all__ = ["chakra", "plan_of"]

SIZE = "1G"
_SWITCH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}

_Fabric = Annotated[
    Path,
    typer.Argument(metavar="FABRIC", help=_("Fabric file (.json, .fab) or spec (.yaml).")),
]
_Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help=_("Folder of the files."))
]
_Candidate = Annotated[
    str | None, typer.Option(metavar="NAME", help=_("Candidate of the spec to simulate."))
]
_Model = Annotated[
    str, typer.Option(metavar="NAME", help=_("Model whose training step is written: llama3-70b …"))
]
_Plan = Annotated[
    str | None,
    typer.Option(
        metavar="KEY=VALUE,…",
        help=_("How the step is divided: tensor=8,pipeline=2,zero=1,global_batch=256 …"),
    ),
]
_Software = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=_("Training program. Left out: ") + SOFTWARE + "."),
]
_Op = Annotated[
    str, typer.Option(metavar="NAME", help=_("Collective to write: ") + ", ".join(OPERATIONS))
]
_Size = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help=_("Its message, such as 64M or 1G. Left out: 1G.")),
]
_Algo = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=_("Write its sends and receives by an algorithm: ")
        + ", ".join((*ALGORITHMS, PAIRWISE))
        + _(". Left out: one node, for which the reader chooses."),
    ),
]
_Ranks = Annotated[int | None, typer.Option(min=1, help=_("Only the first GPUs take part."))]
_Name = Annotated[str, typer.Option(metavar="NAME", help=_("What file names begin with."))]
_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]


def chakra(  # noqa: PLR0913 - one parameter for each option
    fabric: _Fabric,
    *,
    output: _Output,
    candidate: _Candidate = None,
    model: _Model = "",
    plan: _Plan = None,
    software: _Software = None,
    op: _Op = "",
    size: _Size = None,
    algo: _Algo = "",
    ranks: _Ranks = None,
    name: _Name = "step",
    as_json: _AsJson = False,
    catalog: CatalogFolder = None,
) -> None:
    """Write a training step or a collective as Chakra traces, one file a GPU, for ASTRA-sim."""
    _check_options(
        {"--model": model, "--plan": plan, "--software": software},
        {"--op": op, "--size": size, "--algo": algo},
        name,
    )
    source = FabricSource(fabric, candidate, catalog)
    cluster = cluster_of(plant_of(source.fabric(), source.catalog), source.catalog, ranks)
    if model:
        fields_of_plan = {field.name: f"--plan {field.name}" for field in fields(TrainingPlan)}
        with option_faults({**fields_of_plan, "model": "--model"}):
            job = TrainingJob(preset(model), cluster, plan_of(plan or ""))
            traces = list(step_traces(job, software or SOFTWARE))
    else:
        traces = _collective(cluster, op, size or SIZE, algo)
    _save(traces, output, name, as_json=as_json)


def _check_options(
    of_step: Mapping[str, str | None], of_collective: Mapping[str, str | None], name: str
) -> None:
    """Refuse options of the other kind, and a name that would lead out of the folder."""
    has_step, has_collective = bool(of_step["--model"]), bool(of_collective["--op"])
    faults = []
    if has_step == has_collective:
        what = _("give one of them.")
        faults.append(Fault("--model, --op", what, _("a training step, or a collective")))
    elif has_step:
        given = [option for option, value in of_collective.items() if value]
        faults += [Fault(option, _("is for --op, a collective.")) for option in given]
    else:
        given = [option for option, value in of_step.items() if value]
        faults += [Fault(option, _("is for --model, a training step.")) for option in given]
    if not re.fullmatch(r"\w[\w.-]{0,99}", name):
        what = _('"{name}" is no beginning of a file name.').format(name=name[:64])
        faults.append(Fault("--name", what, _("letters, digits, - and _, such as step")))
    if faults:
        raise InputError(faults)


def plan_of(text: str, where: str = "--plan") -> TrainingPlan:
    """Return a plan written as ``tensor=8,pipeline=2,zero=1``.

    Raises
    ------
    InputError
        If a key is unknown, or a value is not of its kind; all faults together.

    Examples
    --------
    >>> plan_of("tensor=8, recompute=full").tensor
    8
    """
    known = {field.name: type(field.default) for field in fields(TrainingPlan)}
    values: dict[str, object] = {}
    faults = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, _equals, value = (piece.strip() for piece in part.partition("="))
        if key not in known:
            what = _('there is no "{name}".').format(name=key[:64])
            faults.append(Fault(where, what, ", ".join(known), nearest(key, list(known))))
        elif key in values:
            what = _("{key} is given twice.").format(key=key)
            faults.append(Fault(where, what, remedy=_("Give it once.")))
        elif known[key] is bool and value.lower() in _SWITCH:
            values[key] = _SWITCH[value.lower()]
        elif known[key] is bool:
            what = _('{key} is "{value}".').format(key=key, value=value[:64])
            faults.append(Fault(where, what, "true, false"))
        elif known[key] is str:
            values[key] = value
        elif value.isdecimal() and len(value) < 12:
            values[key] = int(value)
        else:
            what = _('{key} is "{value}".').format(key=key, value=value[:64])
            faults.append(Fault(where, what, _("a whole number")))
    if faults:
        raise InputError(faults)
    return TrainingPlan(**values)  # type: ignore[arg-type]


def _collective(cluster: Cluster, op: str, size: str, algo: str) -> list[RankTrace]:
    sizes = sizes_of(size, "--size")
    if len(sizes) != 1:
        what = _("{n} sizes.").format(n=len(sizes))
        raise InputError(Fault("--size", what, _("one, such as 64M")))
    size_bytes = float(sizes[0])
    if not algo:
        return collective_traces(cluster.n_ranks, op, size_bytes)
    return message_traces(messages_of(cluster, op, algo, size_bytes))


def _save(traces: list[RankTrace], output: Path, name: str, *, as_json: bool) -> None:
    files = chakra_files(traces, name)
    for file_name, data in files.items():
        with writing(output / file_name) as file:
            file.write(data)
    n_operations = sum(len(trace.operations) for trace in traces)
    if as_json:
        content = {"folder": str(output), "files": list(files), "operations": n_operations}
        typer.echo(json.dumps(content, indent=2))
    else:
        text = _("{n} files in {folder}, {operations} operations")
        typer.echo(text.format(n=len(files), folder=output, operations=n_operations))
