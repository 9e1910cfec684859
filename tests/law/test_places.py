"""No file names a registry's host or a path of one machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.law.sources import ROOT, repository_files

# Written in two halves, so that this file does not name what it looks for.
HOSTS = [
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("deb.debian", "org"),
    ("security.debian", "org"),
    ("archive.ubuntu", "com"),
    ("npmjs", "org"),
    ("yarnpkg", "com"),
    ("anaconda", "org"),
    ("crates", "io"),
    ("rubygems", "org"),
    ("proxy.golang", "org"),
    ("maven", "org"),
    ("nuget", "org"),
    ("ghcr", "io"),
    ("quay", "io"),
    ("docker", "io"),
    ("gcr", "io"),
]
HOST = re.compile("|".join(rf"\b{re.escape(name)}\.{end}\b" for name, end in HOSTS))
HOME = re.compile(r"(?<![\w.*/-])/(?:work|root|home|Users|mnt)/[\w.]")
MIRROR = re.compile(r"file:/" + r"/|/opt/(?:wheels|pypi)")


def faults(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in (HOST, HOME, MIRROR):
            match = pattern.search(line)
            if match:
                yield f"{number}: {match[0]}"


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_no_registry_host_and_no_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{fault}"
        for path in repository_files()
        for fault in faults(text_of(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://" + "pypi" + ".org/simple",
        "see " + "/ro" + "ot/x",
        "find-links = " + "file:/" + "/mirror",
    ],
)
def test_a_fault_is_found(line: str) -> None:
    assert list(faults(line))


@pytest.mark.parametrize("line", ["../shared/reference", "/usr/lib/frr", "a/home/b", "src/work/x"])
def test_other_paths_pass(line: str) -> None:
    assert list(faults(line)) == []
