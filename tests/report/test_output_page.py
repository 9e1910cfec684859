"""The page on the output folder names every file and every column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufabric.report.address_csv import ADDRESS_COLUMNS
from gpufabric.report.bom_csv import BOM_COLUMNS
from gpufabric.report.output import MANIFEST
from gpufabric.topology.cable_table import CABLE_COLUMNS
from tests.report.test_output import FILES, REPORTS

PAGE = Path(__file__).parent.parent.parent / "docs/reference/output-folder.md"
BEGIN = "<!-- columns: written by tests/report/test_output_page.py --update -->\n"
END = "<!-- end of columns -->\n"
TABLES = {
    "bom.csv": BOM_COLUMNS,
    "cables.csv": CABLE_COLUMNS,
    "addresses.csv": ADDRESS_COLUMNS,
}


def tables() -> Iterator[str]:
    for name, columns in TABLES.items():
        yield f"### `{name}`\n\n| column | meaning |\n|---|---|\n"
        for column, meaning in columns:
            yield f"| `{column}` | {meaning.replace('|', chr(92) + '|')} |\n"
        yield "\n"


def test_the_page_has_every_column(request: pytest.FixtureRequest) -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    wanted = before + BEGIN + "\n" + "".join(tables()) + END + after
    if request.config.getoption("--update"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8")


def test_the_page_names_every_file() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ["plan.json", "bom.xlsx", "workload.html", MANIFEST, *REPORTS, *FILES]:
        assert f"── {name} " in text
