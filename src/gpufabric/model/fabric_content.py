"""What a fabric file holds between its bytes and a Fabric, and how old content becomes new."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.check import check_fabric
from gpufabric.model.fabric import FORMAT_VERSION, Fabric
from gpufabric.model.tables import SCHEMAS, Column, Table

__all__ = [
    "FORMAT",
    "HEAD_KEYS",
    "MAX_BYTES",
    "MAX_ROWS",
    "UPGRADES",
    "Content",
    "build_fabric",
    "content_of",
    "damaged",
    "json_head",
    "upgrade",
]

FORMAT = "gpufabric-fabric"
MAX_ROWS = 2**24  # rows of one table; 131,072 GPUs need fewer than 2**20
MAX_BYTES = 2**30  # all columns of one file, unpacked

_SURROGATE = re.compile("[\ud800-\udfff]")

HEAD_KEYS: Mapping[str, type] = MappingProxyType(
    {
        "format": str,
        "format_version": int,
        "content_hash": str,
        "name": str,
        "protocol": str,
        "generation": str,
        "family": str,
        "models": list,
        "parts": list,
        "attributes": dict,
    }
)
"""Keys of a file beside ``tables``, with the type of each."""


@dataclass(frozen=True)
class Content:
    """Head and columns of a fabric file, before anything is believed of them.

    Parameters
    ----------
    head
        Everything but the tables, by key.
    tables
        Columns by table and column name.
    """

    head: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]

    @property
    def version(self) -> int:
        """Format version that the content states."""
        return int(self.head["format_version"])


UPGRADES: Mapping[int, Callable[[Content], Content]] = MappingProxyType({})
"""One function per old format version: it turns content of that version into the next one's."""


def damaged(where: str, what: str) -> InputError:
    """Return the error of a file that is not a sound fabric file."""
    return InputError(
        Fault(where, what, remedy=_("Take another copy of the file, or make the design again."))
    )


def content_of(fabric: Fabric) -> Content:
    """Return what a file of `fabric` holds, with a head whose keys are in file order."""
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "content_hash": fabric.content_hash,
        "name": fabric.name,
        "protocol": fabric.protocol,
        "generation": fabric.generation,
        "family": fabric.family,
        "models": list(fabric.models),
        "parts": list(fabric.parts),
        "attributes": dict(fabric.attributes),
    }
    tables = {
        name: {column.name: array for column, array in table.columns()}
        for name, table in fabric.tables().items()
    }
    return Content(head, tables)


def upgrade(
    content: Content,
    where: str,
    upgrades: Mapping[int, Callable[[Content], Content]] = UPGRADES,
) -> Content:
    """Return `content` in today's format version.

    Raises
    ------
    InputError
        If the version is newer than this release knows, or too old.
    """
    version = content.version
    if version > FORMAT_VERSION:
        raise InputError(
            Fault(
                where,
                _("the file has format version {version}.").format(version=version),
                _("{known} or older").format(known=FORMAT_VERSION),
                _("Use the gpufabric release that wrote it, or a newer one."),
            )
        )
    while version < FORMAT_VERSION:
        if version not in upgrades:
            raise InputError(
                Fault(
                    where,
                    _("format version {version} is not known.").format(version=version),
                    _("{known} or older").format(known=FORMAT_VERSION),
                )
            )
        content = upgrades[version](content)
        version += 1
        content = replace(content, head={**content.head, "format_version": version})
    return content


def build_fabric(content: Content, where: str) -> Fabric:
    """Return the checked Fabric of `content`, whatever its format version.

    The content hash is compared only for content of today's version: an upgrade changes it.

    Raises
    ------
    InputError
        With every fault found, each prefixed by `where`.
    """
    stated = content.head["content_hash"] if content.version == FORMAT_VERSION else None
    content = upgrade(content, where)
    faults = [*_head_faults(content.head), *_table_faults(content.tables)]
    if faults:
        raise InputError(_within(where, faults))
    fabric = _fabric(content)
    faults = check_fabric(fabric)
    if not faults and stated is not None and stated != fabric.content_hash:
        faults = [
            Fault(
                "content_hash",
                _("the tables do not have the hash that the file states."),
                remedy=_("The file was changed after it was written; make the design again."),
            )
        ]
    if faults:
        raise InputError(_within(where, faults))
    return fabric


