"""Random small fabrics for hypothesis, and the same as lists for the reference implementations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from gpufabric.model.fabric import Fabric
from gpufabric.routing.channels import Channels, channels_of
from tests.reference.walk import Edge
from tests.routing.small_fabrics import build, three_tiers, two_tiers

RATES = (100.0, 200.0, 400.0)


@st.composite
def graphs(draw: st.DrawFn, tiers: int = 3) -> Fabric:
    """Any graph of switches, of one or several networks, with hosts anywhere."""
    size = draw(st.integers(2, 7))
    tier = draw(st.lists(st.integers(1, tiers), min_size=size, max_size=size))
    pair = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(
        lambda ends: ends[0] != ends[1]
    )
    links = draw(st.lists(pair, min_size=1, max_size=12))
    hosts = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    hosts[0] += 1
    rates = draw(st.lists(st.sampled_from(RATES), min_size=len(links), max_size=len(links)))
    return build(hosts, links, tier, gbps=rates)


@st.composite
def trees(draw: st.DrawFn) -> Fabric:
    """Regular two- and three-tier fabrics."""
    if draw(st.booleans()):
        shape = [draw(st.integers(2, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))]
        return two_tiers(*shape, draw(st.integers(1, 2)))
    return three_tiers(*(draw(st.integers(1, 2)) for _ in range(4)), draw(st.integers(1, 3)))


@st.composite
def uneven_trees(draw: st.DrawFn) -> Fabric:
    """Two- and three-tier fabrics with any number of hosts on each leaf, cabled in any order."""
    leafs, spines = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    links = [(a, leafs + b) for a in range(leafs) for b in range(spines)]
    links *= draw(st.integers(1, 2))
    tier = [1] * leafs + [2] * spines
    if draw(st.booleans()):
        cores = draw(st.integers(1, 2))
        links += [(leafs + b, leafs + spines + c) for b in range(spines) for c in range(cores)]
        tier += [3] * cores
    hosts = draw(st.lists(st.integers(1, 3), min_size=leafs, max_size=leafs))
    order = draw(st.permutations(links))
    return build(hosts + [0] * (len(tier) - leafs), order, tier)


@dataclass(frozen=True)
class Plain:
    """A fabric's usable edges as lists."""

    channels: Channels
    out: list[list[int]]
    tier: list[int]

    @classmethod
    def of(cls, channels: Channels) -> Plain:
        graph = channels.graph
        ends = zip(graph.first[:-1].tolist(), graph.first[1:].tolist(), strict=True)
        out = [graph.head[start:end].tolist() for start, end in ends]
        return cls(channels, out, graph.tier.tolist())

    def number(self, edge: Edge) -> int:
        """Number of an edge among all."""
        return int(self.channels.graph.first[edge[0]]) + edge[1]

    def edge(self, number: int) -> Edge:
        switch = int(np.searchsorted(self.channels.graph.first, number, side="right")) - 1
        return switch, number - int(self.channels.graph.first[switch])

    def channel(self, edge: Edge) -> int:
        return int(self.channels.graph.channel[self.number(edge)])

    def port(self, edge: Edge) -> int:
        """Port of the edge on its switch, from 1."""
        channels = self.channels
        return int(channels.fabric.ports.port[channels.tail_port[self.channel(edge)]]) + 1

    @property
    def edges(self) -> list[Edge]:
        return [(s, n) for s, heads in enumerate(self.out) for n in range(len(heads))]

    @property
    def capacity(self) -> dict[Edge, float]:
        return {e: float(self.channels.capacity_gbps[self.channel(e)]) for e in self.edges}


@st.composite
def broken(draw: st.DrawFn, fabrics: st.SearchStrategy[Fabric]) -> Channels:
    """Channels of a fabric with up to two links between switches down."""
    channels = channels_of(draw(fabrics))
    inner = np.flatnonzero(channels.fabric.links.tier > 1)
    down = draw(st.lists(st.sampled_from(inner.tolist()), max_size=2)) if len(inner) else []
    return channels.with_failures(links=down)
