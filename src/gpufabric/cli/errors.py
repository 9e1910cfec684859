"""How an error is told: words or JSON on standard error, and the exit code."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import typer

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["FAULT_OF_OURS", "INTERRUPTED", "USAGE_ERROR", "tell", "tell_bug", "unwritable_output"]

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises on a wrong option or argument."""

USAGE_ERROR = 2
FAULT_OF_OURS = 3
INTERRUPTED = 130


def tell(error: Exception, *, as_json: bool) -> int:
    """Print an error that is not a bug on standard error; return its exit code.

    With `as_json` one line of JSON is printed: ``{"error": {"kind", "exit_code", "faults"}}``.
    """
    code = int(getattr(error, "exit_code", FAULT_OF_OURS))
    faults = _faults(error)
    if as_json:
        _print_json(type(error).__name__, code, faults)
        return code
    if isinstance(error, UsageError) and faults[0].what.startswith("Usage:"):
        _say(faults[0].what)  # a group alone: its help
        return code
    for fault in faults:
        _say(_("Error: {fault}").format(fault=fault))
    if isinstance(error, UsageError):
        _say(_("Help: gpufabric --help"))
    return code


def unwritable_output(error: OSError) -> InputError:
    """Return what is told where standard output, or a file behind it, takes no more."""
    return InputError(
        Fault(
            _("output"),
            _("cannot be written: {reason}.").format(reason=error.strerror or error),
            remedy=_("Make room on the disk, or send the output elsewhere."),
        )
    )


def _say(line: str) -> None:
    """Print a line on standard error; where that fails too, only the exit code can tell."""
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201


def _faults(error: Exception) -> tuple[Fault, ...]:
    if isinstance(error, InputError):
        return error.faults
    if isinstance(error, UsageError):
        message: Any = error
        return (Fault("", str(message.format_message())),)
    return (Fault("", str(error)),)


def tell_bug(error: Exception, *, as_json: bool, debug: bool) -> int:
    """Say that gpufabric itself failed and where the traceback is; return the exit code."""
    told = "".join(traceback.format_exception(error))
    what = _("gpufabric failed, and it is not your fault: {kind}: {message}").format(
        kind=type(error).__name__, message=str(error).strip() or _("no message")
    )
    remedy = (
        told
        if debug
        else _("Please report it with the traceback in {path}.").format(path=_kept(told))
    )
    if as_json:
        _print_json(type(error).__name__, FAULT_OF_OURS, (Fault("", what, remedy=remedy),))
    else:
        _say(f"{what}\n{remedy}".rstrip())
    return FAULT_OF_OURS


def _kept(text: str) -> str:
    """Write a traceback to a file of its own and return the path; the text where that fails."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="gpufabric-", suffix=".traceback", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
    except OSError:
        return text
    return str(Path(file.name))


def _print_json(kind: str, code: int, faults: tuple[Fault, ...]) -> None:
    content = {
        "error": {
            "kind": kind,
            "exit_code": code,
            "faults": [fault.to_json() for fault in faults],
        }
    }
    _say(json.dumps(content, ensure_ascii=False))
