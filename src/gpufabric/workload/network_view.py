"""A fabric as workloads see it: its hosts as a cluster, and the blocks that share uplinks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import NON_BLOCKING, Block, blocks_of
from gpufabric.workload.impairment import IMPAIRMENTS, Ask, impair

__all__ = ["DIRECT_OFF", "NetworkView", "copying_hosts", "view_of"]

DIRECT_OFF = Ask(IMPAIRMENTS["gdr_off"], 1.0)
"""GPUDirect RDMA is off."""


@dataclass(frozen=True, eq=False)
class NetworkView:
    """A fabric as workloads see it.

    Parameters
    ----------
    fabric
        The fabric; its protocol decides whether switches hash.
    cluster
        Today's hosts, each NIC at its full rate.
    blocks
        Hosts that share uplinks; without GPUDirect RDMA each host is one too (`copying_hosts`).
    """

    fabric: Fabric
    cluster: Cluster
    blocks: tuple[Block, ...]

    @property
    def n_host_links(self) -> int:
        """Today's links from NICs of the cluster to leafs."""
        links, hosts = self.fabric.links, self.fabric.hosts
        rows = (links.tier == 1) & (links.stage <= 0)
        rows[rows] = hosts.role[self.fabric.port_vertex[links.port_a[rows]]] == 0
        n_hosts = int(((hosts.role == 0) & (hosts.stage <= 0)).sum())
        return round(int(rows.sum()) * self.cluster.n_domains / max(1, n_hosts))


def view_of(
    fabric: Fabric, gpu: str, n_ranks: int | None = None, *, has_gpudirect: bool = True
) -> NetworkView:
    """Return a fabric as workloads see it.

    Parameters
    ----------
    fabric
        The fabric; today's hosts and links are taken.
    gpu
        Model of its GPUs.
    n_ranks
        The first so many GPUs take part: whole hosts, or a part of one. All where None.
    has_gpudirect
        Whether NICs reach the GPUs' memory themselves.

    Raises
    ------
    InputError
        If there are no GPUs, not so many, or the catalogue has no constants for them.
    """
    hosts, links = fabric.hosts, fabric.links
    mine = np.flatnonzero((hosts.role == 0) & (hosts.stage <= 0) & (hosts.n_gpus > 0))
    if not len(mine):
        what = _("no host has both GPUs and NICs.")
        raise InputError(Fault(fabric.name, what, _("a fabric with GPUs")))
    each = int(hosts.n_gpus[mine[0]])
    n_hosts, inside = _part(len(mine), each, n_ranks)
    rows = np.flatnonzero((links.tier == 1) & (links.stage <= 0))
    rows = rows[fabric.port_vertex[links.port_a[rows]] == mine[0]]
    n_nics = len(np.unique(fabric.ports.device[links.port_a[rows]]))
    wire = float(links.gbps[rows].sum(dtype=np.float64)) / 8
    cluster = Cluster(
        gpu,
        inside,
        n_hosts,
        wire if n_hosts > 1 else None,
        "rdma",
        n_nics=max(1, n_nics * inside // each),
    )
    copying = () if has_gpudirect else copying_hosts(cluster)
    return NetworkView(fabric, cluster, (*copying, *blocks_of(fabric)))


def copying_hosts(cluster: Cluster) -> tuple[Block, ...]:
    """Return each host as a block whose NICs are its uplinks, where GPUDirect RDMA is off.

    All that leaves a host crosses the bridges to its memory twice (`impairment`), so that its NICs
    get `ratio` times less than they could send. Every group that leaves its host is then at least
    that much slower, whatever the network does to it. None where hosts lose nothing by it.
    """
    if not DIRECT_OFF.impairment.applies_to(cluster):
        return ()
    full = cluster.wire_gbytes_per_s
    left = impair(cluster, (DIRECT_OFF,)).cluster.wire_gbytes_per_s
    if full is None or left is None or full / left <= NON_BLOCKING:
        return ()
    n, gbps = cluster.n_nics, 8 * full / cluster.n_nics
    return (Block("host", 1, full / left, cluster.n_domains, n, n, gbps, gbps * left / full),)


def _part(n_hosts: int, each: int, n_ranks: int | None) -> tuple[int, int]:
    """Hosts that take part, and GPUs of each."""
    n = n_hosts * each if n_ranks is None else n_ranks
    if 1 <= n <= each:
        return 1, n
    if n < 1 or n > n_hosts * each or n % each:
        what = _("{n} GPUs are not whole hosts of {each}.").format(n=n, each=each)
        expected = _("a multiple of {each}, at most {most}").format(each=each, most=n_hosts * each)
        raise InputError(Fault("--ranks", what, expected))
    return n // each, each
