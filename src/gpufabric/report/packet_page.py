"""A packet run as one HTML page that needs no network: what happened, in words, figures, tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from gpufabric.core.files import write_text
from gpufabric.core.text import _, current_language
from gpufabric.report.figure_style import CARD, HAIRLINE, INK, MUTED, PANEL, WARNING
from gpufabric.report.packet_figures import completion_figure, timeline_figure
from gpufabric.report.packet_names import PortNames
from gpufabric.report.packet_topology_figure import pause_figure
from gpufabric.report.packet_words import (
    busiest_table,
    circle_table,
    completion_words,
    key_figures,
    roots_table,
    timeline_words,
    what_happened,
)
from gpufabric.sim.packet import PacketProblem, PacketResult
from gpufabric.sim.packet_pauses import pause_edges, pause_roots, pause_spans

__all__ = ["packet_page", "write_packet_page"]


def write_packet_page(
    problem: PacketProblem, result: PacketResult, names: PortNames, path: Path, title: str = ""
) -> Path:
    """Write the page of one run; return `path`."""
    return write_text(path, packet_page(problem, result, names, title))


def packet_page(
    problem: PacketProblem, result: PacketResult, names: PortNames, title: str = ""
) -> str:
    """Return the page of one run; its parts are those that the run has noted.

    Parameters
    ----------
    problem, result
        What was asked and how it went; see ``Recording`` for series and pauses.
    names
        What ports are called.
    title
        Heading; a general one where empty.
    """
    title = title or _("Packet run")
    spans = None if result.pause_log is None else pause_spans(result.pause_log)
    roots = [] if spans is None else pause_roots(spans)
    told = what_happened(problem, result, names, roots)
    cards = "".join(
        f"<div class=card><b>{escape(value)}</b><span>{escape(label)}</span></div>"
        for label, value in key_figures(problem, result)
    )
    items = "".join(
        f"<li{' class=bad' if is_bad else ''}>{escape(words)}</li>" for words, is_bad in told
    )
    parts = [f"<ul>{items}</ul><div class=cards>{cards}</div>"]
    if result.series is not None and np.any(result.series.busy):
        figure = timeline_figure(problem, result, names)
        words = timeline_words(result, names)
        parts.append(_section(_("Queues, pauses and rates"), words, figure, "timeline"))
    if result.deadlock is not None:
        parts.append(_heading(_("Deadlock, hop by hop")) + _table(*circle_table(result, names)))
    if spans is not None and roots:
        figure = pause_figure(problem.wires, roots, pause_edges(spans), names)
        words = _(
            "Links that stood still; the wider, the longer. Arrows go from who paused to who stood"
            " still; the red place is where the pauses come from. The table has the same in words."
        )
        parts.append(_section(_("Pause tree"), words, figure, "pauses"))
        parts.append(_table(*roots_table(roots, names)))
    if (result.flows.fct_ps >= 0).any():
        figure = completion_figure(problem, result, names)
        words = completion_words(result)
        parts.append(_section(_("Flow completion times"), words, figure, "completion"))
    parts.append(_heading(_("Busiest ports")) + _table(*busiest_table(problem, result, names)))
    return _document(title, "".join(parts))


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="{current_language().replace("_", "-")}">\n<head>\n'
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<script>{get_plotlyjs()}</script>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _heading(words: str) -> str:
    return f"\n<h2>{escape(words)}</h2>\n"


def _section(title: str, words: str, figure: go.Figure, name: str) -> str:
    """Return a figure with its heading and a caption that tells in words what it shows."""
    chart = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True, "displayModeBar": False},
    )
    label = escape(f"{title}. {words}", quote=True)
    return (
        f'{_heading(title)}<figure><div role="img" aria-label="{label}">{chart}</div>'
        f"<figcaption>{escape(words)}</figcaption></figure>\n"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class=scroll tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
    )


_STYLE = (
    "*{box-sizing:border-box}"
    f"body{{font-family:Inter,'Segoe UI',Arial,'Noto Sans CJK SC',sans-serif;color:{INK};"
    f"background:{PANEL};margin:0;line-height:1.45}}"
    "main{max-width:1120px;margin:0 auto;padding:24px 20px 48px}"
    "h1{font-size:1.45rem;margin:0 0 8px}h2{font-size:1.08rem;margin:32px 0 10px}"
    "ul{margin:0 0 18px;padding-left:1.2em}"
    f".bad{{color:{WARNING};font-weight:600}}"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(132px,1fr));gap:10px}"
    f".card,figure,.scroll{{background:{CARD};border:1px solid {HAIRLINE};border-radius:8px}}"
    "figure{overflow:hidden;min-width:0}.card{padding:10px 12px}"
    ".card b{display:block;font-size:1.15rem}"
    f".card span,figcaption{{color:{MUTED};font-size:.82rem}}"
    "figure{margin:0;padding:10px}figcaption{padding:6px 4px 2px}"
    ".scroll{overflow-x:auto;margin-top:10px}"
    "table{border-collapse:collapse;width:100%;font-size:.86rem}"
    f"th,td{{padding:7px 10px;border-bottom:1px solid {HAIRLINE};text-align:right;"
    "white-space:nowrap}tr:last-child td{border-bottom:0}"
    "th:first-child,td:first-child{text-align:left}"
    f"th{{color:{MUTED};font-weight:600}}"
    "@media(max-width:600px){main{padding:16px 10px 32px}figure{padding:4px}"
    ".cards{grid-template-columns:1fr 1fr}}"
)
