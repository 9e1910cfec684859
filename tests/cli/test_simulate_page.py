"""The commands on the page run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gpufabric.sim.scenario import SWEEP_KEYS
from gpufabric.sim.traffic import PATTERNS
from tests.cli.running import run

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/how-to/simulate-traffic.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("gpufabric ")
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
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
    assert len(COMMANDS) == 5
    for word in (*PATTERNS, *SWEEP_KEYS):
        assert f"`{word}" in PAGE
