"""kernels/adjust.py: what a run left behind against an allocation of the same flows from nothing.

kernels/maxmin.py is held against tests/reference/maxmin.py in test_maxmin.py; here it is the
yardstick for fabrics too large for that.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.kernels.adjust import CONVERGED, N_FLOODS
from gpufabric.kernels.flow import N_ADJUSTED, RUNNING, run_flows
from gpufabric.kernels.structs import Run
from gpufabric.sim.flow import FabricEvents, FlowProblem, Paths, allocate
from gpufabric.sim.flow_setup import BYTES_PER_S, check_problem, new_run

EXAMPLES = int(os.environ.get("KERNEL_EXAMPLES", "30"))
N_HOSTS, RADIX = 64, 8


def leaf_spine_flows(n_flows: int, load: float, seed: int) -> FlowProblem:
    """Flows of random sizes and weights at random times over 8 leaves and 8 spines."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, N_HOSTS, n_flows)
    target = (source + rng.integers(1, N_HOSTS, n_flows)) % N_HOSTS
    spine = rng.integers(0, RADIX, n_flows)
    up, down = source // RADIX * RADIX + spine, target // RADIX * RADIX + spine
    same = source // RADIX == target // RADIX
    rows = [
        [s, 3 * N_HOSTS + t] if near else [s, N_HOSTS + u, 2 * N_HOSTS + d, 3 * N_HOSTS + t]
        for s, t, u, d, near in zip(source, target, up, down, same, strict=True)
    ]
    size_bytes = rng.exponential(1e8, n_flows) + 1
    span_s = size_bytes.sum() / (N_HOSTS * 400 * BYTES_PER_S) / load
    return FlowProblem(
        np.full(4 * N_HOSTS, 400.0),
        Paths.from_lists(rows),
        size_bytes,
        start_s=np.sort(rng.uniform(0, span_s, n_flows)),
        weight=rng.choice([0.5, 1.0, 3.0], n_flows),
        cap_gbps=np.where(rng.random(n_flows) < 0.2, 100.0, np.inf),
    )


def degraded(seed: int, span_s: float) -> FabricEvents:
    """Some channels slow down, fail and come back."""
    rng = np.random.default_rng(seed)
    events = FabricEvents()
    for channel in rng.choice(4 * N_HOSTS, 12, replace=False):
        for gbps in (200.0, 0.0, 400.0):
            events += FabricEvents.capacity(rng.uniform(0, span_s), [channel], gbps)
    return events


def state_at(problem: FlowProblem, events: FabricEvents | None, until_s: float) -> Run:
    run = new_run(check_problem(problem, events), 0)
    assert run_flows(run, until_s) == CONVERGED
    return run


def expected_gbps(problem: FlowProblem, run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Flows on their way, and their rates as an allocation from nothing gives them."""
    active = np.flatnonzero(run.flows["status"] >= RUNNING)
    active = active[np.isnan(run.flows["finish_s"][active])]
    first = problem.paths.first
    rows = [problem.paths.channel[first[f] : first[f + 1]].tolist() for f in active]
    assert problem.weight is not None
    assert problem.cap_gbps is not None
    capacity = run.solver.channels["capacity"][: 4 * N_HOSTS] / BYTES_PER_S
    paths = Paths.from_lists(rows)
    found = allocate(capacity, paths, problem.weight[active], problem.cap_gbps[active])
    return active, found.rates_gbps


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 3.0]), st.floats(0.1, 1.5), st.booleans())
def test_rates_after_many_events(seed: int, load: float, when: float, fails: bool) -> None:
    problem = leaf_spine_flows(400, load, seed)
    assert problem.start_s is not None
    span_s = float(problem.start_s[-1])
    run = state_at(problem, degraded(seed, span_s) if fails else None, when * span_s)
    active, expected = expected_gbps(problem, run)
    found = run.solver.bundles["rate"][run.flows["bundle"][active]] / BYTES_PER_S
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("load", [0.1, 4.0])
def test_both_ways_of_adjusting_were_taken(load: float) -> None:
    """A light load touches few flows an event and never floods; a heavy one floods."""
    problem = leaf_spine_flows(600, load, 1)
    assert problem.start_s is not None
    run = state_at(problem, None, float(problem.start_s[-1]))
    active, expected = expected_gbps(problem, run)
    found = run.solver.bundles["rate"][run.flows["bundle"][active]] / BYTES_PER_S
    assert found == pytest.approx(expected, rel=1e-9)
    per_event = run.clock[N_ADJUSTED] / run.clock[3]
    if load < 1:
        assert per_event < 4
        assert run.solver.tally[N_FLOODS] == 0
    else:
        assert per_event > 30
        assert run.solver.tally[N_FLOODS] > 0


def test_what_a_change_cannot_reach_is_not_touched() -> None:
    """1,000 pairs of hosts with a flow each: ten more flows on one pair touch that pair alone."""
    n_pairs, n_late = 1000, 10
    rows = [[2 * pair, 2 * pair + 1] for pair in range(n_pairs)] + [[0, 1, 2000]] * n_late
    problem = FlowProblem(
        np.full(2 * n_pairs + 1, 400.0),
        Paths.from_lists(rows),
        np.full(n_pairs + n_late, 1e12),
        start_s=np.concatenate([np.zeros(n_pairs), np.linspace(1, 2, n_late)]),
    )
    run = state_at(problem, None, 3.0)
    assert run.clock[N_ADJUSTED] == n_pairs + 2 * n_late
