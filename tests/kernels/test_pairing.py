"""kernels/pairing.py against tests/reference/pairing.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels.pairing import NONE, add, remove
from gpufabric.kernels.structs import FLOW, records
from tests.reference.pairing import Flows

N_FLOWS = 10
STEP = st.tuples(st.integers(0, N_FLOWS - 1), st.floats(0, 4, allow_nan=False))


@given(st.lists(STEP, max_size=60))
def test_flows_come_and_go(steps: list[tuple[int, float]]) -> None:
    """A flow that is there goes, one that is not comes; the root is always the least."""
    flows, plain, root = records(FLOW, N_FLOWS), Flows(), NONE
    for flow, target in steps:
        if flow in plain.target:
            root = remove(flows, root, flow)
            plain.remove(flow)
        else:
            flows[flow].target = target
            root = add(flows, root, flow)
            plain.add(flow, target)
        assert (root == NONE) == (not plain.target)
        if plain.target:
            assert flows[root].target == plain.least()
    ended = []
    while root != NONE:
        ended.append(root)
        root = remove(flows, root, root)
    assert sorted(ended) == sorted(plain.target)
    assert [plain.target[flow] for flow in ended] == sorted(plain.target.values())
