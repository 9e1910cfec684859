"""The parameters of a profile: their types, meanings and defaults, from the dataclasses alone."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from gpufabric.sim.packet_config import PacketConfig

__all__ = [
    "Parameter",
    "meaning_of",
    "notes_of",
    "parameters",
    "profile_schema",
    "scalar_keys",
    "schema_of",
]


@dataclass(frozen=True)
class Parameter:
    """One field of a section.

    Parameters
    ----------
    name
        Its name.
    kind
        What it holds, without None.
    may_be_none
        Whether it can be left off: ``none`` in a file.
    is_tuple
        Whether it is a list of `kind`.
    meaning
        From the docstring.
    default
        Its default; None where `is_required`.
    is_required
        Whether a new section must name it.
    """

    name: str
    kind: Any
    may_be_none: bool
    is_tuple: bool
    meaning: str
    default: Any
    is_required: bool


@cache
def parameters(section: type) -> Mapping[str, Parameter]:
    """Return the parameters of a section by name, in order."""
    hints = typing.get_type_hints(section)
    meanings = _meanings(section)
    return {
        field.name: _parameter(field, hints[field.name], meanings.get(field.name, ""))
        for field in fields(section)
    }


def _parameter(field: Field[Any], hint: Any, meaning: str) -> Parameter:
    kinds = [hint]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        kinds = list(typing.get_args(hint))
    named = [kind for kind in kinds if kind is not type(None)]
    is_tuple = typing.get_origin(named[0]) is tuple
    kind: Any = typing.get_args(named[0])[0] if is_tuple else named[0]
    if isinstance(kind, types.UnionType):
        kind = typing.get_args(kind)
    default = field.default if field.default_factory is MISSING else field.default_factory()
    is_required = default is MISSING
    return Parameter(
        field.name,
        kind if len(named) == 1 else tuple(named),
        len(named) < len(kinds),
        is_tuple,
        meaning,
        None if is_required else default,
        is_required,
    )


def meaning_of(section: type) -> str:
    """Return the first line of a section's docstring."""
    return (inspect.getdoc(section) or "").split("\n", maxsplit=1)[0]


def notes_of(section: type) -> str:
    """Return the notes of a section's docstring, where its sources stand, as one line."""
    _before, mark, after = (inspect.getdoc(section) or "").partition("Notes\n-----\n")
    return " ".join(after.split()) if mark else ""


def _meanings(section: type) -> dict[str, str]:
    """Read the section "Parameters" of a docstring; names that share a text all get it."""
    _before, _mark, after = (inspect.getdoc(section) or "").partition("Parameters\n----------\n")
    block = re.split(r"\n[^\n]+\n-----*\n", after)[0]
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in block.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        elif line.strip():
            for name in names:
                meanings[name] = f"{meanings.get(name, '')} {line.strip()}".strip()
    return meanings


def scalar_keys(section: type = PacketConfig, before: str = "") -> Iterator[str]:
    """Yield every single number, truth value or word by its dotted name: ``ecn.kmin_bytes``."""
    for name, parameter in parameters(section).items():
        if parameter.is_tuple or isinstance(parameter.kind, tuple):
            continue
        if is_dataclass(parameter.kind):
            assert isinstance(parameter.kind, type)
            yield from scalar_keys(parameter.kind, f"{before}{name}.")
        else:
            yield before + name


# JSON Schema -------------------------------------------------------------------------------------

_JSON_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema of a profile file."""
    schema = _section_schema(PacketConfig)
    schema["properties"] = {
        "profile": {"type": "string", "description": "Name of the profile."},
        "base": {
            "type": "string",
            "description": "Named profile that gives whatever this file does not name.",
            "default": "roce-default",
        },
        **schema["properties"],
    }
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Profile of the packet engine",
    }
    return {**head, **schema, "required": []}


def _section_schema(section: type) -> dict[str, Any]:
    found = parameters(section)
    return {
        "type": "object",
        "description": " ".join(filter(None, (meaning_of(section), notes_of(section)))),
        "properties": {name: schema_of(one) for name, one in found.items()},
        "required": [name for name, one in found.items() if one.is_required],
        "additionalProperties": False,
    }


def schema_of(parameter: Parameter) -> dict[str, Any]:
    """Return the JSON Schema of one parameter."""
    kinds = parameter.kind if isinstance(parameter.kind, tuple) else (parameter.kind,)
    schemas = [_kind_schema(kind) for kind in kinds]
    schema: dict[str, Any] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if parameter.is_tuple:
        schema = {"type": "array", "items": schema}
    if parameter.may_be_none:
        schema = {"anyOf": [schema, {"const": "none"}, {"type": "null"}]}
    if parameter.meaning:
        schema = {"description": parameter.meaning, **schema}
    if isinstance(parameter.default, int | float | str):
        schema["default"] = parameter.default
    return schema


def _kind_schema(kind: Any) -> dict[str, Any]:
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _section_schema(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    return {"type": _JSON_TYPES[kind]}
