"""Forwarding tables, fallbacks and credit loops against the real OpenSM and ibdmchk."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gpufabric.export.ibsim import adapter_guid, switch_guid
from gpufabric.model.fabric import Fabric
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.deadlock import find_deadlock, turns_of
from gpufabric.routing.tables import Engine, ForwardingTables, forwarding_tables
from tests.routing.opensm import Subnet, netlist, run_opensm
from tests.routing.small_fabrics import build, designed, ring, three_tiers, two_tiers

pytestmark = pytest.mark.needs("opensm", "ibsim", "libumad2sim", "ibdmchk")


def rail_of_66() -> Fabric:
    """64 GPUs and two managers on eight rails: one leaf has more hosts than the others."""
    return designed(64, "{fabric: infiniband, switch: qm9700, topology: rail}").fabric


def uneven() -> Fabric:
    """Five leafs with one to four hosts, three spines, cabled out of order."""
    links = [(a, 5 + b) for a in range(5) for b in range(3) for _ in range(2)]
    random.Random(4).shuffle(links)
    return build([3, 1, 4, 2, 4, 0, 0, 0], links, [1] * 5 + [2] * 3)


FABRICS: dict[str, Callable[[], Fabric]] = {
    "rail of 66": rail_of_66,
    "two tiers": lambda: two_tiers(4, 2, 4, lanes=2),
    "three tiers": lambda: three_tiers(2, 3, 2, 2, 4),
    "uneven": uneven,
}


def all_ports(tables: ForwardingTables) -> dict[int, dict[int, list[int]]]:
    """Our tables of the first switch's subnet as OpenSM writes them: by switch and port GUID."""
    channels, each = tables.channels, tables.lids.per_port
    members = np.flatnonzero(channels.network_of == channels.network_of[0]).tolist()
    found = {}
    for switch in members:
        row = tables.port[switch].tolist()
        lft = {}
        for port in channels.endpoints.tolist():
            base = int(tables.lids.of_port[port])
            lft[adapter_guid(port) + 1] = row[base : base + each]
        for other in members:
            lft[switch_guid(other)] = [row[tables.lids.of_switch[other]]]
        found[switch_guid(switch)] = {
            guid: ports for guid, ports in lft.items() if tables.no_path not in ports
        }
    return found


def dlids(tables: ForwardingTables) -> Counter[int]:
    """How many channels between switches lie on paths to so many destinations, 0 left out."""
    ends = tables.channels.endpoints
    count = np.zeros(len(tables.channels.capacity_gbps), np.int64)
    for dst in ends.tolist():
        count[np.unique(tables.walk(ends, np.full(len(ends), dst)).channel)] += 1
    inner = count[tables.channels.graph.channel]
    return Counter(inner[inner > 0].tolist())


def compare(channels: Channels, subnet: Subnet, tables: ForwardingTables) -> None:
    assert tables.used == (subnet.engine,)
    assert all_ports(tables) == subnet.tables
    compare_hops(channels, subnet, tables)


def compare_hops(channels: Channels, subnet: Subnet, tables: ForwardingTables) -> None:
    """Hops between all pairs of hosts; OpenSM counts the host as one."""
    ends = channels.endpoints
    for dst in ends.tolist():
        paths = tables.walk(ends, np.full(len(ends), dst))
        for number, src in enumerate(ends.tolist()):
            if src != dst:
                switch = switch_guid(int(channels.leaf_of[src]))
                theirs = subnet.hops[switch][adapter_guid(dst) + 1][0]
                assert len(paths.row(number)) - 1 == theirs


@pytest.mark.parametrize("engine", ["minhop", "updn", "ftree"])
@pytest.mark.parametrize("name", FABRICS)
def test_tables_hops_and_loads_are_the_same(name: str, engine: Engine, tmp_path: Path) -> None:
    fabric = FABRICS[name]()
    channels = channels_of(fabric)
    tops = np.flatnonzero(fabric.switches.tier == fabric.switches.tier.max()).tolist()
    roots = tops if engine == "updn" else []
    subnet = run_opensm(tmp_path, netlist(fabric), engine, roots=roots)
    tables = forwarding_tables(channels, engine)
    assert tables.used == (engine,)
    compare(channels, subnet, tables)
    assert dlids(tables) == subnet.n_dlids
    assert not subnet.has_credit_loop
    assert find_deadlock(turns_of(tables)).is_free


@pytest.mark.parametrize("lmc", [1, 2, 3])
def test_tables_with_several_lids_a_port_are_the_same(lmc: int, tmp_path: Path) -> None:
    fabric = two_tiers(4, 3, 3, lanes=2)
    subnet = run_opensm(tmp_path, netlist(fabric), "minhop", lmc=lmc)
    channels = channels_of(fabric)
    compare(channels, subnet, forwarding_tables(channels, "minhop", lmc=lmc))


