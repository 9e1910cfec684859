"""The faults of a spec, field by field, told with their place in the file.

Pydantic finds what is wrong with single fields; its own texts are never shown. From the place
of each of its errors, the JSON Schema says what is allowed, and the file what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from gpufabric.core.errors import Fault, nearest
from gpufabric.core.text import _
from gpufabric.model.number_hints import number_hint
from gpufabric.model.short_forms import FABRICS, GENERATIONS, TIERS
from gpufabric.model.spec_fields import FieldFault
from gpufabric.model.spec_schema import (
    Alternatives,
    Schema,
    allowed_keys,
    allowed_words,
    alternatives,
    example,
    in_words,
)
from gpufabric.model.yaml_source import (
    Document,
    FieldPath,
    Item,
    ListItem,
    MappingItem,
    RefusedItem,
    ScalarItem,
    path_text,
)
from gpufabric.model.yaml_text import printable

__all__ = ["HOST_TAGS", "MAX_FAULTS", "field_faults", "placed_faults"]

MAX_FAULTS = 100
"""Most faults of one file that are listed; the rest is counted."""

HOST_TAGS = ("<name>", "<generic>")
"""Tags of the two forms of `host`, which pydantic adds to the places of its errors."""

_TRUE_WORDS = ("yes", "y", "on", "1", "true")
_FALSE_WORDS = ("no", "n", "off", "0", "false")
_OTHER_WORDS = {
    "ib": "infiniband",
    "ethernet": "roce",
    "rocev2": "roce",
    "roce-v2": "roce",
    "roce v2": "roce",
    "clos": "fat-tree",
    "dragonfly-plus": "dragonfly+",
    "dragonfly plus": "dragonfly+",
    "dragonflyplus": "dragonfly+",
    "leaf-spine": "fat-tree",
    "rail-optimized": "rail",
    "rail-optimised": "rail",
    "train": "training",
    "infer": "inference",
    "serving": "inference",
    "rmb": "CNY",
}


def field_faults(
    error: ValidationError, document: Document, schema: Schema
) -> Iterator[FieldFault]:
    """Return the faults that `error` means in `document`, whose fields `schema` describes."""
    paths = [_model_path(problem["loc"]) for problem in error.errors(include_url=False)]
    for problem, path in zip(error.errors(include_url=False), paths, strict=True):
        kind = problem["type"]
        if kind == "incoherent":
            continue
        if kind in ("too_short", "too_long") and any(
            other[: len(path)] == path and len(other) > len(path) for other in paths
        ):
            continue  # pydantic counts only the entries that are right
        written = _written_path(path, document)
        if kind == "missing" and written == path:
            yield _missing(path, schema)
        elif kind in ("extra_forbidden", "invalid_key"):
            yield _unknown_key(path, schema)
        else:
            yield _wrong_value(written, document, schema)


def placed_faults(
    found: Iterable[FieldFault], document: Document, noted: Iterable[Fault] = ()
) -> list[Fault]:
    """Return all faults in the order of the file: those in `found`, `noted` and the document's.

    Faults of fields whose value is unknown, since an alias stood there, are left out.
    """
    placed: dict[tuple[FieldPath, str], tuple[int, int, Fault]] = {}
    for fault in found:
        path = _written_path(fault.path, document)
        if _is_unknown(path, document):
            continue
        place = document.place(path, of_key=fault.is_about_key)
        where = document.at(path, of_key=fault.is_about_key)
        told = Fault(where, fault.what, fault.expected, fault.remedy)
        placed.setdefault((path, fault.what), (place.line, place.column, told))
    rows = [(place.line, place.column, fault) for place, fault in document.noted]
    rows.extend(placed.values())
    ordered = [fault for _line, _column, fault in sorted(rows, key=lambda row: row[:2])]
    faults = [*noted, *ordered]
    if len(faults) > MAX_FAULTS:
        rest = len(faults) - MAX_FAULTS
        faults = faults[:MAX_FAULTS]
        faults.append(
            Fault(document.where, _("{count} more faults are not shown.").format(count=rest))
        )
    return faults


def _model_path(location: tuple[int | str, ...]) -> FieldPath:
    if len(location) > 1 and location[0] == "host" and location[1] in HOST_TAGS:
        return (location[0], *location[2:])
    return location


def _written_path(path: FieldPath, document: Document) -> FieldPath:
    """Return `path` of the long form as the file has it in its short form."""
    written: list[str | int] = []
    for part in path:
        item = document.item(tuple(written))
        if isinstance(item, ScalarItem):
            break
        if isinstance(item, ListItem) and part in TIERS:
            written.append(TIERS.index(str(part)))
        else:
            written.append(part)
    return tuple(written)


def _is_unknown(path: FieldPath, document: Document) -> bool:
    item: Item | None = document.root
    for depth in range(len(path)):
        parent, item = item, document.item(path[: depth + 1])
        if isinstance(item, RefusedItem):
            return True
        if item is None:
            return isinstance(parent, MappingItem) and parent.is_partial
    return False


def _missing(path: FieldPath, schema: Schema) -> FieldFault:
    instance = example(schema, path)
    remedy = ""
    if instance:
        remedy = _('Add "{key}: {value}".').format(key=path[-1], value=instance)
    return FieldFault(
        path,
        _("is missing."),
        expected=_special_expectation(path) or in_words(alternatives(schema, path)),
        remedy=remedy,
        is_about_key=True,
    )


def _unknown_key(path: FieldPath, schema: Schema) -> FieldFault:
    key = str(path[-1])
    allowed = allowed_keys(alternatives(schema, path[:-1]))
    remedy = nearest(key, allowed) if len(key) <= 64 else ""
    home = _home_of(key, schema)
    if home and key not in allowed:
        remedy = _('It belongs under "{home}".').format(home=home)
    return FieldFault(
        path,
        _("there is no such key."),
        expected=_("one of {names}").format(names=", ".join(allowed))
        if allowed
        else _special_expectation(path),
        remedy=remedy,
        is_about_key=True,
    )


def _home_of(key: str, schema: Schema) -> str:
    """Return the part of the spec that has `key`, if just one has."""
    homes = [
        path
        for path in ((), ("site",), ("workload",), ("candidates", 0), ("workload", "parallelism"))
        if key in allowed_keys(alternatives(schema, path))
    ]
    if len(homes) != 1 or not homes[0]:
        return ""
    return path_text(tuple(part for part in homes[0] if isinstance(part, str)))


def _wrong_value(path: FieldPath, document: Document, schema: Schema) -> FieldFault:
    item = document.item(path)
    found = alternatives(schema, path)
    if isinstance(item, ListItem) and any(entry.get("type") == "array" for entry in found):
        what = _("the list has {count} entries.").format(count=len(item.items))
    else:
        what = _("found {found}.").format(found=_found(item))
    return FieldFault(
        path,
        what,
        expected=_special_expectation(path) or in_words(found),
        remedy=_remedy(item, path, found),
    )


def _special_expectation(path: FieldPath) -> str:
    """Return what is allowed where the schema's own words would be clumsy."""
    if path[-1:] == ("oversubscription",) or path[-2:-1] == ("oversubscription",):
        return _("a ratio from 0.25 to 100, such as 2 or 2:1, or such ratios by tier")
    if path[-1:] == ("switch",):
        return _('the name of a switch, "best", or a mapping with leaf, spine, core')
    if path[-1:] == ("host",):
        return _("the name of a host, or a mapping with gpus, nics, nic_gbps")
    if path[:1] == ("candidates",) and len(path) == 2:
        return _("infiniband, roce, infiniband-ndr, roce:sn5600 or the like, or a mapping")
    if path[:1] == ("candidates",) and path[-1] == "name":
        return _("1 to 64 characters without slash, not starting with a dot")
    return _expected_assumption(len(path)) if path[:2] == ("cost", "assumptions") else ""


