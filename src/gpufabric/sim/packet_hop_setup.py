"""Rules and arrays of routing packet by packet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_route_structs import Hops
from gpufabric.kernels.structs import Records
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_hops import hops_of
from gpufabric.sim.packet_routing_config import MODES
from gpufabric.sim.packet_seeds import mixed

__all__ = ["hops_for", "routes_for", "routing_rules"]

Ints = NDArray[np.int32]
PS = 1_000_000  # in a microsecond


def routes_for(checked: CheckedPackets) -> Ints:
    """Channels of all ways there, of all ways back, then each channel twice, and one more."""
    once = np.arange(checked.wires.n_channels, dtype=np.int32)
    channels = np.concatenate([once, once, once[:1]])
    if not checked.hops:
        channels = channels[:0]
    return np.concatenate([checked.paths.channel, checked.back.channel, channels])


def routing_rules(rules: Records, checked: CheckedPackets, config: PacketConfig) -> None:
    """Set the rules of routing packet by packet."""
    routing = config.routing
    classes = routing.classes or range(len(config.classes))
    rules["has_hops"] = bool(checked.hops)
    rules["mode"] = MODES.index(routing.mode)
    rules["routed"] = sum(1 << at for at in set(classes))
    rules["hash_seed"] = mixed(config.seed + 3) % 2**32
    rules["flowlet_ps"] = round(routing.flowlet_gap_us * PS)
    rules["n_flowlets"] = routing.flowlet_slots
    rules["n_columns"] = checked.hops[0].n_columns if checked.hops else 0
    rules["first_back"] = checked.paths.channel.size
    rules["first_channel"] = checked.paths.channel.size + checked.back.channel.size
    rules["first_channel_back"] = rules["first_channel"] + checked.wires.n_channels


def hops_for(checked: CheckedPackets, config: PacketConfig) -> Hops:
    """Return tables, seeds and memory of all switches."""
    n_switches = checked.forwarding_ps.size
    seeds = [mixed(config.seed + 4 + switch) % 2**32 for switch in range(n_switches)]
    return hops_of(
        checked.hops,
        np.array(seeds, np.int64),
        config.routing.flowlet_slots,
        has_flowlets=config.routing.mode.endswith("flowlet"),
    )
