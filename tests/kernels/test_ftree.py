"""kernels/ftree.py against tests/reference/ftree.py; test_opensm.py holds it against OpenSM."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.fat_tree import FatTree, NoFatTreeError, find_fat_tree
from gpufabric.routing.tables import forwarding_tables
from tests.kernels.test_lft import as_dicts, hosts_by_leaf
from tests.reference import ftree as reference
from tests.routing.random_fabrics import Plain, trees, uneven_trees


def find(channels: Channels, roots: list[int] | None) -> FatTree | None:
    count = np.bincount(
        channels.leaf_of[channels.endpoints], minlength=len(channels.network_of)
    ).astype(np.int32)
    members = np.arange(len(channels.network_of), dtype=np.int32)
    named = None if roots is None else np.array(roots, np.int32)
    try:
        return find_fat_tree(channels, members, count, named)
    except NoFatTreeError:
        return None


def order_of_heads(tree: FatTree) -> dict[int, int]:
    """An order of switches in which every bunch list of the tree is sorted."""
    before: dict[int, set[int]] = {}
    for bunches in (tree.up, tree.down):
        for switch in range(len(bunches.first) - 1):
            heads = bunches.head[bunches.first[switch] : bunches.first[switch + 1]].tolist()
            for one, other in pairwise(heads):
                before.setdefault(other, set()).add(one)
    order: list[int] = []

    def visit(switch: int) -> None:
        if switch not in order:
            for other in sorted(before.get(switch, ())):
                visit(other)
            order.append(switch)

    for switch in range(len(tree.rank)):
        visit(switch)
    return {switch: place for place, switch in enumerate(order)}


def lanes_of(plain: Plain) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Ports (here, there) of the parallel links between any two switches."""
    channels = plain.channels
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for edge in plain.edges:
        far = channels.head_port[plain.channel(edge)]
        there = int(channels.fabric.ports.port[far]) + 1
        head = plain.out[edge[0]][edge[1]]
        lanes.setdefault((edge[0], head), []).append((plain.port(edge), there))
    return lanes


@given(st.one_of(trees(), uneven_trees()), st.booleans())
def test_tables(fabric: object, is_named: bool) -> None:
    channels = channels_of(fabric)  # type: ignore[arg-type]
    assume(channels.network_of.max() == 0)
    tier = channels.graph.tier
    roots = np.flatnonzero(tier == tier.max()).tolist() if is_named else None
    tree = find(channels, roots)
    tables = forwarding_tables(channels, "ftree", roots=roots)
    assert (tree is None) == (tables.used == ("minhop",))
    assume(tree is not None)
    assert tree is not None
    plain = Plain.of(channels)
    rank = {s: int(level) for s, level in enumerate(tree.rank)}
    climber = reference.Climber(lanes_of(plain), rank, order_of_heads(tree), tree.leafs.tolist())
    hosts = hosts_by_leaf(tables, tree.leafs.tolist())
    expected = reference.fat_tree_tables(climber, hosts, tables.lids.of_switch.tolist())
    assert as_dicts(tables) == expected
