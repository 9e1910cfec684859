"""kernels/maxmin.py against tests/reference/maxmin.py, and the laws of max-min fairness."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings

from gpufabric.kernels.maxmin import transpose
from gpufabric.kernels.structs import Routes
from gpufabric.sim.flow import LIMITED_BY_CAP, UNLIMITED, Paths, allocate
from tests.kernels.flow_problems import Allocating, allocations
from tests.reference.bundle import plain
from tests.reference.maxmin import progressive_filling

EXAMPLES = int(os.environ.get("KERNEL_EXAMPLES", "150"))


def rates_of(case: Allocating, factor: float = 1.0) -> np.ndarray:
    capacity, caps = np.array(case.capacity) * factor, np.array(case.caps) * factor
    return allocate(capacity, case.paths, np.array(case.weights), caps).rates_gbps


@settings(max_examples=EXAMPLES)
@given(allocations())
def test_rates_equal_the_reference(case: Allocating) -> None:
    rates, _ = progressive_filling(case.capacity, case.rows, case.weights, case.caps)
    assert rates_of(case) == pytest.approx(np.array(rates), rel=1e-9, abs=0)


@settings(max_examples=EXAMPLES)
@given(allocations())
def test_every_flow_has_what_limits_it(case: Allocating) -> None:
    """A full channel where its level is the highest, or its cap; and no channel is overloaded."""
    weights, caps = np.array(case.weights), np.array(case.caps)
    found = allocate(np.array(case.capacity), case.paths, weights, caps)
    routes = [dict(plain(row)) for row in case.rows]
    level = found.rates_gbps / weights
    for flow, limit in enumerate(found.bottleneck):
        if limit == UNLIMITED:
            assert not routes[flow]
            assert found.rates_gbps[flow] == math.inf
        elif limit == LIMITED_BY_CAP:
            assert found.rates_gbps[flow] == pytest.approx(caps[flow], rel=1e-12)
        else:
            there = [other for other, route in enumerate(routes) if limit in route]
            load = sum(found.rates_gbps[other] * routes[other][limit] for other in there)
            assert load == pytest.approx(case.capacity[limit], rel=1e-9)
            assert level[flow] >= max(level[there]) * (1 - 1e-9)
    for channel, capacity in enumerate(case.capacity):
        parts = [
            rate * route[channel]
            for rate, route in zip(found.rates_gbps, routes, strict=True)
            if channel in route
        ]
        assert sum(parts) <= capacity * (1 + 1e-9)


@settings(max_examples=EXAMPLES)
@given(allocations())
def test_double_capacity_doubles_rates(case: Allocating) -> None:
    assert rates_of(case, 2.0).tolist() == (2.0 * rates_of(case)).tolist()


@given(allocations())
def test_routes_of_every_channel(case: Allocating) -> None:
    paths = case.paths
    assert paths.fraction is not None
    first, flow = transpose(Routes(paths.first, paths.channel, paths.fraction), len(case.capacity))
    expected = [
        [f for f, row in enumerate(case.rows) for c, _ in row if c == channel]
        for channel in range(len(case.capacity))
    ]
    assert [part.tolist() for part in np.split(flow, first[1:-1])] == expected


def test_a_flow_on_several_paths_loads_each_by_its_share() -> None:
    """Three quarters over channel 0, a quarter over channel 1: 0.75 x = 300 at x = 400."""
    single = Paths.from_lists([[0, 2], [1, 2]])
    paths = Paths.from_shares(np.array([0, 2]), np.array([0.75, 0.25]), single)
    found = allocate(np.array([300.0, 300.0, 800.0]), paths)
    assert found.rates_gbps.tolist() == [400.0]
    assert found.bottleneck.tolist() == [0]


def test_a_small_weight_beside_a_large_one_is_exact() -> None:
    """The first flow stops at 1 Gb/s elsewhere; the second has the other 399, to the last digit."""
    found = allocate(np.array([400.0, 1.0]), Paths.from_lists([[0, 1], [0]]), np.array([1e6, 1e-6]))
    assert found.rates_gbps == pytest.approx([1.0, 399.0], rel=1e-12)
