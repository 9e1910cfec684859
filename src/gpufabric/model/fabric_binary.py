"""A Fabric as compact bytes: a checked head in JSON, then the packed columns.

::

    bytes 0-7     magic
    bytes 8-11    version of this container, unsigned, little endian
    bytes 12-15   length of the head, unsigned, little endian
    bytes 16-47   SHA-256 of everything that follows
    head          JSON in UTF-8: the head of the JSON form, and for each table the number of rows
                  and for each column dtype, encoding, offset (from the end of the head), length
    columns       each on its own, one after the other

A column of integers is written as differences from row to row (modulo the type's range), then,
like every column, turned so that first bytes of all rows come first, and packed with zlib.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.model.fabric_content import (
    MAX_BYTES,
    MAX_ROWS,
    Content,
    content_of,
    damaged,
    json_head,
)

__all__ = ["MAGIC", "decode", "encode"]

MAGIC = b"GPUFAB\x1a\n"
_CONTAINER_VERSION = 1
_FIXED = struct.Struct("<8sII32s")
_MAX_HEAD = 2**23
_LEVEL = 6
_DTYPE = re.compile(r"[<|]?[iuf][1248]|<U(?:[1-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-6])")
_ENCODINGS = {"i": "delta-turn-zlib", "u": "delta-turn-zlib", "f": "turn-zlib", "U": "turn-zlib"}
_COLUMN_KEYS = {"dtype", "encoding", "offset", "length"}


class _Packed(NamedTuple):
    """One column as the head describes it."""

    dtype: np.dtype[Any]
    rows: int
    offset: int
    length: int

    @property
    def n_bytes(self) -> int:
        return self.rows * self.dtype.itemsize


# Writing ------------------------------------------------------------------------------------


def encode(fabric: Fabric, file: IO[bytes]) -> None:
    """Write `fabric` to `file`."""
    content = content_of(fabric)
    tables: dict[str, Any] = {}
    blobs: list[bytes] = []
    offset = 0
    for name, columns in content.tables.items():
        described: dict[str, Any] = {}
        for column, array in columns.items():
            blob = zlib.compress(_turn(array), _LEVEL)
            described[column] = {
                "dtype": array.dtype.str,
                "encoding": _ENCODINGS[array.dtype.kind],
                "offset": offset,
                "length": len(blob),
            }
            blobs.append(blob)
            offset += len(blob)
        rows = len(next(iter(columns.values())))
        tables[name] = {"rows": rows, "columns": described}
    head = json.dumps(
        {**content.head, "tables": tables},
        ensure_ascii=False,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    digest = hashlib.sha256(head)
    for blob in blobs:
        digest.update(blob)
    file.write(_FIXED.pack(MAGIC, _CONTAINER_VERSION, len(head), digest.digest()))
    file.write(head)
    file.writelines(blobs)


def _turn(array: npt.NDArray[Any]) -> bytes:
    """Return the column's bytes: differences for integers, byte planes one after the other."""
    if array.dtype.kind in "iu" and len(array):
        unsigned = array.view(f"<u{array.dtype.itemsize}")
        array = np.diff(unsigned, prepend=unsigned.dtype.type(0))
    size = array.dtype.itemsize
    planes = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), size).T
    return planes.tobytes()


def _turn_back(raw: bytes, column: _Packed) -> npt.NDArray[Any]:
    size = column.dtype.itemsize
    planes = np.frombuffer(raw, np.uint8).reshape(size, column.rows).T
    flat = np.ascontiguousarray(planes).reshape(-1)
    if column.dtype.kind not in "iu":
        return flat.view(column.dtype)
    unsigned = flat.view(f"<u{size}")
    total: npt.NDArray[Any] = np.cumsum(unsigned, dtype=unsigned.dtype)
    return total.view(column.dtype)


# Reading ------------------------------------------------------------------------------------


