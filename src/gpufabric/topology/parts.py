"""The pieces that a topology builder hands over: switches and links as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpufabric.topology.port_plan import PortPlan

__all__ = ["HostPorts", "LinkBatch", "SwitchBatch", "concatenate_links"]

Int = npt.NDArray[np.int32]


@dataclass(frozen=True)
class SwitchBatch:
    """Switches of one tier that all have the same ports.

    Parameters
    ----------
    names
        str[n].
    model
        Catalogue name of all of them.
    tier
        1 leaf, 2 spine, 3 core.
    plan
        Ports of each.
    plane
        Plane of all of them.
    rail, su, pod, group
        int32[n], -1 where it does not apply.
    stage
        int32[n]: 0 today, 1 when the cluster grows.
    n_reserved
        Last ports of each switch kept free for managers.
    """

    names: npt.NDArray[np.str_]
    model: str
    tier: int
    plan: PortPlan
    plane: int
    rail: Int
    su: Int
    pod: Int
    group: Int
    stage: Int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def ports_each(self) -> int:
        """Logical ports of one switch."""
        return len(self.plan.cage)


@dataclass(frozen=True)
class LinkBatch:
    """Links of one kind between switches: batch-local switch numbers and port numbers.

    Parameters
    ----------
    tier
        Link tier, see ``model.tables.LINK_TIERS``.
    gbps
        Rate.
    plane
        Plane of all of them.
    a_batch, b_batch
        Index of the switch batch of each end; -1 for a host port (then `a_switch` is unused and
        `a_port` is the row among all NIC ports).
    a_switch, a_port, b_switch, b_port
        int32[n].
    rail
        int32[n], -1 where it does not apply.
    """

    tier: int
    gbps: float
    plane: int
    a_batch: int
    b_batch: int
    a_switch: Int
    a_port: Int
    b_switch: Int
    b_port: Int
    rail: Int

    def __len__(self) -> int:
        return len(self.a_port)


@dataclass(frozen=True)
class HostPorts:
    """The host ports that one network connects, host by host in cabling order.

    Parameters
    ----------
    port
        int32[n_hosts, n_classes, per_class]: rows among all NIC ports; class c goes to the c-th
        leaf of the host's SU.
    rail
        int32[n_hosts, n_classes, per_class]: rail of each, -1 where leafs mix rails.
    stage
        int32[n_hosts]: 0 today, 1 later.
    """

    port: Int
    rail: Int
    stage: Int

    @property
    def n_hosts(self) -> int:
        """Hosts."""
        return int(self.port.shape[0])


@dataclass
class Network:
    """Batches collected by the builders; the design turns them into a Fabric."""

    switches: list[SwitchBatch] = field(default_factory=list)
    links: list[LinkBatch] = field(default_factory=list)

    def add_switches(self, batch: SwitchBatch) -> int:
        """Append a batch and return its index."""
        self.switches.append(batch)
        return len(self.switches) - 1


def concatenate_links(batches: list[LinkBatch], name: str) -> Int:
    """Return one field of all batches as one int32 array."""
    if not batches:
        return np.zeros(0, np.int32)
    return np.concatenate([np.asarray(getattr(batch, name), np.int32) for batch in batches])
