"""The option that chooses the language, before a command or, where it writes reports, after it."""

from __future__ import annotations

import typer

from gpufabric.core.errors import nearest
from gpufabric.core.text import LANGUAGES, _, use_language

__all__ = ["METAVAR", "speak"]

METAVAR = "|".join(LANGUAGES)


def speak(language: str | None) -> str | None:
    """Make `language` the one that is spoken; None leaves it as it is.

    Raises
    ------
    typer.BadParameter
        If it is none of ours.
    """
    if language is None:
        return None
    names = {name.lower(): name for name in LANGUAGES}
    if language.lower() not in names:
        raise typer.BadParameter(
            _('"{language}" is not one of {names}. {remedy}')
            .format(
                language=language,
                names=", ".join(LANGUAGES),
                remedy=nearest(language, list(LANGUAGES)),
            )
            .strip()
        )
    use_language(names[language.lower()])
    return language