def _expected_assumption(depth: int) -> str:
    """Return what may stand under ``cost.assumptions``, in a number of it, or in its range."""
    if depth == len(("cost", "assumptions")):
        return _("a mapping of numbers of the ledger, such as energy.usd_per_kwh: 0.1")
    if depth == len(("cost", "assumptions", "energy.usd_per_kwh")):
        return _("a number, [low, mid, high], or a mapping with low, mid, high")
    return _("low, mid and high, each a number of 0 or more")


def _found(item: Item | None) -> str:
    if isinstance(item, MappingItem):
        return _("a mapping")
    if isinstance(item, ListItem):
        return _("a list")
    if not isinstance(item, ScalarItem) or (item.is_plain and item.value is None):
        return _("nothing")
    if item.is_plain and not isinstance(item.value, str):
        return printable(item.text)
    return f'"{printable(item.text)}"'


def _remedy(item: Item | None, path: FieldPath, found: Alternatives) -> str:
    if not isinstance(item, ScalarItem):
        return ""
    if item.is_plain and item.value is None:
        return _("Give a value or remove the line.")
    kinds = {entry.get("type") for entry in found}
    words = _words_at(path, found)
    remedy = ""
    if kinds & {"integer", "number"}:
        remedy = _number_remedy(item, str(path[-1]), is_whole="number" not in kinds)
    elif "boolean" in kinds:
        remedy = _truth_remedy(item)
    elif words:
        remedy = _word_remedy(item.text, words)
    elif "string" in kinds and not isinstance(item.value, str):
        remedy = _('Put it in quotes: "{text}".').format(text=printable(item.text))
    return remedy


def _number_remedy(item: ScalarItem, field: str, *, is_whole: bool) -> str:
    value = item.value
    if isinstance(value, bool) or (isinstance(value, int) and item.is_plain):
        return ""
    if isinstance(value, float) and not (is_whole and value.is_integer()):
        return ""
    return number_hint(item.text, field, is_whole=is_whole)


def _truth_remedy(item: ScalarItem) -> str:
    word = item.text.lower()
    if word in _TRUE_WORDS:
        return _("Write true, without quotes.")
    if word in _FALSE_WORDS:
        return _("Write false, without quotes.")
    return ""


def _words_at(path: FieldPath, found: Alternatives) -> list[str]:
    if path[:1] == ("candidates",) and len(path) == 2:
        return [*FABRICS, *(f"infiniband-{generation}" for generation in GENERATIONS)]
    return allowed_words(found)


def _word_remedy(text: str, words: list[str]) -> str:
    head = text[:64].partition(":")[0]
    other = _OTHER_WORDS.get(head.lower())
    if other in words:
        return _('Did you mean "{name}"?').format(name=other)
    return nearest(head, words)
