"""The scripts behind the Makefile, with a python3 and package tools of the test's own making."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.law.sources import ROOT

REAL = {
    name: shutil.which(name) for name in ("bash", "sha256sum", "dirname", "basename", "id", "grep")
}


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{REAL['bash']}\n{text}\n")
    path.chmod(0o755)


class House:
    """A copy of the scripts and requirements, run with nothing on PATH but fakes."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "house"
        self.log = folder / "log"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log.touch()
        for name, path in REAL.items():
            assert path, name
            (self.bin / name).symlink_to(path)
        for name in ("scripts", "requirements"):
            shutil.copytree(ROOT / name, self.root / name)
        shutil.copy(ROOT / "pyproject.toml", self.root)

    def fake(self, name: str, text: str) -> None:
        """Put a program on PATH that logs its call and then does `text`."""
        program(self.bin / name, f'echo "{name} $*" >>{self.log}\n{text}')

    def fake_python(self, *, has_venv: str = "true") -> None:
        """Put a python3 on PATH whose ``-m venv`` makes a python that logs what it is asked."""
        made = self.root / ".venv/bin/python"
        program(self.log.parent / "made", f'echo "venv-python $*" >>{self.log}')
        self.fake(
            "python3",
            f"""case "$*" in
            *ensurepip*) {has_venv} ;;
            --version) echo Python 3.12 ;;
            *venv*) {shutil.which("mkdir")} -p {made.parent}
                {shutil.which("cp")} {self.log.parent / "made"} {made} ;;
            esac""",
        )

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [REAL["bash"] or "", str(self.root / "scripts" / script), *arguments],
            env={"PATH": str(self.bin), "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, beginning: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(beginning)]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_first_run_installs_with_hashes_and_the_next_does_nothing(house: House) -> None:
    house.fake_python()
    assert house.run("bootstrap.sh", "test").returncode == 0
    first = house.calls("venv-python -m pip install")
    assert len(first) == 3
    assert "--require-hashes -r requirements/build.txt -r requirements/base.txt" in first[0]
    assert "--no-build-isolation --editable ." in first[1]
    assert "--require-hashes -r requirements/test.txt" in first[2]
    assert house.run("bootstrap.sh", "test").stderr == ""
    assert house.calls("venv-python -m pip install") == first


def test_a_changed_lock_is_installed_again(house: House) -> None:
    house.fake_python()
    house.run("bootstrap.sh")
    with (house.root / "requirements/base.txt").open("a") as file:
        file.write("# changed\n")
    house.run("bootstrap.sh")
    assert len(house.calls("venv-python -m pip install")) == 4


def test_a_broken_install_is_done_again(house: House) -> None:
    house.fake_python()
    made = house.log.parent / "made"
    program(made, f'echo "venv-python $*" >>{house.log}\n[[ "$*" != *require-hashes* ]]')
    assert house.run("bootstrap.sh").returncode != 0
    program(house.root / ".venv/bin/python", f'echo "venv-python $*" >>{house.log}')
    assert house.run("bootstrap.sh").returncode == 0
    assert len(house.calls("venv-python -m pip install -qq")) == 3


def test_a_copied_folder_gets_a_new_environment(house: House) -> None:
    house.fake_python()
    house.run("bootstrap.sh")
    (house.root / ".venv/home").write_text("another place\n")
    house.run("bootstrap.sh")
    assert len(house.calls("python3 -m venv --clear")) == 2


def test_no_python_is_said_in_one_line(house: House) -> None:
    house.fake("python3", "exit 1")
    run = house.run("bootstrap.sh")
    assert run.returncode == 1
    assert run.stderr.splitlines() == [
        "bootstrap: no python3 of version 3.11 or newer found; set PYTHON=/path/to/python3"
    ]


def test_a_missing_venv_module_is_said_in_one_line_to_a_user(house: House) -> None:
    house.fake_python(has_venv="exit 1")
    house.fake("apt-get", "true")
    (house.bin / "id").unlink()
    house.fake("id", "echo 1000")
    run = house.run("bootstrap.sh")
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("bootstrap: python3-venv is missing; install it as root")
    assert house.calls("apt-get") == []


def test_a_missing_venv_module_is_installed_by_root(house: House) -> None:
    flag = house.log.parent / "installed"
    house.fake_python(has_venv=f"[[ -e {flag} ]]")
    house.fake("apt-get", f'[[ "$*" != *python3-venv* ]] || >{flag}')
    (house.bin / "id").unlink()
    house.fake("id", "echo 0")
    assert house.run("bootstrap.sh").returncode == 0
    assert house.calls("apt-get") == [
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends python3-venv",
    ]


def test_real_parts_are_left_alone_when_all_are_there(house: House) -> None:
    house.fake("dpkg-query", "echo -n installed")
    house.fake("apt-get", "true")
    run = house.run("real_parts.sh")
    assert (run.returncode, run.stderr) == (0, "")
    assert house.calls("apt-get") == []


@pytest.mark.parametrize(("user", "calls"), [("1000", 0), ("0", 11)])
def test_missing_real_parts(house: House, user: str, calls: int) -> None:
    house.fake("dpkg-query", "exit 1")
    house.fake("apt-get", '[[ "$1" == update ]]')
    (house.bin / "id").unlink()
    house.fake("id", f"echo {user}")
    run = house.run("real_parts.sh")
    assert run.returncode == 0
    assert "graphviz ibsim-utils ibutils" in run.stderr.splitlines()[-1]
    assert len(house.calls("apt-get")) == calls
    assert len(run.stderr.splitlines()) == (1 if user == "1000" else 2)
