from __future__ import annotations

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.model.fabric import Fabric
from gpufabric.routing.channels import channels_of
from gpufabric.routing.lids import assign_lids
from gpufabric.routing.paths import REACHED
from gpufabric.routing.tables import ENGINES, Engine, forwarding_tables
from tests.routing.small_fabrics import build, designed, ring, three_tiers, two_tiers


def test_lids_rise_switches_first() -> None:
    lids = assign_lids(channels_of(two_tiers(2, 1, 2)))
    assert lids.of_switch.tolist() == [1, 2, 3]
    assert lids.of_port[:4].tolist() == [4, 5, 6, 7]
    assert lids.n_lids == 8


def test_lids_are_aligned_to_their_number() -> None:
    lids = assign_lids(channels_of(two_tiers(2, 1, 2)), lmc=3)
    assert lids.of_port[:4].tolist() == [8, 16, 24, 32]
    assert lids.n_lids == 40
    assert lids.per_port == 8


def test_every_network_counts_its_own_lids() -> None:
    """Eight rails of 64 NICs, each on a switch of 64 ports."""
    fabric = designed(512, "{fabric: infiniband, switch: qm9700, topology: rail-only}").fabric
    channels = channels_of(fabric)
    lids = assign_lids(channels)
    ends = channels.endpoints
    assert channels.network_of.max() == 7
    for number in range(8):
        mine = ends[channels.network_of[channels.leaf_of[ends]] == number]
        assert lids.of_switch[channels.network_of == number].tolist() == [1]
        assert sorted(lids.of_port[mine].tolist()) == list(range(2, 66))


