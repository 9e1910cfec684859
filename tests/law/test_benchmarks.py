from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import run


def entry(name: str, ours_s: float) -> run.Entry:
    return {**dict.fromkeys(run.KEYS), "name": name, "ours_s": ours_s}


def test_merging_sorts_and_replaces_by_name() -> None:
    merged = run.merge([entry("c", 1), entry("a", 1)], [entry("b", 2), entry("c", 2)])
    assert merged == [entry("a", 1), entry("b", 2), entry("c", 2)]


def test_results_of_a_module_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "measure_apart", lambda name: [entry(name, 3)])
    (tmp_path / "bench_one.py").touch()
    assert run.main([]) == 0
    assert json.loads((tmp_path / "results.json").read_text()) == [entry("one", 3)]


def test_a_broken_benchmark_fails_and_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(name: str) -> list[run.Entry]:
        if name == "one":
            raise RuntimeError("no peer")
        return [entry(name, 3)]

    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "measure_apart", measure)
    (tmp_path / "bench_one.py").touch()
    (tmp_path / "bench_two.py").touch()
    assert run.main([]) == 1
    assert "one: broken: RuntimeError('no peer')" in capsys.readouterr().out
    assert json.loads((tmp_path / "results.json").read_text()) == [entry("two", 3)]


def test_a_result_has_its_keys_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict(reversed(entry("one", 3).items()))
    module = SimpleNamespace(entries=lambda: [given])
    monkeypatch.setitem(sys.modules, "benchmarks.bench_one", module)
    assert tuple(run.measure("one")[0]) == run.KEYS
    del given["peak_mib"]
    with pytest.raises(ValueError, match="bench_one: an entry has the keys"):
        run.measure("one")


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["no-such"]) == 2
    assert "no such benchmark: no-such" in capsys.readouterr().out


def test_the_committed_results_have_all_keys_and_are_sorted() -> None:
    held = run.read(run.RESULTS)
    assert [entry["name"] for entry in held] == sorted({entry["name"] for entry in held})
    assert all(tuple(entry) == run.KEYS for entry in held)
