"""From batches of switches and links, and the hosts' NICs, to one Fabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.model.fabric import Fabric
from gpufabric.model.tables import SCHEMAS, Table
from gpufabric.topology.clos_build import numbered
from gpufabric.topology.parts import LinkBatch, Network, concatenate_links

__all__ = ["FabricHead", "HostSet", "ManagerLinks", "Managers", "assemble"]

Int = npt.NDArray[np.int32]


@dataclass(frozen=True)
class FabricHead:
    """What a fabric says of itself beside its tables."""

    name: str
    protocol: str
    generation: str
    family: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class HostSet:
    """The compute hosts and how their NICs are run.

    Parameters
    ----------
    model, nic_model
        Catalogue names.
    n_hosts, n_today
        Hosts at the target size, and of them today's.
    n_gpus
        GPUs of one host.
    rails
        Rail of each NIC of a host.
    nic_gbps
        Rate of one NIC [Gb/s].
    ports_per_nic
        Ports that a NIC is run with.
    ports_share_cage
        True if these ports are lanes of one cage (planes by breakout).
    nics_per_cage
        NICs behind one cage of the host.
    su_hosts
        Hosts of an SU.
    sus_per_pod
        SUs of a pod.
    """

    model: str
    nic_model: str
    n_hosts: int
    n_today: int
    n_gpus: int
    rails: tuple[int, ...]
    nic_gbps: float
    ports_per_nic: int
    ports_share_cage: bool
    nics_per_cage: int
    su_hosts: int
    sus_per_pod: int

    @property
    def n_nics(self) -> int:
        """NICs of all compute hosts."""
        return self.n_hosts * len(self.rails)

    def port_rows(self) -> Int:
        """Return int32[n_hosts, n_nics, n_ports]: row of each NIC port among all ports."""
        shape = (self.n_hosts, len(self.rails), self.ports_per_nic)
        return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)

    @property
    def stage(self) -> Int:
        """int32[n_hosts]: 0 for today's hosts, 1 for those bought later."""
        return (np.arange(self.n_hosts) >= self.n_today).astype(np.int32)


@dataclass(frozen=True)
class Managers:
    """Fabric managers to attach to free host ports of the leafs.

    Parameters
    ----------
    model
        Catalogue name of the appliance.
    n_links
        Links wanted in each network.
    ports_each
        Ports of one appliance.
    """

    model: str
    n_links: int
    ports_each: int


@dataclass(frozen=True)
class ManagerLinks:
    """Where the managers of one network go.

    Parameters
    ----------
    switch
        int32[n]: leaf of each link, within its batch.
    port
        int64[n]: port of each link, among all switch ports.
    gbps
        Rate [Gb/s].
    plane
        Plane.
    """

    switch: Int
    port: npt.NDArray[np.int64]
    gbps: float
    plane: int


def assemble(
    head: FabricHead,
    hosts: HostSet,
    network: Network,
    managers: Sequence[ManagerLinks],
    kit: Managers,
) -> Fabric:
    """Return the Fabric; every table is filled but racks, cable lengths and parts."""
    models = _model_names(hosts, network, managers, kit)
    first_switch = np.concatenate([[0], np.cumsum([len(b) for b in network.switches])])
    host_table, nic_table, nic_ports = _host_tables(hosts, managers, kit, models)
    switch_table, switch_ports = _switch_tables(network, models, len(nic_ports))
    ports = _stack(nic_ports, switch_ports)
    links = _link_table(network, managers, switch_table, first_switch, hosts, ports)
    use = np.zeros(len(ports), np.int8)
    use[links.port_a] = 1
    use[links.port_b] = 1
    gbps = ports.gbps.copy()
    gbps[links.port_a] = links.gbps
    links = links.replace(stage=_link_stage(links, ports, nic_table, host_table, switch_table))
    return Fabric(
        name=head.name,
        protocol=head.protocol,
        generation=head.generation,
        family=head.family,
        models=tuple(models),
        racks=SCHEMAS["racks"].table(0),
        hosts=host_table,
        nics=nic_table,
        switches=switch_table,
        ports=ports.replace(use=use, gbps=gbps),
        links=links,
        attributes=head.attributes,
    )


def _model_names(
    hosts: HostSet, network: Network, managers: Sequence[ManagerLinks], kit: Managers
) -> dict[str, int]:
    names = [hosts.model, hosts.nic_model, *(batch.model for batch in network.switches)]
    if any(len(links.switch) for links in managers):
        names.append(kit.model)
    return {name: index for index, name in enumerate(dict.fromkeys(names))}


