"""What an InfiniBand fabric is told beside its cables: names, subnet prefixes, expected LIDs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.ids import Guid, Lid
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.topology.address_pools import PoolUse
from gpufabric.topology.decision import Decision

__all__ = ["InfinibandAddressing", "LidRange", "SubnetPlan", "address_infiniband"]

Int = npt.NDArray[np.int64]

MAX_LMC = 7
"""A port has at most 2**7 LIDs: InfiniBand architecture specification, section 4.1.3."""

DEFAULT_SUBNET_PREFIX = 0xFE80_0000_0000_0000
N_UNICAST = Lid.LAST_UNICAST - Lid.FIRST_UNICAST + 1


@dataclass(frozen=True)
class LidRange:
    """The LIDs of one kind of port.

    Parameters
    ----------
    role
        ``switch``, ``manager`` or ``host``.
    first
        First LID; a multiple of 2**LMC for managers and hosts.
    n_ports, lids_each
        Ports, and LIDs of each.
    """

    role: str
    first: int
    n_ports: int
    lids_each: int

    @property
    def end(self) -> int:
        """The number behind the last LID."""
        return self.first + self.n_ports * self.lids_each

    @property
    def text(self) -> str:
        """First and last LID in hex; empty where there is no port or the LIDs run out."""
        if not self.n_ports or self.end - 1 > Lid.LAST_UNICAST:
            return ""
        return f"{Lid(self.first)}-{Lid(self.end - 1)}"


@dataclass(frozen=True)
class SubnetPlan:
    """One InfiniBand subnet: a network with a subnet manager of its own.

    Parameters
    ----------
    plane, rail
        Network that it is; rail -1 where all rails are in it.
    prefix
        Subnet prefix, the upper half of its GIDs.
    lmc
        LID mask control: a host port has ``2**lmc`` LIDs.
    ranges
        LIDs of switches, managers and hosts, in this order.
    """

    plane: int
    rail: int
    prefix: Guid
    lmc: int
    ranges: tuple[LidRange, ...]

    @property
    def n_needed(self) -> int:
        """Unicast LIDs that the subnet takes."""
        return self.ranges[-1].end - Lid.FIRST_UNICAST

    @property
    def is_within_limit(self) -> bool:
        """Whether its LIDs are enough: 0x0001 to 0xbfff."""
        return self.n_needed <= N_UNICAST

    def to_json(self) -> dict[str, Any]:
        """Return the subnet as a mapping, identifiers in hex."""
        return {
            "plane": self.plane,
            "rail": self.rail,
            "subnet_prefix": str(self.prefix),
            "lmc": self.lmc,
            "lids": {
                part.role: {"range": part.text, "ports": part.n_ports, "lids_each": part.lids_each}
                for part in self.ranges
            },
            "lids_needed": self.n_needed,
            "lids_available": N_UNICAST,
        }


@dataclass(frozen=True, eq=False)
class InfinibandAddressing:
    """Names and expected LIDs of an InfiniBand fabric.

    Parameters
    ----------
    subnets
        The subnets, by plane and rail.
    switch_lid
        int64[n_switches]: LID of each switch; 0 where the LIDs of its subnet run out.
    port
        int64[n]: rows of the NIC ports that have a link.
    port_lid
        int64[n]: first LID of each, likewise.
    descriptions
        Node description of each of these ports' NICs.
    decisions
        What is noted, and what is to be acted on.
    """

    subnets: tuple[SubnetPlan, ...]
    switch_lid: Int
    port: Int
    port_lid: Int
    descriptions: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def use(self) -> tuple[PoolUse, ...]:
        """How full the LIDs of each subnet are."""
        span = f"{Lid(Lid.FIRST_UNICAST)}-{Lid(Lid.LAST_UNICAST)}"
        return tuple(
            PoolUse(
                f"lids-p{subnet.plane}" + (f"-r{subnet.rail}" if subnet.rail >= 0 else ""),
                _("unicast LIDs of one subnet"),
                span,
                _("LIDs"),
                subnet.n_needed,
                N_UNICAST,
            )
            for subnet in self.subnets
        )

    def switch_rows(self, fabric: Fabric) -> Iterator[dict[str, Any]]:
        """Yield name (which is the node description) and LID of each switch."""
        for name, lid in zip(fabric.switches.name.tolist(), self.switch_lid.tolist(), strict=True):
            yield {"switch": name, "description": name, "lid": _lid_text(lid)}

    def port_rows(self, fabric: Fabric) -> Iterator[dict[str, Any]]:
        """Yield host, NIC, port, node description and first LID of each host port."""
        nic = fabric.ports.device[self.port]
        for host, index, port, description, lid in zip(
            fabric.hosts.name[fabric.nics.host[nic]].tolist(),
            fabric.nics["index"][nic].tolist(),
            (fabric.ports.port[self.port] + 1).tolist(),
            self.descriptions,
            self.port_lid.tolist(),
            strict=True,
        ):
            yield {
                "host": host,
                "nic": index,
                "port": port,
                "description": description,
                "lid": _lid_text(lid),
            }

    def to_json(self, fabric: Fabric) -> dict[str, Any]:
        """Return subnets and switches; the single host ports are left out."""
        return {
            "kind": "infiniband",
            "pools": [row.to_json() for row in self.use],
            "subnets": [subnet.to_json() for subnet in self.subnets],
            "switches": list(self.switch_rows(fabric)),
        }


def address_infiniband(fabric: Fabric, lmc: int) -> InfinibandAddressing:
    """Return names, subnets and expected LIDs of an InfiniBand fabric.

    Raises
    ------
    InputError
        If `lmc` is out of range.

    Notes
    -----
    Every separate network (a plane, or a rail of a rail-only fabric) is one subnet with a subnet
    manager of its own. LIDs are laid out as switches, managers, hosts, each in the order of the
    tables; a subnet manager keeps such a layout only where it is given them for the GUIDs
    (OpenSM: ``guid2lid``), and else numbers ports as it finds them, from 1 up.

    A subnet that needs more than the 49,151 unicast LIDs is a warning and not an error: the
    cables are right, and the fabric works as several subnets with routers between them.
    """
    if not 0 <= lmc <= MAX_LMC:
        raise InputError(
            Fault(
                "lmc",
                _("{value} found.").format(value=lmc),
                _("0 to {limit}").format(limit=MAX_LMC),
            )
        )
    links, ports = fabric.links, fabric.ports
    host_link = np.flatnonzero(links.tier == 1)
    port = links.port_a[host_link].astype(np.int64)
    order = np.argsort(port, kind="stable")
    host_link, port = host_link[order], port[order]
    at_leaf = ports.device[links.port_b[host_link]]
    of_switch, networks = _networks(fabric)
    of_port = of_switch[at_leaf]
    is_manager = fabric.hosts.role[fabric.nics.host[ports.device[port]]] == 1
    switch_lid = np.zeros(len(fabric.switches), np.int64)
    port_lid = np.zeros(len(port), np.int64)
    subnets = []
    for number, (plane, rail) in enumerate(networks):
        prefix = Guid(DEFAULT_SUBNET_PREFIX + (number + 1 if len(networks) > 1 else 0))
        mine = of_port == number
        groups = (np.flatnonzero(mine & is_manager), np.flatnonzero(mine & ~is_manager))
        members = np.flatnonzero(of_switch == number)
        subnet = _subnet((plane, rail), prefix, lmc, (len(members), *(len(g) for g in groups)))
        subnets.append(subnet)
        if subnet.is_within_limit:
            switch_lid[members] = subnet.ranges[0].first + np.arange(len(members))
            for part, group in zip(subnet.ranges[1:], groups, strict=True):
                port_lid[group] = part.first + np.arange(len(group)) * part.lids_each
    return InfinibandAddressing(
        subnets=tuple(subnets),
        switch_lid=switch_lid,
        port=port,
        port_lid=port_lid,
        descriptions=_descriptions(fabric, port),
        decisions=(*_notes(subnets), *(d for s in subnets for d in _limits(s))),
    )


def _networks(fabric: Fabric) -> tuple[Int, list[tuple[int, int]]]:
    """Return the number of each switch's network, and plane and rail of each network."""
    switches = fabric.switches
    rail = switches.rail if fabric.family == "rail-only" else np.full(len(switches), -1)
    pairs = np.stack([switches.plane.astype(np.int64), rail.astype(np.int64)], axis=1)
    kinds, number = np.unique(pairs, axis=0, return_inverse=True)
    return number.reshape(-1).astype(np.int64), [(int(p), int(r)) for p, r in kinds]


