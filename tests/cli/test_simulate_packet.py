"""``simulate traffic --engine packet`` and ``simulate profile``, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

from gpufabric.model.files import save_fabric
from gpufabric.sim.flow_columns import (
    FLOW_RESULTS,
    LINK_RESULTS,
    PACKET_FLOW_RESULTS,
    PACKET_LINK_RESULTS,
    PACKET_SERIES_RESULTS,
    SERIES_RESULTS,
)
from gpufabric.sim.packet_outcome import COUNTERS
from gpufabric.sim.profile import PROFILES
from gpufabric.sim.profile_file import profile_text
from tests.cli.running import Ended, run
from tests.sim.plants import INFINIBAND, RAIL, fabric

Capture = pytest.CaptureFixture[str]

INCAST = ("--pattern", "incast", "--fan-in", "8", "--bytes", "2MB", "--engine", "packet")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packet")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    (folder / "tight.yaml").write_text("buffer: {total_bytes: 7000000}\ndcqcn: none\necn: none\n")
    (folder / "wrong.yaml").write_text("ecn: {kmin_byts: 3}\ntick_ps: 0\n")
    return folder


def traffic(capsys: Capture, made: Path, *words: str) -> Ended:
    return run(capsys, "simulate", "traffic", str(made / "rail.fab"), *words)


def test_a_run_prints_times_and_counters(capsys: Capture, made: Path) -> None:
    ended = traffic(capsys, made, *INCAST)
    assert (ended.code, ended.err) == (0, "")
    for words in ("8 finished", "Completion time", "PFC", "ECN", "CNPs", "Drops", "Deepest queue"):
        assert words in ended.out
    assert "profile: roce-default" in ended.out


def test_infiniband_waits_for_credits_and_has_no_pauses(capsys: Capture, tmp_path: Path) -> None:
    save_fabric(fabric(INFINIBAND), tmp_path / "ib.fab")
    words = ("simulate", "traffic", str(tmp_path / "ib.fab"), *INCAST)
    ended = run(capsys, *words)
    assert (ended.code, ended.err) == (0, "")
    for told in ("Credits", "waits for credits", "Root of waits", "FECN", "BECNs"):
        assert told in ended.out
    for told in ("PFC", "CNPs", "Root of pauses"):
        assert told not in ended.out
    packets = json.loads(run(capsys, *words, "--json").out)["packets"]
    assert packets["flow_control"] == "credits"
    assert packets["drops"] == 0


def test_json_has_every_counter_and_every_parameter(capsys: Capture, made: Path) -> None:
    words = (*INCAST, "--profile", str(made / "tight.yaml"), "--json")
    ended = traffic(capsys, made, *words)
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["model"] == {"name": "packet", "version": 1}
    assert found["profile"]["name"] == "tight"
    assert found["profile"]["buffer"]["total_bytes"] == 7_000_000
    assert found["profile"]["forwarding_ns"] == "catalog"
    assert found["profile"]["transport"]["mtu_bytes"] == 4096
    assert set(COUNTERS) <= set(found["packets"])
    assert found["packets"]["pauses"] > 0  # PFC alone holds the senders back
    assert found["packets"]["drops"] == 0
    assert found["packets"]["ecn_marks"] == 0
    assert found["packets"]["is_balanced"]
    ledger, packets = found["packets"]["ledger"], found["packets"]["packets"]
    assert ledger["sent"] == packets
    for kind in packets:
        for unit in ("", "_bytes"):
            parts = [ledger[part + unit][kind] for part in ("received", "dropped", "in_flight")]
            assert ledger["sent" + unit][kind] == sum(parts)
    tree = found["packets"]["pause_tree"]
    assert tree["events_not_noted"] == 0
    assert sum(root["pauses"] for root in tree["roots"]) == found["packets"]["pauses"]
    assert sum(root["share"] for root in tree["roots"]) == pytest.approx(1.0)
    # All send to one NIC: the port to it is the root, and is told so to readers too.
    assert tree["roots"][0]["channel"] == found["busiest"][0]["name"]
    assert {edge["cause"] for edge in tree["edges"] if edge["is_root"]} == {
        root["channel"] for root in tree["roots"]
    }
    assert found["packets"]["deadlock"] is None
    told = traffic(capsys, made, *words[:-1]).out
    assert f"Root of pauses  {tree['roots'][0]['channel']}" in told
    assert traffic(capsys, made, *words).out == ended.out


def test_results_as_files(capsys: Capture, made: Path, tmp_path: Path) -> None:
    ended = traffic(capsys, made, *INCAST, "-o", str(tmp_path), "--plot")
    assert (ended.code, ended.err) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "channels.csv",
        "flows.csv",
        "heatmap.png",
        "packets.html",
        "report.html",
        "result.json",
        "series.csv",
        "trace.json",
    ]
    page = (tmp_path / "packets.html").read_text(encoding="utf-8")
    assert "[nic" in page
    assert "leaf-su01-r" in page
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    flows = pyarrow.csv.read_csv(tmp_path / "flows.csv")
    channels = pyarrow.csv.read_csv(tmp_path / "channels.csv")
    assert flows.column_names == [one.name for one in (*FLOW_RESULTS, *PACKET_FLOW_RESULTS)]
    assert channels.column_names == [one.name for one in (*LINK_RESULTS, *PACKET_LINK_RESULTS)]
    series = pyarrow.csv.read_csv(tmp_path / "series.csv")
    columns = (*SERIES_RESULTS, *PACKET_SERIES_RESULTS)
    assert series.column_names == [one.name for one in columns]
    deepest = max(channels["most_queued_bytes"].to_pylist())
    assert max(series["deepest_bytes"].to_pylist()) == deepest
    assert 0.9 < max(series["most"].to_pylist()) <= 1.0
    counters = json.loads((tmp_path / "result.json").read_text())["packets"]
    assert sum(flows["cnps"].to_pylist()) == counters["cnps"] > 0
    assert sum(channels["marked"].to_pylist()) == counters["ecn_marks"] > 0
    assert max(channels["most_queued_bytes"].to_pylist()) == counters["most_queued_bytes"]
    assert "Deepest queue" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_sweep_over_thresholds(capsys: Capture, made: Path, tmp_path: Path) -> None:
    """A lower Kmin marks more; the journal knows each run by its profile."""
    words = (*INCAST, "--sweep", "ecn.kmin_bytes=1000,1.5e6", "--sweep", "profile=roce-default")
    ended = traffic(capsys, made, *words, "--seeds", "2", "--jobs", "1", "-o", str(tmp_path))
    assert (ended.code, ended.err) == (0, "")
    found = json.loads((tmp_path / "sweep.json").read_text())
    assert found["model"]["name"] == "packet"
    marks = [one["metrics"]["ecn_marks"]["mean"] for one in found["combinations"]]
    assert marks[0] > marks[1]
    runs = pyarrow.csv.read_csv(tmp_path / "runs.csv")
    assert set(COUNTERS) <= set(runs.column_names)
    journal = (tmp_path / "sweep.jsonl").read_bytes()
    assert len(set(journal.splitlines())) == 4
    again = traffic(capsys, made, *words, "--seeds", "2", "--jobs", "1", "-o", str(tmp_path))
    assert again.code == 0
    assert (tmp_path / "sweep.jsonl").read_bytes() == journal


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_shown_and_written(capsys: Capture, tmp_path: Path, name: str) -> None:
    shown = run(capsys, "simulate", "profile", name)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == profile_text(PROFILES[name]())
    path = tmp_path / "mine.yaml"
    assert run(capsys, "simulate", "profile", name, "-o", str(path)).out == f"{path}\n"
    assert path.read_text(encoding="utf-8") == shown.out
    found = json.loads(run(capsys, "simulate", "profile", str(path), "--json").out)
    assert found == PROFILES[name]().to_json()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--engine", "pakcet"), ['--engine: "pakcet" is unknown.', 'Did you mean "packet"?']),
        (("--profile", "roce-default"), ["--profile: is for --engine packet."]),
        (("--engine", "packet", "--profile", "roce"), ['there is no profile "roce".']),
        (("--engine", "packet", "--profile", "no.yaml"), ["no.yaml"]),
        (
            ("--engine", "packet", "--profile", "WRONG"),
            ["wrong.yaml:1:7: ecn.kmin_byts", 'Did you mean "kmin_bytes"?'],
        ),
        (("--sweep", "ecn.kmin_bytes=1,2"), ["is for --engine packet."]),
        (
            ("--engine", "packet", "--sweep", "ecn.kmim_bytes=1,2", "--jobs", "1"),
            ['Did you mean "ecn.kmin_bytes"?'],
        ),
        (
            ("--engine", "packet", "--sweep", "ecn.pmax=0.1,2", "--jobs", "1"),
            ["--sweep ecn.pmax: the value is 2.0. Expected: 0 to 1."],
        ),
        (("--engine", "packet", "--routing", "spary"), ['Did you mean "spray"?']),
        (("--engine", "packet", "--fail", "random:2"), ["--fail random:2"]),
        (("--engine", "packet", "--cross-rail", "two-step"), ["--cross-rail: two-step is for"]),
    ],
)
def test_what_is_wrong_is_told(
    capsys: Capture, made: Path, words: tuple[str, ...], expected: list[str]
) -> None:
    words = tuple(str(made / "wrong.yaml") if word == "WRONG" else word for word in words)
    ended = traffic(capsys, made, *words)
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    for said in expected:
        assert said in ended.err


def test_a_replay_is_for_the_flow_engine(capsys: Capture) -> None:
    words = ("--links", "links.csv", "--pattern", "flows.csv", "--engine", "packet")
    ended = run(capsys, "simulate", "traffic", *words)
    assert ended.code == 2
    assert "--engine packet: needs a fabric" in ended.err


def test_messages_of_one_queue_pair_have_a_row_each(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    rows = "".join(f"{at},0,16,{size}\n" for at, size in enumerate([100_000, 20_000, 20_000]))
    (tmp_path / "messages.csv").write_text("flow_id,src,dst,size_bytes\n" + rows)
    words = ("--pattern", str(tmp_path / "messages.csv"), "--engine", "packet", "--one-qp")
    ended = traffic(capsys, made, *words, "--json", "-o", str(tmp_path / "out"))
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["packets"]["queue_pairs"] == 1
    found = pyarrow.csv.read_csv(tmp_path / "out" / "flows.csv")
    fct_us = found["fct_us"].to_pylist()
    assert sorted(fct_us) == fct_us
    assert len(set(fct_us)) == 3
    refused = traffic(capsys, made, "--one-qp")
    assert refused.code == 2
    assert "--one-qp: is for --engine packet" in refused.err
