from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from gpufabric.core.errors import InputError
from gpufabric.parse.trace_files import parse_traces
from tests.parse.chakra_messages import GlobalMetadata, collective, node, written


def chakra(*nodes: Any) -> bytes:
    return written([GlobalMetadata(version="0.0.4"), *nodes])


ONE = chakra(node(0, "COMP_NODE", us=1))
GROUPED = chakra(collective(0, "ALL_REDUCE", 8, pg_name=("string_val", "1")))


def test_ranks_and_groups_of_a_folder() -> None:
    files = {f"d/step.{rank}.et": GROUPED for rank in (10, 2)} | {
        f"d/step.{rank}.et": ONE for rank in (0, 1, *range(3, 10))
    }
    files["d/comm_group.json"] = json.dumps({"1": [2, 10]}).encode()
    traces = parse_traces(files)
    assert [trace.rank for trace in traces] == list(range(11))
    assert traces[2].groups == {"1": (2, 10)}


def test_one_file_stands_for_all() -> None:
    (trace,) = parse_traces({"step.3.et": ONE})
    assert trace.rank == 3


@pytest.mark.parametrize(
    ("files", "where", "words"),
    [
        ({"s.0.et": ONE, "s.2.et": ONE}, "s.0.et", "1 of 3 ranks are missing: 1"),
        ({"s.0.et": ONE, "t.0.et": ONE}, "s.0.et, t.0.et", "rank 0 is there 2 times"),
        ({"s.json": b'{"a": [1'}, "s.json:1", "is no JSON"),
        ({"s.json": b'{"nodes": [], "schema": "1.1.0"}'}, "s.json", "chakra_converter"),
        ({"s.json": b"[" * 100_000}, "s.json", "is no JSON"),
        ({"s.json.gz": gzip.compress(b"{}" * 99)[:16]}, "s.json.gz", "cannot be unpacked"),
        ({"comm_group.json": b'{"1": [0]}'}, "comm_group.json", "there is no trace"),
        ({"s.0.et": ONE[:-3], "s.1.et": ONE[:-2]}, "s.0.et, byte 8", "are left"),
    ],
)
def test_what_cannot_be_is_refused(files: dict[str, bytes], where: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_traces(files)
    assert caught.value.faults[0].where == where
    assert words in str(caught.value)


def test_all_damaged_files_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        parse_traces({"s.0.et": ONE[:-3], "s.1.et": ONE[:-2], "s.2.et": ONE})
    assert [fault.where for fault in caught.value.faults] == ["s.0.et, byte 8", "s.1.et, byte 8"]
