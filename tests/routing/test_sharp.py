from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.sharp import reduction_trees
from gpufabric.routing.shortest import shortest_paths
from tests.routing.random_fabrics import broken, trees
from tests.routing.small_fabrics import build, designed, ring, three_tiers, two_tiers


def test_one_leaf_is_its_own_root() -> None:
    channels = channels_of(two_tiers(2, 2, 3))
    (tree,) = reduction_trees(shortest_paths(channels), channels.endpoints[:3])
    assert tree.root == 0
    assert tree.depth == 1
    assert tree.children(0) == ["h0", "h1", "h2"]
    assert tree.up_channels.tolist() == channels.leaving[:3].tolist()


def test_two_tiers_have_a_spine_as_root() -> None:
    channels = channels_of(two_tiers(3, 2, 2))
    (tree,) = reduction_trees(shortest_paths(channels), channels.endpoints)
    assert tree.root == 3
    assert tree.switches.tolist() == [3, 0, 1, 2]
    assert tree.children(3) == ["sw0", "sw1", "sw2"]
    assert tree.children(1) == ["h2", "h3"]
    assert tree.depth == 2


def test_several_trees_take_different_roots_and_links() -> None:
    channels = channels_of(two_tiers(3, 4, 2))
    found = reduction_trees(shortest_paths(channels), channels.endpoints, 4)
    assert sorted(tree.root for tree in found) == [3, 4, 5, 6]
    used = np.concatenate([tree.parent_channel[1:] for tree in found])
    assert len(set(used.tolist())) == len(used)


def test_three_tiers_join_the_leafs_of_a_pod_first() -> None:
    channels = channels_of(three_tiers(2, 3, 2, 1, 1))
    (tree,) = reduction_trees(shortest_paths(channels), channels.endpoints)
    assert channels.graph.tier[tree.root] == 3
    assert tree.depth == 3
    assert len(tree.children(tree.root)) == 2
    assert len(tree.switches) == 1 + 2 + 6


def test_every_plane_has_a_tree_of_its_own() -> None:
    candidate = "{fabric: infiniband, topology: multi-plane, planes: 4}"
    channels = channels_of(designed(64, candidate).fabric)
    found = reduction_trees(shortest_paths(channels), channels.endpoints)
    assert len(found) == 4
    assert sum(len(tree.members) for tree in found) == len(channels.endpoints)


@given(broken(trees()), st.data())
def test_a_tree_is_a_tree(channels: Channels, data: st.DataObject) -> None:
    shortest = shortest_paths(channels)
    ends = channels.endpoints
    chosen = data.draw(st.lists(st.sampled_from(ends.tolist()), min_size=1, unique=True))
    leafs = np.unique(channels.leaf_of[chosen])
    steps = [
        shortest.hops(np.arange(len(channels.network_of)), np.full(len(channels.network_of), leaf))
        for leaf in leafs.tolist()
    ]
    networks = channels.network_of[leafs]
    is_joined = all(
        (np.array(steps)[networks == number] >= 0).all(axis=0).any() for number in networks
    )
    if not is_joined:
        with pytest.raises(InputError, match="no switch reaches all members"):
            reduction_trees(shortest, np.array(chosen))
        return
    for tree in reduction_trees(shortest, np.array(chosen)):
        assert len(set(tree.switches.tolist())) == len(tree.switches)
        parents = channels.head[tree.parent_channel[1:]]
        assert channels.tail[tree.parent_channel[1:]].tolist() == tree.switches[1:].tolist()
        place = {switch: number for number, switch in enumerate(tree.switches.tolist())}
        assert all(place[p] < n for n, p in enumerate(parents.tolist(), 1))
        assert channels.link_up[tree.up_channels // 2].all()
        assert (tree.down_channels // 2 == tree.up_channels // 2).all()
        asked = [name for s in tree.switches.tolist() for name in tree.children(s)]
        assert len(asked) == len(tree.members) + len(tree.switches) - 1


def test_members_without_a_link_are_told() -> None:
    channels = channels_of(ring(3)).with_failures(links=[1])
    with pytest.raises(InputError, match="members: h1 has no link that is up"):
        reduction_trees(shortest_paths(channels), np.array([0, 1]))


def test_members_that_no_switch_joins_are_told() -> None:
    """Four leafs in a chain over three spines: paths between its ends climb three times."""
    links = [(0, 4), (1, 4), (1, 5), (2, 5), (2, 6), (3, 6)]
    channels = channels_of(build([1] * 4 + [0] * 3, links, [1] * 4 + [2] * 3))
    shortest = shortest_paths(channels)
    assert reduction_trees(shortest, np.array([0, 2]))[0].root == 1
    message = "members: no switch reaches all members of the network of sw0"
    with pytest.raises(InputError, match=message):
        reduction_trees(shortest, np.array([0, 3]))