def _host_tables(
    hosts: HostSet, managers: Sequence[ManagerLinks], kit: Managers, models: Mapping[str, int]
) -> tuple[Table, Table, Table]:
    counts = [len(links.switch) for links in managers]
    groups = [-(-count // kit.ports_each) for count in counts]
    n_managers = sum(groups)
    n, k, p = hosts.n_hosts, len(hosts.rails), hosts.ports_per_nic
    total = n + n_managers
    su = np.full(total, -1, np.int32)
    su[:n] = np.arange(n) // hosts.su_hosts
    is_manager = np.arange(total) >= n
    names = np.concatenate([numbered("host-", n), numbered("manager-", max(n_managers, 1))])
    host_table = SCHEMAS["hosts"].table(
        total,
        name=names[:total],
        role=is_manager,
        model=np.where(is_manager, models.get(kit.model, 0), models[hosts.model]),
        n_gpus=np.where(is_manager, 0, hosts.n_gpus),
        su=su,
        pod=np.where(is_manager, 0, su // hosts.sus_per_pod),
        stage=np.where(is_manager, 0, np.resize(np.append(hosts.stage, 0), total)),
    )
    ports_of = [
        kit.ports_each if (i + 1) * kit.ports_each <= count else count % kit.ports_each
        for count, group in zip(counts, groups, strict=True)
        for i in range(group)
    ]
    gbps_of = [
        links.gbps for links, group in zip(managers, groups, strict=True) for _ in range(group)
    ]
    manager_ports = np.array(ports_of, np.int32)
    n_ports = np.concatenate([np.full(n * k, p), manager_ports]).astype(np.int32)
    nic_table = SCHEMAS["nics"].table(
        n * k + n_managers,
        host=np.concatenate([np.repeat(np.arange(n), k), np.arange(n, total)]),
        index=np.concatenate([np.tile(np.arange(k), n), np.zeros(n_managers)]),
        rail=np.concatenate([np.tile(hosts.rails, n), np.full(n_managers, -1)]),
        model=np.concatenate(
            [np.full(n * k, models[hosts.nic_model]), np.full(n_managers, models.get(kit.model, 0))]
        ),
        gbps=np.concatenate([np.full(n * k, hosts.nic_gbps), np.array(gbps_of) * manager_ports]),
        port_first=np.concatenate([[0], np.cumsum(n_ports)[:-1]]),
        n_ports=n_ports,
    )
    return host_table, nic_table, _nic_ports(hosts, manager_ports, gbps_of)


def _nic_ports(hosts: HostSet, manager_ports: Int, gbps_of: Sequence[float]) -> Table:
    n, k, p = hosts.n_hosts, len(hosts.rails), hosts.ports_per_nic
    nic = np.arange(k)[:, None]
    port = np.arange(p)[None, :]
    if hosts.ports_share_cage or p == 1:
        cage = nic // hosts.nics_per_cage + 0 * port
        lane = nic % hosts.nics_per_cage * p + port
    else:
        cage = nic * p + port
        lane = 0 * cage
    n_compute = n * k * p
    extra = int(manager_ports.sum())
    device = np.concatenate(
        [
            np.repeat(np.arange(n * k), p),
            n * k + np.repeat(np.arange(len(manager_ports)), manager_ports),
        ]
    )
    manager_port = np.concatenate([np.arange(count) for count in manager_ports] or [np.zeros(0)])
    manager_gbps = np.repeat(np.array(gbps_of, np.float32), manager_ports)
    return SCHEMAS["ports"].table(
        n_compute + extra,
        is_switch=0,
        device=device,
        port=np.concatenate([np.tile(np.broadcast_to(port, (k, p)).ravel(), n), manager_port]),
        cage=np.concatenate([np.tile(cage.ravel(), n), manager_port]),
        lane=np.concatenate([np.tile(lane.ravel(), n), np.zeros(extra)]),
        gbps=np.concatenate([np.full(n_compute, hosts.nic_gbps / p), manager_gbps]),
    )


def _switch_tables(
    network: Network, models: Mapping[str, int], first_port: int
) -> tuple[Table, Table]:
    batches = network.switches
    each = np.concatenate([np.full(len(b), b.ports_each) for b in batches]).astype(np.int32)
    first = first_port + np.concatenate([[0], np.cumsum(each)[:-1]])
    count = len(each)

    def column(name: str) -> Int:
        return np.concatenate([np.broadcast_to(getattr(b, name), len(b)) for b in batches])

    table = SCHEMAS["switches"].table(
        count,
        name=np.concatenate([b.names for b in batches]),
        model=np.concatenate([np.full(len(b), models[b.model]) for b in batches]),
        tier=column("tier"),
        plane=column("plane"),
        rail=column("rail"),
        su=column("su"),
        pod=column("pod"),
        group=column("group"),
        port_first=first,
        n_ports=each,
        stage=column("stage"),
    )
    ports = SCHEMAS["ports"].table(
        int(each.sum()),
        is_switch=1,
        device=np.repeat(np.arange(count), each),
        port=np.concatenate([np.tile(np.arange(b.ports_each), len(b)) for b in batches]),
        cage=np.concatenate([np.tile(b.plan.cage, len(b)) for b in batches]),
        lane=np.concatenate([np.tile(b.plan.lane, len(b)) for b in batches]),
        gbps=np.concatenate([np.tile(b.plan.gbps, len(b)) for b in batches]),
    )
    return table, ports


def _stack(upper: Table, lower: Table) -> Table:
    return Table(
        upper.schema,
        {
            column.name: np.concatenate([array, lower[column.name]])
            for column, array in upper.columns()
        },
    )


def _link_table(
    network: Network,
    managers: Sequence[ManagerLinks],
    switches: Table,
    first_switch: npt.NDArray[np.int64],
    hosts: HostSet,
    ports: Table,
) -> Table:
    def port_rows(batch: LinkBatch, side: str) -> Int:
        index = getattr(batch, f"{side}_batch")
        port: Int = getattr(batch, f"{side}_port")
        if index < 0:
            return port
        switch = getattr(batch, f"{side}_switch") + first_switch[index]
        return np.asarray(switches.port_first[switch] + port, np.int32)

    batches = network.links
    first_port = int(switches.port_first[0])
    n_manager = sum(len(m.switch) for m in managers)
    n_compute_ports = hosts.n_nics * hosts.ports_per_nic
    a = np.concatenate(
        [*(port_rows(b, "a") for b in batches), n_compute_ports + np.arange(n_manager)]
    ).astype(np.int32)
    b = np.concatenate(
        [*(port_rows(b, "b") for b in batches), *(m.port + first_port for m in managers)]
    ).astype(np.int32)
    count = len(a)
    size = [len(x) for x in batches]
    manager_size = [len(m.switch) for m in managers]
    tier = np.concatenate([np.repeat([x.tier for x in batches], size), np.ones(n_manager)])
    table = SCHEMAS["links"].table(
        count,
        port_a=a,
        port_b=b,
        gbps=np.concatenate(
            [
                np.repeat([x.gbps for x in batches], size),
                np.repeat([m.gbps for m in managers], manager_size),
            ]
        ),
        tier=tier,
        plane=np.concatenate(
            [
                np.repeat([x.plane for x in batches], size),
                np.repeat([m.plane for m in managers], manager_size),
            ]
        ),
        rail=np.concatenate([concatenate_links(batches, "rail"), np.full(n_manager, -1)]),
    )
    table = table.take(np.argsort(table.tier, kind="stable"))
    return table.replace(cable=_cables(table, hosts, ports))


def _cables(links: Table, hosts: HostSet, ports: Table) -> Int:
    """Number the cables: ports of one NIC cage share a breakout cable, others have their own."""
    key = np.arange(len(links), dtype=np.int64) + len(ports)
    if hosts.ports_share_cage and hosts.ports_per_nic > 1:
        compute = (links.tier == 1) & (links.port_a < hosts.n_nics * hosts.ports_per_nic)
        key[compute] = links.port_a[compute] // hosts.ports_per_nic
    unique, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.empty(len(unique), np.int32)
    order[np.argsort(first, kind="stable")] = np.arange(len(unique))
    return order[inverse].astype(np.int32)


def _link_stage(links: Table, ports: Table, nics: Table, hosts: Table, switches: Table) -> Int:
    def stage_of(port: Int) -> Int:
        on_switch = ports.is_switch[port] == 1
        device = ports.device[port]
        stage = np.zeros(len(port), np.int32)
        stage[on_switch] = switches.stage[device[on_switch]]
        stage[~on_switch] = hosts.stage[nics.host[device[~on_switch]]]
        return stage

    return np.maximum(stage_of(links.port_a), stage_of(links.port_b))
