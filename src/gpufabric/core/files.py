"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _

__all__ = ["check_folder_writable", "check_writable", "write_bytes", "write_text", "writing"]


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Give a binary file that takes the name `path` only when the block ends without error.

    The folder is made where it is missing. The bytes go to a temporary file beside the
    target, are flushed to the disk, and the file is then renamed over the target. What is no
    ordinary file, such as a device, is never replaced.

    Raises
    ------
    InputError
        If the folder cannot be made or written to, the target is no ordinary file, or the disk
        is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_target(path)
        # Cut, so that a name of the greatest length leaves room for what mkstemp adds.
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:50]}.", dir=path.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _unwritable(path, error) from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise


def check_writable(path: Path) -> None:
    """Check that a file could be written at `path`, before the work whose result it is to hold.

    Nothing is left behind: folders that are missing are not made.

    Raises
    ------
    InputError
        As ``writing`` does, but for a disk that fills up meanwhile.
    """
    try:
        _check_target(path)
        _try(path.parent)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _unwritable(path, error) from error


def check_folder_writable(folder: Path) -> None:
    """Check that files could be written in `folder`, which need not be there yet.

    Raises
    ------
    InputError
        If they could not.
    """
    try:
        _try(folder)
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from error


def _try(folder: Path) -> None:
    """Make a file without a name in a folder, or in the nearest one above that there is."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def _check_target(path: Path) -> None:
    """Refuse a folder, and a device, pipe or socket: renaming a file over it would destroy it."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, _("it is not a regular file"))


def _unwritable(path: Path, error: OSError | ValueError) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(
        Fault(
            str(path),
            _("cannot be written: {reason}.").format(reason=reason),
            remedy=_("Choose another output path or change its permissions."),
        )
    )


def write_bytes(path: Path, content: bytes) -> Path:
    """Write `content` to `path` whole or not at all; return `path`."""
    with writing(path) as file:
        file.write(content)
    return path


def write_text(path: Path, content: str) -> Path:
    """Write `content` in UTF-8 to `path` whole or not at all; return `path`."""
    return write_bytes(path, content.encode("utf-8"))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
