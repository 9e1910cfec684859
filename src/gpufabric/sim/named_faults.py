"""Faults of a packet run as a person writes them: a kind, a named port, times and values.

One is written ``pause-storm port=host-05[nic1] start_us=50``, or stands in a file (YAML) under
``faults``. A port is named where the fault would be seen: frames that are spoilt or too long at the
port that they come to, a storm and a slow host at the host's port, a link at either end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import (
    FieldPath,
    Item,
    ListItem,
    MappingItem,
    RefusedItem,
    ScalarItem,
    path_text,
    read_document,
    read_yaml,
)
from gpufabric.sim.packet_faults import (
    BitErrors,
    LinkDown,
    LinkFlap,
    PauseStorm,
    SlowHost,
    SlowLink,
    SmallMtu,
)
from gpufabric.sim.packet_switch_config import PortOverride
from gpufabric.sim.profile_fields import Parameter, meaning_of, parameters, schema_of
from gpufabric.sim.section_reader import SectionReader

__all__ = ["KINDS", "OVERRIDE", "NamedFault", "faults_schema", "find_faults", "overrides_of"]

OVERRIDE = "override"
KINDS: Mapping[str, type] = MappingProxyType(
    {
        "pause-storm": PauseStorm,
        "slow-host": SlowHost,
        "mtu-mismatch": SmallMtu,
        "bit-errors": BitErrors,
        "link-down": LinkDown,
        "link-flap": LinkFlap,
        "slow-link": SlowLink,
        OVERRIDE: PortOverride,
    }
)
"""What can go wrong; an override is settings that some switches or ports have otherwise."""

KIND = "fault"
"""Key that names the kind."""
PLACES = ("switches", "ports", "classes")
NEEDED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "bit-errors": ("bit_error_rate", "loss_per_packet"),
        OVERRIDE: tuple(name for name in parameters(PortOverride) if name not in PLACES),
    }
)
"""Of these kinds one of the values at least has to be there."""

FORM = "KIND port=DEVICE[PORT] NAME=VALUE …"
SUFFIXES = {".yaml", ".yml"}
LIST = "faults"
_PLAIN = re.compile(r"[-+.\w]+")
_NEXT = re.compile(r"\s+(?=\w+\s*=)")


@dataclass(frozen=True)
class NamedFault:
    """One fault, before the fabric is known.

    Parameters
    ----------
    words
        As it was asked for.
    where
        What faults in it are said to be in.
    kind
        One of ``KINDS``.
    port
        Its port, ``DEVICE[PORT]``; empty for an override.
    values
        What was given beside, by the names of the kind's parameters.
    """

    words: str
    where: str
    kind: str
    port: str
    values: tuple[tuple[str, Any], ...]

    def at(self, name: str) -> str:
        """Return where one parameter is said to be."""
        return f"{self.where}{name}"


def find_faults(asked: Sequence[str], option: str = "--fault") -> tuple[NamedFault, ...]:
    """Return the faults asked for.

    Parameters
    ----------
    asked
        Each the words of one fault, or the path of a file with several.
    option
        What faults are said to be in.

    Raises
    ------
    InputError
        If a kind, name or value is wrong; all of them are told.
    """
    found: list[NamedFault] = []
    faults: list[Fault] = []
    for words in asked:
        try:
            found.extend(_of_file(words) if _is_file(words) else [_of_words(words, option)])
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return tuple(found)


def overrides_of(named: Sequence[NamedFault]) -> tuple[PortOverride, ...]:
    """Return the settings that are wrong somewhere, as a profile has them."""
    return tuple(PortOverride(**dict(one.values)) for one in named if one.kind == OVERRIDE)


def _is_file(words: str) -> bool:
    return "=" not in words and Path(words.strip()).suffix.lower() in SUFFIXES


def _word(name: str, meaning: str) -> Parameter:
    """Return a parameter that has to be there."""
    return Parameter(
        name,
        kind=str,
        may_be_none=False,
        is_tuple=False,
        meaning=meaning,
        default=None,
        is_required=True,
    )


def _parameters_of(kind: str) -> dict[str, Parameter]:
    """Return what a fault of this kind can name."""
    own = {KIND: _word(KIND, _("What goes wrong."))}
    if kind != OVERRIDE:
        own["port"] = _word("port", _("DEVICE[PORT]: where the fault would be seen."))
    values = parameters(KINDS[kind])
    return {**own, **{name: one for name, one in values.items() if name != "channel"}}


class _Reader(SectionReader):
    """Turns mappings into faults."""

    def faults_of(self) -> list[NamedFault]:
        """Return the faults of the list that a file holds."""
        values = self.document.root.values
        for key in values:
            if key != LIST:
                self.unknown(key, (), [LIST])
        entries = values.get(LIST)
        if not isinstance(entries, ListItem) or not entries.items:
            self.note(
                (LIST,),
                _("there is no list of faults."),
                "faults: [{fault: KIND, port: DEVICE[PORT]}]",
            )
            self.raise_all()
            return []
        found = [self.fault(item, (LIST, at)) for at, item in enumerate(entries.items)]
        self.raise_all()
        return [one for one in found if one is not None]

    def fault(self, item: Item, path: FieldPath) -> NamedFault | None:
        """Return one fault; None, with what is wrong noted, where it is none."""
        kind = self.kind(item, path)
        if kind is None:
            return None
        values = self.given(item, _parameters_of(kind), path, None)
        if values is None:
            return None
        del values[KIND]
        self.check_effect(kind, values, path)
        words = " ".join([kind, *(f"{name}={_shown(value)}" for name, value in values.items())])
        port = values.pop("port", "")
        return NamedFault(words, self.prefix(path), kind, port or "", tuple(values.items()))

    def check_effect(self, kind: str, values: Mapping[str, Any], path: FieldPath) -> None:
        """Note a fault that would change nothing."""
        names = NEEDED.get(kind, ())
        if names and not any(_changes(values.get(name)) for name in names):
            self.note(path, _("it changes nothing."), ", ".join(names))

    def kind(self, item: Item, path: FieldPath) -> str | None:
        """Return the kind of a fault, if it has one that is known."""
        if isinstance(item, RefusedItem):
            return None
        if not isinstance(item, MappingItem):
            self.note(path, _("this is no fault."), "{fault: KIND, port: DEVICE[PORT]}")
            return None
        kind = item.values.get(KIND)
        if not isinstance(kind, ScalarItem):
            self.note(path, _("{names} is missing.").format(names=KIND), ", ".join(KINDS))
            return None
        if kind.text not in KINDS:
            what = _('there is no fault "{name}".').format(name=kind.text[:64])
            remedy = nearest(kind.text, list(KINDS))
            self.note((*path, KIND), what, ", ".join(KINDS), remedy)
            return None
        return kind.text

    def prefix(self, path: FieldPath) -> str:
        """Return what stands before a parameter's name where faults are told."""
        return self.document.at(path) + "."


