"""Delay and buffer of every switch of a fabric, as the catalogue knows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.collection import Catalog
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.topology.decision import Decision

__all__ = ["SwitchFacts", "switch_facts"]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

BYTES_PER_MB = 1_000_000


@dataclass(frozen=True, eq=False)
class SwitchFacts:
    """What packets meet in the switches.

    Parameters
    ----------
    hop_latency_ns
        float64[n_switches]: from input to output [ns].
    buffer_bytes
        int64[n_switches]: packet buffer [byte]; 0 where the catalogue knows none.
    decisions
        Where the buffers come from.
    """

    hop_latency_ns: Floats
    buffer_bytes: Longs
    decisions: tuple[Decision, ...]


def switch_facts(fabric: Fabric, catalog: Catalog, hop_latency_ns: Floats) -> SwitchFacts:
    """Return delay and buffer of every switch; `hop_latency_ns` is known already."""
    buffer_bytes = np.zeros(len(fabric.switches), np.int64)
    decisions = []
    for model in np.unique(fabric.switches.model).tolist():
        known = catalog.switch(fabric.models[model]).buffer_mb
        if known is not None:
            mine = fabric.switches.model == model
            buffer_bytes[mine] = round(known.value * BYTES_PER_MB)
            decisions.append(
                Decision(
                    "switch buffer",
                    f"{fabric.models[model]} {known.value:g} MB",
                    _("The catalogue's value to reckon with."),
                    f"{known.source}; {known.date}",
                )
            )
    return SwitchFacts(hop_latency_ns, buffer_bytes, tuple(decisions))
