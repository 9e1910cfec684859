"""What holds for every design, whatever its family and size."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpufabric.catalog.load import load_catalog
from gpufabric.core.errors import InputError
from gpufabric.model.check import check_fabric
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import parse_requirement
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.bisection import bandwidth
from gpufabric.topology.clos_sizing import ClosShape
from gpufabric.topology.design import Design, design_candidate

# Switches on the longest shortest path, by shape and tiers.
DIAMETER = {
    ("star", 1): 1,
    ("pair", 1): 2,
    ("clos", 2): 3,
    ("clos", 3): 5,
    ("dragonfly", 1): 4,
    ("dragonfly+", 2): 4,
}
HOSTS = ("dgx-h100", "dgx-b300", "dgx-a100", "{gpus: 4, nics: 4, nic_gbps: 400}", "gb300-nvl72")
CANDIDATES = (
    "{fabric: infiniband}",
    "{fabric: infiniband, topology: fat-tree}",
    "{fabric: infiniband, topology: rail}",
    "{fabric: infiniband, topology: rail, oversubscription: 2}",
    "{fabric: infiniband, topology: rail, tiers: 3}",
    "{fabric: infiniband, topology: rail, tiers: 3, oversubscription: [1, 3]}",
    "{fabric: infiniband, topology: rail-only}",
    "{fabric: infiniband, topology: dragonfly+}",
    "{fabric: infiniband, topology: multi-plane, planes: 4}",
    "{fabric: infiniband, topology: fat-tree, planes: 8, leafs_per_host: 3}",
    "{fabric: infiniband, topology: dragonfly}",
    "{fabric: infiniband, topology: dual-tor}",
    "{fabric: infiniband, switch: q3400-ra}",
    "{fabric: roce}",
    "{fabric: roce, switch: sn5600, topology: rail}",
    "{fabric: roce, switch: sn5600, topology: fat-tree, leafs_per_host: 1}",
    "{fabric: roce, switch: th5-128x400g, topology: dual-tor}",
    "{fabric: roce, switch: sn5610, topology: multi-plane, planes: 2}",
    "{fabric: roce, switch: sn5610, topology: multi-plane, planes: 2, tiers: 3}",
    "{fabric: roce, switch: sn5400, topology: multi-plane, planes: 8}",
)


@cache
def catalog() -> Any:
    """Return the packaged catalogue."""
    return load_catalog()


def make(n_hosts: int, host: str, candidate: str, later: int = 0) -> Design | None:
    """Return a design, or None where the candidate cannot be built for the host."""
    growth = f"growth: {{hosts: {later}}}\n" if later else ""
    text = f"hosts: {n_hosts}\nhost: {host}\n{growth}candidates: [{candidate}]\n"
    try:
        requirement = parse_requirement(text.encode(), "spec.yaml")
        return design_candidate(requirement, requirement.candidates[0], catalog())
    except InputError:
        return None


@st.composite
def designs(draw: st.DrawFn, most_gpus: int = 20_000) -> Design:
    """Draw a design of any family."""
    host = draw(st.sampled_from(HOSTS))
    gpus = 72 if "nvl72" in host else 4 if "gpus: 4" in host else 8
    n_hosts = draw(st.one_of(st.integers(1, 40), st.integers(1, most_gpus // gpus)))
    later = draw(st.one_of(st.just(0), st.integers(n_hosts, max(n_hosts, most_gpus // gpus))))
    design = make(n_hosts, host, draw(st.sampled_from(CANDIDATES)), later)
    assume(design is not None)
    assert design is not None
    return design


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_every_candidate_is_built_for_most_hosts(candidate: str) -> None:
    """What is drawn below is not refused: each candidate suits four of the five hosts at least."""
    built = [make(40, host, candidate) is not None for host in HOSTS]
    assert sum(built) >= len(HOSTS) - 1


def test_every_family_is_drawn() -> None:
    """The candidates give every shape and every family of the spec but the single switch's own."""
    designs = [make(n, "dgx-h100", candidate) for candidate in CANDIDATES for n in (2, 8, 40)]
    kinds = {(design.sized.kind, design.sized.tiers) for design in designs if design}
    families = {design.fabric.family for design in designs if design}
    assert kinds >= {("star", 1), ("pair", 1), ("clos", 2), ("clos", 3)}
    assert kinds >= {("dragonfly", 1), ("dragonfly+", 2)}
    named = set(get_args(Candidate.model_fields["topology"].annotation)) - {"auto"}
    assert families >= named


