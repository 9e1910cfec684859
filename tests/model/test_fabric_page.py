"""The page on fabric files shows every column as the tables define it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufabric.model.tables import SCHEMAS

PAGE = Path(__file__).parent.parent.parent / "docs/reference/fabric-file.md"
BEGIN = "<!-- tables: written by tests/model/test_fabric_page.py --update -->\n"
END = "<!-- end of tables -->\n"


def tables() -> Iterator[str]:
    for name, schema in SCHEMAS.items():
        yield f"### {name}\n\n{schema.description}\n\n"
        yield "| column | type | unit | default | meaning |\n|---|---|---|---|---|\n"
        for column in schema.columns:
            default = "" if column.default == "" else f"{column.default}"
            meaning = column.description + (" Filled in by the design." if column.is_result else "")
            dtype = column.dtype.lstrip("<")
            yield f"| `{column.name}` | {dtype} | {column.unit} | {default} | {meaning} |\n"
        yield "\n"


def test_the_page_has_every_column(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = before + BEGIN + "\n" + "".join(tables()) + END + after
    if request.config.getoption("--update"):
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8")
