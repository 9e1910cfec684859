"""The decision on a terminal, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _, sentences
from gpufabric.planner.advice import Advice
from gpufabric.report.decision_words import Decision, decision_of

__all__ = ["print_decision"]

MOST_REASONS, MOST_PITFALLS = 3, 2


def print_decision(advice: Advice, console: Console) -> None:
    """Print the winner, its margin and how sure that is, then why, regret, condition, pitfalls."""
    told = decision_of(advice)
    console.print(Text(f"{told.headline} ({told.network})", "bold"))
    console.print(Padding(Text(sentences(told.answer, told.sure)), (0, 0, 0, 2)))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, lines in _parts(told):
        for at, words in enumerate(lines):
            table.add_row(Text("" if at else label), Text(words))
    console.print(Padding(table, (0, 0, 0, 2)))
    console.print()


def _parts(told: Decision) -> Iterator[tuple[str, Sequence[str]]]:
    yield _("Why"), told.reasons[:MOST_REASONS]
    yield _("Against it"), told.objections[:1]
    yield _("If it is wrong"), [told.wrong] if told.wrong else []
    yield _("Would change it"), told.conditions[:1] or [_("Nothing that was tried.")]
    yield _("Pitfalls in this spec"), list(_pitfalls(told))


def _pitfalls(told: Decision) -> Iterator[str]:
    if not told.pitfalls:
        yield _("None was found.")
    for at, (what, _remedy) in enumerate(told.pitfalls[:MOST_PITFALLS], start=1):
        yield _("{at} of {n}: {what}").format(at=at, n=len(told.pitfalls), what=what)
    rest = len(told.pitfalls) - MOST_PITFALLS
    if rest > 0:
        yield _("{n} more, and what to do: report.html").format(n=rest)
