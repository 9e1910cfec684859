"""Pairing heaps of flows by target, one a bundle: next to end on top, any flow removable.

Source: M. Fredman, R. Sedgewick, D. Sleator, R. Tarjan, "The pairing heap", Algorithmica 1, 1986.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import inner_kernel
from gpufabric.kernels.structs import Records

__all__ = ["NONE", "add", "remove"]

NONE = np.int64(-1)


@inner_kernel
def add(flows: Records, root: int, flow: int) -> int:
    """Add `flow` to the heap of `root`, ``NONE`` when empty; return the new root.

    Reference: tests/reference/pairing.py.
    """
    flows[flow].child = NONE
    flows[flow].following = NONE
    flows[flow].previous = NONE
    return meld(flows, np.int64(root), np.int64(flow))


@inner_kernel
def remove(flows: Records, root: int, flow: int) -> int:
    """Remove `flow` from the heap of `root`; return the new root, ``NONE`` when empty.

    Reference: tests/reference/pairing.py.
    """
    below = meld_children(flows, flow)
    if flow == root:
        return below
    before, after = flows[flow].previous, flows[flow].following
    if flows[before].child == flow:
        flows[before].child = after
    else:
        flows[before].following = after
    if after != NONE:
        flows[after].previous = before
    return meld(flows, np.int64(root), below)


@inner_kernel
def meld(flows: Records, one: int, other: int) -> int:
    """Make one heap of two; return its root.

    Reference: tests/reference/pairing.py.
    """
    if one == NONE:
        return other
    if other == NONE:
        return one
    if flows[other].target < flows[one].target:
        one, other = other, one
    eldest = flows[one].child
    flows[other].following = eldest
    if eldest != NONE:
        flows[eldest].previous = other
    flows[other].previous = one
    flows[one].child = other
    return one


@inner_kernel
def meld_children(flows: Records, flow: int) -> np.int64:
    """Make one heap of the children of `flow`: in pairs, then pairs from last to first.

    Reference: tests/reference/pairing.py.
    """
    pairs = NONE
    child = np.int64(flows[flow].child)
    while child != NONE:
        second = np.int64(flows[child].following)
        after = np.int64(flows[second].following) if second != NONE else NONE
        pair = meld(flows, child, second)
        flows[pair].following = pairs
        pairs = pair
        child = after
    root = NONE
    while pairs != NONE:
        after = np.int64(flows[pairs].following)
        root = meld(flows, root, pairs)
        pairs = after
    flows[flow].child = NONE
    if root != NONE:
        flows[root].previous = NONE
        flows[root].following = NONE
    return root
