"""Candidates side by side on a terminal: one row a fact, one column a candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.topology.decision import Decision

__all__ = ["Fact", "decision_texts", "print_paths", "side_by_side", "terminal"]

LABEL_WIDTH = 26
MIN_COLUMN = 16
MIN_WIDTH = 60


@dataclass(frozen=True)
class Fact:
    """One row: what it is, its value for every candidate, and whether it opens a block."""

    label: str
    values: tuple[str, ...]
    opens: bool = False

    @property
    def is_told(self) -> bool:
        """Whether any candidate has a value."""
        return any(self.values)


def terminal(*, is_error: bool = False) -> Console:
    """Return the console that commands print on; colours only where a person looks."""
    return Console(highlight=False, stderr=is_error, soft_wrap=False)


def print_paths(paths: Sequence[Path], console: Console) -> None:
    """Print paths, one a line and never wrapped."""
    for path in paths:
        console.print(Text(str(path)), soft_wrap=True)


def side_by_side(names: Sequence[str], facts: Iterable[Fact], width: int) -> Iterator[Table]:
    """Yield tables of at most `width` columns of text; more than one where candidates are many."""
    told = [fact for fact in facts if fact.is_told]
    label = min(LABEL_WIDTH, max((cell_len(fact.label) for fact in told), default=8))
    room = max(width, MIN_WIDTH) - label - 3
    per_table = max(1, min(len(names), room // (MIN_COLUMN + 2)))
    for first in range(0, len(names), per_table):
        chosen = range(first, min(first + per_table, len(names)))
        table = Table(
            box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), expand=True
        )
        table.add_column("", min_width=min(label, 20), max_width=LABEL_WIDTH, overflow="fold")
        for index in chosen:
            table.add_column(Text(names[index]), overflow="fold", ratio=1)
        for fact in told:
            if fact.opens:
                table.add_row()
            cells = [Text(fact.values[index] or "–") for index in chosen]
            table.add_row(Text(fact.label, style="dim"), *cells)
        yield table


def decision_texts(decisions: Iterable[Decision]) -> Iterator[Padding]:
    """Yield each decision as a paragraph: topic, choice, reason, source; warnings are marked."""
    for decision in decisions:
        text = Text()
        if decision.is_warning:
            text.append(_("Warning") + " ", style="bold yellow")
        text.append(f"{decision.topic}: {decision.choice}", style="bold")
        text.append(f"  {decision.why}")
        if decision.source:
            text.append(f" [{decision.source}]", style="dim")
        yield Padding(text, (0, 0, 0, 2))
