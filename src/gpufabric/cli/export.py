"""``gpufabric export``: a fabric in the format of another tool."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.export import EXPORTS, ExportOptions, export_fabric, find_export
from gpufabric.export.ibsim import LANE_GBPS
from gpufabric.export.interfaces import NOSES
from gpufabric.export.save import save_export
from gpufabric.model.files import load_fabric

__all__ = ["export"]

_LONGEST_NAME = 60

_Fabric = Annotated[
    Path | None, typer.Argument(help=_("Fabric file, as JSON or in the compact form."))
]
_To = Annotated[
    str, typer.Option("--to", help=", ".join(export.name for export in EXPORTS) + "; list")
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help=_(
            "Folder, or the file where there is only one. Left out: a folder here, named after "
            "fabric and format."
        ),
    ),
]
_SpeedCap = Annotated[str, typer.Option(help=f"ibsim: {', '.join(LANE_GBPS)}")]
_Nos = Annotated[
    str, typer.Option(help=_("Network OS that names the interfaces:") + f" {', '.join(NOSES)}")
]
_Grown = Annotated[bool, typer.Option("--grown", help=_("The fabric after growth."))]
_Folder = Annotated[
    Path | None,
    typer.Option("--catalog", help=_("Folder with device files that add to or replace ours.")),
]
_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]


def export(  # noqa: PLR0913 - one parameter for each option
    fabric: _Fabric = None,
    *,
    to: _To,
    output: _Output = None,
    speed_cap: _SpeedCap = "",
    nos: _Nos = "",
    grown: _Grown = False,
    catalog: _Folder = None,
    as_json: _AsJson = False,
) -> None:
    """Write a fabric in the format of another tool; --to list names the formats."""
    if to == "list":
        _list_formats(as_json=as_json)
        return
    chosen = find_export(to)
    if fabric is None:
        raise InputError(Fault("FABRIC", _("is missing."), _("a fabric file")))
    design = load_fabric(fabric)
    options = ExportOptions(load_catalog(catalog), speed_cap, nos, stage=int(grown))
    files = export_fabric(design, chosen.name, options)
    paths = save_export(files, output or _folder(design.name, chosen.name))
    _print_paths(design.content_hash, [str(path) for path in paths], as_json=as_json)


def _folder(fabric: str, form: str) -> Path:
    """Return the folder of an export by default: in the current one, whatever the fabric's name."""
    safe = re.sub(r"[^\w-]+", "-", fabric)[:_LONGEST_NAME].strip("-")
    return Path(f"{safe or 'fabric'}-{form}")


def _print_paths(content_hash: str, paths: list[str], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"fabric": content_hash, "files": paths}, indent=2))
    else:
        typer.echo("\n".join(paths))


def _list_formats(*, as_json: bool) -> None:
    if as_json:
        formats = [{"name": known.name, "what": known.describe()} for known in EXPORTS]
        typer.echo(json.dumps(formats, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(f"{known.name:14}{known.describe()}" for known in EXPORTS))
