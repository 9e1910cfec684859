from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image

from gpufabric.model.files import load_fabric, save_fabric
from gpufabric.sim.flow_columns import FLOW_RESULTS, LINK_RESULTS, SERIES_RESULTS
from tests.cli.running import Ended, run
from tests.sim.plants import INFINIBAND, RAIL, fabric

Capture = pytest.CaptureFixture[str]

SPEC = """\
gpus: 64
host: dgx-h100
candidates:
- {name: even, fabric: roce, tiers: 2, switch: sn5400, topology: fat-tree, su_hosts: 2}
- {name: rails, fabric: roce, topology: rail-only}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a fabric, a spec and a file of flows."""
    folder = tmp_path_factory.mktemp("simulate")
    save_fabric(fabric(RAIL), folder / "rail.fab")
    save_fabric(fabric(INFINIBAND), folder / "infiniband.json")
    (folder / "spec.yaml").write_text(SPEC)
    (folder / "one.yaml").write_text("{gpus: 16, host: dgx-h100, candidates: [roce]}")
    (folder / "flows.csv").write_text("flow_id,src,dst,size_bytes\n7,host-01:0,host-02:1,1e9\n")
    return folder


def simulate(capsys: Capture, made: Path, *words: str) -> Ended:
    """Run a command; words that name a file of the folder are completed."""
    whole = [str(made / word) if (made / word).is_file() else word for word in words]
    return run(capsys, "simulate", "traffic", *whole)


# One run -----------------------------------------------------------------------------------------


def test_a_run_to_read(capsys: Capture, made: Path) -> None:
    ended = simulate(capsys, made, "rail.fab", "--pattern", "ring")
    assert (ended.code, ended.err) == (0, "")
    for words in ("ring, ecmp: 64 flows, 64 GB", "20 ms", "Jain index", "host–leaf up"):
        assert words in ended.out
    assert "Assumptions and choices" in ended.out


def test_a_run_as_json(capsys: Capture, made: Path) -> None:
    ended = simulate(
        capsys, made, "infiniband.json", "--bytes", "100MB", "--seed", "3", "--qps", "2", "--json"
    )
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["fabric"]["hash"] == fabric(INFINIBAND).content_hash
    assert (found["seed"], found["routing"]["mode"]) == (3, "adaptive")
    assert found["traffic"]["bytes"] == 1e8
    assert found["flows"] == {"total": 64, "finished": 64}
    assert found["files"] == []
    assert "tier" in found["busiest"][0]


def test_the_same_seed_prints_the_same(capsys: Capture, made: Path) -> None:
    words = ("rail.fab", "--pattern", "hotspot", "--sizes", "exponential", "--json")
    one, same = (simulate(capsys, made, *words, "--seed", "1").out for _ in range(2))
    assert one == same
    assert one != simulate(capsys, made, *words, "--seed", "2").out


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_results_as_files(capsys: Capture, made: Path, tmp_path: Path, form: str) -> None:
    words = ("rail.fab", "-o", str(tmp_path / "out"), "--format", form, "--bins", "10")
    ended = simulate(capsys, made, *words, "--fail", "switch:leaf-su01-r0@0.01")
    names = ["result.json", f"flows.{form}", f"channels.{form}", f"series.{form}"]
    paths = [tmp_path / "out" / name for name in names]
    assert ended.out.splitlines()[-4:] == [str(path) for path in paths]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    read = pyarrow.csv.read_csv if form == "csv" else pyarrow.parquet.read_table
    flows, channels, series = (read(path) for path in paths[1:])
    assert flows.column_names == [column.name for column in FLOW_RESULTS]
    assert channels.column_names == [column.name for column in LINK_RESULTS]
    assert series.column_names == [column.name for column in SERIES_RESULTS]
    assert flows["src"].to_pylist()[:2] == ["host-01:0", "host-01:1"]
    for status, fct_us in zip(
        flows["status"].to_pylist(), flows["fct_us"].to_pylist(), strict=True
    ):
        assert (status == "finished") == (fct_us is not None)
    assert "unreachable" in flows["status"].to_pylist()
    summary = json.loads(paths[0].read_text())
    assert summary["failures"][0]["from_s"] == 0.01


