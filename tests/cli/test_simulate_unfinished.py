"""What a packet run does not know is said so, never shown as zero: table, JSON, files, pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.csv
import pytest

from gpufabric.model.files import save_fabric
from tests.cli.running import Ended, run
from tests.sim.plants import RAIL, fabric

Capture = pytest.CaptureFixture[str]

INCAST = ("--pattern", "incast", "--fan-in", "8", "--bytes", "2MB", "--engine", "packet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unfinished")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    (folder / "mixed.csv").write_text(
        "flow_id,src,dst,size_bytes,start_s\n0,0,8,1000,0\n1,1,9,1000,0\n2,2,10,60000000,0\n",
        encoding="utf-8",
    )
    return folder


def traffic(capsys: Capture, made: Path, *words: str) -> Ended:
    return run(capsys, "simulate", "traffic", str(made / "rail.fab"), *words)


def body(path: Path) -> str:
    return path.read_text(encoding="utf-8").split("<body>")[1]


def cards(page: str) -> dict[str, str]:
    found = re.findall(r"<div class=card><b>([^<]*)</b><span>([^<]*)</span>", page)
    return {label: value for value, label in found}


def test_a_run_of_which_nothing_finished(capsys: Capture, made: Path, tmp_path: Path) -> None:
    ended = traffic(capsys, made, *INCAST, "--until", "0.00005", "-o", str(tmp_path), "--plot")
    assert (ended.code, ended.err) == (0, "")
    assert "8 running" in ended.out
    assert re.search(r"Completion time +–", ended.out)
    assert re.search(r"Bandwidth +–", ended.out)
    assert "Not delivered" in ended.out
    assert "Flow completion time" not in ended.out
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["flows"] == {"total": 8, "running": 8}
    for key in ("completion_s", "fct_us", "slowdown", "jain_index"):
        assert found[key] is None
    assert found["bandwidth"] == {"achieved_gbps": None, "ideal_gbps": None, "share": None}
    assert found["bytes"]["undelivered"] > 0
    assert found["packets"]["is_balanced"]
    flows = pyarrow.csv.read_csv(tmp_path / "flows.csv")
    for column in ("finish_s", "fct_us", "slowdown", "mean_gbps"):
        assert set(flows[column].to_pylist()) == {None}
    page = body(tmp_path / "packets.html")
    assert "0 of 8 flows were delivered." in page
    values = cards(page)
    assert {values[f"flow completion, {one}"] for one in ("p50", "p99", "slowest")} == {"–"}
    assert values["goodput in all"] == "–"
    assert "<dd>8 running</dd>" in body(tmp_path / "report.html")


def test_a_run_of_which_a_part_finished(capsys: Capture, made: Path, tmp_path: Path) -> None:
    words = ("--pattern", str(made / "mixed.csv"), "--engine", "packet", "--until", "0.0005")
    ended = traffic(capsys, made, *words, "-o", str(tmp_path), "--plot")
    assert (ended.code, ended.err) == (0, "")
    assert "1 running, 2 finished" in ended.out
    assert re.search(r"Completion time +[0-9.]+ µs, of the 2 flows that finished", ended.out)
    assert "Time of the finished" in ended.out
    flows = pyarrow.csv.read_csv(tmp_path / "flows.csv")
    assert flows["status"].to_pylist() == ["finished", "finished", "running"]
    assert flows["fct_us"].to_pylist()[2] is None
    page = body(tmp_path / "packets.html")
    assert "2 of 3 flows were delivered." in page
    assert "1 have not come." in page
    assert "flow completion, p99 of the delivered" in cards(page)
    report = body(tmp_path / "report.html")
    assert "<dd>1 running, 2 finished</dd>" in report
    assert "of the 2 flows that finished" in report


def test_a_comparison_in_which_iterations_are_cut_off(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    variants = ("--variant", "roce-tuned", "--variant", "pause-storm")
    quick = ("--pattern", "incast", "--bytes", "100KB", "--iterations", "2", "--jobs", "1")
    where = ("-o", str(tmp_path))
    ended = run(capsys, "simulate", "compare", str(made / "rail.fab"), *quick, *variants, *where)
    assert (ended.code, ended.err) == (0, "")
    storm = next(line for line in ended.out.splitlines() if line.startswith("pause-storm"))
    assert storm.count(">") == 3
    found = json.loads((tmp_path / "compare.json").read_text())["variants"][1]
    assert found["unfinished_iterations"] == 2
    assert found["iteration_us"] is None
    assert found["coefficient_of_variation"] is None
    assert (found["fct_us"] or {}).get("p99.9") is None
    table = pyarrow.csv.read_csv(tmp_path / "iterations.csv")
    assert table["took_us"].to_pylist()[2:] == [None, None]
    page = body(tmp_path / "compare.html")
    assert "Not finished: pause-storm." in page
    assert "not finished</span>" in page
    assert "No iteration finished: pause-storm." in page


def test_a_comparison_says_that_it_is_cut_off_before_the_retry_time_out(
    capsys: Capture, made: Path
) -> None:
    """67 ms are longer than twenty times what 100 KB take, and than no time-out at all."""
    words = ("--pattern", "incast", "--bytes", "100KB", "--iterations", "1", "--jobs", "1")
    told = "retry time-outs of 67.11 ms after"
    lost = run(
        capsys, "simulate", "compare", str(made / "rail.fab"), *words, "--variant", "mtu-mismatch"
    )
    assert told in " ".join(lost.out.split())
    assert "--until 0.15 waits for two" in " ".join(lost.out.split())
    paused = run(
        capsys, "simulate", "compare", str(made / "rail.fab"), *words, "--variant", "pause-storm"
    )
    assert "not finished by then" in " ".join(paused.out.split())
    assert told not in " ".join(paused.out.split())
