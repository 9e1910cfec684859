"""The page on device files: its examples are devices, and its lists are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from gpufabric.catalog.groups import Kind
from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.design import design_candidate

PAGE = Path(__file__).parent.parent.parent / "docs/reference/device-file.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_a_network_of_the_example_devices_can_be_designed(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert len(examples) == 2
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.yaml").write_text(example, encoding="utf-8")
    spec = "hosts: 32\nhost: acme-8\ncandidates: ['roce:acme-64x800']\n"
    requirement = parse_requirement(spec.encode(), "spec.yaml")
    design = design_candidate(requirement, requirement.candidates[0], load_catalog(tmp_path))
    summary = design.summary()
    assert (summary["host"], summary["switch"]["leaf"]) == ("acme-8", "acme-64x800")
    assert summary["gpus"] == 256
    assert load_catalog(tmp_path).switch("acme-64x800").buffer_mb.value == 140  # type: ignore[union-attr]


def test_every_kind_is_named() -> None:
    (row,) = (line for line in TEXT.splitlines() if line.startswith("| `kind` |"))
    named = set(re.findall(r"`([a-z-]+)`", row)) - {"kind"}
    assert named == set(get_args(Kind))
