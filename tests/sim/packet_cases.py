"""Small fabrics for the tests of the packet engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import PacketProblem, Wires

US = 1_000_000  # picoseconds
Link = tuple[int, int, float, int]


def wires_of(links: Sequence[Link], n_hosts: int) -> Wires:
    """Channels ``2 * link`` and back; ends below `n_hosts` are NICs, then come the switches."""
    ends = [end for a, b, _, _ in links for end in ((a, b), (b, a))]
    as_switch = [[max(-1, one - n_hosts) for one in pair] for pair in ends]
    return Wires(
        np.repeat([gbps for _, _, gbps, _ in links], 2).astype(float),
        np.repeat([delay for _, _, _, delay in links], 2).astype(np.int64),
        np.array([tail for tail, _ in as_switch]),
        np.array([head for _, head in as_switch]),
        np.arange(2 * len(links)) ^ 1,
    )


def path(links: Sequence[Link], n_hosts: int, source: int, target: int) -> list[int]:
    """Channels of a shortest path."""
    came: dict[int, tuple[int, int]] = {source: (-1, -1)}
    row = deque([source])
    while row:
        at = row.popleft()
        if at < n_hosts and at != source:
            continue
        for link, (a, b, _, _) in enumerate(links):
            for tail, head, channel in ((a, b, 2 * link), (b, a, 2 * link + 1)):
                if tail == at and head not in came:
                    came[head] = (at, channel)
                    row.append(head)
    channels = []
    while target != source:
        target, channel = came[target]
        channels.append(channel)
    return channels[::-1]


def problem_of(
    links: Sequence[Link],
    n_hosts: int,
    flows: Sequence[tuple[int, int, int]],
    start_ps: Sequence[int] | None = None,
) -> PacketProblem:
    """Messages (source, target, bytes) over shortest paths."""
    return PacketProblem(
        wires_of(links, n_hosts),
        Paths.from_lists([path(links, n_hosts, a, b) for a, b, _ in flows]),
        Paths.from_lists([path(links, n_hosts, b, a) for a, b, _ in flows]),
        np.array([size for _, _, size in flows], np.int64),
        start_ps=None if start_ps is None else np.array(start_ps, np.int64),
    )


def star(n_hosts: int, gbps: float = 100.0, delay_ps: int = US) -> list[Link]:
    """All hosts on one switch; host h leaves by channel 2h, is reached by 2h + 1."""
    return [(host, n_hosts, gbps, delay_ps) for host in range(n_hosts)]


def incast(n: int, size: int, gbps: float = 100.0, delay_ps: int = US) -> PacketProblem:
    """Hosts 1 … n send `size` bytes to host 0."""
    return problem_of(
        star(n + 1, gbps, delay_ps), n + 1, [(host, 0, size) for host in range(1, n + 1)]
    )
