"""Delay of every switch of a fabric, from the catalogue."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from gpufabric.catalog.collection import Catalog
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.topology.decision import Decision

__all__ = ["hop_latency"]

# Assumed where the catalogue knows no delay: what it reckons with for Quantum-2 and Spectrum-4.
ASSUMED_NS = MappingProxyType({"infiniband": 190.0, "roce": 500.0})


def hop_latency(
    fabric: Fabric, catalog: Catalog
) -> tuple[npt.NDArray[np.float64], tuple[Decision, ...]]:
    """Return float64[n_switches], the delay of each switch [ns], and what was assumed."""
    delay_ns = np.empty(len(fabric.switches))
    decisions = []
    for model in np.unique(fabric.switches.model).tolist():
        known = catalog.switch(fabric.models[model]).hop_latency_ns
        value = ASSUMED_NS[fabric.protocol] if known is None else known.value
        delay_ns[fabric.switches.model == model] = value
        decisions.append(
            Decision(
                "hop latency",
                f"{fabric.models[model]} {value:g} ns",
                _("Assumed: the catalogue knows no value for this switch.")
                if known is None
                else _("The catalogue's value to reckon with."),
                "" if known is None else f"{known.source}; {known.date}",
                is_warning=known is None,
            )
        )
    return delay_ns, tuple(decisions)
