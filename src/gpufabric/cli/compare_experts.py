"""``simulate collective --compare`` where the file has exchanges with experts."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from gpufabric.core.files import write_text
from gpufabric.report.expert_table import exchange_json, print_exchange
from gpufabric.report.side_by_side import terminal
from gpufabric.report.terminal import print_paths
from gpufabric.workload.expert_comparison import ExchangeComparison

__all__ = ["show_exchange"]


def show_exchange(
    found: ExchangeComparison, fabric: tuple[str, str], folder: Path | None, *, as_json: bool
) -> None:
    """Print and write measured exchanges beside what was predicted; 1 if most fall short."""
    content = exchange_json(found, dict(zip(("name", "hash"), fabric, strict=True)))
    paths = []
    if folder is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        paths = [write_text(folder / "experts.json", text + "\n")]
    if as_json:
        content = {**content, "files": [str(path) for path in paths]} if paths else content
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        print_exchange(found, terminal())
        print_paths(paths, terminal())
    if found.is_short:
        raise typer.Exit(1)
