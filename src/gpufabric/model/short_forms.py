"""The short forms of a spec written out: names for candidates, ``2:1``, ``true`` for a network.

Each function takes what the file says and returns the long form; what is in neither form is
returned as it is, for the model to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = [
    "AUTO",
    "FABRICS",
    "GENERATIONS",
    "RATIO_PATTERN",
    "SHORT_CANDIDATE_PATTERN",
    "TIERS",
    "long_assumption",
    "long_candidate",
    "long_candidates",
    "long_network",
    "long_offers",
    "long_oversubscription",
    "long_ratio",
    "long_spec",
    "long_switch",
]

FABRICS = ("infiniband", "roce")
GENERATIONS = ("hdr", "ndr", "xdr")
TIERS = ("leaf", "spine", "core")
BEST = "best"
AUTO = "auto"
"""Instead of a list of candidates: the planner looks at every kind."""

_EVERY_KIND: tuple[dict[str, object], ...] = (
    {"name": "infiniband", "fabric": "infiniband"},
    {"name": "infiniband-rail", "fabric": "infiniband", "topology": "rail"},
    {"name": "infiniband-2-to-1", "fabric": "infiniband", "oversubscription": "2:1"},
    {"name": "roce", "fabric": "roce"},
    {"name": "roce-64x400g", "fabric": "roce", "switch": "th4-64x400g"},
    {"name": "roce-64x800g", "fabric": "roce", "switch": "th5-64x800g"},
    {"name": "roce-rail", "fabric": "roce", "topology": "rail"},
    {"name": "roce-rail-only", "fabric": "roce", "topology": "rail-only"},
    {"name": "roce-dual-tor", "fabric": "roce", "topology": "dual-tor"},
    {"name": "roce-multi-plane", "fabric": "roce", "topology": "multi-plane"},
    {"name": "roce-2-to-1", "fabric": "roce", "oversubscription": "2:1"},
)
"""What ``auto`` stands for: fabrics, families, planes, blocking, classes of switches."""

RATIO_PATTERN = r"^[0-9]{1,6}(\.[0-9]{1,6})?:[0-9]{1,6}(\.[0-9]{1,6})?$"
SHORT_CANDIDATE_PATTERN = r"^(infiniband(-(hdr|ndr|xdr))?|roce)(:[^:/\s\\]([^:/\\]*[^:/\s\\])?)?$"

_RATIO = re.compile(RATIO_PATTERN)
_SHORT = re.compile(SHORT_CANDIDATE_PATTERN)


def long_candidate(value: object) -> object:
    """Return a candidate as a mapping.

    Examples
    --------
    >>> long_candidate("infiniband-ndr")
    {'name': 'infiniband-ndr', 'fabric': 'infiniband', 'generation': 'ndr'}
    >>> long_candidate("roce:sn5600")["switch"]
    {'leaf': 'sn5600', 'spine': 'sn5600', 'core': 'sn5600'}
    """
    if isinstance(value, str):
        return _from_name(value)
    if not isinstance(value, Mapping):
        return value
    long = dict(value)
    if "switch" in long:
        long["switch"] = long_switch(long["switch"])
    if "oversubscription" in long:
        long["oversubscription"] = long_oversubscription(long["oversubscription"])
    return long


def long_candidates(value: object) -> object:
    """Return a list of candidates as mappings, each with a name.

    A candidate without a name is called by its short form or fabric, with -2, -3 … where that
    is taken. ``auto`` stands for one of each kind, all of them optional.

    Examples
    --------
    >>> [entry["name"] for entry in long_candidates(["roce", {"fabric": "roce"}, "roce:sn5600"])]
    ['roce', 'roce-2', 'roce-sn5600']
    """
    if value == AUTO:
        return [{**entry, "optional": True} for entry in _EVERY_KIND]
    if not isinstance(value, list | tuple):
        return value
    candidates = [long_candidate(entry) for entry in value]
    taken = {name.lower() for name in map(_given_name, value) if name}
    for given, candidate in zip(value, candidates, strict=True):
        if isinstance(candidate, dict) and not _is_named(given):
            base = candidate["name"] if isinstance(given, str) else candidate.get("fabric")
            if isinstance(given, str) or base in FABRICS:
                candidate["name"] = _free_name(str(base), taken)
                taken.add(candidate["name"].lower())
    return candidates


def long_switch(value: object) -> object:
    """Return the choice of switches by tier."""
    if isinstance(value, str):
        return dict.fromkeys(TIERS, value)
    return value


def long_oversubscription(value: object) -> object:
    """Return oversubscription by tier as numbers.

    Examples
    --------
    >>> long_oversubscription("2:1"), long_oversubscription([1, "7:1"])
    ({'leaf': 2.0}, {'leaf': 1, 'spine': 7.0})
    """
    if isinstance(value, Mapping):
        return {tier: long_ratio(part) for tier, part in value.items()}
    if isinstance(value, list | tuple):
        if not 1 <= len(value) <= len(TIERS) - 1:
            return value
        return {tier: long_ratio(part) for tier, part in zip(TIERS, value, strict=False)}
    ratio = long_ratio(value)
    is_number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
    return {"leaf": ratio} if is_number else value


def long_ratio(value: object) -> object:
    """Return down capacity over up capacity of ``"2:1"``; any other value as it is."""
    if not (isinstance(value, str) and _RATIO.fullmatch(value)):
        return value
    down, _colon, up = value.partition(":")
    return float(down) / float(up) if float(up) else value


def long_network(value: object) -> object:
    """Return a wish for a storage or management network as a mapping."""
    return {"wanted": value} if isinstance(value, bool) else value


def long_offers(value: object) -> object:
    """Return offers as a list: none where subscriptions are not to be looked at.

    Examples
    --------
    >>> long_offers(False), long_offers(True)
    ([], [{'name': 'naas'}])
    """
    if isinstance(value, bool):
        return [{"name": "naas"}] if value else []
    return value


def long_assumption(value: object) -> object:
    """Return an assumption as a mapping.

    Examples
    --------
    >>> long_assumption([1, 2, 4])
    {'low': 1.0, 'mid': 2.0, 'high': 4.0}
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"low": float(value), "mid": float(value), "high": float(value)}
    if isinstance(value, list | tuple) and len(value) == 3 and all(map(_is_number, value)):
        return dict(zip(("low", "mid", "high"), map(float, value), strict=True))
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def long_spec(spec: Mapping[str, object]) -> dict[str, object]:
    """Return a whole spec in its long form."""
    long = dict(spec)
    if "candidates" in long:
        long["candidates"] = long_candidates(long["candidates"])
    return long


def _from_name(text: str) -> object:
    if not _SHORT.fullmatch(text):
        return text
    head, _colon, switch = text.partition(":")
    fabric, _dash, generation = head.partition("-")
    long: dict[str, object] = {"name": text.replace(":", "-"), "fabric": fabric}
    if generation:
        long["generation"] = generation
    if switch:
        long["switch"] = long_switch(switch)
    return long


def _is_named(candidate: object) -> bool:
    return isinstance(candidate, Mapping) and candidate.get("name") is not None


def _given_name(candidate: object) -> str:
    name = candidate.get("name") if isinstance(candidate, Mapping) else None
    return name if isinstance(name, str) else ""


def _free_name(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name.lower() in taken:
        number += 1
        name = f"{base}-{number}"
    return name
