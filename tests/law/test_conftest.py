"""The marker ``needs`` and the fixture ``golden`` of the house, run in a project of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.law.sources import ROOT

CASES = """
import pathlib
import pytest

@pytest.mark.needs("sh")
def test_present():
    pass

@pytest.mark.needs("sh", "a-program-that-is-not-there")
def test_absent():
    raise AssertionError("must not run")

def test_golden(golden):
    golden(pathlib.Path(__file__).parent / "golden/text.txt", "what is expected")
"""


def run(project: Path, *options: str, ci: str = "") -> str:
    """Output of pytest over `project`, where ``CI`` is `ci`."""
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-rfs", "-p", "no:cacheprovider", *options, str(project)],
        cwd=project,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_a_missing_program_skips_with_its_name(project: Path) -> None:
    out = run(project, "-k", "present or absent")
    assert "1 passed, 1 skipped, 1 deselected" in out
    assert "not installed: a-program-that-is-not-there" in out


def test_a_missing_program_fails_in_ci(project: Path) -> None:
    out = run(project, "-k", "present or absent", ci="true")
    assert "1 passed, 1 deselected, 1 error" in out
    assert "not installed: a-program-that-is-not-there" in out


def test_a_golden_file_is_compared_and_updated(project: Path) -> None:
    text = project / "golden/text.txt"
    assert "is absent: run pytest with --update" in run(project, "-k", "golden")
    assert "1 passed" in run(project, "-k", "golden", "--update")
    assert text.read_text() == "what is expected"
    text.write_text("what was expected")
    assert "1 failed" in run(project, "-k", "golden")
