"""The YAML scanner's complaints, told in the words of this program."""

from __future__ import annotations

from collections.abc import Callable

from ruamel.yaml.error import MarkedYAMLError, StreamMark

from gpufabric.core.errors import Fault
from gpufabric.core.text import _
from gpufabric.model.yaml_text import printable

__all__ = ["alias_fault", "anchor_fault", "directive_fault", "syntax_fault", "tag_fault"]


def alias_fault(where: str) -> Fault:
    """Return the fault of an alias (``*name``) at `where`."""
    return Fault(
        where,
        _("an alias (*) is not allowed here."),
        remedy=_("Write the value out."),
    )


def anchor_fault(where: str) -> Fault:
    """Return the fault of an anchor (``&name``) at `where`."""
    return Fault(
        where,
        _("an anchor (&) is not allowed here."),
        remedy=_("Remove it; text that starts with & goes in quotes."),
    )


def tag_fault(where: str) -> Fault:
    """Return the fault of a tag (``!name``) at `where`."""
    return Fault(
        where,
        _("a tag (!) is not allowed here."),
        remedy=_("Remove it; text that starts with ! goes in quotes."),
    )


def directive_fault(where: str) -> Fault:
    """Return the fault of a directive (``%YAML``, ``%TAG``) at `where`."""
    return Fault(
        where,
        _("a directive (%) is not allowed here."),
        remedy=_("Remove the line."),
    )


def syntax_fault(error: MarkedYAMLError, where: str, lines: list[str]) -> Fault:
    """Return the fault that `error` of the YAML scanner means in the file `where`."""
    problem, context = str(error.problem), str(error.context)
    for part, at_start, tell in _PROBLEMS:
        if part in problem or part in context:
            mark = (error.context_mark if at_start else None) or error.problem_mark
            return tell(_place(where, mark), _character(mark, lines))
    return _unknown(_place(where, error.problem_mark), "")


def _place(where: str, mark: StreamMark | None) -> str:
    return where if mark is None else f"{where}:{mark.line + 1}:{mark.column + 1}"


def _character(mark: StreamMark | None, lines: list[str]) -> str:
    if mark is None or mark.line >= len(lines):
        return ""
    return printable(lines[mark.line][mark.column : mark.column + 1])


def _unknown(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("from here on this is not valid YAML."),
        remedy=_("Check indentation, colons, quotes and brackets."),
    )


def _tab(where: str, _character: str) -> Fault:
    return Fault(where, _("a tab stands where only spaces may."), remedy=_("Use spaces."))


def _bad_start(where: str, character: str) -> Fault:
    return Fault(
        where,
        _("a value cannot start with {character}.").format(character=character),
        remedy=_("Put the value in quotes."),
    )


def _second_colon(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("a colon stands where no key can be."),
        remedy=_("Give each key a line of its own, or put text with a colon in quotes."),
    )


def _no_colon(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("this line has no colon after its key, or its text is not finished."),
        expected=_("key: value"),
    )


def _open_quote(where: str, _character: str) -> Fault:
    return Fault(where, _("the quote that opens here is never closed."))


def _open_bracket(where: str, character: str) -> Fault:
    return Fault(
        where,
        _("the bracket {character} that opens here is not closed, or a comma is missing.").format(
            character=character
        ),
    )


def _indentation(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("this line does not fit the indentation of the lines before it."),
        remedy=_("Start the keys of one mapping, and the dashes of one list, in one column."),
    )


def _no_value(where: str, _character: str) -> Fault:
    return Fault(where, _("a value is missing before this place."))


def _stray_dash(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("a list entry (-) cannot stand here."),
        remedy=_("Start it on a line of its own."),
    )


def _stray_question(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("a question mark stands where no key can be."),
        remedy=_("Put text that starts with ? in quotes."),
    )


def _escape(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("this backslash escape is unknown."),
        remedy=_("Use single quotes, in which a backslash means itself."),
    )


def _block_text(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("the block text (| or >) is not well formed."),
        remedy=_("Write the text on one line, in quotes."),
    )


def _alias(where: str, _character: str) -> Fault:
    return alias_fault(where)


def _anchor(where: str, _character: str) -> Fault:
    return anchor_fault(where)


def _tag(where: str, _character: str) -> Fault:
    return tag_fault(where)


def _directive(where: str, _character: str) -> Fault:
    return directive_fault(where)


def _after_end(where: str, _character: str) -> Fault:
    return Fault(
        where,
        _("text follows after the end of the document."),
        expected=_("one mapping and nothing else"),
    )


# Part of the scanner's problem or context; whether the place is where the construct starts;
# what to tell. The first that fits is taken.
_PROBLEMS: tuple[tuple[str, bool, Callable[[str, str], Fault]], ...] = (
    ("found character '\\t'", False, _tab),
    ("that cannot start any token", False, _bad_start),
    ("while scanning an alias", True, _alias),
    ("while scanning an anchor", True, _anchor),
    ("tag", True, _tag),
    ("directive", False, _directive),
    ("incompatible YAML document", False, _directive),
    ("unknown escape character", False, _escape),
    ("escape sequence", False, _escape),
    ("mapping values are not allowed", False, _second_colon),
    ("found unexpected ':'", False, _second_colon),
    ("could not find expected ':'", True, _no_colon),
    ("while scanning a quoted scalar", True, _open_quote),
    ("expected ',' or", True, _open_bracket),
    ("unclosed", False, _indentation),
    ("expected <block end>", False, _indentation),
    ("expected the node content", False, _no_value),
    ("sequence entries are not allowed", False, _stray_dash),
    ("mapping keys are not allowed", False, _stray_question),
    ("block scalar", True, _block_text),
    ("<document start>", False, _after_end),
    ("document end marker", False, _after_end),
)
