"""Translations: what the sources say, what the catalogues hold, and what lies between.

``python -m scripts.messages`` renews ``locale/*/messages.po``: a message keeps its translation
as long as its English text stays; new ones come with an empty translation; those that the sources
no longer say are dropped. Nothing in the files depends on the day or the machine.
"""

from __future__ import annotations

import io
import re
import string
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from gpufabric.core.text import LANGUAGES

SOURCES = Path("src/gpufabric")
KEYWORDS = {"_": None}
METHODS = [("**.py", "python"), ("**.j2", "jinja2")]

# Header lines that change with the day, the person or the version of Babel.
_CHANGING = re.compile(
    r'^"(?:POT-Creation-Date|PO-Revision-Date|Last-Translator|Language-Team'
    r"|Report-Msgid-Bugs-To|Project-Id-Version|Generated-By).*\n",
    re.MULTILINE,
)


def translated_languages() -> list[str]:
    """Languages that have a catalogue: all but English."""
    return sorted(language for language in LANGUAGES if language != "en")


def catalogue_path(root: Path, language: str) -> Path:
    """Path of the catalogue of `language`."""
    return root / SOURCES / "locale" / language / "messages.po"


def extract(root: Path) -> Catalog:
    """Every message of the sources below `root`, each with the files that say it."""
    found = Catalog()
    options = {"**.j2": {"silent": "false"}}
    source = root / SOURCES
    said = {
        (message, (SOURCES / name).as_posix())
        for name, _line, message, _comments, _context in extract_from_dir(
            source, METHODS, options, KEYWORDS
        )
    }
    for message, path in sorted(said):
        found.add(message, locations=[(path, 0)])
    return found


def read(root: Path, language: str) -> Catalog:
    """Read the catalogue of `language`; an empty one where there is no file yet."""
    path = catalogue_path(root, language)
    if not path.exists():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language)


def faults(root: Path, language: str) -> list[str]:
    """Say what is wrong with the catalogue of `language`, one line a fault."""
    wanted = {str(message.id) for message in extract(root) if message.id}
    held = read(root, language)
    lines = [f"in the sources, not in the catalogue: {text!r}" for text in _missing(wanted, held)]
    lines += [f"no longer in the sources: {text!r}" for text in sorted(_known(held) - wanted)]
    lines += [f"no longer in the sources: {str(key)!r}" for key in sorted(held.obsolete, key=str)]
    for message in held:
        if message.id and str(message.id) in wanted:
            lines += _translation_faults(str(message.id), str(message.string), fuzzy=message.fuzzy)
    return lines


def _known(held: Catalog) -> set[str]:
    return {str(message.id) for message in held if message.id}


def _missing(wanted: set[str], held: Catalog) -> list[str]:
    return sorted(wanted - _known(held))


def _translation_faults(text: str, translation: str, *, fuzzy: bool) -> Iterator[str]:
    if fuzzy:
        yield f"fuzzy: {text!r}"
    if not translation.strip():
        yield f"not translated: {text!r}"
        return
    try:
        matches = placeholders(text) == placeholders(translation)
    except ValueError as error:
        yield f"broken placeholder ({error}): {translation!r}"
        return
    if not matches:
        yield f"placeholders differ: {text!r} and {translation!r}"


def placeholders(text: str) -> set[tuple[str, str, str]]:
    """Names, formats and conversions of the placeholders in `text`.

    Raises
    ------
    ValueError
        If a brace stands alone.

    Examples
    --------
    >>> placeholders("{n_hosts:,} hosts")
    {('n_hosts', ',', '')}
    """
    return {
        (name, spec or "", conversion or "")
        for _literal, name, spec, conversion in string.Formatter().parse(text)
        if name is not None
    }


def renew(root: Path, language: str) -> str:
    """Text of the catalogue of `language` as the sources now want it."""
    held = read(root, language)
    held.update(extract(root), no_fuzzy_matching=True)
    held.fuzzy = False
    file = io.BytesIO()
    write_po(file, held, width=98, sort_output=True, ignore_obsolete=True, include_lineno=False)
    text = file.getvalue().decode("utf-8")
    body = _CHANGING.sub("", text[text.index('msgid ""') :])
    return f"# {LANGUAGES[language]}: text of gpufabric; `make messages` renews this file.\n{body}"


def main() -> int:
    """Write every catalogue and say how much of it is translated."""
    root = Path(__file__).parent.parent
    for language in translated_languages():
        path = catalogue_path(root, language)
        text = renew(root, language)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        messages = [message for message in read(root, language) if message.id]
        done = sum(bool(message.string) for message in messages)
        print(f"{path.relative_to(root)}: {done} of {len(messages)} translated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
