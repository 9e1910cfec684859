from __future__ import annotations

import re
import tomllib

import pytest

from tests.law.sources import ROOT

FOLDER = ROOT / "requirements"
LOCKED = sorted(path.name for path in FOLDER.glob("*.in"))


def name_of(requirement: str) -> str:
    """Normal form of the name that a requirement begins with."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=;! ]", requirement)[0]).lower()


def asked(file: str) -> set[str]:
    lines = (FOLDER / file).read_text().splitlines()
    return {name_of(line) for line in lines if line and not line.startswith(("#", "-"))}


def pinned(file: str) -> dict[str, str]:
    """Name and version of every requirement of a locked file."""
    lines = (FOLDER / file).read_text().splitlines()
    return {
        name_of(line): line.split("==")[1].split()[0]
        for line in lines
        if line and not line.startswith((" ", "#"))
    }


@pytest.mark.parametrize("source", LOCKED)
def test_what_is_asked_for_is_locked(source: str) -> None:
    assert asked(source) - set(pinned(source.replace(".in", ".txt"))) == set()


@pytest.mark.parametrize("source", LOCKED)
def test_every_pin_has_hashes_and_nothing_names_a_host_or_a_path(source: str) -> None:
    text = (FOLDER / source.replace(".in", ".txt")).read_text()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for entry in re.split(r"\n(?=\S)", body.strip()):
        head, *hashes = [line.strip(" \\") for line in entry.splitlines()]
        assert re.fullmatch(r"[a-z0-9._-]+==[a-z0-9.!+]+", head), head
        assert hashes, head
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in hashes), head
    assert "/" not in text


@pytest.mark.parametrize("other", ["test.txt", "docs.txt"])
def test_the_sets_agree_on_versions(other: str) -> None:
    base, more = pinned("base.txt"), pinned(other)
    assert {name: more[name] for name in base.keys() & more.keys()} == {
        name: base[name] for name in base.keys() & more.keys()
    }


def test_the_package_asks_for_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {name_of(line) for line in project["dependencies"]} == asked("base.in")


def test_packages_of_the_system_are_names_alone() -> None:
    lines = (FOLDER / "apt-test.txt").read_text().split("\n")
    assert lines == [*sorted(filter(None, lines)), ""]
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", line) for line in filter(None, lines))
