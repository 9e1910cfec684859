from __future__ import annotations

import ast

from tests.law.sources import Function, definitions, modules

MODULE_LINES = 500
FUNCTION_LINES = 60


def length(function: Function) -> int:
    """Lines of a function, its docstring not counted."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def test_no_module_is_too_long() -> None:
    long = {
        module.path: len(module.text.splitlines())
        for module in modules("src", "tests", "scripts", "benchmarks")
        if len(module.text.splitlines()) > MODULE_LINES
    }
    assert long == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{module.path}:{part.lineno}: {part.name}": length(part)
        for module in modules("src", "scripts", "benchmarks")
        for part in definitions(module.tree)
        if isinstance(part, Function) and length(part) > FUNCTION_LINES
    }
    assert long == {}
