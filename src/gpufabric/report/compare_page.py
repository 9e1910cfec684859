"""Settings side by side: tail, jitter, pauses and drops as a table, as JSON and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.figure_style import rail_colour
from gpufabric.report.traffic_files import write_table
from gpufabric.report.traffic_html import page
from gpufabric.report.traffic_table import time_words
from gpufabric.sim.compare import Compared
from gpufabric.sim.compare_variants import meanings
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.sim.packet_outcome import COUNTERS
from gpufabric.sim.packet_run import PACKET_MODEL

__all__ = ["ITERATION_COLUMNS", "compare_json", "print_compared", "write_compared"]

TIMES = 4
"""Columns of the first table on a terminal."""
MOST_POINTS = 1000
"""Points that a curve is drawn with."""

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
        write_text(folder / "compare.html", _page(found, head)),
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


def _labels(found: Sequence[Compared]) -> list[str]:
    """Return the name of each trial, with the fabric where there are several."""
    several = len({one.trial.fabric for one in found}) > 1
    return [
        f"{one.trial.variant.name} · {one.trial.fabric}" if several else one.trial.variant.name
        for one in found
    ]


# Terminal ----------------------------------------------------------------------------------------


def print_compared(found: Sequence[Compared], head: Mapping[str, Any], console: Console) -> None:
    """Print a row for each variant: iteration time, jitter, tail, counters."""
    title = _("{pattern}, {n} iterations of each variant, hosts up to {skew:g} µs apart").format(
        pattern=head["traffic"]["pattern"], n=head["iterations"], skew=head["skew_us"]
    )
    console.print(Text(title, "bold"))
    headings, labels = _headings(), _labels(found)
    rows = [_cells(one.summary()) for one in found]
    for part in (slice(0, TIMES), slice(TIMES, None)):
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        table.add_column(_("variant"), overflow="fold", min_width=29)
        for heading in headings[part]:
            table.add_column(heading, justify="right", no_wrap=True)
        for label, cells in zip(labels, rows, strict=True):
            table.add_row(Text(label), *cells[part])
        console.print(table)
        console.print()
    if min(one.took_s.size for one in found) < 1000:
        words = _("p99.9 of fewer than 1,000 iterations is the longest. Cut off: not counted.")
        console.print(Text(words, "dim"))


def _headings() -> tuple[str, ...]:
    return (
        _("iteration p50"),
        "p99",
        "p99.9",
        _("variation"),
        _("FCT p99.9"),
        _("pauses"),
        _("drops"),
        _("sent again"),
        _("cut off"),
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    took, fct, each = row["iteration_us"] or {}, row["fct_us"] or {}, row["per_iteration"]
    variation = row["coefficient_of_variation"]
    return [
        *(_us(took.get(name)) for name in ("p50", "p99", "p99.9")),
        "–" if variation is None else f"{variation:.2%}",
        _us(fct.get("p99.9")),
        *(f"{each[name]:,.0f}" for name in ("pauses", "drops", "repeats")),
        f"{row['unfinished_flows'] / row['iterations']:,.1f}".removesuffix(".0"),
    ]


def _us(value: float | None) -> str:
    return time_words(None if value is None else value * 1e-6)


# Page --------------------------------------------------------------------------------------------


def _page(found: Sequence[Compared], head: Mapping[str, Any]) -> str:
    facts = [
        (_("Traffic"), f"{head['traffic']['pattern']}, {head['traffic']['bytes']:,.0f} B"),
        (_("Iterations"), str(head["iterations"])),
        (_("Hosts apart"), f"{head['skew_us']:g} µs"),
        (_("Model"), " ".join(str(part) for part in PACKET_MODEL)),
        (_("Seed"), str(head["seed"])),
        *(
            (_("Fabric"), f"{one['name']}, {one['protocol']}, {one['routing']}, {one['hash'][:16]}")
            for one in head["fabrics"]
        ),
        *((one.trial.variant.name, meanings()[one.trial.variant.name]) for one in found),
    ]
    figures = [
        _table(found),
        _boxes(found),
        _curves(found),
        _bars(found),
    ]
    return page(_("InfiniBand and RoCE on the same traffic"), facts, figures)


def _layout(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 15}},
        "template": "plotly_white",
        "margin": {"l": 220, "r": 20, "t": 50, "b": 50},
        **more,
    }


def _height(found: Sequence[Compared]) -> int:
    return 140 + 28 * len(found)


def _table(found: Sequence[Compared]) -> go.Figure:
    rows = [_cells(one.summary()) for one in found]
    columns = [_labels(found), *([row[at] for row in rows] for at in range(len(_headings())))]
    figure = go.Figure(
        go.Table(
            header={"values": [_("variant"), *_headings()], "align": "left"},
            cells={
                "values": columns,
                "align": ["left"] + ["right"] * len(_headings()),
                "height": 24,
            },
            columnwidth=[3] + [1] * len(_headings()),
        )
    )
    layout = _layout(_("Side by side; counters of an iteration"), height=_height(found) + 60)
    return figure.update_layout({**layout, "margin": {"l": 0, "r": 0, "t": 50, "b": 10}})


def _boxes(found: Sequence[Compared]) -> go.Figure:
    """Iteration times; a variant that never finished has no box."""
    figure = go.Figure()
    for number, (label, one) in enumerate(zip(_labels(found), found, strict=True)):
        figure.add_box(
            x=(one.took_s * 1e6).tolist() or [None],
            name=label,
            marker={"color": rail_colour(number)},
            boxpoints="outliers",
            showlegend=False,
        )
    return figure.update_layout(
        _layout(_("Iteration times"), height=_height(found)),
        xaxis={"title": _("iteration time [µs]"), "type": "log"},
        yaxis={"autorange": "reversed"},
    )


def _curves(found: Sequence[Compared]) -> go.Figure:
    """Share of flows that take longer than a time, both axes logarithmic: the tail."""
    figure = go.Figure()
    for number, (label, one) in enumerate(zip(_labels(found), found, strict=True)):
        fct_us = one.fct_s * 1e6
        if not fct_us.size:
            continue
        cuts = np.linspace(0, fct_us.size - 1, min(fct_us.size, MOST_POINTS)).astype(int)
        tail = np.unique(np.concatenate([cuts, np.arange(max(0, fct_us.size - 50), fct_us.size)]))
        figure.add_scatter(
            x=fct_us[tail].tolist(),
            y=(1.0 - tail / fct_us.size).tolist(),
            name=label,
            mode="lines",
            line={"color": rail_colour(number), "dash": "solid" if number < 8 else "dash"},
        )
    return figure.update_layout(
        _layout(_("Flow completion times: share of flows that take longer"), height=460),
        xaxis={"title": _("completion time [µs]"), "type": "log"},
        yaxis={"title": _("share of flows"), "type": "log"},
    )


def _bars(found: Sequence[Compared]) -> go.Figure:
    """Pauses, drops and repeats of an iteration."""
    labels = _labels(found)
    rows = [one.summary()["per_iteration"] for one in found]
    figure = go.Figure()
    for number, (name, title) in enumerate(
        (("pauses", _("pauses")), ("drops", _("drops")), ("repeats", _("sent again")))
    ):
        figure.add_bar(
            y=labels,
            x=[row[name] or None for row in rows],
            name=title,
            orientation="h",
            marker={"color": rail_colour(number)},
        )
    return figure.update_layout(
        _layout(_("Pauses, drops and packets sent again, of an iteration"), height=_height(found)),
        barmode="group",
        xaxis={"type": "log", "title": _("packets or pauses")},
        yaxis={"autorange": "reversed"},
    )
