from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet import PacketProblem, PacketResult, Wires, simulate_packets
from gpufabric.sim.packet_config import PacketConfig, PacketRouting, SwitchBuffer, Transport
from gpufabric.sim.packet_faults import LinkDown
from gpufabric.sim.packet_hops import HopTable
from gpufabric.sim.packet_routing_config import MODES
from tests.reference.packet_ends import Engine
from tests.sim.packet_cases import US, Link, problem_of, wires_of
from tests.sim.test_packet_faults import assert_faults_equal
from tests.sim.test_packet_parity import TRACE, UNTIL_PS, configs, with_pool

BARE = PacketConfig(ecn=None, buffer=SwitchBuffer(total_bytes=200_000_000))


def leaf_spine(n_hosts: int, n_leaves: int, n_spines: int, delay_ps: int = 10_000) -> list[Link]:
    """Hosts on leaves in turn, each leaf on each spine."""
    down: list[Link] = [
        (host, n_hosts + host % n_leaves, 100.0, delay_ps) for host in range(n_hosts)
    ]
    up: list[Link] = [
        (n_hosts + leaf, n_hosts + n_leaves + spine, 100.0, delay_ps)
        for leaf in range(n_leaves)
        for spine in range(n_spines)
    ]
    return down + up


def fat_tree(k: int) -> list[Link]:
    """Pods of k / 2 edge and aggregation switches; hosts, edges, aggregation, core in turn."""
    half, n_hosts = k // 2, k**3 // 4
    edge, agg, core = n_hosts, n_hosts + k * half, n_hosts + 2 * k * half
    links: list[Link] = [(host, edge + host // half, 100.0, 10_000) for host in range(n_hosts)]
    for pod, one, other in itertools.product(range(k), range(half), range(half)):
        links.append((edge + pod * half + one, agg + pod * half + other, 100.0, 10_000))
    for pod, one, other in itertools.product(range(k), range(half), range(half)):
        links.append((agg + pod * half + one, core + one * half + other, 100.0, 10_000))
    return links


@st.composite
def routed(draw: Any) -> PacketProblem:
    n_hosts, n_leaves, n_spines = draw(st.integers(4, 6)), draw(st.integers(2, 3)), 3
    links = leaf_spine(n_hosts, n_leaves, n_spines)
    pairs = st.tuples(st.integers(0, n_hosts - 1), st.integers(1, n_hosts - 1))
    flows = [
        (source, (source + step) % n_hosts, draw(st.sampled_from([30_000, 5_000, 1])))
        for source, step in draw(st.lists(pairs, min_size=3, max_size=8))
    ]
    problem = problem_of(links, n_hosts, flows)
    dead = draw(st.integers(2 * n_hosts, 2 * len(links) - 1))
    seed = draw(st.sampled_from([None, np.zeros(n_leaves + n_spines, np.int64)]))
    tables = [HopTable.from_wires(problem.wires, (), seed)]
    if draw(st.booleans()):
        tables.append(HopTable.from_wires(problem.wires, (dead, dead ^ 1), seed))
    return replace(
        problem,
        hops=tuple(tables),
        hops_from_us=(6.0,) * (len(tables) - 1),
        faults=(LinkDown(dead, 2.0, 40.0, draw(st.sampled_from([1.5, 1000.0]))),)
        if draw(st.booleans())
        else (),
    )


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(routed(), configs(), st.sampled_from(MODES), st.data())
def test_kernel_routes_each_packet_as_the_reference(
    problem: PacketProblem, config: PacketConfig, mode: str, data: Any
) -> None:
    routing = PacketRouting(
        mode, flowlet_gap_us=0.3, flowlet_slots=data.draw(st.sampled_from([1, 7]))
    )
    config = with_pool(problem, replace(config, routing=routing), 40_000)
    engine = Engine(problem, config)
    engine.run(UNTIL_PS)
    result = simulate_packets(problem, config, until_ps=UNTIL_PS, trace_rows=TRACE)
    assert_faults_equal(engine, result)
    assert result.drops["route"] == engine.faults.lost["route"]


def routed_problem(
    links: list[Link], n_hosts: int, flows: list[tuple[int, int, int]], seed: int | None = None
) -> PacketProblem:
    problem = problem_of(links, n_hosts, flows)
    n_switches = int(problem.wires.head.max()) + 1
    seeds = None if seed is None else np.full(n_switches, seed, np.int64)
    return replace(problem, hops=(HopTable.from_wires(problem.wires, (), seeds),))


def run(problem: PacketProblem, mode: str, **changes: Any) -> PacketResult:
    config = replace(BARE, routing=PacketRouting(mode), **changes)
    result = simulate_packets(problem, config)
    assert result.ledger.is_balanced
    return result


def test_a_table_has_all_shortest_ways_and_equal_sets_once() -> None:
    wires = wires_of(leaf_spine(8, 4, 3), 8)
    table = HopTable.from_wires(wires)
    assert table.n_columns == 4
    assert table.group.shape == (7, 4)
    for leaf, column in itertools.product(range(4), range(4)):
        if leaf != column:
            group = table.group[leaf, column]
            channels = table.channel[table.first[group] : table.first[group + 1]]
            assert sorted(wires.head[channels]) == [4, 5, 6]
            assert set(wires.tail[channels]) == {leaf}
    assert table.first.size - 1 == 4 + 3 * 4  # a set of uplinks a leaf, a way down a spine and leaf


def test_a_table_for_8192_hosts_is_small() -> None:
    n_leaves, n_spines, n_cores, pods = 256, 256, 256, 16
    hosts = np.arange(8192)
    leaf_of = hosts // 32
    leaves, spines = np.divmod(np.arange(n_leaves * 16), 16)
    tops, cores = np.divmod(np.arange(n_spines * 16), 16)
    down_tail = np.full(hosts.size, -1)
    up = np.stack([leaves, n_leaves + leaves // 16 * 16 + spines])
    top = np.stack([n_leaves + tops, n_leaves + n_spines + tops % 16 * 16 + cores])
    ends = np.concatenate([np.stack([down_tail, leaf_of]), up, top], axis=1)
    tail = np.stack([ends[0], ends[1]], axis=1).ravel()
    head = np.stack([ends[1], ends[0]], axis=1).ravel()
    n = tail.size
    wires = Wires(np.full(n, 400.0), np.zeros(n, np.int64), tail, head, np.arange(n) ^ 1)
    table = HopTable.from_wires(wires)
    assert (n_cores, pods) == (table.group.shape[0] - 512, 16)
    assert table.n_bytes < 4_000_000
    assert ((table.group < 0).sum(axis=0) == 1).all()  # but for its own switch, all reach all


def test_one_flow_in_turns_uses_all_ways_equally() -> None:
    n = 300
    problem = routed_problem(leaf_spine(4, 2, 3), 4, [(0, 1, n * 4096)])
    result = run(problem, "turn")
    uplinks = [8, 10, 12]  # of leaf 0: three links after the four of the hosts
    assert result.ports.packets[uplinks].tolist() == [n / 3] * 3
    assert result.flows.out_of_order.tolist() == [0]  # ways of equal length and nothing else there
    one_way = run(problem, "ecmp")
    assert sorted(one_way.ports.packets[uplinks].tolist()) == [0, 0, n]
    assert one_way.flows.fct_ps.tolist() == result.flows.fct_ps.tolist()


def test_packets_over_ways_of_different_length_come_out_of_order_and_are_counted() -> None:
    links = leaf_spine(2, 2, 2)
    links[2] = (*links[2][:3], 5 * US)
    result = run(routed_problem(links, 2, [(0, 1, 20 * 4096)]), "turn")
    assert result.flows.out_of_order[0] > 0
    assert result.flows.acked_ps[0] > 0


def test_adaptive_routing_leaves_the_way_where_another_flow_waits() -> None:
    # Two flows to leaf 1 and one to leaf 2: least-queue gives each uplink what it can carry.
    links = leaf_spine(6, 3, 2)
    flows = [(0, 1, 200 * 4096), (3, 4, 200 * 4096)]
    clash = run(routed_problem(links, 6, flows, seed=1), "adaptive")
    alone = run(routed_problem(links, 6, flows[:1], seed=1), "adaptive")
    assert clash.flows.fct_ps.max() < 1.05 * alone.flows.fct_ps.max()
    assert abs(int(clash.ports.packets[12]) - int(clash.ports.packets[14])) < 20


def test_a_flowlet_keeps_its_way_until_the_flow_pauses() -> None:
    problem = routed_problem(leaf_spine(4, 2, 3), 4, [(0, 1, 100 * 4096)])
    uplinks = [8, 10, 12]
    kept = run(problem, "flowlet")
    assert sorted(kept.ports.packets[uplinks].tolist()) == [0, 0, 100]
    # A window of one packet has a pause of a round trip after each.
    routing = PacketRouting("flowlet", flowlet_gap_us=0.5)
    config = replace(BARE, routing=routing, transport=Transport(window_bytes=4096))
    spread = simulate_packets(problem, config)
    assert (spread.ports.packets[uplinks] > 15).all()
    assert spread.flows.out_of_order.tolist() == [0]


def test_switches_that_hash_alike_leave_half_of_the_core_idle() -> None:
    """ECMP polarisation: the second tier sees flows that hash one way, and sends them one way."""
    n_hosts = 16
    flows = [
        (host, (host + 4 * turn) % n_hosts, 50 * 4096)
        for host, turn in itertools.product(range(n_hosts), (1, 2, 3))
    ]
    links = fat_tree(4)
    core = 2 * np.arange(n_hosts + 16, n_hosts + 32)  # channels from aggregation up to the core
    alike = run(routed_problem(links, n_hosts, flows, seed=7), "ecmp")
    apart = run(routed_problem(links, n_hosts, flows), "ecmp")
    sprayed = run(routed_problem(links, n_hosts, flows), "turn")
    data = [result.ports.wire_bytes[core] > 100_000 for result in (alike, apart, sprayed)]
    assert data[0].sum() == 8
    assert data[1].sum() > 12
    assert data[2].all()
    loads = [result.ports.wire_bytes[core].max() for result in (alike, apart, sprayed)]
    assert loads[0] > 1.3 * loads[1] > 1.3 * loads[2] * 0.9


def test_a_dead_link_loses_packets_until_it_is_seen_and_then_none() -> None:
    twice = [*leaf_spine(4, 2, 1), *leaf_spine(4, 2, 1)[4:]]  # each leaf on the spine by two links
    problem = routed_problem(twice, 4, [(0, 1, 400 * 4096), (2, 3, 400 * 4096)])
    config = replace(BARE, routing=PacketRouting("turn"), transport=Transport(timeout_us=100.0))
    lost = []
    for detect_us in (10.0, 20.0):
        fault = LinkDown(8, start_us=5.0, detect_us=detect_us)
        result = simulate_packets(replace(problem, faults=(fault,)), config)
        assert (result.flows.acked_ps > 0).all()
        assert result.drops["route"] == 0
        lost.append(result.drops["link"])
    assert 0 < lost[0] < lost[1]


def test_a_controllers_table_takes_packets_off_a_dead_link_beyond_the_next_switch() -> None:
    problem = routed_problem(leaf_spine(4, 2, 2), 4, [(0, 1, 400 * 4096)])
    config = replace(BARE, routing=PacketRouting("turn"), transport=Transport(timeout_us=100.0))
    dead = 12  # leaf 1 to spine 0; 13 is the way down to it
    fault = LinkDown(dead, start_us=5.0, detect_us=10.0)
    table = HopTable.from_wires(problem.wires, (dead, dead ^ 1))
    local = simulate_packets(replace(problem, faults=(fault,)), config, until_ps=3000 * US)
    both = replace(problem, faults=(fault,), hops=(*problem.hops, table), hops_from_us=(30.0,))
    repaired = simulate_packets(both, config)
    assert local.drops["route"] > 10  # leaf 0 goes on sending half to spine 0
    assert repaired.flows.acked_ps[0] > 0
    assert repaired.drops["route"] < local.drops["route"]


def test_with_tables_a_row_needs_only_its_ends() -> None:
    problem = routed_problem(leaf_spine(4, 2, 3), 4, [(0, 1, 9000), (2, 3, 9000)])
    ends = [
        Paths.from_lists([[int(row[0]), int(row[-1])] for row in ([0, 8, 15, 3], [4, 8, 15, 7])]),
        Paths.from_lists([[2, 1], [6, 5]]),
    ]
    short = replace(problem, paths=ends[0], back=ends[1])
    one, other = (run(each, "random").flows.fct_ps.tolist() for each in (problem, short))
    assert one == other


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("hops[0].channel", {"channel": np.array([999] * 24, np.int32)}),
        ("hops[0].seed", {"seed": np.array([1, 2], np.int64)}),
        ("hops[0].group", {"group": np.full((5, 2), 3, np.int32)}),
        ("hops[0].column", {"column": np.full(5, 9, np.int32)}),
        ("hops[0].first", {"first": np.array([0, 5], np.int64)}),
        ("paths[0]", {"column": np.full(5, -1, np.int32)}),
    ],
)
def test_a_table_that_cannot_be_is_told(place: str, changes: dict[str, Any]) -> None:
    problem = routed_problem(leaf_spine(4, 2, 3), 4, [(0, 1, 9000)])
    table = replace(problem.hops[0], **changes)
    with pytest.raises(InputError) as caught:
        simulate_packets(replace(problem, hops=(table,)), BARE)
    assert place in str(caught.value)


def test_a_mode_that_is_not_there_is_told() -> None:
    problem = routed_problem(leaf_spine(4, 2, 3), 4, [(0, 1, 9000)])
    routing = PacketRouting("sprayed", classes=(9,), flowlet_slots=0)
    with pytest.raises(InputError) as caught:
        simulate_packets(replace(problem, hops_from_us=(1.0,)), replace(BARE, routing=routing))
    for place in ("routing.mode", "routing.classes", "routing.flowlet_slots", "hops_from_us"):
        assert place in str(caught.value)
