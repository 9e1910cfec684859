"""ASTRA-sim: the topology file of its ns-3 back end, and ``network.yml`` of its analytical one.

``astra-sim.txt`` (ns-3). Line 1: vertices, switches, links. Line 2: numbers of the switches. Then
one line a link: two vertices, rate, delay, error rate. GPUs are the first vertices; scale-up
switches are switches like any other (see ``gpu_graph``). ``logical-topology.json`` gives the NPUs
of the two dimensions, host and network, as the ns-3 front end wants them.

``network.yml`` (analytical). Two dimensions, each a ``Switch``: the host, at the scale-up rate of a
GPU, and the network, at the NIC rate of a GPU divided by the worst oversubscription of a leaf or
spine; in GB/s and one direction. Latency of the network is that of the path over the topmost tier,
500 ns a link (assumed, as in the ns-3 file). The analytical back end knows neither rails nor
planes.

Source: https://github.com/astra-sim/astra-sim, astra-sim/network_frontend/ns3 (README,
AstraSimNetwork.cc: "logical-dims") and examples/network/analytical/HGX-H100-validated.yml;
https://github.com/astra-sim/astra-network-ns3, scratch/common.h (topology file);
https://github.com/astra-sim/astra-network-analytical, input/Ring_Ring.yml (topology, npus_count,
bandwidth in GB/s, latency in ns).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.export.gpu_graph import (
    LINK_DELAY_NS,
    SCALE_UP_DELAY_NS,
    GpuGraph,
    Links,
    gpu_graph,
    rate_word,
)
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring
from gpufabric.model.fabric import Fabric

__all__ = ["EXPORT", "astra_sim_topology"]


def astra_sim_topology(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the topology files of `fabric` for both back ends.

    Raises
    ------
    UnsupportedError
        If the hosts cannot be told as ASTRA-sim wants them; see ``gpu_graph``.
    """
    graph = gpu_graph(fabric, options)
    logical = {"logical-dims": [str(count) for count in _dimensions(graph)]}
    return {
        "astra-sim.txt": "\n".join(_physical(graph)),
        "logical-topology.json": json.dumps(logical, indent=1) + "\n",
        "network.yml": "\n".join(_analytical(Wiring(fabric, options.stage), graph)),
    }


def _dimensions(graph: GpuGraph) -> list[int]:
    counts = [graph.gpus_per_host, graph.n_gpus // graph.gpus_per_host]
    return [count for count in counts if count > 1] or [1]


def _physical(graph: GpuGraph) -> Iterator[str]:
    yield f"{graph.n_vertices} {graph.n_scale_up + graph.n_switches} {graph.n_links}"
    yield " ".join(map(str, range(graph.n_gpus, graph.n_vertices)))
    yield from _lines(graph.scale_up, SCALE_UP_DELAY_NS)
    yield from _lines(graph.host, LINK_DELAY_NS)
    yield from _lines(graph.network, LINK_DELAY_NS)
    yield ""


def _lines(links: Links, delay_ns: int) -> Iterator[str]:
    for a, b, gbps in zip(links.a.tolist(), links.b.tolist(), links.gbps.tolist(), strict=True):
        yield f"{a} {b} {rate_word(gbps)} {delay_ns}ns 0"


def _analytical(wiring: Wiring, graph: GpuGraph) -> Iterator[str]:
    fabric = wiring.fabric
    tiers = int(fabric.switches["tier"][wiring.switches].max())
    network_gbps = float(graph.host.gbps.sum()) / graph.n_gpus
    ratio = _oversubscription(wiring)
    rows = [
        (graph.gpus_per_host, _scale_up_gbps(graph, network_gbps), 2 * SCALE_UP_DELAY_NS),
        (graph.n_gpus // graph.gpus_per_host, network_gbps / ratio, 2 * tiers * LINK_DELAY_NS),
    ]
    kept = [row for row in rows if row[0] > 1] or rows[1:]
    counts, rates_gbps, delays_ns = zip(*kept, strict=True)
    yield f"# gpufabric fabric {fabric.content_hash}"
    yield f"# Network: {network_gbps:g} Gb/s a GPU, oversubscription {ratio:g}; latency is assumed."
    yield f"topology: [ {', '.join(['Switch'] * len(kept))} ]"
    yield f"npus_count: [ {', '.join(map(str, counts))} ]"
    yield f"bandwidth: [ {', '.join(f'{gbps / 8:g}' for gbps in rates_gbps)} ]  # GB/s"
    yield f"latency: [ {', '.join(f'{delay:.1f}' for delay in delays_ns)} ]  # ns"
    yield ""


def _scale_up_gbps(graph: GpuGraph, network_gbps: float) -> float:
    """Return the rate between the GPUs of a host; that of the NIC where there is no scale-up."""
    return float(graph.scale_up.gbps[0]) if graph.n_scale_up else network_gbps


def _oversubscription(wiring: Wiring) -> float:
    """Return the largest ratio of rate down to rate up of any switch with links both ways."""
    fabric = wiring.fabric
    gbps = fabric.links["gbps"][wiring.links].astype(np.float64)
    lower, upper = wiring.ends
    down = _rate_by_switch(wiring, upper, gbps)
    up = _rate_by_switch(wiring, lower, gbps)
    both = (up > 0) & (down > 0) & (fabric.switches["tier"] < 3)
    return max(1.0, float((down[both] / up[both]).max())) if both.any() else 1.0


def _rate_by_switch(
    wiring: Wiring, ports: npt.NDArray[np.int64], gbps: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    table = wiring.fabric.ports
    owned = table["is_switch"][ports] == 1
    device = table["device"][ports[owned]]
    total = np.bincount(device, gbps[owned], minlength=len(wiring.fabric.switches))
    return total.astype(np.float64)


EXPORT = Export(
    "astra-sim",
    ".txt",
    lambda: _("GPUs, switches and merged links for ASTRA-sim, ns-3 and analytical"),
    astra_sim_topology,
)
