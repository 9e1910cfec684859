"""A YAML file as plain values with the place of each, read so that no input can do harm.

Only what a spec needs is read: mappings with text keys, lists and scalars. Anchors, aliases,
merge keys, tags and directives are refused, nesting and the number of items are limited, and
nothing recurses, so that any bytes give either a document or an `InputError` in short time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StreamMark, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.yaml_scalar import Value, plain_value
from gpufabric.model.yaml_syntax import (
    alias_fault,
    anchor_fault,
    directive_fault,
    syntax_fault,
    tag_fault,
)
from gpufabric.model.yaml_text import decode, printable, read_bytes

__all__ = [
    "MAX_DEPTH",
    "MAX_ITEMS",
    "Content",
    "Document",
    "FieldPath",
    "Item",
    "ListItem",
    "MappingItem",
    "Place",
    "RefusedItem",
    "ScalarItem",
    "path_text",
    "read_document",
    "read_yaml",
]

MAX_DEPTH = 32
"""Deepest nesting of mappings and lists."""

MAX_ITEMS = 10_000
"""Most keys, scalars, lists and mappings of one file."""

FULLWIDTH_COLON = "\N{FULLWIDTH COLON}"

Content = dict[str, "Content"] | list["Content"] | Value
FieldPath = tuple[str | int, ...]

# What the scanner raises on hostile text besides its own errors, such as for an escape beyond
# U+10FFFF or a directive with a strange version.
_SCANNER_SLIPS = (
    YAMLError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    ArithmeticError,
    AssertionError,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column of an item, both from 1."""

    line: int
    column: int


@dataclass(slots=True)
class ScalarItem:
    """One scalar as written; `is_plain` means without quotes."""

    place: Place
    text: str
    is_plain: bool

    @property
    def value(self) -> Value:
        """The value that the scalar means."""
        return plain_value(self.text) if self.is_plain else self.text


@dataclass(slots=True)
class RefusedItem:
    """An alias or tagged item: a fault was noted and its value is unknown."""

    place: Place


@dataclass(slots=True)
class ListItem:
    """One list."""

    place: Place
    items: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class MappingItem:
    """One mapping; `is_partial` where a refused part might have held any key."""

    place: Place
    values: dict[str, Item] = field(default_factory=dict)
    key_places: dict[str, Place] = field(default_factory=dict)
    is_partial: bool = False

    @classmethod
    def empty(cls) -> MappingItem:
        """Return a mapping without keys, at the start of nothing."""
        return cls(Place(1, 1))


Item = ScalarItem | RefusedItem | ListItem | MappingItem


