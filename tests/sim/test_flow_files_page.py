"""The page on flow files shows every column as it is defined."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufabric.report.sweep_table import run_columns
from gpufabric.sim.flow_columns import (
    ALIASES,
    FLOW_COLUMNS,
    FLOW_RESULTS,
    LINK_COLUMNS,
    LINK_RESULTS,
    PACKET_FLOW_RESULTS,
    PACKET_LINK_RESULTS,
    PACKET_SERIES_RESULTS,
    SERIES_RESULTS,
    FileColumn,
)
from gpufabric.sim.sweep import metric_names

PAGE = Path(__file__).parent.parent.parent / "docs/reference/flow-files.md"
BEGIN = "<!-- tables: written by tests/sim/test_flow_files_page.py --update -->\n"
END = "<!-- end of tables -->\n"

PACKET_METRICS = run_columns((), metric_names("packet"))[len(run_columns(())) :]

FILES = (
    ("Flows to send: `--pattern FILE`", FLOW_COLUMNS),
    ("Channels of a replay: `--links FILE`", LINK_COLUMNS),
    ("`flows`: what became of every flow", FLOW_RESULTS),
    ("`channels`: what every directed channel carried", LINK_RESULTS),
    ("`series`: utilisation over time", SERIES_RESULTS),
    ("`flows` with `--engine packet`: beside", PACKET_FLOW_RESULTS),
    ("`channels` with `--engine packet`: beside", PACKET_LINK_RESULTS),
    ("`series` with `--engine packet`: beside", PACKET_SERIES_RESULTS),
    ("Metrics of a what-if", run_columns(())),
    ("Metrics of a what-if with `--engine packet`: beside", PACKET_METRICS),
)


def tables() -> Iterator[str]:
    for heading, columns in FILES:
        yield f"\n## {heading}\n\n| column | kind | meaning |\n|---|---|---|\n"
        for column in columns:
            yield row(column)


def row(column: FileColumn) -> str:
    other = "".join(f" Also `{name}`." for name, ours in ALIASES.items() if ours == column.name)
    needed = " Required." if column.is_required else ""
    return f"| `{column.name}` | {column.kind} | {column.meaning}{other}{needed} |\n"


def test_the_page_has_every_column(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = before + BEGIN + "".join(tables()) + "\n" + END + after
    if request.config.getoption("--update"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8")
