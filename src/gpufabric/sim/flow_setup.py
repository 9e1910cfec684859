"""A flow problem checked and turned into the arrays that the kernels run on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.adjust import ROUND
from gpufabric.kernels.bundle import (
    add_caps,
    binding_caps,
    is_plain,
    make_plain,
    merge,
    merge_routes,
    pick,
)
from gpufabric.kernels.flow import PENDING, WAITING
from gpufabric.kernels.heap import new_heap
from gpufabric.kernels.order import in_cycle, successors
from gpufabric.kernels.structs import (
    BUNDLE,
    CHANGE,
    CHANNEL,
    ENTRY,
    FLOW,
    MEMBER,
    Records,
    Routes,
    Run,
    Series,
    Solver,
    records,
)
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.flow_problem import FabricEvents, FlowProblem, Paths, Predecessors

__all__ = ["BYTES_PER_S", "Checked", "check_capacity", "check_paths", "check_problem", "new_run"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

BYTES_PER_S = 1.25e8  # in 1 Gb/s: 1e9 bit/s, 8 bit a byte
MOST = 2**31 - 1  # indices are int32


@dataclass(frozen=True, eq=False)
class Checked:
    """A flow problem and its events without a None, in the kernels' types and byte/s."""

    capacity: Floats  # float64[n_channels] [byte/s]
    routes: Routes  # one a row of the paths
    latency_s: Floats  # float64[n_paths] [s]
    size_bytes: Floats  # float64[n_flows] [byte]
    path: Ints  # int32[n_flows]
    start_s: Floats  # float64[n_flows] [s]
    weight: Floats  # float64[n_flows]
    cap: Floats  # float64[n_flows] [byte/s]
    predecessors: Predecessors
    events: FabricEvents  # by time


def check_capacity(checks: ArrayChecks, capacity_gbps: Floats) -> Floats:
    """Return the capacities, faults noted."""
    return checks.floats("capacity_gbps", capacity_gbps, None, finite, _("0 or more, finite"))


def check_paths(checks: ArrayChecks, paths: Paths, n_channels: int) -> Routes:
    """Return the rows as plain routes, faults noted."""
    channel = checks.ints("paths.channel", paths.channel, None, 0, n_channels)
    first = checks.csr("paths.first", paths.first, channel.size, None)
    if paths.fraction is None:
        fraction = np.ones(channel.size)
    else:
        fraction = checks.floats(
            "paths.fraction", paths.fraction, channel.size, finite, _("0 or more, finite")
        )
    if max(first.size, channel.size) > MOST:
        what = _("{n} entries are too many.").format(n=channel.size)
        checks.fault("paths", what, _("at most {most}").format(most=MOST))
    routes = Routes(first, channel, fraction)
    if checks.faults or is_plain(routes, n_channels):
        return routes
    plain: Routes = make_plain(routes, n_channels)
    return plain


def finite(values: Floats) -> NDArray[np.bool_]:
    """Tell which values are finite and not negative."""
    return (values >= 0) & (values < np.inf)


def positive(values: Floats) -> NDArray[np.bool_]:
    """Tell which values are finite and above zero."""
    return (values > 0) & (values < np.inf)


def not_negative(values: Floats) -> NDArray[np.bool_]:
    """Tell which values are not negative; infinity is allowed."""
    return values >= 0


def check_problem(problem: FlowProblem, events: FabricEvents | None) -> Checked:
    """Return the problem and its events, complete and in the kernels' types.

    Raises
    ------
    InputError
        With all faults found; with the flows of a circle, if flows wait for each other.
    """
    checks = ArrayChecks()
    n_flows = problem.n_flows
    capacity = check_capacity(checks, problem.capacity_gbps)
    routes = check_paths(checks, problem.paths, capacity.size)
    n_paths = problem.paths.n_paths
    checked = Checked(
        capacity=capacity * BYTES_PER_S,
        routes=routes,
        latency_s=_or(checks, "paths.latency_s", problem.paths.latency_s, n_paths, 0.0),
        size_bytes=checks.floats(
            "size_bytes", problem.size_bytes, n_flows, finite, _("0 or more, finite")
        ),
        path=_check_path(checks, problem, n_paths),
        start_s=_or(checks, "start_s", problem.start_s, n_flows, 0.0),
        weight=check_weight(checks, problem.weight, n_flows),
        cap=check_cap(checks, problem.cap_gbps, n_flows) * BYTES_PER_S,
        predecessors=_check_predecessors(checks, problem.predecessors, n_flows),
        events=_check_events(checks, events, capacity.size, n_flows, n_paths),
    )
    checks.raise_all()
    return checked


