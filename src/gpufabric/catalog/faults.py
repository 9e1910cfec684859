"""What pydantic found wrong in a device file, in words and with line and column."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpufabric.core.errors import Fault, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import Document, FieldPath

__all__ = ["faults_of"]


def faults_of(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Fault]:
    """Return one fault for each thing wrong, in the order of the file.

    Parameters
    ----------
    error
        What the check of the file's content raised.
    document
        The file.
    model
        What the file was checked against.
    """
    found = [
        (_position(document, details), _fault(details, document, model))
        for details in error.errors(include_url=False, include_input=True)
    ]
    return [fault for _place, fault in sorted(found, key=lambda pair: pair[0])]


def _path(details: ErrorDetails) -> FieldPath:
    return tuple(step for step in details["loc"] if step != "[key]")


def _position(document: Document, details: ErrorDetails) -> tuple[int, int]:
    place = document.place(_path(details))
    return place.line, place.column


def _fault(details: ErrorDetails, document: Document, model: type[BaseModel]) -> Fault:
    path = _path(details)
    kind = details["type"]
    if kind == "missing":
        return _missing(path, document)
    if kind == "extra_forbidden":
        return _unknown_key(path, document, model)
    if kind == "literal_error":
        return _not_allowed(path, document, model)
    if kind == "value_error":
        return Fault(document.at(path), _rule(details))
    expected = _EXPECTED.get(kind, _as_is)(details)
    if "[key]" in details["loc"]:
        return Fault(document.at(path, of_key=True), _found(path[-1]), expected)
    return Fault(document.at(path), _found(_value_at(document, path)), expected)


def _missing(path: FieldPath, document: Document) -> Fault:
    return Fault(
        document.at(path),
        _('"{key}" is missing.').format(key=path[-1]),
        remedy=_("Add it."),
    )


def _unknown_key(path: FieldPath, document: Document, model: type[BaseModel]) -> Fault:
    owner = _model_at(model, path[:-1])
    allowed = sorted(owner.model_fields) if owner else []
    return Fault(
        document.at(path, of_key=True),
        _('unknown key "{key}".').format(key=path[-1]),
        _("one of {names}").format(names=", ".join(allowed)) if allowed else "",
        nearest(str(path[-1]), allowed),
    )


def _not_allowed(path: FieldPath, document: Document, model: type[BaseModel]) -> Fault:
    value = _value_at(document, path)
    allowed = [str(choice) for choice in _choices(_annotation_at(model, path))]
    return Fault(
        document.at(path),
        _found(value),
        _("one of {names}").format(names=", ".join(allowed)),
        nearest(str(value), allowed),
    )


def _rule(details: ErrorDetails) -> str:
    context: dict[str, Any] = details.get("ctx", {})
    return f"{context.get('error', details['msg'])}."


def _found(value: object) -> str:
    if value is None:
        return _("nothing found.")
    if isinstance(value, bool):
        return _("{value} found.").format(value=str(value).lower())
    if isinstance(value, str):
        short = value if len(value) <= 60 else value[:57] + "..."
        return _('"{value}" found.').format(value=short)
    if isinstance(value, dict):
        return _("a mapping found.")
    if isinstance(value, list):
        return _("a list found.")
    return _("{value} found.").format(value=value)


def _value_at(document: Document, path: FieldPath) -> object:
    value: Any = document.content()
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return path[-1]
    return value


def _as_is(details: ErrorDetails) -> str:
    return details["msg"]


def _pattern(details: ErrorDetails) -> str:
    last = _path(details)[-1]
    if last == "date":
        return _("a date: YYYY, YYYY-MM, YYYY-MM-DD or a span A..B")
    if last == "quarter":
        return _("a quarter such as 2027-Q1")
    return _("a slug: lower-case letters, digits, '-' and '.'")


def _limit(details: ErrorDetails, name: str) -> Any:
    return details.get("ctx", {}).get(name)


_EXPECTED: dict[str, Callable[[ErrorDetails], str]] = {
    "int_type": lambda _details: _("a whole number"),
    "int_from_float": lambda _details: _("a whole number"),
    "float_type": lambda _details: _("a number"),
    "float_parsing": lambda _details: _("a number"),
    "finite_number": lambda _details: _("a finite number"),
    "string_type": lambda _details: _("a text"),
    "bool_type": lambda _details: _("true or false"),
    "tuple_type": lambda _details: _("a list"),
    "dict_type": lambda _details: _("a mapping"),
    "model_type": lambda _details: _("a mapping"),
    "greater_than": lambda details: _("a number above {limit:g}").format(
        limit=_limit(details, "gt")
    ),
    "greater_than_equal": lambda details: _("a number not below {limit:g}").format(
        limit=_limit(details, "ge")
    ),
    "string_too_short": lambda _details: _("a text that is not empty"),
    "string_too_long": lambda details: _("at most {limit} characters").format(
        limit=_limit(details, "max_length")
    ),
    "too_short": lambda _details: _("a list that is not empty"),
    "string_pattern_mismatch": _pattern,
}


def _members(annotation: object) -> Iterator[object]:
    """Give the annotation without Annotated, and each member of a union."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _step(annotation: object, step: str | int) -> object:
    """Annotation of what lies under `step`, or None."""
    for member in _members(annotation):
        if isinstance(member, type) and issubclass(member, BaseModel):
            field = member.model_fields.get(str(step))
            return None if field is None else field.annotation
        if get_origin(member) is tuple:
            return get_args(member)[0]
        if get_origin(member) is dict:
            return get_args(member)[1]
    return None


def _annotation_at(model: type[BaseModel], path: FieldPath) -> object:
    annotation: object = model
    for step in path:
        annotation = _step(annotation, step)
    return annotation


def _model_at(model: type[BaseModel], path: FieldPath) -> type[BaseModel] | None:
    for member in _members(_annotation_at(model, path)):
        if isinstance(member, type) and issubclass(member, BaseModel):
            return member
    return None


def _choices(annotation: object) -> list[object]:
    for member in _members(annotation):
        if get_origin(member) is Literal:
            return list(get_args(member))
    return []
