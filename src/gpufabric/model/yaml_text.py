"""Bytes of a YAML file as checked text: size, encoding, characters, tabs and line lengths."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = ["MAX_BYTES", "MAX_LINE", "decode", "printable", "read_bytes"]

MAX_BYTES = 1 << 20
"""Largest file that is read at all [byte]."""

MAX_LINE = 4096
"""Longest line that is scanned [character]; the scanner's cost may grow with its square."""

MAX_FAULTS = 20
"""Most faults of characters that are listed of one file."""

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_TAB_INDENT = re.compile(r"^ *\t[ \t]*(?=[^ \t#])")


def printable(text: str, limit: int = 48) -> str:
    r"""Return `text` fit for a message: one line, unseen characters escaped, cut at `limit`.

    Examples
    --------
    >>> printable("bell" + chr(7))
    'bell\\x07'
    >>> printable("x" * 60, limit=8)
    'xxxxxxx…'
    """
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in shown
    )


def read_bytes(path: Path, where: str) -> bytes:
    """Return the bytes of the ordinary file `path`, of at most ``MAX_BYTES``.

    A pipe, device or socket is refused without waiting for it, and a file that is too
    large without reading it.

    Raises
    ------
    InputError
        If `path` is no ordinary file, cannot be read or is too large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InputError(
            Fault(where, _("there is no such file."), remedy=_neighbour(path))
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(_unreadable(where, error)) from error
    try:
        status = os.fstat(handle)
        _check_kind(status, where)
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(_unreadable(where, error)) from error
    finally:
        os.close(handle)
    return content


def decode(content: bytes, where: str) -> str:
    """Return `content` as text, once it is known that a YAML scanner may safely have it.

    Raises
    ------
    InputError
        If it is too large, not UTF-8 or starts with a byte order mark, or has control
        characters, tabs in indentation or lines that are too long.
    """
    if len(content) > MAX_BYTES:
        raise InputError(_too_large(where, len(content)))
    if content.startswith(b"\xef\xbb\xbf"):
        raise InputError(
            Fault(
                f"{where}:1:1",
                _("the file starts with a byte order mark (bytes EF BB BF)."),
                remedy=_('Save it as "UTF-8", not as "UTF-8 with BOM".'),
            )
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(_not_utf8(content, error.start, where)) from error
    faults = list(_character_faults(text, where))
    if faults:
        raise InputError(faults)
    return text


def _check_kind(status: os.stat_result, where: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise InputError(
            Fault(where, _("this is a folder, not a file."), remedy=_("Name a file in it."))
        )
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            Fault(
                where,
                _("this is a pipe, device or socket, not an ordinary file."),
                remedy=_("Save its content in a file and name that."),
            )
        )
    if status.st_size > MAX_BYTES:
        raise InputError(_too_large(where, status.st_size))


def _neighbour(path: Path) -> str:
    """Return a remedy that names a file beside `path` with a similar name."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())[:1000]
    except OSError:
        return _("Check the path.")
    return nearest(path.name, names) or _("Check the path.")


def _unreadable(where: str, error: OSError | ValueError) -> Fault:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Fault(
        where,
        _("the file cannot be read: {reason}.").format(reason=reason),
        remedy=_("Check the path and its permissions."),
    )


def _too_large(where: str, size_bytes: int) -> Fault:
    return Fault(
        where,
        _("the file has {size} bytes.").format(size=f"{size_bytes:,}"),
        expected=_("at most {limit} bytes").format(limit=f"{MAX_BYTES:,}"),
        remedy=_("Check the path."),
    )


def _not_utf8(content: bytes, offset: int, where: str) -> Fault:
    lines = _LINE_BREAK.split(content[:offset].decode("utf-8"))
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        remedy = _("It looks like UTF-16. Save it as UTF-8.")
    else:
        remedy = _("Save the file as UTF-8.")
    return Fault(
        f"{where}:{len(lines)}:{len(lines[-1]) + 1}",
        _("byte {byte} at offset {offset} is not UTF-8.").format(
            byte=f"0x{content[offset]:02X}", offset=f"{offset:,}"
        ),
        remedy=remedy,
    )


def _character_faults(text: str, where: str) -> Iterator[Fault]:
    count = 0
    for number, line in enumerate(_LINE_BREAK.split(text), start=1):
        fault = _fault_of_line(line, f"{where}:{number}")
        if fault is not None:
            yield fault
            count += 1
        if count == MAX_FAULTS:
            return


def _fault_of_line(line: str, where: str) -> Fault | None:
    if len(line) > MAX_LINE:
        return Fault(
            f"{where}:1",
            _("the line has {length} characters.").format(length=f"{len(line):,}"),
            expected=_("at most {limit} characters a line").format(limit=f"{MAX_LINE:,}"),
        )
    bad = _FORBIDDEN.search(line)
    if bad is not None:
        return Fault(
            f"{where}:{bad.start() + 1}",
            _("the control character U+{code} stands here.").format(code=f"{ord(bad.group()):04X}"),
            remedy=_("Delete it; an editor may not show it."),
        )
    tab = _TAB_INDENT.match(line)
    if tab is not None:
        return Fault(
            f"{where}:{line.index(chr(9)) + 1}",
            _("a tab is used for indentation."),
            remedy=_("Indent with spaces."),
        )
    return None