def _within(where: str, faults: list[Fault]) -> list[Fault]:
    return [replace(fault, where=f"{where}: {fault.where}") for fault in faults]


def json_head(head: Mapping[str, Any], where: str) -> None:
    """Check that `head` is that of a fabric file, so far as needed to go on reading.

    Raises
    ------
    InputError
        If format or version are missing or of another kind.
    """
    if head.get("format") != FORMAT:
        raise damaged(
            where, _('this is not a fabric file: "format" is not "{name}".').format(name=FORMAT)
        )
    faults = list(_head_faults(head))
    if faults:
        raise InputError(_within(where, faults))


def _head_faults(head: Mapping[str, Any]) -> Iterator[Fault]:
    for key, kind in HEAD_KEYS.items():
        if key not in head:
            yield Fault(key, _("is missing."))
        elif not isinstance(head[key], kind) or isinstance(head[key], bool):
            yield Fault(key, _("has the wrong type."), _JSON_TYPES[kind])
    for key in head:
        if key not in HEAD_KEYS:
            yield Fault(key[:40], _("is not known."), remedy=nearest(key[:40], list(HEAD_KEYS)))
    for key in ("models", "parts"):
        if not all(isinstance(name, str) for name in head.get(key) or ()):
            yield Fault(key, _("has the wrong type."), _("names"))
    version = head.get("format_version")
    if isinstance(version, int) and not 0 < version < 2**31:
        yield Fault("format_version", _("is out of range."))
    if not _is_strict(head.get("attributes")):
        yield Fault("attributes", _("holds a number that is not finite, or text that is no text."))


_JSON_TYPES = {str: "string", int: "integer", list: "array", dict: "object"}


def _is_strict(value: object) -> bool:
    """Tell whether a decoded JSON value has only finite numbers and text that UTF-8 can hold."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return value.isascii() or not _SURROGATE.search(value)
    if isinstance(value, dict):
        return all(_is_strict(key) and _is_strict(part) for key, part in value.items())
    return all(map(_is_strict, value)) if isinstance(value, list) else True


def _table_faults(tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Iterator[Fault]:
    yield from _key_faults("tables", tables, list(SCHEMAS))
    for name, schema in SCHEMAS.items():
        columns = tables.get(name)
        if columns is None:
            continue
        yield from _key_faults(name, columns, list(schema.column_names))
        if len({len(array) for array in columns.values()}) > 1:
            yield Fault(name, _("its columns are of different length."))
        for column in schema.columns:
            if column.name in columns and not _fits(columns[column.name], column):
                yield Fault(
                    f"{name}.{column.name}",
                    _("holds values of another type, or too large ones."),
                    column.dtype,
                )


def _key_faults(where: str, found: Mapping[str, Any], expected: list[str]) -> Iterator[Fault]:
    for key in expected:
        if key not in found:
            yield Fault(f"{where}.{key}", _("is missing."))
    for key in found:
        if key not in expected:
            yield Fault(
                f"{where}.{key[:40]}", _("is not known."), remedy=nearest(key[:40], expected)
            )


def _fits(array: npt.NDArray[Any], column: Column) -> bool:
    """Tell whether every value of `array` can be held by the column without change of meaning."""
    wanted = np.dtype(column.dtype)
    if not len(array):
        return True
    if wanted.kind == "U":
        return array.dtype.kind == "U" and array.dtype.itemsize <= wanted.itemsize
    if wanted.kind == "f":
        return array.dtype.kind in "iuf"
    if array.dtype.kind not in "iu":
        return False
    limits = np.iinfo(wanted)
    return bool(array.min() >= limits.min and array.max() <= limits.max)


def _fabric(content: Content) -> Fabric:
    head = content.head
    with np.errstate(over="ignore"):  # a number too large becomes infinite, which the check finds
        tables = {
            name: Table(
                schema,
                {
                    column.name: content.tables[name][column.name].astype(column.dtype)
                    for column in schema.columns
                },
            )
            for name, schema in SCHEMAS.items()
        }
    return Fabric(
        name=head["name"],
        protocol=head["protocol"],
        generation=head["generation"],
        family=head["family"],
        models=tuple(head["models"]),
        parts=tuple(head["parts"]),
        attributes=head["attributes"],
        **tables,
    )
