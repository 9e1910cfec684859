"""A sweep on a terminal, as files and as a page: a row for each combination, with its spread."""

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
from gpufabric.report.traffic_files import TableFormat, write_table
from gpufabric.report.traffic_html import page
from gpufabric.report.traffic_table import time_words
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.sim.sweep import (
    METRICS,
    Axis,
    SweepRow,
    by_combination,
    metric_names,
    spread_of,
)

__all__ = ["print_sweep", "run_columns", "summary_columns", "sweep_json", "write_sweep"]

SPREADS = ("mean", "min", "median", "max")

_MEANINGS = {
    "completion_s": "From the first start to the last byte [s].",
    "fct_p50_us": "Median flow completion time [µs].",
    "fct_p99_us": "99th percentile of the flow completion time [µs].",
    "fct_max_us": "Longest flow completion time [µs].",
    "slowdown_mean": "Mean slowdown against the flow alone [1].",
    "slowdown_p99": "Its 99th percentile [1].",
    "bandwidth_share": "Achieved over ideal bandwidth [1].",
    "achieved_gbps": "Bytes delivered over completion time [Gb/s].",
    "jain_index": "Jain's index of the flows' mean rates [1].",
    "finished": "Flows that finished.",
    "unfinished": "Flows that did not.",
    "busiest": "Utilisation of the busiest channel [1].",
    "ecn_marks": "Packets that switches marked.",
    "cnps": "Congestion notifications that senders took in.",
    "pauses": "Pauses that took effect.",
    "paused_us": "Time of all pauses of all ports together [µs].",
    "drops": "Packets dropped.",
    "repeats": "Packets sent again.",
    "timeouts": "Retry time-outs.",
    "failed_queue_pairs": "Queue pairs in error.",
    "out_of_order": "Packets that came out of order.",
    "most_queued_bytes": "Deepest queue of any port [byte].",
}


def run_columns(axes: Sequence[Axis], metrics: Sequence[str] = METRICS) -> tuple[FileColumn, ...]:
    """Return the columns of ``runs``: the axes, the seed, the metrics."""
    return (
        *(FileColumn(axis.key, "text", "Value of the axis.") for axis in axes),
        FileColumn("seed", "number", "Seed of the run."),
        *(FileColumn(name, "number", _MEANINGS[name]) for name in metrics),
    )


def summary_columns(
    axes: Sequence[Axis], metrics: Sequence[str] = METRICS
) -> tuple[FileColumn, ...]:
    """Return the columns of ``summary``: axes, number of runs, metrics with their spread."""
    return (
        *(FileColumn(axis.key, "text", "Value of the axis.") for axis in axes),
        FileColumn("runs", "number", "Seeds."),
        *(
            FileColumn(f"{name}_{spread}", "number", f"{spread} over seeds: {_MEANINGS[name]}")
            for name in metrics
            for spread in SPREADS
        ),
    )


def sweep_json(axes: Sequence[Axis], rows: Sequence[SweepRow], head: Mapping[str, Any]) -> Any:
    """Return a sweep as JSON-like values: combinations with their spread, and the single runs."""
    return {
        **head,
        "axes": {axis.key: list(axis.values) for axis in axes},
        "combinations": [
            {
                "values": dict(values),
                "runs": len(group),
                "metrics": {name: spread_of(group, name) for name in _metrics(rows)},
            }
            for values, group in by_combination(rows)
        ],
        "runs": [
            {
                "values": dict(row.point.values),
                "seed": row.point.scenario.seed,
                "metrics": dict(row.metrics),
            }
            for row in rows
        ],
    }


def write_sweep(
    axes: Sequence[Axis],
    rows: Sequence[SweepRow],
    head: Mapping[str, Any],
    folder: Path,
    form: TableFormat = "csv",
) -> list[Path]:
    """Write ``sweep.json``, the tables ``runs`` and ``summary``, and ``sweep.html``."""
    metrics = _metrics(rows)
    text = json.dumps(sweep_json(axes, rows, head), indent=2, ensure_ascii=False, allow_nan=False)
    return [
        write_text(folder / "sweep.json", text + "\n"),
        write_table(folder / f"runs.{form}", run_columns(axes, metrics), _run_values(axes, rows)),
        write_table(
            folder / f"summary.{form}", summary_columns(axes, metrics), _summary_values(axes, rows)
        ),
        write_text(folder / "sweep.html", _page(rows, head)),
    ]


