"""From the start of a process to the first event of a packet run, the kernels compiled before.

Python, imports, the machine code from its folder, and a run of a few packets. Held against the
same Python that imports numpy and numba and ends. Wall-clock time, the best of five.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

RUN = """
from benchmarks.packet_cases import permutation
from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_profiles import roce
simulate_packets(permutation(2, 1_000), roce())
"""
BARE = "import numpy, numba"


def entries() -> list[dict[str, Any]]:
    """Return the one entry."""
    _started_s(RUN)  # compiles the kernels
    ours = min(_started_s(RUN) for _run in range(5))
    bare = min(_started_s(BARE) for _run in range(5))
    return [
        {
            "name": "packet first event of a second process",
            "ours_s": round(ours, 3),
            "peer": "python -c 'import numpy, numba'",
            "peer_s": round(bare, 3),
            "ratio": round(bare / ours, 2),
            "peak_mib": None,
        }
    ]


def _started_s(program: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start
