"""The schema of Chakra execution traces: numbers of fields, kinds of nodes, kinds of collectives.

A file holds one ``GlobalMetadata`` and then ``Node`` messages, each after its length. Numbers are
those of package ``ChakraProtoMsg``, schema 0.0.4.

Source: https://github.com/mlcommons/chakra, schema/protobuf/et_def.proto; what attributes mean:
src/feeder of the same, and https://github.com/astra-sim/astra-sim, astra-sim/workload/Workload.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "ATTRIBUTE_KINDS",
    "COLLECTIVES",
    "COLLECTIVE_NUMBERS",
    "NODE_TYPES",
    "NODE_TYPE_NUMBERS",
    "SCHEMA_VERSION",
]

SCHEMA_VERSION = "0.0.4"

META_VERSION, META_ATTRIBUTE = 1, 2
NODE_ID, NODE_NAME, NODE_TYPE, NODE_CONTROL, NODE_DATA = 1, 2, 3, 4, 5
NODE_START, NODE_DURATION, NODE_INPUTS, NODE_OUTPUTS, NODE_ATTRIBUTE, NODE_STORAGE = (
    6, 7, 8, 9, 10, 11
)  # fmt: skip
IO_VALUES = 1
ATTRIBUTE_NAME, ATTRIBUTE_DOC = 1, 2
LIST_VALUES = 1

ATTRIBUTE_KINDS: Mapping[int, str] = MappingProxyType(
    {
        3 + 2 * at: name
        for at, name in enumerate(
            (
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
            )
        )
    }
)
"""Of one value, by number of the field; the list of the same kind has the next number."""

NODE_TYPES = (
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
)
NODE_TYPE_NUMBERS: Mapping[str, int] = MappingProxyType(
    {name: at for at, name in enumerate(NODE_TYPES)}
)

COLLECTIVES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "alltoall",
    "reduce_scatter",
    "reduce_scatter",
    "barrier",
)
"""By number of ``CollectiveCommType``, as nccl-tests names them."""
COLLECTIVE_NUMBERS: Mapping[str, int] = MappingProxyType(
    {name: at for at, name in reversed(list(enumerate(COLLECTIVES)))}
)