def path_text(path: FieldPath) -> str:
    """Return a field's path as text.

    Examples
    --------
    >>> path_text(("candidates", 0, "oversubscription"))
    'candidates[0].oversubscription'
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


@dataclass(slots=True)
class Document:
    """One YAML document: its mapping, the file's name and the faults found so far.

    Parameters
    ----------
    where
        Name of the file, the start of each fault's place.
    root
        The mapping at the top.
    noted
        Place and fault of what did not stop the reading: duplicate keys, aliases, tags …
    """

    where: str
    root: MappingItem
    noted: list[tuple[Place, Fault]] = field(default_factory=list)

    @property
    def faults(self) -> list[Fault]:
        """The faults that did not stop the reading."""
        return [fault for _place, fault in self.noted]

    def content(self) -> Content:
        """Return the document as dicts, lists and scalars; refused items are left out."""
        return _content(self.root)

    def item(self, path: FieldPath) -> Item | None:
        """Return the item at `path`, or None where the file has none."""
        found: Item | None = self.root
        for part in path:
            found = _child(found, part)
        return found

    def place(self, path: FieldPath, *, of_key: bool = False) -> Place:
        """Return where `path` stands: its value or key, or else the nearest part around it."""
        parent: Item = self.root
        for depth, part in enumerate(path):
            child = _child(parent, part)
            if child is None:
                break
            if of_key and depth == len(path) - 1 and isinstance(parent, MappingItem):
                return parent.key_places[str(part)]
            parent = child
        return parent.place

    def at(self, path: FieldPath, *, of_key: bool = False) -> str:
        """Return ``file:line:column: path`` of `path`."""
        place = self.place(path, of_key=of_key)
        text = f"{self.where}:{place.line}:{place.column}"
        return f"{text}: {printable(path_text(path), 120)}" if path else text


def read_document(path: Path, where: str) -> Document:
    """Return the YAML document in the file `path`, named `where` in faults.

    Raises
    ------
    InputError
        If the file cannot be read or is not one YAML mapping.
    """
    return read_yaml(read_bytes(path, where), where)


def read_yaml(content: bytes, where: str) -> Document:
    """Return the YAML document in `content`, named `where` in faults.

    Raises
    ------
    InputError
        If `content` is not UTF-8 text with one YAML mapping in it.
    """
    text = decode(content, where)
    composer = _Composer(where)
    try:
        composer.take_all(YAML(typ="safe", pure=True).parse(text))
    except MarkedYAMLError as error:
        raise composer.stopped(syntax_fault(error, where, text.splitlines())) from error
    except _SCANNER_SLIPS as error:
        raise composer.stopped(composer.unreadable()) from error
    return composer.document()


def _child(item: Item | None, part: str | int) -> Item | None:
    if isinstance(item, MappingItem) and isinstance(part, str):
        return item.values.get(part)
    if isinstance(item, ListItem) and isinstance(part, int) and 0 <= part < len(item.items):
        return item.items[part]
    return None


def _content(item: Item) -> Content:
    """Return `item` as plain values; recursion is at most ``MAX_DEPTH`` deep."""
    if isinstance(item, ScalarItem):
        return item.value
    if isinstance(item, ListItem):
        return [_content(entry) for entry in item.items]
    if isinstance(item, MappingItem):
        return {
            key: _content(value)
            for key, value in item.values.items()
            if not isinstance(value, RefusedItem)
        }
    return None


@dataclass(slots=True)
class _Open:
    """A mapping or list that is still being read, with the key that waits for its value."""

    item: ListItem | MappingItem
    key: ScalarItem | None = None
    wants_value: bool = False


class _Composer:
    """Builds the items of one document out of the scanner's events."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.noted: list[tuple[Place, Fault]] = []
        self.open: list[_Open] = []
        self.root: Item | None = None
        self.n_documents = 0
        self.n_items = 0
        self.last = Place(1, 1)

    def take_all(self, events: Iterable[Event]) -> None:
        """Take every event in turn."""
        for event in events:
            self.last = _place_of(event.start_mark)
            if isinstance(event, DocumentStartEvent):
                self.start_document(event)
            elif isinstance(event, CollectionEndEvent):
                self.open.pop()
            elif isinstance(event, NodeEvent):
                self.take(event)

    def start_document(self, event: DocumentStartEvent) -> None:
        """Note the start of a document; only one is allowed, and no directive."""
        self.n_documents += 1
        if self.n_documents > 1:
            raise self.stopped(
                Fault(
                    self.at(self.last),
                    _("a second document (---) starts here."),
                    remedy=_("Put it in a file of its own."),
                )
            )
        if event.version is not None or event.tags:
            self.note(Place(1, 1), directive_fault(self.at(Place(1, 1))))

    def take(self, event: NodeEvent) -> None:
        """Add the scalar, list, mapping or alias that starts with `event`."""
        self.n_items += 1
        if self.n_items > MAX_ITEMS:
            raise self.stopped(
                Fault(
                    self.at(self.last),
                    _("the file has more than {limit} keys and values.").format(
                        limit=f"{MAX_ITEMS:,}"
                    ),
                    remedy=_("Check the path."),
                )
            )
        is_tagged = getattr(event, "ctag", None) is not None
        item = self.item_of(event)
        if is_tagged:
            self.note(item.place, tag_fault(self.at(item.place)))
        if not self.open:
            self.root = item
        else:
            self.put(RefusedItem(item.place) if is_tagged else item)
        if isinstance(item, ListItem | MappingItem):
            self.enter(item)

    def item_of(self, event: NodeEvent) -> Item:
        """Return the new item that `event` starts, noting what is refused about it."""
        place = self.last
        if isinstance(event, AliasEvent):
            if not self.is_merging():
                self.note(place, alias_fault(self.at(place)))
            return RefusedItem(place)
        if event.anchor is not None:
            self.note(place, anchor_fault(self.at(place)))
        if isinstance(event, ScalarEvent):
            return ScalarItem(place, str(event.value), event.style in (None, ""))
        if isinstance(event, MappingStartEvent):
            return MappingItem(place)
        return ListItem(place)

    def enter(self, item: ListItem | MappingItem) -> None:
        """Make `item` the one that takes what follows."""
        self.open.append(_Open(item))
        if len(self.open) > MAX_DEPTH:
            raise self.stopped(
                Fault(
                    self.at(item.place),
                    _("mappings and lists are nested more than {limit} deep.").format(
                        limit=MAX_DEPTH
                    ),
                )
            )

    def put(self, item: Item) -> None:
        """Add `item` to the innermost open list or mapping."""
        top = self.open[-1]
        if isinstance(top.item, ListItem):
            top.item.items.append(item)
        elif top.wants_value:
            top.wants_value = False
            top.item.is_partial |= isinstance(item, RefusedItem)
            if top.key is not None:
                if isinstance(item, ScalarItem) and item.is_plain and not item.text:
                    item.place = top.key.place  # nothing has no place of its own
                top.item.values[top.key.text] = item
        else:
            top.wants_value = True
            top.key = self.checked_key(item, top.item)

    def checked_key(self, item: Item, mapping: MappingItem) -> ScalarItem | None:
        """Return `item` if it may be a new key of `mapping`; else note why not."""
        if not isinstance(item, ScalarItem):
            mapping.is_partial = True
            if not isinstance(item, RefusedItem):
                self.note(
                    item.place,
                    Fault(
                        self.at(item.place),
                        _("a list or mapping stands where a key is wanted."),
                        remedy=_("Write a word and a colon."),
                    ),
                )
            return None
        if item.is_plain and item.text == "<<":
            mapping.is_partial = True
            self.note(
                item.place,
                Fault(
                    self.at(item.place),
                    _("a merge key (<<) is not allowed here."),
                    remedy=_("Write the keys out."),
                ),
            )
            return None
        if item.text in mapping.key_places:
            self.note(
                item.place,
                Fault(
                    self.at(item.place),
                    _('the key "{key}" stands here again; it is on line {line} already.').format(
                        key=printable(item.text), line=mapping.key_places[item.text].line
                    ),
                    remedy=_("Remove one of the two."),
                ),
            )
            return None
        mapping.key_places[item.text] = item.place
        return item

    def is_merging(self) -> bool:
        """Tell whether the value of a refused key is due."""
        return bool(self.open) and self.open[-1].wants_value and self.open[-1].key is None

    def document(self) -> Document:
        """Return the finished document; its top must be a mapping."""
        root = self.root
        if isinstance(root, MappingItem):
            return Document(self.where, root, self.noted)
        if root is None or (isinstance(root, ScalarItem) and root.is_plain and not root.text):
            fault = Fault(
                f"{self.where}:1:1",
                _("the file has no content."),
                expected=_("lines of the form key: value"),
            )
        else:
            fault = Fault(
                self.at(root.place),
                _("the file is not a mapping."),
                expected=_("lines of the form key: value"),
                remedy=_colon_remedy(root),
            )
        raise self.stopped(fault)

    def unreadable(self) -> Fault:
        """Return the fault for text that the scanner itself stumbles over."""
        return Fault(
            self.at(self.last),
            _("from here on this is not valid YAML."),
            remedy=_("Check indentation, colons, quotes and brackets."),
        )

    def note(self, place: Place, fault: Fault) -> None:
        """Keep a fault that does not stop the reading."""
        self.noted.append((place, fault))

    def stopped(self, fault: Fault) -> InputError:
        """Return the error that ends the reading with `fault`, after those found before it."""
        return InputError([*(earlier for _place, earlier in self.noted), fault])

    def at(self, place: Place) -> str:
        """Return ``file:line:column`` of `place`."""
        return f"{self.where}:{place.line}:{place.column}"


def _colon_remedy(root: Item) -> str:
    """Return what may have gone wrong with the colons of a text that is not a mapping."""
    if not isinstance(root, ScalarItem):
        return ""
    if FULLWIDTH_COLON in root.text:
        return _('Write the colon ":" of ASCII and a space after it.')
    return _("Put a space after each colon.") if ":" in root.text else ""


def _place_of(mark: StreamMark) -> Place:
    return Place(mark.line + 1, mark.column + 1)
