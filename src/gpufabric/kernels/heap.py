"""A binary heap of records that can find, move and drop any of them.

The heap is a row of numbers of records: ``order[0]`` tells how many, the record with the smallest
key is ``order[1]``. Each record has its `key` and, in `place`, where its number stands; 0 outside.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import inner_kernel
from gpufabric.kernels.structs import Indices, Records

__all__ = ["drop", "new_heap", "pop", "rebuild", "second_key", "set_key", "set_key_later"]


def new_heap(n_things: int) -> Indices:
    """Return a heap without records that has room for `n_things`."""
    return np.zeros(n_things + 1, np.uint32)


@inner_kernel
def sift_up(order: Indices, things: Records, at: int) -> None:
    """Move the record at place `at` up to where its key belongs.

    Reference: tests/reference/heap.py.
    """
    moved = order[at]
    value = things[moved].key
    while at > 1:
        above = at >> 1
        other = order[above]
        if things[other].key <= value:
            break
        order[at] = other
        things[other].place = at
        at = above
    order[at] = moved
    things[moved].place = at


@inner_kernel
def sift_down(order: Indices, things: Records, at: int) -> None:
    """Move the record at place `at` down to where its key belongs.

    Reference: tests/reference/heap.py.
    """
    size = order[0]
    moved = order[at]
    value = things[moved].key
    below = 2 * at
    while below <= size:
        if below < size:
            below += int(things[order[below + 1]].key < things[order[below]].key)
        other = order[below]
        if things[other].key >= value:
            break
        order[at] = other
        things[other].place = at
        at = below
        below = 2 * at
    order[at] = moved
    things[moved].place = at


@inner_kernel
def set_key(order: Indices, things: Records, thing: int, value: float) -> None:
    """Give `thing` the key `value`; put it in where it is not there.

    Reference: tests/reference/heap.py.
    """
    at = np.int64(things[thing].place)
    before = things[thing].key
    things[thing].key = value
    if at == 0:
        order[0] += 1
        order[order[0]] = thing
        sift_up(order, things, np.int64(order[0]))
    elif value < before:
        sift_up(order, things, at)
    elif value > before:
        sift_down(order, things, at)


@inner_kernel
def set_key_later(order: Indices, things: Records, thing: int, value: float) -> None:
    """Give `thing` the key `value` and leave the order to ``rebuild``.

    Reference: tests/reference/heap.py.
    """
    things[thing].key = value
    if things[thing].place == 0:
        order[0] += 1
        order[order[0]] = thing
        things[thing].place = order[0]


@inner_kernel
def rebuild(order: Indices, things: Records) -> None:
    """Put all records in order after any number of keys have changed.

    Reference: tests/reference/heap.py.
    """
    for at in range(np.int64(order[0]) >> 1, 0, -1):
        sift_down(order, things, at)


@inner_kernel
def drop(order: Indices, things: Records, thing: int) -> None:
    """Take `thing` out, if it is there.

    Reference: tests/reference/heap.py.
    """
    at = np.int64(things[thing].place)
    if at == 0:
        return
    last = order[order[0]]
    order[0] -= 1
    things[thing].place = 0
    if last == thing:
        return
    order[at] = last
    things[last].place = at
    sift_up(order, things, at)
    sift_down(order, things, np.int64(things[last].place))


@inner_kernel
def pop(order: Indices, things: Records) -> int:
    """Take out the record with the smallest key and return its number.

    Reference: tests/reference/heap.py.
    """
    top = order[1]
    order[1] = order[order[0]]
    order[0] -= 1
    things[top].place = 0
    if order[0] > 0:
        sift_down(order, things, np.int64(1))
    return top


@inner_kernel
def second_key(order: Indices, things: Records) -> float:
    """Smallest key below the top; infinite where there is none.

    Reference: tests/reference/heap.py.
    """
    second = np.inf
    if order[0] > 1:
        second = things[order[2]].key
    if order[0] > 2:
        second = min(second, things[order[3]].key)
    return second
