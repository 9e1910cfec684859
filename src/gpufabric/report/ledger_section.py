"""The assumption ledger and the bill on the page: tables to sort and to search."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpufabric.core.text import _
from gpufabric.planner.advice import LedgerRow
from gpufabric.planner.compare import CandidatePlan
from gpufabric.planner.quantity_words import SHARES, unit_words
from gpufabric.report.amounts import Currency
from gpufabric.report.bom_xlsx import section_words
from gpufabric.report.chart import percent
from gpufabric.report.risk_charts import number_words
from gpufabric.topology.bill import BillLine

__all__ = ["bill_html", "kind_words", "ledger_html"]

LEAST_SHARE = 0.0005
"""Share of a variance below which none is shown."""


def kind_words(kind: str) -> str:
    """Return how sure a number is, in words."""
    return {
        "assumed": _("assumed"),
        "analyst": _("analyst"),
        "conflict": _("sources disagree"),
        "derived": _("derived"),
        "design": _("from the design"),
        "estimate": _("estimate"),
        "measured": _("measured"),
        "spec": _("from the spec"),
        "third-party": _("third party"),
        "vendor": _("vendor"),
    }.get(kind, kind)


# Ledger --------------------------------------------------------------------------------------


def ledger_html(rows: Sequence[LedgerRow]) -> str:
    """Return the ledger: sorted by what moves the decision, to be sorted and searched."""
    heads = (
        (_("Number"), "text"),
        (_("low"), ""),
        (_("most likely"), ""),
        (_("high"), ""),
        (_("unit"), "text"),
        (_("of the margin's variance"), ""),
        (_("of the winner's variance"), ""),
        (_("kind"), "text"),
        (_("source and date"), "text"),
    )
    head = "".join(
        f'<th scope="col" class="{look}"><button type="button">{escape(words)}</button></th>'
        for words, look in heads
    )
    labels = [words for words, _look in heads]
    body = "".join(_ledger_row(row, labels) for row in rows)
    return (
        _tools("ledger-table", _("only what is assumed"))
        + '<div class="scroll rows ledger" tabindex="0"><table id="ledger-table" data-sorts>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _tools(table: str, only: str) -> str:
    search = escape(_("Search"))
    return (
        f'<div class="tools" data-filters="{table}"><label>{search} '
        f'<input type="search" autocomplete="off"></label>'
        f'<label><input type="checkbox"> {escape(only)}</label><output></output></div>'
    )


def _ledger_row(row: LedgerRow, labels: Sequence[str]) -> str:
    is_share = row.unit in SHARES
    unit = "" if is_share or row.unit == "1" else row.unit
    shown = "share" if is_share else ""
    mark = " data-assumed" if row.is_assumed else ""
    source = " · ".join(part for part in (row.source, row.date) if part)
    note = f"<small>{escape(row.note)}</small>" if row.note else ""
    cells = [
        *((_sorted(value), escape(number_words(value, shown))) for value in _span(row)),
        ("text", escape(unit_words(unit))),
        *((_sorted(share), _share(share)) for share in (row.share_of_margin, row.share_of_winner)),
        ("text", _tag(row.kind)),
        ("text source", f"<small>{escape(source)}</small>{note}"),
    ]
    return (
        f'<tr{mark}><th scope="row">{escape(row.label)}<small><code>{escape(row.key)}</code>'
        f"</small></th>{_cells(cells, labels)}</tr>"
    )


def _span(row: LedgerRow) -> tuple[float, float, float]:
    return row.low, row.mid, row.high


def _share(share: float) -> str:
    return percent(share) if share >= LEAST_SHARE else "–"


def _sorted(value: float) -> str:
    return f'num" data-value="{value:.6g}'


def _cells(cells: Sequence[tuple[str, str]], labels: Sequence[str]) -> str:
    """Return the cells after a row's first, each with its heading for a narrow screen."""
    return "".join(
        f'<td data-label="{escape(label, quote=True)}" class="{look}">{content}</td>'
        for (look, content), label in zip(cells, labels[1:], strict=True)
    )


def _tag(kind: str) -> str:
    look = "tag assumed" if kind == "assumed" else "tag"
    return f'<span class="{look}">{escape(kind_words(kind))}</span>'


# Bill ----------------------------------------------------------------------------------------


def bill_html(plan: CandidatePlan, currency: Currency) -> str:
    """Return the bill of a candidate's networks, the dearest line first."""
    lines = [line for line in plan.bill.lines if line.section != "hosts" and line.quantity]
    lines.sort(key=lambda line: (-_line_usd(line), line.section, line.name))
    heads = (
        (_("Part"), "text"),
        (_("for"), "text"),
        (_("pieces"), ""),
        (_("spares"), ""),
        (_("price of one"), ""),
        (_("in all"), ""),
        (_("price is"), "text"),
    )
    head = "".join(f'<th scope="col" class="{look}">{escape(words)}</th>' for words, look in heads)
    labels = [words for words, _look in heads]
    body = "".join(_bill_row(line, currency, labels) for line in lines)
    name = escape(plan.name, quote=True)
    return (
        f'<div class="scroll rows" tabindex="0" aria-label="{name}"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def _line_usd(line: BillLine) -> float:
    return 0.0 if line.price is None else line.quantity * line.price.mid_usd


def _bill_row(line: BillLine, currency: Currency, labels: Sequence[str]) -> str:
    length = "" if line.length_m is None else f", {line.length_m:g} m"
    price = line.price
    one = "–" if price is None else currency.words(price.mid_usd)
    total = "–" if price is None else currency.words(_line_usd(line))
    kind = "" if price is None else _tag(price.kind)
    cells = [
        ("text", escape(section_words()[line.section])),
        ("num", f"{line.quantity:,}"),
        ("num", f"{line.spares:,}"),
        ("num", escape(one)),
        ("num", escape(total)),
        ("text", kind),
    ]
    return (
        f'<tr><th scope="row">{escape(line.title)}{escape(length)}<small><code>'
        f"{escape(line.name)}</code></small></th>{_cells(cells, labels)}</tr>"
    )
