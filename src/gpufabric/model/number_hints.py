"""How to write a number that was written with a unit, quotes, separators or other digits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpufabric.core.text import _
from gpufabric.model.yaml_text import printable

__all__ = ["number_hint"]

_MAX_LENGTH = 40
_SEPARATED = re.compile(r"[-+]?[0-9]{1,3}([_, ][0-9]{3})+(\.[0-9]+)?")
_BARE = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?")
_WITH_UNIT = re.compile(r"(?P<number>[-+]?[0-9]+(\.[0-9]+)?)\s*(?P<unit>[A-Za-z%$/]+)")

# Suffix of a field's name: the unit of its number, and others as multiples of it.
_UNITS: tuple[tuple[str, str, Mapping[str, float]], ...] = (
    (
        "_gbps",
        "Gb/s",
        {
            **dict.fromkeys(("G", "g", "Gb", "gb", "Gbps", "gbps", "Gb/s", "Gbit/s", "GbE"), 1),
            **dict.fromkeys(("T", "t", "Tb", "tb", "Tbps", "tbps", "Tb/s", "Tbit/s"), 1000),
            **dict.fromkeys(("M", "m", "Mb", "mb", "Mbps", "mbps", "Mb/s", "Mbit/s"), 0.001),
            **dict.fromkeys(("GB/s", "GBps"), 8),
        },
    ),
    ("usd_per_kwh", "USD/kWh", {"$": 1, "USD": 1, "usd": 1, "USD/kWh": 1, "$/kWh": 1}),
    ("_kw", "kW", {"kW": 1, "KW": 1, "kw": 1, "W": 0.001, "w": 0.001, "MW": 1000}),
    ("_m", "m", {"m": 1, "M": 1, "cm": 0.01, "mm": 0.001, "ft": 0.3048}),
    ("_pct", "%", {"%": 1, "pct": 1, "percent": 1}),
    ("_usd", "USD", {"$": 1, "USD": 1, "usd": 1, "k": 1000, "K": 1000}),
    ("_units", "rack units", {"U": 1, "u": 1, "RU": 1, "ru": 1}),
    ("ru", "rack units", {"U": 1, "u": 1, "RU": 1, "ru": 1}),
)


def number_hint(text: str, field: str, *, is_whole: bool) -> str:
    """Return how to write `text` as the number that `field` wants; empty where unclear.

    Examples
    --------
    >>> number_hint("40 W", "rack_power_kw", is_whole=False)
    'Write 0.04: rack_power_kw is in kW.'
    >>> number_hint("1_024", "gpus", is_whole=True)
    'Write 1024, without separators.'
    """
    text = text.strip()
    if len(text) > _MAX_LENGTH:
        return ""
    if _BARE.fullmatch(text):
        return _bare_hint(text, is_whole=is_whole)
    if _SEPARATED.fullmatch(text):
        return _("Write {number}, without separators.").format(number=re.sub(r"[_, ]", "", text))
    with_unit = _WITH_UNIT.fullmatch(f"{text[1:]}$" if text.startswith("$") else text)
    if with_unit is not None:
        return _unit_hint(float(with_unit["number"]), with_unit["unit"], field)
    if text.isdecimal():
        return _("Write {number}, in the digits 0 to 9.").format(number=int(text))
    return ""


def _bare_hint(text: str, *, is_whole: bool) -> str:
    value = float(text)
    if is_whole and not value.is_integer():
        return ""
    return _("Write the bare number {number}.").format(number=f"{value:.12g}")


def _unit_hint(number: float, unit: str, field: str) -> str:
    for suffix, name, multiples in _UNITS:
        if not field.endswith(suffix):
            continue
        if unit in multiples:
            return _("Write {number}: {field} is in {unit}.").format(
                number=f"{number * multiples[unit]:.12g}", field=printable(field), unit=name
            )
        return _("Write a bare number: {field} is in {unit}.").format(
            field=printable(field), unit=name
        )
    if unit in ("k", "K"):
        return _("Write the number in full, such as {number}.").format(
            number=f"{number * 1000:.12g}"
        )
    return _("Write a bare number, without a unit.")
