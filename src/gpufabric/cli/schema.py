"""``gpufabric schema``: the JSON Schema of a file, by which editors complete and check it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gpufabric.catalog.load import device_schema
from gpufabric.catalog.models import DEVICE_KINDS
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.model.files import fabric_schema
from gpufabric.model.requirement import requirement_schema
from gpufabric.planner.compare import plan_schema
from gpufabric.sim.named_faults import faults_schema
from gpufabric.sim.profile_fields import profile_schema

__all__ = ["schema"]

_DEVICE = "device:"
_SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "spec": requirement_schema,
    "fabric": fabric_schema,
    "plan": plan_schema,
    "profile": profile_schema,
    "faults": faults_schema,
}

_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help=_("File to write. Left out: standard output.")),
]
_Of = Annotated[
    str,
    typer.Option(
        "--of",
        metavar="WHAT",
        help=_("Of what: {names}, or device:KIND with KIND one of {kinds}.").format(
            names=", ".join(_SCHEMAS), kinds=", ".join(DEVICE_KINDS)
        ),
    ),
]
_AsJson = Annotated[
    bool,
    typer.Option(
        "--json", show_default=False, help=_("Print JSON, which this command does anyway.")
    ),
]


def schema(output: _Output = None, *, of: _Of = "spec", as_json: _AsJson = True) -> None:  # noqa: ARG001
    """Print the JSON Schema of a spec, fabric, plan, profile, faults or a device."""
    text = json.dumps(_schema_of(of), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(write_text(output, text))


def _schema_of(what: str) -> dict[str, Any]:
    if what.startswith(_DEVICE):
        return device_schema(what.removeprefix(_DEVICE))
    if what in _SCHEMAS:
        return _SCHEMAS[what]()
    names = [*_SCHEMAS, *(f"{_DEVICE}{kind}" for kind in DEVICE_KINDS)]
    raise InputError(
        Fault(
            "--of",
            _('"{value}" found.').format(value=what),
            _("one of {names}").format(names=", ".join(names)),
            nearest(what, names),
        )
    )
