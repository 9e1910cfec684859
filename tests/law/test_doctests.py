from __future__ import annotations

import doctest
import importlib

import pytest

from tests.law.sources import Module, modules


def dotted(module: Module) -> str:
    name = module.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


WITH_EXAMPLES = [module for module in modules("src", "scripts") if ">>> " in module.text]


@pytest.mark.parametrize("module", WITH_EXAMPLES, ids=dotted)
def test_the_examples_of_docstrings_hold(module: Module) -> None:
    result = doctest.testmod(
        importlib.import_module(dotted(module)),
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )
    assert result.attempted > 0
    assert result.failed == 0
