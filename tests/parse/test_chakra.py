"""Chakra traces, written by Google's runtime and read by ours."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.chakra import parse_chakra
from gpufabric.parse.chakra_attributes import attribute_of
from gpufabric.parse.trace import COLLECTIVE, COMPUTE, HOST, MARK, MEMORY, RECEIVE, SEND
from tests.parse.chakra_messages import (
    SCALARS,
    Attribute,
    GlobalMetadata,
    Node,
    collective,
    node,
    written,
)

META = GlobalMetadata(version="0.0.4")


def parse(*nodes: Any) -> Any:
    return parse_chakra(written([META, *nodes]), "step.0.et")


def test_a_step_is_read() -> None:
    trace = parse(
        node(7, "COMP_NODE", us=120, is_cpu_op=("bool_val", False), num_ops=("int64_val", 10**12)),
        collective(3, "ALL_REDUCE", 4096, 7, pg_name=("string_val", "0")),
        node(4, "COMM_SEND_NODE", 3, comm_dst=("int32_val", 1), comm_size=("uint64_val", 64)),
        node(5, "COMM_RECV_NODE", 3, comm_src=("int32_val", 1), comm_size=("uint64_val", 64)),
        node(9, "MEM_LOAD_NODE", 3, tensor_size=("uint64_val", 2048)),
        node(1, "COMP_NODE", us=5, is_cpu_op=("bool_val", True)),
        node(2, "INVALID_NODE"),
        node(8, "CHECKPOINT_NODE", us=50),
        node(11, "COMP_NODE", comm_colour=("string_val", "red")),
    )
    kinds = [operation.kind for operation in trace.operations]
    assert kinds == [COMPUTE, COLLECTIVE, SEND, RECEIVE, MEMORY, HOST, MARK, HOST, COMPUTE]
    compute, reduce, send, receive, memory, *_rest = trace.operations
    assert (compute.duration_us, compute.flops, compute.after) == (120, 1e12, ())
    assert (reduce.message.operation, reduce.message.input_bytes) == ("all_reduce", 4096)
    assert reduce.after == (0,)
    assert (send.message.peer, receive.message.peer, send.message.input_bytes) == (1, 1, 64)
    assert memory.moved_bytes == 2048
    said = " ".join(trace.notes)
    assert "comm_colour" in said
    assert "invalid nodes" in said
    assert "CHECKPOINT_NODE" in said


def test_groups_of_pytorch_are_read() -> None:
    made = node(0, "METADATA_NODE", called="## process_group:init ##")
    made.inputs.values = '["[{\\"pg_name\\": \\"4\\", \\"ranks\\": [0, 2], \\"pg_size\\": 2}]"]'
    trace = parse(made, collective(1, "ALL_GATHER", 8, pg_name=("string_val", "4")))
    assert trace.groups == {"4": (0, 2)}
    assert trace.world == 3


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "double": st.floats(allow_nan=False),
    "float": st.floats(allow_nan=False, width=32),
    "bool": st.booleans(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "bytes": st.binary(),
    **{
        name: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for bits in (32, 64)
        for name in (f"int{bits}", f"sint{bits}", f"sfixed{bits}")
    },
    **{
        name: st.integers(0, 2**bits - 1)
        for bits in (32, 64)
        for name in (f"uint{bits}", f"fixed{bits}")
    },
}


@pytest.mark.parametrize("kind", SCALARS)
@given(data=st.data())
def test_every_kind_of_attribute_is_what_google_wrote(kind: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    made = Attribute(name="x", **{f"{kind}_val": value})
    assert attribute_of(made.SerializeToString(), "f") == ("x", value)
    values = data.draw(st.lists(VALUES[kind], max_size=5))
    made = Attribute(name="y")
    getattr(made, f"{kind}_list").values.extend(values)
    getattr(made, f"{kind}_list").SetInParent()
    assert attribute_of(made.SerializeToString(), "f") == ("y", values)


GOOD = written([META, collective(0, "ALL_REDUCE", 64), node(1, "COMP_NODE", 0, us=3)])


def refusal(data: bytes, name: str) -> InputError | None:
    try:
        parse_chakra(data, name)
    except InputError as error:
        return error
    return None


@given(st.integers(1, len(GOOD) - 1))
def test_a_cut_file_is_one_clear_error_or_ends_between_messages(at: int) -> None:
    told = refusal(GOOD[:at], "cut.0.et")
    if told is None:
        assert len(parse_chakra(GOOD[:at], "cut.0.et").operations) < 2
    else:
        assert [fault.where[:8] for fault in told.faults] == ["cut.0.et"]


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    told = refusal(data, "any.0.et")
    assert told is None or all(fault.where.startswith("any.0.et") for fault in told.faults)


def strange(number: int, kind: int) -> Any:
    made = Node(id=number)
    made.type = kind
    return made


@pytest.mark.parametrize(
    ("nodes", "where", "words"),
    [
        ((strange(1, 14),), "byte 9", "unknown type 14"),
        ((node(1, "COMP_NODE", 5),), "byte 9", "waits for node 5, which is not there"),
        ((node(1, "COMP_NODE"), node(1, "COMP_NODE")), "byte 18", "node 1 is there twice"),
        ((node(1, "COMP_NODE", us=2**63),), "byte 9", "duration_micros is 9.223e+18"),
        ((collective(1, "REDUCE", -5),), "byte 9", "comm_size is -5"),
        ((collective(1, "REDUCE", 2**60),), "byte 9", "comm_size is 1.153e+18"),
        ((node(1, "COMM_COLL_NODE"),), "byte 9", "no comm_type"),
        (
            (node(1, "COMM_COLL_NODE", comm_type=("int64_val", 0)),),
            "byte 9",
            "no comm_size",
        ),
        ((node(1, "COMM_SEND_NODE"),), "byte 9", "no comm_dst"),
        (
            (node(1, "COMM_COLL_NODE", comm_type=("int64_val", 44)),),
            "byte 9",
            "unknown kind 44",
        ),
        (
            (node(1, "COMM_COLL_NODE", comm_type=("string_val", "sum")),),
            "byte 9",
            "comm_type is no number",
        ),
    ],
)
def test_what_cannot_be_names_its_byte(nodes: tuple[Any, ...], where: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(*nodes)
    assert f"step.0.et, {where}" in caught.value.faults[0].where
    assert words in caught.value.faults[0].what


def test_another_file_is_told_as_such() -> None:
    with pytest.raises(InputError, match="no metadata"):
        parse_chakra(written([node(3, "COMP_NODE", us=4)]), "nodes.et")
    with pytest.raises(InputError, match="empty"):
        parse_chakra(b"", "nothing.et")
