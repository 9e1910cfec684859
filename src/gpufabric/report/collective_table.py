"""Times of a collective on a terminal, as JSON and as a table, and a measured run beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.report.traffic_files import write_table
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.workload.closed_form import MODEL, MODEL_VERSION, Estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.comparison import Comparison
from gpufabric.workload.host_findings import HostFinding
from gpufabric.workload.on_fabric import Contention
from gpufabric.workload.sharp_on_fabric import SharpRun

__all__ = [
    "SIZE_COLUMNS",
    "CollectiveReport",
    "bandwidths",
    "collective_json",
    "print_collective",
    "size_words",
    "write_sizes",
]

Floats = NDArray[np.float64]

SIZE_COLUMNS = (
    FileColumn("size_bytes", "number", "Message size, as nccl-tests counts it [byte]."),
    FileColumn("algorithm", "text", "What NCCL would choose, or what was forced."),
    FileColumn("protocol", "text", "LL, LL128 or Simple."),
    FileColumn("time_us", "number", "Predicted time [µs]."),
    FileColumn("algbw_gbytes_per_s", "number", "Size over time [GB/s]."),
    FileColumn("busbw_gbytes_per_s", "number", "Predicted bus bandwidth [GB/s]."),
    FileColumn("low_gbytes_per_s", "number", "Lower end of the 80 % interval [GB/s]."),
    FileColumn("high_gbytes_per_s", "number", "Upper end of the same [GB/s]."),
    FileColumn("measured_gbytes_per_s", "number", "Measured bus bandwidth; empty without one."),
)


MOST_TREES = 16
"""Trees of SHARP that a terminal shows."""


@dataclass(frozen=True)
class CollectiveReport:
    """What was asked of a collective, and what came out.

    Parameters
    ----------
    operation
        As nccl-tests names it.
    cluster
        Where it runs.
    fabric
        Name and content hash.
    engine, seed
        How the network was reckoned with.
    found
        Times by size.
    losses
        What the network did to each algorithm, of the engines.
    others
        The same for each algorithm and protocol that NCCL could choose, by name.
    comparison
        A measured run, if one was given.
    host_findings
        What is wrong with the host whose file was given.
    notes
        What variables of the environment did not change.
    """

    operation: str
    cluster: Cluster
    fabric: tuple[str, str]
    engine: str
    seed: int
    found: Estimate
    losses: Mapping[str, Contention] = field(default_factory=dict)
    others: Mapping[str, Estimate] = field(default_factory=dict)
    comparison: Comparison | None = None
    host_findings: Sequence[HostFinding] = ()
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        """What runs where."""
        return _("{operation} on {n} x {gpu}, {domains} hosts or NVLink domains; GB/s").format(
            operation=self.operation,
            n=self.cluster.n_ranks,
            gpu=self.cluster.gpu,
            domains=self.cluster.n_domains,
        )

    @property
    def has_findings(self) -> bool:
        """Whether something is wrong: the measured run falls short, or the host is not right."""
        return self.is_short or any(one.severity == "warning" for one in self.host_findings)

    @property
    def is_short(self) -> bool:
        """Whether a measured run falls short: a cause is known, or most sizes are below."""
        if self.comparison is None:
            return False
        below = sum(point.verdict == "below" for point in self.comparison.points)
        return bool(self.comparison.causes) or 2 * below > len(self.comparison.points)


def size_words(size_bytes: float) -> str:
    """Return a message size with a binary unit.

    Examples
    --------
    >>> size_words(1024), size_words(2**26), size_words(1500)
    ('1 KiB', '64 MiB', '1.46 KiB')
    """
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes >= 2**power:
            return f"{size_bytes / 2**power:.3g} {unit}"
    return f"{size_bytes:.0f} B"


def bandwidths(found: Estimate) -> tuple[Floats, Floats, Floats]:
    """Return low, predicted and high bus bandwidths: float64[n] each [GB/s]."""
    gain = found.size_bytes / 1e3 * found.factor
    return gain / found.high_us, gain / found.time_us, gain / found.low_us


def collective_json(report: CollectiveReport) -> dict[str, Any]:
    """Return the report as JSON-like values."""
    found = report.found
    low, middle, high = bandwidths(found)
    content: dict[str, Any] = {
        "model": {"name": MODEL, "version": MODEL_VERSION, "engine": report.engine},
        "fabric": dict(zip(("name", "hash"), report.fabric, strict=True)),
        "operation": report.operation,
        "ranks": report.cluster.n_ranks,
        "gpu": report.cluster.gpu,
        "seed": report.seed,
        "network_slowdown": {name: loss.slowdown for name, loss in report.losses.items()},
        "sharp": {
            name: loss.sharp.to_json()
            for name, loss in report.losses.items()
            if loss.sharp is not None
        },
        "extrapolates": list(found.extrapolates),
        "rows": [
            {
                "size_bytes": int(found.size_bytes[at]),
                "algorithm": found.choices[at].algorithm,
                "protocol": found.choices[at].protocol,
                "time_us": float(found.time_us[at]),
                "algbw_gbytes_per_s": float(found.algbw_gbytes_per_s[at]),
                "busbw_gbytes_per_s": float(middle[at]),
                "busbw_low_gbytes_per_s": float(low[at]),
                "busbw_high_gbytes_per_s": float(high[at]),
            }
            for at in range(len(found.size_bytes))
        ],
    }
    if report.host_findings:
        content["host_findings"] = [_finding_json(one) for one in report.host_findings]
    if report.notes:
        content["notes"] = list(report.notes)
    comparison = report.comparison
    if comparison is not None:
        content["summary"] = list(comparison.summary)
        content["points"] = [vars(point) for point in comparison.points]
        content["causes"] = [vars(cause) for cause in comparison.causes]
    return content


def _finding_json(one: HostFinding) -> dict[str, str]:
    return {
        "rule": one.rule,
        "severity": one.severity,
        "where": one.fault.where,
        "what": one.fault.what,
        "remedy": one.fault.remedy,
        "impairment": one.impairment,
    }


def write_sizes(report: CollectiveReport, path: Path) -> Path:
    """Write a row for each size; return `path`."""
    found = report.found
    low, middle, high = bandwidths(found)
    measured = np.full(len(found.size_bytes), np.nan)
    if report.comparison is not None:
        measured = np.array([one.measured_gbytes_per_s for one in report.comparison.points])
    values = {
        "size_bytes": found.size_bytes.astype(np.int64),
        "algorithm": np.array([choice.algorithm for choice in found.choices], np.str_),
        "protocol": np.array([choice.protocol for choice in found.choices], np.str_),
        "time_us": found.time_us.round(4),
        "algbw_gbytes_per_s": found.algbw_gbytes_per_s.round(4),
        "busbw_gbytes_per_s": middle.round(4),
        "low_gbytes_per_s": low.round(4),
        "high_gbytes_per_s": high.round(4),
        "measured_gbytes_per_s": measured,
    }
    return write_table(path, SIZE_COLUMNS, values)


# Terminal ----------------------------------------------------------------------------------


def print_collective(report: CollectiveReport, console: Console) -> None:
    """Print times by size, or a measured run beside them; then what was found and noted."""
    if report.comparison is None:
        _print_sizes(report, console)
    else:
        _print_comparison(report.comparison, console)
    for one in report.host_findings:
        words = f"{one.severity}: {one.fault}"
        if one.impairment:
            words += " " + _("What it costs: --impair {name}.").format(name=one.impairment)
        console.print(Text(words), soft_wrap=True)
    for note in report.notes:
        console.print(Text(note, "dim"))


def _print_sizes(report: CollectiveReport, console: Console) -> None:
    console.print(Text(report.title, "bold"))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    headings = (
        _("size [B]"),
        _("algorithm"),
        _("time [µs]"),
        _("algbw"),
        _("busbw"),
        _("80 % of runs"),
    )
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at == 1 else "right", no_wrap=True)
    found = report.found
    low, middle, high = bandwidths(found)
    for at in range(len(found.size_bytes)):
        table.add_row(
            f"{int(found.size_bytes[at])}",
            str(found.choices[at]),
            f"{found.time_us[at]:.1f}",
            f"{found.algbw_gbytes_per_s[at]:.2f}",
            f"{middle[at]:.2f}",
            f"{low[at]:.2f} – {high[at]:.2f}",
        )
    console.print(table)
    for name, loss in report.losses.items():
        text = _("{algorithm}: the network takes {factor:.3f} times as long as at full NIC rate.")
        console.print(text.format(algorithm=name, factor=loss.slowdown))
        if loss.sharp is not None:
            _print_sharp(name, loss.sharp, console)
    for reason in found.extrapolates:
        console.print(Text(_("Beyond what was measured: {reason}").format(reason=reason)))


def _print_sharp(name: str, run: SharpRun, console: Console) -> None:
    """Print the trees that the switches add up over, and what the network's part took."""
    if run.took_us is not None and run.busbw_gbytes_per_s is not None:
        text = _(
            "{algorithm}: the network's part of {size} takes {us:.1f} µs packet by packet, busbw "
            "{busbw:.1f} GB/s."
        )
        size, busbw = size_words(run.size_bytes), run.busbw_gbytes_per_s
        console.print(text.format(algorithm=name, size=size, us=run.took_us, busbw=busbw))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    headings = (_("SHARP tree, root"), _("NICs"), _("switches"), _("levels"), _("FCT [µs]"))
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for tree in run.trees[:MOST_TREES]:
        took = "–" if tree.fct_us is None else f"{tree.fct_us:.1f}"
        counts = (tree.n_members, tree.n_switches, tree.depth)
        table.add_row(Text(tree.root), *map(str, counts), took)
    console.print(table)
    if len(run.trees) > MOST_TREES:
        console.print(_("{n} trees in all; --json has them.").format(n=len(run.trees)))


def _print_comparison(found: Comparison, console: Console) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in (_("size [B]"), _("measured"), _("predicted"), _("80 % of runs"), _("share")):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in found.points:
        table.add_row(
            f"{point.size_bytes}",
            f"{point.measured_gbytes_per_s:.2f}",
            f"{point.predicted_gbytes_per_s:.2f}",
            f"{point.low_gbytes_per_s:.2f} – {point.high_gbytes_per_s:.2f}",
            f"{point.measured_gbytes_per_s / point.predicted_gbytes_per_s:.0%}",
        )
    console.print(Text(_("{operation}, busbw in GB/s").format(operation=found.operation), "bold"))
    console.print(table)
    for line in found.summary:
        console.print(Text(line))
