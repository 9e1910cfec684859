"""Where results are to go, checked before the work begins."""

from __future__ import annotations

import os
from pathlib import Path

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import check_folder_writable
from gpufabric.core.text import _

__all__ = ["check_output_folder"]


def check_output_folder(folder: Path | None) -> None:
    """Raise if results cannot be written to the folder of ``-o``; None is none.

    Raises
    ------
    InputError
        If it is no folder, or cannot be written.
    """
    if folder is None:
        return
    if os.path.isfile(folder):  # noqa: PTH113 - Path.is_file raises for a name too long
        raise InputError(Fault("-o", _("{path} is no folder.").format(path=folder)))
    check_folder_writable(folder)