def links_of(fabric: Fabric, switch: int) -> list[int]:
    vertex = len(fabric.hosts) + switch
    adjacency = fabric.adjacency
    found: list[int] = adjacency.link[
        adjacency.first[vertex] : adjacency.first[vertex + 1]
    ].tolist()
    return found


def test_ftree_refuses_a_tree_that_lacks_a_link_as_opensm_does(tmp_path: Path) -> None:
    fabric = two_tiers(4, 2, 4, lanes=2)
    lost = [links_of(fabric, 5)[3]]
    channels = channels_of(fabric).with_failures(links=lost)
    tables = forwarding_tables(channels, "ftree")
    compare(channels, run_opensm(tmp_path, netlist(fabric, lost), "ftree"), tables)
    assert tables.used == ("minhop",)
    (decision,) = tables.decisions
    assert decision.is_warning
    assert "different numbers of links up to a switch" in decision.why


def test_ftree_stays_where_a_whole_spine_is_lost(tmp_path: Path) -> None:
    fabric = two_tiers(4, 3, 4)
    channels = channels_of(fabric).with_failures(switches=[5])
    lost = np.flatnonzero(~channels.link_up).tolist()
    subnet = run_opensm(tmp_path, netlist(fabric, lost), "ftree")
    tables = forwarding_tables(channels, "ftree")
    assert tables.used[0] == subnet.engine == "ftree"
    assert all_ports(tables) == subnet.tables


def test_ftree_with_roots_named_routes_the_tree_that_lacks_a_link(tmp_path: Path) -> None:
    fabric = two_tiers(4, 2, 4, lanes=2)
    lost = [links_of(fabric, 5)[3]]
    channels = channels_of(fabric).with_failures(links=lost)
    tables = forwarding_tables(channels, "ftree", roots=[4, 5])
    subnet = run_opensm(tmp_path, netlist(fabric, lost), "ftree", roots=[4, 5])
    assert subnet.engine == "ftree"
    compare(channels, subnet, tables)


def test_a_ring_has_a_credit_loop_under_minhop(tmp_path: Path) -> None:
    fabric = ring(6)
    channels = channels_of(fabric)
    tables = forwarding_tables(channels, "minhop")
    subnet = run_opensm(tmp_path, netlist(fabric), "minhop")
    compare(channels, subnet, tables)
    assert subnet.has_credit_loop
    assert not find_deadlock(turns_of(tables)).is_free


def test_a_ring_has_none_under_updn_with_a_root_named(tmp_path: Path) -> None:
    fabric = ring(6)
    channels = channels_of(fabric)
    tables = forwarding_tables(channels, "updn", roots=[2])
    subnet = run_opensm(tmp_path, netlist(fabric), "updn", roots=[2])
    compare(channels, subnet, tables)
    assert not subnet.has_credit_loop
    assert find_deadlock(turns_of(tables)).is_free


def irregular(seed: int) -> tuple[Fabric, int]:
    """Switches joined at random, each with hosts, and one of them to be the root."""
    draw = random.Random(seed)
    size = draw.randint(4, 9)
    links = [(s, draw.randrange(s)) for s in range(1, size)]
    for _ in range(draw.randint(2, 2 * size)):
        one, other = draw.sample(range(size), 2)
        links.append((one, other))
    return build([draw.randint(1, 3) for _ in range(size)], links), draw.randrange(size)


@pytest.mark.parametrize("seed", range(6))
def test_irregular_fabrics(seed: int, tmp_path: Path) -> None:
    fabric, root = irregular(seed)
    engine: Engine = "updn" if seed % 2 else "minhop"
    channels = channels_of(fabric)
    tables = forwarding_tables(channels, engine, roots=[root])
    roots = [root] if engine == "updn" else []
    subnet = run_opensm(tmp_path, netlist(fabric), engine, roots=roots)
    compare(channels, subnet, tables)
    assert subnet.has_credit_loop != find_deadlock(turns_of(tables)).is_free


@pytest.mark.parametrize("seed", [10, 11])
def test_irregular_fabrics_with_several_lids_a_port(seed: int, tmp_path: Path) -> None:
    """Tables only: ibdmchk finds no way to LIDs above the first."""
    fabric, root = irregular(seed)
    channels = channels_of(fabric)
    tables = forwarding_tables(channels, "updn", lmc=2, roots=[root])
    compare(channels, run_opensm(tmp_path, netlist(fabric), "updn", lmc=2, roots=[root]), tables)