def _metrics(rows: Sequence[SweepRow]) -> tuple[str, ...]:
    """Return the metrics that the engine of the runs gives."""
    return metric_names(rows[0].point.scenario.engine)


def _known(values: Sequence[float | None]) -> np.ndarray[Any, Any]:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _run_values(axes: Sequence[Axis], rows: Sequence[SweepRow]) -> dict[str, Any]:
    return {
        **{axis.key: np.array([row.point.values[axis.key] for row in rows]) for axis in axes},
        "seed": np.array([row.point.scenario.seed for row in rows]),
        **{name: _known([row.metrics[name] for row in rows]) for name in _metrics(rows)},
    }


def _summary_values(axes: Sequence[Axis], rows: Sequence[SweepRow]) -> dict[str, Any]:
    groups = by_combination(rows)
    table: dict[str, Any] = {
        axis.key: np.array([values[axis.key] for values, _group in groups]) for axis in axes
    }
    table["runs"] = np.array([len(group) for _values, group in groups])
    for name in _metrics(rows):
        found = [spread_of(group, name) or {} for _values, group in groups]
        for spread in SPREADS:
            table[f"{name}_{spread}"] = _known([one.get(spread) for one in found])
    return table


def print_sweep(
    axes: Sequence[Axis], rows: Sequence[SweepRow], warnings: Sequence[str], console: Console
) -> None:
    """Print a row for each combination: means over seeds, the range of completion times; doubts."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    for axis in axes:
        table.add_column(Text(axis.key), no_wrap=True)
    for heading in (
        _("runs"),
        _("completion time"),
        _("least–most"),
        _("of ideal bandwidth"),
        _("unfinished flows"),
    ):
        table.add_column("\n".join(heading.rsplit(" ", 1)), justify="right", no_wrap=True)
    for values, group in by_combination(rows):
        took_s, share = (spread_of(group, name) for name in ("completion_s", "bandwidth_share"))
        lost = spread_of(group, "unfinished")
        table.add_row(
            *(Text(values[axis.key]) for axis in axes),
            f"{len(group)}",
            time_words(took_s["mean"] if took_s else None),
            _range(took_s),
            f"{share['mean']:.1%}" if share else "–",
            f"{lost['mean']:,.1f}".removesuffix(".0") if lost else "–",
        )
    console.print(table)
    for warning in warnings:
        console.print(Text(_("Warning") + " " + warning, "yellow"), soft_wrap=True)


def _range(spread: dict[str, float] | None) -> str:
    if spread is None:
        return "–"
    low, high = time_words(spread["min"]), time_words(spread["max"])
    if low == high:
        return ""
    number, unit = low.split()
    return f"{number} – {high}" if high.endswith(f" {unit}") else f"{low} – {high}"


def _page(rows: Sequence[SweepRow], head: Mapping[str, Any]) -> str:
    figures = [
        _figure(rows, "completion_s", _("Completion time"), _("seconds")),
        _figure(rows, "fct_p99_us", _("99th percentile of flow completion time"), "µs"),
        _figure(rows, "bandwidth_share", _("Achieved of ideal bandwidth"), "", ".0%"),
    ]
    model = head["model"]
    facts = [
        (_("Model"), f"{model['name']} {model['version']}"),
        (_("Fabrics"), ", ".join(str(one["hash"])[:16] for one in head["fabrics"])),
        (_("Runs"), str(len(rows))),
        (_("First seed"), str(head["seed"])),
        *((_("Warning"), warning) for warning in head["warnings"]),
    ]
    return page(_("What-if: spread over seeds"), facts, figures)


def _figure(
    rows: Sequence[SweepRow], metric: str, title: str, unit: str, form: str = ""
) -> go.Figure:
    figure = go.Figure()
    for number, (values, group) in enumerate(by_combination(rows)):
        figure.add_box(
            y=[row.metrics[metric] for row in group],
            name="<br>".join(values.values()),
            boxpoints="all",
            jitter=0.0,
            pointpos=0.0,
            marker={"color": rail_colour(number)},
            showlegend=False,
        )
    figure.update_layout(
        title={"text": title, "font": {"size": 15}},
        template="plotly_white",
        height=420,
        margin={"l": 70, "r": 20, "t": 50, "b": 80},
        yaxis={"title": unit, "tickformat": form, "rangemode": "tozero"},
    )
    return figure
