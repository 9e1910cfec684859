"""Chakra execution traces (``.et``): one file is what one rank does, as a graph of nodes."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse import chakra_schema as schema
from gpufabric.parse.chakra_attributes import attribute_of, groups_in, text_of
from gpufabric.parse.protobuf_wire import (
    Field,
    broken,
    fields_of,
    messages_of_file,
    packed_varints,
)
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMPUTE,
    HOST,
    MARK,
    MEMORY,
    MOST_BYTES,
    MOST_OPERATIONS,
    MOST_US,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
    checked_amount,
)

__all__ = ["FORM", "parse_chakra"]

FORM = "chakra"

_USED = frozenset({
    "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "comm_priority", "pg_name",
    "is_cpu_op", "num_ops", "tensor_size", "involved_dim",
})  # fmt: skip
_HARMLESS = frozenset({
    "rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema", "kernel_backend",
    "kernel_file", "stream", "inputs", "outputs", "comm_group", "tensor_loc",
})  # fmt: skip
"""Attributes that converters write and that change no time here."""

_WORDS = 64


@dataclass
class _Node:
    """One node as read."""

    where: str
    number: int = 0
    name: str = ""
    kind: int = 0
    after: list[int] = field(default_factory=list)
    duration_us: int = 0
    inputs: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)

    def amount(self, key: str, most: float) -> float:
        """Return a number among the attributes; 0 where it is missing."""
        value = self.attributes.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            what = _("{what} is no number.").format(what=key)
            raise InputError(Fault(self.where, what, _("a number")))
        return checked_amount(value, most, self.where, key)


def parse_chakra(
    body: bytes,
    name: str,
    rank: int = 0,
    groups: Mapping[str, tuple[int, ...]] | None = None,
) -> RankTrace:
    """Return what one rank does.

    Parameters
    ----------
    body, name
        The file and its name.
    rank
        Number of the rank.
    groups
        Ranks of process groups from a file beside it; those of the trace itself are added.

    Raises
    ------
    InputError
        If the file is damaged, a node waits for one that is not there, or a number cannot be.
    """
    messages = messages_of_file(body, name)
    first = next(messages, None)
    if first is None:
        raise InputError(Fault(name, _("the file is empty."), _("a Chakra execution trace")))
    _check_metadata(body, *first, name)
    notes: Counter[str] = Counter()
    nodes: list[_Node] = []
    for begin, end in messages:
        nodes.append(_node(body, begin, end, name))
        if len(nodes) > MOST_OPERATIONS:
            what = _("more than {n} operations.").format(n=MOST_OPERATIONS)
            raise InputError(Fault(name, what))
    known = dict(groups or {})
    for item in nodes:
        if schema.NODE_TYPES[item.kind] == "METADATA_NODE" and item.inputs:
            known |= groups_in(item.inputs)
    at = _places(nodes)
    operations = tuple(_operation(item, at, notes) for item in nodes)
    world = 1 + max((max(ranks) for ranks in known.values()), default=-1)
    return RankTrace(name, FORM, rank, operations, known, world, "", notes)


def _check_metadata(body: bytes, begin: int, end: int, name: str) -> None:
    """Refuse a file whose first message is no metadata: its version is a short text."""
    for entry in fields_of(body, begin, end, name):
        is_text = isinstance(entry.value, bytes)
        if entry.number not in {schema.META_VERSION, schema.META_ATTRIBUTE} or not is_text:
            what = _("the first message is no metadata of a Chakra trace.")
            raise broken(name, entry.offset, what, _("a Chakra execution trace"))


def _node(body: bytes, begin: int, end: int, name: str) -> _Node:
    item = _Node(_("{file}, byte {at}").format(file=name, at=begin))
    for entry in fields_of(body, begin, end, name):
        reader = _FIELDS.get(entry.number)
        if reader is not None:
            reader(item, entry, name)
    if item.kind >= len(schema.NODE_TYPES):
        what = _('node {number} "{name}" is of the unknown type {kind}.').format(
            number=item.number, name=item.name[:_WORDS], kind=item.kind
        )
        expected = _("0 to {most}: {names}").format(
            most=len(schema.NODE_TYPES) - 1, names=", ".join(schema.NODE_TYPES)
        )
        raise InputError(Fault(item.where, what, expected))
    return item


def _count(entry: Field, name: str) -> int:
    if not isinstance(entry.value, int):
        what = _("field {number} of a node is no number.").format(number=entry.number)
        raise broken(name, entry.offset, what)
    return entry.value


def _read_name(item: _Node, entry: Field, name: str) -> None:
    item.name = text_of(entry, name)


def _read_number(item: _Node, entry: Field, name: str) -> None:
    item.number = _count(entry, name)


def _read_type(item: _Node, entry: Field, name: str) -> None:
    item.kind = _count(entry, name)


def _read_duration(item: _Node, entry: Field, name: str) -> None:
    item.duration_us = _count(entry, name)


def _read_after(item: _Node, entry: Field, name: str) -> None:
    if isinstance(entry.value, int):
        item.after.append(entry.value)
    else:
        item.after += packed_varints(entry.value, 0, len(entry.value), name)


def _read_inputs(item: _Node, entry: Field, name: str) -> None:
    text_of(entry, name)  # refuses what is no message
    assert isinstance(entry.value, bytes)
    for part in fields_of(entry.value, 0, len(entry.value), name):
        if part.number == schema.IO_VALUES:
            item.inputs = text_of(part, name)


def _read_attribute(item: _Node, entry: Field, name: str) -> None:
    if not isinstance(entry.value, bytes):
        what = _("field {number} of a node is no message.").format(number=entry.number)
        raise broken(name, entry.offset, what)
    try:
        title, value = _known_attribute(entry.value)
    except InputError:  # once more, to say where it is
        title, value = attribute_of(entry.value, f"{name} + {entry.offset}")
    item.attributes[title] = value


@functools.lru_cache(maxsize=65536)
def _known_attribute(body: bytes) -> tuple[str, Any]:
    """Name and value of an attribute; most are the same in thousands of nodes."""
    return attribute_of(body, "")


_FIELDS: Mapping[int, Callable[[_Node, Field, str], None]] = {
    schema.NODE_ID: _read_number,
    schema.NODE_NAME: _read_name,
    schema.NODE_TYPE: _read_type,
    schema.NODE_CONTROL: _read_after,
    schema.NODE_DATA: _read_after,
    schema.NODE_DURATION: _read_duration,
    schema.NODE_INPUTS: _read_inputs,
    schema.NODE_ATTRIBUTE: _read_attribute,
}


def _places(nodes: list[_Node]) -> dict[int, int]:
    """Place of each node by its number.

    Raises
    ------
    InputError
        If two have the same number, or one waits for a node that is not there.
    """
    at: dict[int, int] = {}
    faults = []
    for place, item in enumerate(nodes):
        if at.setdefault(item.number, place) != place:
            what = _("node {number} is there twice.").format(number=item.number)
            faults.append(Fault(item.where, what, _("each number once")))
    for item in nodes:
        for number in item.after:
            if number not in at:
                what = _('node {number} "{name}" waits for node {missing}, which is not there.')
                what = what.format(number=item.number, name=item.name[:_WORDS], missing=number)
                faults.append(Fault(item.where, what, remedy=_("Write the whole trace again.")))
    if faults:
        raise InputError(faults[:20])
    return at


def _operation(item: _Node, at: Mapping[int, int], notes: Counter[str]) -> TraceOperation:
    for key in item.attributes:
        if key not in _USED and key not in _HARMLESS:
            notes[_('attribute "{name}" not used').format(name=key[:_WORDS])] += 1
    duration_us = checked_amount(item.duration_us, MOST_US, item.where, "duration_micros")
    kind, message = _kind(item, notes)
    queue = {COMPUTE: "gpu", MEMORY: "memory", HOST: "cpu"}.get(kind, "")
    return TraceOperation(
        item.where,
        item.name,
        kind,
        0.0 if kind == MARK else duration_us,
        tuple(dict.fromkeys(at[number] for number in item.after)),
        message,
        item.amount("num_ops", 1e24) if kind == COMPUTE else 0.0,
        item.amount("tensor_size", MOST_BYTES) if kind in {COMPUTE, MEMORY} else 0.0,
        queue,
    )


def _kind(item: _Node, notes: Counter[str]) -> tuple[str, Message | None]:
    """What a node is here, and what it sends."""
    name = schema.NODE_TYPES[item.kind]
    on_cpu = bool(item.attributes.get("is_cpu_op", False))
    if name.startswith("COMM"):
        if on_cpu:
            notes[_("communication on the CPU taken as work of the host")] += 1
            return HOST, None
        return _sent(item, name, notes)
    if name == "COMP_NODE":
        return (HOST, None) if on_cpu else (COMPUTE, None)
    if name in {"MEM_LOAD_NODE", "MEM_STORE_NODE"}:
        return MEMORY, None
    if name in {"METADATA_NODE", "INVALID_NODE"}:
        if name == "INVALID_NODE":
            notes[_("invalid nodes, taken as no work")] += 1
        return MARK, None
    notes[_("{kind}: its measured time is kept").format(kind=name)] += 1
    return HOST, None


def _sent(item: _Node, name: str, notes: Counter[str]) -> tuple[str, Message]:
    group = str(item.attributes.get("pg_name", "") or "")
    if name != "COMM_COLL_NODE":
        key = "comm_dst" if name == "COMM_SEND_NODE" else "comm_src"
        _check_there(item, key, _("the other rank"))
        peer, tag = int(item.amount(key, 2**31)), int(item.amount("comm_tag", 2**63))
        kind = SEND if name == "COMM_SEND_NODE" else RECEIVE
        return kind, Message("sendrecv", _size(item), "", peer, tag)
    _check_there(item, "comm_type", _("the kind of collective"))
    number = item.amount("comm_type", 2**63)
    if number >= len(schema.COLLECTIVES):
        what = _("node {number} is a collective of the unknown kind {kind}.").format(
            number=item.number, kind=int(number)
        )
        raise InputError(Fault(item.where, what, ", ".join(schema.COLLECTIVES)))
    dims = item.attributes.get("involved_dim")
    if not group and isinstance(dims, list) and not all(dims):
        notes[_("involved_dim without pg_name: taken as a collective of all ranks")] += 1
    operation = schema.COLLECTIVES[int(number)]
    size_bytes = 0.0 if operation == "barrier" else _size(item)
    return COLLECTIVE, Message(operation, size_bytes, group)


def _size(item: _Node) -> float:
    _check_there(item, "comm_size", _("the bytes that a rank puts in"))
    return item.amount("comm_size", MOST_BYTES)


def _check_there(item: _Node, key: str, expected: str) -> None:
    if key not in item.attributes:
        what = _("node {number} has no {key}.").format(number=item.number, key=key)
        raise InputError(Fault(item.where, what, expected))
