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


def print_decision(advice: Advice, console: Console) -> None:
    """Print what to do, how sure that is, and the first why, objection, condition, pitfalls."""
    told = decision_of(advice)
    console.print(Text(f"{told.headline} ({told.network})", "bold"))
    console.print(Padding(Text(f"{told.answer} {told.sure}".strip()), (0, 0, 0, 2)))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, sentences in (
        (_("Why"), told.reasons),
        (_("Against it"), told.objections),
        (_("Would change it"), told.conditions),
    ):
        if sentences:
            table.add_row(Text(label), Text(sentences[0]))
    if told.pitfalls:
        words = _("{n}: see report.html").format(n=len(told.pitfalls))
        table.add_row(Text(_("Pitfalls in this spec")), Text(words))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()
