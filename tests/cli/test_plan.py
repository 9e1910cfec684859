from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run

Capture = pytest.CaptureFixture[str]

SPEC = "{gpus: 64, host: dgx-h100, candidates: [infiniband, roce]}\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def test_the_last_lines_are_the_paths(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--sizes", "none")
    assert ended.code == 0
    assert ended.err == ""
    paths = [Path(line) for line in ended.out.splitlines()[-18:]]
    assert all(path.is_file() for path in paths)
    assert paths[0] == tmp_path / "out/report.html"
    assert ended.out.splitlines()[-19] == ""


def test_a_long_path_is_not_broken(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("a long name " * 8).strip()
    ended = run(capsys, "plan", str(spec), "-o", str(folder), "--sizes", "none")
    assert str(folder / "roce/racks.svg") in ended.out.splitlines()


def test_json_holds_the_plan_and_the_paths(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--json", "--sizes", "none")
    content = json.loads(ended.out)
    assert [one["name"] for one in content["candidates"]] == ["infiniband", "roce"]
    assert all(Path(path).is_file() for path in content.pop("files"))
    assert content == json.loads((tmp_path / "out/plan.json").read_text())


def test_only_the_candidates_that_are_named(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(
        capsys,
        "plan",
        str(spec),
        "-o",
        str(tmp_path / "out"),
        "--candidate",
        "roce",
        "--sizes",
        "none",
    )
    assert ended.code == 0
    assert (tmp_path / "out/roce/fabric.json").exists()
    assert not (tmp_path / "out/infiniband").exists()
    content = json.loads((tmp_path / "out/plan.json").read_text())
    assert [one["name"] for one in content["requirement"]["candidates"]] == ["roce"]


def test_an_unknown_candidate(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--candidate", "rose")
    assert ended.code == 2
    assert 'there is no candidate "rose"' in ended.err
    assert 'Did you mean "roce"?' in ended.err
    assert not (tmp_path / "out").exists()


def test_a_spec_that_is_not_there_and_one_that_is_a_folder(capsys: Capture, tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        ended = run(capsys, "plan", str(path), "-o", str(tmp_path / "out"), "--sizes", "none")
        assert ended.code == 2
        assert str(path) in ended.err
        assert "Traceback" not in ended.err
        assert not (tmp_path / "out").exists()


def test_bad_input_writes_nothing(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("gpus: 63\nhost: dgx-h100\ncandidates: [infiniband]\n")
    ended = run(capsys, "plan", str(path), "-o", str(tmp_path / "out"), "--sizes", "none")
    assert ended.code == 2
    assert f"{path}:1:7: gpus" in ended.err
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_that_cannot_be_written_is_told_before_the_work(
    capsys: Capture, spec: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("a file")
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "file"))
    assert ended.code == 2
    assert "this is not a folder" in ended.err
    below = run(capsys, "plan", str(spec), "-o", str(tmp_path / "file/below"))
    assert below.code == 2
    assert "cannot be written" in below.err
    other = run(capsys, "plan", str(spec), "-o", str(tmp_path))
    assert other.code == 2
    assert "files that gpufabric plan did not write" in other.err
    assert (tmp_path / "file").read_text() == "a file"


def test_a_catalogue_of_ones_own(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(
        capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--catalog", str(tmp_path / "none")
    )
    assert ended.code == 2
    assert "there is no such folder" in ended.err


def test_both_languages(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(
        capsys, "--lang", "zh_CN", "plan", str(spec), "-o", str(tmp_path / "out"), "--sizes", "none"
    )
    assert ended.code == 0
    assert (tmp_path / "out/roce/topology.svg").exists()


@pytest.mark.parametrize("words", [("plan", "--lang", "zh_CN"), ("--lang", "zh_CN", "plan")])
def test_the_report_speaks_the_language_that_is_asked_for(
    capsys: Capture, spec: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    ended = run(capsys, *words, str(spec), "-o", str(tmp_path / "out"), "--sizes", "none")
    assert (ended.code, ended.err) == (0, "")
    for name in ("report.html", "report.md"):
        assert "并排比较" in (tmp_path / "out" / name).read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in (tmp_path / "out/report.html").read_text(encoding="utf-8")


def test_a_language_that_is_none(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--lang", "fr")
    assert ended.code == 2
    assert '"fr" is not one of en, zh_CN.' in ended.err


def test_the_decision_is_told_before_the_paths(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--sizes", "64,256")
    told = ended.out.splitlines()
    content = json.loads((tmp_path / "out/plan.json").read_text())["advice"]
    winner = content["winner"].split("+")[0]
    verb = "Subscribe to" if "+" in content["winner"] else "Buy"
    start = next(at for at, line in enumerate(told) if line.startswith(f"{verb} {winner}"))
    lines = told[start : told.index("", start)]
    assert 6 <= len(lines) <= 23  # with its prompt the screen of a terminal
    assert "USD over 4 years" in " ".join(lines)
    assert content["selection_guide"]["sizes"] == [64, 256]
    assert "Would change it" in " ".join(lines)
    words = " ".join(" ".join(lines).split())
    told = [one["label"][1:] for one in content["reasons"]]
    assert all(label in words for label in told)
    assert f"1 of {len(content['pitfalls'])}: " in words or "None was found." in words
    assert ("another way is cheaper" in words) == bool(content["runner_up"])


@pytest.mark.parametrize("sizes", ["", "many", "64,-1", "0", "64;128", "9999999", "1e3"])
def test_sizes_that_are_none(capsys: Capture, spec: Path, tmp_path: Path, sizes: str) -> None:
    ended = run(capsys, "plan", str(spec), "-o", str(tmp_path / "out"), "--sizes", sizes)
    assert ended.code == 2
    assert "--sizes" in ended.err
    assert "is no list of sizes" in ended.err
    assert not (tmp_path / "out").exists()
