"""Fabric files: saved as JSON or as compact bytes, read back without loss, never half."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import writing
from gpufabric.core.text import _
from gpufabric.model import fabric_binary, fabric_json
from gpufabric.model.check import (
    GENERATIONS,
    MAX_NAME_LENGTH,
    PROTOCOLS,
    RANGES,
    SLUG_PATTERN,
    Range,
)
from gpufabric.model.fabric import FORMAT_VERSION, Fabric
from gpufabric.model.fabric_content import FORMAT, MAX_ROWS, build_fabric, damaged
from gpufabric.model.tables import SCHEMAS, Column

__all__ = ["fabric_schema", "load_fabric", "save_fabric"]

MAX_FILE_BYTES = 2**29
"""Largest file that is read; 131,072 GPUs take less than a sixth of it as JSON."""

_WRITERS = {".json": fabric_json.encode, ".fab": fabric_binary.encode}


def save_fabric(fabric: Fabric, path: Path) -> Path:
    """Write `fabric` to `path`, as JSON (``.json``) or compact bytes (``.fab``); return `path`.

    The file appears whole or not at all, and the same fabric gives the same bytes.

    Raises
    ------
    InputError
        If the suffix is another one, or the file cannot be written.
    """
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(
            Fault(
                str(path),
                _('the file name ends in "{suffix}".').format(suffix=path.suffix),
                _(".json for JSON, .fab for the compact form"),
            )
        )
    with writing(path) as file:
        writer(fabric, file)
    return path


def load_fabric(path: Path) -> Fabric:
    """Return the Fabric in the file `path`, whichever of the two forms it has.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged or cut off, does not fit together, or was
        changed after it was written.
    """
    raw = _read(path)
    where = str(path)
    try:
        if raw.startswith(fabric_binary.MAGIC):
            content = fabric_binary.decode(raw, where)
        else:
            content = fabric_json.decode(_text(raw, where), where)
        del raw
        return build_fabric(content, where)
    except RecursionError as error:
        raise damaged(where, _("values are nested too deeply.")) from error


def _text(raw: bytes, where: str) -> str:
    if not raw:
        raise damaged(where, _("the file is empty."))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(
            where,
            _("this is not a fabric file: byte {place} is not UTF-8.").format(place=error.start),
        ) from error


def _read(path: Path) -> bytes:
    """Return the bytes of a regular file of bounded size; a FIFO or device is never waited for."""
    try:
        with open(path, "rb", opener=_open_file) as file:
            size = min(os.fstat(file.fileno()).st_size, MAX_FILE_BYTES)
            raw = file.read(size + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            Fault(str(path), _("cannot be read: {reason}.").format(reason=reason))
        ) from error
    if len(raw) > MAX_FILE_BYTES:
        raise InputError(
            Fault(
                str(path),
                _("the file is larger than {size} bytes.").format(size=MAX_FILE_BYTES),
            )
        )
    return raw


def _open_file(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, _("it is not a regular file"))
    return handle


# Schema -------------------------------------------------------------------------------------


def fabric_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON form, made from the table definitions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:gpufabric:fabric:{FORMAT_VERSION}",
        "title": "gpufabric fabric",
        "description": "Hosts, NICs, switches, ports and links of one fabric, column by column. "
        "All columns of a table have as many values as its rows; indices count from 0.",
        **_object({**_head_schema(), "tables": _tables_schema()}),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _head_schema() -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH}
    slug = {"type": "string", "pattern": f"^{SLUG_PATTERN}$"}
    names = {"type": "array", "items": slug, "uniqueItems": True}
    generations = [name for names in GENERATIONS.values() for name in names]
    return {
        "format": {"const": FORMAT},
        "format_version": {"const": FORMAT_VERSION},
        "content_hash": {
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "SHA-256 of everything the fabric states; checked when read.",
        },
        "name": {**text, "description": "Name of the candidate it was built for."},
        "protocol": {"enum": list(PROTOCOLS)},
        "generation": {"enum": generations},
        "family": {**slug, "description": "Topology family."},
        "models": {**names, "description": "Catalogue names that the model columns index."},
        "parts": {
            **names,
            "description": "Catalogue names of cable parts that links.part indexes.",
        },
        "attributes": {"type": "object", "description": "Small facts about the design."},
    }


def _tables_schema() -> dict[str, Any]:
    return _object(
        {
            name: {
                "description": schema.description,
                **_object(
                    {
                        "rows": {"type": "integer", "minimum": 0, "maximum": MAX_ROWS},
                        "columns": _object(
                            {
                                column.name: _column_schema(
                                    column, RANGES[name].get(column.name, Range())
                                )
                                for column in schema.columns
                            }
                        ),
                    }
                ),
            }
            for name, schema in SCHEMAS.items()
        }
    )


def _column_schema(column: Column, allowed: Range) -> dict[str, Any]:
    dtype = np.dtype(column.dtype)
    notes = column.description
    if column.unit:
        notes += f" Unit: {column.unit}."
    if allowed.index_of:
        notes += f" Counts rows of {allowed.index_of}."
    items: dict[str, Any]
    if dtype.kind == "U":
        items = {"type": "string", "minLength": 1, "maxLength": dtype.itemsize // 4}
    else:
        items = {"type": "integer" if dtype.kind == "i" else "number", **_limits(dtype, allowed)}
        if allowed.may_be_open:
            items["type"] = ["number", "null"]
    return {"type": "array", "description": notes, "items": items}


def _limits(dtype: np.dtype[Any], allowed: Range) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if allowed.positive:
        limits["exclusiveMinimum"] = 0
    elif allowed.low is not None:
        limits["minimum"] = allowed.low
    if allowed.high is not None:
        limits["maximum"] = allowed.high
    elif dtype.kind == "i":
        limits["maximum"] = int(np.iinfo(dtype).max)
    return limits
