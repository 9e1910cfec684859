"""``gpufabric show``: what a fabric file holds, or the links of one of its switches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.core.text import _
from gpufabric.model.files import load_fabric
from gpufabric.report.fabric_table import fabric_counts, print_fabric, print_links, switch_links
from gpufabric.report.side_by_side import terminal

__all__ = ["show"]

_File = Annotated[
    Path,
    typer.Argument(metavar="FABRIC", help=_("Fabric file, as JSON or in the compact form.")),
]
_Switch = Annotated[
    str | None, typer.Option("--switch", metavar="NAME", help=_("List the links of this switch."))
]
_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]


def show(fabric: _File, *, switch: _Switch = None, as_json: _AsJson = False) -> None:
    """Show what a fabric file holds."""
    found = load_fabric(fabric)
    links = None if switch is None else switch_links(found, switch)
    if as_json:
        content = fabric_counts(found) if links is None else [link._asdict() for link in links]
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    elif links is None:
        print_fabric(found, terminal())
    else:
        print_links(links)
