"""Forwarding tables of a fat tree by OpenSM's ftree engine.

For every destination, in order of leafs: from its leaf one path is led up to the roots, each time
by the upward group that fewest such paths go through; these become the downward routes. From every
switch on the way, all switches below get their upward route. Only then the other upper switches are
served, without counting.

Source: E. Zahavi et al., "Optimized InfiniBand fat-tree routing for shift all-to-all communication
patterns", Concurrency and Computation 22, 2010; OpenSM 3.3, ``osm_ucast_ftree.c`` (read for the
order of choices; nothing is copied).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.lft import FAR, SELF_PORT, Rules, Table
from gpufabric.kernels.structs import Ints, Longs

__all__ = ["Bunches", "Leafs", "Tree", "route_tree", "route_tree_switches"]

NOBODY = 0  # LID of a missing host: its routes are counted and not written
DEEPEST = 20  # frames of a climb and a descent: OpenSM allows 8 ranks


class Bunches(NamedTuple):
    """Parallel edges between two switches, in one direction of the tree."""

    first: Ints  # int32[n_switches + 1]: bunches of switch s are first[s] … first[s + 1] - 1
    order: Ints  # int32[n_bunches]: those of each switch in the order to be tried; changes
    head: Ints  # int32[n_bunches]: switch at the other end
    first_edge: Ints  # int32[n_bunches + 1]
    edge: Ints  # int32[n_entries]: edges of each bunch, in port order
    load: Ints  # int32[n_bunches]: routes counted on it
    is_sorted: Ints  # int32[n_switches]: 0 where loads changed since the order was made


class Tree(NamedTuple):
    """A fat tree being routed."""

    up: Bunches
    down: Bunches
    load: Ints  # int32[n_edges]: routes counted on each edge, seen from its own switch
    is_leaf: Ints  # int32[n_switches]: 1 where hosts are
    steps: Ints  # int32[n_switches]: steps to the destination at hand; FAR where not routed
    rules: Rules
    table: Table


class Leafs(NamedTuple):
    """Destinations by leaf, in the order they are routed."""

    switch: Ints  # int32[n_leafs]
    first: Longs  # int64[n_leafs + 1]
    lid: Ints  # int32[n_destinations]
    port: Ints  # int32[n_destinations]: port of the leaf that leads to it, from 1


class Stack(NamedTuple):
    """Frames of a descent, or of a climb."""

    switch: Longs  # int64[DEEPEST]
    at: Longs  # int64[DEEPEST]: place in the order of bunches
    edge: Longs  # int64[DEEPEST]: edge taken to the frame above
    bunch: Longs  # int64[DEEPEST]: its bunch
    flag: Longs  # int64[DEEPEST]: descent: a route was made; climb: counted


class Stacks(NamedTuple):
    """Where a climb stands, and a descent from it."""

    climb: Stack
    descent: Stack


@kernel
def new_stack() -> Stack:
    """Room for the frames.

    Reference: tests/reference/ftree.py, Climber.descend.
    """
    return Stack(
        np.zeros(DEEPEST, np.int64),
        np.zeros(DEEPEST, np.int64),
        np.zeros(DEEPEST, np.int64),
        np.zeros(DEEPEST, np.int64),
        np.zeros(DEEPEST, np.int64),
    )


@kernel
def route_tree(tree: Tree, leafs: Leafs, members: Ints) -> None:
    """Write the port of every switch for every destination.

    Leafs with fewer hosts than the fullest are treated as if full, so that the places of missing
    hosts stay free.

    Reference: tests/reference/ftree.py, fat_tree_tables.
    """
    stacks = Stacks(new_stack(), new_stack())
    fullest = 0
    for at in range(leafs.switch.size):
        fullest = max(fullest, leafs.first[at + 1] - leafs.first[at])
    for at in range(leafs.switch.size):
        leaf = np.int64(leafs.switch[at])
        for target in range(leafs.first[at], leafs.first[at + 1]):
            lid = np.int64(leafs.lid[target])
            clear(tree, members)
            tree.table[leaf, lid] = leafs.port[target]
            tree.steps[leaf] = 1
            ascend(tree, stacks, leaf, lid, 1)
        clear(tree, members)
        for _missing in range(fullest - (leafs.first[at + 1] - leafs.first[at])):
            ascend(tree, stacks, leaf, NOBODY, 1)


@kernel
def route_tree_switches(tree: Tree, members: Ints, switch_lid: Ints) -> None:
    """Write the port of every switch for the LID of every switch; these count for nothing.

    Reference: tests/reference/ftree.py, fat_tree_tables.
    """
    stacks = Stacks(new_stack(), new_stack())
    for target in members:
        clear(tree, members)
        tree.table[target, switch_lid[target]] = SELF_PORT
        tree.steps[target] = 0
        ascend(tree, stacks, np.int64(target), np.int64(switch_lid[target]), 0)


@inner_kernel
def clear(tree: Tree, members: Ints) -> None:
    """Forget the steps to the destination before.

    Reference: tests/reference/ftree.py, fat_tree_tables.
    """
    for switch in members:
        tree.steps[switch] = FAR


@inner_kernel
def sort_bunches(bunches: Bunches, switch: int) -> None:
    """Put the bunches of a switch in order of load, equals in order of number.

    Loads of a tree have few different values, so they are gone through value by value.

    Reference: tests/reference/ftree.py, Climber.in_order.
    """
    if bunches.is_sorted[switch] == 1:
        return
    bunches.is_sorted[switch] = 1
    first, end = bunches.first[switch], bunches.first[switch + 1]
    level = lowest_load(bunches, switch, -1)
    at = first
    while at < end:
        for bunch in range(first, end):
            if bunches.load[bunch] == level:
                bunches.order[at] = bunch
                at += 1
        level = lowest_load(bunches, switch, level)


@inner_kernel
def lowest_load(bunches: Bunches, switch: int, above: int) -> int:
    """Least load of the bunches of a switch that is greater than `above`.

    Reference: tests/reference/ftree.py, Climber.in_order.
    """
    least = 2_147_483_647
    for bunch in range(bunches.first[switch], bunches.first[switch + 1]):
        if above < bunches.load[bunch] < least:
            least = int(bunches.load[bunch])
    return least


@inner_kernel
def least_loaded_edge(bunches: Bunches, load: Ints, bunch: int) -> int:
    """First edge of a bunch with the fewest routes.

    Reference: tests/reference/ftree.py, Climber.least_loaded.
    """
    best = int(bunches.edge[bunches.first_edge[bunch]])
    for place in range(bunches.first_edge[bunch] + 1, bunches.first_edge[bunch + 1]):
        edge = int(bunches.edge[place])
        if load[edge] < load[best]:
            best = edge
    return best


@inner_kernel
def is_nearer(tree: Tree, switch: int, head: int) -> bool:
    """Tell whether `head` has no route yet, or a longer one than by way of `switch`.

    Reference: tests/reference/ftree.py, Climber.is_nearer.
    """
    return tree.steps[head] == FAR or tree.steps[switch] + 1 < tree.steps[head]


@inner_kernel
def write(tree: Tree, switch: int, head: int, edge: int, lid: int) -> None:
    """Let `head` forward the LID to `switch`, against `edge`.

    Reference: tests/reference/ftree.py, Climber.write.
    """
    if lid != NOBODY:
        tree.table[head, lid] = tree.rules.port[tree.rules.reverse[edge]]
        tree.steps[head] = tree.steps[switch] + 1


@kernel
def ascend(tree: Tree, stacks: Stacks, start: int, lid: int, is_counted: int) -> None:
    """Route one destination everywhere, from the switch `start` that leads to it.

    Reference: tests/reference/ftree.py, Climber.climb.
    """
    climb = stacks.climb
    depth, following, flag = -1, start, is_counted
    while True:
        if following >= 0:
            depth += 1
            enter(tree, stacks, depth, following, lid, flag)
            following = -1
        switch = climb.switch[depth]
        place = climb.at[depth]
        is_done = lid == NOBODY and place > tree.up.first[switch]
        if is_done or place == tree.up.first[switch + 1]:
            depth -= 1
            if depth < 0:
                return
            continue
        climb.at[depth] += 1
        is_main = climb.flag[depth] == 1 and place == tree.up.first[switch]
        bunch = np.int64(tree.up.order[place])
        edge = least_loaded_edge(tree.up, tree.load, bunch)
        if is_main:
            tree.up.load[bunch] += 1
            tree.up.is_sorted[switch] = 0
            tree.load[edge] += 1
        head = int(tree.up.head[bunch])
        if is_nearer(tree, switch, head):
            write(tree, switch, head, edge, lid)
            following, flag = head, 1 if is_main else 0


@inner_kernel
def enter(tree: Tree, stacks: Stacks, depth: int, switch: int, lid: int, is_counted: int) -> None:
    """Put a switch on the climb: serve all below it, then order what is above it.

    Reference: tests/reference/ftree.py, Climber.climb.
    """
    climb = stacks.climb
    before = climb.switch[depth - 1] if depth > 0 else np.int64(-1)
    descend(tree, stacks.descent, switch, before, lid)
    sort_bunches(tree.up, switch)
    climb.switch[depth] = switch
    climb.at[depth] = tree.up.first[switch]
    climb.flag[depth] = is_counted


@inner_kernel
def descend(tree: Tree, stack: Stack, start: int, before: int, lid: int) -> None:
    """Give all switches below `start` that are farther, or not routed, their upward route.

    The bunch back to `before` is left out. A bunch counts a route only if it leads to a leaf.

    Reference: tests/reference/ftree.py, Climber.descend.
    """
    depth, following = -1, start
    while True:
        if following >= 0:
            depth += 1
            arrive(tree, stack, depth, following)
            following = -1
        switch = stack.switch[depth]
        place = stack.at[depth]
        if place == tree.down.first[switch + 1]:
            depth -= 1
            if depth < 0:
                return
            if stack.flag[depth + 1] == 1:
                count_route(tree, stack, depth)
            continue
        stack.at[depth] += 1
        bunch = np.int64(tree.down.order[place])
        head = int(tree.down.head[bunch])
        if (depth == 0 and head == before) or not is_nearer(tree, switch, head):
            continue
        edge = least_loaded_edge(tree.down, tree.load, bunch)
        write(tree, switch, head, edge, lid)
        stack.edge[depth] = edge
        stack.bunch[depth] = bunch
        following = head


@inner_kernel
def arrive(tree: Tree, stack: Stack, depth: int, switch: int) -> None:
    """Put a switch on the descent, its bunches in order of load.

    Reference: tests/reference/ftree.py, Climber.descend.
    """
    sort_bunches(tree.down, switch)
    stack.switch[depth] = switch
    stack.at[depth] = tree.down.first[switch]
    stack.flag[depth] = tree.is_leaf[switch]


@inner_kernel
def count_route(tree: Tree, stack: Stack, depth: int) -> None:
    """Count a route on the bunch that led down from a frame, and on the edge taken.

    Reference: tests/reference/ftree.py, Climber.descend.
    """
    stack.flag[depth] = 1
    tree.load[stack.edge[depth]] += 1
    tree.down.load[stack.bunch[depth]] += 1
    tree.down.is_sorted[stack.switch[depth]] = 0
