"""Attributes of Chakra messages: names and values of every kind that the schema has."""

from __future__ import annotations

import json
import struct
from typing import Any

from gpufabric.core.text import _
from gpufabric.parse import chakra_schema as schema
from gpufabric.parse.protobuf_wire import (
    LENGTH,
    VARINT,
    Field,
    broken,
    fields_of,
    read_varint,
    signed,
    zigzag,
)

__all__ = ["attribute_of", "groups_in", "text_of"]

_FIXED = {
    "double": "<d",
    "float": "<f",
    "fixed32": "<I",
    "fixed64": "<Q",
    "sfixed32": "<i",
    "sfixed64": "<q",
}
_SIGNED = frozenset({"int32", "int64"})
_ZIGZAG = frozenset({"sint32", "sint64"})


def text_of(entry: Field, name: str) -> str:
    """Return a field's text.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(entry.value, bytes):
        what = _("field {number} is no text.").format(number=entry.number)
        raise broken(name, entry.offset, what)
    return entry.value.decode("utf-8", errors="replace")


def attribute_of(body: bytes, name: str) -> tuple[str, Any]:
    """Return name and value of an attribute; the value None where it has none.

    Raises
    ------
    InputError
        If the message is damaged, or a value is not of the kind that its field has.
    """
    title, value = "", None
    for entry in fields_of(body, 0, len(body), name):
        if entry.number == schema.ATTRIBUTE_NAME:
            title = text_of(entry, name)
        elif entry.number in schema.ATTRIBUTE_KINDS:
            value = _one(schema.ATTRIBUTE_KINDS[entry.number], entry, name)
        elif entry.number - 1 in schema.ATTRIBUTE_KINDS:
            value = _several(schema.ATTRIBUTE_KINDS[entry.number - 1], entry, name)
    return title, value


def _one(kind: str, entry: Field, name: str) -> Any:
    value = entry.value
    if kind in {"string", "bytes"}:
        text = text_of(entry, name)
        return text if kind == "string" else value
    if kind in _FIXED:
        if not isinstance(value, bytes) or len(value) != struct.calcsize(_FIXED[kind]):
            raise broken(name, entry.offset, _("a value is no {kind}.").format(kind=kind))
        return struct.unpack(_FIXED[kind], value)[0]
    if not isinstance(value, int):
        raise broken(name, entry.offset, _("a value is no {kind}.").format(kind=kind))
    return _number(kind, value)


def _number(kind: str, value: int) -> int | bool:
    if kind in _SIGNED:
        return signed(value)
    if kind in _ZIGZAG:
        return zigzag(value)
    return bool(value) if kind == "bool" else value


def _several(kind: str, entry: Field, name: str) -> list[Any]:
    """Values of a list, each alone or all packed into one field."""
    if not isinstance(entry.value, bytes):
        raise broken(name, entry.offset, _("a list is no message."))
    found: list[Any] = []
    for part in fields_of(entry.value, 0, len(entry.value), name):
        if part.number != schema.LIST_VALUES:
            continue
        if part.kind == LENGTH and kind not in {"string", "bytes"}:
            assert isinstance(part.value, bytes)
            found += _packed(kind, part.value, name)
        else:
            found.append(_one(kind, part, name))
    return found


def _packed(kind: str, body: bytes, name: str) -> list[Any]:
    found: list[Any] = []
    at = 0
    size = struct.calcsize(_FIXED[kind]) if kind in _FIXED else 0
    while at < len(body):
        if size:
            found.append(_one(kind, Field(1, size, body[at : at + size], at), name))
            at += size
        else:
            value, at = read_varint(body, at, len(body), name)
            found.append(_one(kind, Field(1, VARINT, value, at), name))
    return found


def groups_in(text: str) -> dict[str, tuple[int, ...]]:
    """Return the process groups that PyTorch writes into a metadata node; none if there are none.

    Examples
    --------
    >>> groups_in('[{"pg_name": "3", "ranks": [0, 2]}]')
    {'3': (0, 2)}
    """
    try:
        rows = json.loads(text)
        while isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], str):
            rows = json.loads(rows[0])
        found = {}
        for row in rows:
            ranks = tuple(int(rank) for rank in row["ranks"])
            if ranks:
                found[str(row["pg_name"])] = ranks
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    return found
