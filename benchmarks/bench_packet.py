"""The packet engine on permutations over fat trees, PFC, ECN, DCQCN and ACKs on.

A packet-hop is one packet, data or ACK, over one channel. The peer is csg-htsim's RoCE (PFC, no
rate control), which does about 1.6 million packet-hops/s at 128 hosts and 0.45 million at 1,024 on
a machine like ours; its time is that for as many packet-hops. Ours is CPU time of the run alone,
compilation and the making of the messages left out, the best of three.
"""

from __future__ import annotations

import resource
import time
from typing import Any

from benchmarks.packet_cases import permutation
from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_profiles import roce

CASES = [(8, 4_000_000, 1.6e6), (16, 1_000_000, 0.45e6), (32, 250_000, None)]
"""Ports of a switch, bytes a message, the peer's packet-hops/s."""


def entries() -> list[dict[str, Any]]:
    """Return one entry a size: 128, 1,024 and 8,192 hosts."""
    simulate_packets(permutation(4, 10_000), roce())
    return [_entry(k, size_bytes, peer) for k, size_bytes, peer in CASES]


def _entry(k: int, size_bytes: int, peer: float | None) -> dict[str, Any]:
    problem = permutation(k, size_bytes)
    runs = []
    for _run in range(3):
        start = time.process_time()
        result = simulate_packets(problem, roce())
        runs.append(time.process_time() - start)
    ours, hops = min(runs), int(result.hops.sum())
    name = f"packet permutation {k**3 // 4} hosts"
    peer_s = None if peer is None else hops / peer
    print(f"{name}: {hops / ours / 1e6:.2f} million packet-hops/s ({hops} in {ours:.2f} s)")
    return {
        "name": name,
        "ours_s": round(ours, 3),
        "peer": None if peer is None else "csg-htsim RoCE, packet-hops/s as published to us",
        "peer_s": None if peer_s is None else round(peer_s, 3),
        "ratio": None if peer_s is None else round(peer_s / ours, 2),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
