"""The journal of a sweep: one JSON line for each finished run, on the disk as soon as it ends."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gpufabric.core.errors import Fault, InputError, StateError
from gpufabric.core.files import writing
from gpufabric.core.text import _

__all__ = ["Journal", "open_journal"]

Metrics = Mapping[str, Any]
"""Numbers, None, or lists of numbers."""


class Journal:
    """Results by key, in a file that only grows; made by ``open_journal``.

    A run that was cut off in the middle of a line leaves half a line at the end: it is dropped.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._results: dict[str, Metrics] = {}
        self._read()

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            if line.strip():
                key, metrics = self._parsed(line, number)
                self._results[key] = metrics
        self._file.truncate(whole)
        self._file.seek(whole)

    def _parsed(self, line: bytes, number: int) -> tuple[str, Metrics]:
        try:
            entry = json.loads(line)
            key, metrics = entry["key"], entry["metrics"]
            if isinstance(key, str) and all(_is_value(value) for value in metrics.values()):
                return key, metrics
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        raise InputError(
            Fault(
                f"{self._path}:{number}",
                _("this is no line of a sweep's journal."),
                remedy=_("Delete the line, or choose another folder."),
            )
        )

    def known(self, keys: Iterable[str]) -> Iterator[tuple[str, Metrics]]:
        """Yield those of the keys that have a result, with it."""
        for key in keys:
            if key in self._results:
                yield key, self._results[key]

    def add(self, key: str, metrics: Metrics) -> None:
        """Put down one result; it is on the disk when this returns."""
        self._results[key] = metrics
        self._file.write(_line(key, metrics))
        self._file.flush()
        os.fsync(self._file.fileno())

    def put_in_order(self, keys: Sequence[str]) -> None:
        """Write the file anew: results of other sweeps first, then those of `keys` in order.

        Runs end in any order; so the bytes do not tell how many workers there were.
        """
        mine = dict.fromkeys(keys)
        others = [key for key in self._results if key not in mine]
        with writing(self._path) as file:
            for key in (*others, *mine):
                file.write(_line(key, self._results[key]))


def _is_value(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, int | float) for one in value)
    return value is None or isinstance(value, int | float)


def _line(key: str, metrics: Metrics) -> bytes:
    return json.dumps({"key": key, "metrics": metrics}, allow_nan=False).encode() + b"\n"


@contextlib.contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Give the journal in `path`, made where it is missing; no other process may have it open.

    Raises
    ------
    InputError
        If the file cannot be written, or holds something else.
    StateError
        If another sweep is using it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        what = _("cannot be written: {reason}.").format(reason=error.strerror)
        raise InputError(Fault(str(path), what)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StateError(
                _("{path} is in use by another sweep. Wait, or choose another folder.").format(
                    path=path
                )
            ) from error
        yield Journal(path, file)
