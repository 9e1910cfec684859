"""One figure of the report: plotly's data written by hand, a caption, and its numbers as a table.

The data go to plotly's script in the browser as they are; no figure is built in Python, which
costs a second for every ten of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from gpufabric.core.text import _
from gpufabric.report.figure_style import GRID, HAIRLINE, INK, rail_colour
from gpufabric.workload.forecast import told_digits

__all__ = [
    "Chart",
    "chart_html",
    "charts_json",
    "data_table",
    "layout",
    "percent",
    "signed",
    "unbroken",
]

MINUS = "\u2212"
FONT = "Inter, Segoe UI, Helvetica Neue, Arial, Noto Sans CJK SC, sans-serif"

_SPACE_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|M |USD|CNY|EUR|kW|MW|GB/s|Tb/s|ms\b|s\b|h\b)")
_UNIT = re.compile(r"(\[[^\]]+\])")

LEGEND = {
    "orientation": "h",
    "y": 1.02,
    "yanchor": "bottom",
    "x": 0,
    "xanchor": "left",
    "traceorder": "normal",
}
"""Above the figure, in the order of its traces."""


@dataclass(frozen=True)
class Chart:
    """One figure.

    Parameters
    ----------
    name
        Unique on the page; part of its address.
    title, words
        Heading, and what the figure shows, in words: its text alternative.
    traces, layout
        As plotly's ``newPlot`` takes them.
    heads, rows
        The numbers as a table.
    is_labelled
        Whether the figure itself tells these numbers; on paper the table then stays closed.
    """

    name: str
    title: str
    words: str
    traces: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default=())
    is_labelled: bool = False


def layout(height: int, **more: Any) -> dict[str, Any]:
    """Return what all figures have in common."""
    axis = {"gridcolor": GRID, "zerolinecolor": HAIRLINE, "automargin": True, "linecolor": HAIRLINE}
    apart = {"ticks": "outside", "ticklen": 7, "tickcolor": "rgba(0,0,0,0)"}
    own = {"xaxis": {**axis, **apart}, "yaxis": axis}
    given = {name: {**look, **more.pop(name, {})} for name, look in own.items()}
    return {
        "height": height,
        "margin": {"l": 12, "r": 16, "t": 10, "b": 12},
        "font": {"family": FONT, "color": INK, "size": 12},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": LEGEND,
        "hoverlabel": {"bgcolor": "#ffffff", "bordercolor": HAIRLINE, "font": {"color": INK}},
        "colorway": [rail_colour(number) for number in range(8)],
        **given,
        **more,
    }


def percent(share: float) -> str:
    """Return a share in words.

    Examples
    --------
    >>> percent(0.0649), percent(0.734), percent(0.99999), percent(0.0)
    ('6.5 %', '73 %', '> 99.9 %', '0 %')
    """
    if 0.999 < share < 1:
        return "> 99.9 %"
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.1 or share == 0 else f"{100 * share:.1f} %"


def signed(value: float) -> str:
    """Return a number with two digits and its sign.

    Examples
    --------
    >>> signed(0.472), signed(-0.5)
    ('+0.47', '\u22120.50')
    """
    return f"{value:+,.2f}".replace("-", MINUS)


def data_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    name: str = "",
    is_ranking: bool = False,
) -> str:
    """Return a table whose first column tells what a row is; a ranking has the best one first."""
    look = ' class="tight"' if is_ranking else ""
    head = "".join(f'<th scope="col">{_kept(cell)}</th>' for cell in heads)
    body = "".join(
        f"<tr{' class=best' if is_ranking and at == 0 else ''}>"
        f'<th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for at, row in enumerate(rows)
    )
    label = f' aria-label="{escape(name, quote=True)}"' if name else ""
    return (
        f'<div class="scroll" tabindex="0"{label}><table{look}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _kept(heading: str) -> str:
    """Return a heading in which no line ends within a unit."""
    return _UNIT.sub(r'<span class="unit">\1</span>', escape(heading))


def unbroken(text: str) -> str:
    """Return a text as HTML in which no line ends between a number and its unit."""
    return _SPACE_BEFORE_UNIT.sub("&nbsp;", escape(text))


def chart_html(chart: Chart) -> str:
    """Return the frame of a figure; the page's script draws into it."""
    label = escape(f"{chart.title}. {chart.words}", quote=True)
    height = int(chart.layout["height"])
    numbers = ""
    if chart.rows:
        table = data_table(chart.heads, chart.rows, name=chart.title)
        look = " class=told" if chart.is_labelled else ""
        numbers = f"<details{look}><summary>{escape(_('Numbers'))}</summary>{table}</details>"
    return (
        f'<figure id="{chart.name}"><h3>{escape(chart.title)}</h3>'
        f'<div class="plot" id="plot-{chart.name}" role="img" aria-label="{label}"'
        f' style="min-height:{height}px"></div>'
        f"<figcaption>{escape(chart.words)}</figcaption>{numbers}</figure>\n"
    )


def charts_json(charts: Sequence[Chart]) -> str:
    """Return the data of all figures as JSON that may stand in a page's script."""
    content = [
        {"name": chart.name, "data": list(chart.traces), "layout": dict(chart.layout)}
        for chart in charts
    ]
    text = json.dumps(told_digits(content), ensure_ascii=False, separators=(",", ":"))
    return text.replace("</", "<\\/").replace("<!--", "<\\u0021--").replace("\u2028", "\\u2028")