class _WordsReader(_Reader):
    """The same for the words of an option, which have no lines."""

    def at(self, path: FieldPath, *, of_key: bool = False) -> str:  # noqa: ARG002
        """Return the option and the name in it."""
        where = self.document.where
        return f"{where}: {path_text(path)}" if path and path != (KIND,) else where

    def prefix(self, path: FieldPath) -> str:  # noqa: ARG002
        """Return what stands before a parameter's name where faults are told."""
        return self.document.where + ": "


def _of_file(words: str) -> list[NamedFault]:
    path = Path(words.strip())
    return _Reader(read_document(path, str(path))).faults_of()


def _of_words(words: str, option: str) -> NamedFault:
    kind, *parts = _NEXT.split(words.strip())
    where = f"{option} {words.strip()[:64]}"
    pairs = [tuple(side.strip() for side in part.split("=", maxsplit=1)) for part in parts]
    if "=" in kind or not kind:
        raise InputError(Fault(where, _("it does not begin with a kind."), FORM))
    names = [name for name, _value in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    empty = [name for name, value in pairs if not value]
    if twice or empty:
        whats = [_("{name} stands twice.").format(name=name) for name in twice]
        whats += [_("{name} has no value.").format(name=name) for name in empty]
        raise InputError([Fault(where, what, FORM) for what in whats])
    known = _parameters_of(kind) if kind in KINDS else {}
    flow = {KIND: json.dumps(kind, ensure_ascii=False)}
    for name, value in pairs:
        is_list = name in known and known[name].is_tuple
        flow[name] = _as_list(value) if is_list else _as_yaml(value)
    content = "{" + ", ".join(f"{name}: {value}" for name, value in flow.items()) + "}"
    document = read_yaml(content.encode("utf-8", "replace"), where)
    reader = _WordsReader(document)
    found = reader.fault(document.root, ())
    reader.raise_all()
    assert found is not None
    return replace(found, words=" ".join(words.split()))


def _as_yaml(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _as_list(text: str) -> str:
    return "[" + ", ".join(_as_yaml(part.strip()) for part in text.split(",")) + "]"


def _changes(value: Any) -> bool:
    """Tell whether a value is one: a rate of 0.0 is none, and False is."""
    return value is not None and (value != 0 or not isinstance(value, float))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(str(one) for one in value)
    return str(getattr(value, "value", value))


# JSON Schema -------------------------------------------------------------------------------------


def faults_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of faults."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Faults of a packet run",
        "type": "object",
        "properties": {LIST: {"type": "array", "items": {"oneOf": [*map(_kind_schema, KINDS)]}}},
        "required": [LIST],
        "additionalProperties": False,
    }


def _kind_schema(kind: str) -> dict[str, Any]:
    found = _parameters_of(kind)
    return {
        "type": "object",
        "description": meaning_of(KINDS[kind]),
        "properties": {
            **{name: schema_of(one) for name, one in found.items()},
            KIND: {"const": kind, "description": meaning_of(KINDS[kind])},
        },
        "required": [name for name, one in found.items() if one.is_required],
        "additionalProperties": False,
    }