def test_a_subnet_has_so_many_lids_and_no_more() -> None:
    fabric = designed(16384, "{fabric: infiniband, switch: q3400-ra}").fabric
    with pytest.raises(InputError) as caught:
        assign_lids(channels_of(fabric), lmc=2)
    assert "at most 49151 unicast LIDs" in str(caught.value)
    assert "planes" in str(caught.value)
    with pytest.raises(InputError, match=r"lmc: the value is 4\. Expected: 0 to 3"):
        assign_lids(channels_of(ring(3)), lmc=4)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_pair_is_reached_by_a_shortest_path(engine: Engine) -> None:
    channels = channels_of(three_tiers(3, 2, 2, 2, 3))
    tables = forwarding_tables(channels, engine)
    ends = channels.endpoints
    src, dst = np.repeat(ends, len(ends)), np.tile(ends, len(ends))
    paths = tables.walk(src, dst)
    assert (paths.status == REACHED).all()
    leaf_from, leaf_to = channels.leaf_of[src], channels.leaf_of[dst]
    hops = np.where(leaf_from == leaf_to, 0, np.where(leaf_from // 2 == leaf_to // 2, 2, 4))
    expected = np.where(src == dst, 0, hops + 2)
    assert (np.diff(paths.first) == expected).all()


def test_ftree_puts_as_many_destinations_on_every_uplink() -> None:
    """As OpenSM's own tables of this shape do: 512 hosts, 16 leafs, 8 spines, 4 links a pair."""
    fabric = designed(512, "{fabric: infiniband, switch: qm9700, topology: rail}").fabric
    channels = channels_of(fabric)
    tables = forwarding_tables(channels, "ftree")
    ends = channels.endpoints
    per_switch = tables.port[:, tables.lids.of_port[ends]]
    for switch in np.flatnonzero(fabric.switches.tier == 1).tolist():
        own = channels.leaf_of[ends] == switch
        count = np.bincount(per_switch[switch][~own], minlength=65)
        assert set(count[count > 0].tolist()) == {15}
        assert np.count_nonzero(count) == 32


def test_lids_of_a_port_take_different_ways() -> None:
    channels = channels_of(two_tiers(2, 4, 1))
    tables = forwarding_tables(channels, "minhop", lmc=2)
    offsets = np.arange(4)
    paths = tables.walk(np.zeros(4, int), np.ones(4, int), offsets)
    spines = {int(channels.head[paths.row(k)[1]]) for k in range(4)}
    assert spines == {2, 3, 4, 5}


def test_tables_are_the_same_every_time() -> None:
    for engine in ENGINES:
        one, other = (
            forwarding_tables(channels_of(three_tiers(2, 2, 2, 2, 2)), engine).port.tobytes()
            for _ in range(2)
        )
        assert one == other


def test_failed_links_are_not_used() -> None:
    channels = channels_of(two_tiers(3, 2, 2)).with_failures(switches=[3])
    for engine in ENGINES:
        tables = forwarding_tables(channels, engine)
        ends = channels.endpoints
        paths = tables.walk(ends, np.roll(ends, 2))
        assert (paths.status == REACHED).all()
        assert channels.link_up[paths.channel // 2].all()


@pytest.mark.parametrize(
    ("hosts", "links", "tiers", "reason"),
    [
        ([2], [], [1], "fewer than two switches"),
        ([2, 2], [(0, 1)], [1, 1], "it has 1 ranks of switches; a tree has 2 to 8"),
        ([2, 2, 0], [(0, 2), (1, 2), (0, 1)], [1, 1, 2], "sw0 and sw1 are joined and of one rank"),
        ([1, 1, 1, 0], [(0, 3), (1, 3), (3, 2)], [1, 1, 2, 2], ""),
        (
            [1, 1, 0, 0],
            [(0, 2), (0, 3), (1, 2)],
            [1, 1, 2, 2],
            "sw0 and sw1 have links up to different numbers of switches",
        ),
        (
            [1, 1, 1, 0, 0],
            [(0, 3), (1, 3), (2, 4), (0, 4), (1, 4), (2, 3), (2, 3)],
            [1, 1, 1, 2, 2],
            "sw0 and sw2 have different numbers of links up to a switch",
        ),
    ],
)
def test_ftree_says_why_it_refuses(
    hosts: list[int], links: list[tuple[int, int]], tiers: list[int], reason: str
) -> None:
    tables = forwarding_tables(channels_of(build(hosts, links, tiers)), "ftree")
    if reason:
        assert tables.used == ("minhop",)
        assert reason in tables.decisions[0].why
    else:
        assert tables.used == ("ftree",)


def test_ftree_knows_one_lid_a_port() -> None:
    tables = forwarding_tables(channels_of(two_tiers(2, 2, 2)), "ftree", lmc=1)
    assert tables.used == ("minhop",)
    assert "LMC 0" in tables.decisions[0].why


def test_roots_of_updn() -> None:
    tree = forwarding_tables(channels_of(two_tiers(3, 2, 1)), "updn")
    assert tree.decisions[0].choice == "sw3, sw4"
    assert not tree.decisions[0].is_warning
    flat = build([2, 2, 2, 0], [(0, 3), (1, 3), (2, 3)])  # a star whose tiers nobody named
    star = forwarding_tables(channels_of(flat), "updn")
    assert star.decisions[0].choice == "sw3"
    assert "OpenSM finds them" in star.decisions[0].why
    loop = forwarding_tables(channels_of(ring(5)), "updn")
    assert loop.decisions[0].choice == "sw0"
    assert loop.decisions[0].is_warning
    with pytest.raises(InputError, match="roots: the subnet of sw0 has none"):
        forwarding_tables(channels_of(ring(5)), "updn", roots=[])


def test_wrong_engines_are_told() -> None:
    with pytest.raises(InputError, match=r'"ftre" is no engine.*Did you mean "ftree"'):
        forwarding_tables(channels_of(ring(3)), "ftre")  # type: ignore[arg-type]


def test_wide_switches_get_wide_entries() -> None:
    narrow = channels_of(build([254, 1], [(0, 1)]))
    assert forwarding_tables(channels_of(ring(3)), "minhop").port.dtype == np.uint8
    wide = forwarding_tables(narrow, "minhop")
    assert wide.port.dtype == np.uint16
    assert wide.walk(np.array([0]), np.array([254])).status.tolist() == [REACHED]


@pytest.mark.parametrize(
    ("fabric", "roots", "reason"),
    [
        (
            build([1, 1, 1, 0], [(0, 2), (1, 2), (2, 3)], [1, 1, 2, 3]),
            [3],
            "sw0 and sw2 have hosts but are not of one rank",
        ),
        (
            build(
                [1] * 3 + [0] * 4,
                [(0, 3), (0, 4), (1, 3), (1, 5), (2, 3), (2, 6)],
                [1] * 3 + [2] * 4,
            ),
            None,
            "sw3 and sw4 have links down to different numbers of switches",
        ),
        (
            build([1, 1, 0, 0], [(0, 2), (0, 3), (0, 3), (1, 2), (1, 3)], [1, 1, 2, 2]),
            None,
            "sw2 and sw3 have different numbers of links down to a switch",
        ),
        (
            build([1] * 256 + [0], [(leaf, 256) for leaf in range(256)], [1] * 256 + [2]),
            None,
            "a switch has more than 255 neighbours of one rank",
        ),
    ],
)
def test_ftree_says_why_it_refuses_trees(
    fabric: Fabric, roots: list[int] | None, reason: str
) -> None:
    tables = forwarding_tables(channels_of(fabric), "ftree", roots=roots)
    assert tables.used == ("minhop",)
    assert reason in tables.decisions[0].why
