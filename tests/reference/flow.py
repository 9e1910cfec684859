"""A run of flows in time, written from the definition: fair rates, to the next event, again.

Between two events every rate is constant, so the next event is known: a flow's last byte, a start
or a change of the fabric. Nothing is remembered from one event to the next but the bytes left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.reference.maxmin import Route, progressive_filling

# Two times this close are one instant: floating-point noise of the same event.
SAME_INSTANT = 1e-12


@dataclass
class Flow:
    """One transfer; rates in byte/s, times in s."""

    route: Route
    size: float
    start: float = 0.0
    weight: float = 1.0
    cap: float = math.inf
    latency: float = 0.0
    predecessors: Sequence[int] = ()
    begun: float = math.nan
    finish: float = math.nan
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.size


@dataclass
class Change:
    """At `time`, `channel` gets `capacity`, or `flow` gets `route`."""

    time: float
    channel: int = -1
    capacity: float = 0.0
    flow: int = -1
    route: Route = ()


def run(
    capacity: Sequence[float],
    flows: list[Flow],
    changes: Sequence[Change] = (),
    until: float = math.inf,
) -> list[float]:
    """Fill in `begun`, `finish` and `left` of every flow; return each channel's bytes."""
    capacity = list(capacity)
    changes = sorted(changes, key=lambda change: change.time)
    carried = [0.0] * len(capacity)
    now = 0.0
    while True:
        settle(now, capacity, flows, changes)
        moving = [flow for flow in flows if is_moving(flow)]
        rates, _ = progressive_filling(
            capacity,
            [flow.route for flow in moving],
            [flow.weight for flow in moving],
            [flow.cap for flow in moving],
        )
        later = next_instant(flows, changes, moving, rates, now)
        stop = min(later, until)
        if stop == math.inf:
            return carried
        for flow, rate in zip(moving, rates, strict=True):
            done = min(flow.left, rate * (stop - now))
            if flow.left - done <= rate * stop * SAME_INSTANT:
                done = flow.left
            flow.left -= done
            for channel, part in flow.route:
                carried[channel] += done * part
            if flow.left == 0 and later <= until:
                flow.finish = stop
        now = stop
        if later > until:
            return carried


def is_moving(flow: Flow) -> bool:
    return not math.isnan(flow.begun) and math.isnan(flow.finish)


def is_unlimited(flow: Flow) -> bool:
    return not flow.route and flow.cap == math.inf


def settle(now: float, capacity: list[float], flows: list[Flow], changes: list[Change]) -> None:
    """Do all that happens at `now`, until nothing more does."""
    while changes and changes[0].time <= now * (1 + SAME_INSTANT):
        change = changes.pop(0)
        if change.channel >= 0:
            capacity[change.channel] = change.capacity
            continue
        flow = flows[change.flow]
        flow.route = change.route
        if is_moving(flow) and is_unlimited(flow):
            flow.finish, flow.left = now, 0.0
    again = True
    while again:
        again = False
        for flow in flows:
            if math.isnan(flow.begun) and start_time(flow, flows) <= now * (1 + SAME_INSTANT):
                flow.begun = now
                if flow.size == 0 or is_unlimited(flow):
                    flow.finish, flow.left = now, 0.0
                    again = True


def start_time(flow: Flow, flows: list[Flow]) -> float:
    """When the first byte moves: not before its own time nor its predecessors' last bytes."""
    ends = [flows[p].finish for p in flow.predecessors]
    if any(math.isnan(end) for end in ends):
        return math.inf
    return max([flow.start, *ends]) + flow.latency


def next_instant(
    flows: list[Flow],
    changes: list[Change],
    moving: list[Flow],
    rates: list[float],
    now: float,
) -> float:
    times = [start_time(flow, flows) for flow in flows if math.isnan(flow.begun)]
    times += [change.time for change in changes]
    times += [now + f.left / rate for f, rate in zip(moving, rates, strict=True) if rate > 0]
    return min(times, default=math.inf)
