"""Every example runs from the spec to the files, the largest ones to the design."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import load_requirement
from gpufabric.topology.given_host import resolve_host
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.yaml"))
MOST_GPUS_PLANNED = 4096


def gpus(path: Path) -> int:
    """Today's GPUs of a spec."""
    catalog = load_catalog()
    spec = load_requirement(path, catalog.known_names())
    host = resolve_host(spec, catalog)
    return spec.resolved_hosts(host.gpus) * host.gpus


SMALL = [path for path in EXAMPLES if gpus(path) <= MOST_GPUS_PLANNED]
LARGE = [path for path in EXAMPLES if path not in SMALL]


def test_there_are_examples_of_all_sizes() -> None:
    assert len(SMALL) >= 5
    assert len(LARGE) >= 5


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_plan(capsys: Capture, tmp_path: Path, path: Path) -> None:
    ended = run(capsys, "plan", str(path), "-o", str(tmp_path / "out"), "--sizes", "none")
    assert (ended.code, ended.err) == (0, "")
    content = json.loads((tmp_path / "out/plan.json").read_text())
    for candidate in content["candidates"]:
        for name in ("fabric.json", "cables.csv", "topology.svg", "racks.svg"):
            assert (tmp_path / "out" / candidate["name"] / name).stat().st_size > 500
    for drawing in (tmp_path / "out").rglob("*.svg"):
        assert drawing.stat().st_size < 500_000


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem)
def test_design(capsys: Capture, path: Path) -> None:
    ended = run(capsys, "design", str(path), "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    for one in found if isinstance(found, list) else [found]:
        assert one["leaf"] > 0
        assert one["decisions"]
