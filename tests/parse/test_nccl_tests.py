"""Outputs of nccl-tests and its kin, in every form; damage gives line and reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.parse.nccl_tests import parse_nccl_tests

NEW = """\
$ mpirun -np 16 ./build/all_reduce_perf -b 1M -e 4M -f 2 -g 1
# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   5001 on    host-a device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   5002 on    host-b device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#
#                                                   out-of-place                       in-place
#   size     count    type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#    (B) (elements)                            (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
host-a:5001:5099 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] via NET/IB/0/GDRDMA
 1048576   262144   float     sum      -1    52.40   20.01   20.01      0    51.00   20.56   20.56      0
 2097152   524288   float     sum      -1    85.20   24.61   24.61      0    84.10   24.94   24.94      0
 4194304  1048576   float     sum      -1   144.00   29.13   29.13      0   143.00   29.33   29.33    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 24.7625
#
"""  # noqa: E501

OLD = """\
#                                             out-of-place                    in-place
#       size    count   type   time   algbw   busbw  error     time   algbw   busbw  error
       65536    16384   half  40.10    1.63    1.53  0e+00    39.90    1.64    1.54  0e+00
"""

TABLE = """\
The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|   64KiB |   2.25GBps |   1.50GBps |
|    1GiB | 300.00GBps | 200.00GBps |
"""

JSON = {
    "nccl_version": 22703,
    "args": ["./all_gather_perf", "-J", "out.json"],
    "config": {
        "iterations": 20,
        "devices": [{"rank": 0, "hostname": "a", "device": 0, "device_info": "NVIDIA B200"}],
    },
    "results": [
        {
            "size": 1048576,
            "type": "float",
            "out_of_place": {"time": 50.0, "alg_bw": 20.97, "bus_bw": 18.35, "nwrong": 0},
            "in_place": {"time": 49.0, "alg_bw": 21.4, "bus_bw": 18.72, "nwrong": None},
        }
    ],
    "out_of_bounds": {"count": 0, "okay": True},
    "average_bus_bandwidth": {"bandwidth": 18.5, "okay": "unchecked"},
}


def fault_places(text: str) -> list[str]:
    """Where an InputError points; empty where the text is read."""
    try:
        parse_nccl_tests(text, "out.txt")
    except InputError as error:
        return [fault.where for fault in error.faults]
    return []


def test_the_text_of_today() -> None:
    found = parse_nccl_tests(NEW)
    assert (found.operation, found.n_ranks, found.n_hosts) == ("all_reduce", 2, 2)
    assert found.devices[1].model == "NVIDIA H100 80GB HBM3"
    assert found.library == "22703"
    assert found.settings["maxBytes"] == "4194304"
    assert [row.size_bytes for row in found.rows] == [2**20, 2**21, 2**22]
    assert found.rows[2].out_of_place.time_us == 144
    last = found.rows[2].in_place
    assert last is not None
    assert (last.busbw_gbytes_per_s, last.n_wrong) == (29.33, None)
    assert found.average_busbw_gbytes_per_s == pytest.approx(24.7625)
    assert not found.warnings


@pytest.mark.parametrize(
    "prefix",
    ["[1,0]<stdout>:", "[1,0]<stdout>: ", "worker-0: ", "0: ", "2025-08-01T10:00:00.123Z ", "[0] ",
     "launcher-x7.pod | "],
)  # fmt: skip
def test_prefixes_of_launchers_and_log_collectors(prefix: str) -> None:
    marked = "".join(prefix + line for line in NEW.splitlines(keepends=True))
    assert parse_nccl_tests(marked).rows == parse_nccl_tests(NEW).rows


def test_a_rank_between_the_cells() -> None:
    text = NEW.replace("      -1    52.40", "      -1[0]    52.40")
    assert parse_nccl_tests(text).rows == parse_nccl_tests(NEW).rows


def test_the_text_of_old_releases() -> None:
    found = parse_nccl_tests(OLD)
    row = found.rows[0]
    assert (row.size_bytes, row.datatype, row.out_of_place.time_us) == (65536, "half", 40.1)
    assert row.in_place is not None
    assert row.in_place.busbw_gbytes_per_s == 1.54


def test_a_table_without_header_is_counted_out() -> None:
    rows = "".join(line for line in NEW.splitlines(keepends=True) if line.startswith(" "))
    found = parse_nccl_tests(rows)
    assert found.rows[0].out_of_place.busbw_gbytes_per_s == 20.01
    assert "no header" in str(found.warnings[0])


def test_a_second_table_is_left_out_and_told() -> None:
    found = parse_nccl_tests(NEW + NEW)
    assert len(found.rows) == 3
    assert any("second table" in str(warning) for warning in found.warnings)


def test_pytorch_and_json() -> None:
    found = parse_nccl_tests(TABLE)
    assert (found.operation, found.n_ranks) == ("all_reduce", 4)
    assert found.rows[1].size_bytes == 2**30
    assert found.rows[1].out_of_place.time_us == pytest.approx(2**30 / 200e3)
    found = parse_nccl_tests(json.dumps(JSON))
    assert (found.operation, found.n_ranks, found.n_hosts) == ("all_gather", 1, 1)
    assert found.rows[0].out_of_place.busbw_gbytes_per_s == 18.35
    assert found.average_busbw_gbytes_per_s == 18.5


def test_every_shared_run_parses(shared: Path) -> None:
    path = shared / "measurements" / "nccl_tests.csv"
    text = path.read_text()
    with path.open(newline="") as file:
        counts: dict[str, int] = {}
        for row in csv.DictReader(file):
            counts[row["run_id"]] = counts.get(row["run_id"], 0) + bool(row["size_bytes"])
    for run, n_rows in counts.items():
        if n_rows:
            found = parse_nccl_tests(text, path.name, run)
            assert len(found.rows) == n_rows, run
            assert found.operation, run


@pytest.mark.parametrize(
    ("old", "new", "where", "reason"),
    [
        ("    52.40   20.01   20.01      0    51.00   20.56   20.56      0", " 52.40", ":12",
         "the row has 6 cells"),
        ("85.20", "8x.20", ":13", "no number where a time"),
        ("float     sum", "", ":12", '"-1" is no data type'),
    ],
)  # fmt: skip
def test_damage_gives_line_and_reason(old: str, new: str, where: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_nccl_tests(NEW.replace(old, new), "out.txt")
    assert str(caught.value).startswith(f"out.txt{where}")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "hello\n", '{"results": 3}', '{"results": [{"size": 1}]}', "{", "size,x\n1,2\n",
             "| payload | busbw | algbw |\n| x | 1 | 2 |\n"],
)  # fmt: skip
def test_what_is_no_output_is_told(text: str) -> None:
    assert fault_places(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (": 24.7625", ": --"),
        (" 52.40", " nan"),
        (" 52.40", " inf"),
        ("0    51.00", "1e999    51.00"),
        ("Rank  0 Group", "Rank  " + "9" * 5000 + " Group"),
    ],
)
def test_numbers_that_are_none(old: str, new: str) -> None:
    assert fault_places(NEW.replace(old, new)) in ([], ["out.txt:12"])


@pytest.mark.parametrize(
    ("old", "new"),
    [('"nwrong": 0', '"nwrong": 1e999'), ('"rank": 0', '"rank": "x"'), ("[{", "{"),
     ('"size": 1048576', '"size": ' + "9" * 5000), ('"args": [', '"args": 3, "x": [')],
)  # fmt: skip
def test_json_of_other_kinds(old: str, new: str) -> None:
    text = json.dumps(JSON)
    assert old in text or old == "[{"
    assert all(place.startswith("out.txt") for place in fault_places(text.replace(old, new, 1)))


def test_several_runs_need_a_name() -> None:
    text = "run_id,size_bytes,time_us\na,1024,5\nb,1024,6\n"
    with pytest.raises(InputError, match="2 runs"):
        parse_nccl_tests(text)
    assert parse_nccl_tests(text, run="b").rows[0].out_of_place.time_us == 6


def test_contradictions_are_warnings() -> None:
    text = NEW.replace("52.40   20.01", "99.40   20.01").replace("values : 0 OK", "values : 7 FAIL")
    messages = [str(warning) for warning in parse_nccl_tests(text, "out.txt").warnings]
    assert any("7 values were wrong" in message for message in messages)
    assert any(message.startswith("out.txt:12: size over time") for message in messages)


@given(st.sampled_from([NEW, OLD, TABLE, json.dumps(JSON)]), st.floats(0, 1), st.text(max_size=6))
def test_any_damage_is_an_input_error_or_no_damage(whole: str, part: float, text: str) -> None:
    at = int(part * len(whole))
    places = fault_places(whole[:at] + text + whole[at + 3 :])
    assert all(place.startswith("out.txt") for place in places)
