"""Traces as Chakra execution traces: one ``.et`` a rank, and the ranks of groups beside them.

ASTRA-sim reads ``NAME.RANK.et`` and ``comm_group.json``: groups by number from 1; a collective
without ``pg_name`` is one of all ranks. It keeps one collective of a rank going at a time.

Source: https://github.com/astra-sim/astra-sim, astra-sim/workload/Workload.cc;
https://github.com/mlcommons/chakra, src/generator/generator.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse import chakra_schema as schema
from gpufabric.parse.protobuf_wire import delimited, length_field, varint_field
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMMUNICATION,
    COMPUTE,
    HOST,
    MARK,
    MEMORY,
    RECEIVE,
    SEND,
    RankTrace,
    TraceOperation,
)

__all__ = ["GROUP_FILE", "chakra_bytes", "chakra_files"]

GROUP_FILE = "comm_group.json"

_NODE_TYPES = {
    COMPUTE: "COMP_NODE",
    HOST: "COMP_NODE",
    MEMORY: "MEM_LOAD_NODE",
    MARK: "METADATA_NODE",
    COLLECTIVE: "COMM_COLL_NODE",
    SEND: "COMM_SEND_NODE",
    RECEIVE: "COMM_RECV_NODE",
}
_BOOL, _INT32, _INT64, _UINT64, _STRING = (
    next(number for number, kind in schema.ATTRIBUTE_KINDS.items() if kind == name)
    for name in ("bool", "int32", "int64", "uint64", "string")
)


def chakra_files(traces: Iterable[RankTrace], name: str) -> dict[str, bytes]:
    """Return the files of a job by name: ``NAME.RANK.et``, and the ranks of its groups.

    Raises
    ------
    InputError
        If an operation cannot be written.
    """
    kept = list(traces)
    numbers = _group_numbers(kept)
    files = {
        f"{name}.{trace.rank}.et": chakra_bytes(trace, {key: numbers[trace.groups[key]]
                                                        for key in trace.groups})
        for trace in kept
    }  # fmt: skip
    table = {str(number): list(ranks) for ranks, number in numbers.items()}
    files[GROUP_FILE] = (json.dumps(table, indent=1) + "\n").encode()
    return files


def _group_numbers(traces: Sequence[RankTrace]) -> dict[tuple[int, ...], int]:
    """Numbers of all groups from 1, in the order of their ranks."""
    groups = {ranks for trace in traces for ranks in trace.groups.values()}
    return {ranks: number for number, ranks in enumerate(sorted(groups), 1)}


def chakra_bytes(trace: RankTrace, numbers: Mapping[str, int]) -> bytes:
    """Return what one rank does as a file.

    Parameters
    ----------
    trace
        The rank.
    numbers
        Number of each group that it names.

    Raises
    ------
    InputError
        If a group has no number, or communication has no message.
    """
    version = length_field(schema.META_VERSION, schema.SCHEMA_VERSION)
    parts = [delimited(version)]
    parts += [
        delimited(_node(place, operation, numbers))
        for place, operation in enumerate(trace.operations)
    ]
    return b"".join(parts)


def _node(place: int, operation: TraceOperation, numbers: Mapping[str, int]) -> bytes:
    kind = schema.NODE_TYPE_NUMBERS[_NODE_TYPES[operation.kind]]
    duration_us = round(operation.duration_us + operation.lead_us)
    fields = [
        varint_field(schema.NODE_ID, place),
        length_field(schema.NODE_NAME, operation.name),
        varint_field(schema.NODE_TYPE, kind),
    ]
    if operation.after:
        after = b"".join(_bare(before) for before in operation.after)
        fields.append(length_field(schema.NODE_DATA, after))
    if duration_us:
        fields.append(varint_field(schema.NODE_DURATION, duration_us))
    fields += [
        length_field(schema.NODE_ATTRIBUTE, attribute)
        for attribute in _attributes(operation, numbers)
    ]
    return b"".join(fields)


def _bare(value: int) -> bytes:
    """A number without its key, as packed lists hold it."""
    return varint_field(1, value)[1:]


def _attributes(operation: TraceOperation, numbers: Mapping[str, int]) -> list[bytes]:
    found = {"is_cpu_op": varint_field(_BOOL, operation.kind == HOST)}
    if operation.kind == COMPUTE and operation.flops:
        found["num_ops"] = varint_field(_INT64, round(operation.flops))
    if operation.moved_bytes:
        found["tensor_size"] = varint_field(_UINT64, round(operation.moved_bytes))
    if operation.kind in COMMUNICATION:
        found |= _sent(operation, numbers)
    return [_attribute(name, value) for name, value in found.items()]


def _sent(operation: TraceOperation, numbers: Mapping[str, int]) -> dict[str, bytes]:
    message = operation.message
    if message is None:
        what = _('"{name}" has no message.').format(name=operation.name[:64])
        raise InputError(Fault(operation.where, what))
    found = {"comm_size": varint_field(_INT64, round(message.input_bytes))}
    if operation.kind == COLLECTIVE:
        number = schema.COLLECTIVE_NUMBERS[message.operation]
        found["comm_type"] = varint_field(_INT64, number)
        if message.group:
            found["pg_name"] = length_field(_STRING, str(numbers[message.group]))
        return found
    key = "comm_dst" if operation.kind == SEND else "comm_src"
    found[key] = varint_field(_INT32, message.peer)
    found["comm_tag"] = varint_field(_INT32, message.tag)
    return found


def _attribute(name: str, value: bytes) -> bytes:
    return length_field(schema.ATTRIBUTE_NAME, name) + value
