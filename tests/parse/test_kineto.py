"""PyTorch profiles, as libkineto writes them: fields and values of its output_json.cpp."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.kineto import parse_kineto
from gpufabric.parse.trace import COLLECTIVE, COMPUTE, HOST, RECEIVE, SEND
from gpufabric.parse.trace_files import parse_traces


def kernel(name: str, ts: float, dur: float, stream: int = 7, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": ts,
        "dur": dur,
        "args": {"stream": stream, "device": 0, **args},
    }


def nccl(name: str, ts: float, dur: float, elements: tuple[int, int], **more: Any) -> Any:
    args = {
        "Collective name": name,
        "In msg nelems": elements[0],
        "Out msg nelems": elements[1],
        "Group size": 4,
        "dtype": "BFloat16",
        "Process Group Name": "2",
        "Process Group Description": "dp",
        "Process Group Ranks": "[0, 2, 4, 6]",
        **more,
    }
    return kernel("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", ts, dur, 20, **args)


def profile(*events: Any) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85e9}],
        "distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 8},
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0.0, "args": {}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 0, "dur": 5},
            *events,
        ],
        "traceName": "trace.json",
    }


EVENTS = (
    kernel("sm90_xmma_gemm_bf16", 100, 50),
    nccl("_allgather_base", 150, 40, (1000, 4000)),
    kernel("elementwise_kernel", 155, 20),
    kernel("flash_fwd_kernel", 195, 30),
    nccl("_reduce_scatter_base", 230, 60, (4000, 1000)),
    kernel("Memcpy", 300, 4) | {"cat": "gpu_memcpy"},
)


def test_kernels_and_messages_are_read() -> None:
    trace = parse_kineto(profile(*EVENTS), "trace.json")
    assert (trace.rank, trace.world, trace.gpu) == (2, 8, "NVIDIA H100 80GB HBM3")
    assert [row.kind for row in trace.operations] == [
        COMPUTE,
        COLLECTIVE,
        COMPUTE,
        COMPUTE,
        COLLECTIVE,
        HOST,
    ]
    messages = [row.message for row in trace.operations if row.message]
    assert [(m.operation, m.input_bytes, m.group) for m in messages] == [
        ("all_gather", 2000.0, "2"),
        ("reduce_scatter", 8000.0, "2"),
    ]
    assert trace.groups["2"] == (0, 2, 4, 6)
    assert "copies" in " ".join(trace.notes)


def test_the_order_between_streams_is_read_from_the_times() -> None:
    gemm, gather, element, flash, scatter, _copy = parse_kineto(
        profile(*EVENTS), "t.json"
    ).operations
    assert (gemm.after, gemm.lead_us) == ((), 0.0)
    assert (gather.after, gather.lead_us) == ((0,), 0.0)  # began when the product ended
    assert (element.after, element.lead_us) == ((0,), 5.0)  # while the gather went on
    assert (set(flash.after), flash.lead_us) == ({2, 1}, 5.0)  # 195 - 190
    assert set(scatter.after) == {1, 3}


def test_sends_name_the_other_rank() -> None:
    trace = parse_kineto(
        profile(
            nccl("send", 0, 5, (8, 8), **{"Dst Rank": 3}),
            nccl("recv", 6, 5, (8, 8), **{"Src Rank": 1}),
        ),
        "t.json",
    )
    assert [(row.kind, row.message.peer) for row in trace.operations if row.message] == [
        (SEND, 6),
        (RECEIVE, 2),
    ]


def test_what_is_not_understood_is_said() -> None:
    trace = parse_kineto(
        profile(
            *EVENTS,
            nccl("coalesced", 400, 9, (1, 1)),
            kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 420, 9, 20),
            {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "ts": 1, "dur": 0},
        ),
        "t.json",
    )
    said = " ".join(trace.notes)
    for word in ('"coalesced" unknown', "without their message", "cuda_sync", "from the times"):
        assert word in said
    assert [row.kind for row in trace.operations[-2:]] == [COLLECTIVE] * 2
    assert [row.message for row in trace.operations[-2:]] == [None, None]


def test_packed_profiles_are_read() -> None:
    (trace,) = parse_traces({"trace.json.gz": gzip.compress(json.dumps(profile(*EVENTS)).encode())})
    assert len(trace.operations) == 6


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"traceEvents": 3}, "is no list"),
        (profile(), "no event is on a GPU"),
        (profile(kernel("k", 0, -4)), "dur is -4"),
        (profile(kernel("k", 0, 1e300)), "dur is 1e"),
        (profile(kernel("k", 0, float("nan"))), "is no time"),
        (profile(nccl("allreduce", 0, 1, (4, 4), dtype="Quad")), 'type "Quad" is unknown'),
        (profile(nccl("allreduce", 0, 1, (2**60, 4))), "the message is"),
    ],
)
def test_damaged_profiles_are_refused(content: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_kineto(content, "t.json")
    assert words in str(caught.value)
    assert caught.value.faults[0].where.startswith("t.json")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    content = json.loads(json.dumps(profile(*EVENTS, nccl("send", 0, 5, (8, 8)))))
    event = data.draw(st.sampled_from(content["traceEvents"]))
    where = data.draw(st.sampled_from([content, event, event.get("args") or event]))
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(ANYTHING)
    try:
        told = [row.where for row in parse_kineto(content, "t.json").operations]
    except InputError as error:
        told = [fault.where for fault in error.faults]
    assert all(place.startswith("t.json") for place in told)
