from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.flow_columns import FLOW_COLUMNS
from gpufabric.sim.flow_files import Links, read_flows, read_links
from gpufabric.sim.traffic import Traffic
from tests.sim.plants import RAIL, plant

GPUS = plant(RAIL).endpoints
N_CHANNELS = len(plant(RAIL).channels.capacity_gbps)

FLOWS = """\
flow_id,src,dst,size_bytes,start_s,path,weight,cap_gbps,after
a,0,9,1e6,,,,,
b,host-02:1,host-01:0,2000000,0.5,4 5,2,100,a
c d,63,0,0,1e-3,,,,a b
"""
# A flow_id with a blank cannot be waited for, but may stand there.

LINKS = """\
link_id,name,bandwidth_Bps,latency_s
x,up,50000000000,1e-6
y,,25000000000,
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def flows_of(tmp_path: Path, text: str) -> Traffic:
    return read_flows(write(tmp_path / "flows.csv", text), GPUS, None, N_CHANNELS)


def told(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        flows_of(tmp_path, text)
    return str(caught.value)


def test_every_column_is_read(tmp_path: Path) -> None:
    flows = flows_of(tmp_path, FLOWS)
    assert flows.name == "flows.csv"
    assert flows.src.tolist() == [0, 9, 63]
    assert flows.dst.tolist() == [9, 0, 0]
    assert flows.size_bytes.tolist() == [1e6, 2e6, 0]
    assert flows.start_s.tolist() == [0, 0.5, 1e-3]
    assert flows.weight is not None
    assert flows.weight.tolist() == [1, 2, 1]
    assert flows.cap_gbps is not None
    assert flows.cap_gbps.tolist() == [np.inf, 100, np.inf]
    assert flows.routes is not None
    assert flows.routes.first.tolist() == [0, 0, 2, 2]
    assert flows.routes.channel.tolist() == [4, 5]
    assert flows.predecessors is not None
    assert flows.predecessors.first.tolist() == [0, 0, 1, 3]
    assert flows.predecessors.flow.tolist() == [0, 0, 1]
    assert flows.flow_id is not None
    assert flows.flow_id.tolist() == ["a", "b", "c d"]


def test_four_columns_are_enough(tmp_path: Path) -> None:
    flows = flows_of(tmp_path, "flow_id,src,dst,size_bytes\n0,1,2,3\n")
    assert flows.start_s.tolist() == [0]
    assert flows.weight is flows.cap_gbps is flows.predecessors is flows.routes is None


def test_parquet_says_the_same(tmp_path: Path) -> None:
    table = pa.table(
        {
            "flow_id": [1, 2],
            "src": pa.array([0, 9], pa.int32()),
            "dst": [9, 0],
            "size_bytes": pa.array([10**6, 2 * 10**6]),
            "start_s": [None, 0.5],
            "path": pa.array([None, [4, 5]], pa.list_(pa.int64())),
            "after": pa.array([[], [1]], pa.list_(pa.int64())),
        }
    )
    path = tmp_path / "flows.parquet"
    pyarrow.parquet.write_table(table, path)
    flows = read_flows(path, GPUS, None, N_CHANNELS)
    assert flows.src.tolist() == [0, 9]
    assert flows.size_bytes.tolist() == [1e6, 2e6]
    assert flows.start_s.tolist() == [0, 0.5]
    assert flows.routes is not None
    assert flows.routes.channel.tolist() == [4, 5]
    assert flows.predecessors is not None
    assert flows.predecessors.flow.tolist() == [0]
    assert flows.flow_id is not None
    assert flows.flow_id.tolist() == ["1", "2"]


def test_columns_of_our_own_results_are_passed_over(tmp_path: Path) -> None:
    text = "flow_id,src,dst,size_bytes,status,fct_us\n0,1,2,3,finished,7\n"
    assert flows_of(tmp_path, text).n_flows == 1


def test_blanks_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    text = "\ufeffflow_id , src,dst, size_bytes\r\n 0 , 1 ,2, 3 \r\n"
    flows = flows_of(tmp_path, text)
    assert (flows.src[0], flows.dst[0], flows.size_bytes[0]) == (1, 2, 3)


def test_links_and_paths_without_a_fabric(tmp_path: Path) -> None:
    links = read_links(write(tmp_path / "links.csv", LINKS))
    assert links.gbps.tolist() == [400, 200]
    assert links.latency_s.tolist() == [1e-6, 0]
    assert links.name.tolist() == ["up", "y"]
    text = "flow_id,src,dst,size_bytes,path_link_ids\n0,here,there,8,y x\n1,here,here,8,\n"
    flows = read_flows(write(tmp_path / "f.csv", text), None, links)
    assert flows.routes is not None
    assert flows.routes.channel.tolist() == [1, 0]
    assert flows.labels is not None
    assert flows.labels[flows.src].tolist() == ["here", "here"]
    assert flows.labels[flows.dst].tolist() == ["there", "here"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("a,0,9,1e6", "a,64,9,1e6"), 'row 1, src: there is no GPU "64". Expected: 0 to 63'),
        (("host-02:1", "host-2:1"), 'row 2, src: there is no GPU "host-2:1"'),
        (
            ("a,0,9,1e6", "a,0,9,-1"),
            'row 1, size_bytes: "-1" does not fit. Expected: 0, or 1e-18 to 1e18',
        ),
        (("a,0,9,1e6", "a,0,9,big"), 'row 1, size_bytes: "big" does not fit.'),
        (("a,0,9,1e6", "a,0,9,nan"), "row 1, size_bytes"),
        (("a,0,9,1e6", "a,0,9,inf"), 'row 1, size_bytes: "inf" does not fit.'),
        (("a,0,9,1e6", "a,0,9,"), "row 1, size_bytes: it is empty."),
        (("a,0,9,1e6,", "a,0,9,1e6,-2"), 'row 1, start_s: "-2" does not fit.'),
        ((",2,100,a", ",0,100,a"), 'row 2, weight: "0" does not fit. Expected: 1e-18 to 1e18'),
        ((",2,100,a", ",2,-5,a"), 'row 2, cap_gbps: "-5" does not fit.'),
        (("4 5", "4 five"), 'row 2, path: "five" is unknown. Expected: the number of a channel'),
        (("4 5", f"4 {N_CHANNELS}"), f'row 2, path: "{N_CHANNELS}" is unknown.'),
        (("4 5", "4 -5"), 'row 2, path: "-5" is unknown.'),
        ((",a b", ",a z"), 'row 3, after: "z" is unknown. Expected: a flow_id of this file'),
        (("b,host", "a,host"), 'row 2, flow_id: "a" stands in an earlier row too.'),
        (("b,host", ",host"), "row 2, flow_id: it is empty."),
        (("size_bytes", "size_byte"), 'column "size_byte" is unknown.'),
        (("size_bytes", "size_byte"), 'Did you mean "size_bytes"?'),
        (("size_bytes", "size_byte"), 'column "size_bytes" is missing.'),
        (("weight", "path"), 'column "path" stands twice.'),
        (("a,0,9,1e6,,,,,", "a,0,9"), "cannot be read: CSV parse error"),
        ((FLOWS, ""), "cannot be read"),
        ((FLOWS, "flow_id,src,dst,size_bytes\n"), "it holds no flow."),
    ],
)
def test_a_faulty_file_is_told(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in FLOWS
    assert message in told(tmp_path, FLOWS.replace(*change, 1))


def test_all_faults_are_told_together(tmp_path: Path) -> None:
    text = told(tmp_path, FLOWS.replace("a,0,9,1e6", "a,99,x,-1"))
    assert len(text.splitlines()) == 3


def test_many_faults_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{number},0,1,-1\n" for number in range(50))
    lines = told(tmp_path, "flow_id,src,dst,size_bytes\n" + rows).splitlines()
    assert len(lines) == 21
    assert "30 more faults in column size_bytes." in lines[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("bandwidth_Bps", "gbps"), ""),
        (("x,up,5", "y,up,5"), 'row 2, link_id: "y" stands in an earlier row too.'),
        (("bandwidth_Bps", "bandwidth"), 'column "bandwidth" is unknown.'),
        (("name", "gbps"), "it needs a column of capacities"),
        (("50000000000", ""), "row 1, bandwidth_Bps: it is empty."),
        (("1e-6", "-1"), 'row 1, latency_s: "-1" does not fit.'),
    ],
)
def test_a_faulty_file_of_links_is_told(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    path = write(tmp_path / "links.csv", LINKS.replace(*change, 1))
    if not message:
        assert read_links(path).gbps.tolist() == [5e10, 2.5e10]
        return
    with pytest.raises(InputError) as caught:
        read_links(path)
    assert message in str(caught.value)


def test_flows_without_a_fabric_need_paths(tmp_path: Path) -> None:
    links = Links(np.array(["x"]), np.array(["x"]), np.array([1.0]), np.array([0.0]))
    for column, message in (("", "it has no column path."), (",path", "row 1, path: it is empty.")):
        text = f"flow_id,src,dst,size_bytes{column}\n0,a,b,1{',' if column else ''}\n"
        with pytest.raises(InputError) as caught:
            read_flows(write(tmp_path / "flows.csv", text), None, links)
        assert message in str(caught.value)


def test_what_is_no_file_of_a_known_kind_is_told(tmp_path: Path) -> None:
    cases = {
        tmp_path / "absent.csv": "there is no such file.",
        tmp_path: "it is not a regular file.",
        write(tmp_path / "flows.txt", FLOWS): 'the file name ends in ".txt".',
        write(tmp_path / "flows.parquet", FLOWS): "cannot be read",
    }
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 4)
    cases[tmp_path / "binary.csv"] = "binary.csv"
    for path, message in cases.items():
        with pytest.raises(InputError) as caught:
            read_flows(path, GPUS, None, N_CHANNELS)
        assert message in str(caught.value)


def test_the_columns_are_those_of_the_definition() -> None:
    assert [column.name for column in FLOW_COLUMNS if column.is_required] == [
        "flow_id",
        "src",
        "dst",
        "size_bytes",
    ]


@pytest.mark.parametrize("value", ["1e300", "1e19", "1e-300", "-1"])
def test_numbers_whose_times_or_sums_are_not_finite_are_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "links.csv"
    path.write_text(f"link_id,gbps,latency_s\na,{value},0\nb,0,{value}\n")
    with pytest.raises(InputError) as caught:
        read_links(path)
    told = str(caught.value)
    assert f'row 1, gbps: "{value}" does not fit. Expected: 0, or 1e-18 to 1e18' in told
    assert "row 2, latency_s" in told


def test_flows_that_wait_for_themselves_are_told_by_row(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(
        "flow_id,src,dst,size_bytes,path,after\n"
        "a,x,y,1,0,b\nb,x,y,1,0,a\nc,x,y,1,0,c\nd,x,y,1,0,a\ne,x,y,1,0,\n"
    )
    (tmp_path / "links.csv").write_text("link_id,gbps\n0,1\n")
    with pytest.raises(InputError) as caught:
        read_flows(path, None, read_links(tmp_path / "links.csv"))
    assert [fault.where for fault in caught.value.faults] == [
        f"{path}: row {row}, after" for row in (1, 2, 3)
    ]
