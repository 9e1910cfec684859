"""Runs OpenSM on a fabric that ibsim simulates, and reads what it writes."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufabric.export.ibsim import adapter_guid, ibsim_netlist, switch_guid
from gpufabric.export.registry import ExportOptions
from gpufabric.model.fabric import Fabric

_NUMBERS = itertools.count()
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

Lft = dict[int, list[int]]


@dataclass(frozen=True)
class Subnet:
    """What OpenSM made of a fabric.

    `engine` is the one whose tables it configured. `tables` gives for each switch GUID and each
    port GUID the output ports of its LIDs, in order; `hops` the same with switches and hosts to
    cross. `report` is what ibdmchk says of the tables.
    """

    engine: str
    tables: dict[int, Lft]
    hops: dict[int, Lft]
    report: str

    @property
    def has_credit_loop(self) -> bool:
        found = "credit loops in routing" in self.report
        assert found != ("no credit loops found" in self.report), self.report
        return found

    @property
    def n_dlids(self) -> dict[int, int]:
        """How many switch ports have so many destinations; ports to hosts, and 0, left out.

        ibdmchk counts idle ports only of switches that are not wholly idle.
        """
        rows = self.report.split("NUM-DLIDS NUM-SWITCH-PORTS\n")[1].split("---")[0]
        counts = (line.split() for line in rows.splitlines())
        return {int(dlids): int(ports) for dlids, ports in counts if dlids != "0"}


def netlist(fabric: Fabric, down: Collection[int] = ()) -> str:
    """The netlist of a fabric of one subnet, without the links `down`, at HDR."""
    (text,) = ibsim_netlist(fabric, ExportOptions(speed_cap="hdr")).values()
    ports = {
        _port(fabric, int(fabric.links[end][link])) for link in down for end in ("port_a", "port_b")
    }
    return "\n".join(_without(text, ports))


def _port(fabric: Fabric, port: int) -> tuple[str, int]:
    row = fabric.ports.row(port)
    if row["is_switch"]:
        return f"S-{switch_guid(row['device']):016x}", row["port"] + 1
    return f"H-{adapter_guid(port):016x}", 1


def _without(text: str, ports: set[tuple[str, int]]) -> Iterator[str]:
    device = ""
    for line in text.splitlines():
        header = re.match(r'(?:Switch|Ca)\s+\d+ "(\S+)"', line)
        if header:
            device = header[1]
        number = re.match(r"\[(\d+)\]", line)
        if not (number and (device, int(number[1])) in ports):
            yield line


def run_opensm(
    folder: Path, text: str, engine: str, *, lmc: int = 0, roots: Sequence[int] = ()
) -> Subnet:
    """Route a netlist with OpenSM once; `roots` are rows of switches."""
    (folder / "fabric.net").write_text(text + "\n", encoding="utf-8")
    options = ["-R", engine, "-l", str(lmc)]
    if roots:
        guids = "".join(f"{switch_guid(root):#018x}\n" for root in roots)
        (folder / "roots").write_text(guids, encoding="utf-8")
        options += ["-a", str(folder / "roots")]
    environment = {
        **os.environ,
        "PATH": _PATH,
        "IBSIM_SOCKNAME": f"gpufabric-{os.getpid()}-{next(_NUMBERS)}",
        "OSM_CACHE_DIR": str(folder),
        "OSM_TMP_DIR": str(folder),
    }
    with (folder / "ibsim.out").open("wb") as log:
        simulator = subprocess.Popen(
            ["ibsim", "-s", "-n", "-N", "4096", "-S", "512", "-P", "40000", "fabric.net"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_ready(folder / "ibsim.out", simulator)
        (library,) = Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")
        dump = ["-o", "-e", "-D", "0x43", "--maxsmps", "16", "--dump_files_dir", f"{folder}/"]
        subprocess.run(
            ["opensm", *dump, "-f", str(folder / "opensm.log"), *options],
            env={**environment, "LD_PRELOAD": str(library)},
            capture_output=True,
            check=False,
            timeout=60,
        )
    finally:
        simulator.kill()
        simulator.wait()
    return _read(folder, environment, lmc)


def _wait_until_ready(log: Path, simulator: subprocess.Popen[bytes]) -> None:
    for _ in range(500):
        if b"ready" in log.read_bytes():
            return
        assert simulator.poll() is None, log.read_text(encoding="utf-8")
        time.sleep(0.01)
    raise AssertionError(log.read_text(encoding="utf-8"))


def _read(folder: Path, environment: dict[str, str], lmc: int) -> Subnet:
    log = (folder / "opensm.log").read_text(encoding="utf-8", errors="replace")
    engines = re.findall(r"(\w+) tables configured on all switches", log)
    assert engines, log[-2000:]
    tables, owner = _tables(folder / "opensm-lfts.dump")
    names = ["-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs"]
    # It crashes after its verdict on rings: the text counts, not the exit status.
    report = subprocess.run(
        ["ibdmchk", *names, "-l", str(lmc)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    ).stdout
    return Subnet(engines[-1], tables, _hops(folder / "opensm.fdbs", owner), report)


def _tables(path: Path) -> tuple[dict[int, Lft], dict[int, int]]:
    """Tables by GUID, and the port GUID of each LID."""
    tables: dict[int, Lft] = {}
    owner: dict[int, int] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        header = re.match(r"Unicast lids .* guid (0x\w+)", line)
        entry = re.match(r"(0x\w+) (\d+) .*portguid (0x\w+)", line)
        if header:
            lft = tables.setdefault(int(header[1], 16), {})
        elif entry:
            guid = int(entry[3], 16)
            owner[int(entry[1], 16)] = guid
            lft.setdefault(guid, []).append(int(entry[2]))
    return tables, owner


def _hops(path: Path, owner: dict[int, int]) -> dict[int, Lft]:
    hops: dict[int, Lft] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        header = re.match(r"dump_ucast_routes: Switch (0x\w+)", line)
        entry = re.match(r"(0x\w+)\s*: (\d+)\s*: (\d+)", line)
        if header:
            lft = hops.setdefault(int(header[1], 16), {})
        elif entry:
            lft.setdefault(owner[int(entry[1], 16)], []).append(int(entry[3]))
    return hops
