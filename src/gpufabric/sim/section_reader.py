"""Sections of a YAML file read into the dataclasses that they stand for, noting every fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from enum import Enum
from typing import Any

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import (
    Document,
    FieldPath,
    Item,
    ListItem,
    MappingItem,
    RefusedItem,
    ScalarItem,
)
from gpufabric.sim.profile_fields import Parameter, parameters

__all__ = ["NONE", "SectionReader"]

NONE = "none"
"""Word for a parameter that is left off."""


class SectionReader:
    """Turns the items of a document into sections, noting every fault."""

    own_keys: tuple[str, ...] = ()
    """Keys beside the parameters that the document itself has."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.faults: list[tuple[int, Fault]] = [
            (place.line, fault) for place, fault in document.noted
        ]

    def note(self, path: FieldPath, what: str, expected: str = "", remedy: str = "") -> None:
        """Keep a fault of the value at `path`."""
        line = self.document.place(path).line
        self.faults.append((line, Fault(self.at(path), what, expected, remedy)))

    def at(self, path: FieldPath, *, of_key: bool = False) -> str:
        """Return where the value at `path`, or its key, is said to be."""
        return self.document.at(path, of_key=of_key)

    def placed(self, fault: Fault) -> tuple[int, Fault]:
        """Return a fault of a checked parameter with its place in the file."""
        path = _path_of(fault.where)
        return self.document.place(path).line, replace(fault, where=self.at(path))

    def section(self, item: Item, section: type, path: FieldPath, base: Any) -> Any:
        """Return a section: what `item` names over `base`, or over the defaults where None."""
        values = self.given(item, parameters(section), path, base)
        if base is not None:
            return base if values is None else replace(base, **values)
        return None if values is None else section(**values)

    def given(
        self, item: Item, found: Mapping[str, Parameter], path: FieldPath, base: Any
    ) -> dict[str, Any] | None:
        """Return what `item` names of these parameters; None where it cannot be told.

        Where there is no `base`, parameters without a default have to be there.
        """
        if isinstance(item, RefusedItem):
            return None
        if not isinstance(item, MappingItem):
            self.note(path, _("this is no section."), _("lines of the form name: value"))
            return None
        own_keys = () if path else self.own_keys
        values: dict[str, Any] = {}
        for key, entry in item.values.items():
            if key in own_keys:
                continue
            if key not in found:
                self.unknown(key, path, [*found, *own_keys])
                continue
            values[key] = self.value(entry, found[key], (*path, key), getattr(base, key, None))
        if base is not None:
            return values
        missing = [name for name, one in found.items() if one.is_required and name not in values]
        if missing:
            what = _("{names} is missing.").format(names=", ".join(missing))
            self.note(path, what)
            return None
        return values

    def unknown(self, key: str, path: FieldPath, allowed: list[str]) -> None:
        """Note a key that there is not."""
        place = self.document.place((*path, key), of_key=True)
        where = self.at((*path, key), of_key=True)
        what = _('there is no parameter "{name}".').format(name=key[:64])
        remedy = nearest(key, allowed)
        expected = "" if remedy else ", ".join(allowed)
        self.faults.append((place.line, Fault(where, what, expected, remedy)))

    def value(self, item: Item, parameter: Parameter, path: FieldPath, base: Any) -> Any:
        """Return the value of one parameter."""
        is_left_off = isinstance(item, ScalarItem) and (item.text == NONE or item.value is None)
        if is_left_off and parameter.may_be_none:
            return None
        if parameter.is_tuple:
            return self.entries(item, parameter, path)
        return self.single(item, parameter.kind, path, base)

    def entries(self, item: Item, parameter: Parameter, path: FieldPath) -> tuple[Any, ...]:
        """Return the values of a list."""
        if not isinstance(item, ListItem):
            self.note(path, _("this is no list."), _("a list"))
            return ()
        return tuple(
            self.single(entry, parameter.kind, (*path, at), None)
            for at, entry in enumerate(item.items)
        )

    def single(self, item: Item, kind: Any, path: FieldPath, base: Any) -> Any:
        """Return one section, word or number."""
        if is_dataclass(kind):
            assert isinstance(kind, type)
            return self.section(item, kind, path, base)
        if not isinstance(item, ScalarItem):
            if not isinstance(item, RefusedItem):
                self.note(path, _("a section or list stands where one value is wanted."))
            return base
        if isinstance(kind, tuple):
            number = _number(item, int)
            return item.text if number is None else number
        if issubclass(kind, Enum):
            return self.word(item, kind, path, base)
        value = _number(item, kind)
        if value is None:
            what = _('"{text}" found.').format(text=item.text[:64])
            self.note(path, what, _kind_words(kind))
            return base
        return value

    def word(self, item: ScalarItem, kind: type[Enum], path: FieldPath, base: Any) -> Any:
        """Return the one of `kind` that is meant."""
        words = [one.value for one in kind]
        if item.text in words:
            return kind(item.text)
        what = _('"{text}" found.').format(text=item.text[:64])
        self.note(path, what, ", ".join(words), nearest(item.text, words))
        return base

    def raise_all(self) -> None:
        """Raise the faults noted, if any, in the order of their lines.

        Raises
        ------
        InputError
            With all faults.
        """
        if self.faults:
            self.faults.sort(key=lambda one: one[0])
            raise InputError([fault for _line, fault in self.faults])


def _number(item: ScalarItem, kind: type) -> Any:
    """Return a value of the kind, or None if the text is none."""
    value = item.value
    if kind is str:
        return item.text
    if isinstance(value, bool) or kind is bool:
        return value if isinstance(value, bool) and kind is bool else None
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is float and isinstance(value, int):
        return float(value)
    return value if isinstance(value, kind) else None


def _kind_words(kind: type) -> str:
    return {
        int: _("a whole number"),
        float: _("a number"),
        bool: _("true or false"),
        str: _("a word"),
    }[kind]


def _path_of(where: str) -> FieldPath:
    """Return the parts of ``classes[0].ecn.pmax``."""
    parts = where.replace("[", ".[").split(".")
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in parts)
