"""Chakra's messages by Google's own runtime, from the schema written down a second time.

Source: https://github.com/mlcommons/chakra, schema/protobuf/et_def.proto, as of 2026.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import decoder, encoder

SCALARS = [
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
]
NODE_TYPES = [
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
    "STORAGE_NODE",
    "BATCH_NODE",
    "CHECKPOINT_NODE",
]
COLLECTIVES = [
    "ALL_REDUCE",
    "REDUCE",
    "ALL_GATHER",
    "GATHER",
    "SCATTER",
    "BROADCAST",
    "ALL_TO_ALL",
    "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK",
    "BARRIER",
]

_LABEL = descriptor_pb2.FieldDescriptorProto.Label
_TYPE = descriptor_pb2.FieldDescriptorProto.Type
_ONE = _LABEL.Value("LABEL_OPTIONAL")


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )

    def message(name: str, *fields: str) -> Any:
        made = file.message_type.add(name=name)
        for text in fields:
            repeated, kind, field, number = text.split()
            entry = made.field.add(name=field, number=int(number))
            entry.label = _LABEL.Value("LABEL_REPEATED" if repeated == "*" else "LABEL_OPTIONAL")
            form = "enum" if kind == "NodeType" else kind if kind in SCALARS else "message"
            entry.type = _TYPE.Value(f"TYPE_{form.upper()}")
            if kind not in SCALARS:
                entry.type_name = f".ChakraProtoMsg.{kind}"
        return made

    for scalar in SCALARS:
        message(f"{scalar.title()}List", f"* {scalar} values 1")
    attribute = message("AttributeProto", ". string name 1", ". string doc_string 2")
    attribute.oneof_decl.add(name="value")
    for at, scalar in enumerate(SCALARS):
        kind = _TYPE.Value(f"TYPE_{scalar.upper()}")
        attribute.field.add(
            name=f"{scalar}_val", number=3 + 2 * at, label=_ONE, type=kind, oneof_index=0
        )
        attribute.field.add(
            name=f"{scalar}_list",
            number=4 + 2 * at,
            label=_ONE,
            type=_TYPE.Value("TYPE_MESSAGE"),
            type_name=f".ChakraProtoMsg.{scalar.title()}List",
            oneof_index=0,
        )
    message("GlobalMetadata", ". string version 1", "* AttributeProto attr 2")
    message("IOInfo", ". string values 1", ". string shapes 2", ". string types 3")
    kinds = file.enum_type.add(name="NodeType")
    for number, name in enumerate(NODE_TYPES):
        kinds.value.add(name=name, number=number)
    message(
        "Node",
        ". uint64 id 1",
        ". string name 2",
        ". NodeType type 3",
        "* uint64 ctrl_deps 4",
        "* uint64 data_deps 5",
        ". uint64 start_time_micros 6",
        ". uint64 duration_micros 7",
        ". IOInfo inputs 8",
        ". IOInfo outputs 9",
        "* AttributeProto attr 10",
    )
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _of(name: str) -> Any:
    kind = _POOL.FindMessageTypeByName(f"ChakraProtoMsg.{name}")
    return message_factory.GetMessageClass(kind)


GlobalMetadata, Node, Attribute = _of("GlobalMetadata"), _of("Node"), _of("AttributeProto")


def written(messages: Iterable[Any]) -> bytes:
    """Messages, each after its length."""
    out = io.BytesIO()
    for message in messages:
        body = message.SerializeToString()
        encoder._EncodeVarint(out.write, len(body), None)  # type: ignore[attr-defined]
        out.write(body)
    return out.getvalue()


def read(data: bytes) -> Iterator[Any]:
    """Metadata, then nodes."""
    at, kind = 0, GlobalMetadata
    while at < len(data):
        size, at = decoder._DecodeVarint(data, at)  # type: ignore[attr-defined]
        message = kind()
        message.ParseFromString(data[at : at + size])
        yield message
        at, kind = at + size, Node


def node(number: int, kind: str, *after: int, **attributes: Any) -> Any:
    """A node; attributes of the kind ``name=("int64_val", 3)``."""
    made = Node(id=number, name=attributes.pop("called", f"n{number}"), type=NODE_TYPES.index(kind))
    made.duration_micros = attributes.pop("us", 0)
    made.data_deps.extend(after)
    for name, (field, value) in attributes.items():
        made.attr.append(Attribute(name=name, **{field: value}))
    return made


def collective(number: int, kind: str, size: int, *after: int, **attributes: Any) -> Any:
    """A collective of `size` bytes that each rank puts in."""
    return node(
        number,
        "COMM_COLL_NODE",
        *after,
        is_cpu_op=("bool_val", False),
        comm_type=("int64_val", COLLECTIVES.index(kind)),
        comm_size=("int64_val", size),
        **attributes,
    )
