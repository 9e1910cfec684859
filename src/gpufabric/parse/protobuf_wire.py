"""The wire form of Protocol Buffers: fields read with their byte offset, and written.

Only the form is known here, no schema: a field has a number, a kind and a value.

Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = [
    "FIXED32",
    "FIXED64",
    "LENGTH",
    "VARINT",
    "Field",
    "broken",
    "delimited",
    "fields_of",
    "length_field",
    "messages_of_file",
    "read_varint",
    "signed",
    "varint_field",
    "zigzag",
]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
MOST_FIELD = 2**29 - 1


class Field(NamedTuple):
    """One field of a message.

    Parameters
    ----------
    number, kind
        Number in the schema, and one of ``VARINT``, ``FIXED64``, ``LENGTH``, ``FIXED32``.
    value
        The number; of ``LENGTH`` its bytes; of a fixed one its bytes.
    offset
        Where the field begins in the file [byte].
    """

    number: int
    kind: int
    value: int | bytes
    offset: int


def broken(name: str, offset: int, what: str, expected: str = "") -> InputError:
    """Return the error of a file that is damaged at a byte."""
    remedy = _("Copy the file again, or have it written again.")
    return InputError(Fault(_("{file}, byte {at}").format(file=name, at=offset), what, expected,
                            remedy))  # fmt: skip


def read_varint(body: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    """Return a number of 7 bits a byte, and where it ends.

    Raises
    ------
    InputError
        If it does not end, or is longer than 64 bits.
    """
    value = shift = 0
    start = at
    while True:
        if at >= end:
            raise broken(name, start, _("the file ends inside a number."))
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if at - start >= LONGEST_VARINT:
            raise broken(name, start, _("a number is longer than 10 bytes."))


def fields_of(body: bytes, at: int, end: int, name: str) -> Iterator[Field]:
    """Yield the fields of the message between two offsets.

    Raises
    ------
    InputError
        If a field does not end inside the message, or is of no known kind.
    """
    while at < end:
        offset = at
        key, at = _short(body, at, end, name)
        number, kind = key >> 3, key & 7
        if not 1 <= number <= MOST_FIELD:
            what = _("a field has the number {number}.").format(number=number)
            raise broken(name, offset, what, _("a Protocol Buffers message"))
        if kind == VARINT:
            value, at = _short(body, at, end, name)
            yield Field(number, kind, value, offset)
            continue
        if kind == LENGTH:
            size, at = _short(body, at, end, name)
        elif kind in {FIXED64, FIXED32}:
            size = 8 if kind == FIXED64 else 4
        else:
            what = _("field {number} is of the kind {kind}.").format(number=number, kind=kind)
            raise broken(name, offset, what, _("a Protocol Buffers message"))
        if size > end - at:
            what = _("field {number} wants {size} bytes; {left} are left.").format(
                number=number, size=size, left=end - at
            )
            raise broken(name, offset, what)
        yield Field(number, kind, body[at : at + size], offset)
        at += size


def _short(body: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    """The same as `read_varint`, quick for the many numbers of one byte."""
    if at < end and body[at] < 0x80:
        return body[at], at + 1
    return read_varint(body, at, end, name)


def messages_of_file(body: bytes, name: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each message of a file of messages that follow their length.

    Raises
    ------
    InputError
        If the file ends inside a message.
    """
    at = 0
    while at < len(body):
        start = at
        size, at = read_varint(body, at, len(body), name)
        if size > len(body) - at:
            what = _("a message of {size} bytes; {left} are left.").format(
                size=size, left=len(body) - at
            )
            raise broken(name, start, what, _("messages after their lengths: a Chakra trace"))
        yield at, at + size
        at += size


def signed(value: int) -> int:
    """Return a number of 64 bits as the signed one that it stands for.

    Examples
    --------
    >>> signed(2**64 - 1)
    -1
    """
    return value - 2**64 if value >= 2**63 else value


def zigzag(value: int) -> int:
    """Return the signed number of a ``sint`` field.

    Examples
    --------
    >>> [zigzag(n) for n in range(4)]
    [0, -1, 1, -2]
    """
    return (value >> 1) ^ -(value & 1)


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_field(number: int, value: int) -> bytes:
    """Return a field that holds a number, signed ones in two's complement."""
    return _varint(number << 3 | VARINT) + _varint(value)


def length_field(number: int, value: bytes | str) -> bytes:
    """Return a field that holds bytes, a text or a message."""
    body = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | LENGTH) + _varint(len(body)) + body


def delimited(message: bytes) -> bytes:
    """Return a message after its length, as files of many messages hold it."""
    return _varint(len(message)) + message


def packed_varints(body: bytes, at: int, end: int, name: str) -> list[int]:
    """Return numbers that follow one another without keys."""
    found = []
    while at < end:
        value, at = read_varint(body, at, end, name)
        found.append(value)
    return found


def floating(value: bytes) -> float:
    """Return a float or double of 4 or 8 bytes."""
    (number,) = struct.unpack("<d" if len(value) == 8 else "<f", value)
    return float(number)
