"""Dragonfly+ (groups of leafs and spines, joined by their spines) and the canonical dragonfly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.topology.clos_build import ClosLabels, numbered
from gpufabric.topology.clos_sizing import ClosNeed, divisors, split_down_up, uplinks_for
from gpufabric.topology.parts import HostPorts, LinkBatch, Network, SwitchBatch
from gpufabric.topology.port_plan import plan_ports

__all__ = [
    "DragonflyPlusShape",
    "DragonflyShape",
    "build_dragonfly",
    "build_dragonfly_plus",
    "global_links",
    "size_dragonfly",
    "size_dragonfly_plus",
]

Int = npt.NDArray[np.int32]


@dataclass(frozen=True)
class DragonflyPlusShape:
    """Counts of a dragonfly+.

    Parameters
    ----------
    n_groups, sus_per_group, leafs_per_su, su_hosts
        Groups; SUs of a group; leafs of an SU; hosts of an SU.
    spines_per_group, links_per_pair
        Spines of a group; parallel links between a leaf and each of them.
    leaf_down, leaf_up, spine_down, spine_global
        Ports in use on a full leaf and a full spine.
    links_per_group_pair
        Links between any two groups.
    gbps
        Rate of leaf-spine and global links [Gb/s].
    """

    n_groups: int
    n_sus: int
    sus_per_group: int
    leafs_per_su: int
    su_hosts: int
    spines_per_group: int
    links_per_pair: int
    leaf_down: int
    leaf_up: int
    spine_down: int
    spine_global: int
    links_per_group_pair: int
    gbps: float


@dataclass(frozen=True)
class DragonflyShape:
    """Counts of a canonical dragonfly: a = 2p = 2h (Kim et al., ISCA 2008, section 3.1).

    Parameters
    ----------
    p, a, h
        Host ports, routers of a group, and global ports of a router.
    n_groups
        Groups.
    hosts_per_router
        Hosts on one router.
    """

    p: int
    a: int
    h: int
    n_groups: int
    hosts_per_router: int


def size_dragonfly_plus(need: ClosNeed) -> DragonflyPlusShape | None:
    """Return the dragonfly+ with the fewest groups that holds the hosts, or None.

    Groups are equal; every two groups have the same number of links. A spine has as many global
    as leaf links, divided by ``spine_ratio``.
    """
    gbps = need.uplink_gbps or min(need.leaf.gbps, need.spine.gbps)
    down, _ = split_down_up(need.leaf, need.host_gbps, gbps, need.leaf_ratio)
    most = down // need.ports_per_host
    su_hosts = need.su_hosts or most
    if most == 0 or su_hosts > most:
        return None
    used = su_hosts * need.ports_per_host
    up = uplinks_for(used, need.host_gbps, gbps, need.leaf_ratio)
    limit, _ = split_down_up(need.spine, gbps, gbps, need.spine_ratio)
    n_sus = max(-(-need.n_hosts // su_hosts), -(-need.min_leafs // need.leafs_per_su))
    largest = limit // need.leafs_per_su
    for sus in range(min(largest, -(-n_sus // 2)), 0, -1):
        shape = _with_groups(need, (su_hosts, used, up), n_sus, sus, gbps, limit)
        if shape is not None:
            return shape
    return None


def _with_groups(
    need: ClosNeed, leaf: tuple[int, int, int], n_sus: int, sus: int, gbps: float, limit: int
) -> DragonflyPlusShape | None:
    su_hosts, used, up = leaf
    n_groups = -(-n_sus // sus)
    sus = -(-n_sus // n_groups)
    leafs = sus * need.leafs_per_su
    for spines in divisors(up):
        pair = up // spines
        if leafs * pair > limit or spines < need.min_spines:
            continue
        out = uplinks_for(leafs * pair, gbps, gbps, need.spine_ratio)
        each = spines * out // (n_groups - 1) if n_groups > 1 else 0
        if n_groups > 1 and each == 0:
            return None
        return DragonflyPlusShape(
            n_groups,
            n_sus,
            sus,
            need.leafs_per_su,
            su_hosts,
            spines,
            pair,
            used,
            up,
            leafs * pair,
            out,
            each,
            gbps,
        )
    return None


def size_dragonfly(need: ClosNeed) -> DragonflyShape | None:
    """Return the balanced dragonfly of the leaf switch that holds the hosts, or None."""
    ports = need.leaf.count_at(need.host_gbps)
    p = (ports + 1) // 4
    hosts_per_router = p // need.ports_per_host
    if hosts_per_router == 0:
        return None
    a, h = 2 * p, p
    n_groups = -(-need.n_hosts // (a * hosts_per_router))
    if n_groups > a * h + 1:
        return None
    return DragonflyShape(p, a, h, n_groups, hosts_per_router)


def global_links(n_groups: int, per_group: int, *, use_remainder: bool) -> npt.NDArray[np.int32]:
    """Return int32[n, 4]: group a, its global port, group b, its global port, a < b.

    Every two groups get ``per_group // (n_groups - 1)`` links; with `use_remainder` the ports
    left over join groups at distance 1, 2, … around the circle of groups.
    """
    if n_groups < 2:
        return np.zeros((0, 4), np.int32)
    each = per_group // (n_groups - 1)
    a, b = np.triu_indices(n_groups, 1)
    lane = np.tile(np.arange(each), len(a))
    a, b = np.repeat(a, each), np.repeat(b, each)
    rows = [np.column_stack([a, (b - 1) * each + lane, b, a * each + lane])]
    if use_remainder:
        port = (n_groups - 1) * each
        group = np.arange(n_groups)
        for step in range(1, (n_groups - 1) // 2 + 1):
            if port + 2 > per_group:
                break
            rows.append(
                np.column_stack(
                    [
                        group,
                        np.full(n_groups, port),
                        (group + step) % n_groups,
                        np.full(n_groups, port + 1),
                    ]
                )
            )
            port += 2
    return np.concatenate(rows).astype(np.int32)


def build_dragonfly_plus(
    network: Network,
    need: ClosNeed,
    shape: DragonflyPlusShape,
    hosts: HostPorts,
    labels: ClosLabels,
) -> None:
    """Add leafs, spines, local and global links of a dragonfly+ to `network`."""
    leaf_batch = network.add_switches(_plus_leafs(need, shape, hosts, labels))
    _plus_host_links(network, need, shape, hosts, labels, leaf_batch)
    group = np.repeat(np.arange(shape.n_groups, dtype=np.int32), shape.spines_per_group)
    names = np.char.add(
        numbered(f"{labels.prefix}spine-g", shape.n_groups)[group],
        np.char.add(
            "-",
            np.char.zfill(
                np.tile(np.arange(1, shape.spines_per_group + 1), shape.n_groups).astype(str),
                max(2, len(str(shape.spines_per_group))),
            ),
        ),
    )
    none = np.full(len(group), -1, np.int32)
    leafs = network.switches[leaf_batch]
    stage = _earliest(leafs.group, leafs.stage, shape.n_groups)[group]
    segments = [(shape.gbps, shape.spine_down), (shape.gbps, shape.spine_global)]
    plan = plan_ports(need.spine, segments)
    spine_batch = network.add_switches(
        SwitchBatch(names, need.spine.name, 2, plan, labels.plane, none, none, group, group, stage)
    )
    _plus_local(network, shape, labels, leaf_batch, spine_batch)
    links = global_links(
        shape.n_groups, shape.links_per_group_pair * (shape.n_groups - 1), use_remainder=False
    )
    spines = shape.spines_per_group
    network.links.append(
        LinkBatch(
            tier=5,
            gbps=shape.gbps,
            plane=labels.plane,
            a_batch=spine_batch,
            b_batch=spine_batch,
            a_switch=links[:, 0] * spines + links[:, 1] % spines,
            a_port=plan.first[1] + links[:, 1] // spines,
            b_switch=links[:, 2] * spines + links[:, 3] % spines,
            b_port=plan.first[1] + links[:, 3] // spines,
            rail=np.full(len(links), -1, np.int32),
        )
    )


def _earliest(group: Int, stage: Int, n_groups: int) -> Int:
    """Return the stage of each group: that of its earliest member."""
    found = np.ones(n_groups, np.int32)
    np.minimum.at(found, group, stage)
    return found


def _plus_leafs(
    need: ClosNeed, shape: DragonflyPlusShape, hosts: HostPorts, labels: ClosLabels
) -> SwitchBatch:
    su = np.repeat(np.arange(shape.n_sus, dtype=np.int32), shape.leafs_per_su)
    tag = np.tile(np.arange(shape.leafs_per_su, dtype=np.int32), shape.n_sus)
    names = numbered(f"{labels.prefix}leaf-su", shape.n_sus)[su]
    if shape.leafs_per_su > 1:
        names = np.char.add(np.char.add(names, "-"), np.array(labels.leaf_tags)[tag])
    segments = [(need.host_gbps, shape.leaf_down), (shape.gbps, shape.leaf_up)]
    first_host = np.minimum(np.arange(shape.n_sus) * shape.su_hosts, hosts.n_hosts - 1)
    group = (su // shape.sus_per_group).astype(np.int32)
    return SwitchBatch(
        names=names,
        model=need.leaf.name,
        tier=1,
        plan=plan_ports(need.leaf, segments),
        plane=labels.plane,
        rail=np.array(labels.class_rails, np.int32)[tag],
        su=su,
        pod=group,
        group=group,
        stage=hosts.stage[first_host][su].astype(np.int32),
    )


def _plus_host_links(
    network: Network,
    need: ClosNeed,
    shape: DragonflyPlusShape,
    hosts: HostPorts,
    labels: ClosLabels,
    leaf_batch: int,
) -> None:
    n_hosts, n_classes, per_class = hosts.port.shape
    host = np.arange(n_hosts, dtype=np.int64)[:, None, None]
    leaf = host // shape.su_hosts * n_classes + np.arange(n_classes)[None, :, None]
    port = host % shape.su_hosts * need.ports_per_host + np.arange(per_class)
    used = (hosts.port >= 0).ravel()
    network.links.append(
        LinkBatch(
            tier=1,
            gbps=need.host_gbps,
            plane=labels.plane,
            a_batch=-1,
            b_batch=leaf_batch,
            a_switch=np.zeros(int(used.sum()), np.int32),
            a_port=hosts.port.ravel()[used],
            b_switch=np.broadcast_to(leaf, hosts.port.shape).ravel()[used].astype(np.int32),
            b_port=np.broadcast_to(port, hosts.port.shape).ravel()[used].astype(np.int32),
            rail=hosts.rail.ravel()[used],
        )
    )


def _plus_local(
    network: Network,
    shape: DragonflyPlusShape,
    labels: ClosLabels,
    leaf_batch: int,
    spine_batch: int,
) -> None:
    leafs = network.switches[leaf_batch]
    leaf = np.repeat(np.arange(len(leafs), dtype=np.int32), shape.leaf_up)
    uplink = np.tile(np.arange(shape.leaf_up, dtype=np.int32), len(leafs))
    place = leaf % (shape.sus_per_group * shape.leafs_per_su)
    pair = shape.links_per_pair
    network.links.append(
        LinkBatch(
            tier=2,
            gbps=shape.gbps,
            plane=labels.plane,
            a_batch=leaf_batch,
            b_batch=spine_batch,
            a_switch=leaf,
            a_port=leafs.plan.first[1] + uplink,
            b_switch=leafs.group[leaf] * shape.spines_per_group + uplink // pair,
            b_port=place * pair + uplink % pair,
            rail=leafs.rail[leaf],
        )
    )


def build_dragonfly(
    network: Network, need: ClosNeed, shape: DragonflyShape, hosts: HostPorts, labels: ClosLabels
) -> None:
    """Add routers, local and global links of a canonical dragonfly to `network`.

    Routers of a group form a full mesh; router ``r`` reaches router ``s`` of its group on local
    port ``s - 1`` (``s > r``) or ``s``. The last group may be without some hosts, not routers.
    """
    group = np.repeat(np.arange(shape.n_groups, dtype=np.int32), shape.a)
    index = np.tile(np.arange(1, shape.a + 1), shape.n_groups).astype(str)
    names = np.char.add(
        np.char.add(numbered(f"{labels.prefix}router-g", shape.n_groups)[group], "-"),
        np.char.zfill(index, max(2, len(str(shape.a)))),
    )
    gbps = need.host_gbps
    plan = plan_ports(need.leaf, [(gbps, shape.p), (gbps, shape.a - 1), (gbps, shape.h)])
    none = np.full(len(group), -1, np.int32)
    of_host = np.arange(hosts.n_hosts, dtype=np.int32) // (shape.a * shape.hosts_per_router)
    stage = _earliest(of_host, hosts.stage, shape.n_groups)[group]
    batch = network.add_switches(
        SwitchBatch(names, need.leaf.name, 1, plan, labels.plane, none, none, group, group, stage)
    )
    host = np.arange(hosts.n_hosts, dtype=np.int32)
    ports = hosts.port.reshape(hosts.n_hosts, -1)
    router = np.repeat(host // shape.hosts_per_router, ports.shape[1])
    slot = (host % shape.hosts_per_router * ports.shape[1])[:, None] + np.arange(ports.shape[1])
    a, b = np.triu_indices(shape.a, 1)
    base = np.repeat(np.arange(shape.n_groups) * shape.a, len(a))
    links = global_links(shape.n_groups, shape.a * shape.h, use_remainder=True)
    first = plan.first
    for tier, ends in (
        (1, (np.zeros(ports.size), ports.ravel(), router, slot.ravel())),
        (
            4,
            (
                base + np.tile(a, shape.n_groups),
                first[1] + np.tile(b - 1, shape.n_groups),
                base + np.tile(b, shape.n_groups),
                first[1] + np.tile(a, shape.n_groups),
            ),
        ),
        (
            5,
            (
                links[:, 0] * shape.a + links[:, 1] % shape.a,
                first[2] + links[:, 1] // shape.a,
                links[:, 2] * shape.a + links[:, 3] % shape.a,
                first[2] + links[:, 3] // shape.a,
            ),
        ),
    ):
        _append(network, tier, gbps, batch, ends, hosts.rail.ravel())


def _append(
    network: Network,
    tier: int,
    gbps: float,
    batch: int,
    ends: tuple[npt.NDArray[np.generic], ...],
    rails: npt.NDArray[np.int32],
) -> None:
    a_switch, a_port, b_switch, b_port = (np.asarray(end).astype(np.int32) for end in ends)
    rail = rails if tier == 1 else np.full(len(a_port), -1, np.int32)
    network.links.append(
        LinkBatch(
            tier,
            gbps,
            network.switches[batch].plane,
            -1 if tier == 1 else batch,
            batch,
            a_switch,
            a_port,
            b_switch,
            b_port,
            rail,
        )
    )
