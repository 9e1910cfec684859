from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpufabric.model.files import load_fabric
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text("{gpus: 1024, host: dgx-h100, candidates: [infiniband, roce]}\n")
    return path


def test_one_candidate_as_json(capsys: Capture, spec: Path) -> None:
    ended = run(capsys, "design", str(spec), "--candidate", "infiniband", "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    # NVIDIA RA-11334-001 V08 (2025-04-24), larger-SuperPOD component counts, the row of 4 SU.
    assert (found["gpus"], found["hosts"]) == (1024, 128)
    assert (found["leaf"], found["spine"], found["core"]) == (32, 16, 0)
    assert found["links"]["host_leaf"] == 1024
    assert found["links"]["leaf_spine"] == 1024
    assert found["links"]["spine_core"] == 0
    assert found["tiers"] == 2
    assert found["oversubscription"] == 1
    assert {"topic", "choice", "why"} <= set(found["decisions"][0])


def test_all_candidates_as_json(capsys: Capture, spec: Path) -> None:
    found = json.loads(run(capsys, "design", str(spec), "--json").out)
    assert [one["candidate"] for one in found] == ["infiniband", "roce"]


def test_all_candidates_to_read(capsys: Capture, spec: Path) -> None:
    ended = run(capsys, "design", str(spec))
    assert ended.code == 0
    assert "32 × qm9700" in ended.out
    assert "Decisions of infiniband" in ended.out
    assert "Decisions of roce" in ended.out


@pytest.mark.parametrize("suffix", [".json", ".fab"])
def test_the_fabric_can_be_kept(capsys: Capture, spec: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"fabric{suffix}"
    ended = run(capsys, "design", str(spec), "--candidate", "roce", "--json", "--save", str(path))
    assert load_fabric(path).content_hash == json.loads(ended.out)["fabric_hash"]


def test_only_one_fabric_can_be_kept(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    ended = run(capsys, "design", str(spec), "--save", str(tmp_path / "f.json"))
    assert ended.code == 2
    assert "--save: 2 designs." in ended.err
    assert not (tmp_path / "f.json").exists()


def test_a_file_of_a_fabric_is_shown(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    path = tmp_path / "fabric.fab"
    run(capsys, "design", str(spec), "--candidate", "roce", "--save", str(path))
    shown = run(capsys, "show", str(path))
    assert shown.code == 0
    assert load_fabric(path).content_hash in shown.out
    counts = json.loads(run(capsys, "show", str(path), "--json").out)
    assert counts["switches"] == {"leaf": 16, "spine": 8, "core": 0}
    assert counts["gpus"] == 1024


def test_the_links_of_a_switch_are_shown(capsys: Capture, spec: Path, tmp_path: Path) -> None:
    path = tmp_path / "fabric.fab"
    run(capsys, "design", str(spec), "--candidate", "roce", "--save", str(path))
    shown = run(capsys, "show", str(path), "--switch", "leaf-su01-r0")
    assert len(shown.out.splitlines()) == 1 + 64 + 32
    links = json.loads(run(capsys, "show", str(path), "--switch", "spine-01", "--json").out)
    assert len(links) == 64
    assert {link["b"] for link in links} == {"spine-01"}
    wrong = run(capsys, "show", str(path), "--switch", "spin-01")
    assert wrong.code == 2
    assert 'Did you mean "spine-01"?' in wrong.err


def test_a_file_that_is_no_fabric(capsys: Capture, spec: Path) -> None:
    ended = run(capsys, "show", str(spec))
    assert ended.code == 2
    assert str(spec) in ended.err
    assert "Traceback" not in ended.err
