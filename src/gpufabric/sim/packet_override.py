"""Where an override holds: at which ports, for which classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.packet_switch_config import PortOverride

__all__ = ["places_of"]


def places_of(wires: Wires, config: PacketConfig, override: PortOverride) -> NDArray[np.bool_]:
    """Return bool[n_channels, n_classes + 1]: ports and classes that send; PFC frames never.

    The inputs of the same ports are the rows of ``wires.reverse``.
    """
    ports = np.ones(wires.n_channels, np.bool_)
    if override.switches or override.ports:
        ports = np.isin(wires.tail, override.switches)
        ports[list(override.ports)] = True
    n_classes = len(config.classes)
    is_class = np.zeros(n_classes + 1, np.bool_)
    is_class[list(override.classes or range(n_classes))] = True
    return ports[:, None] & is_class
