"""The files that the law tests read."""

from __future__ import annotations

import ast
import functools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src/gpufabric"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Module(NamedTuple):
    """One Python file, read and parsed."""

    path: str
    text: str
    tree: ast.Module


def is_made(path: Path) -> bool:
    """Whether `path` stands in a folder that the Makefile's targets make."""
    made = (".venv", "out", "dist", ".benchmarks", ".cache", "_cache", "__pycache__", ".hypothesis")
    return any(part.endswith(made) for part in path.relative_to(ROOT).parts[:-1])


@functools.cache
def repository_files() -> tuple[Path, ...]:
    """Every file that is tracked, or would be by ``git add``; all files where there is no git."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not is_made(path)]
    return tuple(sorted(path for path in paths if path.is_file()))


@functools.cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Python files of the repository below `folders`, parsed."""
    found = []
    for path in repository_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.startswith(tuple(f"{folder}/" for folder in folders)):
            text = path.read_text(encoding="utf-8")
            found.append(Module(name, text, ast.parse(text)))
    return tuple(found)


def definitions(tree: ast.AST) -> Iterator[Definition]:
    """Yield every class and function of `tree`, wherever it stands."""
    for part in ast.walk(tree):
        if isinstance(part, Definition):
            yield part


def public_definitions(
    tree: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, Definition]]:
    """Yield the classes, functions and methods that others may use, with their dotted names."""
    for part in tree.body:
        if isinstance(part, Definition) and not part.name.startswith("_"):
            yield f"{prefix}{part.name}", part
            if isinstance(part, ast.ClassDef):
                yield from public_definitions(part, f"{prefix}{part.name}.")
