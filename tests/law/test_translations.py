from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import messages
from tests.law.sources import ROOT, modules

SOURCE = """
from gpufabric.core.text import _
first = _("{n_hosts} hosts").format(n_hosts=3)
second = _("done")
"""
CATALOGUE = """
msgid "{n_hosts} hosts"
msgstr "HOSTS"

msgid "done"
msgstr "DONE"
"""


def is_message(part: ast.AST) -> bool:
    return isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "_"


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and is_message(part):
            yield part


def literal(call: ast.Call) -> str | None:
    """Text of a call of ``_``; None unless it is one literal string."""
    if len(call.args) == 1 and not call.keywords and isinstance(call.args[0], ast.Constant):
        value = call.args[0].value
        return value if isinstance(value, str) and value else None
    return None


def filled(tree: ast.Module) -> Iterator[tuple[ast.Call, set[str]]]:
    """Yield each ``_(…).format(…)`` with the names that ``format`` is given."""
    for part in ast.walk(tree):
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "format"
            and isinstance(part.func.value, ast.Call)
            and is_message(part.func.value)
            and all(keyword.arg for keyword in part.keywords)
        ):
            yield part.func.value, {keyword.arg or "" for keyword in part.keywords}


def names_in(text: str) -> set[str]:
    """Names, without fields and indices, of the placeholders in `text`."""
    found = {name for name, _spec, _conversion in messages.placeholders(text)}
    return {name.partition(".")[0].partition("[")[0] for name in found}


@pytest.mark.parametrize("language", messages.translated_languages())
def test_the_catalogue_is_complete(language: str) -> None:
    assert messages.faults(ROOT, language) == []


def test_a_message_is_one_literal_string() -> None:
    wrong = [
        f"{module.path}:{call.lineno}"
        for module in modules("src")
        for call in calls(module.tree)
        if literal(call) is None
    ]
    assert wrong == []


def test_a_message_is_given_exactly_the_names_it_asks_for() -> None:
    wrong = [
        f"{module.path}:{call.lineno}: asks {sorted(wanted)}, is given {sorted(given)}"
        for module in modules("src")
        for call, given in filled(module.tree)
        if (wanted := names_in(literal(call) or "")) != given
    ]
    assert wrong == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a small project of two messages, both translated."""
    source = tmp_path / messages.SOURCES / "words.py"
    source.parent.mkdir(parents=True)
    source.write_text(SOURCE)
    catalogue = messages.catalogue_path(tmp_path, "zh_CN")
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text(CATALOGUE.replace("HOSTS", "{n_hosts} 台主机").replace("DONE", "完成"))
    return tmp_path


def test_a_complete_catalogue_has_no_fault(project: Path) -> None:
    assert messages.faults(project, "zh_CN") == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("完成", "", "not translated"),
        ("{n_hosts} 台", "{hosts} 台", "placeholders differ"),
        ("{n_hosts} 台", "台", "placeholders differ"),
        ("{n_hosts} 台", "{n_hosts 台", "broken placeholder"),
        ('msgid "done"', '#, fuzzy\nmsgid "done"', "fuzzy"),
        ('msgid "done"', 'msgid "gone"', "no longer in the sources"),
        ('msgid "done"', 'msgid "gone"', "in the sources, not in the catalogue"),
        ('msgid "done"\nmsgstr', '#~ msgid "done"\n#~ msgstr', "in the sources, not in"),
    ],
)
def test_a_fault_of_the_catalogue_is_found(
    project: Path, before: str, after: str, fault: str
) -> None:
    path = messages.catalogue_path(project, "zh_CN")
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    assert any(line.startswith(fault) for line in messages.faults(project, "zh_CN"))


def test_renewing_keeps_translations_and_drops_what_is_gone(project: Path) -> None:
    source = project / messages.SOURCES / "words.py"
    source.write_text(SOURCE.replace('"done"', '"ready"'))
    text = messages.renew(project, "zh_CN")
    assert "台主机" in text
    assert 'msgid "ready"\nmsgstr ""' in text
    assert "done" not in text
    messages.catalogue_path(project, "zh_CN").write_text(text)
    assert messages.renew(project, "zh_CN") == text


def test_templates_are_searched_too(project: Path) -> None:
    (project / messages.SOURCES / "page.j2").write_text(
        '<p>{{ _("Price of {what}").format(what=x) }}'
    )
    assert any("Price of {what}" in line for line in messages.faults(project, "zh_CN"))
