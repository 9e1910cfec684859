"""Where the files of an export go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gpufabric.core.files import write_text

__all__ = ["save_export"]


def save_export(files: Mapping[str, str], output: Path) -> list[Path]:
    """Write `files` and return their paths in the order of `files`.

    An only file goes to `output` itself if that ends in a suffix and is no folder; otherwise
    `output` is the folder for the files under their own names.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    if len(files) == 1 and output.suffix and not output.is_dir():
        (text,) = files.values()
        return [write_text(output, text)]
    return [write_text(output / name, text) for name, text in files.items()]