@pytest.mark.parametrize(
    ("planes", "ports", "hosts"), [(2, 64, 256), (4, 128, 1024), (8, 256, 4096)]
)
def test_the_logical_radix_grows_with_the_planes(planes: int, ports: int, hosts: int) -> None:
    """An 800 Gb/s NIC over more planes splits the ports of a switch: two tiers hold r**2 / 2."""
    candidate = (
        f"{{fabric: roce, switch: sn5400, topology: multi-plane, planes: {planes}, tiers: 2}}"
    )
    design = make(hosts, "dgx-b300", candidate)
    assert design is not None
    assert hosts * 8 == ports**2 // 2
    assert (design.layout.mode, design.layout.host_gbps) == ("split", 800 / planes)
    assert design.summary()["leaf"] == planes * ports
    assert make(hosts + 1, "dgx-b300", candidate) is None


many = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
few = settings(many, max_examples=25)


@given(designs())
@many
def test_fabric_is_coherent(design: Design) -> None:
    """The checks that a fabric file must pass hold for what is built."""
    assert check_fabric(design.fabric) == []


@given(designs())
@many
def test_each_port_is_used_at_most_once(design: Design) -> None:
    """No port has two links, and a port is marked used exactly if it has one."""
    fabric = design.fabric
    ends = np.concatenate([fabric.links.port_a, fabric.links.port_b])
    uses = np.bincount(ends, minlength=len(fabric.ports))
    assert uses.max(initial=0) <= 1
    assert np.array_equal(uses == 1, fabric.ports.use == 1)


