"""House rules of kernels: how they are compiled, and that each names what it is held against."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpufabric.kernels import structs
from tests.conftest import ROOT

KERNELS = ROOT / "src/gpufabric/kernels"
DECORATORS = {"kernel", "inner_kernel", "kernel_part", "seldom_part", "whole_kernel"}
REFERENCE = re.compile(r"Reference: (tests/reference/\w+\.py)")


def kernels() -> Iterator[tuple[str, set[str], str]]:
    """Place, decorators and docstring of all that a decorator compiles; intrinsics left out."""
    for path in sorted(KERNELS.glob("*.py")):
        for part in ast.parse(path.read_text(encoding="utf-8")).body:
            decorators = {ast.unparse(item) for item in getattr(part, "decorator_list", [])}
            if isinstance(part, ast.FunctionDef) and decorators - {"intrinsic"}:
                yield f"{path.name}: {part.name}", decorators, ast.get_docstring(part) or ""


def test_kernels_are_compiled_in_one_way() -> None:
    assert [place for place, decorators, _ in kernels() if decorators - DECORATORS] == []


def test_only_one_module_names_the_compiler() -> None:
    named = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if "njit" in path.read_text(encoding="utf-8")
    ]
    assert named == ["src/gpufabric/kernels/jit.py"]


def imported(path: Path) -> set[str]:
    """Names of the references that a module imports."""
    names = set()
    for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(part, ast.ImportFrom) and part.module == "tests.reference":
            names |= {alias.name for alias in part.names}
        elif isinstance(part, ast.ImportFrom) and (part.module or "").startswith(
            "tests.reference."
        ):
            names.add(str(part.module).rpartition(".")[2])
    return names


def references_under_test() -> set[str]:
    """References that a test runs: imported by one, or by a reference that is."""
    tests = (ROOT / "tests").glob("*/test_*.py")
    waiting: set[str] = set().union(*(imported(path) for path in tests))
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= imported(ROOT / f"tests/reference/{name}.py") - found
    return found


def test_every_kernel_names_its_reference_which_a_test_runs() -> None:
    under_test = references_under_test()
    missing = []
    for place, _, docstring in kernels():
        found = REFERENCE.search(docstring)
        if not found or Path(found[1]).stem not in under_test:
            missing.append(place)
    assert missing == []


def test_a_reference_that_nothing_imports_is_not_under_test() -> None:
    assert "packet" in references_under_test()
    assert "nothing" not in references_under_test()


def test_no_field_of_a_record_hides_behind_an_attribute() -> None:
    """``numpy.record`` gives its own attribute first: plain Python would not see the field."""
    dtypes = [value for value in vars(structs).values() if isinstance(value, np.dtype)]
    names = {name for dtype in dtypes for name in dtype.names or ()}
    assert len(names) > 30
    assert [name for name in sorted(names) if hasattr(np.record, name)] == []
