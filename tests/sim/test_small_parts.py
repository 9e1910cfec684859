"""Rows of channels, lumping, the work bound and the fairness index against plain Python."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.sim.engine_run import run_engine
from gpufabric.sim.flow import simulate
from gpufabric.sim.flow_problem import FabricEvents, FlowProblem, Paths
from gpufabric.sim.lumping import lump_channels, plain_paths
from gpufabric.sim.row_arrays import below, beside, row_sums, take_rows
from gpufabric.sim.traffic_result import jain_index
from gpufabric.sim.work_bound import work_bound_s

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6)


def lists(paths: Paths) -> list[list[int]]:
    return [paths.channel[a:b].tolist() for a, b in pairwise(paths.first.tolist())]


@given(LISTS, st.data())
def test_rows_beside_and_below_each_other(rows: list[list[int]], data: st.DataObject) -> None:
    others = data.draw(
        st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=len(rows), max_size=len(rows))
    )
    one, other = Paths.from_lists(rows), Paths.from_lists(others)
    assert lists(beside([one, other])) == [a + b for a, b in zip(rows, others, strict=True)]
    assert lists(below([one, other])) == rows + others
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    assert lists(take_rows(one, np.array(chosen, np.int64))) == [rows[row] for row in chosen]
    sums = row_sums(one.first, one.channel.astype(np.float64))
    assert sums.tolist() == [sum(row) for row in rows]


def test_delays_and_fractions_go_with_their_rows() -> None:
    one = Paths.from_lists([[1], [2, 3]], [[0.5], [1.0, 0.25]], [1.0, 2.0])
    other = Paths.from_lists([[4], [5]])
    both = beside([one, other])
    assert both.fraction is not None
    assert both.fraction.tolist() == [0.5, 1.0, 1.0, 0.25, 1.0]
    assert both.latency_s is not None
    assert both.latency_s.tolist() == [1.0, 2.0]
    stacked = below([one, other])
    assert stacked.latency_s is not None
    assert stacked.latency_s.tolist() == [1.0, 2.0, 0.0, 0.0]


# Lumping -----------------------------------------------------------------------------------------

# Channels 0-2 are private; 3-5 are crossed alike by all flows; 6 by the first two alone.
ROWS = [[0, 3, 4, 5, 6], [1, 3, 4, 5, 6], [2, 3, 4, 5]]
PARTS = [[1.0, 0.5, 0.5, 0.5, 1.0], [1.0, 0.5, 0.5, 0.5, 1.0], [1.0, 0.5, 0.5, 0.5]]
CAPACITY = np.array([400.0, 400.0, 400.0, 300.0, 200.0, 250.0, 400.0])


def test_of_channels_crossed_alike_the_smallest_stays() -> None:
    lumps = lump_channels(Paths.from_lists(ROWS, PARTS), CAPACITY, np.empty(0, np.int64))
    assert lumps.keeper.tolist() == [0, 1, 2, 4, 4, 4, 6]
    assert lists(lumps.paths) == [[0, 4, 6], [1, 4, 6], [2, 4]]


def test_a_channel_whose_capacity_changes_stays() -> None:
    lumps = lump_channels(Paths.from_lists(ROWS, PARTS), CAPACITY, np.array([3]))
    assert lumps.keeper.tolist() == [0, 1, 2, 3, 4, 4, 6]


def test_other_fractions_are_no_likeness() -> None:
    parts = [[1.0, 0.5, 0.25], [1.0, 0.5, 0.25]]
    rows = [[0, 2, 3], [1, 2, 3]]
    lumps = lump_channels(Paths.from_lists(rows, parts), np.full(4, 1.0), np.empty(0, np.int64))
    assert lumps.keeper.tolist() == [0, 1, 2, 3]


@given(
    st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=6), min_size=1, max_size=12),
    st.lists(st.sampled_from([100.0, 200.0, 400.0]), min_size=8, max_size=8),
    st.data(),
)
def test_lumping_changes_nothing(
    rows: list[list[int]], capacity: list[float], data: st.DataObject
) -> None:
    size = data.draw(st.lists(st.sampled_from([1e6, 3e6]), min_size=len(rows), max_size=len(rows)))
    problem = FlowProblem(np.array(capacity), Paths.from_lists(rows), np.array(size))
    events = FabricEvents.capacity(1e-5, [0, 3], 50.0)
    whole = simulate(problem, events, series_bins=4)
    lumped = run_engine(problem, events, np.inf, 4)
    assert lumped.flows.finish_s == pytest.approx(whole.finish_s, rel=1e-9)
    assert lumped.carried_bytes == pytest.approx(whole.carried_bytes, rel=1e-9, abs=1e-6)
    assert whole.series is not None
    tier = np.zeros(8, np.int8)
    series = lumped.tier_series(problem.capacity_gbps, tier, 1)
    assert series is not None
    share = whole.series.utilisation(problem.capacity_gbps)[: len(series.mean)]
    assert series.mean[:, 0] == pytest.approx(share.mean(axis=1), rel=1e-9, abs=1e-12)
    assert series.most[:, 0] == pytest.approx(share.max(axis=1), rel=1e-9, abs=1e-12)


def test_paths_become_plain() -> None:
    paths = plain_paths(Paths.from_lists([[1, 2, 1]], [[0.5, 0.0, 0.25]], [3.0]), 3)
    assert lists(paths) == [[1]]
    assert paths.fraction is not None
    assert paths.fraction.tolist() == [0.75]


# Bounds and indices ------------------------------------------------------------------------------

WORK = st.lists(
    st.tuples(st.integers(0, 2), st.floats(0, 1e9), st.floats(0, 5), st.sampled_from([8.0, 0.0])),
    min_size=1,
    max_size=10,
)


@given(WORK)
def test_the_work_bound_is_that_of_the_definition(
    work: list[tuple[int, float, float, float]],
) -> None:
    expected = 0.0
    for key, _size, since, rate in work:
        if rate:
            later = sum(s for k, s, t, r in work if k == key and t >= since and r)
            expected = max(expected, since + later / 1e9)
    columns = [np.array(column) for column in zip(*work, strict=True)]
    assert work_bound_s(*columns) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=9))
def test_the_fairness_index_lies_between_one_over_n_and_one(values: list[float]) -> None:
    index = jain_index(np.array(values))
    if index is not None:
        assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index(np.zeros(3)) is None
    assert jain_index(np.array([5.0, 5.0, 5.0])) == pytest.approx(1.0)
    assert jain_index(np.array([5.0, 0.0, 0.0])) == pytest.approx(1 / 3)
