"""The kernels of the flow engine again: as plain Python, and compiled with checked bounds.

Fewer examples each: plain Python is slow, and code with checked bounds is compiled anew. The
bounds run takes the tests that call all kernels through the engine's two entries, and leaves out
the optimiser, which the check does not need.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT

PLAIN = {"NUMBA_DISABLE_JIT": "1", "KERNEL_EXAMPLES": "40"}
BOUNDS = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "KERNEL_EXAMPLES": "60"}
ENTRIES = ["maxmin", "flow"]
ALL = ["heap", "pairing", "bundle", "order", "series", *ENTRIES]


@pytest.mark.parametrize(
    ("mode", "names"), [(PLAIN, ALL), (BOUNDS, ENTRIES)], ids=["plain", "bounds"]
)
def test_kernels_hold(mode: dict[str, str], names: list[str]) -> None:
    files = [f"tests/kernels/test_{name}.py" for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        env={**os.environ, **mode},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
