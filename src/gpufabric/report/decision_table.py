"""The decision on a terminal, in a few lines."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.planner.advice import Advice
from gpufabric.report.decision_words import decision_of

__all__ = ["print_decision"]

MOST_REASONS = 2
MOST_CONDITIONS = 2


def print_decision(advice: Advice, console: Console) -> None:
    """Print what to do, how sure that is, why, what would change it, and what is wrong."""
    told = decision_of(advice)
    console.print(Text(f"{told.headline} ({told.network})", "bold"))
    console.print(Padding(Text(f"{told.answer} {told.sure}".strip()), (0, 0, 0, 2)))
    rows = [
        *((_("Why"), words) for words in told.reasons[:MOST_REASONS]),
        *((_("Against it"), words) for words in told.objections[:1]),
        *((_("Would change it"), words) for words in told.conditions[:MOST_CONDITIONS]),
        *((_("Pitfall"), f"{what} {remedy}") for what, remedy in told.pitfalls[:1]),
    ]
    rest = len(told.pitfalls) - 1
    if rest > 0:
        rows.append(("", _("{n} more pitfalls: see report.html").format(n=rest)))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    last = ""
    for label, words in rows:
        table.add_row(Text("" if label == last else label), Text(words))
        last = label
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
