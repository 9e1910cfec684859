"""The part of a fabric that exists at one stage, with the names of its devices and ports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric

__all__ = ["Wiring", "slug"]

Ints = npt.NDArray[np.int64]

_COMPUTE = 0  # value of hosts.role


def slug(text: str) -> str:
    """Return `text` as lower-case letters, digits and hyphens; ``fabric`` if none is left.

    Examples
    --------
    >>> slug("RoCE v2: (800G)")
    'roce-v2-800g'
    """
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-") or "fabric"


@dataclass(frozen=True)
class Wiring:
    """Hosts, NICs, switches and links up to a stage of growth; rows keep the fabric's order.

    Parameters
    ----------
    fabric
        The whole fabric.
    stage
        0 for what is built today, 1 for everything.
    """

    fabric: Fabric
    stage: int = 0

    @cached_property
    def hosts(self) -> Ints:
        """Rows of the hosts, managers included."""
        return np.flatnonzero(self.fabric.hosts["stage"] <= self.stage)

    @cached_property
    def compute_hosts(self) -> Ints:
        """Rows of the hosts with GPUs."""
        rows: Ints = self.hosts[self.fabric.hosts["role"][self.hosts] == _COMPUTE]
        return rows

    @cached_property
    def nics(self) -> Ints:
        """Rows of the NICs."""
        host = self.fabric.nics["host"]
        return np.flatnonzero(self.fabric.hosts["stage"][host] <= self.stage)

    @cached_property
    def switches(self) -> Ints:
        """Rows of the switches."""
        return np.flatnonzero(self.fabric.switches["stage"] <= self.stage)

    @cached_property
    def links(self) -> Ints:
        """Rows of the links."""
        return np.flatnonzero(self.fabric.links["stage"] <= self.stage)

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """Lower and upper port of each link in `links`."""
        links = self.fabric.links
        return (
            links["port_a"][self.links].astype(np.int64),
            links["port_b"][self.links].astype(np.int64),
        )

    @cached_property
    def peer(self) -> Ints:
        """int64[n_ports]: the port at the other end of its link; -1 where there is none."""
        peer = np.full(len(self.fabric.ports), -1)
        a, b = self.ends
        peer[a] = b
        peer[b] = a
        return peer

    @cached_property
    def device_names(self) -> npt.NDArray[Any]:
        """Names of all hosts, then of all switches, in the order of ``Fabric.port_vertex``."""
        return np.concatenate([self.fabric.hosts["name"], self.fabric.switches["name"]])

    def devices(self, ports: Ints) -> list[str]:
        """Return the name of the host or switch that owns each port."""
        names: list[str] = self.device_names[self.fabric.port_vertex[ports]].tolist()
        return names

    def ports_of(self, rows: Ints, table: str) -> Ints:
        """Return all ports of the given ``nics`` or ``switches``, in order."""
        owner = self.fabric.tables()[table]
        sizes = owner["n_ports"][rows].astype(np.int64)
        first = owner["port_first"][rows].astype(np.int64)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        ports: Ints = np.repeat(first, sizes) + within
        return ports

    @cached_property
    def networks(self) -> list[Ints]:
        """Switch rows of each separate network, in the order of their first switches.

        Switches belong together if links lead from one to the other; hosts do not join them.
        """
        switch: Ints = np.full(len(self.fabric.ports), -1)
        owned = self.ports_of(self.switches, "switches")
        switch[owned] = self.fabric.ports["device"][owned]
        a, b = (switch[ports] for ports in self.ends)
        between = (a >= 0) & (b >= 0)
        label = _components(len(self.fabric.switches), a[between], b[between])[self.switches]
        return [self.switches[label == number] for number in np.unique(label)]


def _components(n: int, a: Ints, b: Ints) -> Ints:
    """Return for each of `n` vertices the smallest vertex that edges a-b connect it with."""
    label = np.arange(n)
    while True:
        before = label.copy()
        smallest = np.minimum(label[a], label[b])
        np.minimum.at(label, a, smallest)
        np.minimum.at(label, b, smallest)
        label = label[label]
        if np.array_equal(label, before):
            return label
