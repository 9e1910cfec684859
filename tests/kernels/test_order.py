"""kernels/order.py against tests/reference/order.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels import order as kernels
from tests.reference import order as reference


@st.composite
def predecessor_lists(draw: st.DrawFn) -> list[list[int]]:
    n_flows = draw(st.integers(1, 8))
    before = st.lists(st.integers(0, n_flows - 1), max_size=3)
    return draw(st.lists(before, min_size=n_flows, max_size=n_flows))


@given(predecessor_lists())
def test_successors_and_circles(before: list[list[int]]) -> None:
    n_before = np.array([len(names) for names in before], np.int32)
    first = np.concatenate([[0], np.cumsum(n_before)]).astype(np.int64)
    flat = np.array([name for names in before for name in names], np.int32)
    first_successor, successor = kernels.successors(first, flat)
    after = [part.tolist() for part in np.split(successor, first_successor[1:-1])]
    assert after == reference.successors(before)
    found = kernels.in_cycle(n_before, first_successor, successor)
    assert found.tolist() == reference.in_cycle(before)
