"""``gpufabric design``: the network of a candidate in numbers, without racks, cables or prices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.cli.loading import CandidateNames, CatalogFolder, SpecFile, chosen, load_spec
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.files import save_fabric
from gpufabric.report.design_table import print_designs
from gpufabric.topology.design import design_candidate

__all__ = ["design"]

_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]
_Save = Annotated[
    Path | None,
    typer.Option(
        "--save", metavar="FILE", help=_("Write the fabric: .json, or .fab for the compact form.")
    ),
]


def design(
    spec: SpecFile,
    *,
    candidate: CandidateNames = None,
    as_json: _AsJson = False,
    save: _Save = None,
    catalog: CatalogFolder = None,
) -> None:
    """Design candidates of a spec and print the counts.

    With --json one candidate is printed as an object, several as a list of objects.
    """
    requirement, known = load_spec(spec, catalog)
    wanted = chosen(requirement, candidate)
    if save is not None and len(wanted) != 1:
        raise InputError(
            Fault("--save", _("{count} designs.").format(count=len(wanted)), _("one --candidate"))
        )
    designs = [design_candidate(requirement, entry, known) for entry in wanted]
    if save is not None:
        save_fabric(designs[0].fabric, save)
    if as_json:
        found = [entry.summary() for entry in designs]
        content = found[0] if len(found) == 1 else found
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        print_designs(designs)
