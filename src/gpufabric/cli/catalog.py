"""``gpufabric catalog``: what devices are known, and where each number comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpufabric.catalog.load import load_catalog
from gpufabric.catalog.show import (
    LIST_KINDS,
    DeviceRow,
    ShownGroup,
    device_groups,
    device_json,
    device_rows,
)
from gpufabric.core.text import _

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help=_("Devices, their numbers and their sources."))

Folder = Annotated[
    Path | None,
    typer.Option("--catalog", help=_("Folder with device files that add to or replace ours.")),
]
AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]


@app.command("list")
def list_devices(
    kind: Annotated[str | None, typer.Option(help=", ".join(LIST_KINDS))] = None,
    catalog: Folder = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag on the command line
) -> None:
    """List the devices."""
    rows = device_rows(load_catalog(catalog), kind)
    if as_json:
        _print_json([row.to_json() for row in rows])
    else:
        Console().print(_listing(rows))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help=_("Name or alias; case does not count."))],
    catalog: Folder = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag on the command line
) -> None:
    """Show one device with the source of each group of numbers."""
    known = load_catalog(catalog)
    device = known.device(name)
    if as_json:
        _print_json(device_json(known, device))
    else:
        Console().print(_sheet(device_groups(device)))


def _print_json(content: object) -> None:
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def _listing(rows: Iterable[DeviceRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in (_("Name"), _("Kind"), _("Device"), _("In short")):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.name, row.kind, escape(row.title), escape(row.summary))
    return table


def _sheet(groups: Iterable[ShownGroup]) -> Table:
    table = Table(pad_edge=False, show_lines=True)
    for heading in (_("Group"), _("Numbers"), _("Source, date and kind")):
        table.add_column(heading, overflow="fold")
    for group in groups:
        numbers = "\n".join(f"{label}: {value}" for label, value in group.rows)
        table.add_row(escape(group.title), escape(numbers), escape(_origin(group)))
    return table


def _origin(group: ShownGroup) -> str:
    if not group.kind:
        return ""
    lines = [group.source, f"{group.date}, {group.kind}: {group.meaning}", group.note]
    return "\n".join(line for line in lines if line)
