"""Arrays that a kernel reads all over: each begins at a cache line, large ones on large pages.

A processor knows where a few thousand pages are; what lies on others costs a walk through tables.
Large pages, which Linux gives when asked, make hundreds of pages one.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.structs import Records

__all__ = ["line_longs", "line_records"]

CACHE_LINE = 64  # [byte]
LARGE_PAGE = 2**21  # [byte]
LEAST_BYTES = 2**19
"""Smaller arrays stay on small pages: a large one would be mostly empty."""


def line_records(dtype: np.dtype[np.void], size: int) -> Records:
    """Return records, all zero, that begin where a cache line does."""
    return _zeros(size * dtype.itemsize).view(dtype).view(np.recarray)


def line_longs(size: int) -> NDArray[np.int64]:
    """Return int64[size], all zero, that begins where a cache line does."""
    return _zeros(size * 8).view(np.int64)


def _zeros(n_bytes: int) -> NDArray[np.uint8]:
    if n_bytes < LEAST_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        raw, step = np.zeros(n_bytes + CACHE_LINE, np.uint8), CACHE_LINE
    else:
        pages = mmap.mmap(-1, n_bytes + LARGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
        raw, step = np.frombuffer(pages, np.uint8), LARGE_PAGE
    skip = -raw.ctypes.data % step
    return raw[skip : skip + n_bytes]
