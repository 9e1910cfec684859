"""``simulate trace`` and ``simulate chakra``, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpufabric.model.files import save_fabric
from tests.cli.running import run
from tests.parse.chakra_messages import COLLECTIVES, NODE_TYPES, read
from tests.sim.plants import RAIL, fabric

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "rail.fab"
    save_fabric(fabric(RAIL), path)
    return path


PLAN = "tensor=8,zero=1,global_batch=4,sequence_tokens=4096"


def test_what_chakra_writes_google_reads_and_trace_plays(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    folder = str(tmp_path / "step")
    words = ("--model", "llama3-8b", "--plan", PLAN, "--ranks", "16", "-o", folder, "--json")
    ended = run(capsys, "simulate", "chakra", str(made), *words)
    assert ended.code == 0
    told = json.loads(ended.out)
    assert told["files"] == [*(f"step.{rank}.et" for rank in range(16)), "comm_group.json"]

    meta, *nodes = read((tmp_path / "step" / "step.9.et").read_bytes())
    assert meta.version == "0.0.4"
    assert [node.id for node in nodes] == list(range(len(nodes)))
    assert all(before < node.id for node in nodes for before in node.data_deps)
    groups = json.loads((tmp_path / "step" / "comm_group.json").read_text())
    seen = set()
    for node in nodes:
        values = {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}
        assert values["is_cpu_op"] is False
        if NODE_TYPES[node.type] == "COMM_COLL_NODE":
            assert 9 in groups[values["pg_name"]]
            assert values["comm_size"] > 0
            seen.add((COLLECTIVES[values["comm_type"]], len(groups[values["pg_name"]])))
        else:
            assert NODE_TYPES[node.type] == "COMP_NODE"
    assert seen == {
        ("ALL_GATHER", 8),
        ("REDUCE_SCATTER", 8),
        ("REDUCE_SCATTER", 2),
        ("ALL_GATHER", 2),
    }

    out = tmp_path / "result.json"
    ended = run(capsys, "simulate", "trace", str(made), folder, "-o", str(out), "--json")
    assert ended.code == 0
    content = json.loads(ended.out)
    assert content == json.loads(out.read_text())
    assert content["ranks"] == content["traces"] == 16
    assert content["step_low_us"] < content["step_us"] < content["step_high_us"]
    assert content["fabric"]["hash"] == fabric(RAIL).content_hash
    assert content["exposed_us"] < content["step_us"]


@pytest.mark.parametrize("engine", ["closed", "flow"])
def test_a_collective_alone(capsys: Capture, made: Path, tmp_path: Path, engine: str) -> None:
    words = ("--op", "all_reduce", "--size", "1G", "-o", str(tmp_path))
    assert run(capsys, "simulate", "chakra", str(made), *words).code == 0
    level = ("--engine", engine, *(() if engine == "closed" else ("--routing", "adaptive")))
    told = run(capsys, "simulate", "trace", str(made), str(tmp_path), *level, "--json")
    rest = ("--sizes", "1G", *level, "--json")
    ended = run(capsys, "simulate", "collective", str(made), *rest)
    (row,) = json.loads(ended.out)["rows"]
    assert json.loads(told.out)["step_us"] == pytest.approx(row["time_us"])


def test_the_table_says_what_shows_and_what_was_taken_for_what(
    capsys: Capture, made: Path, tmp_path: Path
) -> None:
    words = ("--op", "all_reduce", "--size", "64M", "-o", str(tmp_path))
    run(capsys, "simulate", "chakra", str(made), *words)
    one = str(tmp_path / "step.0.et")
    ended = run(capsys, "simulate", "trace", str(made), one, "--gpu", "A100", "--ranks", "32")
    assert ended.code == 0
    for word in ("32 ranks of H100", "all_reduce", "stands for 32 ranks", "scaled from A100"):
        assert word in ended.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("chakra", "FABRIC", "-o", "x"), "give one of them"),
        (("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--plan", "tensr=8"), "tensor"),
        (("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--plan", "tensor=a"), "whole"),
        (("chakra", "FABRIC", "-o", "x", "--op", "all_reduce", "--size", "1M:2M"), "one, such"),
        (("chakra", "FABRIC", "-o", "x", "--op", "all_reduce", "--name", "../x"), "--name"),
        (("chakra", "FABRIC", "-o", "x", "--op", "all_reduce", "--plan", "tensor=8"), "--plan: is"),
        (
            ("chakra", "FABRIC", "-o", "x", "--op", "all_reduce", "--software", "a"),
            "--software: is",
        ),
        (("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--size", "1G"), "--size: is"),
        (("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--algo", "Ring"), "--algo: is"),
        (
            ("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--plan", "zero=9"),
            "--plan zero:",
        ),
        (
            ("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--plan", "tensor=8,tensor=4"),
            "tensor is given twice",
        ),
        (
            ("chakra", "FABRIC", "-o", "x", "--model", "llama3-8b", "--plan", "trains_adapters=?"),
            "true, false",
        ),
        (("trace", "FABRIC", "nothing.et"), "No such file"),
        (("trace", "FABRIC", "FOLDER"), "the folder has no trace"),
        (("trace", "FABRIC", "TEXT"), "Chakra"),
        (("trace", "FABRIC", "EMPTY", "--engine", "guess"), "Expected: closed, flow, packet"),
        (("trace", "FABRIC", "EMPTY", "--gpu", "H9"), "compute rates"),
        (("trace", "FABRIC", "EMPTY", "--fail", "leaf-1"), "--fail: is for --engine flow"),
        (("trace", "FABRIC", "EMPTY", "--engine", "flow", "--fail", "switch:x"), '"x"'),
        (("trace", "FABRIC", "EMPTY", "--seed", "3"), "--seed: is for --engine flow"),
    ],
)
def test_bad_words_are_told_with_exit_code_2(
    capsys: Capture, made: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.et").write_text("hello, world")
    (tmp_path / "empty.0.et").write_bytes(b"\x07\x0a\x050.0.4")
    names = {
        "FABRIC": str(made),
        "FOLDER": str(tmp_path / "folder"),
        "TEXT": str(tmp_path / "text.et"),
        "EMPTY": str(tmp_path / "empty.0.et"),
    }
    ended = run(capsys, "simulate", *(names.get(word, word) for word in words))
    assert ended.code == 2
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_one_file_finds_its_groups_beside_it(capsys: Capture, made: Path, tmp_path: Path) -> None:
    words = ("--model", "llama3-8b", "--plan", PLAN, "--ranks", "16", "-o", str(tmp_path))
    assert run(capsys, "simulate", "chakra", str(made), *words).code == 0
    one = run(capsys, "simulate", "trace", str(made), str(tmp_path / "step.3.et"), "--json")
    all_of_them = run(capsys, "simulate", "trace", str(made), str(tmp_path), "--json")
    steps = [json.loads(ended.out)["step_us"] for ended in (one, all_of_them)]
    assert steps[0] == pytest.approx(steps[1])
