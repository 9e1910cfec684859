"""Flows for the benchmarks of the flow engine: fat trees with random ECMP, made from a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.flow import FlowProblem, Paths

__all__ = [
    "all_to_all",
    "busy_leaf_spine",
    "incast",
    "permutation",
    "random_arrivals",
    "read_peer_case",
    "with_random_sizes",
    "write_peer_case",
]

Ints = NDArray[np.int64]
GBPS = 400.0  # 50 GB/s, as in the peers' cases
BYTES_PER_S = 1.25e8  # in 1 Gb/s


def _two_tier(source: Ints, target: Ints, n_hosts: int, rng: np.random.Generator) -> Paths:
    """Paths over sqrt(n) leaves of sqrt(n) hosts and as many spines, a random spine each."""
    radix = int(np.sqrt(n_hosts))
    spine = rng.integers(0, radix, source.size)
    leaf_of_source, leaf_of_target = source // radix, target // radix
    hops = np.stack(
        [
            source,
            n_hosts + leaf_of_source * radix + spine,
            2 * n_hosts + leaf_of_target * radix + spine,
            3 * n_hosts + target,
        ],
        axis=1,
    )
    used = np.ones_like(hops, np.bool_)
    used[:, 1:3] = (leaf_of_source != leaf_of_target)[:, None]
    return _paths(hops, used)


def _three_tier(source: Ints, target: Ints, k: int, rng: np.random.Generator) -> Paths:
    """Paths over the fat tree of k-port switches (k**3 / 4 hosts), a random core each."""
    half, n_hosts = k // 2, k**3 // 4
    aggregation = rng.integers(0, half, source.size)
    core = aggregation * half + rng.integers(0, half, source.size)
    edge_of_source, edge_of_target = source // half, target // half
    pod_of_source, pod_of_target = edge_of_source // half, edge_of_target // half
    hops = np.stack(
        [
            source,
            n_hosts + edge_of_source * half + aggregation,
            2 * n_hosts + pod_of_source * half**2 + core,
            3 * n_hosts + pod_of_target * half**2 + core,
            4 * n_hosts + edge_of_target * half + aggregation,
            5 * n_hosts + target,
        ],
        axis=1,
    )
    used = np.ones_like(hops, np.bool_)
    used[:, 1] = used[:, 4] = edge_of_source != edge_of_target
    used[:, 2] = used[:, 3] = pod_of_source != pod_of_target
    return _paths(hops, used)


def _paths(hops: Ints, used: NDArray[np.bool_]) -> Paths:
    first = np.zeros(hops.shape[0] + 1, np.int64)
    first[1:] = np.cumsum(used.sum(axis=1))
    return Paths(first, hops[used].astype(np.int32))


def all_to_all(n_hosts: int, seed: int = 1) -> FlowProblem:
    """Every host sends 1 MB to every other, at once, over a two-tier fat tree."""
    rng = np.random.default_rng(seed)
    source, target = (part.ravel() for part in np.indices((n_hosts, n_hosts)))
    other = source != target
    paths = _two_tier(source[other], target[other], n_hosts, rng)
    return FlowProblem(np.full(4 * n_hosts, GBPS), paths, np.full(paths.n_paths, 1e6))


def permutation(k: int, *, equal: bool, seed: int = 1) -> FlowProblem:
    """Every host sends to one other and receives from one, over a three-tier fat tree."""
    rng = np.random.default_rng(seed)
    n_hosts = k**3 // 4
    circle = rng.permutation(n_hosts)
    source, target = circle, np.roll(circle, 1)
    paths = _three_tier(source, target, k, rng)
    size = np.full(n_hosts, 1e9) if equal else np.rint(rng.exponential(1e9, n_hosts)) + 1
    return FlowProblem(np.full(6 * n_hosts, GBPS), paths, size)


def random_arrivals(load: float, seed: int = 1) -> FlowProblem:
    """20,000 flows of mixed sizes at random times between 1,024 hosts of a three-tier fat tree."""
    rng = np.random.default_rng(seed)
    k, n_hosts, n_flows = 16, 1024, 20_000
    source = rng.integers(0, n_hosts, n_flows)
    target = (source + rng.integers(1, n_hosts, n_flows)) % n_hosts
    paths = _three_tier(source, target, k, rng)
    size = np.rint(np.exp(rng.uniform(np.log(1e6), np.log(1e9), n_flows)))
    start = np.sort(rng.uniform(0, 0.25, n_flows)).round(9) / load
    return FlowProblem(np.full(6 * n_hosts, GBPS), paths, size, start_s=start)


def read_peer_case(stem: Path, load: float = 1.0) -> FlowProblem:
    """A case of the peers' folder: ``NAME_links.csv`` and ``NAME_flows.csv``; starts / `load`."""
    links = np.genfromtxt(Path(f"{stem}_links.csv"), delimiter=",", skip_header=1, usecols=[2])
    lines = Path(f"{stem}_flows.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split(",") for line in lines]
    return FlowProblem(
        links / BYTES_PER_S,
        Paths.from_lists([[int(c) for c in row[5].split()] for row in rows]),
        np.array([float(row[3]) for row in rows]),
        start_s=np.array([float(row[4]) for row in rows]) / load,
    )


def write_peer_case(problem: FlowProblem, stem: Path) -> None:
    """Write a problem without caps and weights in the form of the peers' folder."""
    with Path(f"{stem}_links.csv").open("w", encoding="utf-8") as file:
        file.write("link_id,name,bandwidth_Bps,latency_s\n")
        file.writelines(
            f"{link},link{link},{gbps * BYTES_PER_S:.17g},0\n"
            for link, gbps in enumerate(problem.capacity_gbps)
        )
    start_s = np.zeros(problem.n_flows) if problem.start_s is None else problem.start_s
    first, channel = problem.paths.first.tolist(), problem.paths.channel.tolist()
    with Path(f"{stem}_flows.csv").open("w", encoding="utf-8") as file:
        file.write("flow_id,src,dst,size_bytes,start_s,path_link_ids\n")
        for flow, (size, start) in enumerate(zip(problem.size_bytes, start_s, strict=True)):
            path = " ".join(map(str, channel[first[flow] : first[flow + 1]]))
            file.write(f"{flow},0,0,{size:.0f},{start:.17g},{path}\n")


def with_random_sizes(make: Callable[[], FlowProblem], seed: int = 3) -> FlowProblem:
    """The same flows with sizes of their own, 1 MB in the mean."""
    problem = make()
    size = np.random.default_rng(seed).exponential(1e6, problem.n_flows)
    return dataclasses.replace(problem, size_bytes=np.rint(size) + 1)


def busy_leaf_spine(n_hosts: int, n_flows: int, load: float, seed: int = 5) -> FlowProblem:
    """Flows of 100 MB in the mean between random hosts, `load` times what the hosts can send."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, n_hosts, n_flows)
    target = (source + rng.integers(1, n_hosts, n_flows)) % n_hosts
    paths = _two_tier(source, target, n_hosts, rng)
    span_s = n_flows * 1e8 / (n_hosts * GBPS * BYTES_PER_S) / load
    size = np.rint(rng.exponential(1e8, n_flows)) + 1
    start_s = np.sort(rng.uniform(0, span_s, n_flows))
    return FlowProblem(np.full(4 * n_hosts, GBPS), paths, size, start_s=start_s)


def incast(n_senders: int, seed: int = 1) -> FlowProblem:
    """Every sender sends 100 MB in the mean to one host."""
    rng = np.random.default_rng(seed)
    paths = Paths.from_lists([[sender, n_senders] for sender in range(n_senders)])
    size = np.rint(rng.exponential(1e8, n_senders)) + 1
    return FlowProblem(np.full(n_senders + 1, GBPS), paths, size)
