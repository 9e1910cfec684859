"""What every test may use: ``--update``, ``golden``, ``shared`` and the marker ``needs``."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent


def _numba_cache() -> Path:
    """Folder named by all kernels together: numba alone misses changes in other modules.

    The Makefile computes the same name.
    """
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src/gpufabric/kernels").glob("*.py")):
        digest.update(path.read_bytes())
    return ROOT / ".cache" / f"numba-{digest.hexdigest()[:16]}"


os.environ["NUMBA_CACHE_DIR"] = str(_numba_cache())  # before anything imports numba

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# Compiling and two shared cores make single examples slow; CI repeats the same examples.
settings.register_profile("house", deadline=None, print_blob=True, derandomize=IN_CI)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="write golden files instead of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "needs(*programs): skip where a program is missing; fail there when CI=true",
    )


def is_installed(program: str) -> bool:
    """Whether `program`, or a library of that name preloaded by ``libumad2sim0``, is there."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if shutil.which(program, path=path):
        return True
    return any(Path("/usr/lib").glob(f"*/umad2sim/{program}.so"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    wanted = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = [name for name in wanted if not is_installed(name)]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)}"
    if IN_CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of facts beside the repository."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("../shared is absent")
    return path


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with the file that holds what is expected; ``--update`` writes the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), (
            f"{path} is absent: run pytest with --update and look at what it writes"
        )
        assert text == path.read_text(encoding="utf-8")

    return compare
