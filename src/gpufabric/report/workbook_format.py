"""Sheets of a workbook written row by row, with headings, number formats and column widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any, Literal

import xlsxwriter
from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from gpufabric.report.svg import xml_text

__all__ = ["Book", "Column", "Formula", "Page", "cell", "column_range", "sheet_names"]

CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - xlsxwriter wants it without a zone
"""Date of creation of every workbook, so that the same plan gives the same bytes."""

LINE_PT = 13.5
WIDE_FROM = "\u2e80"
"""The first sign that is as wide as two letters."""

Kind = Literal["text", "wrapped", "count", "decimal", "exact", "money", "share", "usd"]
_NUMBERS: dict[str, str] = {
    "count": "#,##0",
    "decimal": "#,##0.0",
    "exact": "[=0]0;[<1]0.0####;General",
    "money": "#,##0.00",
    "share": "0.0%",
    "usd": "#,##0",
}
MAX_SHEET_NAME = 31
_NOT_IN_SHEET_NAMES = str.maketrans(dict.fromkeys("[]:*?/\\'", "-"))


@dataclass(frozen=True)
class Column:
    """Heading of a column, its width in signs, and what it holds."""

    heading: str
    width: int
    kind: Kind = "text"


@dataclass(frozen=True)
class Formula:
    """A live formula and the value it has now, for readers that do not calculate."""

    text: str
    value: float | str


def cell(row: int, column: int, *, fixed: bool = False) -> str:
    """Return the name of a cell, rows and columns from 0.

    Examples
    --------
    >>> cell(0, 2), cell(3, 1, fixed=True)
    ('C1', '$B$4')
    """
    return str(xl_rowcol_to_cell(row, column, row_abs=fixed, col_abs=fixed))


def column_range(column: int, first: int, last: int) -> str:
    """Return the range of a column between two rows, all from 0.

    Examples
    --------
    >>> column_range(1, 1, 3)
    'B2:B4'
    """
    name = xl_col_to_name(column)
    return f"{name}{first + 1}:{name}{last + 1}"


def sheet_names(wanted: Sequence[str]) -> list[str]:
    """Return names that a workbook takes: short, without signs it refuses, all different.

    Examples
    --------
    >>> sheet_names(["BOM a/b", "BOM A/B"])
    ['BOM a-b', 'BOM A-B 2']
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in wanted:
        plain = name.translate(_NOT_IN_SHEET_NAMES)[:MAX_SHEET_NAME].strip() or "-"
        trial, number = plain, 2
        while trial.casefold() in taken:
            suffix = f" {number}"
            trial = plain[: MAX_SHEET_NAME - len(suffix)] + suffix
            number += 1
        taken.add(trial.casefold())
        found.append(trial)
    return found


def lines_of(text: str, width: int) -> int:
    """Return how many lines a text takes in a cell of a width in signs; Chinese is twice as wide.

    Examples
    --------
    >>> lines_of("eleven sign", 12), lines_of("twelve signs and more", 12)
    (1, 2)
    """
    signs = sum(2 if sign >= WIDE_FROM else 1 for sign in text)
    return max(1, -(-signs // max(1, width)))


class Book:
    """A workbook in memory."""

    def __init__(self, title: str) -> None:
        self._bytes = BytesIO()
        options = {
            "in_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        self.book: Workbook = xlsxwriter.Workbook(self._bytes, options)
        self.book.set_properties({"title": title, "author": "gpufabric", "created": CREATED})
        self.book.set_calc_mode("auto")
        self._formats: dict[tuple[str, bool, bool], Any] = {}

    def page(self, name: str, columns: Sequence[Column], *, heading_row: int = 0) -> Page:
        """Append a sheet with a frozen row of headings."""
        sheet = self.book.add_worksheet(name)
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        sheet.repeat_rows(heading_row)
        for index, column in enumerate(columns):
            look = "number heading" if column.kind in _NUMBERS else "heading"
            sheet.set_column(index, index, column.width)
            sheet.write_string(heading_row, index, column.heading, self.format(look, is_bold=True))
        most = max(lines_of(column.heading, column.width - 2) for column in columns)
        sheet.set_row(heading_row, LINE_PT * most + 4)
        sheet.freeze_panes(heading_row + 1, 0)
        return Page(self, sheet, tuple(columns), heading_row + 1)

    def format(self, kind: str, *, is_bold: bool = False, is_marked: bool = False) -> Any:
        """Return the cell format of a kind of value."""
        key = (kind, is_bold, is_marked)
        if key not in self._formats:
            look: dict[str, Any] = {"font_name": "Arial", "font_size": 10, "valign": "top"}
            if kind.endswith("heading"):
                look |= {"bold": True, "bg_color": "#E7ECF2", "bottom": 1, "text_wrap": True}
            if kind == "wrapped":
                look["text_wrap"] = True
            if kind in _NUMBERS:
                look["num_format"] = _NUMBERS[kind]
            elif kind == "number heading":
                look["align"] = "right"
            else:
                look |= {"align": "left", "indent": 1}
            if is_bold:
                look["bold"] = True
            if is_marked:
                look["bg_color"] = "#FFF4D6"
            self._formats[key] = self.book.add_format(look)
        return self._formats[key]

    def content(self) -> bytes:
        """Close the workbook and return its bytes."""
        self.book.close()
        return self._bytes.getvalue()


@dataclass
class Page:
    """A sheet that is filled from the top; `row` is the next one, from 0."""

    owner: Book
    sheet: Worksheet
    columns: tuple[Column, ...]
    row: int

    def add(
        self,
        values: Sequence[object],
        *,
        is_bold: bool = False,
        is_marked: bool = False,
        numbers: Kind | None = None,
    ) -> int:
        """Write one row and return its number; None leaves a cell empty.

        `numbers` is how numbers and formulas of this row look, where not as their columns say.
        """
        for index, value in enumerate(values):
            kind = self.columns[index].kind if index < len(self.columns) else "text"
            if numbers is not None and isinstance(value, int | float | Formula):
                kind = numbers
            self._write(index, value, self.owner.format(kind, is_bold=is_bold, is_marked=is_marked))
        wrapped = [
            lines_of(str(value), column.width - 2)
            for value, column in zip(values, self.columns, strict=False)
            if column.kind == "wrapped" and isinstance(value, str)
        ]
        if max(wrapped, default=1) > 1:
            self.sheet.set_row(self.row, LINE_PT * max(wrapped))
        self.row += 1
        return self.row - 1

    def add_words(self, words: str) -> None:
        """Write a text across all columns, as high as it needs."""
        last = len(self.columns) - 1
        width = sum(column.width for column in self.columns)
        look = self.owner.format("wrapped")
        self.sheet.merge_range(self.row, 0, self.row, last, xml_text(words), look)
        self.sheet.set_row(self.row, LINE_PT * lines_of(words, width - 2))
        self.row += 1

    def skip(self) -> None:
        """Leave one row empty."""
        self.row += 1

    def filter_to(self, last: int) -> None:
        """Offer a filter on the rows below the headings, to row `last`."""
        self.sheet.autofilter(0, 0, last, len(self.columns) - 1)

    def _write(self, column: int, value: object, look: Any) -> None:
        if value is None or value == "":
            self.sheet.write_blank(self.row, column, None, look)
        elif isinstance(value, Formula):
            self.sheet.write_formula(self.row, column, value.text, look, value.value)
        elif isinstance(value, bool):
            self.sheet.write_boolean(self.row, column, value, look)
        elif isinstance(value, int | float):
            self.sheet.write_number(self.row, column, value, look)
        else:
            self.sheet.write_string(self.row, column, xml_text(str(value)), look)
