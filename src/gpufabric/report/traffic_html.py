"""A run of traffic as one HTML page that needs no network: heat maps, time series, FCT curve."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from gpufabric.core.files import write_text
from gpufabric.core.text import _, current_language
from gpufabric.report.figure_style import INK, MUTED, rail_colour
from gpufabric.report.heat_map_png import COLOURS
from gpufabric.report.traffic_table import completion_words, flow_words, packet_facts
from gpufabric.sim.heat_map import HeatMap
from gpufabric.sim.traffic_result import TrafficResult

__all__ = ["page", "write_page"]

MOST_POINTS = 2000
"""Points that the curve of completion times is drawn with."""


def write_page(result: TrafficResult, maps: Sequence[HeatMap], path: Path) -> Path:
    """Write the page of one run; return `path`."""
    figures = [_completion(result), *([_series(result)] if result.series is not None else [])]
    figures += [_heat(chart) for chart in maps]
    return write_text(path, page(_title(result), _facts(result), figures))


def page(title: str, facts: Sequence[tuple[str, str]], figures: Sequence[go.Figure]) -> str:
    """Return a page with a title, a list of facts and figures; plotly's script is inside."""
    rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(words)}</dd>" for label, words in facts)
    charts = "".join(
        figure.to_html(
            full_html=False,
            include_plotlyjs=False,
            div_id=f"figure-{number}",
            config={"displaylogo": False, "responsive": True},
        )
        for number, figure in enumerate(figures)
    )
    return (
        f'<!doctype html>\n<html lang="{current_language().replace("_", "-")}">\n<head>\n'
        f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f"<script>{get_plotlyjs()}</script>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<dl>{rows}</dl>\n{charts}\n</body>\n</html>\n"
    )


_STYLE = (
    f"body{{font-family:Inter,'Segoe UI',Arial,'Noto Sans CJK SC',sans-serif;color:{INK};"
    "max-width:1100px;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.3rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}"
    f"dt{{color:{MUTED}}}dd{{margin:0}}"
)


def _title(result: TrafficResult) -> str:
    return _("{pattern}, {routing}: what the fabric delivers").format(
        pattern=result.head["traffic"]["pattern"], routing=result.head["routing"]["mode"]
    )


def _facts(result: TrafficResult) -> list[tuple[str, str]]:
    head = result.head
    share = result.bandwidth_share
    counted = result.packets
    packets = [] if counted is None else packet_facts(counted.summary(result.channels.name))
    return [
        (_("Flows"), flow_words(result.summary(0)["flows"])),
        (_("Completion time"), completion_words(result.summary(0))),
        (_("Achieved of ideal bandwidth"), "–" if share is None else f"{share:.1%}"),
        *packets,
        (_("Fabric"), str(head["fabric"]["hash"] or "–")),
        (_("Model"), f"{head['model']['name']} {head['model']['version']}"),
        (_("Seed"), str(head["seed"])),
    ]


def _layout(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 15}},
        "template": "plotly_white",
        "height": 360,
        "margin": {"l": 70, "r": 20, "t": 50, "b": 50},
        **more,
    }


def _completion(result: TrafficResult) -> go.Figure:
    """Share of all flows that completed within a time."""
    fct_us = np.sort(result.fct_s[result.is_finished]) * 1e6
    if len(fct_us) > MOST_POINTS:
        chosen = np.unique(np.linspace(0, len(fct_us) - 1, MOST_POINTS).round().astype(int))
    else:
        chosen = np.arange(len(fct_us))
    figure = go.Figure(
        go.Scatter(
            x=fct_us[chosen].tolist(),
            y=((chosen + 1) / max(result.traffic.n_flows, 1)).tolist(),
            line={"shape": "hv", "color": rail_colour(0)},
        )
    )
    figure.update_layout(
        _layout(_("Flow completion times")),
        xaxis_title=_("completion time [µs]"),
        yaxis_title=_("share of flows"),
    )
    return figure


def _series(result: TrafficResult) -> go.Figure:
    """Mean and highest utilisation of each tier over time."""
    series = result.series
    assert series is not None
    time_s = (np.arange(len(series.mean)) + 0.5) * series.bin_s
    figure = go.Figure()
    for number, tier in enumerate(result.channels.tiers):
        if not np.nansum(series.most[:, number]):
            continue
        for values, dash, words in (
            (series.mean, "solid", _("{tier}, mean")),
            (series.most, "dot", _("{tier}, busiest")),
        ):
            figure.add_scatter(
                x=time_s.tolist(),
                y=values[:, number].tolist(),
                name=words.format(tier=tier.replace("_", "–")),
                line={"color": rail_colour(number), "dash": dash},
            )
    figure.update_layout(
        _layout(_("Utilisation over time")),
        xaxis_title=_("time [s]"),
        yaxis={"title": _("utilisation"), "tickformat": ".0%"},
    )
    return figure


def _heat(chart: HeatMap) -> go.Figure:
    scale = [[step / (len(COLOURS) - 1), colour] for step, colour in enumerate(COLOURS)]
    figure = go.Figure(
        go.Heatmap(
            z=[[None if np.isnan(value) else value for value in row] for row in chart.values],
            y=list(chart.rows),
            x=list(chart.columns),
            zmin=0.0,
            zmax=1.0,
            colorscale=scale,
            colorbar={"tickformat": ".0%"},
            hovertemplate="%{y}, %{x}: %{z:.1%}<extra></extra>",
        )
    )
    title = _("Utilisation of {tier} {way}").format(
        tier=chart.tier.replace("_", "–"), way=chart.way
    )
    if chart.block != (1, 1):
        title += " " + _("(a cell is the busiest link of {rows} devices × {columns} links)").format(
            rows=chart.block[0], columns=chart.block[1]
        )
    figure.update_layout(
        _layout(title, height=max(260, 90 + 13 * len(chart.rows))),
        xaxis_title=_("link of the lower device, in order of ports"),
        yaxis={"autorange": "reversed", "type": "category"},
    )
    return figure
