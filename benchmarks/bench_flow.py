"""The flow engine against SimGrid and against the plain way, in CPU seconds on one core.

SimGrid is driven by ``simgrid/drive.cpp``, compiled here: Debian's ``libsimgrid-dev`` and ``g++``
must be installed. It reads the same links and flows from files, with its latency and bandwidth
corrections switched off; reading is not counted, on neither side. Where it runs to the end, the
finish times of both are compared. Peers of minutes run only where ``BENCH_LONG=1``: without it
their cases are left as they stand in ``results.json``.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.flow_cases import (
    all_to_all,
    busy_leaf_spine,
    incast,
    permutation,
    random_arrivals,
    read_peer_case,
    with_random_sizes,
    write_peer_case,
)
from benchmarks.global_recompute import finish_times
from gpufabric.sim.flow import FlowProblem, allocate, simulate

__all__ = ["entries"]

DRIVER = Path(__file__).parent / "simgrid" / "drive.cpp"
PEER_CASE = Path(__file__).parents[2] / "shared/peers/flow/xv1024_20000"
IS_LONG = os.environ.get("BENCH_LONG", "") == "1"
PLAIN = "every event from nothing"

Entry = dict[str, Any]
Make = Callable[[], FlowProblem]


def _arrivals(load: float) -> FlowProblem:
    """The peers' case where its file is there, one like it otherwise."""
    if Path(f"{PEER_CASE}_flows.csv").exists():
        return read_peer_case(PEER_CASE, load)
    return random_arrivals(load)


@dataclass(frozen=True)
class Case:
    """Flows to run, to the end or for one allocation, and whether SimGrid takes minutes."""

    name: str
    make: Make
    only_first: bool = False
    peer_is_long: bool = False
    has_peer: bool = True


AGAINST_SIMGRID = (
    Case("flow, one allocation: 65280 flows", partial(all_to_all, 256), only_first=True),
    Case("flow, one allocation: 1047552 flows", partial(all_to_all, 1024), only_first=True),
    Case("flow, 20000 random flows", partial(_arrivals, 1.0)),
    Case("flow, 20000 random flows, 5 x load", partial(_arrivals, 5.0), peer_is_long=True),
    Case("flow, permutation of 8192, equal", partial(permutation, 32, equal=True)),
    Case("flow, permutation of 8192, random", partial(permutation, 32, equal=False)),
    Case("flow, all to all of 256", partial(all_to_all, 256), peer_is_long=True),
    Case("flow, all to all of 1024", partial(all_to_all, 1024), has_peer=False),
)

AGAINST_PLAIN = {
    "flow, all to all of 64, equal": partial(all_to_all, 64),
    "flow, all to all of 64, random sizes": partial(with_random_sizes, partial(all_to_all, 64)),
    "flow, incast of 1000, random sizes": partial(incast, 1000),
    "flow, 5000 flows on 64 busy hosts": partial(busy_leaf_spine, 64, 5000, 1.2),
    "flow, 10000 flows on 256 flooded hosts": partial(busy_leaf_spine, 256, 10_000, 2.0),
    "flow, permutation of 1024, random sizes": partial(permutation, 16, equal=False),
    "flow, 20000 random flows, plain": partial(_arrivals, 1.0),
}


@dataclass(frozen=True)
class Measured:
    """What one way took, and what it found."""

    seconds: float
    peak_mib: float
    finish_s: NDArray[np.float64]


def _apart(function: Callable[..., Measured], *arguments: object) -> Measured:
    """Run in a process of its own, so that its peak memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def _least(work: Callable[[], NDArray[np.float64]]) -> Measured:
    """Least CPU time of up to five runs after a warm one, within ten seconds."""
    start = time.process_time()
    found = work()
    first_s, seconds = time.process_time() - start, math.inf
    for _ in range(5):
        begun = time.process_time()
        work()
        seconds = min(seconds, time.process_time() - begun)
        if time.process_time() - start - first_s > 10:
            break
    return Measured(seconds, _peak_mib(), found)


def _peak_mib() -> float:
    """Peak memory of this program alone: ``getrusage`` includes that of what started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def _ours(make: Make, only_first: bool) -> Measured:  # noqa: FBT001 - called through a pool
    problem = make()
    simulate(incast(4))  # compiled or read from the disk, not counted
    if only_first:
        return _least(lambda: allocate(problem.capacity_gbps, problem.paths).rates_gbps)
    return _least(lambda: simulate(problem).finish_s)