def check_weight(checks: ArrayChecks, weight: Floats | None, n_flows: int) -> Floats:
    """Return the weights, 1 where None, faults noted."""
    if weight is None:
        return np.ones(n_flows)
    return checks.floats("weight", weight, n_flows, positive, _("above 0, finite"))


def check_cap(checks: ArrayChecks, cap_gbps: Floats | None, n_flows: int) -> Floats:
    """Return the caps, infinite where None, faults noted."""
    if cap_gbps is None:
        return np.full(n_flows, np.inf)
    return checks.floats("cap_gbps", cap_gbps, n_flows, not_negative, _("0 or more"))


def _or(
    checks: ArrayChecks, where: str, values: Floats | None, size: int, default: float
) -> Floats:
    if values is None:
        return np.full(size, default)
    return checks.floats(where, values, size, finite, _("0 or more, finite"))


def _check_path(checks: ArrayChecks, problem: FlowProblem, n_paths: int) -> Ints:
    n_flows = problem.n_flows
    if problem.path is not None:
        return checks.ints("path", problem.path, n_flows, 0, n_paths)
    if n_flows > n_paths:
        what = _("{n_flows} flows have {n_paths} rows of paths.").format(
            n_flows=n_flows, n_paths=n_paths
        )
        checks.fault("path", what, _("a row for each flow"))
    return np.arange(n_flows, dtype=np.int32)


def _check_predecessors(
    checks: ArrayChecks, predecessors: Predecessors | None, n_flows: int
) -> Predecessors:
    if predecessors is None:
        return Predecessors(np.zeros(n_flows + 1, np.int64), np.empty(0, np.int32))
    flow = checks.ints("predecessors.flow", predecessors.flow, None, 0, n_flows)
    first = checks.csr("predecessors.first", predecessors.first, flow.size, n_flows)
    return Predecessors(first, flow)


def _check_events(
    checks: ArrayChecks,
    events: FabricEvents | None,
    n_channels: int,
    n_flows: int,
    n_paths: int,
) -> FabricEvents:
    if events is None:
        return FabricEvents()
    time_s = checks.floats("events.time_s", events.time_s, None, finite, _("0 or more, finite"))
    n_events = time_s.size
    channel = checks.ints("events.channel", events.channel, n_events, -1, n_channels)
    capacity = checks.floats(
        "events.capacity_gbps", events.capacity_gbps, n_events, finite, _("0 or more, finite")
    )
    flow = checks.ints("events.flow", events.flow, n_events, -1, n_flows)
    path = checks.ints("events.path", events.path, n_events, -1, n_paths)
    if checks.faults:
        return FabricEvents()
    wrong = ((channel >= 0) == (flow >= 0)) | ((flow >= 0) != (path >= 0))
    if wrong.any():
        checks.fault(
            f"events[{int(np.argmax(wrong))}]",
            _("it is neither a capacity nor a reroute."),
            _("a channel and its capacity, or a flow and its path"),
        )
    by_time = np.argsort(time_s, kind="stable")
    return FabricEvents(
        time_s[by_time], channel[by_time], capacity[by_time], flow[by_time], path[by_time]
    )


def new_run(checked: Checked, n_bins: int) -> Run:
    """Return the state before the first event."""
    is_reroute = checked.events.flow >= 0
    rerouted = checked.events.flow[is_reroute]
    # A reroute is one more flow here: of the same weight and cap on another route.
    route = np.concatenate([checked.path, checked.events.path[is_reroute]])
    weight = np.concatenate([checked.weight, checked.weight[rerouted]])
    cap = np.concatenate([checked.cap, checked.cap[rerouted]])
    largest = _largest_capacity(checked)
    binding = binding_caps(pick(checked.routes, route), largest, cap)
    cap[~binding] = np.inf
    route = merge_routes(checked.routes)[route]
    bundle = np.empty(route.size, np.int32)
    leader = merge(route, weight.view(np.int64), cap.view(np.int64), bundle)
    routes = pick(checked.routes, route[leader])
    cap_channel = np.empty(leader.size, np.int32)
    if binding.any():
        routes = add_caps(routes, cap[leader] < np.inf, checked.capacity.size, cap_channel)
    else:
        cap_channel[:] = -1
    n_flows = checked.size_bytes.size
    event_bundle = np.full(is_reroute.size, -1, np.int32)
    event_bundle[is_reroute] = bundle[n_flows:]
    flows, order, dependencies = _flows(checked, bundle[:n_flows])
    return Run(
        solver=_solver(checked.capacity, routes, weight[leader], cap[leader], cap_channel),
        flows=flows,
        order=order.astype(np.uint32),
        first_successor=dependencies.first,
        successor=dependencies.flow.astype(np.uint32),
        changes=_changes(checked.events, event_bundle),
        starts=new_heap(n_flows if dependencies.flow.size else 0),
        ends=new_heap(leader.size),
        changed=np.empty(leader.size, np.uint32),
        clock=np.zeros(5, np.int64),
        series=_series(checked, n_bins),
    )


