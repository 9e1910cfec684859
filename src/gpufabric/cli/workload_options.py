"""What commands on workloads have in common: fabric, model, GPUs, routing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from gpufabric.catalog.workload_constants import TransformerDimensions
from gpufabric.cli.fabrics import FabricSource
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import read_document
from gpufabric.routing.modes import ROUTING_MODES
from gpufabric.workload.network_view import NetworkView, view_of
from gpufabric.workload.transformer import Transformer, preset

__all__ = [
    "AsJson",
    "Dimensions",
    "FabricCandidate",
    "Folder",
    "Gpu",
    "Model",
    "Ranks",
    "RoutingMode",
    "Seed",
    "TheFabric",
    "model_of",
    "network_of",
    "option_faults",
]

TheFabric = Annotated[
    Path, typer.Argument(metavar="FABRIC", help=_("Fabric file (.json, .fab) or spec (.yaml)."))
]
FabricCandidate = Annotated[
    str | None,
    typer.Option("--candidate", metavar="NAME", help=_("Candidate of the spec to simulate.")),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help=_("Such as llama3-70b. Left out: the spec's.")),
]
Dimensions = Annotated[
    Path | None,
    typer.Option("--dims", metavar="FILE", help=_("Dimensions of a model of your own (YAML).")),
]
Gpu = Annotated[
    str | None,
    typer.Option("--gpu", metavar="NAME", help=_("Model of the GPUs. Left out: the host tells.")),
]
Ranks = Annotated[
    int | None, typer.Option("--ranks", help=_("The first so many GPUs. Left out: all."))
]
RoutingMode = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help=", ".join(ROUTING_MODES) + _(". Left out: adaptive on InfiniBand, ecmp on RoCE."),
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help=_("Draws all that is random; the same gives the same."))
]
AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help=_("Folder for JSON, table and page with figures.")
    ),
]


def network_of(source: FabricSource, gpu: str | None, n_ranks: int | None) -> NetworkView:
    """Return the fabric as workloads see it, with the GPUs that the host tells or `gpu` says.

    Raises
    ------
    InputError
        If the fabric or its GPUs are unknown, or the ranks are not whole hosts.
    """
    fabric = source.fabric()
    gpu = gpu or source.given_gpu
    if gpu is None:
        compute = fabric.hosts.model[fabric.hosts.role == 0]
        name = fabric.models[int(compute[0])] if len(compute) else fabric.name
        gpu = source.catalog.host(name).gpu
    try:
        return view_of(fabric, gpu, n_ranks)
    except InputError as error:
        faults = [
            replace(fault, where="--gpu") if fault.where == "gpu" else fault
            for fault in error.faults
        ]
        raise InputError(faults) from error


def model_of(name: str | None, path: Path | None, of_spec: str | None = None) -> Transformer:
    """Return the model of a name, that whose dimensions a file has, or that of the spec.

    Raises
    ------
    InputError
        If none is given, or name and file are, or what is given is wrong.
    """
    if name is None and path is None:
        name = of_spec
    if (name is None) == (path is None):
        what = _("exactly one of --model and --dims is needed.")
        raise InputError(Fault("--model", what, _("a name such as llama3-70b")))
    if name is not None:
        return preset(name)
    assert path is not None
    content = read_document(path, str(path)).content()
    assert isinstance(content, dict), "a document is a mapping: read_document has checked it"
    known = TransformerDimensions.model_fields
    given = {"source": _("own dimensions"), **content}
    try:
        dimensions = TransformerDimensions.model_validate(given)
    except ValidationError as error:
        raise InputError(
            [_dimension_fault(path, row, list(known)) for row in error.errors()]
        ) from error
    return Transformer(path.stem, dimensions)


def _dimension_fault(path: Path, row: Mapping[str, object], known: list[str]) -> Fault:
    place = row["loc"]
    name = ".".join(str(part) for part in place) if isinstance(place, tuple) else str(place)
    where = f"{path}: {name}" if name else str(path)
    return Fault(where, f"{row['msg']}.", remedy=nearest(name, known) if name not in known else "")


@contextlib.contextmanager
def option_faults(options: Mapping[str, str]) -> Iterator[None]:
    """Tell faults of a plan's fields as those of their options."""
    try:
        yield
    except InputError as error:
        raise InputError(
            [replace(fault, where=options.get(fault.where, fault.where)) for fault in error.faults]
        ) from error
