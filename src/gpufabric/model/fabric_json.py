"""A Fabric as JSON text: one line a column, the same bytes for the same fabric."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.fabric_content import (
    MAX_BYTES,
    MAX_ROWS,
    Content,
    content_of,
    json_head,
)

__all__ = ["decode", "encode"]

_Read = TypeVar("_Read")

_MAX_SMALL = 2**22  # characters of one value of the head
_MAX_TEXT = 256  # characters of one name

_BLANK = re.compile(r"[ \t\n\r]*+")
_NUMBERS = re.compile(r"\[[-+0-9.eEnul, \t\n\r]*+\]")
_STRING = re.compile(r'[ \t\n\r]*+("(?:[^"\\\x00-\x1f]|\\.)*+")[ \t\n\r]*+')


# Writing ------------------------------------------------------------------------------------


def encode(fabric: Fabric, file: IO[bytes]) -> None:
    """Write `fabric` to `file`, column by column."""
    content = content_of(fabric)
    lines = [f"{_dump(key)}:{_dump(value)}" for key, value in content.head.items()]
    file.write(("{\n" + ",\n".join(lines) + ',\n"tables":{').encode())
    for number, (name, columns) in enumerate(content.tables.items()):
        rows = len(next(iter(columns.values())))
        opening = f'{"," if number else ""}\n{_dump(name)}:{{"rows":{rows},"columns":{{'
        file.write(opening.encode())
        for place, (column, array) in enumerate(columns.items()):
            file.write(f"{',' if place else ''}\n{_dump(column)}:{_array(array)}".encode())
        file.write(b"}}")
    file.write(b"\n}}\n")


def _dump(value: object) -> str:
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )


def _array(array: npt.NDArray[Any]) -> str:
    if array.dtype.kind != "f":
        return _dump(array.tolist())
    bits, rows = np.unique(array.view(f"<u{array.dtype.itemsize}"), return_inverse=True)
    tokens = [_token(value) for value in bits.view(array.dtype)]
    return f"[{','.join([tokens[row] for row in rows.tolist()])}]"


def _token(value: np.floating[Any]) -> str:
    """Return the shortest JSON number that is read back as `value`; null for NaN."""
    if np.isnan(value):
        return "null"
    if np.isinf(value):
        raise ValueError(f"{value} is not a JSON number")
    short = np.format_float_scientific(value, unique=True, trim="-", exp_digits=1)
    plain = np.format_float_positional(value, unique=True, trim="-")
    token = plain if len(plain) <= len(short) + 4 else short.replace("e+", "e")
    return token if value.dtype.type(float(token)) == value else repr(float(value))


# Reading ------------------------------------------------------------------------------------


def decode(text: str, where: str) -> Content:
    """Return the content of a JSON fabric file.

    The text is walked value by value, so that at most one column exists as Python objects.

    Raises
    ------
    InputError
        If the text is not JSON, or not of this form; the place is line and column.
    """
    reader = _Reader(text, where)
    head: dict[str, Any] = {}
    tables: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for key in reader.members():
        if key == "tables":
            for table in reader.members():
                tables[table] = _table(reader, table)
        else:
            head[key] = reader.small_value()
    reader.end()
    json_head(head, where)
    return Content(head, tables)


def _table(reader: _Reader, name: str) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {}
    rows: object = None
    for key in reader.members():
        if key == "rows":
            rows = reader.small_value()
        elif key == "columns":
            for column in reader.members():
                columns[column] = reader.array()
        else:
            raise reader.fault(_('"{key}" is not known here.').format(key=key[:40]))
    if any(len(array) != rows for array in columns.values()):
        raise reader.fault(
            _('table "{name}" has columns whose length is not its "rows".').format(name=name[:40])
        )
    return columns


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError(_("a key is there twice"))
    return mapping


def _no_constant(name: str) -> float:
    raise ValueError(_("{name} is not JSON").format(name=name))


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


class _Reader:
    """Reads one JSON text from front to back, in pieces of bounded size."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._at = 0
        self._bytes = 0

    def fault(self, what: str) -> InputError:
        """Return the error `what` at the present place."""
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        return InputError(Fault(f"{self._where}:{line}:{column}", what))

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; the caller reads the value of each."""
        self._expect("{")
        seen: set[str] = set()
        if self._next() == "}":
            self._at += 1
            return
        while True:
            key = self.small_value()
            if not isinstance(key, str):
                raise self.fault(_("a key must be text in double quotes."))
            if key in seen:
                raise self.fault(_('"{key}" is there twice.').format(key=key[:40]))
            seen.add(key)
            self._expect(":")
            yield key
            if self._next() != ",":
                break
            self._at += 1
        self._expect("}")

    def end(self) -> None:
        """Check that nothing follows."""
        if self._next():
            raise self.fault(_("there is more text after the end of the fabric."))

    def small_value(self) -> object:
        """Return one value of at most ``_MAX_SMALL`` characters."""
        self._next()
        piece = self._text[self._at : self._at + _MAX_SMALL]
        value, length = self._decode(_DECODER.raw_decode, piece)
        self._at += length
        return value

    def array(self) -> npt.NDArray[Any]:
        """Return an array of numbers or of text; null is NaN.

        Nothing larger than ``MAX_BYTES`` is made, whatever the text says.
        """
        self._next()
        found = _NUMBERS.match(self._text, self._at)
        array = self._numbers(found) if found else self._texts()
        self._bytes += array.nbytes
        self._check_size(self._bytes)
        return array

    def _numbers(self, found: re.Match[str]) -> npt.NDArray[Any]:
        start, end = found.span()
        rows = self._text.count(",", start, end) + 1
        self._check_rows(rows)
        self._check_size(self._bytes + 8 * rows)
        piece = found.group()
        values: list[Any] = self._decode(json.loads, piece)
        self._at = end
        is_whole = not any(sign in piece for sign in ".eEn")
        try:
            return np.array(values, np.int64 if is_whole else np.float64)
        except OverflowError:
            raise self.fault(_("a number is too large.")) from None

    def _texts(self) -> npt.NDArray[Any]:
        self._expect("[")
        values: list[str] = []
        longest = 1
        while True:
            found = _STRING.match(self._text, self._at)
            if not found:
                raise self.fault(_("expected an array of numbers, or one of text."))
            if found.end(1) - found.start(1) > 8 * _MAX_TEXT:
                raise self.fault(_("a name is too long."))
            value = self._decode(json.loads, found.group(1))
            longest = max(longest, len(value))
            values.append(value)
            self._at = found.end()
            if longest > _MAX_TEXT:
                raise self.fault(_("a name is too long."))
            self._check_rows(len(values))
            self._check_size(self._bytes + 4 * longest * len(values))
            if self._next() != ",":
                break
            self._at += 1
        self._expect("]")
        return np.array(values, f"<U{longest}")

    def _check_rows(self, rows: int) -> None:
        if rows > MAX_ROWS:
            raise self.fault(_("a table has more than {rows} rows.").format(rows=MAX_ROWS))

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > MAX_BYTES:
            raise self.fault(_("the tables are larger than {size} bytes.").format(size=MAX_BYTES))

    def _decode(self, function: Callable[[str], _Read], piece: str) -> _Read:
        try:
            return function(piece)
        except json.JSONDecodeError as error:
            self._at += error.pos
            raise self.fault(_("not JSON: {reason}.").format(reason=error.msg)) from error
        except ValueError as error:
            raise self.fault(_("not JSON: {reason}.").format(reason=error)) from error

    def _next(self) -> str:
        """Skip blanks and return the next character; empty at the end."""
        found = _BLANK.match(self._text, self._at)
        if found:
            self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _expect(self, sign: str) -> None:
        found = self._next()
        if found != sign:
            raise self.fault(
                _('expected "{sign}", found "{found}".').format(sign=sign, found=found or "")
            )
        self._at += 1
