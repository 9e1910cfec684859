"""Switches and links of one Clos network from its shape, as whole arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.topology.clos_sizing import ClosNeed, ClosShape
from gpufabric.topology.parts import HostPorts, LinkBatch, Network, SwitchBatch
from gpufabric.topology.port_plan import plan_ports

__all__ = ["ClosLabels", "build_clos", "numbered"]

Int = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ClosLabels:
    """How the switches of one network are named and which plane and rail they belong to.

    Parameters
    ----------
    prefix
        Put before every name, such as ``p0-``.
    plane
        Plane.
    rail
        Rail of every switch of a rail-only network, else -1.
    leaf_tags
        Tag of each leaf of an SU, such as ``r0`` or ``a``.
    class_rails
        Rail that each leaf of an SU serves; -1 where it serves several.
    """

    prefix: str
    plane: int
    rail: int
    leaf_tags: tuple[str, ...]
    class_rails: tuple[int, ...]


def numbered(stem: str, count: int, start: int = 1) -> npt.NDArray[np.str_]:
    """Return `count` names ``stem01, stem02, …`` padded to one width.

    Examples
    --------
    >>> numbered("spine-", 3).tolist()
    ['spine-01', 'spine-02', 'spine-03']
    """
    width = max(2, len(str(count + start - 1)))
    numbers = np.char.zfill(np.arange(start, start + count).astype(str), width)
    return np.char.add(stem, numbers)


def build_clos(
    network: Network, need: ClosNeed, shape: ClosShape, hosts: HostPorts, labels: ClosLabels
) -> None:
    """Add the leafs, spines, cores and all links of one Clos network to `network`.

    Notes
    -----
    Leaf ``l`` has its hosts on ports 0… in host order and uplink ``j`` on spine ``j // m`` of its
    group, where ``m`` is the number of parallel links; spine ports run over leafs, then over
    parallel links. Spines and cores are striped the same way.
    """
    leaf_batch = network.add_switches(_leafs(need, shape, hosts, labels))
    _host_links(network, need, shape, hosts, labels, leaf_batch)
    spine_batch = network.add_switches(
        _spines(need, shape, labels, network.switches[leaf_batch].stage)
    )
    _leaf_spine(network, shape, labels, leaf_batch, spine_batch)
    if shape.tiers == 3:
        core_batch = network.add_switches(_cores(need, shape, labels))
        _spine_core(network, shape, labels, spine_batch, core_batch)


def _leafs(need: ClosNeed, shape: ClosShape, hosts: HostPorts, labels: ClosLabels) -> SwitchBatch:
    su = np.repeat(np.arange(shape.n_sus, dtype=np.int32), shape.leafs_per_su)
    tag = np.tile(np.arange(shape.leafs_per_su, dtype=np.int32), shape.n_sus)
    su_names = numbered(f"{labels.prefix}leaf-su", shape.n_sus)
    names = su_names[su]
    if shape.leafs_per_su > 1 or labels.leaf_tags[0]:
        names = np.char.add(np.char.add(names, "-"), np.array(labels.leaf_tags)[tag])
    segments = [(need.host_gbps, shape.leaf_down), (shape.uplink_gbps, shape.leaf_up)]
    first_host = np.minimum(np.arange(shape.n_sus) * shape.su_hosts, hosts.n_hosts - 1)
    return SwitchBatch(
        names=names,
        model=need.leaf.name,
        tier=1,
        plan=plan_ports(need.leaf, segments),
        plane=labels.plane,
        rail=np.array(labels.class_rails, np.int32)[tag],
        su=su,
        pod=_pod_of_leaf(shape, su, tag),
        group=np.full(len(su), -1, np.int32),
        stage=hosts.stage[first_host][su].astype(np.int32),
    )


def _pod_of_leaf(shape: ClosShape, su: Int, tag: Int) -> Int:
    if shape.tiers == 2:
        return np.zeros(len(su), np.int32)
    block = su // shape.sus_per_block
    return (block * shape.leafs_per_su + tag if shape.by_rail else block).astype(np.int32)


def _host_links(
    network: Network,
    need: ClosNeed,
    shape: ClosShape,
    hosts: HostPorts,
    labels: ClosLabels,
    leaf_batch: int,
) -> None:
    n_hosts, n_classes, per_class = hosts.port.shape
    host = np.arange(n_hosts, dtype=np.int32)
    leaf = (host // shape.su_hosts * n_classes)[:, None, None] + np.arange(n_classes)[None, :, None]
    port = (host % shape.su_hosts * need.ports_per_host)[:, None, None] + np.arange(per_class)
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
            b_switch=_spread(leaf, hosts.port.shape)[used],
            b_port=_spread(port, hosts.port.shape)[used],
            rail=hosts.rail.ravel()[used],
        )
    )


def _spread(values: npt.NDArray[np.int64], shape: tuple[int, ...]) -> Int:
    return np.ascontiguousarray(np.broadcast_to(values, shape), dtype=np.int32).ravel()


def _spines(need: ClosNeed, shape: ClosShape, labels: ClosLabels, leaf_stage: Int) -> SwitchBatch:
    group = np.repeat(np.arange(shape.n_groups, dtype=np.int32), shape.spines_per_group)
    segments = [(shape.uplink_gbps, shape.spine_down)]
    if shape.tiers == 3:
        segments.append((shape.core_gbps, shape.spine_up))
        stem = numbered(f"{labels.prefix}spine-g", shape.n_groups)[group]
        index = np.tile(np.arange(1, shape.spines_per_group + 1), shape.n_groups)
        width = max(2, len(str(shape.spines_per_group)))
        names = np.char.add(np.char.add(stem, "-"), np.char.zfill(index.astype(str), width))
    else:
        names = numbered(f"{labels.prefix}spine-", shape.spines_per_group)
    rail = np.full(len(group), labels.rail, np.int32)
    if shape.tiers == 3 and shape.by_rail:
        rail = np.array(labels.class_rails, np.int32)[group % shape.leafs_per_su]
    return SwitchBatch(
        names=names,
        model=need.spine.name,
        tier=2,
        plan=plan_ports(need.spine, segments),
        plane=labels.plane,
        rail=rail,
        su=np.full(len(group), -1, np.int32),
        pod=group,
        group=group,
        stage=_group_stage(shape, leaf_stage)[group],
    )


def _group_stage(shape: ClosShape, leaf_stage: Int) -> Int:
    """Return the stage of each spine group: that of its earliest leaf."""
    stage = np.ones(shape.n_groups, np.int32)
    leaf = np.arange(shape.n_leafs, dtype=np.int32)
    pod = _pod_of_leaf(shape, leaf // shape.leafs_per_su, leaf % shape.leafs_per_su)
    np.minimum.at(stage, pod, leaf_stage)
    return stage


def _leaf_spine(
    network: Network, shape: ClosShape, labels: ClosLabels, leaf_batch: int, spine_batch: int
) -> None:
    leafs = network.switches[leaf_batch]
    leaf = np.repeat(np.arange(shape.n_leafs, dtype=np.int32), shape.leaf_up)
    uplink = np.tile(np.arange(shape.leaf_up, dtype=np.int32), shape.n_leafs)
    pair = shape.links_per_pair
    su, tag = leaf // shape.leafs_per_su, leaf % shape.leafs_per_su
    if shape.tiers == 2:
        place = leaf
    elif shape.by_rail:
        place = su % shape.sus_per_block
    else:
        place = su % shape.sus_per_block * shape.leafs_per_su + tag
    network.links.append(
        LinkBatch(
            tier=2,
            gbps=shape.uplink_gbps,
            plane=labels.plane,
            a_batch=leaf_batch,
            b_batch=spine_batch,
            a_switch=leaf,
            a_port=leafs.plan.first[1] + uplink,
            b_switch=leafs.pod[leaf] * shape.spines_per_group + uplink // pair,
            b_port=place * pair + uplink % pair,
            rail=leafs.rail[leaf],
        )
    )


def _cores(need: ClosNeed, shape: ClosShape, labels: ClosLabels) -> SwitchBatch:
    count = shape.n_cores
    group = np.arange(count, dtype=np.int32) // shape.cores_per_group
    down = shape.n_groups * shape.indices_per_core_group * shape.links_per_core
    none = np.full(count, -1, np.int32)
    return SwitchBatch(
        names=numbered(f"{labels.prefix}core-", count),
        model=need.core.name,
        tier=3,
        plan=plan_ports(need.core, [(shape.core_gbps, down)]),
        plane=labels.plane,
        rail=np.full(count, labels.rail, np.int32),
        su=none,
        pod=none,
        group=group,
        stage=np.zeros(count, np.int32),
    )


def _spine_core(
    network: Network, shape: ClosShape, labels: ClosLabels, spine_batch: int, core_batch: int
) -> None:
    spines = network.switches[spine_batch]
    spine = np.repeat(np.arange(shape.n_spines, dtype=np.int32), shape.spine_up)
    uplink = np.tile(np.arange(shape.spine_up, dtype=np.int32), shape.n_spines)
    index = spine % shape.spines_per_group
    core_group = index // shape.indices_per_core_group
    pair = shape.links_per_core
    slot = (
        spine // shape.spines_per_group * shape.indices_per_core_group
        + index % shape.indices_per_core_group
    )
    network.links.append(
        LinkBatch(
            tier=3,
            gbps=shape.core_gbps,
            plane=labels.plane,
            a_batch=spine_batch,
            b_batch=core_batch,
            a_switch=spine,
            a_port=spines.plan.first[1] + uplink,
            b_switch=core_group * shape.cores_per_group + uplink // pair,
            b_port=slot * pair + uplink % pair,
            rail=spines.rail[spine],
        )
    )