@given(designs())
@many
def test_both_ends_agree_and_fit_the_cage(design: Design) -> None:
    """Ends of a link run at its rate; no cage carries more lanes or rate than it has."""
    fabric = design.fabric
    ports, links = fabric.ports, fabric.links
    assert np.array_equal(ports.gbps[links.port_a], links.gbps)
    assert np.array_equal(ports.gbps[links.port_b], links.gbps)
    on_switch = ports.is_switch == 1
    device = ports.device[on_switch].astype(np.int64)
    key = device * 1024 + ports.cage[on_switch]
    cages, inverse = np.unique(key, return_inverse=True)
    rate = np.bincount(inverse, ports.gbps[on_switch])
    for model in set(fabric.switches.model.tolist()):
        switch = catalog().switch(fabric.models[model])
        mine = fabric.switches.model[cages // 1024] == model
        assert rate[mine].max() <= switch.ports.gbps * switch.ports_per_cage + 1e-6
        assert (cages[mine] % 1024).max() < switch.ports.cages
    assert len(np.unique(key * 64 + ports.lane[on_switch])) == int(on_switch.sum())


@given(designs())
@many
def test_every_nic_port_has_a_link(design: Design) -> None:
    """Every port of every host's NIC is linked to a leaf, and rails do not mix on a rail leaf."""
    fabric = design.fabric
    on_nic = fabric.ports.is_switch == 0
    assert (fabric.ports.use[on_nic] == 1).all()
    links = fabric.links
    host_links = np.flatnonzero(links.tier == 1)
    leaf = fabric.ports.device[links.port_b[host_links]]
    nic = fabric.ports.device[links.port_a[host_links]]
    rail = fabric.nics.rail[nic]
    leaf_rail = fabric.switches.rail[leaf]
    compute = (fabric.hosts.role[fabric.nics.host[nic]] == 0) & (leaf_rail >= 0)
    assert np.array_equal(rail[compute], leaf_rail[compute])
    if design.layout.by_rail and design.sized.kind == "clos":
        assert (leaf_rail >= 0).all()


@given(designs())
@many
def test_planes_never_connect(design: Design) -> None:
    """A link joins switches of one plane; in a rail-only fabric, of one rail."""
    fabric = design.fabric
    links, ports, switches = fabric.links, fabric.ports, fabric.switches
    upper = links.tier > 1
    a, b = ports.device[links.port_a[upper]], ports.device[links.port_b[upper]]
    assert np.array_equal(switches.plane[a], switches.plane[b])
    assert np.array_equal(switches.plane[a], links.plane[upper])
    if fabric.family == "rail-only":
        assert np.array_equal(switches.rail[a], switches.rail[b])


@given(designs())
@many
def test_every_leaf_has_equal_links_to_every_spine_of_its_group(design: Design) -> None:
    """Between a leaf and each spine of its group there are the same number of links."""
    shape, fabric = design.sized.shape, design.fabric
    if not isinstance(shape, ClosShape):
        return
    for tier, pair, per_lower in (
        (2, shape.links_per_pair, shape.spines_per_group),
        (3, shape.links_per_core, shape.cores_per_group),
    ):
        mask = fabric.links.tier == tier
        if not mask.any():
            continue
        lower = fabric.ports.device[fabric.links.port_a[mask]].astype(np.int64)
        upper = fabric.ports.device[fabric.links.port_b[mask]]
        pairs, count = np.unique(lower * len(fabric.switches) + upper, return_counts=True)
        assert set(count.tolist()) == {pair}
        ups = np.bincount(pairs // len(fabric.switches))
        assert set(ups[ups > 0].tolist()) == {per_lower}


@given(designs(most_gpus=4_000))
@few
def test_diameter(design: Design) -> None:
    """Every host reaches every other within the family's number of switches."""
    one_group = design.sized.kind == "dragonfly+" and design.n_pods == 1
    assert design.sized.hops == DIAMETER[design.sized.kind, design.sized.tiers] - one_group
    fabric = design.fabric
    graph = switch_graph(fabric)
    n_hosts = len(fabric.hosts)
    host_switches = _switches_of_hosts(fabric)
    picked = sorted({0, n_hosts // 2, n_hosts - 1} & set(host_switches))
    for host in picked:
        if fabric.hosts.role[host]:
            continue
        distance: dict[int, int] = {}
        for rail_leaf in host_switches[host]:
            for switch, hops in nx.single_source_shortest_path_length(graph, rail_leaf).items():
                distance[switch] = min(hops + 1, distance.get(switch, 99))
        for other in range(0, fabric.n_hosts, max(1, fabric.n_hosts // 50)):
            reach = min(distance.get(leaf, 99) for leaf in host_switches[other])
            assert reach <= design.sized.hops, (host, other)


def test_hops_are_those_of_the_family() -> None:
    """The diameter claimed is the family's."""
    cases = (
        (2, "{fabric: infiniband}", 1),
        (8, "{fabric: infiniband}", 1),
        (8, "{fabric: infiniband, topology: fat-tree}", 2),
        (31, "{fabric: infiniband, topology: dragonfly+}", 3),
        (31, "{fabric: infiniband}", 3),
        (512, "{fabric: infiniband}", 5),
        (512, "{fabric: infiniband, topology: dragonfly+}", 4),
    )
    for hosts, candidate, hops in cases:
        design = make(hosts, "dgx-h100", candidate)
        assert design is not None
        assert design.sized.hops == hops


@given(designs(most_gpus=1_500))
@few
def test_bisection_equals_maximum_flow(design: Design) -> None:
    """The formula's bisection is the maximum flow between the halves over single links."""
    fabric = design.fabric
    claimed = bandwidth(fabric, stage=1)
    for value, by_rail in (
        (claimed.between_hosts_gbps, False),
        (claimed.between_rails_gbps, True),
    ):
        if value is None:
            continue
        measured = max_flow_between_halves(fabric, by_rail=by_rail)
        if design.sized.kind in ("dragonfly+", "dragonfly"):
            # The formula sums the spines of a group; a single global link may bind earlier.
            assert measured <= value * (1 + 1e-9)
            assert measured >= value * 0.9
        else:
            assert measured == pytest.approx(value, rel=1e-9)


def test_bisection_of_known_designs() -> None:
    """Non-blocking is one half of the injection; 2:1 is a quarter; 3:1 at the spine a sixth."""
    cases = (
        (128, "{fabric: infiniband}", 1.0),
        (84, "{fabric: infiniband, oversubscription: 2}", 0.5),
        (1024, "{fabric: infiniband, oversubscription: [1, 3]}", 1 / 3),
        (1024, "{fabric: infiniband}", 1.0),
    )
    for hosts, candidate, share in cases:
        design = make(hosts, "dgx-h100", candidate)
        assert design is not None
        assert design.bandwidth.share == pytest.approx(share, rel=0.07), candidate


@given(designs(most_gpus=3_000))
@few
def test_growth_adds_and_never_moves(design: Design) -> None:
    """Links between today's devices are today's; nothing of today hangs on later devices."""
    fabric = design.fabric
    links = fabric.links
    stage_a = _stage_of_port(fabric, links.port_a)
    stage_b = _stage_of_port(fabric, links.port_b)
    assert np.array_equal(links.stage, np.maximum(stage_a, stage_b))
    stage = fabric.hosts.stage[fabric.hosts.role == 0]
    assert np.array_equal(stage, np.sort(stage))
    assert (links.stage[_is_manager_link(fabric)] == 0).all()


def test_same_input_same_fabric() -> None:
    """Two runs give the same content hash; another size another one."""
    first = make(40, "dgx-h100", "{fabric: infiniband}")
    again = make(40, "dgx-h100", "{fabric: infiniband}")
    other = make(41, "dgx-h100", "{fabric: infiniband}")
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.fabric.content_hash == again.fabric.content_hash
    assert first.fabric.content_hash != other.fabric.content_hash


def _is_manager_link(fabric: Fabric) -> Any:
    links = fabric.links
    host_links = links.tier == 1
    nic = np.where(host_links, fabric.ports.device[links.port_a], 0)
    return host_links & (fabric.nics.rail[nic] < 0)


def _stage_of_port(fabric: Fabric, port: Any) -> Any:
    stage = np.concatenate([fabric.hosts.stage, fabric.switches.stage])
    return stage[fabric.port_vertex[port]]


def switch_graph(fabric: Fabric) -> nx.Graph:
    """Return the graph of switches alone, with capacities [Gb/s]."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(fabric.switches)))
    upper = np.flatnonzero(fabric.links.tier > 1)
    for link in upper:
        a = int(fabric.ports.device[fabric.links.port_a[link]])
        b = int(fabric.ports.device[fabric.links.port_b[link]])
        gbps = float(fabric.links.gbps[link])
        if graph.has_edge(a, b):
            graph[a][b]["capacity"] += gbps
        else:
            graph.add_edge(a, b, capacity=gbps)
    return graph


def _switches_of_hosts(fabric: Fabric) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for link in np.flatnonzero(fabric.links.tier == 1):
        host = int(fabric.port_vertex[fabric.links.port_a[link]])
        leaf = int(fabric.ports.device[fabric.links.port_b[link]])
        found.setdefault(host, set()).add(leaf)
    return found


def max_flow_between_halves(fabric: Fabric, *, by_rail: bool) -> float:
    """Return the maximum flow from the first half of the hosts (or rails) to the second [Gb/s]."""
    graph = switch_graph(fabric)
    compute = np.flatnonzero(fabric.hosts.role == 0)
    first = set(compute[: len(compute) // 2].tolist())
    n_rails = int(fabric.nics.rail.max()) + 1
    rates: dict[tuple[str, int], float] = {}
    for link in np.flatnonzero(fabric.links.tier == 1):
        host = int(fabric.port_vertex[fabric.links.port_a[link]])
        if fabric.hosts.role[host]:
            continue
        leaf = int(fabric.ports.device[fabric.links.port_b[link]])
        nic = int(fabric.ports.device[fabric.links.port_a[link]])
        in_first = int(fabric.nics.rail[nic]) < n_rails // 2 if by_rail else host in first
        key = ("s" if in_first else "t", leaf)
        rates[key] = rates.get(key, 0.0) + float(fabric.links.gbps[link])
    flow = nx.DiGraph()
    for a, b, edge in graph.edges(data=True):
        flow.add_edge(a, b, capacity=edge["capacity"])
        flow.add_edge(b, a, capacity=edge["capacity"])
    for (side, leaf), rate in rates.items():
        ends = ("s", leaf) if side == "s" else (leaf, "t")
        flow.add_edge(*ends, capacity=rate)
    if "s" not in flow or "t" not in flow:
        return 0.0
    return float(nx.maximum_flow_value(flow, "s", "t"))
