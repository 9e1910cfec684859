"""Small problems for the flow engine, drawn at random, with ties and corners as likely as not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from gpufabric.sim.flow import FabricEvents, FlowProblem, Paths, Predecessors
from tests.reference.bundle import plain
from tests.reference.flow import Change, Flow

BYTES_PER_S = 1.25e8  # in 1 Gb/s

FRACTION = st.sampled_from([1.0, 1.0, 0.5, 0.25, 1 / 3, 0.0])
CAPACITY = st.one_of(st.sampled_from([0.0, 100.0, 200.0, 400.0]), st.floats(1, 800))
WEIGHT = st.one_of(st.just(1.0), st.sampled_from([0.5, 2.0]), st.floats(0.01, 100))
CAP = st.one_of(st.just(math.inf), st.sampled_from([0.0, 50.0]), st.floats(1, 500))
SIZE = st.one_of(st.sampled_from([0.0, 1e9, 2e9]), st.floats(1, 1e10))
TIME = st.one_of(st.sampled_from([0.0, 0.01, 0.02]), st.floats(0, 0.2))


@st.composite
def rows(draw: st.DrawFn, n_channels: int, size: int) -> list[list[tuple[int, float]]]:
    entry = st.tuples(st.integers(0, n_channels - 1), FRACTION)
    return draw(st.lists(st.lists(entry, max_size=4), min_size=size, max_size=size))


@dataclass(frozen=True)
class Allocating:
    """Flows that are all active."""

    capacity: list[float]
    rows: list[list[tuple[int, float]]]
    weights: list[float]
    caps: list[float]

    @property
    def paths(self) -> Paths:
        return paths_of(self.rows)


def paths_of(rows: list[list[tuple[int, float]]], latency_s: list[float] | None = None) -> Paths:
    channels = [[channel for channel, _ in row] for row in rows]
    return Paths.from_lists(channels, [[part for _, part in row] for row in rows], latency_s)


@st.composite
def allocations(draw: st.DrawFn) -> Allocating:
    n_channels, n_flows = draw(st.integers(1, 6)), draw(st.integers(1, 10))
    capacity = draw(st.lists(CAPACITY, min_size=n_channels, max_size=n_channels))
    weights = draw(st.lists(WEIGHT, min_size=n_flows, max_size=n_flows))
    caps = draw(st.lists(CAP, min_size=n_flows, max_size=n_flows))
    return Allocating(capacity, draw(rows(n_channels, n_flows)), weights, caps)


@dataclass(frozen=True)
class Running:
    """Flows in time, as the engine and as the reference take them."""

    problem: FlowProblem
    events: FabricEvents
    capacity: list[float]  # byte/s
    flows: list[Flow]
    changes: list[Change]


@st.composite
def runs(draw: st.DrawFn) -> Running:
    n_channels, n_paths, n_flows = (draw(st.integers(1, most)) for most in (6, 6, 9))
    capacity = draw(st.lists(CAPACITY, min_size=n_channels, max_size=n_channels))
    paths = draw(rows(n_channels, n_paths))
    latency = draw(st.lists(st.sampled_from([0.0, 0.003]), min_size=n_paths, max_size=n_paths))
    path = draw(st.lists(st.integers(0, n_paths - 1), min_size=n_flows, max_size=n_flows))
    size, start, weight, cap = (
        draw(st.lists(values, min_size=n_flows, max_size=n_flows))
        for values in (SIZE, TIME, WEIGHT, CAP)
    )
    before = [
        sorted(draw(st.sets(st.integers(0, flow - 1), max_size=2))) if flow else []
        for flow in range(n_flows)
    ]
    problem = FlowProblem(
        np.array(capacity),
        paths_of(paths, latency),
        np.array(size),
        path=np.array(path, np.int32),
        start_s=np.array(start),
        weight=np.array(weight),
        cap_gbps=np.array(cap),
        predecessors=Predecessors(
            np.concatenate([[0], np.cumsum([len(names) for names in before])]).astype(np.int64),
            np.array([name for names in before for name in names], np.int32),
        ),
    )
    flows = [
        Flow(
            plain(paths[path[flow]]),
            size[flow],
            start[flow],
            weight[flow],
            cap[flow] * BYTES_PER_S,
            latency[path[flow]],
            before[flow],
        )
        for flow in range(n_flows)
    ]
    events, changes = draw(happenings(n_channels, n_flows, paths))
    return Running(problem, events, [c * BYTES_PER_S for c in capacity], flows, changes)


@st.composite
def happenings(
    draw: st.DrawFn, n_channels: int, n_flows: int, paths: list[list[tuple[int, float]]]
) -> tuple[FabricEvents, list[Change]]:
    events, changes = FabricEvents(), []
    for _ in range(draw(st.integers(0, 3))):
        time = draw(TIME)
        if draw(st.booleans()):
            channel, capacity = draw(st.integers(0, n_channels - 1)), draw(CAPACITY)
            events += FabricEvents.capacity(time, [channel], capacity)
            changes.append(Change(time, channel=channel, capacity=capacity * BYTES_PER_S))
        else:
            flow, path = draw(st.integers(0, n_flows - 1)), draw(st.integers(0, len(paths) - 1))
            events += FabricEvents.reroute(time, [flow], [path])
            changes.append(Change(time, flow=flow, route=plain(paths[path])))
    return events, changes
