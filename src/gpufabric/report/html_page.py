"""The frame of HTML pages that need no network: title, key figures, figures with words, tables.

Every figure has its heading and a caption that tells in words what it shows, which is also its
text alternative.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from gpufabric.core.text import current_language
from gpufabric.report.figure_style import CARD, HAIRLINE, INK, MUTED, PANEL, WARNING

__all__ = ["Bar", "bars", "cards", "document", "heading", "section", "table", "told_list"]


WIDEST = 64.0
"""Width of the longest bar; its words stand beside it [%]."""


class Bar(NamedTuple):
    """One bar: name, what it is, its length where there is one, the words beside it, colour."""

    name: str
    meaning: str
    value: float | None  # None: there is no value, and the bar is as long as can be
    words: str
    colour: str


def cards(values: Sequence[tuple[str, str]]) -> str:
    """Return key figures as cards: label and value of each."""
    found = "".join(
        f"<div class=card><b>{escape(value)}</b><span>{escape(label)}</span></div>"
        for label, value in values
    )
    return f"<div class=cards>{found}</div>"


def told_list(sentences: Sequence[tuple[str, bool]]) -> str:
    """Return sentences as a list; those that are bad stand out."""
    items = "".join(
        f"<li{' class=bad' if is_bad else ''}>{escape(words)}</li>" for words, is_bad in sentences
    )
    return f"<ul>{items}</ul>"


def document(title: str, body: str) -> str:
    """Return a page with a title and a body; plotly's script is inside."""
    return (
        f'<!doctype html>\n<html lang="{current_language().replace("_", "-")}">\n<head>\n'
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f"<script>{get_plotlyjs()}</script>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def heading(words: str) -> str:
    """Return the heading of a section."""
    return f"\n<h2>{escape(words)}</h2>\n"


def section(title: str, words: str, figure: go.Figure, name: str) -> str:
    """Return a figure with its heading and a caption that tells in words what it shows."""
    chart = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True, "displayModeBar": False},
    )
    label = escape(f"{title}. {words}", quote=True)
    return (
        f'{heading(title)}<figure><div role="img" aria-label="{label}">{chart}</div>'
        f"<figcaption>{escape(words)}</figcaption></figure>\n"
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that scrolls sideways where it is wider than the page."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class=scroll tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def bars(title: str, words: str, rows: Sequence[Bar]) -> str:
    """Return bars side by side that need no script, with a heading and a caption."""
    most = max((row.value for row in rows if row.value is not None), default=0.0)
    lines = "".join(_bar(row, most) for row in rows)
    return f"{heading(title)}<figure>{lines}<figcaption>{escape(words)}</figcaption></figure>\n"


def _bar(row: Bar, most: float) -> str:
    share = 1.0 if row.value is None or most <= 0 else row.value / most
    style = f"width:{WIDEST * share:.1f}%"
    if row.value is not None:
        style += f";background:{row.colour}"
    kind = "fill never" if row.value is None else "fill"
    return (
        f"<div class=bar><div><b>{escape(row.name)}</b><small>{escape(row.meaning)}</small></div>"
        f'<div class=track><span class="{kind}" style="{style}"></span>'
        f"<span>{escape(row.words)}</span></div></div>"
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
    ".card b{display:block;font-size:1.15rem;overflow-wrap:anywhere}"
    f".card span,figcaption{{color:{MUTED};font-size:.82rem}}"
    "figure{margin:0;padding:10px}figcaption{padding:6px 4px 2px}"
    ".scroll{overflow-x:auto;margin-top:10px}"
    f".scroll+ul{{margin-top:10px;color:{MUTED};font-size:.86rem}}"
    "table{border-collapse:collapse;width:100%;font-size:.86rem}"
    f"th,td{{padding:7px 10px;border-bottom:1px solid {HAIRLINE};text-align:right;"
    "white-space:nowrap}tr:last-child td{border-bottom:0}"
    "th:first-child,td:first-child{text-align:left}"
    f"th{{color:{MUTED};font-weight:600}}"
    ".bar{display:grid;grid-template-columns:minmax(260px,2fr) 3fr;gap:4px 14px;padding:7px 12px;"
    f"border-bottom:1px solid {HAIRLINE};align-items:center}}"
    f".bar b{{display:block;font-size:.9rem}}.bar small{{color:{MUTED};font-size:.8rem}}"
    ".track{display:flex;align-items:center;gap:8px;font-size:.84rem}"
    ".fill{height:14px;border-radius:3px;min-width:2px;flex:none}"
    f".never{{background:repeating-linear-gradient(45deg,{WARNING},{WARNING} 4px,#e6a09b 4px,"
    "#e6a09b 8px)}"
    "@media(max-width:600px){main{padding:16px 10px 32px}figure{padding:4px}"
    ".cards{grid-template-columns:1fr 1fr}.bar{grid-template-columns:1fr}}"
)
