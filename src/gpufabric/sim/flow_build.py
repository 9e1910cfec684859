"""Traffic with paths turned into what the flow engine is asked, failures and relays included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.routing.channels import Channels
from gpufabric.sim.failures import Failure, down_links, instants
from gpufabric.sim.flow_problem import FabricEvents, FlowProblem, Paths, Predecessors
from gpufabric.sim.flow_routes import FlowRoutes, Routed
from gpufabric.sim.row_arrays import below, take_rows

__all__ = ["Built", "build"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Built:
    """A problem for the engine, and how its flows are those of the traffic.

    Parameters
    ----------
    problem
        The traffic's flows first, then relays, then barriers. Its last channel has no capacity: a
        flow without a path is put there and stalls.
    events
        Failures, repairs, and new paths.
    now
        The fabric when the run begins.
    routed
        The paths when the run begins.
    has_path
        bool[n_flows]: whether each flow has a path when the last event is over.
    """

    problem: FlowProblem
    events: FabricEvents
    now: Channels
    routed: Routed
    has_path: Bools


def build(
    routes: FlowRoutes, healthy: Channels, failures: Sequence[Failure], reconverge_s: float
) -> Built:
    """Return the problem.

    Parameters
    ----------
    routes
        Finds the flows' paths.
    healthy
        The fabric without failures.
    failures
        What fails, and when.
    reconverge_s
        Time from a change of the fabric to new paths; what fails before the run begins has been
        routed around [s].
    """
    times = instants(failures)
    states = [healthy.with_failures(links=down_links(failures, time).tolist()) for time in times]
    found = [routes.find(state) for state in states]
    n_flows, dead_end = routes.traffic.n_flows, len(healthy.capacity_gbps)
    rows = [_with_dead_end(routed, dead_end) for routed in found]
    events = _capacity_events(times, states)
    for number in range(1, len(times)):
        moved = np.flatnonzero(_differs(rows[number - 1], rows[number]))
        when_s = times[number] + reconverge_s
        events = events + FabricEvents.reroute(when_s, moved, moved + number * n_flows)
    traffic = routes.traffic
    problem = FlowProblem(
        capacity_gbps=np.append(states[0].capacity_gbps, 0.0),
        paths=below(rows),
        size_bytes=traffic.size_bytes,
        path=np.arange(n_flows, dtype=np.int32),
        start_s=traffic.start_s,
        weight=traffic.weight,
        cap_gbps=traffic.cap_gbps,
        predecessors=traffic.predecessors,
    )
    if routes.cross_rail == "two-step" and routes.is_relayed.any():
        problem = _with_relays(problem, routes)
    return Built(problem, events, states[0], found[0], found[-1].has_path)


def _with_dead_end(routed: Routed, dead_end: int) -> Paths:
    """Put flows without a path on a channel that has no capacity."""
    if routed.has_path.all():
        return routed.paths
    lost = np.flatnonzero(~routed.has_path)
    extra = Paths(
        np.arange(len(lost) + 1, dtype=np.int64),
        np.full(len(lost), dead_end, np.int32),
        np.ones(len(lost)),
        np.zeros(len(lost)),
    )
    place = np.arange(routed.paths.n_paths)
    place[lost] = routed.paths.n_paths + np.arange(len(lost))
    return take_rows(below([routed.paths, extra]), place)


def _capacity_events(times: Sequence[float], states: Sequence[Channels]) -> FabricEvents:
    events = FabricEvents()
    for number in range(1, len(times)):
        before, after = states[number - 1].capacity_gbps, states[number].capacity_gbps
        changed = np.flatnonzero(before != after)
        for gbps in np.unique(after[changed]):
            mine = changed[after[changed] == gbps]
            events = events + FabricEvents.capacity(times[number], mine, float(gbps))
    return events


def _differs(one: Paths, other: Paths) -> Bools:
    """Tell which rows are not the same, entry by entry."""
    size, size_other = np.diff(one.first), np.diff(other.first)
    differs: Bools = np.asarray(size != size_other)
    same = np.flatnonzero(~differs)
    mine, yours = take_rows(one, same), take_rows(other, same)
    assert mine.fraction is not None
    assert yours.fraction is not None
    unequal = (mine.channel != yours.channel) | (mine.fraction != yours.fraction)
    owner = np.repeat(same, np.diff(mine.first))
    differs[owner[unequal]] = True
    return differs


def _with_relays(problem: FlowProblem, routes: FlowRoutes) -> FlowProblem:
    """Let all flows of a relay GPU's NIC wait until every relay into that GPU has ended.

    A barrier of no bytes stands for each GPU that others relay through: it waits for the relays,
    and the GPU's flows over the network wait for it.
    """
    traffic, n_flows = routes.traffic, problem.n_flows
    relayed = np.flatnonzero(routes.is_relayed)
    gates, gate_of_relay = np.unique(routes.sender[relayed], return_inverse=True)
    n_relays, n_gates = len(relayed), len(gates)
    gate_number = np.full(len(routes.endpoints), -1, np.int64)
    gate_number[gates] = n_flows + n_relays + np.arange(n_gates)
    waits = np.flatnonzero(
        ~routes.is_local & ~routes.is_explicit & (gate_number[routes.sender] >= 0)
    )
    given = traffic.predecessors or _no_predecessors(n_flows)
    inherited = _rows_of(given, relayed)
    by_gate = np.argsort(gate_of_relay, kind="stable")
    predecessors = _joined(
        [
            _with_more(given, waits, gate_number[routes.sender[waits]]),
            inherited,
            Predecessors(
                np.concatenate(
                    [[0], np.cumsum(np.bincount(gate_of_relay, minlength=n_gates))]
                ).astype(np.int64),
                (n_flows + by_gate).astype(np.int32),
            ),
        ]
    )
    nothing = Paths(
        np.zeros(n_gates + 1, np.int64), np.empty(0, np.int32), np.empty(0), np.zeros(n_gates)
    )
    n_rows = problem.paths.n_paths
    more = np.arange(n_rows, n_rows + n_relays + n_gates)
    assert problem.path is not None
    zeros = np.zeros(n_gates)
    return FlowProblem(
        capacity_gbps=problem.capacity_gbps,
        paths=below([problem.paths, routes.relays(), nothing]),
        size_bytes=np.concatenate([traffic.size_bytes, traffic.size_bytes[relayed], zeros]),
        path=np.concatenate([problem.path, more]).astype(np.int32),
        start_s=np.concatenate([traffic.start_s, traffic.start_s[relayed], zeros]),
        weight=_extended(traffic.weight, relayed, n_gates, 1.0),
        cap_gbps=_extended(traffic.cap_gbps, relayed, n_gates, np.inf),
        predecessors=predecessors,
    )


def _extended(values: Floats | None, relayed: Longs, n_gates: int, default: float) -> Floats | None:
    if values is None:
        return None
    return np.concatenate([values, values[relayed], np.full(n_gates, default)])


def _no_predecessors(n_flows: int) -> Predecessors:
    return Predecessors(np.zeros(n_flows + 1, np.int64), np.empty(0, np.int32))


def _rows_of(given: Predecessors, rows: Longs) -> Predecessors:
    taken = take_rows(Paths(given.first, given.flow), rows)
    return Predecessors(taken.first, taken.channel)


def _with_more(given: Predecessors, rows: Longs, more: Longs) -> Predecessors:
    """Add one predecessor to each of some rows."""
    size = np.diff(given.first)
    owner = np.concatenate([np.repeat(np.arange(len(size)), size), rows])
    flow = np.concatenate([given.flow, more])
    order = np.argsort(owner, kind="stable")
    size[rows] += 1
    return Predecessors(
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64), flow[order].astype(np.int32)
    )


def _joined(parts: Sequence[Predecessors]) -> Predecessors:
    whole = below([Paths(part.first, part.flow) for part in parts])
    return Predecessors(whole.first, whole.channel)
