"""Settings side by side: tail, jitter, pauses and drops as a table, as JSON and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.compare_html import compare_html
from gpufabric.report.compare_words import cells, conclusions, headings, labels_of, notes
from gpufabric.report.traffic_files import write_table
from gpufabric.sim.compare import Compared
from gpufabric.sim.compare_variants import meanings
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.sim.packet_outcome import COUNTERS
from gpufabric.sim.packet_run import PACKET_MODEL

__all__ = ["ITERATION_COLUMNS", "compare_json", "print_compared", "write_compared"]

TIMES = 4
"""Columns of the first table on a terminal."""

ITERATION_COLUMNS = (
    FileColumn("fabric", "text", "Name of the fabric."),
    FileColumn("variant", "text", "Name of the variant."),
    FileColumn("iteration", "number", "From 0."),
    FileColumn("took_us", "number", "From the first start to the last byte [µs]; empty if cut."),
    FileColumn("unfinished", "number", "Flows that were not delivered."),
    *(FileColumn(name, "number", "As in a what-if.") for name in COUNTERS),
)


def compare_json(found: Sequence[Compared], head: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparison as JSON-like values."""
    model = dict(zip(("name", "version"), PACKET_MODEL, strict=True))
    words = meanings()
    rows = [{"meaning": words[one.trial.variant.name], **one.summary()} for one in found]
    return {"model": model, **head, "variants": rows}


def write_compared(found: Sequence[Compared], head: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write ``compare.json``, ``iterations.csv`` and ``compare.html``; return the paths."""
    content = compare_json(found, head)
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return [
        write_text(folder / "compare.json", text + "\n"),
        write_table(folder / "iterations.csv", ITERATION_COLUMNS, _iterations(found)),
        write_text(folder / "compare.html", compare_html(found, head)),
    ]


def _iterations(found: Sequence[Compared]) -> dict[str, Any]:
    rows = [(one, at, it) for one in found for at, it in enumerate(one.iterations)]
    return {
        "fabric": np.array([one.trial.fabric for one, _at, _it in rows], np.str_),
        "variant": np.array([one.trial.variant.name for one, _at, _it in rows], np.str_),
        "iteration": np.array([at for _one, at, _it in rows]),
        "took_us": np.array([it.took_s * 1e6 for _one, _at, it in rows]),
        "unfinished": np.array([it.unfinished for _one, _at, it in rows]),
        **{
            name: np.array([float(it.counters[name]) for _one, _at, it in rows])
            for name in COUNTERS
        },
    }


# Terminal ----------------------------------------------------------------------------------------


def print_compared(found: Sequence[Compared], head: Mapping[str, Any], console: Console) -> None:
    """Print a row for each variant: iteration time, jitter, tail, counters."""
    title = _("{pattern}, {n} iterations of each variant, hosts up to {skew:g} µs apart").format(
        pattern=head["traffic"]["pattern"], n=head["iterations"], skew=head["skew_us"]
    )
    console.print(Text(title, "bold"))
    for words, is_bad in conclusions(found, head):
        console.print(Text("• " + words, "bold red" if is_bad else ""))
    console.print()
    labels = labels_of(found)
    rows = [cells(one.summary(), head) for one in found]
    for part in (slice(0, TIMES), slice(TIMES, None)):
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column(_("variant"), overflow="fold", min_width=29)
        for heading in headings()[part]:
            table.add_column(heading, justify="right", no_wrap=True)
        for label, row in zip(labels, rows, strict=True):
            table.add_row(Text(label), *row[part])
        console.print(table)
        console.print()
    for words in notes(found, head):
        console.print(Text(words, "dim"))
