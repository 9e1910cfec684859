"""Measured exchanges with experts beside what was predicted, on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.workload.expert_comparison import HIGH, LOW, ExchangeComparison

__all__ = ["exchange_json", "print_exchange"]


def exchange_json(found: ExchangeComparison, fabric: Mapping[str, str]) -> dict[str, Any]:
    """Return a comparison as JSON-like values; `fabric` has its name and content hash."""
    return {
        "model": {"name": "expert-exchange", "version": 1},
        "fabric": dict(fabric),
        "rows": [
            {
                "line": one.row.line,
                "kernel": one.row.kernel,
                "operation": one.row.operation,
                "ranks": one.n_ranks,
                "counted": "NVLink" if one.row.over_nvlink else "RDMA",
                "measured_gbytes_per_s": one.row.gbytes_per_s,
                "measured_us": one.row.latency_us,
                "predicted_gbytes_per_s": one.predicted_gbytes_per_s,
                "predicted_low_gbytes_per_s": LOW * one.predicted_gbytes_per_s,
                "predicted_high_gbytes_per_s": HIGH * one.predicted_gbytes_per_s,
                "predicted_us": one.predicted_us,
                "verdict": one.verdict,
            }
            for one in found.points
        ],
        "left_out": found.n_left_out,
        "summary": list(found.summary),
    }


def print_exchange(found: ExchangeComparison, console: Console) -> None:
    """Print what was measured beside what was predicted, and what to look at."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    headings = (
        _("kernel"),
        _("operation"),
        _("ranks"),
        _("measured"),
        _("predicted"),
        _("range"),
        _("share"),
    )
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at < 2 else "right", no_wrap=True)
    for one in found.points:
        rate = one.predicted_gbytes_per_s
        table.add_row(
            one.row.kernel,
            one.row.operation,
            str(one.n_ranks),
            f"{one.row.gbytes_per_s:.1f}",
            f"{rate:.1f}",
            f"{LOW * rate:.1f} – {HIGH * rate:.1f}",
            f"{one.ratio:.0%}",
        )
    console.print(Text(_("Exchange with experts, GB/s as DeepEP counts them"), "bold"))
    console.print(table)
    for line in found.summary:
        console.print(Text(line))