def _subnet(
    network: tuple[int, int], prefix: Guid, lmc: int, counts: tuple[int, ...]
) -> SubnetPlan:
    each = 1 << lmc
    ranges = []
    first = int(Lid.FIRST_UNICAST)
    for role, count, lids in zip(
        ("switch", "manager", "host"), counts, (1, each, each), strict=True
    ):
        first = -(-first // lids) * lids
        part = LidRange(role, first, count, lids)
        ranges.append(part)
        first = part.end
    return SubnetPlan(*network, prefix, lmc, tuple(ranges))


def _descriptions(fabric: Fabric, port: Int) -> tuple[str, ...]:
    nic = fabric.ports.device[port]
    hosts = fabric.hosts.name[fabric.nics.host[nic]].tolist()
    indices = fabric.nics["index"][nic].tolist()
    return tuple(f"{host} mlx5_{index}" for host, index in zip(hosts, indices, strict=True))


def _notes(subnets: list[SubnetPlan]) -> Iterator[Decision]:
    if len(subnets) > 1:
        yield Decision(
            "subnets",
            str(len(subnets)),
            _(
                "Each separate network is a subnet with its own subnet manager and prefix, so "
                "that software can tell ports that cannot reach each other."
            ),
            _("assumed: prefixes count up from {prefix}").format(prefix=subnets[0].prefix),
        )


def _limits(subnet: SubnetPlan) -> Iterator[Decision]:
    if subnet.is_within_limit:
        return
    single = _subnet(
        (subnet.plane, subnet.rail), subnet.prefix, 0, tuple(p.n_ports for p in subnet.ranges)
    )
    if single.is_within_limit:
        remedy = _("Lower the LMC.")
    else:
        remedy = _("Take more planes, or several subnets with InfiniBand routers between them.")
    yield Decision(
        "lids",
        str(subnet.n_needed),
        _(
            "Plane {plane} needs {needed} unicast LIDs with LMC {lmc}, and a subnet has {limit}."
        ).format(
            plane=subnet.plane,
            needed=f"{subnet.n_needed:,}",
            lmc=subnet.lmc,
            limit=f"{N_UNICAST:,}",
        )
        + " "
        + remedy,
        "InfiniBand architecture specification, volume 1, section 4.1.3",
        is_warning=True,
    )


def _lid_text(lid: int) -> str:
    return str(Lid(lid)) if lid else ""
