"""XML as elements that know their line; entities and document types are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers.expat import ExpatError, ParserCreate
from xml.parsers.expat.errors import messages

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["Element", "read_xml"]

MAX_CHARACTERS = 8 << 20
"""Longest text that is read; a host's topology has some 10,000 characters."""

MAX_DEPTH = 64


@dataclass
class Element:
    """One element.

    Parameters
    ----------
    tag, attributes
        As written.
    line
        Where it starts, from 1.
    children
        In order.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Give this element and all below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_xml(text: str, name: str) -> Element:
    """Return the root element of `text`, read from the file `name`.

    Raises
    ------
    InputError
        If the text is too long, is nested too deeply, is no XML, or has a document type.
    """
    if len(text) > MAX_CHARACTERS:
        what = _("the file has more than {n} characters.").format(n=MAX_CHARACTERS)
        raise InputError(Fault(name, what))
    top = Element("", {}, 0)
    stack = [top]
    parser = ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, parser.CurrentLineNumber)
        if len(stack) > MAX_DEPTH:
            what = _("elements are nested more than {n} deep.").format(n=MAX_DEPTH)
            raise InputError(Fault(f"{name}:{element.line}", what))
        stack[-1].children.append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def refuse(*_arguments: object) -> None:
        what = _("a document type or entity is not read.")
        raise InputError(Fault(f"{name}:{parser.CurrentLineNumber}", what))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.strip().encode("utf-8", "replace"), True)  # noqa: FBT003 -- expat takes it by position
    except ExpatError as error:
        lost = text[: len(text) - len(text.lstrip())].count("\n")
        where = f"{name}:{error.lineno + lost}:{error.offset + 1}"
        what = _("not well-formed XML: {reason}.").format(reason=messages[error.code])
        if len(stack) > 1:
            what += " " + _("<{tag}> of line {line} is open.").format(
                tag=stack[-1].tag[:32], line=stack[-1].line + lost
            )
        raise InputError(Fault(where, what, "", _("Take the dump again, whole."))) from error
    lost = text[: len(text) - len(text.lstrip())].count("\n")
    root = top.children[0]
    if lost:
        for element in root.walk():
            element.line += lost
    return root
