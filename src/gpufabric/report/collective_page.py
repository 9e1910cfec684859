"""Times of a collective as one HTML page: bus bandwidth over size, measured points, algorithms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.collective_table import CollectiveReport, bandwidths, size_words
from gpufabric.report.figure_style import GRID, INK, WARNING, rail_colour
from gpufabric.report.html_page import cards, document, section, table, told_list
from gpufabric.report.packet_figures import frame

__all__ = ["collective_page", "write_collective_page"]


def write_collective_page(report: CollectiveReport, path: Path) -> Path:
    """Write the page of a collective; return `path`."""
    return write_text(path, collective_page(report))


def collective_page(report: CollectiveReport) -> str:
    """Return the page of a collective."""
    parts = [
        told_list(_told(report)),
        cards(_figures(report)),
        section(_("Bus bandwidth by size"), _busbw_words(report), _busbw(report), "busbw"),
    ]
    if report.others:
        title = _("By algorithm and protocol")
        parts.append(section(title, _others_words(report), _others(report), "algorithms"))
    parts.append(_table(report))
    return document(report.title, "".join(parts))


def _told(report: CollectiveReport) -> list[tuple[str, bool]]:
    told = []
    if report.comparison is not None:
        told = [(line, report.is_short) for line in report.comparison.summary]
    told += [(str(one.fault), one.severity == "warning") for one in report.host_findings]
    for name, loss in report.losses.items():
        words = _("{algorithm}: the network takes {factor:.3f} times as long as at full NIC rate.")
        told.append((words.format(algorithm=name, factor=loss.slowdown), loss.slowdown > 1.1))
    told += [
        (
            _("Beyond what was measured, so that the interval is wider: {reason}").format(
                reason=reason
            ),
            False,
        )
        for reason in report.found.extrapolates
    ]
    return told + [(note, False) for note in report.notes]


def _figures(report: CollectiveReport) -> list[tuple[str, str]]:
    low, middle, high = bandwidths(report.found)
    best = int(middle.argmax())
    found, cluster = report.found, report.cluster
    cards_shown = [
        (_("most busbw"), _("{value:.0f} GB/s").format(value=middle[best])),
        (_("80 % of runs"), f"{low[best]:.0f} – {high[best]:.0f} GB/s"),
        (_("at a size of"), size_words(found.size_bytes[best])),
        (_("chosen there"), str(found.choices[best])),
        (_("time of the smallest"), f"{found.time_us[0]:,.1f} µs"),
    ]
    if cluster.wire_gbytes_per_s is not None:
        wire = _("{value:.0f} GB/s").format(value=cluster.wire_gbytes_per_s)
        cards_shown.append((_("NICs of a host"), wire))
    if report.comparison is not None:
        points = report.comparison.points
        share = float(np.median([point.ratio for point in points]))
        cards_shown.append((_("measured of predicted"), f"{share * 100:.0f} %"))
        inside = f"{report.comparison.n_inside} / {len(points)}"
        cards_shown.append((_("points in the interval"), inside))
    return cards_shown


def _busbw(report: CollectiveReport) -> go.Figure:
    found = report.found
    low, middle, high = bandwidths(found)
    sizes = found.size_bytes.tolist()
    figure = go.Figure()
    figure.add_scatter(
        x=sizes + sizes[::-1],
        y=[*high.round(4).tolist(), *low[::-1].round(4).tolist()],
        fill="toself",
        fillcolor="rgba(78,121,167,0.18)",
        line={"width": 0},
        name=_("80 % of runs"),
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=sizes,
        y=middle.round(4).tolist(),
        text=[f"{size_words(s)}, {c}" for s, c in zip(sizes, found.choices, strict=True)],
        mode="lines+markers",
        line={"color": rail_colour(0), "width": 2},
        name=_("predicted"),
        hovertemplate="%{text}: %{y:.2f} GB/s<extra></extra>",
    )
    if report.comparison is not None:
        points = report.comparison.points
        figure.add_scatter(
            x=[point.size_bytes for point in points],
            y=[round(point.measured_gbytes_per_s, 4) for point in points],
            mode="markers",
            marker={"color": WARNING, "size": 9, "symbol": "diamond"},
            name=_("measured"),
            hovertemplate="%{y:.2f} GB/s<extra></extra>",
        )
    _axes(figure, sizes, 420)
    return figure


def _axes(figure: go.Figure, sizes: list[float], height: int) -> None:
    step = max(1, -(-len(sizes) // 8))
    shown = sizes[::step]
    figure.update_layout(
        frame(height, hovermode="closest"),
        xaxis={
            "type": "log",
            "title": _("message size"),
            "gridcolor": GRID,
            "tickvals": shown,
            "ticktext": [size_words(size) for size in shown],
            "tickangle": -35,
        },
        yaxis={"title": _("busbw [GB/s]"), "gridcolor": GRID, "rangemode": "tozero"},
    )
    figure.update_layout(legend={"y": -0.32})


def _busbw_words(report: CollectiveReport) -> str:
    found = report.found
    low, middle, high = bandwidths(found)
    best = int(middle.argmax())
    words = _(
        "{first} reach {small:.2f} GB/s; the most is {most:.0f} GB/s at {size}, where 80 % of runs "
        "would be between {low:.0f} and {high:.0f}."
    ).format(
        first=size_words(found.size_bytes[0]),
        small=middle[0],
        most=middle[best],
        size=size_words(found.size_bytes[best]),
        low=low[best],
        high=high[best],
    )
    if report.comparison is not None:
        last = report.comparison.points[-1]
        words += " " + _("Measured: {busbw:.0f} GB/s at {size}, {share:.0f} % of that.").format(
            busbw=last.measured_gbytes_per_s,
            size=size_words(last.size_bytes),
            share=last.ratio * 100,
        )
    return words


def _others(report: CollectiveReport) -> go.Figure:
    figure = go.Figure()
    algorithms = list(dict.fromkeys(name.split("/")[0] for name in report.others))
    dashes = {"LL": "dot", "LL128": "dash", "Simple": "solid"}
    for name, found in report.others.items():
        algorithm, protocol = name.split("/")
        figure.add_scatter(
            x=found.size_bytes.tolist(),
            y=found.busbw_gbytes_per_s.round(4).tolist(),
            mode="lines",
            name=name,
            line={
                "color": rail_colour(algorithms.index(algorithm)),
                "dash": dashes[protocol],
                "width": 1.6,
            },
            hovertemplate=f"{name}: %{{y:.2f}} GB/s<extra></extra>",
        )
    figure.add_scatter(
        x=report.found.size_bytes.tolist(),
        y=report.found.busbw_gbytes_per_s.round(4).tolist(),
        mode="markers",
        marker={"color": INK, "size": 6},
        name=_("chosen"),
        hoverinfo="skip",
    )
    _axes(figure, report.found.size_bytes.tolist(), 440)
    return figure


def _others_words(report: CollectiveReport) -> str:
    spans: dict[str, list[float]] = {}
    for size, choice in zip(report.found.size_bytes, report.found.choices, strict=True):
        spans.setdefault(str(choice), []).append(float(size))
    told = ", ".join(
        _("{choice} from {first} to {last}").format(
            choice=choice, first=size_words(min(sizes)), last=size_words(max(sizes))
        )
        for choice, sizes in spans.items()
    )
    best = max(report.others, key=lambda name: report.others[name].busbw_gbytes_per_s[-1])
    return _("Chosen: {told}. Fastest of all at the largest size: {best}.").format(
        told=told, best=best
    )


def _table(report: CollectiveReport) -> str:
    found = report.found
    low, middle, high = bandwidths(found)
    heads = [_("size"), _("algorithm"), _("time [µs]"), _("busbw"), _("80 % of runs")]
    measured = None
    if report.comparison is not None:
        measured = [point.measured_gbytes_per_s for point in report.comparison.points]
        heads.append(_("measured"))
    rows = []
    for at, size in enumerate(found.size_bytes):
        row = [
            size_words(size),
            str(found.choices[at]),
            f"{found.time_us[at]:,.1f}",
            f"{middle[at]:.2f}",
            f"{low[at]:.2f} – {high[at]:.2f}",
        ]
        rows.append([*row, f"{measured[at]:.2f}"] if measured else row)
    return table(heads, rows)
