"""How much slower a blocking or hashed network is for each kind of group of ranks, in closed form.

Hosts under the same switches form a *block*; what leaves a block shares its uplinks. A ring of
ranks leaves a block once, an exchange of all with all nearly with every byte: the same uplinks
may be ample for the one and too few for the other.

- Oversubscription: uplinks carry `ratio` times less than the block's hosts send. If a share `c`
  of what they send crosses, the network is ``max(1, ratio * c)`` times slower.
- Hashing (ECMP): each connection takes one uplink at random; the fullest uplink of the first
  tier, up or down, slows all that wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gpufabric.model.fabric import Fabric
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.nccl_tuner import PEERS_AT_ONCE

__all__ = [
    "CONNECTIONS",
    "NON_BLOCKING",
    "Block",
    "Span",
    "blocks_of",
    "crossing_share",
    "hashed_slowdowns",
    "slowdown_of",
    "spans_of",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CONNECTIONS = 4
"""Connections that a NIC of a ring sends over at once, each hashed by itself: channels of NCCL
times queue pairs; assumed."""
NON_BLOCKING = 1.001
"""Ratios up to here are rounding."""


@dataclass(frozen=True)
class Block:
    """Hosts under switches that share uplinks.

    Parameters
    ----------
    name
        ``leaf`` or ``pod``; ``host`` where its own bridges are what blocks.
    n_hosts
        Hosts of a full block.
    ratio
        What its hosts send at most over what its uplinks carry, of the worst block.
    n_blocks
        Such blocks.
    n_down, n_up
        Links to hosts, and uplinks, of a full block.
    down_gbps, up_gbps
        Rate of one of each [Gb/s].
    """

    name: str
    n_hosts: int
    ratio: float
    n_blocks: int
    n_down: int
    n_up: int
    down_gbps: float
    up_gbps: float


@dataclass(frozen=True)
class Span:
    """How a group lies over hosts.

    Parameters
    ----------
    n_hosts
        Hosts, or NVLink domains, that it has ranks in.
    spacing
        From one of these to the next, counted in hosts.
    is_exchange
        Whether all send to all; else each sends to the next.
    """

    n_hosts: int
    spacing: int = 1
    is_exchange: bool = False


def blocks_of(fabric: Fabric) -> tuple[Block, ...]:
    """Return today's blocks of a fabric, from the leaf up; none where one switch joins all.

    Notes
    -----
    A leaf block is a leaf with its hosts; its uplinks are all links to other switches. A pod block
    is what ``switches.pod`` names, a pod or a dragonfly group; its uplinks leave it.
    """
    links = fabric.links
    today = links.stage <= 0
    owner = fabric.port_vertex[links.port_a]
    below = np.flatnonzero(today & (links.tier == 1))
    below = below[fabric.hosts.role[owner[below]] == 0]
    if not len(below):
        return ()
    upper = np.flatnonzero(today & (links.tier > 1))
    leaf = fabric.ports.device[links.port_b[below]].astype(np.int64)
    ends = [
        fabric.ports.device[side[upper]].astype(np.int64) for side in (links.port_a, links.port_b)
    ]
    switches = fabric.switches
    pod = switches.pod.astype(np.int64)
    place = switches.plane.astype(np.int64) * 4096 + switches.rail * (fabric.family == "rail-only")
    apart = np.where(pod >= 0, place * (int(pod.max(initial=0)) + 2) + pod, -1)
    leafs = np.where(switches.tier == 1, np.arange(len(switches)), -1)
    found = []
    for name, key in (("leaf", leafs), ("pod", apart)):
        block = _block(fabric, name, (key[leaf], below), (key[ends[0]], key[ends[1]], upper))
        found += [block] if block is not None else []
    return tuple(found)


def _block(
    fabric: Fabric, name: str, down: tuple[Ints, Ints], up: tuple[Ints, Ints, Ints]
) -> Block | None:
    """The worst block of a kind; None if no two blocks share a network."""
    key, rows = down
    first, second, crossing = up
    gbps = fabric.links.gbps
    is_out = first != second
    outside = np.concatenate([first[is_out], second[is_out]])
    links_out = np.concatenate([crossing[is_out], crossing[is_out]])
    links_out, outside = links_out[outside >= 0], outside[outside >= 0]
    if not len(outside):
        return None
    n = int(max(key.max(), outside.max())) + 1
    down_gbps = np.bincount(key, gbps[rows].astype(np.float64), n)
    up_gbps = np.bincount(outside, gbps[links_out].astype(np.float64), n)
    used = np.flatnonzero((down_gbps > 0) & (up_gbps > 0))
    if len(used) < 2:
        return None
    ratio = down_gbps[used] / up_gbps[used]
    worst = int(used[ratio.argmax()])
    host = fabric.port_vertex[fabric.links.port_a[rows]].astype(np.int64)
    pairs = np.unique(np.stack([key, host]), axis=1)[0]
    mine, ups = key == worst, links_out[outside == worst]
    return Block(
        name,
        int(np.bincount(pairs, minlength=n)[used].max()),
        float(ratio.max()),
        len(used),
        int(mine.sum()),
        len(ups),
        float(gbps[rows][mine].max()),
        float(gbps[ups].max()),
    )


def crossing_share(span: Span, block: Block) -> float:
    """Share of what hosts of a full block send for a group that leaves the block.

    Notes
    -----
    Groups lie on hosts `spacing` apart, and other groups of their kind on the hosts between; a
    block of m hosts has ``m / spacing`` hosts of one group. Of a ring's sends ``spacing / m``
    leave, of an exchange over D hosts ``(D - m / spacing) / (D - 1)``.
    """
    if span.n_hosts * span.spacing <= block.n_hosts or span.n_hosts < 2:
        return 0.0
    own = max(1.0, block.n_hosts / span.spacing)
    if span.is_exchange:
        return (span.n_hosts - own) / (span.n_hosts - 1)
    return 1.0 / own


def slowdown_of(span: Span, blocks: tuple[Block, ...]) -> float:
    """Return how many times slower than at full NIC rate the network is for such groups."""
    found = 1.0
    for block in blocks:
        if block.ratio > NON_BLOCKING:
            found = max(found, block.ratio * crossing_share(span, block))
    return found


def hashed_slowdowns(span: Span, blocks: tuple[Block, ...], uniform: Floats) -> Floats:
    """Return slowdowns by the fullest uplink where each connection takes one at random.

    Parameters
    ----------
    span
        Of the groups.
    blocks
        Of the fabric; leafs are those that hash.
    uniform
        float64[n_jobs]: in (0, 1), one draw a job.

    Notes
    -----
    Of f connections that leave a leaf with u uplinks, an uplink gets a binomial number of f with
    share 1/u. The fullest of L leafs' uplinks, up and down, is drawn as the most of ``2 L u``
    independent ones, and takes ``number * rate of a connection / rate of an uplink``.
    """
    slow = np.full(uniform.shape, slowdown_of(span, blocks))
    for block in blocks:
        share = crossing_share(span, block)
        if block.name != "leaf" or share <= 0:
            continue
        each = PEERS_AT_ONCE if span.is_exchange else CONNECTIONS
        flows = max(1, round(block.n_down * share * each))
        number = np.arange(flows + 1)
        above = special.bdtrc(number, flows, 1 / block.n_up)
        below = np.log1p(-above) * 2 * block.n_blocks * block.n_up
        most = np.searchsorted(below, np.log(uniform), side="left").clip(0, flows)
        slow = np.maximum(slow, most * block.down_gbps / each / block.up_gbps)
    return slow


def spans_of(cluster: Cluster, groups: Iterable[tuple[str, int, int]]) -> dict[str, Span]:
    """Return how groups lie over hosts, of those that cross the network.

    Parameters
    ----------
    cluster
        Whose domains are the hosts.
    groups
        Name, ranks and stride of each.
    """
    each = cluster.gpus_per_domain
    found = {}
    for name, size, stride in groups:
        n_hosts = -(-size // min(size, max(1, each // stride)))
        if n_hosts > 1:
            found[name] = Span(n_hosts, max(1, stride // each), name == "expert")
    return found
