"""Reading a spec in its long form, whatever is wrong with it, and faults of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpufabric.model.known_names import KnownNames
from gpufabric.model.spec_parts import MAX_GPUS
from gpufabric.model.yaml_source import FieldPath

__all__ = [
    "FieldFault",
    "Spec",
    "candidates_of",
    "host_gpus_of",
    "mapping_at",
    "number_at",
    "size_of",
    "whole_at",
]

Spec = Mapping[str, object]


@dataclass(frozen=True)
class FieldFault:
    """One thing wrong with the field at `path`; see `gpufabric.core.errors.Fault`."""

    path: FieldPath
    what: str
    expected: str = ""
    remedy: str = ""
    is_about_key: bool = False


def host_gpus_of(spec: Spec, known: KnownNames | None) -> int | None:
    """Return the GPUs of one host, as the spec or the catalogue says; None where unknown."""
    host = spec.get("host")
    if isinstance(host, str):
        return known.host_gpus(host) if known is not None else None
    return whole_at(mapping_at(spec, "host"), "gpus")


def size_of(spec: Spec, key: str, host_gpus: int | None) -> int | None:
    """Return today's number of GPUs or hosts, from the other where only that is given."""
    given = whole_at(spec, key)
    if given is not None or host_gpus is None:
        return given
    if key == "gpus":
        hosts = whole_at(spec, "hosts")
        return None if hosts is None else hosts * host_gpus
    gpus = whole_at(spec, "gpus")
    return None if gpus is None or gpus % host_gpus else gpus // host_gpus


def candidates_of(spec: Spec) -> list[Spec]:
    """Return the candidates, with an empty mapping for each that is none."""
    candidates = spec.get("candidates")
    if not isinstance(candidates, list | tuple):
        return []
    return [entry if isinstance(entry, Mapping) else {} for entry in candidates]


def mapping_at(part: Spec, key: str) -> Spec:
    """Return the mapping at `key`, empty where there is none."""
    value = part.get(key)
    return value if isinstance(value, Mapping) else {}


def whole_at(part: Spec, key: str) -> int | None:
    """Return a whole number from 1 to the largest number of GPUs; None for all else."""
    value = part.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 1 <= value <= MAX_GPUS else None


def number_at(part: Spec, key: str) -> float | None:
    """Return the number at `key`; None for all else, and for what is out of all bounds."""
    value = part.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e12 else None
