"""The assumption ledger and the bill on the page: tables to sort and to search."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpufabric.core.text import _
from gpufabric.planner.advice import LedgerRow
from gpufabric.planner.compare import CandidatePlan
from gpufabric.report.amounts import Currency
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
    body = "".join(_ledger_row(row) for row in rows)
    return (
        _tools("ledger-table", _("only what is assumed"))
        + '<div class="scroll ledger" tabindex="0"><table id="ledger-table" data-sorts>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _tools(table: str, only: str) -> str:
    search = escape(_("Search"))
    return (
        f'<div class="tools" data-filters="{table}"><label>{search} '
        f'<input type="search" autocomplete="off"></label>'
        f'<label><input type="checkbox"> {escape(only)}</label><output></output></div>'
    )


def _ledger_row(row: LedgerRow) -> str:
    is_share = row.unit in ("share", "1/year")
    unit = "" if is_share or row.unit == "1" else row.unit
    shown = "share" if is_share else ""
    mark = " data-assumed" if row.is_assumed else ""
    source = " · ".join(part for part in (row.source, row.date) if part)
    note = f"<small>{escape(row.note)}</small>" if row.note else ""
    return (
        f'<tr{mark}><th scope="row">{escape(row.label)}<small><code>{escape(row.key)}</code>'
        f"</small></th>"
        + "".join(
            f'<td class="num" data-value="{value:.6g}">{escape(number_words(value, shown))}</td>'
            for value in (row.low, row.mid, row.high)
        )
        + f'<td class="text">{escape(unit)}</td>'
        + "".join(_share_cell(share) for share in (row.share_of_margin, row.share_of_winner))
        + f'<td class="text">{_tag(row.kind)}</td>'
        f'<td class="text source"><small>{_source(source)}</small>{note}</td></tr>'
    )


def _share_cell(share: float) -> str:
    words = percent(share) if share >= LEAST_SHARE else "–"
    return f'<td class="num" data-value="{share:.6g}">{words}</td>'


def _tag(kind: str) -> str:
    look = "tag assumed" if kind == "assumed" else "tag"
    return f'<span class="{look}">{escape(kind_words(kind))}</span>'


def _source(text: str) -> str:
    return escape(text)


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
    body = "".join(_bill_row(line, currency) for line in lines)
    name = escape(plan.name, quote=True)
    return (
        f'<div class="scroll" tabindex="0" aria-label="{name}"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def _line_usd(line: BillLine) -> float:
    return 0.0 if line.price is None else line.quantity * line.price.mid_usd


def _bill_row(line: BillLine, currency: Currency) -> str:
    length = "" if line.length_m is None else f", {line.length_m:g} m"
    price = line.price
    one = "–" if price is None else currency.words(price.mid_usd)
    total = "–" if price is None else currency.words(_line_usd(line))
    kind = "" if price is None else _tag(price.kind)
    return (
        f'<tr><th scope="row">{escape(line.title)}{escape(length)}<small><code>'
        f"{escape(line.name)}</code></small></th>"
        f'<td class="text">{escape(line.section)}</td>'
        f'<td class="num">{line.quantity:,}</td><td class="num">{line.spares:,}</td>'
        f'<td class="num">{escape(one)}</td><td class="num">{escape(total)}</td>'
        f'<td class="text">{kind}</td></tr>'
    )
