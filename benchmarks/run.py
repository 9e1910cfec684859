"""Run the benchmarks and renew ``results.json``.

``python -m benchmarks.run [NAME…]`` runs every ``bench_NAME.py`` of this folder, or the named
ones, each in a process of its own so that one's memory is not counted for the next. A module
gives ``entries() -> list[dict]`` with the keys of ``KEYS``; results are merged by ``name``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"

KEYS = ("name", "ours_s", "peer", "peer_s", "ratio", "peak_mib")
"""Name; our time [s]; name and time [s] of what we are held against; peer_s / ours_s; peak memory
[MiB]. The peer's three and the memory are None where there is none."""

Entry = dict[str, Any]


def names() -> list[str]:
    """Names of the benchmarks: ``bench_NAME.py``."""
    return sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))


def measure(name: str) -> list[Entry]:
    """Run one benchmark in this process and return its entries, checked.

    Raises
    ------
    ValueError
        If an entry has other keys than ``KEYS``.
    """
    entries: list[Entry] = importlib.import_module(f"benchmarks.bench_{name}").entries()
    for entry in entries:
        if set(entry) != set(KEYS):
            message = f"bench_{name}: an entry has the keys {sorted(entry)}, not {sorted(KEYS)}"
            raise ValueError(message)
    return [{key: entry[key] for key in KEYS} for entry in entries]


def measure_apart(name: str) -> list[Entry]:
    """Run one benchmark in a new process and return its entries."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(measure, name).result()


def merge(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    """Return both lists as one, sorted by name; a new entry replaces the old one of its name."""
    by_name = {entry["name"]: entry for entry in [*old, *new]}
    return [by_name[name] for name in sorted(by_name)]


def read(path: Path) -> list[Entry]:
    """Return the entries in `path`; none where there is no file."""
    entries: list[Entry] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return entries


def show(entry: Entry) -> str:
    """One line about one entry."""
    line = f"{entry['name']:<44} {entry['ours_s']:>10.4g} s"
    if entry["peak_mib"] is not None:
        line += f" {entry['peak_mib']:>8,.0f} MiB"
    if entry["ratio"] is not None:
        line += f"   {entry['peer']}: {entry['peer_s']:.4g} s, {entry['ratio']:.3g} times ours"
    return line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names; 1 when a benchmark breaks, 2 when there is none such."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as: maxmin (default: all)")
    wanted: list[str] = parser.parse_args(arguments).names or names()
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(names())}")
        return 2
    broken = []
    for name in wanted:
        try:
            entries = measure_apart(name)
        except Exception as error:  # noqa: BLE001 - one broken benchmark does not stop the others
            print(f"{name}: broken: {error!r}")
            broken.append(name)
            continue
        for entry in entries:
            print(show(entry))
        text = json.dumps(merge(read(RESULTS), entries), indent=1, ensure_ascii=False)
        RESULTS.write_text(text + "\n", encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
