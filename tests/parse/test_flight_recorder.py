"""Dumps of PyTorch's flight recorder, as FlightRecorderDetail.hpp writes them."""

from __future__ import annotations

import json
import os
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.flight_recorder import parse_flight_recorder, restricted
from gpufabric.parse.trace import COLLECTIVE, RECEIVE, SEND
from gpufabric.parse.trace_files import parse_traces


def entry(name: str, *sizes: list[int], **more: Any) -> dict[str, Any]:
    given = [list(sizes[0])] if sizes else []
    taken = [list(sizes[-1])] if sizes else []
    return {
        "record_id": 0,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": 1,
        "p2p_seq_id": 0,
        "op_id": 1,
        "profiling_name": name,
        "time_created_ns": 1724779239936775119,
        "input_sizes": given,
        "input_dtypes": ["Float"] * len(given),
        "output_sizes": taken,
        "output_dtypes": ["Float"] * len(taken),
        "state": "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": 1724779239975811724,
        "retired": True,
        "timeout_ms": 600000,
        "is_p2p": False,
        **more,
    }


DUMP = {
    "version": "2.10",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
    "pg_status": {"0": {"last_enqueued_collective": 2}},
    "entries": [
        entry("nccl:all_reduce", [3, 4], duration_ms=0.25),
        entry("nccl:_all_gather_base", [8], [32]),
        entry("nccl:send 1->3", [5], is_p2p=True),
        entry("nccl:recv 1<-0", [5], is_p2p=True),
        entry("nccl:surprise", [5]),
        entry("nccl:all_reduce_barrier", [1], state="scheduled"),
    ],
}


@pytest.mark.parametrize("write", [json.dumps, pickle.dumps], ids=["json", "pickle"])
def test_both_forms_are_read(write: Any) -> None:
    text = write(DUMP)
    data = text.encode() if isinstance(text, str) else text
    (trace,) = parse_traces({"nccl_trace_rank_1": data})
    assert (trace.rank, trace.world, trace.groups) == (1, 4, {"0": (0, 1, 2, 3)})
    reduce, gather, send, receive, barrier = trace.operations
    assert [row.kind for row in trace.operations] == [
        COLLECTIVE,
        COLLECTIVE,
        SEND,
        RECEIVE,
        COLLECTIVE,
    ]
    assert reduce.message is not None
    assert (reduce.message.input_bytes, reduce.duration_us) == (48.0, 250.0)
    assert gather.message is not None
    assert (gather.message.operation, gather.message.input_bytes) == ("all_gather", 32.0)
    assert send.message is not None
    assert receive.message is not None
    assert (send.message.peer, receive.message.peer) == (3, 0)
    assert barrier.after == (3,)
    said = " ".join(trace.notes)
    for word in ("nccl:surprise", "had not ended", "no computing"):
        assert word in said


class _Trap:
    def __reduce__(self) -> Any:
        return os.system, ("false",)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_that_would_run_something_is_refused_and_not_run(
    protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    data = pickle.dumps({"entries": [_Trap()]}, protocol)
    monkeypatch.setattr(os, "system", ran.append)
    with pytest.raises(InputError, match="not only containers") as caught:
        parse_traces({"dump.pkl": data})
    assert "byte" in caught.value.faults[0].where
    assert "json.dump" in caught.value.faults[0].remedy
    assert ran == []


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


@given(PLAIN, st.integers(2, 5))
def test_plain_contents_come_back(content: Any, protocol: int) -> None:
    assert restricted(pickle.dumps(content, protocol), "x") == content


@given(st.binary(min_size=1, max_size=60))
def test_damaged_pickles_are_refused_or_read(data: bytes) -> None:
    try:
        restricted(b"\x80\x02" + data, "x.pkl")
    except InputError as error:
        told = error.faults[0].where
    else:
        told = "x.pkl"
    assert told.startswith("x.pkl")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"entries": []}, "no collective"),
        ({"entries": [3]}, "is no mapping"),
        ({"entries": [entry("nccl:all_reduce", [3], input_dtypes=[])]}, "do not tell the tensors"),
        ({"entries": [entry("nccl:all_reduce", [2**40, 2**40])]}, "input_sizes is"),
        ({"entries": [entry("nccl:all_reduce", [3], duration_ms="x")]}, '"x" is no number'),
        ({"entries": [entry("nccl:send", [3])]}, "does not tell the other rank"),
    ],
)
def test_damaged_dumps_are_refused(content: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_flight_recorder(content, "d.json")
    assert words in str(caught.value)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    content = json.loads(json.dumps(DUMP))
    where = data.draw(st.sampled_from([content, content["pg_config"], *content["entries"]]))
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(ANYTHING)
    try:
        told = [row.where for row in parse_flight_recorder(content, "d.json").operations]
    except InputError as error:
        told = [fault.where for fault in error.faults]
    assert all(place.startswith("d.json") for place in told)
