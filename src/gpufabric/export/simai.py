"""SimAI topology: GPUs, NVSwitches, switches and links for SimAI's ns-3 back end.

Line 1: vertices, GPUs per server, NVSwitches, switches, links, GPU type. Line 2: numbers of the
NVSwitches and then of the switches. Then one line a link: two vertices, rate, delay, error rate.
How vertices and links come about is told in ``gpu_graph``; links stand in the order of SimAI's own
generator, GPU by GPU with NVSwitch before leaf, because SimAI looks at the first link of GPU 0.

Source: https://github.com/aliyun/SimAI, astra-sim-alibabacloud/inputs/topo/gen_Topo_Template.py
(form, order, default delays) and astra-sim-alibabacloud/astra-sim/network_frontend/ns3/common.h,
SetupNetwork (how it is read: node types, units as ns-3 data rate and time).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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
from gpufabric.export.wiring import slug
from gpufabric.model.fabric import Fabric

__all__ = ["EXPORT", "simai_topology"]


def simai_topology(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return the topology file of `fabric`.

    Raises
    ------
    UnsupportedError
        If the hosts cannot be told as SimAI wants them; see ``gpu_graph``.
    """
    graph = gpu_graph(fabric, options)
    counts = (
        *(graph.n_vertices, graph.gpus_per_host, graph.n_scale_up),
        *(graph.n_switches, graph.n_links),
    )
    lines = [
        f"{' '.join(map(str, counts))} {slug(graph.gpu).upper() if graph.gpu else 'NONE'}",
        " ".join(map(str, range(graph.n_gpus, graph.n_vertices))),
        *_links(graph),
        "",
    ]
    return {"simai.topo": "\n".join(lines)}


def _links(graph: GpuGraph) -> Iterator[str]:
    near = [*_lines(graph.scale_up, SCALE_UP_DELAY_NS), *_lines(graph.host, LINK_DELAY_NS)]
    gpu = np.concatenate([graph.scale_up.a, graph.host.a])
    yield from (near[place] for place in np.argsort(gpu, kind="stable").tolist())
    yield from _lines(graph.network, LINK_DELAY_NS)


def _lines(links: Links, delay_ns: int) -> Iterator[str]:
    delay = f"{delay_ns / 1e6:.6f}".rstrip("0") + "ms"
    for a, b, gbps in zip(links.a.tolist(), links.b.tolist(), links.gbps.tolist(), strict=True):
        yield f"{a} {b} {rate_word(gbps)} {delay} 0"


EXPORT = Export(
    "simai",
    ".topo",
    lambda: _("GPUs, switches and merged links for the SimAI simulator"),
    simai_topology,
)
