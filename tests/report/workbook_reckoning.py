"""A workbook reckoned anew from its formulas, as a spreadsheet program would."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

from openpyxl import load_workbook
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.utils import range_boundaries


def _flat(values: tuple[Any, ...]) -> Iterator[float]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(tuple(value))
        elif isinstance(value, int | float):
            yield float(value)


def _sumif(keys: list[Any], wanted: str, amounts: list[Any]) -> float:
    return math.fsum(
        amount or 0.0 for key, amount in zip(keys, amounts, strict=True) if key == wanted
    )


def _pv(rate: float, years: float, payment: float) -> float:
    if rate == 0:
        return -payment * years
    return -payment * (1 - (1 + rate) ** -years) / rate


FUNCTIONS = {
    "SUM": lambda *values: math.fsum(_flat(values)),
    "MAX": lambda *values: max(_flat(values)),
    "MIN": lambda *values: min(_flat(values)),
    "SQRT": math.sqrt,
    "LN": math.log,
    "EXP": math.exp,
    "PV": _pv,
    "IF": lambda is_so, then, otherwise: then if is_so else otherwise,
    "SUMIF": _sumif,
}


class Reckoned:
    """The cells of a workbook; those with formulas are worth what these say."""

    def __init__(self, content: bytes) -> None:
        self.book = load_workbook(io.BytesIO(content))
        self._known: dict[tuple[str, int, int], Any] = {}

    def change(self, sheet: str, row: int, column: int, value: float) -> None:
        """Write a number, as a reader would; everything is reckoned anew."""
        self.book[sheet].cell(row, column).value = value
        self._known.clear()

    def value(self, sheet: str, row: int, column: int) -> Any:
        """Return what a cell is worth; rows and columns from 1."""
        key = (sheet, row, column)
        if key not in self._known:
            raw = self.book[sheet].cell(row, column).value
            is_formula = isinstance(raw, str) and raw.startswith("=")
            self._known[key] = self._reckon(raw, sheet) if is_formula else raw
        return self._known[key]

    def formulas(self) -> Iterator[tuple[str, int, int]]:
        """Yield where formulas stand."""
        for sheet in self.book:
            for cells in sheet.iter_rows():
                for cell in cells:
                    if cell.data_type == "f":
                        yield sheet.title, cell.row, cell.column

    def _reckon(self, formula: str, sheet: str) -> Any:
        parts = [self._python(token, sheet) for token in Tokenizer(formula).items]
        names = {**FUNCTIONS, "at": self._at}
        return eval("".join(parts), {"__builtins__": {}}, names)

    def _python(self, token: Token, sheet: str) -> str:
        if token.type == Token.OPERAND and token.subtype == Token.RANGE:
            name, _mark, place = token.value.rpartition("!")
            where = name.strip("'") or sheet
            return f"at({where!r}, {place.replace('$', '')!r})"
        if token.type == Token.OPERAND and token.subtype == Token.TEXT:
            return repr(token.value.strip('"'))
        return "**" if token.value == "^" else token.value

    def _at(self, sheet: str, place: str) -> Any:
        left, top, right, bottom = range_boundaries(place)
        if ":" not in place:
            return self.value(sheet, top, left)
        return [
            self.value(sheet, row, column)
            for row in range(top, bottom + 1)
            for column in range(left, right + 1)
        ]
