from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gpufabric.model.fabric import Fabric
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.deadlock import (
    Deadlock,
    find_deadlock,
    turns_of,
    turns_of_edges,
    turns_of_paths,
)
from gpufabric.routing.paths import explicit_paths
from gpufabric.routing.shortest import shortest_paths
from gpufabric.routing.tables import ENGINES, forwarding_tables
from tests.routing.small_fabrics import build, designed, ring, three_tiers, two_tiers

CASES = ("25-pfc-deadlock-by-flooding", "39-credit-loop-in-ring")


def read_pairs(path: Path) -> list[tuple[str, str]]:
    rows = csv.reader(line for line in path.read_text().splitlines() if not line.startswith("#"))
    return [(before, after) for before, after in rows]


def turned(cycle: tuple[str, ...], first: str) -> tuple[str, ...]:
    """The same circle, begun elsewhere."""
    at = cycle.index(first)
    return cycle[at:] + cycle[:at]


def test_flooding_closes_the_circle(shared: Path) -> None:
    folder = shared / "cases" / CASES[0]
    normal = read_pairs(folder / "edges_normal.csv")
    flooded = normal + read_pairs(folder / "edges_flood_added.csv")
    assert find_deadlock(turns_of_edges(normal)).is_free
    found = find_deadlock(turns_of_edges(flooded))
    expected = json.loads((folder / "expected.json").read_text())["must_report"][1]
    assert expected == f"with flood: cycle {', '.join(turned(found.cycle, 'T0-La'))}"
    assert len(found.remove) == 1
    assert found.is_complete
    left = [pair for pair in flooded if pair not in found.remove]
    assert find_deadlock(turns_of_edges(left)).is_free


def channels_between(channels: Channels, path: str) -> list[int]:
    """Channels along switches given by name, such as ``R1>R2>R3``, hosts left out."""
    names = channels.fabric.switches.name.tolist()
    switches = [names.index(name) for name in path.split(">")]
    found = []
    for tail, head in pairwise(switches):
        found += np.flatnonzero((channels.tail == tail) & (channels.head == head)).tolist()
    return found


@pytest.mark.parametrize("engine", ["minhop", "updn"])
def test_routes_of_the_ring_case(shared: Path, engine: str) -> None:
    folder = shared / "cases" / CASES[1]
    channels = channels_of(ring(4, names=["R1", "R2", "R3", "R4"]))
    rows = csv.DictReader((folder / f"routes_{engine}.csv").read_text().splitlines())
    paths = explicit_paths(channels, [channels_between(channels, row["path"]) for row in rows])
    found = find_deadlock(turns_of_paths(channels, paths))
    ends = ["-".join(end.split("[")[0] for end in name.split(" > ")) for name in found.cycle]
    expected = json.loads((folder / "expected.json").read_text())["must_report"]
    if engine == "updn":
        assert found.is_free
        assert "updn: no cycle" in expected
    else:
        assert f"minhop: cycle {','.join(turned(tuple(ends), 'R1-R2'))}" in expected


def test_a_ring_needs_up_down_routing() -> None:
    channels = channels_of(ring(4, names=["R1", "R2", "R3", "R4"]))
    found = find_deadlock(turns_of(forwarding_tables(channels, "minhop")))
    assert not found.is_free
    assert found.is_complete
    assert len(found.cycle) == 4
    assert len(found.remove) == 1
    assert find_deadlock(turns_of(forwarding_tables(channels, "updn"))).is_free
    hashed = find_deadlock(turns_of(shortest_paths(channels)))
    assert len(hashed.remove) == 2  # ECMP goes both ways round


def test_the_verdict_in_words() -> None:
    free = Deadlock((), (), True, 8, 4)
    assert free.describe() == "No deadlock: 8 channels, 4 turns, no circle."
    found = find_deadlock(turns_of_edges([("a", "b"), ("b", "a")]))
    assert found.describe().splitlines() == [
        "Deadlock is possible: each of these channels waits for the next one:",
        "  a",
        "  b",
        "  a",
        "Without these turns there is no circle:",
        "  a  +  b",
    ]


def degraded(fabric: Fabric, seed: int) -> Channels:
    """A fabric with four links between switches down."""
    inner = np.flatnonzero(fabric.links.tier > 1)
    lost = np.random.default_rng(seed).choice(inner, 4, replace=False)
    return channels_of(fabric).with_failures(links=lost.tolist())


