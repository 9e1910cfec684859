from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gpufabric
from gpufabric.cli import lazy
from gpufabric.cli.main import app
from gpufabric.cli.simulate import SimulateGroup
from gpufabric.core.errors import DeviceError
from tests.cli.running import run

Capture = pytest.CaptureFixture[str]
HEAVY = {"numba", "plotly", "xlsxwriter", "numpy", "pydantic", "jinja2", "scipy"}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text("{gpus: 64, host: dgx-h100, candidates: [infiniband, roce]}\n")
    return path


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_version(capsys: Capture) -> None:
    ended = run(capsys, "--version")
    assert ended == (0, f"gpufabric {gpufabric.__version__}\n", "")


def test_help_lists_every_command(capsys: Capture) -> None:
    ended = run(capsys, "--help")
    assert ended.code == 0
    for name, entry in lazy.entries().items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary[:40])}", ended.out, re.MULTILINE)


@pytest.mark.parametrize("name", list(lazy.entries()))
def test_the_first_line_of_help_is_that_of_the_list(capsys: Capture, name: str) -> None:
    ended = run(capsys, name, "--help")
    assert ended.code == 0
    assert lazy.entries()[name].summary.rstrip(".") in " ".join(ended.out.split())
    assert "``" not in ended.out
    assert "[default: True]" not in " ".join(ended.out.split())


SIMULATE = SimulateGroup(name="simulate").entries()


def test_help_lists_every_command_of_simulate(capsys: Capture) -> None:
    ended = run(capsys, "simulate", "--help")
    assert ended.code == 0
    for name, entry in SIMULATE.items():
        assert re.search(rf"^  {name} +{re.escape(entry.summary[:40])}", ended.out, re.MULTILINE)


@pytest.mark.parametrize("name", list(SIMULATE))
def test_help_of_simulate_begins_as_in_its_list(capsys: Capture, name: str) -> None:
    ended = run(capsys, "simulate", name, "--help")
    assert ended.code == 0
    assert SIMULATE[name].summary in " ".join(ended.out.split())


def test_traffic_imports_no_other_command() -> None:
    words = "import sys; from gpufabric.cli.main import main\n"
    words += "try: main(['simulate', 'traffic', '--help'])\nfinally: print(*sys.modules)"
    loaded = python("-c", words).stdout.split()
    assert "gpufabric.cli.simulate_traffic" in loaded
    for other in ("collective", "training", "inference", "trace", "chakra"):
        assert f"gpufabric.cli.simulate_{other}" not in loaded


def test_no_words_show_the_help_and_are_wrong_use(capsys: Capture) -> None:
    ended = run(capsys)
    assert ended.code == 2
    assert ended.err.startswith("Usage: gpufabric")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pln"], 'there is no command "pln". Did you mean "plan"?'),
        (["--lang", "fr", "plan"], '"fr" is not one of en, zh_CN.'),
        (["--unknown"], "No such option"),
        (["plan"], "Missing argument 'SPEC'"),
        (["plan", "spec.yaml"], "Missing option"),
        (["design", "a.yaml", "b.yaml"], "unexpected extra argument"),
    ],
)
def test_wrong_use_is_told_in_one_line(capsys: Capture, words: list[str], told: str) -> None:
    ended = run(capsys, *words)
    assert ended.code == 2
    assert ended.out == ""
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert len(ended.err.splitlines()) <= 3


def test_wrong_use_is_told_as_json_where_json_is_asked_for(capsys: Capture) -> None:
    ended = run(capsys, "design", "--json")
    error = json.loads(ended.err)["error"]
    assert error["exit_code"] == ended.code == 2
    assert "SPEC" in error["faults"][0]["what"]


def test_bad_input_is_told_as_json_where_json_is_asked_for(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("{gpus: 60, host: dgx-h200x, candidates: [infiniban]}")
    ended = run(capsys, "design", str(path), "--json")
    assert ended.code == 2
    assert ended.out == ""
    error = json.loads(ended.err)["error"]
    assert error["kind"] == "InputError"
    assert len(error["faults"]) >= 2
    assert set(error["faults"][0]) == {"where", "what", "expected", "remedy"}


def test_every_fault_has_a_line_of_its_own(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("gpus: 64\nhost: dgx-h200x\ncandidates: [infiniban]\n")
    ended = run(capsys, "design", str(path))
    lines = ended.err.splitlines()
    assert ended.code == 2
    assert len(lines) == 2
    assert lines[0].startswith(f"Error: {path}:2:7: host")
    assert 'Did you mean "infiniband"?' in lines[1]


def test_a_bug_is_ours_and_its_traceback_is_kept(
    capsys: Capture, spec: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_args: object) -> None:
        raise ZeroDivisionError("by nothing")

    module = importlib.import_module("gpufabric.cli.design")
    monkeypatch.setattr(module, "design_candidate", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = run(capsys, "design", str(spec))
    assert ended.code == 3
    assert "it is not your fault: ZeroDivisionError: by nothing" in ended.err
    assert "Traceback" not in ended.err
    (kept,) = tmp_path.glob("*.traceback")
    assert str(kept) in ended.err
    assert "ZeroDivisionError" in kept.read_text()
    shown = run(capsys, "--debug", "design", str(spec))
    assert shown.code == 3
    assert "Traceback" in shown.err
    as_json = run(capsys, "design", str(spec), "--json")
    assert json.loads(as_json.err)["error"]["exit_code"] == as_json.code == 3


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (DeviceError("it does not answer"), 3)]
)
def test_other_ends(
    capsys: Capture, spec: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail(*_args: object) -> None:
        raise error

    module = importlib.import_module("gpufabric.cli.design")
    monkeypatch.setattr(module, "design_candidate", fail)
    ended = run(capsys, "design", str(spec))
    assert ended.code == code
    assert "Traceback" not in ended.err


def test_a_closed_pipe_is_no_error(spec: Path) -> None:
    words = f"'{sys.executable}' -m gpufabric.cli.main design '{spec}' --json | head -c 1"
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], capture_output=True, text=True, check=False
    )
    assert ended.stderr == ""
    assert ended.returncode in (0, 141)


