from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

import pytest

from tests.law.sources import Definition, Function, modules

GRAB_BAGS = {"util", "utils", "helper", "helpers", "misc", "common", "manager"}
FORBIDDEN = GRAB_BAGS | {"data", "info", "tmp", "node"}


def words(name: str) -> list[str]:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


def is_grab_bag(name: str) -> bool:
    """Whether the name of a file, folder or class says that it holds all sorts of things."""
    inner = re.sub(r"subnet_?manager", "subnet", name, flags=re.IGNORECASE)  # InfiniBand's own
    return name.lower() in FORBIDDEN or words(inner)[-1] in GRAB_BAGS


def parameters(function: Function) -> Iterator[ast.arg]:
    given = function.args
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)


def declared_names(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Names that a module or class declares outside its functions."""
    for part in body:
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        for target in targets:
            if isinstance(part, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
                yield target.id, part.lineno


def names_of(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a reader meets: definitions, parameters, fields, module variables."""
    yield from declared_names(tree.body)
    for part in ast.walk(tree):
        if isinstance(part, Definition):
            yield part.name, part.lineno
        if isinstance(part, ast.ClassDef):
            yield from declared_names(part.body)
        if isinstance(part, Function):
            yield from ((item.arg, item.lineno) for item in parameters(part))


def test_no_file_or_folder_has_a_forbidden_name() -> None:
    bad = [
        module.path
        for module in modules("src", "tests", "scripts", "benchmarks")
        if any(is_grab_bag(part) for part in PurePath(module.path).with_suffix("").parts)
    ]
    assert bad == []


def test_no_definition_has_a_forbidden_name() -> None:
    bad = [
        f"{module.path}:{line}: {name}"
        for module in modules("src")
        for name, line in names_of(module.tree)
        if name.lower() in FORBIDDEN
    ]
    assert bad == []


def test_no_class_is_a_grab_bag() -> None:
    bad = [
        f"{module.path}:{part.lineno}: {part.name}"
        for module in modules("src")
        for part in ast.walk(module.tree)
        if isinstance(part, ast.ClassDef) and is_grab_bag(part.name)
    ]
    assert bad == []


def test_module_names_do_not_shadow_the_standard_library() -> None:
    shadows = {"operator", "logging", "types", "queue", "select", "platform", "statistics", "code"}
    folders = {PurePath(module.path).parts[2] for module in modules("src")}
    assert folders & shadows == set()


@pytest.mark.parametrize("name", ["utils", "cable_utils", "FabricManager", "node", "Info"])
def test_forbidden(name: str) -> None:
    assert is_grab_bag(name)


@pytest.mark.parametrize(
    "name",
    ["metadata", "node_description", "information", "database", "SubnetManager", "_ManagerLinks"],
)
def test_allowed(name: str) -> None:
    assert not is_grab_bag(name)