TREES = (two_tiers(4, 3, 2, 2), three_tiers(3, 2, 2, 2, 2))


@pytest.mark.parametrize("fabric", TREES)
def test_whole_trees_have_no_circle_under_any_engine(fabric: Fabric) -> None:
    for engine in ENGINES:
        tables = forwarding_tables(channels_of(fabric), engine)
        assert find_deadlock(turns_of(tables)).is_free


@pytest.mark.parametrize("fabric", TREES)
@pytest.mark.parametrize("seed", range(5))
def test_up_down_routing_has_no_circle_even_with_failures(fabric: Fabric, seed: int) -> None:
    channels = degraded(fabric, seed)
    roots = np.flatnonzero(fabric.switches.tier == fabric.switches.tier.max()).tolist()
    for forwarding in (
        shortest_paths(channels),
        forwarding_tables(channels, "updn"),
        forwarding_tables(channels, "ftree", roots=roots),
    ):
        assert find_deadlock(turns_of(forwarding)).is_free


def test_ftree_that_falls_back_to_minhop_can_close_a_circle() -> None:
    """What OpenSM does without a word on a tree that lacks links: paths over valleys."""
    found = [forwarding_tables(degraded(TREES[1], seed), "ftree") for seed in range(5)]
    fallen = [tables for tables in found if "minhop" in tables.used]
    circles = [
        deadlock
        for deadlock in (find_deadlock(turns_of(tables)) for tables in fallen)
        if not deadlock.is_free
    ]
    assert circles
    assert "deadlock" in fallen[0].decisions[0].why
    before, after = circles[0].remove[0]
    assert before.split(" > ")[1].split("[")[0] == after.split("[")[0]  # one switch, below both


def test_valleys_close_a_circle_where_paths_may_climb_again() -> None:
    """Four leafs and four spines joined like a ring: hosts across meet only over valleys."""
    links = [(0, 4), (1, 4), (1, 5), (2, 5), (2, 6), (3, 6), (3, 7), (0, 7)]
    channels = channels_of(build([1] * 4 + [0] * 4, links, [1] * 4 + [2] * 4))
    assert find_deadlock(turns_of(shortest_paths(channels))).is_free
    found = find_deadlock(turns_of(shortest_paths(channels, up_down=False)))
    assert len(found.cycle) == 8
    for before, after in found.remove:
        switch = before.split(" > ")[1].split("[")[0]
        assert switch == after.split("[")[0]
        assert switch in ("sw0", "sw1", "sw2", "sw3")  # it climbs again at a leaf


def test_lanes_break_a_circle() -> None:
    """Paths that cross R4-R1 go on in another virtual lane."""
    channels = channels_of(ring(4, names=["R1", "R2", "R3", "R4"]))
    rows = [
        channels_between(channels, path)
        for path in ("R1>R2>R3", "R2>R3>R4", "R3>R4>R1", "R4>R1>R2")
    ]
    paths = explicit_paths(channels, rows)
    assert not find_deadlock(turns_of_paths(channels, paths)).is_free
    lane = np.zeros(len(paths.channel), np.int32)
    lane[paths.first[3] :] = 1  # the path that begins with R4-R1
    found = find_deadlock(turns_of_paths(channels, paths, lane, 2))
    assert found.is_free
    one_lane = find_deadlock(turns_of_paths(channels, paths, lane * 0, 2))
    assert all(name.endswith(" VL0") for name in one_lane.cycle)


def test_many_circles_are_cut_off() -> None:
    edges = [(f"{k}a", f"{k}b") for k in range(80)] + [(f"{k}b", f"{k}a") for k in range(80)]
    found = find_deadlock(turns_of_edges(edges))
    assert not found.is_complete
    assert len(found.remove) == 64
    assert "begin with these" in found.describe()


def test_nothing_to_look_at() -> None:
    assert find_deadlock(turns_of_edges([])).is_free


def test_a_fabric_of_4096_gpus_is_free() -> None:
    channels = channels_of(designed(4096, "{fabric: roce, switch: sn5600}").fabric)
    found = find_deadlock(turns_of(shortest_paths(channels)))
    assert found.is_free
    assert found.n_channels == len(channels.graph.channel)
    assert found.n_turns > 100_000
