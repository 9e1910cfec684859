"""Routing: paths of a permutation from 1,024 to 131,072 GPUs, forwarding tables, deadlock check.

Peers: networkx finding one shortest path a flow on the graph of the switches (a sample, scaled to
all flows); OpenSM routing the same 2,048 adapters that ibsim simulates, discovery included;
ibdmchk looking for credit loops in OpenSM's tables, its check of all paths included; and for 16,384
GPUs the 5 s that a deadlock check may take. OpenSM and ibdmchk are left out where they are not
installed.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from gpufabric.catalog.load import load_catalog
from gpufabric.export.ibsim import ibsim_netlist
from gpufabric.export.registry import ExportOptions
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import parse_requirement
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.deadlock import find_deadlock, turns_of
from gpufabric.routing.shortest import shortest_paths
from gpufabric.routing.tables import ENGINES, Engine, forwarding_tables
from gpufabric.routing.walks import Flows, Walker
from gpufabric.topology.design import design_candidate

LADDER = (1_024, 16_384, 131_072)
SAMPLE = 200
LIMIT_S = 5.0
SPEC = "gpus: {gpus}\nhost: {{gpus: 8, nics: 8, nic_gbps: 400}}\ncandidates: [{candidate}]\n"
ETHERNET = "{fabric: roce, switch: sn5600}"
INFINIBAND = "{fabric: infiniband, switch: qm9700}"


def entries() -> list[dict[str, Any]]:
    """Return one entry a size and task, in CPU seconds of ours."""
    _warm_up()
    found = [_walk(gpus) for gpus in LADDER]
    found += _tables()
    found += _deadlock()
    return found


def _design(gpus: int, candidate: str) -> Fabric:
    text = SPEC.format(gpus=gpus, candidate=candidate)
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], load_catalog()).fabric


def _warm_up() -> None:
    channels = channels_of(_design(64, ETHERNET))
    shortest = shortest_paths(channels)
    Walker.of(shortest).by_hash(Flows(channels.endpoints, channels.endpoints))
    find_deadlock(turns_of(shortest))
    for engine in ENGINES:
        tables = forwarding_tables(channels, engine)
        find_deadlock(turns_of(tables))


def _cpu_s(task: Callable[[], object], runs: int = 3) -> float:
    """Least CPU time of some runs [s]."""
    times = []
    for _run in range(runs):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def _entry(name: str, ours_s: float, peer: str | None, peer_s: float | None) -> dict[str, Any]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {ours_s:.3f} s, {peer}: {peer_s if peer_s is None else round(peer_s, 2)} s")
    return {
        "name": name,
        "ours_s": round(ours_s, 4),
        "peer": peer,
        "peer_s": None if peer_s is None else round(peer_s, 4),
        "ratio": None if peer_s is None else round(peer_s / ours_s, 2),
        "peak_mib": round(peak),
    }


def _walk(gpus: int) -> dict[str, Any]:
    """Channels, steps to every leaf, and the hashed path of every flow of a permutation."""
    fabric = _design(gpus, ETHERNET)
    ends = channels_of(fabric).endpoints
    flows = Flows(ends, ends[np.random.default_rng(1).permutation(len(ends))])

    def task() -> None:
        paths = Walker.of(shortest_paths(channels_of(fabric))).by_hash(flows)
        assert not paths.status.any()

    name = f"routing: paths of a permutation, {gpus} GPUs"
    peer_s = _networkx_s(channels_of(fabric), flows)
    return _entry(name, _cpu_s(task), "networkx.shortest_path, scaled from a sample", peer_s)


def _networkx_s(channels: Channels, flows: Flows) -> float:
    graph: nx.Graph[int] = nx.Graph()
    tail = np.repeat(np.arange(len(channels.graph.tier)), np.diff(channels.graph.first))
    graph.add_edges_from(zip(tail.tolist(), channels.graph.head.tolist(), strict=True))
    leaf_from, leaf_to = (channels.leaf_of[ports] for ports in (flows.src_port, flows.dst_port))
    start = time.process_time()
    for flow in range(SAMPLE):
        nx.shortest_path(graph, int(leaf_from[flow]), int(leaf_to[flow]))
    return (time.process_time() - start) / SAMPLE * len(flows)


def _tables() -> list[dict[str, Any]]:
    """Forwarding tables of 2,048 adapters, and their credit loops, against OpenSM and ibdmchk."""
    fabric = _design(2_048, INFINIBAND)
    channels = channels_of(fabric)
    found = []
    for engine in ENGINES:
        opensm_s, ibdmchk_s = _opensm_s(fabric, engine)
        ours_s = _cpu_s(lambda engine=engine: forwarding_tables(channels, engine))  # type: ignore[misc]
        name = f"routing: {engine} tables, 2048 adapters"
        peer = None if opensm_s is None else "OpenSM, discovery included"
        found.append(_entry(name, ours_s, peer, opensm_s))
        if engine == "ftree":
            tables = forwarding_tables(channels, engine)
            assert tables.used == ("ftree",)
            name = "routing: credit loops of ftree tables, 2048 adapters"
            peer = None if ibdmchk_s is None else "ibdmchk, all paths included"
            ours_s = _cpu_s(lambda tables=tables: find_deadlock(turns_of(tables)))  # type: ignore[misc]
            found.append(_entry(name, ours_s, peer, ibdmchk_s))
    return found


def _opensm_s(fabric: Fabric, engine: Engine) -> tuple[float | None, float | None]:
    """Wall time of OpenSM and of ibdmchk on the fabric [s]; None where they are not installed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    libraries = list(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so"))
    programs = [shutil.which(name, path=path) for name in ("opensm", "ibsim", "ibdmchk")]
    if not all(programs) or not libraries:
        return None, None
    folder = Path(tempfile.mkdtemp())
    (text,) = ibsim_netlist(fabric, ExportOptions(speed_cap="hdr")).values()
    (folder / "fabric.net").write_text(text, encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": path,
        "IBSIM_SOCKNAME": f"gpufabric-bench-{os.getpid()}",
        "OSM_CACHE_DIR": str(folder),
        "OSM_TMP_DIR": str(folder),
    }
    with (folder / "ibsim.out").open("wb") as log:
        simulator = subprocess.Popen(
            ["ibsim", "-s", "-n", "-N", "8192", "-S", "1024", "-P", "90000", "fabric.net"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        while b"ready" not in (folder / "ibsim.out").read_bytes():
            time.sleep(0.05)
        dump = ["-o", "-e", "-D", "0x43", "--maxsmps", "16", "--dump_files_dir", f"{folder}/"]
        opensm_s = _wall_s(
            ["opensm", *dump, "-f", str(folder / "log"), "-R", engine],
            folder,
            {**environment, "LD_PRELOAD": str(libraries[0])},
        )
    finally:
        simulator.kill()
        simulator.wait()
    log_text = (folder / "log").read_text(encoding="utf-8", errors="replace")
    assert re.findall(r"(\w+) tables configured", log_text)[-1] == engine
    names = ["-s", "opensm-subnet.lst", "-f", "opensm.fdbs", "-m", "opensm.mcfdbs"]
    ibdmchk_s = _wall_s(["ibdmchk", *names], folder, environment)
    shutil.rmtree(folder)
    return opensm_s, ibdmchk_s


def _wall_s(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, check=False, timeout=300
    )
    return time.perf_counter() - start


def _deadlock() -> list[dict[str, Any]]:
    """From channels to the verdict for 16,384 GPUs, over ECMP groups and over tables."""
    ethernet = _design(16_384, ETHERNET)
    infiniband = _design(16_384, INFINIBAND)
    tables = forwarding_tables(channels_of(infiniband), "ftree")

    def over_groups() -> None:
        assert find_deadlock(turns_of(shortest_paths(channels_of(ethernet)))).is_free

    def over_tables() -> None:
        assert find_deadlock(turns_of(tables)).is_free

    return [
        _entry(f"routing: deadlock check of {what}, 16384 GPUs", _cpu_s(task), "allowed", LIMIT_S)
        for what, task in (("ECMP groups", over_groups), ("ftree tables", over_tables))
    ]
