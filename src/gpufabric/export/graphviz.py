"""Graphviz: hosts and switches tier by tier; links between the same two devices are one edge.

Source: "DOT Language", https://graphviz.org/doc/info/lang.html (graph, subgraph, attributes).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.export.registry import Export, ExportOptions
from gpufabric.export.wiring import Wiring, slug
from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import SWITCH_TIERS

__all__ = ["EXPORT", "graphviz_graph"]

Ints = npt.NDArray[np.int64]


def graphviz_graph(fabric: Fabric, options: ExportOptions) -> dict[str, str]:
    """Return `fabric` as a graph that ``dot`` draws, cores on top and hosts at the bottom."""
    wiring = Wiring(fabric, options.stage)
    lines = [
        f"// gpufabric fabric {fabric.content_hash}",
        f'graph "{slug(fabric.name)}" {{',
        "  graph [rankdir=BT, ranksep=2, splines=line]",
        "  node [shape=box, fontname=sans]",
        "  edge [fontname=sans, fontsize=9]",
        *_tiers(wiring),
        *_edges(wiring),
        "}",
        "",
    ]
    return {"fabric.dot": "\n".join(lines)}


def _tiers(wiring: Wiring) -> Iterator[str]:
    fabric = wiring.fabric
    yield from _tier("hosts", fabric.hosts["name"][wiring.hosts].tolist())
    for tier, name in SWITCH_TIERS.items():
        rows = wiring.switches[fabric.switches["tier"][wiring.switches] == tier]
        yield from _tier(name, fabric.switches["name"][rows].tolist())


def _tier(name: str, devices: list[str]) -> Iterator[str]:
    if devices:
        yield f'  subgraph "{name}" {{'
        yield "    rank=same"
        yield from (f'    "{device}"' for device in devices)
        yield "  }"


def _edges(wiring: Wiring) -> Iterator[str]:
    vertex = wiring.fabric.port_vertex.astype(np.int64)
    a, b = (vertex[ports] for ports in wiring.ends)
    gbps = wiring.fabric.links["gbps"][wiring.links].astype(np.float64)
    keys = np.stack([a, b, gbps], axis=1)
    merged, counts = np.unique(keys, axis=0, return_counts=True)
    names = wiring.device_names
    for (low, high, rate), count in zip(merged.tolist(), counts.tolist(), strict=True):
        times = f"{count} x " if count > 1 else ""
        ends = f'"{names[int(low)]}" -- "{names[int(high)]}"'
        yield f'  {ends} [label="{times}{rate:g}G", penwidth={min(count, 8)}]'


EXPORT = Export(
    "graphviz",
    ".dot",
    lambda: _("a drawing of the fabric, for the dot of Graphviz"),
    graphviz_graph,
)
