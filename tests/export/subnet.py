"""A subnet in ibsim with the real programs on it, and what they print."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NUMBER = itertools.count()
_READY_S = 20
_PROGRAM_S = 120


class Subnet(NamedTuple):
    """A running ibsim and the folder of its files."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str, host: str = "") -> str:
        """Run an InfiniBand program inside the subnet and return what it prints."""
        environment = {**self.environment, "LD_PRELOAD": str(preload())}
        if host:
            environment["SIM_HOST"] = host
        done = subprocess.run(
            command,
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_PROGRAM_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def opensm(self, *options: str) -> str:
        """Run one sweep of OpenSM with its dump files in the folder; return its log."""
        log = self.folder / "opensm.log"
        dumps = ("-D", "0x43", "--dump_files_dir", f"{self.folder}/")
        self.run("opensm", "-e", "-o", "-f", str(log), "--maxsmps", "16", *dumps, *options)
        return log.read_text(encoding="utf-8", errors="replace")


def preload() -> Path:
    """Library that sends the MADs of a program to ibsim."""
    return next(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))


@contextlib.contextmanager
def running(netlist: str, folder: Path) -> Iterator[Subnet]:
    """Start ibsim with its own socket on `netlist`; it is gone when the block ends."""
    (folder / "fabric.net").write_text(netlist, encoding="utf-8")
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    environment = {
        **os.environ,
        "PATH": path,
        "IBSIM_SOCKNAME": f"gpufabric-{os.getpid()}-{next(_NUMBER)}",
        "OSM_CACHE_DIR": str(folder),
        "OSM_TMP_DIR": str(folder),
    }
    sizes = ("-N", "20000", "-S", "2000", "-P", "200000")
    output = folder / "ibsim.out"
    with output.open("wb") as file:
        simulator = subprocess.Popen(
            ["ibsim", "-s", "-n", *sizes, "fabric.net"],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_ready(simulator, output)
            yield Subnet(folder, environment)
        finally:
            simulator.terminate()
            try:
                simulator.wait(5)
            except subprocess.TimeoutExpired:
                simulator.kill()
                simulator.wait()


def _wait_until_ready(simulator: subprocess.Popen[bytes], output: Path) -> None:
    end = time.monotonic() + _READY_S
    while "simulator ready" not in output.read_text(encoding="utf-8", errors="replace"):
        assert simulator.poll() is None, output.read_text(encoding="utf-8", errors="replace")
        assert time.monotonic() < end, "ibsim is not ready"
        time.sleep(0.02)


def cables(text: str) -> dict[frozenset[tuple[str, int]], str]:
    """Links in the form of ibnetdiscover: both ends (node description, port), and the speed.

    Every link must be written at both of its ends, and the same way.
    """
    found: dict[frozenset[tuple[str, int]], list[str]] = {}
    descriptions: dict[str, str] = {}
    raw: list[tuple[str, int, str, int, str]] = []
    own = ""
    for line in text.splitlines():
        block = re.match(r'(?:Switch|Ca)\t\d+ "(\S+)"\t+# "([^"]*)"', line)
        port = re.match(r'\[(\d+)\](?:\([0-9a-f]+\))? *\t"(\S+)"\[(\d+)\].* (\d+x\w+)$', line)
        if block:
            own = block[1]
            assert own not in descriptions, f"{own} twice"
            descriptions[own] = block[2]
        elif port:
            raw.append((own, int(port[1]), port[2], int(port[3]), port[4]))
        else:
            assert not line.startswith(("[", "Switch", "Ca")), f"not understood: {line}"
    for near, near_port, far, far_port, speed in raw:
        key = frozenset([(descriptions[near], near_port), (descriptions[far], far_port)])
        found.setdefault(key, []).append(speed)
    assert all(len(speeds) == 2 and len(set(speeds)) == 1 for speeds in found.values())
    return {key: speeds[0] for key, speeds in found.items()}
