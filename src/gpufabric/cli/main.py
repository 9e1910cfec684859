"""``gpufabric``: the options of every command, and the only place where errors are caught."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TextIO

import typer

import gpufabric
from gpufabric.cli.errors import INTERRUPTED, UsageError, tell, tell_bug, unwritable_output
from gpufabric.cli.language import METAVAR, speak
from gpufabric.cli.lazy import LazyGroup
from gpufabric.core.errors import GpufabricError
from gpufabric.core.text import _

__all__ = ["app", "main"]

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says where there is no room to write to."""

BROKEN_PIPE = 141
"""What a shell reports of a program that a closed pipe ended."""

app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
        callback=speak,
        is_eager=True,
        metavar=METAVAR,
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
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show
    with _ended_in_order():
        code = _run(words)
    if code != BROKEN_PIPE:
        code = _flushed(code, as_json="--json" in words)
    sys.exit(code)


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let a polite signal to end unwind the command, so that half-written output is removed."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before: dict[signal.Signals, Any] = {}
    with contextlib.suppress(ValueError):  # not the main thread: its signals are another's
        for name in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(name) is signal.SIG_DFL:
                before[name] = signal.signal(name, leave)
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _open_missing_streams() -> None:
    """Give a standard stream that the caller closed somewhere to go, so that printing works."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nowhere, "w", encoding="utf-8"))


def _run(words: list[str]) -> int:
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
        _forget(sys.stdout)
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - whatever it is, the user is told in words
        return _told(error, words)
    return 0


def _told(error: Exception, words: list[str]) -> int:
    """Tell what went wrong; return the exit code."""
    as_json = "--json" in words
    if isinstance(error, GpufabricError | UsageError):
        return tell(error, as_json=as_json)
    if isinstance(error, OSError) and error.errno in FULL:
        return tell(unwritable_output(error), as_json=as_json)
    return tell_bug(error, as_json=as_json, debug="--debug" in words)


def _flushed(code: int, *, as_json: bool) -> int:
    """Write out what is buffered; a closed pipe is no error to speak of, a full disk is."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = BROKEN_PIPE
    except OSError as error:
        code = tell(unwritable_output(error), as_json=as_json)
    else:
        return code
    _forget(sys.stdout)
    return code


def _forget(stream: TextIO) -> None:
    """Send what `stream` could not write nowhere, so that leaving does not try it again."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    main()
