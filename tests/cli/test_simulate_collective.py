"""``simulate collective``, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.cli.simulate_collective import sizes_of
from gpufabric.core.errors import InputError
from gpufabric.model.files import save_fabric
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.on_fabric import cluster_of
from tests.cli.running import Ended, run
from tests.sim.plants import HALF_SMALL_LEAFS, INFINIBAND, RAIL, fabric, plant

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("collective") / "rail.fab"
    save_fabric(fabric(RAIL), path)
    return path


def ask(capsys: Capture, made: Path, *words: str) -> Ended:
    return run(capsys, "simulate", "collective", str(made), *words)


def test_the_table_has_a_row_for_every_size(capsys: Capture, made: Path) -> None:
    ended = ask(capsys, made, "--sizes", "1M:64M:4")
    assert ended.code == 0
    assert "all_reduce on 64 x H100" in ended.out
    rows = [line for line in ended.out.splitlines() if line.strip()[:1].isdigit()]
    assert [row.split()[0] for row in rows] == ["1048576", "4194304", "16777216", "67108864"]


@pytest.mark.parametrize("engine", ["closed", "flow"])
def test_json_is_the_model_itself(capsys: Capture, made: Path, engine: str) -> None:
    words: tuple[str, ...] = ("--sizes", "1G", "--engine", engine, "--algo", "Ring")
    if engine != "closed":
        words = (*words, "--routing", "adaptive")
    content = json.loads(ask(capsys, made, *words, "--json").out)
    cluster = cluster_of(plant(RAIL), load_catalog())
    mine = estimate(cluster, "all_reduce", np.array([2.0**30]), "Ring")
    (row,) = content["rows"]
    assert row["time_us"] == pytest.approx(mine.time_us[0], rel=2e-3)
    assert (
        row["busbw_low_gbytes_per_s"] < row["busbw_gbytes_per_s"] < row["busbw_high_gbytes_per_s"]
    )
    assert content["fabric"]["hash"] == fabric(RAIL).content_hash
    assert (row["algorithm"], content["ranks"]) == ("Ring", 64)


def test_a_network_that_blocks_costs_in_closed_form_what_the_flows_say(
    capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "blocks.fab"
    save_fabric(fabric(HALF_SMALL_LEAFS), path)
    times, losses = [], []
    for level in (("closed",), ("flow", "--routing", "spray")):
        words = ("--op", "alltoall", "--sizes", "1G", "--json", "--engine", *level)
        content = json.loads(ask(capsys, path, *words).out)
        times.append(content["rows"][0]["time_us"])
        losses.append(content["network_slowdown"]["Pairwise"])
    assert losses[0] > 1.3
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert times[0] == pytest.approx(times[1], rel=0.02)
    ring = json.loads(ask(capsys, path, "--sizes", "1G", "--algo", "Ring", "--json").out)
    assert ring["network_slowdown"] == {}
    assert ask(capsys, path, "--op", "alltoall", "-o", str(tmp_path / "out")).code == 0


def test_what_is_wrong_with_hosts_costs(capsys: Capture, made: Path) -> None:
    def rate(*words: str) -> float:
        content = json.loads(ask(capsys, made, "--sizes", "4G", *words, "--json").out)
        return float(content["rows"][0]["busbw_gbytes_per_s"])

    assert rate("--impair", "gdr_off") < 0.6 * rate()


def test_a_measured_run_is_held_against_the_prediction(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    lines = ["#       size         count      type   redop    root     time   algbw   busbw #wrong"]
    for power in range(20, 34):
        size, busbw = 2**power, 40.0  # a tenth of the wire
        factor = 2 * 15 / 16
        time_us = size * factor / busbw / 1e3 + 50
        rate = size / time_us / 1e3
        lines.append(
            f"{size} {size // 4} float sum -1 {time_us:.1f} {rate:.2f} {rate * factor:.2f} 0"
        )
    log = tmp_path / "measured.txt"
    log.write_text("# nccl-tests all_reduce_perf\n# nThread 1 nGpus 1\n" + "\n".join(lines) + "\n")
    ended = ask(capsys, made, "--ranks", "16", "--compare", str(log))
    assert ended.code == 1, ended.err
    assert "8589934592" in ended.out
    again = ask(capsys, made, "--ranks", "16", "--compare", str(log), "--json")
    content = json.loads(again.out)
    assert content["operation"] == "all_reduce"
    assert content["causes"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--op", "all_redcue"), "all_reduce"),
        (("--sizes", "8G:1M"), "--sizes"),
        (("--sizes", "lots"), "lots"),
        (("--sizes", ""), "--sizes"),
        (("--op", ""), "--op"),
        (("--sizes", ",".join(["1M"] * 65)), "65 sizes"),
        (("--engine", "quantum"), "closed, flow, packet"),
        (("--algo", "Rings"), "Ring"),
        (("--proto", "LL64"), "LL"),
        (("--ranks", "12"), "12 GPUs"),
        (("--impair", "gdr_of"), "gdr_off"),
        (("--impair", "gdr_off", "--engine", "flow"), "--impair"),
        (("--routing", "magic"), "magic"),
        (("--compare", "nothing.txt"), "nothing.txt"),
        (("--ranks", "0"), "--ranks: 0 GPUs"),
        (("--impair", ",,"), "names nothing"),
        (("--impair", "shared_nic=1.5"), "1.5"),
        (("--impair", "gdr_off,gdr-off"), "twice"),
        (("--fail", "leaf-1"), "--fail: is for --engine flow or packet"),
        (("--seed", "3"), "--seed: is for --engine flow or packet"),
        (("--run", "a"), "--run: is for --compare"),
        (("--algo", "PAT"), "NCCL cannot do that here: PAT."),
    ],
)
def test_bad_input_is_told_in_one_line(
    capsys: Capture, made: Path, words: tuple[str, ...], told: str
) -> None:
    if words[0] == "--routing":
        words = (*words, "--engine", "flow")
    ended = ask(capsys, made, *words)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("words", [("--fail", "switch:nosuch"), ("--routing", "magic")])
def test_what_the_network_is_asked_is_checked_where_no_flow_needs_it(
    capsys: Capture, made: Path, words: tuple[str, ...]
) -> None:
    ended = ask(capsys, made, "--engine", "flow", "--ranks", "8", *words)
    assert (ended.code, ended.out) == (2, "")
    assert words[1].removeprefix("switch:") in ended.err


def test_a_host_without_nics_is_of_no_use_to_several(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    names = [f"GPU{at}" for at in range(8)]
    rows = [" ".join([name, *("X" if name == n else "NV12" for n in names)]) for name in names]
    path = tmp_path / "topo.txt"
    path.write_text("\n".join(["      " + " ".join(names), *rows]) + "\n")
    ended = ask(capsys, made, "--topology", str(path))
    assert (ended.code, ended.out) == (2, "")
    assert "lists no NIC" in ended.err
    assert ask(capsys, made, "--topology", str(path), "--ranks", "8").code == 0


def test_what_changes_nothing_is_told(capsys: Capture, made: Path) -> None:
    for words, told in (
        (("--env", "NCCL_PXN_DISABLE=1"), "NCCL_PXN_DISABLE"),
        (("--op", "alltoallv"), "equal parts"),
        (("--env", "NCCL_NET=Foo"), "NCCL_NET"),
    ):
        ended = ask(capsys, made, "--sizes", "1M", *words)
        assert ended.code == 0
        assert told in ended.out


def test_sockets_are_asked_for_as_nccl_asks(capsys: Capture, made: Path) -> None:
    words = ("--sizes", "1G", "--json")
    by_variable = json.loads(ask(capsys, made, *words, "--env", "NCCL_NET=Socket").out)
    by_name = json.loads(ask(capsys, made, *words, "--impair", "tcp=9000").out)
    assert by_variable["rows"] == by_name["rows"]


def test_a_run_of_a_file_with_several_and_its_operation(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "run_id,size_bytes,time_us,algbw,busbw\n"
        "a,1048576,150,6.99,6.88\na,1073741824,3200,335.5,330.3\nb,1048576,9,116.5,114.7\n"
    )
    several = ask(capsys, made, "--compare", str(path))
    assert (several.code, several.out) == (2, "")
    assert "--run" in several.err
    untold = ask(capsys, made, "--compare", str(path), "--run", "a")
    assert (untold.code, untold.out) == (2, "")
    assert "--op" in untold.err
    words = ("--compare", str(path), "--run", "a", "--op", "all_gather", "--json")
    content = json.loads(ask(capsys, made, *words).out)
    assert content["operation"] == "all_gather"
    assert [point["size_bytes"] for point in content["points"]] == [2**20, 2**30]
    sizes = ask(capsys, made, *words, "--sizes", "1M")
    assert (sizes.code, sizes.out) == (2, "")
    assert "--sizes" in sizes.err


def test_exchanges_with_experts_are_compared(capsys: Capture, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "experts.csv"
    path.write_text("kernel,op,ep_ranks,bandwidth_GBps\nnormal,dispatch,32,9\nv2,combine,512,60\n")
    ended = ask(capsys, made, "--compare", str(path))
    assert ended.code == 1
    for words in ("dispatch", "of more GPUs than the fabric has", "perftest"):
        assert words in ended.out
    out = tmp_path / "out"
    told = json.loads(ask(capsys, made, "--compare", str(path), "--json", "-o", str(out)).out)
    (row,) = told["rows"]
    assert row["predicted_low_gbytes_per_s"] < row["predicted_gbytes_per_s"]
    assert [file.name for file in out.iterdir()] == ["experts.json"]
    flows = ask(capsys, made, "--compare", str(path), "--engine", "flow", "--json")
    (again,) = json.loads(flows.out)["rows"]
    assert again["predicted_gbytes_per_s"] <= row["predicted_gbytes_per_s"] * 1.001
    blocks = tmp_path / "blocks.fab"
    save_fabric(fabric(HALF_SMALL_LEAFS), blocks)
    (slow,) = json.loads(ask(capsys, blocks, "--compare", str(path), "--json").out)["rows"]
    # Two hosts a leaf of 2:1: of what four hosts exchange, two thirds leave it.
    half = row["predicted_gbytes_per_s"] / slow["predicted_gbytes_per_s"]
    assert half == pytest.approx(4 / 3, rel=0.02)
    refused = ask(capsys, made, "--compare", str(path), "--op", "alltoall")
    assert (refused.code, refused.out) == (2, "")
    assert "--op: is for collectives" in refused.err


def test_sizes_as_nccl_tests_counts() -> None:
    assert sizes_of("8:64").tolist() == [8, 16, 32, 64]
    assert sizes_of("1M:16M:4").tolist() == [2**20, 2**22, 2**24]
    assert len(sizes_of("8:16G")) == 32
    with pytest.raises(InputError):
        sizes_of("0")


def test_variables_of_nccl_do_what_options_do(
    capsys: Capture, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(*words: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(
            ask(capsys, made, "--sizes", "1M,1G", *words, "--json").out
        )["rows"]
        return found

    ring = rows("--algo", "Ring", "--proto", "Simple")
    assert rows("--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple") == ring
    assert rows("--env", "NCCL_NET_GDR_LEVEL=LOC") == rows("--impair", "gdr_off")
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("NCCL_PROTO", "Simple")
    assert rows() != ring, "the shell counts only where asked for"
    assert rows("--shell-env") == ring
    tree = rows("--shell-env", "--env", "NCCL_ALGO=Tree")
    assert {row["algorithm"] for row in tree} == {"Tree"}
    told = ask(capsys, made, "--env", "NCCL_IB_TC=106", "--sizes", "1G")
    assert "NCCL_IB_TC: its effect is not modelled." in told.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--env", "NCCL_ALG=Ring"), 'Did you mean "NCCL_ALGO"?'),
        (("--env", "Ring"), "NCCL_ALGO=Ring"),
        (("--env", "NCCL_ALGO=Rings"), "Ring"),
        (("--env", "NCCL_IB_DISABLE=1", "--engine", "flow"), "--impair"),
        (("--topology", "nothing.xml"), "nothing.xml"),
    ],
)
def test_bad_variables_and_files(
    capsys: Capture, made: Path, words: tuple[str, ...], told: str
) -> None:
    ended = ask(capsys, made, *words)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert "Traceback" not in ended.err


MATRIX = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tNIC0\tCPU Affinity\tNUMA Affinity
{rows}NIC0\t{nics}\t X \t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
"""


