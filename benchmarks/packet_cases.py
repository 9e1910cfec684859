"""Messages for the benchmarks of the packet engine: fat trees with random ECMP, from a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import After, PacketProblem, Wires
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.collectives import messages_of
from gpufabric.workload.schedule import Messages

__all__ = ["all_to_all", "fat_tree", "permutation", "ring_all_reduce"]

Ints = NDArray[np.int64]


def fat_tree(k: int, gbps: float, delay_ps: int) -> Wires:
    """Return the channels of the fat tree of k-port switches: k**3 / 4 hosts, all at one speed.

    Channels in blocks of k**3 / 4: host to edge, edge to aggregation, aggregation to core, then
    the same three downwards. Switches: edges, aggregations, cores.
    """
    half, n_hosts = k // 2, k**3 // 4
    each = np.arange(n_hosts)
    edge, port = each // half, each % half
    n_edges = n_hosts // half
    aggregation = n_edges + edge // half * half + port
    core = 2 * n_edges + (edge % half) * half + port  # here `edge` numbers aggregations
    nic = np.full(n_hosts, -1)
    tail = [nic, edge, n_edges + edge, edge, aggregation, core]
    head = [edge, aggregation, core, nic, edge, n_edges + edge]
    reverse = np.concatenate([np.arange(3 * n_hosts, 6 * n_hosts), np.arange(3 * n_hosts)])
    return Wires(
        np.full(6 * n_hosts, gbps),
        np.full(6 * n_hosts, delay_ps),
        np.concatenate(tail),
        np.concatenate(head),
        reverse,
    )


def _rows(source: Ints, target: Ints, k: int, spread: Ints) -> Paths:
    """Return paths by way of aggregation ``spread // half`` and its core ``spread % half``."""
    half, n_hosts = k // 2, k**3 // 4
    up, core = spread // half, spread % half
    edge_from, edge_to = source // half, target // half
    pod_from, pod_to = edge_from // half, edge_to // half
    hops = np.stack(
        [
            source,
            n_hosts + edge_from * half + up,
            2 * n_hosts + (pod_from * half + up) * half + core,
            5 * n_hosts + (pod_to * half + up) * half + core,
            4 * n_hosts + edge_to * half + up,
            3 * n_hosts + target,
        ],
        axis=1,
    )
    used = np.ones_like(hops, np.bool_)
    used[:, 1] = used[:, 4] = edge_from != edge_to
    used[:, 2] = used[:, 3] = pod_from != pod_to
    first = np.zeros(source.size + 1, np.int64)
    first[1:] = np.cumsum(used.sum(axis=1))
    return Paths(first, hops[used].astype(np.int32))


def permutation(k: int, size_bytes: int, gbps: float = 100.0, seed: int = 1) -> PacketProblem:
    """Every host sends one message and receives one, over random paths; 1 us a link."""
    rng = np.random.default_rng(seed)
    n_hosts = k**3 // 4
    circle = rng.permutation(n_hosts)
    source, target = circle, np.roll(circle, 1)
    ways = (k // 2) ** 2
    paths = _rows(source, target, k, rng.integers(0, ways, n_hosts))
    back = _rows(target, source, k, rng.integers(0, ways, n_hosts))
    sizes = np.full(n_hosts, size_bytes)
    return PacketProblem(fat_tree(k, gbps, 1_000_000), paths, back, sizes)


def ring_all_reduce(k: int, size_bytes: int, gbps: float = 400.0) -> PacketProblem:
    """One ring over all hosts, a GPU each: 2 (n - 1) steps, each message after the one it needs."""
    n_hosts = k**3 // 4
    cluster = Cluster("H100", 1, n_hosts, gbps / 8)
    return _exchange(k, messages_of(cluster, "all_reduce", "Ring", size_bytes), gbps)


def all_to_all(k: int, n_hosts: int, size_bytes: int, gbps: float = 400.0) -> PacketProblem:
    """Each of the first hosts sends an equal part to each other one, all at once."""
    cluster = Cluster("H100", 1, n_hosts, gbps / 8)
    return _exchange(k, messages_of(cluster, "alltoall", "Pairwise", size_bytes), gbps)


def _exchange(k: int, messages: Messages, gbps: float, seed: int = 1) -> PacketProblem:
    """Return messages between hosts with what they wait for; each pair keeps to one path."""
    rng = np.random.default_rng(seed)
    ways = (k // 2) ** 2
    pairs, path = np.unique(
        messages.source * np.int64(messages.n_ranks) + messages.target, return_inverse=True
    )
    source, target = np.divmod(pairs, messages.n_ranks)
    return PacketProblem(
        fat_tree(k, gbps, 1_000_000),
        _rows(source, target, k, rng.integers(0, ways, pairs.size)),
        _rows(target, source, k, rng.integers(0, ways, pairs.size)),
        np.round(messages.n_bytes).astype(np.int64),
        path=path.astype(np.int32),
        after=After(messages.first, messages.after),
    )
