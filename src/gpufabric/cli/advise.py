"""``gpufabric advise``: eight questions, and the spec that their answers make."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.cli.language import METAVAR, speak
from gpufabric.cli.loading import CatalogFolder
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import check_writable, write_text
from gpufabric.core.text import _
from gpufabric.model.requirement import parse_requirement
from gpufabric.model.yaml_source import read_document
from gpufabric.planner.questions import checked, questions, spec_from, spec_text

__all__ = ["advise"]

SEVERAL = frozenset({"workload", "team", "aim", "value"})
"""Questions whose answer has several parts, so that a list may give them."""

_Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help=_("Spec to write."))]
_File = Annotated[
    Path | None,
    typer.Option(
        "--answers", metavar="FILE", help=_("Answers in YAML, by key; nothing is asked then.")
    ),
]
_Answer = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="KEY=TEXT",
        help=_("One answer; may be given several times. Nothing is asked then."),
    ),
]
_Overwrite = Annotated[
    bool, typer.Option("--overwrite", help=_("Write over a spec that is there."))
]
_Language = Annotated[
    str | None,
    typer.Option(
        "--lang",
        callback=speak,
        is_eager=True,
        metavar=METAVAR,
        help=_("Language of the questions. Left out: that of gpufabric --lang."),
    ),
]
_AsJson = Annotated[
    bool, typer.Option("--json", help=_("Print the spec, its file and the next command."))
]


def advise(  # noqa: PLR0913 - one parameter for each option
    *,
    output: _Output = Path("spec.yaml"),
    answers: _File = None,
    answer: _Answer = None,
    overwrite: _Overwrite = False,
    lang: _Language = None,  # noqa: ARG001 - its callback acts as it is read
    as_json: _AsJson = False,
    catalog: CatalogFolder = None,
) -> None:
    """Ask eight questions and write the spec that they make."""
    known = load_catalog(catalog)
    given = _given(answers, answer)
    spec = _asked(known) if given is None else _made(given, known, answers)
    text = spec_text(spec)
    parse_requirement(text.encode(), str(output), known.known_names())
    _check_free(output, overwrite=overwrite, may_ask=given is None)
    write_text(output, text)
    _tell(output, spec, as_json=as_json)


def _made(given: dict[str, str], known: Catalog, file: Path | None) -> dict[str, Any]:
    """The spec that answers make; what is wrong in a file is told with its place."""
    try:
        return spec_from(given, known)
    except InputError as error:
        if file is None:
            raise
        document = read_document(file, str(file))
        content = document.content()
        keys = content.keys() & given.keys() if isinstance(content, Mapping) else set[str]()
        places = {key: document.at((key,)) for key in keys}
        raise InputError(
            [replace(one, where=places.get(one.where, one.where)) for one in error.faults]
        ) from error


def _given(file: Path | None, single: list[str] | None) -> dict[str, str] | None:
    """The answers of a file and of options, the options first; None where neither is given."""
    if file is None and not single:
        return None
    return (_in_file(file) if file is not None else {}) | _in_options(single or [])


def _in_file(file: Path) -> dict[str, str]:
    """The answers of a file, by key.

    Raises
    ------
    InputError
        With all of: what YAML has twice or refuses, and answers that are no text, number or list.
    """
    document = read_document(file, str(file))
    content = document.content()
    assert isinstance(content, Mapping), "a document is a mapping: read_yaml has checked it"
    faults = list(document.faults)
    found = {}
    for key, value in content.items():
        if _is_typed(value) or (
            key in SEVERAL and isinstance(value, list) and all(map(_is_typed, value))
        ):
            found[str(key)] = _text(value)
            continue
        expected = _("text or a number")
        if key in SEVERAL:
            expected = _("text, a number, or a list of these")
        what = _("a mapping or list is no answer.")
        faults.append(Fault(document.at((str(key),)), what, expected))
    if faults:
        raise InputError(faults)
    return found


def _in_options(single: list[str]) -> dict[str, str]:
    """The answers of options, by key; each is given once."""
    found: dict[str, str] = {}
    faults = []
    for pair in single:
        key, is_there, text = pair.partition("=")
        key = key.strip()
        if not is_there:
            what = _('found "{found}".').format(found=pair[:64])
            faults.append(Fault("--answer", what, "KEY=TEXT"))
        elif key in found:
            what = _("{name}: there are two answers.").format(name=key[:64])
            faults.append(Fault("--answer", what, remedy=_("Name it once.")))
        else:
            found[key] = text
    if faults:
        raise InputError(faults)
    return found


def _is_typed(value: object) -> bool:
    """Whether an answer is one that one could type."""
    return not isinstance(value, Mapping | list)


def _text(value: object) -> str:
    """An answer as one would type it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(_text(entry) for entry in value)
    return "" if value is None else str(value)


def _asked(known: Catalog) -> dict[str, Any]:
    """Ask question by question, each again until its answer holds, and return the spec."""
    given: dict[str, str] = {}
    names = known.known_names()
    for number, question in enumerate(questions(), 1):
        answer = None
        while answer is None:
            typer.echo(f"{number}. {question.text} ({question.hint})", err=True)
            try:
                answer = checked(question, _prompted(question.default), names, given)
            except InputError as error:
                if not error.faults[0].where:
                    raise
                typer.echo("\n".join(f"   {fault}" for fault in error.faults), err=True)
        given[question.key] = answer
    return spec_from(given, known)


def _prompted(default: str) -> str:
    """Return the next line of the input, without its end."""
    shown = f"   [{default}] " if default else "   "
    typer.echo(shown, nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        what = _("the input ended before the last question.")
        remedy = _("Give a file with --answers, or single ones with --answer.")
        raise InputError(Fault("", what, remedy=remedy))
    return line.rstrip("\r\n")


def _check_free(path: Path, *, overwrite: bool, may_ask: bool) -> None:
    """Refuse to write over a file, unless told or allowed when asked."""
    check_writable(path)
    if overwrite or not path.exists():
        return
    if may_ask:
        typer.echo(_("{path} is there. Write over it (yes or no)?").format(path=path), err=True)
        if _prompted("no").strip().lower() in ("yes", "y"):
            return
    raise InputError(
        Fault(
            "--output",
            _("{path} is there already.").format(path=path),
            remedy=_("Name another file, or give --overwrite."),
        )
    )


def _tell(path: Path, spec: dict[str, Any], *, as_json: bool) -> None:
    following = f"gpufabric plan {path} -o {path.with_suffix('')}"
    if as_json:
        content = {"spec": spec, "file": str(path), "next": following}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    typer.echo(_("Written: {path}").format(path=path))
    typer.echo(_("Next: {command}").format(command=following))
