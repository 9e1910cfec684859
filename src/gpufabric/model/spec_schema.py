"""What a place in a spec may hold, read from the JSON Schema and told in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpufabric.core.text import _
from gpufabric.model.yaml_source import FieldPath

__all__ = [
    "Alternatives",
    "Schema",
    "allowed_keys",
    "allowed_words",
    "alternatives",
    "example",
    "in_words",
]

Schema = Mapping[str, Any]
Alternatives = list[Schema]


def alternatives(schema: Schema, path: FieldPath) -> Alternatives:
    """Return the schemas of which one must hold at `path`; none where the path is unknown."""
    found = list(_flat(schema, schema))
    for part in path:
        found = [
            leaf
            for entry in found
            for child in _children(entry, part)
            for leaf in _flat(child, schema)
        ]
    return found


def allowed_keys(found: Alternatives) -> list[str]:
    """Return the keys that a mapping may have here."""
    return [key for entry in found for key in entry.get("properties", {})]


def allowed_words(found: Alternatives) -> list[str]:
    """Return the words of which one may stand here."""
    return [word for entry in found for word in entry.get("enum", []) if isinstance(word, str)]


def example(schema: Schema, path: FieldPath) -> str:
    """Return an example of the value at `path` as a file would have it, or an empty string."""
    for parent in alternatives(schema, path[:-1]):
        for child in _children(parent, path[-1]):
            for value in child.get("examples", [])[:1]:
                if isinstance(value, list):
                    return "[" + ", ".join(str(entry) for entry in value) + "]"
                return str(value)
    return ""


def in_words(found: Alternatives) -> str:
    """Return what may stand here, such as "a whole number from 1 to 8"."""
    told = (_one_in_words(entry) for entry in found)
    return _(" or ").join(dict.fromkeys(text for text in told if text))


def _flat(schema: Schema, root: Schema) -> Iterator[Schema]:
    """Return `schema` with references followed and choices laid side by side."""
    if "$ref" in schema:
        yield from _flat(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root)
        return
    choices = schema.get("anyOf", []) + schema.get("oneOf", [])
    if "properties" in schema or not choices:
        yield schema
        return
    for choice in choices:
        yield from _flat(choice, root)


def _children(schema: Schema, part: str | int) -> Iterator[Schema]:
    if isinstance(part, int):
        if "items" in schema:
            yield schema["items"]
    elif part in schema.get("properties", {}):
        yield schema["properties"][part]


def _one_in_words(schema: Schema) -> str:
    if "enum" in schema:
        return _("one of {names}").format(names=", ".join(str(word) for word in schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    tell = _BY_TYPE.get(schema.get("type", ""))
    return tell(schema) if tell is not None else ""


def _truth_in_words(_schema: Schema) -> str:
    return _("true or false")


def _list_in_words(schema: Schema) -> str:
    return _("a list of {low} to {high} entries").format(
        low=schema.get("minItems", 0), high=schema.get("maxItems", 0)
    )


def _mapping_in_words(schema: Schema) -> str:
    return _("a mapping with {keys}").format(keys=", ".join(schema.get("properties", {})))


def _number_in_words(schema: Schema) -> str:
    low, high = f"{schema['minimum']:,.12g}", f"{schema['maximum']:,.12g}"
    if schema["type"] == "integer":
        return _("a whole number from {low} to {high}").format(low=low, high=high)
    return _("a number from {low} to {high}").format(low=low, high=high)


def _text_in_words(schema: Schema) -> str:
    if "maxLength" not in schema:
        return _("text")
    return _("text of {low} to {high} characters on one line").format(
        low=schema["minLength"], high=schema["maxLength"]
    )


_BY_TYPE: Mapping[str, Callable[[Schema], str]] = {
    "boolean": _truth_in_words,
    "integer": _number_in_words,
    "number": _number_in_words,
    "string": _text_in_words,
    "array": _list_in_words,
    "object": _mapping_in_words,
}