def matrix(*relations: str) -> str:
    rows = ""
    for at, relation in enumerate(relations):
        links = "\t".join(" X " if at == other else "NV18" for other in range(8))
        rows += f"GPU{at}\t{links}\t{relation}\t0-47\t0\n"
    return MATRIX.format(rows=rows, nics="\t".join(relations))


def test_a_host_as_nvidia_smi_shows_it_is_checked(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    path = tmp_path / "topo.txt"
    path.write_text(matrix("PIX", *["SYS"] * 7))
    ended = ask(capsys, made, "--topology", str(path), "--sizes", "1G", "--json")
    assert ended.code == 1, ended.err
    content = json.loads(ended.out)
    whole = json.loads(ask(capsys, made, "--sizes", "1G", "--json").out)
    assert content["host_findings"][0]["where"].startswith(str(path))
    assert any(one["impairment"] == "far_nic" for one in content["host_findings"])
    one_nic, eight = (c["rows"][0]["busbw_gbytes_per_s"] for c in (content, whole))
    assert one_nic < 0.2 * eight, "one NIC of eight"
    shown = ask(capsys, made, "--topology", str(path), "--sizes", "1G")
    assert "--impair far_nic" in shown.out


def test_a_host_of_other_size_is_refused(capsys: Capture, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "host.xml"
    path.write_text('<system version="1"><cpu numaid="0"></cpu></system>')
    ended = ask(capsys, made, "--topology", str(path))
    assert ended.code == 2
    assert str(path) in ended.err


def test_the_folder_holds_table_json_and_page(capsys: Capture, made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        ended = ask(capsys, made, "--sizes", "1M:1G:4", "-o", str(tmp_path / name))
        assert ended.code == 0
    names = ["collective.csv", "collective.html", "collective.json"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    content = json.loads((tmp_path / "a/collective.json").read_text())
    lines = (tmp_path / "a/collective.csv").read_text().splitlines()
    assert len(lines) == len(content["rows"]) + 1
    assert lines[0].split(",")[0].strip('"') == "size_bytes"
    page = (tmp_path / "a/collective.html").read_text(encoding="utf-8")
    assert page.count('role="img"') == 2
    assert "NVLSTree/Simple" in page


def test_sharp_runs_packet_by_packet_and_shows_its_trees(capsys: Capture, tmp_path: Path) -> None:
    save_fabric(fabric(INFINIBAND), tmp_path / "ib.fab")
    words = ("simulate", "collective", str(tmp_path / "ib.fab"), "--sizes", "1G")
    on = ("--algo", "CollNetDirect", "--env", "NCCL_COLLNET_ENABLE=1", "--engine", "packet")
    ended = run(capsys, *words, *on)
    assert (ended.code, ended.err) == (0, "")
    for told in ("SHARP tree, root", "leaf-su01-r0", "FCT [µs]", "packet by packet, busbw"):
        assert told in " ".join(ended.out.split())
    content = json.loads(run(capsys, *words, *on, "--json").out)
    sharp = content["sharp"]["CollNetDirect"]
    assert [tree["root"] for tree in sharp["trees"]] == [f"leaf-su01-r{r}" for r in range(8)]
    assert sharp["fct_us"] == max(tree["fct_us"] for tree in sharp["trees"])
    ended = run(capsys, *words, *on[:2], *on[4:])
    assert ended.code == 2
    assert "Add --env NCCL_COLLNET_ENABLE=1." in ended.err


def test_roce_switches_do_not_add_up(capsys: Capture, made: Path) -> None:
    on = ("--env", "NCCL_COLLNET_ENABLE=1", "--sizes", "1G")
    ended = ask(capsys, made, "--algo", "CollNetChain", *on, "--engine", "packet")
    assert ended.code == 2
    assert "CollNetChain needs InfiniBand switches that add up (SHARP)" in ended.err
    ended = ask(capsys, made, *on)
    assert ended.code == 0
    assert "NCCL_COLLNET_ENABLE: changes nothing here" in ended.out
