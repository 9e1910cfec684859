"""The commands on the page run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.catalog.workload_constants import TransformerDimensions
from gpufabric.model.requirement import parse_requirement
from gpufabric.model.yaml_source import read_yaml
from gpufabric.report.collective_table import SIZE_COLUMNS
from gpufabric.report.serving_table import BATCH_COLUMNS
from gpufabric.report.training_table import PART_COLUMNS
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.sim.scenario import SWEEP_KEYS
from gpufabric.sim.traffic import PATTERNS
from gpufabric.workload.nccl_variables import NAMES
from tests.cli.running import run

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/how-to/simulate-traffic.md").read_text(encoding="utf-8")
COLLECTIVES = (ROOT / "docs/how-to/simulate-collectives.md").read_text(encoding="utf-8")
TRAINING = (ROOT / "docs/how-to/simulate-training.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("gpufabric ")
    for page in (PAGE, COLLECTIVES, TRAINING)
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("gpufabric ") and "examples/" in line
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    if "--sweep" in words:
        words += ["--jobs", "1"]
    ended = run(capsys, *words)
    assert (ended.code, ended.err) == (0, "")


def test_the_page_has_commands_all_patterns_and_all_keys() -> None:
    assert len(COMMANDS) == 16
    for word in (*PATTERNS, *SWEEP_KEYS):
        assert f"`{word}" in PAGE


@pytest.mark.parametrize(
    ("page", "columns"),
    [(COLLECTIVES, SIZE_COLUMNS), (TRAINING, PART_COLUMNS), (TRAINING, BATCH_COLUMNS)],
)
def test_the_pages_name_the_columns(page: str, columns: tuple[FileColumn, ...]) -> None:
    missing = [column.name for column in columns if f"`{column.name}`" not in page]
    assert not missing


def test_the_pages_name_the_variables_of_nccl() -> None:
    missing = [name for name in NAMES if f"`{name}" not in COLLECTIVES]
    assert not missing


def test_the_example_of_dimensions_and_of_a_spec_are_valid() -> None:
    dimensions, spec = re.findall(r"```yaml\n(.*?)```", TRAINING, re.DOTALL)
    content = read_yaml(dimensions.encode(), "page").content()
    assert isinstance(content, dict)
    mine = TransformerDimensions.model_validate({**content, "source": "the page"})
    assert mine.hidden == 4096
    parse_requirement(spec.encode(), "page", load_catalog().known_names())
