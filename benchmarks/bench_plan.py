"""A whole plan against the time that its reader will wait.

``make plan`` with advice and report may take 20 s warm for 1,024 GPUs, two candidates and 10,000
draws, 60 s for 16,384; the ratio is that limit over ours. The limit between is our own.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent.parent / "examples"
LIMITS_S = {"train-1024": 20.0, "train-4096": 30.0, "train-16384": 60.0}


def entries() -> list[dict[str, Any]]:
    """Return one entry an example: the whole command, files written, in wall seconds."""
    found = []
    for name, limit_s in LIMITS_S.items():
        folder = Path(tempfile.mkdtemp())
        command = [
            sys.executable,
            "-m",
            "gpufabric.cli.main",
            "plan",
            str(EXAMPLES / f"{name}.yaml"),
        ]
        runs = []
        for run in range(3):
            start = time.perf_counter()
            subprocess.run(
                [*command, "-o", str(folder / str(run))], check=True, capture_output=True
            )
            runs.append(time.perf_counter() - start)
        shutil.rmtree(folder)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        ours = min(runs)
        print(f"plan {name}: {ours:.2f} s of {limit_s:.0f} s")
        found.append(
            {
                "name": f"plan {name}",
                "ours_s": round(ours, 3),
                "peer": "time allowed",
                "peer_s": limit_s,
                "ratio": round(limit_s / ours, 2),
                "peak_mib": round(peak),
            }
        )
    return found
