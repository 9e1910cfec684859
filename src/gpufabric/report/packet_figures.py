"""Figures of a packet run: queues, pauses and rates on one clock, and completion times."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from gpufabric.core.text import _
from gpufabric.report.figure_style import GRID, INK, MUTED, WARNING, rail_colour
from gpufabric.report.packet_names import PortNames
from gpufabric.report.packet_rates import rate_gbps
from gpufabric.sim.packet import PacketProblem, PacketResult
from gpufabric.sim.packet_recording import PacketSeries

__all__ = ["completion_figure", "frame", "shown_rows", "timeline_figure"]

MOST_PORTS = 8
"""Ports in the time lines: as many as there are colours."""
LEAST = 0.02
"""Of the largest: ports with less have no line."""
MOST_POINTS = 2000
"""Points of a curve of completion times."""


def frame(height: int, **more: Any) -> dict[str, Any]:
    """Return what all figures of the page have in common."""
    return {
        "template": "plotly_white",
        "height": height,
        "margin": {"l": 64, "r": 12, "t": 28, "b": 48},
        "font": {"family": "Inter, Segoe UI, Arial, sans-serif", "color": INK, "size": 12},
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.12, "x": 0, "xanchor": "left"},
        "hovermode": "x unified",
        **more,
    }


def shown_rows(series: PacketSeries) -> list[int]:
    """Return the rows of the ports worth a line: deepest queues and longest pauses, in turn."""
    deepest = series.deepest_bytes.max(axis=(1, 2))
    paused = series.paused.max(axis=1).sum(axis=1)
    ranks = [np.argsort(-values, kind="stable") for values in (deepest, paused)]
    rows: list[int] = []
    for pair in zip(*ranks, strict=True):
        for row, values in zip(pair, (deepest, paused), strict=True):
            if (
                values[row] > LEAST * values.max()
                and int(row) not in rows
                and len(rows) < MOST_PORTS
            ):
                rows.append(int(row))
    return rows


def timeline_figure(problem: PacketProblem, result: PacketResult, names: PortNames) -> go.Figure:
    """Draw queues, pauses and rates of the same ports above each other."""
    series = result.series
    assert series is not None
    is_large = series.deepest_bytes.max(initial=0.0) >= 1e6
    deepest = _("deepest queue [MB]") if is_large else _("deepest queue [kB]")
    titles = (deepest, _("time paused"), _("rate [Gb/s]"))
    figure = make_subplots(
        rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06, subplot_titles=titles
    )
    time_us = series.time_us
    for number, row in enumerate(shown_rows(series)):
        channel = int(series.channels[row])
        values = (
            series.deepest_bytes[row].sum(axis=0) / (1e6 if is_large else 1e3),
            series.paused[row].max(axis=0),
            rate_gbps(problem, series, row),
        )
        for place, line in enumerate(values):
            figure.add_scatter(
                mode="lines",
                x=time_us.round(3).tolist(),
                y=line.round(4).tolist(),
                name=names.channels[channel],
                legendgroup=str(channel),
                showlegend=place == 0,
                line={"color": rail_colour(number), "width": 1.6, "shape": "hvh"},
                row=place + 1,
                col=1,
            )
    if result.deadlock is not None:
        at_us = result.deadlock.since_ps / 1e6
        figure.add_vline(at_us, line={"color": WARNING, "dash": "dash"}, row="all", col=1)
    figure.update_layout(frame(640))
    figure.update_layout(legend={"y": -0.14})
    figure.update_annotations(x=0, xanchor="left", font={"size": 12, "color": MUTED})
    figure.update_yaxes(rangemode="tozero", gridcolor=GRID)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.04], row=2, col=1)
    figure.update_xaxes(gridcolor=GRID)
    figure.update_xaxes(title_text=_("time [µs]"), row=3, col=1)
    return figure


def completion_figure(problem: PacketProblem, result: PacketResult, names: PortNames) -> go.Figure:
    """Draw the share of flows that completed within a time, a curve for each class."""
    came = result.flows.fct_ps >= 0
    of_class = np.zeros(problem.n_flows, np.int64)
    if problem.traffic_class is not None:
        of_class = np.asarray(problem.traffic_class, np.int64)
    figure = go.Figure()
    for number, traffic in enumerate(np.unique(of_class).tolist()):
        mine = of_class == traffic
        fct_us = np.sort(result.flows.fct_ps[came & mine]) / 1e6
        x, y = _curve(fct_us, int(mine.sum()))
        figure.add_scatter(
            x=x,
            y=y,
            name=names.traffic(traffic),
            mode="lines",
            line={"shape": "hv", "color": rail_colour(number), "width": 2},
        )
    times = result.flows.fct_ps[came]
    is_wide = bool(times.size) and times.max() > 30 * max(1, times.min())
    figure.update_layout(
        frame(320, showlegend=len(figure.data) > 1, hovermode="closest"),
        xaxis={"title": _("completion time [µs]"), "gridcolor": GRID},
        yaxis={"title": _("share of flows"), "tickformat": ".0%", "range": [0, 1.02]},
    )
    if is_wide:
        figure.update_xaxes(type="log")
    return figure


def _curve(fct_us: NDArray[np.float64], n_flows: int) -> tuple[list[float], list[float]]:
    """Return the points of a curve; flows that have not come keep it below 100 %."""
    if not fct_us.size:
        return [], []
    size = min(fct_us.size, MOST_POINTS)
    chosen = np.unique(np.linspace(0, fct_us.size - 1, size).round().astype(int))
    x = [float(fct_us[0]), *fct_us[chosen].round(4).tolist()]
    return x, [0.0, *((chosen + 1) / n_flows).tolist()]
