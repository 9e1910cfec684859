"""kernels/flow.py against tests/reference/flow.py."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.sim.flow import simulate
from tests.kernels.flow_problems import Running, runs
from tests.reference.flow import run

EXAMPLES = int(os.environ.get("KERNEL_EXAMPLES", "200"))


@settings(max_examples=EXAMPLES)
@given(runs(), st.one_of(st.just(np.inf), st.floats(0, 0.4)), st.sampled_from([0, 4]))
def test_a_run_equals_the_reference(case: Running, until_s: float, n_bins: int) -> None:
    found = simulate(case.problem, case.events, until_s=until_s, series_bins=n_bins)
    carried = run(case.capacity, case.flows, case.changes, until_s)
    begun = np.array([flow.begun for flow in case.flows])
    finish = np.array([flow.finish for flow in case.flows])
    left = np.array([flow.left for flow in case.flows])
    assert found.begun_s == pytest.approx(begun, rel=1e-9, abs=1e-15, nan_ok=True)
    assert found.finish_s == pytest.approx(finish, rel=1e-9, abs=1e-15, nan_ok=True)
    total = float(np.sum(case.problem.size_bytes))
    near = 1e-9 * total + 1e-3  # bytes
    assert found.left_bytes == pytest.approx(left, rel=1e-9, abs=near)
    assert found.carried_bytes == pytest.approx(np.array(carried), rel=1e-9, abs=near)
    if n_bins:
        assert found.series is not None
        assert found.series.carried_bytes.sum(axis=0) == pytest.approx(
            np.array(carried), rel=1e-9, abs=near
        )
