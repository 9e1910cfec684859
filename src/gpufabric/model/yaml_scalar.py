"""What a plain YAML scalar means: the core schema of YAML 1.2, without its ambiguous numbers."""

from __future__ import annotations

import re

__all__ = ["Value", "plain_value"]

Value = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAX_DIGITS = 300


def plain_value(text: str) -> Value:
    """Return the value of the plain (unquoted) scalar `text`.

    Notes
    -----
    Numbers whose meaning changed between YAML 1.1 and 1.2 stay text, so that a field that
    wants a number can refuse them with a reason: leading zeros (``0777``), ``0x10``,
    ``1_024``, ``2:1``. So do ``yes``, ``no``, ``on`` and ``off``.

    Source: YAML 1.2.2, section 10.3.2 "Tag Resolution".

    Examples
    --------
    >>> [plain_value(text) for text in ("1024", "1e3", "true", "yes", "1_024", "2:1", "")]
    [1024, 1000.0, True, 'yes', '1_024', '2:1', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= _MAX_DIGITS else float(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text