def _plain(make: Make) -> Measured:
    problem = make()
    finish_times(incast(4))
    return _least(lambda: finish_times(problem))


def _build_driver(folder: Path) -> Path:
    program = folder / "drive"
    if shutil.which("g++") is None:
        message = "g++ and libsimgrid-dev are not installed"
        raise RuntimeError(message)
    command = ["g++", "-O2", "-std=c++17", str(DRIVER), "-o", str(program), "-lsimgrid"]
    subprocess.run(command, check=True)
    return program


def _simgrid(program: Path, case: Case) -> tuple[Measured, str]:
    """Run SimGrid once, or thrice where it is quick; return the least and its version."""
    stem = program.parent / "case"
    write_peer_case(case.make(), stem)
    mode = "first" if case.only_first else "whole"
    files = [f"{stem}_links.csv", f"{stem}_flows.csv", f"{stem}_finish.csv"]
    seconds, peak_mib, version = math.inf, 0.0, ""
    for _ in range(3):
        done = subprocess.run(
            [str(program), *files, mode, "--log=root.thres:error"],
            capture_output=True,
            text=True,
            check=True,
        )
        told = dict(re.findall(r"(\w+)=(\S+)", done.stdout))
        seconds = min(seconds, float(told[f"{mode}_s"]))
        peak_mib, version = float(told["peak_mib"]), told["version"]
        if float(told["whole_s"]) > 3:
            break
    finish_s = np.empty(0)
    if not case.only_first:
        finish_s = np.genfromtxt(Path(files[2]), delimiter=",", skip_header=1, usecols=[1])
    return Measured(seconds, peak_mib, finish_s), version


def _must_agree(name: str, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> None:
    worst = float(np.abs(ours / theirs - 1).max())
    print(f"{name}: finish times differ by {worst:.1e} relative at most")
    if not worst < 1e-6:
        message = f"{name}: finish times differ by {worst:.1e} relative"
        raise ValueError(message)


def _entry(name: str, ours: Measured, peer: str | None, theirs: Measured | None) -> Entry:
    return {
        "name": name,
        "ours_s": round(ours.seconds, 5),
        "peer": peer,
        "peer_s": None if theirs is None else round(theirs.seconds, 5),
        "ratio": None if theirs is None else round(theirs.seconds / ours.seconds, 2),
        "peak_mib": round(ours.peak_mib),
    }


def _against_simgrid(program: Path, case: Case) -> Entry | None:
    if case.has_peer and case.peer_is_long and not IS_LONG:
        print(f"{case.name}: left as it stands; SimGrid takes minutes (BENCH_LONG=1)")
        return None
    ours = _apart(_ours, case.make, case.only_first)
    if not case.has_peer:
        return _entry(case.name, ours, None, None)
    theirs, version = _simgrid(program, case)
    if not case.only_first:
        _must_agree(case.name, ours.finish_s, theirs.finish_s)
    print(f"{case.name}: SimGrid's peak memory is {theirs.peak_mib:.0f} MiB")
    return _entry(case.name, ours, f"SimGrid {version}", theirs)


def _against_plain(name: str, make: Make) -> Entry:
    ours, theirs = _apart(_ours, make, False), _apart(_plain, make)  # noqa: FBT003
    _must_agree(name, ours.finish_s, theirs.finish_s)
    return _entry(name, ours, PLAIN, theirs)


def entries() -> list[Entry]:
    """Return one entry a case.

    Raises
    ------
    RuntimeError
        If SimGrid cannot be compiled against.
    ValueError
        If a peer finds other finish times.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = _build_driver(Path(folder))
        found = [_against_simgrid(program, case) for case in AGAINST_SIMGRID]
    found += [_against_plain(name, make) for name, make in AGAINST_PLAIN.items()]
    return [entry for entry in found if entry is not None]
