"""kernels/bundle.py against tests/reference/bundle.py."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.kernels import bundle as kernels
from gpufabric.kernels.structs import Routes
from gpufabric.sim.flow_problem import Paths
from tests.reference import bundle as reference

N_CHANNELS = 5
ENTRY = st.tuples(st.integers(0, N_CHANNELS - 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
ROUTES = st.lists(st.lists(ENTRY, max_size=4), min_size=1, max_size=8)


def routes_of(rows: list[list[tuple[int, float]]]) -> Routes:
    paths = Paths.from_lists(
        [[c for c, _ in row] for row in rows], [[p for _, p in r] for r in rows]
    )
    assert paths.fraction is not None
    return Routes(paths.first, paths.channel, paths.fraction)


def rows_of(routes: Routes) -> list[list[tuple[int, float]]]:
    cuts = routes.first[1:-1]
    channels, fractions = np.split(routes.channel, cuts), np.split(routes.fraction, cuts)
    return [
        list(zip(c.tolist(), p.tolist(), strict=True))
        for c, p in zip(channels, fractions, strict=True)
    ]


@given(ROUTES)
def test_plain_routes(rows: list[list[tuple[int, float]]]) -> None:
    routes, expected = routes_of(rows), [reference.plain(row) for row in rows]
    assert rows_of(kernels.make_plain(routes, N_CHANNELS)) == expected
    assert kernels.is_plain(routes, N_CHANNELS) == (expected == rows)


@given(ROUTES, st.data())
def test_bundles(rows: list[list[tuple[int, float]]], data: st.DataObject) -> None:
    """Flows of one route, weight and cap have one number; each bundle's leader is its first."""
    n_flows = data.draw(st.integers(1, 12))
    draw = st.lists(st.integers(0, len(rows) - 1), min_size=n_flows, max_size=n_flows)
    value = st.lists(st.sampled_from([0.5, 1.0, np.inf]), min_size=n_flows, max_size=n_flows)
    path, weight, cap = data.draw(draw), data.draw(value), data.draw(value)
    kinds = [(tuple(rows[p]), w, c) for p, w, c in zip(path, weight, cap, strict=True)]
    route = kernels.merge_routes(routes_of(rows))[np.array(path, np.int32)]
    bundle = np.empty(n_flows, np.int32)
    bits = [np.array(values).view(np.int64) for values in (weight, cap)]
    leader = kernels.merge(route, *bits, bundle)
    assert bundle.tolist() == reference.bundles(kinds)
    assert [bundle.tolist().index(number) for number in range(leader.size)] == leader.tolist()
    picked = kernels.pick(routes_of(rows), route[leader])
    assert rows_of(picked) == [rows[path[first]] for first in leader]


@given(ROUTES, st.data())
def test_caps(rows: list[list[tuple[int, float]]], data: st.DataObject) -> None:
    plain = [reference.plain(row) for row in rows]
    number = st.sampled_from([0.0, 1.0, 2.0, 4.0])
    capacity = data.draw(st.lists(number, min_size=N_CHANNELS, max_size=N_CHANNELS))
    cap = data.draw(st.lists(number, min_size=len(rows), max_size=len(rows)))
    expected = [reference.binding(capacity, r, c) for r, c in zip(plain, cap, strict=True)]
    routes = routes_of(plain)
    binding = kernels.binding_caps(routes, np.array(capacity), np.array(cap))
    assert binding.tolist() == expected
    channel = np.empty(len(rows), np.int32)
    capped = kernels.add_caps(routes, binding, N_CHANNELS, channel)
    assert rows_of(capped) == reference.with_caps(N_CHANNELS, plain, expected)
    assert (channel >= 0).tolist() == expected