def decode(raw: bytes, where: str) -> Content:
    """Return the content of a binary fabric file.

    Sizes are checked before anything is unpacked, and unpacking stops at the stated size.

    Raises
    ------
    InputError
        If the bytes are damaged, cut off, or not of this form.
    """
    if len(raw) < _FIXED.size:
        raise damaged(where, _("the file is cut off."))
    magic, version, head_length, digest = _FIXED.unpack_from(raw)
    if magic != MAGIC:
        raise damaged(where, _("this is not a fabric file."))
    if version != _CONTAINER_VERSION:
        raise damaged(where, _("container version {version} is not known.").format(version=version))
    body = memoryview(raw)[_FIXED.size :]
    if head_length > min(_MAX_HEAD, len(body)):
        raise damaged(where, _("the file is cut off."))
    if hashlib.sha256(body).digest() != digest:
        raise damaged(where, _("the checksum is wrong: the file is damaged or cut off."))
    head = _head(bytes(body[:head_length]), where)
    tables = head.pop("tables", None)
    json_head(head, where)
    packed = _described(tables, where)
    _check_layout(packed, len(body) - head_length, where)
    blobs = body[head_length:]
    return Content(
        head,
        {
            name: {column: _unpack(blobs, part, where) for column, part in columns.items()}
            for name, columns in packed.items()
        },
    )


def _head(raw: bytes, where: str) -> dict[str, Any]:
    try:
        head = json.loads(raw.decode("utf-8"))
    except ValueError as error:  # also not UTF-8
        raise damaged(where, _("the head is not JSON.")) from error
    if not isinstance(head, dict):
        raise damaged(where, _("the head is not JSON."))
    return head


def _described(tables: object, where: str) -> dict[str, dict[str, _Packed]]:
    """Return the columns that the head states, with every value of the right kind and range."""
    if not isinstance(tables, dict):
        raise damaged(where, _("the head does not describe the tables."))
    packed: dict[str, dict[str, _Packed]] = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or table.keys() != {"rows", "columns"}:
            raise damaged(where, _("the head does not describe the tables."))
        rows, columns = table["rows"], table["columns"]
        if not _is_size(rows, MAX_ROWS) or not isinstance(columns, dict):
            raise damaged(where, _("a table has more than {rows} rows.").format(rows=MAX_ROWS))
        packed[name] = {
            column: _column(described, rows, where) for column, described in columns.items()
        }
    return packed


def _column(described: object, rows: int, where: str) -> _Packed:
    if not isinstance(described, Mapping) or described.keys() != _COLUMN_KEYS:
        raise damaged(where, _("the head does not describe a column."))
    dtype, offset, length = (described[key] for key in ("dtype", "offset", "length"))
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise damaged(where, _("a column has a type that is not known."))
    kind = np.dtype(dtype)
    if described["encoding"] != _ENCODINGS[kind.kind]:
        raise damaged(where, _("a column has an encoding that is not known."))
    if not _is_size(offset, MAX_BYTES) or not _is_size(length, MAX_BYTES):
        raise damaged(where, _("a column lies outside the file."))
    return _Packed(kind, rows, offset, length)


def _is_size(value: object, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limit


def _check_layout(packed: Mapping[str, Mapping[str, _Packed]], n_stored: int, where: str) -> None:
    """Check that the columns fill the rest of the file without gap or overlap, within limits."""
    parts = sorted(
        (part for columns in packed.values() for part in columns.values()),
        key=lambda part: (part.offset, part.length),
    )
    if sum(part.n_bytes for part in parts) > MAX_BYTES:
        raise damaged(where, _("the tables are larger than {size} bytes.").format(size=MAX_BYTES))
    at = 0
    for part in parts:
        if part.offset != at:
            raise damaged(where, _("a column lies outside the file."))
        at += part.length
    if at != n_stored:
        raise damaged(where, _("a column lies outside the file."))


def _unpack(blobs: memoryview, column: _Packed, where: str) -> npt.NDArray[Any]:
    stored = blobs[column.offset : column.offset + column.length]
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(stored, column.n_bytes + 1)
    except zlib.error as error:
        raise damaged(where, _("a column cannot be unpacked.")) from error
    if len(raw) != column.n_bytes or not unpacker.eof or unpacker.unused_data:
        raise damaged(where, _("a column does not have the size that the head states."))
    return _turn_back(raw, column)