def test_results_can_be_sent_again(capsys: Capture, made: Path, tmp_path: Path) -> None:
    simulate(capsys, made, "rail.fab", "--routing", "spray", "-o", str(tmp_path))
    ended = simulate(
        capsys,
        made,
        "rail.fab",
        "--routing",
        "spray",
        "--pattern",
        str(tmp_path / "flows.csv"),
        "--json",
    )
    first = json.loads((tmp_path / "result.json").read_text())
    again = json.loads(ended.out)
    assert again["fct_us"] == first["fct_us"]
    assert again["tiers"] == first["tiers"]


def test_pictures(capsys: Capture, made: Path, tmp_path: Path) -> None:
    simulate(capsys, made, "rail.fab", "-o", str(tmp_path), "--plot")
    with Image.open(tmp_path / "heatmap.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 500
        assert len(picture.getcolors(picture.width * picture.height)) > 20
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count('id="figure-') == 6
    assert fabric(RAIL).content_hash in page
    assert "src=" not in page.split("</script>")[-1]
    assert "cdn" not in page.split("<script>")[0]


def test_a_file_of_flows(capsys: Capture, made: Path) -> None:
    ended = simulate(capsys, made, "rail.fab", "--pattern", "flows.csv", "--json")
    assert json.loads(ended.out)["flows"] == {"total": 1, "finished": 1}


@pytest.mark.parametrize("case", ["xv16_40", "xv128_1000", "xv1024_20000"])
def test_a_replay_ends_when_simgrid_says(
    capsys: Capture, made: Path, tmp_path: Path, shared: Path, case: str
) -> None:
    stem = shared / "peers/flow" / case
    ended = simulate(
        capsys,
        made,
        "--pattern",
        f"{stem}_flows.csv",
        "--links",
        f"{stem}_links.csv",
        "-o",
        str(tmp_path),
    )
    assert ended.code == 0
    ours = pyarrow.csv.read_csv(tmp_path / "flows.csv")
    theirs = pyarrow.csv.read_csv(f"{stem}_finish.csv")
    assert ours["flow_id"].to_pylist() == theirs["flow_id"].to_pylist()
    assert ours["finish_s"].to_pylist() == pytest.approx(theirs["finish_s"].to_pylist(), rel=1e-6)


def test_a_spec_is_designed_with_cables(capsys: Capture, made: Path, tmp_path: Path) -> None:
    ended = simulate(capsys, made, "spec.yaml", "--candidate", "even", "--json")
    found = json.loads(ended.out)
    assert found["fabric"]["name"] == "even"
    assert not [one for one in found["decisions"] if one["topic"] == "latency"]
    words = ("plan", str(made / "spec.yaml"), "-o", str(tmp_path / "plan"), "--sizes", "none")
    run(capsys, *words)
    planned = load_fabric(tmp_path / "plan/even/fabric.json")
    assert planned.content_hash == found["fabric"]["hash"]


def test_a_spec_with_one_candidate_needs_no_name(capsys: Capture, made: Path) -> None:
    assert simulate(capsys, made, "one.yaml").code == 0


def test_chinese(capsys: Capture, made: Path, tmp_path: Path) -> None:
    words = ("--lang", "zh_CN", "simulate", "traffic", str(made / "rail.fab"), "--plot")
    assert run(capsys, *words, "-o", str(tmp_path)).code == 0


# What is wrong -----------------------------------------------------------------------------------

WRONG = [
    ((), "FABRIC: is missing. Expected: a fabric file, a spec, or --links."),
    (("absent.fab",), "absent.fab: cannot be read"),
    (("flows.csv",), "flows.csv"),
    (("spec.yaml",), "--candidate: the spec has 2 candidates. Expected: one of even, rails."),
    (("spec.yaml", "--candidate", "evn"), 'Did you mean "even"?'),
    (("rail.fab", "--candidate", "even"), "--candidate:"),
    (("rail.fab", "--pattern", "rnig"), 'Did you mean "ring"?'),
    (("rail.fab", "--pattern", "absent.csv"), "there is no such file."),
    (("rail.fab", "--bytes", "1XB"), '--bytes: "1XB" is no number of bytes.'),
    (("rail.fab", "--sizes", "exp"), "--sizes"),
    (("rail.fab", "--one-qp"), "--one-qp: is for --engine packet."),
    (("rail.fab", "--fan-in", "3"), "--fan-in: is for --pattern incast alone."),
    (("rail.fab", "--pattern", "incast", "--fan-in", "0"), "--fan-in: 0 senders."),
    (("rail.fab", "--pattern", "incast", "--fan-in", "x"), "--fan-in"),
    (("rail.fab", "--load", "0.3"), "--load: is for --pattern uniform alone."),
    (("rail.fab", "--pattern", "uniform", "--load", "0"), "--load: the value is 0.0."),
    (("rail.fab", "--flows", "3"), "--flows: is for --pattern uniform alone."),
    (("rail.fab", "--pattern", "uniform", "--flows", "0"), "--flows: the value is 0."),
    (("rail.fab", "--hot-share", "1"), "--hot-share: is for --pattern hotspot alone."),
    (("rail.fab", "--pattern", "hotspot", "--hot-share", "2"), "--hot-share: the value is 2.0."),
    (("rail.fab", "--gpus", "1"), "--gpus: 1 GPUs."),
    (("rail.fab", "--routing", "ecpm"), 'Did you mean "ecmp"?'),
    (("rail.fab", "--qps", "0"), "--qps: 0 queue pairs a flow."),
    (("rail.fab", "--hash-seeds", "all"), "--hash-seeds"),
    (("rail.fab", "--engine", "pakcet"), 'Did you mean "packet"?'),
    (("rail.fab", "--profile", "roce-default"), "--profile: is for --engine packet."),
    (("rail.fab", "--lmc", "9"), "--lmc: the value is 9."),
    (("rail.fab", "--cross-rail", "nvlink"), "--cross-rail"),
    (("rail.fab", "--fail", "spine-01"), "--fail spine-01"),
    (("rail.fab", "--fault", "override pmax=1"), "--fault: is for --engine packet."),
    (("rail.fab", "--fail", "switch:spine-1"), 'Did you mean "spine-01"?'),
    (("rail.fab", "--reconverge", "-1"), "--reconverge: the value is -1.0."),
    (("rail.fab", "--seed", "-1"), "--seed: the value is -1."),
    (("rail.fab", "--until", "-1"), "--until: the value is -1.0."),
    (("rail.fab", "--catalog", "nowhere"), "nowhere"),
    (("rail.fab", "--bins", "-2"), "--bins: -2 bins."),
    (("rail.fab", "--format", "xlsx"), '--format: "xlsx" is unknown. Expected: csv, parquet.'),
    (("rail.fab", "--plot"), "--plot: needs a folder."),
    (("rail.fab", "-o", "flows.csv"), "is no folder."),
    (("rail.fab", "--links", "flows.csv"), "--links: there is a fabric too."),
    (("--links", "flows.csv"), "--links: --pattern is no file of flows."),
    (("--links", "flows.csv", "--pattern", "flows.csv"), 'column "flow_id" is unknown.'),
    (
        ("--links", "flows.csv", "--pattern", "flows.csv", "--fail", "x"),
        "--fail: needs a fabric, and --links takes its place.",
    ),
    (("rail.fab", "--jobs", "2"), "--jobs: is for a what-if"),
    (("rail.fab", "--backend", "dask"), "--backend: is for a what-if"),
    (("rail.fab", "--scheduler", "x"), "--scheduler: is for a what-if"),
    (("rail.fab", "--seeds", "0"), "--sweep, --seeds: 0 runs."),
    (("rail.fab", "--seeds", "2", "--jobs", "0"), "--jobs: 0 jobs."),
    (("rail.fab", "--seeds", "2", "--backend", "dsk"), 'Did you mean "dask"?'),
    (("rail.fab", "--seeds", "2", "--backend", "dask"), "--scheduler: is missing."),
    (("rail.fab", "--seeds", "2", "--scheduler", "x"), "the local backend has no scheduler."),
    (("rail.fab", "--sweep", "rooting=ecmp"), 'Did you mean "routing"?'),
    (("rail.fab", "--sweep", "routing=ecpm"), 'Did you mean "ecmp"?'),
    (("rail.fab", "--sweep", "oversubscription=1,2"), "is a fabric that is made already."),
    (("spec.yaml", "--candidate", "even", "--sweep", "oversubscription=0"), '"0" is no oversub'),
    (("spec.yaml", "--sweep", "candidate=even,rial"), 'Did you mean "rails"?'),
    (("rail.fab", "--sweep", "fail=switch:spine-9"), 'there is no switch "spine-9"'),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_use_is_told(
    capsys: Capture, made: Path, words: tuple[str, ...], message: str
) -> None:
    ended = simulate(capsys, made, *words)
    assert ended.code == 2
    assert ended.out == ""
    assert message in ended.err.replace("\n", " ")
    assert "Traceback" not in ended.err


def test_faults_are_told_together_and_as_json(capsys: Capture, made: Path) -> None:
    ended = simulate(capsys, made, "rail.fab", "--routing", "x", "--seed", "-1", "--plot", "--json")
    faults = json.loads(ended.err)["error"]["faults"]
    assert [fault["where"] for fault in faults] == ["--plot", "--seed", "--routing"]


def test_every_option_is_tried_wrong(capsys: Capture, made: Path) -> None:
    options = {
        word.strip(",")
        for line in run(capsys, "simulate", "traffic", "--help").out.splitlines()
        for word in line.split()[:2]
        if line.startswith("  -") and word.startswith("-")
    }
    tried = {word for words, _message in WRONG for word in words if word.startswith("-")}
    cannot_be_wrong = {"--help", "--json", "--no-gpudirect"}
    assert options - tried - cannot_be_wrong <= {"--output"}  # tried by its short name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--bytes", "1e308"], "--bytes"),
        (["--reconverge", "inf", "--fail", "switch:spine-01@0.001"], "--reconverge"),
        (["--reconverge", "1"], "--reconverge: no failure begins in the run."),
        (["--seed", "99999999999999999999"], "0 to 9223372036854775807"),
        (["--fail", "switch:spine-01@1e300"], "is no time"),
        (["--pattern", "uniform", "--load", "1e-300"], "--load"),
        (
            ["--pattern", "flows.csv", "--bytes", "4MB"],
            "--bytes: the file of flows says the sizes.",
        ),
        (["--pattern", "flows.csv", "--sizes", "pareto"], "--sizes: the file"),
        (["--seeds", "2", "--plot", "-o", "never"], "--plot: is for one run"),
    ],
)
def test_what_cannot_be_done_is_not_passed_over(
    capsys: Capture, made: Path, words: list[str], told: str
) -> None:
    ended = simulate(capsys, made, "rail.fab", *words)
    assert ended.code == 2
    assert told in ended.err
    assert ended.out == ""
    assert not Path("never").exists()


def test_what_means_nothing_to_a_mode_is_said(capsys: Capture, made: Path) -> None:
    asked = ["--qps", "4", "--lmc", "2", "--hash-seeds", "tier"]
    ended = simulate(capsys, made, "rail.fab", "--routing", "spray", *asked, "--json")
    said = {one["topic"]: one["why"] for one in json.loads(ended.out)["decisions"]}
    for option in ("--qps", "--lmc", "--hash-seeds"):
        assert said[option] == "Not used: it means nothing to spray."
    ended = simulate(capsys, made, "rail.fab", "--qps", "4", "--hash-seeds", "tier", "--json")
    topics = [one["topic"] for one in json.loads(ended.out)["decisions"]]
    assert not {"--qps", "--lmc", "--hash-seeds"} & set(topics)
    assert topics.count("host delay") == 1
