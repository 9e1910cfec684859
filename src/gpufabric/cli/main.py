"""``gpufabric``: the options of every command, and the only place where errors are caught."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import gpufabric
from gpufabric.cli.errors import INTERRUPTED, UsageError, tell, tell_bug
from gpufabric.cli.lazy import LazyGroup
from gpufabric.core.errors import GpufabricError, nearest
from gpufabric.core.text import LANGUAGES, _, use_language

__all__ = ["app", "main"]

BROKEN_PIPE = 141
"""What a shell reports of a program that a closed pipe ended."""

app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _speak(language: str) -> str:
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


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"gpufabric {gpufabric.__version__}")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True),
]
_Language = Annotated[
    str,
    typer.Option(
        "--lang",
        envvar="GPUFABRIC_LANG",
        callback=_speak,
        is_eager=True,
        metavar="|".join(LANGUAGES),
    ),
]
_Debug = Annotated[bool, typer.Option("--debug")]


@app.callback()
def options(*, version: _Version = False, lang: _Language = "en", debug: _Debug = False) -> None:
    """Take the options that every command has; they act as they are read."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code.

    Parameters
    ----------
    arguments
        Words after ``gpufabric``; those of the process where None.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show
    code = _run(words)
    if code != BROKEN_PIPE:
        code = _flushed(code)
    if code == BROKEN_PIPE:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run(words: list[str]) -> int:
    as_json = "--json" in words
    command = typer.main.get_command(app)
    try:
        with command.make_context("gpufabric", list(words)) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, EOFError, typer.Abort):
        sys.stderr.write("\n" + _("Interrupted.") + "\n")
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except (GpufabricError, UsageError) as error:
        return tell(error, as_json=as_json)
    except Exception as error:  # noqa: BLE001 - whatever it is, the user is told in words
        return tell_bug(error, as_json=as_json, debug="--debug" in words)
    return 0


def _flushed(code: int) -> int:
    """Write out what is buffered; a closed pipe is no error to speak of."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return BROKEN_PIPE
    return code


if __name__ == "__main__":
    main()
