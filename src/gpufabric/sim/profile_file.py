"""Profiles in YAML: read with all faults and their places, written with what each number means."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.model.yaml_source import (
    Document,
    FieldPath,
    Item,
    MappingItem,
    ScalarItem,
    read_document,
    read_yaml,
)
from gpufabric.sim.packet_checks import config_faults
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.profile import CATALOG, CATALOG_FIELDS, PROFILES, Profile
from gpufabric.sim.profile_fields import Parameter, meaning_of, notes_of, parameters
from gpufabric.sim.section_reader import NONE, SectionReader

__all__ = ["find_profile", "profile_text", "read_profile", "with_value"]

SUFFIXES = {".yaml", ".yml"}
BASE = "roce-default"
OWN_KEYS = ("profile", "base")
WIDTH = 100


def find_profile(text: str, where: str = "--profile") -> Profile:
    """Return the profile of a name, or that in a file.

    Raises
    ------
    InputError
        If there is none, or the file is wrong; all faults are told.
    """
    if text in PROFILES:
        return PROFILES[text]()
    path = Path(text)
    if path.suffix.lower() in SUFFIXES:
        return read_profile(path)
    what = _('there is no profile "{name}".').format(name=text[:64])
    expected = ", ".join(PROFILES) + _(", or a file (.yaml)")
    raise InputError(Fault(where, what, expected, nearest(text, list(PROFILES))))


def read_profile(path: Path) -> Profile:
    """Return the profile in a file.

    Raises
    ------
    InputError
        With all faults, each with its line.
    """
    document = read_document(path, str(path))
    reader = _Reader(document)
    name, base = reader.head(path.stem)
    return reader.profile(name, base)


def with_value(profile: Profile, key: str, text: str, where: str) -> Profile:
    """Return the profile with one parameter set from a text, as a file would set it.

    Parameters
    ----------
    profile
        The profile.
    key
        Dotted name of the parameter, such as ``ecn.kmin_bytes``.
    text
        Its value.
    where
        What faults are said to be in.

    Raises
    ------
    InputError
        If the value does not fit.
    """
    *sections, last = key.split(".")
    content = "{" + "".join(f"{section}: {{" for section in sections)
    content += f"{last}: {text}" + "}" * (len(sections) + 1)
    try:
        changed = _Reader(read_yaml(content.encode(), where)).profile(profile.name, profile)
    except InputError as error:
        raise InputError(
            [Fault(where, fault.what, fault.expected, fault.remedy) for fault in error.faults]
        ) from error
    return changed


class _Reader(SectionReader):
    """Turns the items of a document into a profile, noting every fault."""

    own_keys = OWN_KEYS

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.from_catalog: list[str] = []

    def head(self, stem: str) -> tuple[str, Profile]:
        """Return name and base of the profile."""
        values = self.document.root.values
        name, base = stem, BASE
        for key in OWN_KEYS:
            item = values.get(key)
            if item is None:
                continue
            if not isinstance(item, ScalarItem) or not item.text:
                self.note((key,), _("this is no name."), _("a word"))
            elif key == "profile":
                name = item.text
            else:
                base = item.text
        if base not in PROFILES:
            what = _('there is no profile "{name}".').format(name=base[:64])
            self.note(("base",), what, ", ".join(PROFILES), nearest(base, list(PROFILES)))
            base = BASE
        return name, PROFILES[base]()

    def profile(self, name: str, base: Profile) -> Profile:
        """Return the profile; raise with all faults."""
        given = set(_leaves(self.document.root))
        config = self.section(self.document.root, PacketConfig, (), base.config)
        if not self.faults:
            for fault in (*config_faults(config), *_unused_faults(config)):
                self.faults.append(self.placed(fault))
        self.raise_all()
        kept = [one for one in base.from_catalog if one not in given or one in self.from_catalog]
        chosen = {*kept, *self.from_catalog}
        return Profile(name, config, tuple(one for one in CATALOG_FIELDS if one in chosen))

    def value(self, item: Item, parameter: Parameter, path: FieldPath, base: Any) -> Any:
        """Return the value of one parameter; the base's where the catalogue decides."""
        dotted = ".".join(str(part) for part in path)
        if isinstance(item, ScalarItem) and item.text == CATALOG and dotted in CATALOG_FIELDS:
            self.from_catalog.append(dotted)
            return base
        return super().value(item, parameter, path, base)


