"""kernels/heap.py against tests/reference/heap.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.heap import (
    drop,
    new_heap,
    pop,
    rebuild,
    second_key,
    set_key,
    set_key_later,
)
from gpufabric.kernels.structs import CHANNEL, Indices, Records, records
from tests.reference.heap import Heap

N_THINGS = 12
THING = st.integers(0, N_THINGS - 1)
KEY = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
STEP = st.one_of(
    st.tuples(st.just("set"), THING, KEY),
    st.tuples(st.just("drop"), THING, st.just(0.0)),
    st.tuples(st.just("pop"), st.just(0), st.just(0.0)),
)


def check(order: Indices, things: Records, heap: Heap) -> None:
    inside = sorted(order[1 : order[0] + 1].tolist())
    assert inside == sorted(heap.key)
    assert {thing: things[thing].key for thing in inside} == heap.key
    for thing in range(N_THINGS):
        at = things[thing].place
        assert (at > 0) == (thing in heap.key)
        assert at == 0 or order[at] == thing
    if heap.key:
        assert things[order[1]].key == heap.least()
    assert second_key(order, things) == heap.second_key()


@given(st.lists(STEP, max_size=40))
def test_any_steps(steps: list[tuple[str, int, float]]) -> None:
    order, things, heap = new_heap(N_THINGS), records(CHANNEL, N_THINGS), Heap()
    for step, thing, key in steps:
        if step == "set":
            set_key(order, things, thing, key)
            heap.set_key(thing, key)
        elif step == "drop":
            drop(order, things, thing)
            heap.drop(thing)
        elif heap.key:
            least = heap.least()
            top = pop(order, things)
            assert heap.key[top] == least
            heap.drop(top)
        check(order, things, heap)


@given(st.lists(st.tuples(THING, KEY), max_size=20))
def test_keys_set_in_bulk(pairs: list[tuple[int, float]]) -> None:
    order, things, heap = new_heap(N_THINGS), records(CHANNEL, N_THINGS), Heap()
    for thing, key in pairs:
        set_key_later(order, things, thing, key)
        heap.set_key(thing, key)
    rebuild(order, things)
    check(order, things, heap)