def _largest_capacity(checked: Checked) -> Floats:
    largest = checked.capacity.copy()
    events = checked.events
    is_capacity = events.channel >= 0
    np.maximum.at(
        largest, events.channel[is_capacity], events.capacity_gbps[is_capacity] * BYTES_PER_S
    )
    return largest


def _flows(checked: Checked, bundle: Ints) -> tuple[Records, Ints, Predecessors]:
    """Records of the flows, those without predecessors by first byte, and who waits for whom."""
    first, flow = checked.predecessors.first, checked.predecessors.flow
    n_predecessors = np.diff(first).astype(np.int32)
    first_successor, successor = successors(first, flow)
    circular = in_cycle(n_predecessors, first_successor, successor)
    if circular.any():
        raise InputError(
            Fault(
                "predecessors",
                _("{n} flows wait, directly or not, for flows that wait for each other.").format(
                    n=int(circular.sum())
                ),
                remedy=_("Flow {flow} is one of them.").format(flow=int(np.argmax(circular))),
            )
        )
    flows = records(FLOW, bundle.size)
    flows["size_bytes"] = checked.size_bytes
    flows["start_s"] = checked.start_s
    flows["latency_s"] = checked.latency_s[checked.path]
    flows["begun_s"] = flows["finish_s"] = np.nan
    flows["status"] = np.where(n_predecessors > 0, WAITING, PENDING)
    flows["bundle"] = bundle
    flows["waits_for"] = n_predecessors
    rooted = np.flatnonzero(n_predecessors == 0).astype(np.int32)
    first_byte_s = (flows["start_s"] + flows["latency_s"])[rooted]
    if (np.diff(first_byte_s) < 0).any():
        rooted = rooted[np.argsort(first_byte_s, kind="stable")]
    return flows, rooted, Predecessors(first_successor, successor)


def _changes(events: FabricEvents, bundle: Ints) -> Records:
    changes = records(CHANGE, bundle.size)
    changes["time_s"] = events.time_s
    changes["capacity"] = events.capacity_gbps * BYTES_PER_S
    changes["channel"] = events.channel
    changes["flow"] = events.flow
    changes["bundle"] = bundle
    return changes


def _solver(
    capacity: Floats, routes: Routes, weight: Floats, cap: Floats, cap_channel: Ints
) -> Solver:
    n_caps = int((cap_channel >= 0).sum())
    n_channels, n_bundles = capacity.size + n_caps, weight.size
    channels = records(CHANNEL, n_channels)
    channels["capacity"][: capacity.size] = capacity
    channels["level"] = np.inf
    n_members = np.bincount(routes.channel, minlength=n_channels)
    channels["first"] = np.cumsum(n_members) - n_members
    entries = records(ENTRY, routes.channel.size)
    entries["channel"] = routes.channel
    entries["fraction"] = routes.fraction
    bundles = records(BUNDLE, n_bundles)
    bundles["first"] = routes.first[:-1]
    bundles["end"] = routes.first[1:]
    bundles["bottleneck"] = bundles["root"] = -1
    bundles["cap_channel"] = cap_channel
    bundles["flow_weight"] = weight
    bundles["flow_cap"] = cap
    tally = np.zeros(4, np.int64)
    tally[ROUND] = 1  # 0 stands in records that no round has met
    return Solver(
        channels=channels,
        members=records(MEMBER, entries.size),
        entries=entries,
        bundles=bundles,
        heap=new_heap(n_channels),
        active=np.zeros(n_bundles + 1, np.uint32),
        touched=np.zeros(n_bundles, np.uint32),
        tally=tally,
    )


def _series(checked: Checked, n_bins: int) -> Series:
    """Bins as wide as the run must last at least, so that they widen few times."""
    n_channels = checked.capacity.size
    if n_bins == 0:
        return Series(np.ones(1), np.empty((0, n_channels)))
    routes = checked.routes
    per_path = np.bincount(checked.path, checked.size_bytes, minlength=routes.first.size - 1)
    load = np.repeat(per_path, np.diff(routes.first)) * routes.fraction
    bytes_on = np.bincount(routes.channel, load, minlength=n_channels)
    up = checked.capacity > 0
    longest_s = max((bytes_on[up] / checked.capacity[up]).max(initial=0.0), 1e-9)
    longest_s = max(longest_s, float(checked.start_s.max(initial=0.0)))
    return Series(np.array([longest_s / n_bins]), np.zeros((n_bins, n_channels)))
