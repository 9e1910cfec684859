"""Collectives packet by packet with full RoCE semantics: PFC, ECN, DCQCN and an ACK a packet.

A ring all-reduce of 64 MiB on each of 1,024 GPUs, message by message in its graph of two million,
and an all-to-all of 64 MiB from each of 256; a GPU has a NIC of 400 Gb/s to itself, and no NVLink.
Ours is CPU time of the run alone on one core. Each runs in a process of its own, whose peak memory
counts all: the compiler, the messages, the run.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.packet_cases import all_to_all, permutation, ring_all_reduce
from gpufabric.sim.packet import PacketProblem, simulate_packets
from gpufabric.sim.packet_profiles import roce

PORTS, SIZE_BYTES = 16, 64 * 2**20
ASKED_S = 180.0
"""Minutes were asked for."""


def entries() -> list[dict[str, Any]]:
    """Return one entry a collective."""
    context = multiprocessing.get_context("spawn")
    found = []
    for measure in (all_reduce_entry, all_to_all_entry):
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            found.append(pool.submit(measure).result())
    return found


def all_reduce_entry() -> dict[str, Any]:
    """Measure the ring all-reduce."""
    problem = ring_all_reduce(PORTS, SIZE_BYTES)
    return _entry("packet all_reduce Ring 1024 GPUs, 64 MiB", problem)


def all_to_all_entry() -> dict[str, Any]:
    """Measure the all-to-all."""
    problem = all_to_all(PORTS, 256, SIZE_BYTES)
    return _entry("packet alltoall 256 GPUs, 64 MiB", problem)


def _entry(name: str, problem: PacketProblem) -> dict[str, Any]:
    simulate_packets(permutation(4, 10_000), roce())
    start = time.process_time()
    result = simulate_packets(problem, roce())
    ours, hops = time.process_time() - start, int(result.hops.sum())
    assert (result.flows.delivered_ps >= 0).all()
    print(f"{name}: {hops / ours / 1e6:.2f} million packet-hops/s ({hops} in {ours:.2f} s)")
    return {
        "name": name,
        "ours_s": round(ours, 2),
        "peer": "time asked for",
        "peer_s": ASKED_S,
        "ratio": round(ASKED_S / ours, 2),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