def _unused_faults(config: PacketConfig) -> Iterator[Fault]:
    """Note what would change nothing beside the others."""
    if config.credits is not None and config.ecn is not None:
        yield Fault("ecn", _("with credits."), _("none; fecn is what marks there"))


def _leaves(item: MappingItem, before: str = "") -> Iterator[str]:
    for key, entry in item.values.items():
        if isinstance(entry, MappingItem):
            yield from _leaves(entry, f"{before}{key}.")
        else:
            yield before + key


# Writing -----------------------------------------------------------------------------------------


def profile_text(profile: Profile, remarks: tuple[str, ...] = ()) -> str:
    """Return a profile as a file with every parameter, its meaning and its source.

    Parameters
    ----------
    profile
        The profile.
    remarks
        Lines for the head of the file.
    """
    told = (*remarks, *profile.remarks)
    lines = [line for remark in told for line in _comment(remark, 0)]
    lines += [f"profile: {profile.name}", f"base: {_base_of(profile)}", ""]
    lines += _comment(" ".join(filter(None, (meaning_of(PacketConfig), notes_of(PacketConfig)))), 0)
    lines += _section_lines(profile.config, 0, profile, "")
    return "\n".join(lines) + "\n"


def _base_of(profile: Profile) -> str:
    """Return the named profile that gives what is left to the catalogue and unknown there."""
    return BASE if profile.config.credits is None else "infiniband-default"


def _section_lines(values: Any, depth: int, profile: Profile, before: str) -> list[str]:
    """Return the lines of a section: its own parameters first, then the sections in it."""
    lines: list[str] = []
    section: type = type(values)
    found = parameters(section)
    told = ""
    for field in sorted(fields(values), key=lambda one: is_dataclass(getattr(values, one.name))):
        value, indent = getattr(values, field.name), "  " * depth
        if is_dataclass(value):
            meaning = " ".join((meaning_of(type(value)), notes_of(type(value))))
            lines += ["", *_comment(meaning, depth), f"{indent}{field.name}:"]
            lines += _section_lines(value, depth + 1, profile, f"{before}{field.name}.")
            continue
        if found[field.name].meaning != told:
            told = found[field.name].meaning
            lines += _comment(told, depth)
        if before + field.name in profile.from_catalog:
            assumed = _("where the catalogue knows none: {value}").format(value=value)
            lines.append(f"{indent}{field.name}: {CATALOG}  # {assumed}")
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            lines.append(f"{indent}{field.name}:")
            lines += [f"{indent}  - {_flow(entry)}" for entry in value]
        else:
            lines.append(f"{indent}{field.name}: {_scalar(value)}")
    return lines


def _comment(text: str, depth: int) -> list[str]:
    before = "  " * depth + "# "
    plain = text.replace("``", "")
    return textwrap.wrap(plain, WIDTH, initial_indent=before, subsequent_indent=before)


def _flow(value: Any) -> str:
    """Return a section on one line, without what is at its default."""
    section: type = type(value)
    found = parameters(section)
    parts = [
        f"{name}: {_scalar(getattr(value, name))}"
        for name, one in found.items()
        if one.is_required or getattr(value, name) != one.default
    ]
    return "{" + ", ".join(parts) + "}"


def _scalar(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_entry(one) for one in value) + "]"
    if is_dataclass(value):
        return _flow(value)
    return repr(value) if isinstance(value, float) else str(value)


def _entry(value: Any) -> str:
    """Return one value of a list; names of ports have brackets, which mean a list."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _scalar(value)
