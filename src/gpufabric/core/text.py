"""Translation of user-facing text: English source strings, Babel catalogues in ``locale/``."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Iterable
from contextvars import ContextVar

from babel.messages.pofile import read_po

__all__ = [
    "LANGUAGES",
    "_",
    "bracketed",
    "current_language",
    "listed",
    "sentences",
    "titled",
    "use_language",
]

LANGUAGES = {"en": "English", "zh_CN": "简体中文"}

_language: ContextVar[str] = ContextVar("gpufabric_language", default="en")


def use_language(language: str) -> None:
    """Make `language`, a key of ``LANGUAGES``, the one that ``_`` translates into.

    Raises
    ------
    KeyError
        If the language has no catalogue.
    """
    if language not in LANGUAGES:
        raise KeyError(language)
    _language.set(language)


def current_language() -> str:
    """Return the key of the language in use."""
    return _language.get()


@functools.cache
def _messages(language: str) -> dict[str, str]:
    if language == "en":
        return {}
    path = importlib.resources.files("gpufabric") / "locale" / language / "messages.po"
    with path.open("rb") as file:
        catalogue = read_po(file, locale=language)
    return {
        str(message.id): str(message.string)
        for message in catalogue
        if message.id and message.string
    }


def sentences(*parts: str) -> str:
    """Return sentences one after the other; Chinese puts no space between them."""
    return ("" if _language.get() == "zh_CN" else " ").join(part for part in parts if part)


def listed(parts: Iterable[str]) -> str:
    """Return things one after the other, with the comma of the language between them."""
    return ("\uff0c" if _language.get() == "zh_CN" else ", ").join(parts)


def titled(title: str, words: str) -> str:
    """Return words with a title before them, and the colon of the language between."""
    return f"{title}\uff1a{words}" if _language.get() == "zh_CN" else f"{title}: {words}"


def bracketed(words: str, parts: Iterable[str]) -> str:
    """Return words with what is listed in the brackets of the language after them."""
    inner = listed(parts)
    if not inner:
        return words
    return f"{words}\uff08{inner}\uff09" if _language.get() == "zh_CN" else f"{words} ({inner})"


def _(message: str) -> str:
    """Return `message` in the language in use; the English text where none is known."""
    return _messages(_language.get()).get(message, message)
