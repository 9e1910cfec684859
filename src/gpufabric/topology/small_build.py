"""Networks without a spine: one switch, or two joined back to back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpufabric.topology.clos_build import ClosLabels
from gpufabric.topology.parts import HostPorts, LinkBatch, Network, SwitchBatch
from gpufabric.topology.port_plan import SwitchPorts, plan_ports

__all__ = ["PairShape", "build_pair", "build_star", "size_pair"]

Int = npt.NDArray[np.int32]


@dataclass(frozen=True)
class PairShape:
    """Two switches back to back.

    Parameters
    ----------
    host_gbps, cross_gbps
        Rate of a host link and of a cross link [Gb/s].
    down
        Host ports of the fuller switch.
    cross
        Links between the two.
    """

    host_gbps: float
    cross_gbps: float
    down: int
    cross: int

    @property
    def ratio(self) -> float:
        """Host over cross capacity of one switch."""
        return self.down * self.host_gbps / (self.cross * self.cross_gbps)


def size_pair(
    switch: SwitchPorts, down: int, host_gbps: float, cross_gbps: float, ratio: float
) -> PairShape | None:
    """Return the pair whose switches hold `down` host ports within `ratio`, or None.

    As many cross links as `ratio` asks for are taken; where they do not fit, as many as fit,
    if the result is still within `ratio`.

    Examples
    --------
    Two 24-port switches for 26 single-port hosts: 13 down, 11 across.

    >>> size_pair(SwitchPorts("x", 24, 1.0, 1, {}), 13, 1.0, 1.0, 1.2)
    PairShape(host_gbps=1.0, cross_gbps=1.0, down=13, cross=11)
    """
    cross = -(-round(down * host_gbps * 1_000_000) // round(ratio * cross_gbps * 1_000_000))
    if not switch.fits([(host_gbps, down), (cross_gbps, int(cross))]):
        return None
    return PairShape(host_gbps, cross_gbps, down, int(cross))


def build_star(
    network: Network, switch: SwitchPorts, host_gbps: float, hosts: HostPorts, labels: ClosLabels
) -> None:
    """Add one switch that all host ports end on."""
    ports = hosts.port.reshape(hosts.n_hosts, -1)
    used = ports.ravel() >= 0
    count = int(used.sum())
    name = f"{labels.prefix}leaf-{labels.leaf_tags[0] or '01'}"
    batch = network.add_switches(
        _leafs([name], switch, [(host_gbps, count)], labels, (labels.rail,))
    )
    network.links.append(
        LinkBatch(
            tier=1,
            gbps=host_gbps,
            plane=labels.plane,
            a_batch=-1,
            b_batch=batch,
            a_switch=np.zeros(count, np.int32),
            a_port=ports.ravel()[used],
            b_switch=np.zeros(count, np.int32),
            b_port=np.arange(count, dtype=np.int32),
            rail=hosts.rail.ravel()[used],
        )
    )


def build_pair(
    network: Network, switch: SwitchPorts, shape: PairShape, hosts: HostPorts, labels: ClosLabels
) -> None:
    """Add two switches and their cross links; every host has half its rails on each.

    Hosts that stay on one leaf are divided between the switches.
    """
    n_hosts, n_classes, per_class = hosts.port.shape
    if n_classes == 1:
        half = -(-n_hosts // 2)
        leaf = np.repeat((np.arange(n_hosts) >= half).astype(np.int32), per_class)
    else:
        side_of_class = (np.arange(n_classes) >= -(-n_classes // 2)).astype(np.int32)
        leaf = np.tile(np.repeat(side_of_class, per_class), n_hosts)
    used = hosts.port.ravel() >= 0
    leaf = leaf[used].astype(np.int32)
    port = np.zeros(len(leaf), np.int32)
    for side in (0, 1):
        mine = leaf == side
        port[mine] = np.arange(int(mine.sum()))
    segments = [(shape.host_gbps, shape.down), (shape.cross_gbps, shape.cross)]
    names = [f"{labels.prefix}leaf-a", f"{labels.prefix}leaf-b"]
    batch = network.add_switches(_leafs(names, switch, segments, labels, (-1, -1)))
    network.links.append(
        LinkBatch(
            tier=1,
            gbps=shape.host_gbps,
            plane=labels.plane,
            a_batch=-1,
            b_batch=batch,
            a_switch=np.zeros(len(leaf), np.int32),
            a_port=hosts.port.ravel()[used],
            b_switch=leaf,
            b_port=port,
            rail=hosts.rail.ravel()[used],
        )
    )
    cross = network.switches[batch].plan.first[1] + np.arange(shape.cross, dtype=np.int32)
    network.links.append(
        LinkBatch(
            tier=4,
            gbps=shape.cross_gbps,
            plane=labels.plane,
            a_batch=batch,
            b_batch=batch,
            a_switch=np.zeros(shape.cross, np.int32),
            a_port=cross,
            b_switch=np.ones(shape.cross, np.int32),
            b_port=cross,
            rail=np.full(shape.cross, -1, np.int32),
        )
    )


def _leafs(
    names: list[str],
    switch: SwitchPorts,
    segments: list[tuple[float, int]],
    labels: ClosLabels,
    rails: tuple[int, ...],
) -> SwitchBatch:
    count = len(names)
    return SwitchBatch(
        names=np.array(names),
        model=switch.name,
        tier=1,
        plan=plan_ports(switch, segments),
        plane=labels.plane,
        rail=np.array(rails, np.int32),
        su=np.zeros(count, np.int32),
        pod=np.zeros(count, np.int32),
        group=np.full(count, -1, np.int32),
        stage=np.zeros(count, np.int32),
    )