@pytest.mark.parametrize("words", [["--lang", "zh_CN", "--help"], ["--help"]])
def test_both_languages_speak(words: list[str]) -> None:
    ended = python("-m", "gpufabric.cli.main", *words, GPUFABRIC_LANG="zh_CN")
    assert ended.returncode == 0
    assert "plan" in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_command_runs_in_both_languages(capsys: Capture, spec: Path, language: str) -> None:
    ended = run(capsys, "--lang", language, "design", str(spec))
    assert ended.code == 0
    assert "qm9700" in ended.out
    wrong = run(capsys, "--lang", language, "design", str(spec), "--candidate", "rose")
    assert wrong.code == 2
    assert "roce" in wrong.err


def test_the_environment_names_a_language_that_exists() -> None:
    ended = python("-m", "gpufabric.cli.main", "--version", GPUFABRIC_LANG="tlh")
    assert ended.returncode in (0, 2)
    ended = python("-m", "gpufabric.cli.main", "schema", GPUFABRIC_LANG="tlh")
    assert ended.returncode == 2
    assert "GPUFABRIC_LANG" in ended.stderr


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom gpufabric.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    loaded = set(python("-c", program).stderr.split())
    assert loaded & HEAVY == set()


def test_help_is_fast() -> None:
    def seconds() -> float:
        begin = time.perf_counter()
        assert python("-m", "gpufabric.cli.main", "--help").returncode == 0
        return time.perf_counter() - begin

    # 0.12 s here; the bound leaves room for a busy machine.
    assert min(seconds() for _ in range(3)) < 0.6


def test_the_application_names_its_commands_to_the_documentation() -> None:
    assert app.info.cls is lazy.LazyGroup
    for entry in lazy.entries().values():
        module = importlib.import_module(f"gpufabric.cli.{entry.module}")
        assert hasattr(module, entry.attribute)


def test_a_name_that_the_terminal_cannot_show_is_no_bug(spec: Path) -> None:
    words = ("-m", "gpufabric.cli.main", "design", str(spec))
    assert python(*words, PYTHONIOENCODING="ascii").returncode == 0
    missing = subprocess.run(
        [sys.executable, *words[:-1], os.fsencode(spec.parent) + b"/\xff.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 2
    assert "there is no such file" in missing.stderr


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which ``gpufabric`` is this package's command."""
    command = f'"{sys.executable}" -m gpufabric.cli.main'
    return subprocess.run(
        ["sh", "-c", line.replace("gpufabric", command)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("gpufabric --version >&-", 0),
        ("gpufabric --version >&- 2>&-", 0),
        ("gpufabric design nope.yaml >&-", 2),
        ("gpufabric design nope.yaml --json 2>&-", 2),
        ("gpufabric design nope.yaml 2>/dev/full", 2),
        ("gpufabric design nope.yaml --json 2>/dev/full", 2),
        ("gpufabric --version <&-", 0),
    ],
)
def test_closed_and_full_streams_keep_the_exit_code(tmp_path: Path, line: str, code: int) -> None:
    ended = shell(line, tmp_path)
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("words", ["--version", "schema", "catalog list --json"])
def test_a_full_standard_output_is_told_in_words(tmp_path: Path, words: str) -> None:
    ended = shell(f"gpufabric {words} >/dev/full", tmp_path)
    assert ended.returncode == 2
    assert "output" in ended.stderr
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_end_leaves_no_half_output(tmp_path: Path, number: signal.Signals) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("{gpus: 16384, host: dgx-h100, candidates: [infiniband]}\n")
    words = [sys.executable, "-m", "gpufabric.cli.main", "plan", "spec.yaml", "-o", "out"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while process.poll() is None and not list(tmp_path.glob(".out.*")):
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(number)
        told = process.communicate()[1]
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert "Traceback" not in told
    assert [entry.name for entry in tmp_path.iterdir()] == ["spec.yaml"]


def test_simulations_do_not_wait_for_what_only_plans_need() -> None:
    words = "import sys, gpufabric.cli.simulate; print(*sys.modules)"
    ended = python("-c", words)
    assert ended.returncode == 0, ended.stderr
    loaded = set(ended.stdout.split())
    assert not {"scipy.stats", "gpufabric.cost", "gpufabric.planner", "xlsxwriter"} & loaded
