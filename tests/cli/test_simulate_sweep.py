from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv
import pytest
from distributed import LocalCluster

from gpufabric.cli import workers
from gpufabric.model.files import save_fabric
from gpufabric.report.sweep_table import run_columns, summary_columns
from gpufabric.sim.sweep import parse_axes
from tests.cli.running import run
from tests.sim.plants import RAIL, fabric

Capture = pytest.CaptureFixture[str]

SPEC = "{gpus: 32, host: dgx-h100, candidates: [{name: even, fabric: roce, topology: fat-tree, \
tiers: 2, switch: sn5400, su_hosts: 2}, {name: rails, fabric: roce, topology: rail-only}]}"
RESULTS = ("runs.csv", "summary.csv", "sweep.html", "sweep.json", "sweep.jsonl")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    (folder / "spec.yaml").write_text(SPEC)
    return folder


def sweep(capsys: Capture, *words: str | Path) -> str:
    ended = run(capsys, "simulate", "traffic", *(str(word) for word in words))
    assert (ended.code, ended.err) == (0, "")
    return ended.out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_sweep_over_fabrics_and_routing(capsys: Capture, made: Path, tmp_path: Path) -> None:
    words = (made / "spec.yaml", "--candidate", "even", "--pattern", "all-to-all", "--jobs", "1")
    axes = ("--sweep", "routing=ecmp,spray", "--sweep", "oversubscription=1,2:1")
    out = sweep(capsys, *words, "--bytes", "1MB", *axes, "--seeds", "2", "-o", tmp_path)
    assert out.splitlines()[-5:] == [
        str(tmp_path / name)
        for name in ("sweep.jsonl", "sweep.json", "runs.csv", "summary.csv", "sweep.html")
    ]
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert found["axes"] == {"routing": ["ecmp", "spray"], "oversubscription": ["1", "2:1"]}
    assert len({one["hash"] for one in found["fabrics"]}) == 2
    assert [one["oversubscription"] for one in found["fabrics"]] == ["1", "2:1"]
    assert (found["model"]["name"], found["seeds"]) == ("flow", 2)
    assert found["decisions"]
    share = {
        tuple(one["values"].values()): one["metrics"]["bandwidth_share"]["mean"]
        for one in found["combinations"]
    }
    # A leaf of 8 ports has 4 uplinks; of 28 flows out of the host, 24 leave the leaf.
    assert share["spray", "1"] == pytest.approx(1.0, rel=0.02)
    assert share["spray", "2:1"] == pytest.approx(28 / 48, rel=0.1)
    assert share["ecmp", "1"] < share["spray", "1"]
    runs = pyarrow.csv.read_csv(tmp_path / "runs.csv")
    axes_found = parse_axes(axes[1::2])
    assert runs.column_names == [column.name for column in run_columns(axes_found)]
    assert runs["seed"].to_pylist() == [0, 1] * 4
    table = pyarrow.csv.read_csv(tmp_path / "summary.csv")
    assert table.column_names == [column.name for column in summary_columns(axes_found)]
    assert table["runs"].to_pylist() == [2] * 4


def test_candidates_against_each_other(capsys: Capture, made: Path) -> None:
    out = sweep(
        capsys,
        made / "spec.yaml",
        "--sweep",
        "candidate=even,rails",
        "--sweep",
        "pattern=ring,permutation",
        "--json",
        "--jobs",
        "1",
    )
    found = json.loads(out)
    assert [one["name"] for one in found["fabrics"]] == ["even", "rails"]
    assert len(found["combinations"]) == len(found["runs"]) == 4
    assert found["files"] == []


def test_seeds_alone_are_a_sweep(capsys: Capture, made: Path) -> None:
    words = (made / "rail.fab", "--seeds", "3", "--seed", "5", "--jobs", "1")
    found = json.loads(sweep(capsys, *words, "--json"))
    assert [one["seed"] for one in found["runs"]] == [5, 6, 7]
    assert found["combinations"][0]["runs"] == 3
    table = sweep(capsys, *words)
    for heading in ("runs", "completion", "unfinished"):
        assert heading in table.splitlines()[0] + table.splitlines()[1]
    assert " ms" in table


def test_a_pattern_that_fails_in_a_worker_is_told(capsys: Capture, made: Path) -> None:
    words = ("--pattern", "incast", "--sweep", "fan-in=4,99", "--jobs", "2")
    ended = run(capsys, "simulate", "traffic", str(made / "rail.fab"), *words)
    assert ended.code == 2
    assert "--fan-in: 99 senders. Expected: 1 to 56" in ended.err


# Workers, interruption ---------------------------------------------------------------------------

MANY = ("--pattern", "all-to-all", "--bytes", "1MB", "--sweep", "routing=ecmp,flowlet")


@pytest.fixture(scope="module")
def whole(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one worker that is never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    done = start(made, folder, "--jobs", "1")
    assert done.wait(60) == 0
    return folder


def start(made: Path, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gpufabric.cli.main", "simulate", "traffic"]
    return subprocess.Popen(
        [*command, str(made / "rail.fab"), *MANY, "--seeds", "24", "-o", str(folder), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def test_two_workers_write_the_same_bytes_as_one(made: Path, whole: Path, tmp_path: Path) -> None:
    assert start(made, tmp_path, "--jobs", "2").wait(120) == 0
    assert contents(tmp_path) == contents(whole)
    assert tuple(contents(whole)) == RESULTS


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_goes_on_where_it_was_cut_off(
    made: Path, whole: Path, tmp_path: Path, how: signal.Signals
) -> None:
    journal = tmp_path / "sweep.jsonl"
    process = start(made, tmp_path, "--jobs", "1")
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert process.poll() is None
        time.sleep(0.005)
    os.killpg(process.pid, how)
    _out, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert b"Interrupted." in err
    done = journal.read_bytes().count(b"\n")
    assert 3 <= done < 48
    assert not (tmp_path / "sweep.json").exists()
    with journal.open("ab") as file:
        file.write(b'{"key": "torn')
    assert start(made, tmp_path, "--jobs", "1").wait(60) == 0
    assert contents(tmp_path) == contents(whole)


def test_a_dask_cluster_writes_the_same_bytes(made: Path, whole: Path, tmp_path: Path) -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        words = ("--backend", "dask", "--scheduler", cluster.scheduler_address)
        process = start(made, tmp_path, *words)
        _out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert contents(tmp_path) == contents(whole)


def test_a_cluster_that_does_not_answer_is_told(
    capsys: Capture, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "CONNECT_S", 0.5)
    words = ("--seeds", "2", "--backend", "dask", "--scheduler", "tcp://127.0.0.1:9")
    ended = run(capsys, "simulate", "traffic", str(made / "rail.fab"), *words)
    assert ended.code == 3
    assert "The cluster at tcp://127.0.0.1:9 cannot be reached" in ended.err


def test_a_library_that_is_not_installed_is_told(
    capsys: Capture, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not there
    ended = run(
        capsys, "simulate", "traffic", str(made / "rail.fab"), "--seeds", "2", "--backend", "ray"
    )
    assert ended.code == 2
    assert "ray is not installed. Install gpufabric[ray]." in ended.err


def test_the_table_of_two_axes_is_whole_on_80_columns(
    capsys: Capture, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = (made / "spec.yaml", "--candidate", "even", "--pattern", "all-to-all", "--jobs", "1")
    axes = ("--sweep", "routing=ecmp,adaptive", "--sweep", "oversubscription=1,4", "--seeds", "2")
    table = sweep(capsys, *words, "--bytes", "1MB", *axes)
    assert "…" not in table
    assert len(table.strip("\n").splitlines()) == 2 + 4
