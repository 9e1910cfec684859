from __future__ import annotations

import ast

from tests.law.sources import modules, public_definitions


def is_overload(part: ast.AST) -> bool:
    names = {ast.unparse(item) for item in getattr(part, "decorator_list", [])}
    return any(name.endswith(("overload", ".setter")) for name in names)


def test_every_module_says_what_it_knows() -> None:
    silent = [
        module.path
        for module in modules("src", "scripts", "benchmarks")
        if not ast.get_docstring(module.tree)
    ]
    assert silent == []


def test_every_public_function_and_class_has_a_docstring() -> None:
    silent = [
        f"{module.path}:{part.lineno}: {name}"
        for module in modules("src", "scripts", "benchmarks")
        for name, part in public_definitions(module.tree)
        if not ast.get_docstring(part) and not is_overload(part)
    ]
    assert silent == []
