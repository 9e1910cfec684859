"""Building a Fabric: the ladder from 1,024 to 131,072 GPUs, as time per link.

The peer is networkx building a graph of the same links from two ready lists of ends, which is the
least that a graph library does of the work: it sizes nothing, names nothing and numbers no port.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import networkx as nx

from gpufabric.catalog.load import load_catalog
from gpufabric.model.requirement import parse_requirement
from gpufabric.topology.design import Design, design_candidate

LADDER = (1_024, 4_096, 16_384, 65_536, 131_072)
SPEC = "gpus: {gpus}\nhost: {{gpus: 8, nics: 8, nic_gbps: 400}}\ncandidates: [{candidate}]\n"
CANDIDATES = {
    "infiniband": "{fabric: infiniband, switch: q3400-ra}",
    "roce": "{fabric: roce, switch: sn5600}",
}


def _design(gpus: int, candidate: str) -> Design:
    text = SPEC.format(gpus=gpus, candidate=candidate)
    requirement = parse_requirement(text.encode(), "spec.yaml")
    return design_candidate(requirement, requirement.candidates[0], load_catalog())


def _peer(design: Design) -> float:
    fabric = design.fabric
    a = fabric.port_vertex[fabric.links.port_a].tolist()
    b = fabric.port_vertex[fabric.links.port_b].tolist()
    start = time.process_time()
    graph: Any = nx.MultiGraph()
    graph.add_edges_from(zip(a, b, strict=True))
    return time.process_time() - start


def entries() -> list[dict[str, Any]]:
    """Return one entry a size and fabric: whole design with content hash, in CPU seconds."""
    _design(1_024, CANDIDATES["roce"])
    found = []
    for fabric, candidate in CANDIDATES.items():
        for gpus in LADDER:
            start = time.process_time()
            design = _design(gpus, candidate)
            _hash = design.fabric.content_hash
            ours = time.process_time() - start
            peer = _peer(design)
            n_links = len(design.fabric.links)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"design {fabric} {gpus}: {n_links} links, {ours / n_links * 1e6:.2f} us a link")
            found.append(
                {
                    "name": f"design {fabric}, {gpus} GPUs, {n_links} links",
                    "ours_s": round(ours, 4),
                    "peer": "networkx.MultiGraph of the same links",
                    "peer_s": round(peer, 4),
                    "ratio": round(peer / ours, 2),
                    "peak_mib": round(peak),
                }
            )
    return found
