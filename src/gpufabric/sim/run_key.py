"""A key for everything that the result of a run depends on, by which a journal knows it."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gpufabric
from gpufabric.sim.traffic import PATTERNS

__all__ = ["content_of", "key_of"]


@functools.cache
def content_of(pattern: str) -> str:
    """Return the hash of a file of flows; empty for a pattern that is none."""
    path = Path(pattern)
    if pattern in PATTERNS or not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key_of(model: tuple[str, int], parts: Sequence[Any]) -> str:
    """Return the SHA-256, in hex, of JSON-like parts, this version and a model's."""
    text = json.dumps([gpufabric.__version__, *model, *parts], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
