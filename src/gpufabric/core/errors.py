"""The exceptions of gpufabric, by who must act.

::

    GpufabricError
    ├── InputError        the user: a file, option or value is wrong (exit code 2)
    ├── UnsupportedError  nobody: known, and not done here (exit code 2)
    ├── DeviceError       the remote: a device or service answered wrongly (exit code 3)
    └── StateError        the caller: the request conflicts with what exists (exit code 2)

Anything else that is raised is our own fault (exit code 3) and is caught only at the edges.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpufabric.core.text import _

__all__ = [
    "DeviceError",
    "Fault",
    "GpufabricError",
    "InputError",
    "StateError",
    "UnsupportedError",
    "nearest",
]


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, in four answers: where, what, what is expected, what to do.

    Parameters
    ----------
    where
        Place of the fault: ``file:line:column`` and the field's path, or an option's name.
    what
        What was found, with the value.
    expected
        What is allowed there; empty where `what` already says it.
    remedy
        What to do next, such as the nearest valid name.
    """

    where: str
    what: str
    expected: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.expected:
            text += " " + _("Expected: {expected}.").format(expected=self.expected.rstrip("."))
        if self.remedy:
            text += " " + self.remedy
        return text

    def to_json(self) -> dict[str, str]:
        """Return the four answers as a mapping of strings."""
        return {
            "where": self.where,
            "what": self.what,
            "expected": self.expected,
            "remedy": self.remedy,
        }


class GpufabricError(Exception):
    """Root of every error that gpufabric raises on purpose."""

    exit_code = 3


class InputError(GpufabricError):
    """The user's input is wrong; all faults found are carried together.

    Parameters
    ----------
    faults
        One fault or all the faults of one input.
    """

    exit_code = 2

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        found = (faults,) if isinstance(faults, Fault) else tuple(faults)
        self.faults: tuple[Fault, ...] = found
        super().__init__("\n".join(str(fault) for fault in found))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)  # whole, when a worker process raises it


class UnsupportedError(GpufabricError):
    """A thing gpufabric knows and does not do."""

    exit_code = 2


class DeviceError(GpufabricError):
    """A device or remote service failed or answered wrongly."""

    exit_code = 3


class StateError(GpufabricError):
    """The request conflicts with what exists."""

    exit_code = 2


def nearest(word: str, allowed: Sequence[str]) -> str:
    """Return a remedy that names the valid word nearest to `word`, or an empty string.

    Examples
    --------
    >>> nearest("infiniban", ["infiniband", "roce"])
    'Did you mean "infiniband"?'
    >>> nearest("xyz", ["infiniband", "roce"])
    ''
    """
    lower = {name.lower(): name for name in allowed}
    match = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if not match:
        return ""
    return _('Did you mean "{name}"?').format(name=lower[match[0]])
