"""How kernels are compiled, and the folder its machine code is kept in.

numba notices an edit in a kernel's own file and misses one in another file that the kernel calls
or takes a constant from: it then runs the old code without a word. The folder is therefore named
by a hash of every kernel source, of numba's version and of the bounds check, so that other code is
other machine code. ``NUMBA_CACHE_DIR`` moves the folder, ``NUMBA_DISABLE_JIT`` runs plain Python.
Where the folder cannot be written, every process compiles anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from gpufabric.kernels.unsigned import UnsignedIndices
from gpufabric.kernels.whole import PartCompiler, WholeCompiler

__all__ = [
    "FOLDER",
    "inner_kernel",
    "is_compiled",
    "is_kept",
    "kernel",
    "kernel_part",
    "seldom_part",
    "whole_kernel",
]


def _sources_hash() -> str:
    digest = hashlib.sha256(f"{numba.__version__} {numba.config.BOUNDSCHECK}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    base = os.environ.get("NUMBA_CACHE_DIR")
    if base:
        return Path(base) / _sources_hash()
    home = os.environ.get("XDG_CACHE_HOME")
    root = Path(home) if home else Path("~/.cache").expanduser()
    return root / "gpufabric" / "kernels" / _sources_hash()


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


FOLDER = _cache_folder()
is_kept = _is_writable(FOLDER)
"""Whether machine code is kept for the next process."""

numba.config.CACHE_DIR = str(FOLDER)


def is_compiled(module: str) -> bool:
    """Tell whether some machine code of one kernel file is there, or none is needed."""
    return bool(numba.config.DISABLE_JIT) or any(FOLDER.glob(f"*/{module}.*.nbi"))


kernel = numba.njit(cache=is_kept, nogil=True, error_model="numpy")

# For kernels that others call at every event. They allocate nothing, so numba need not count
# references to the arrays handed over, and they are laid into their caller: both together make a
# run of 20,000 flows four times as fast.
inner_kernel = numba.njit(
    cache=is_kept,
    nogil=True,
    error_model="numpy",
    pipeline_class=UnsignedIndices,
    _nrt=False,
    forceinline=True,
)

_like_parts = functools.partial(numba.njit, nogil=True, error_model="numpy", _nrt=False)

# A kernel of very many parts, as the packet engine is: see whole.py. Python that calls a part runs
# it as plain Python.
whole_kernel = _like_parts(cache=is_kept, pipeline_class=WholeCompiler)


def kernel_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a part of a whole kernel that runs at every event: it is laid into its caller."""
    return _part(function, forceinline=True)


def seldom_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a part of a whole kernel that runs seldom, apart where that keeps the rest short."""
    return _part(function)


def _part(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    part: Any = _like_parts(pipeline_class=PartCompiler, **options)(function)
    if not numba.config.DISABLE_JIT:
        part.add_overload = functools.partial(_keep_overload, part)
    return part


def _keep_overload(part: Any, compiled: Any) -> None:
    """Keep a compiled part for its callers alone: there is no machine code that Python may call."""
    part.overloads[tuple(compiled.signature.args)] = compiled
