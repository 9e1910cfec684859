"""A packet run in the format of Chrome's tracing, which Perfetto shows: flows, pauses, queues.

Source: "Trace Event Format" (Google, 2016). Times are microseconds; each flow is an asynchronous
event, each pause an event on the line of its port, with an arrow from its cause; queues and rates
are counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.packet_fault_words import fault_events
from gpufabric.report.packet_names import PortNames
from gpufabric.report.packet_rates import rate_gbps
from gpufabric.sim.packet import PacketProblem, PacketResult
from gpufabric.sim.packet_pauses import Ending, PauseSpans, pause_spans, root_channel

__all__ = ["packet_trace", "write_packet_trace"]

FLOWS, PAUSES, QUEUES, RATES, FAULTS = range(1, 6)  # processes of the trace
MOST_FLOWS = 50_000
"""Flows shown: the slowest."""
MOST_COUNTERS = 64
"""Ports with counters: those with the deepest queues."""
PS_PER_US = 1e6

Event = dict[str, Any]


def write_packet_trace(
    problem: PacketProblem, result: PacketResult, names: PortNames, path: Path
) -> Path:
    """Write the trace of a run; return `path`."""
    trace = packet_trace(problem, result, names)
    return write_text(path, json.dumps(trace, ensure_ascii=False, allow_nan=False) + "\n")


def packet_trace(problem: PacketProblem, result: PacketResult, names: PortNames) -> dict[str, Any]:
    """Return the trace of a run; pauses and counters as far as the run has noted them."""
    events = [*_flows(problem, result, names), *_deadlock(result, names)]
    if result.pause_log is not None:
        events += _pauses(pause_spans(result.pause_log), names)
    events += _counters(problem, result, names)
    events += fault_events(problem, result, names, FAULTS)
    used = {event["pid"] for event in events}
    words = {
        FLOWS: _("Flows"),
        PAUSES: _("Ports that stand still"),
        QUEUES: _("Queues [byte]"),
        RATES: _("Rates [Gb/s]"),
        FAULTS: _("What was made to go wrong"),
    }
    heads = [_named("process_name", pid, 0, words[pid]) for pid in sorted(used)]
    return {"traceEvents": [*heads, *events], "displayTimeUnit": "ns"}


def _named(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def _flows(problem: PacketProblem, result: PacketResult, names: PortNames) -> Iterator[Event]:
    """Give the slowest flows; one that has not come ends with the run."""
    n_flows = problem.n_flows
    start_ps = np.zeros(n_flows, np.int64) if problem.start_ps is None else problem.start_ps
    came = result.flows.delivered_ps >= 0
    end_ps = np.where(came, result.flows.delivered_ps, np.maximum(result.end_ps, start_ps))
    order = np.argsort(start_ps - end_ps, kind="stable")[:MOST_FLOWS]
    row = np.arange(n_flows) if problem.path is None else problem.path
    firsts = problem.paths.channel[problem.paths.first[:-1][row]]
    lasts = problem.paths.channel[problem.paths.first[1:][row] - 1]
    for flow in order.tolist():
        ends = (names.nics[int(firsts[flow])], names.nics[int(lasts[flow])])
        shared = {"cat": "flow", "id": flow, "pid": FLOWS, "tid": 0}
        shared["name"] = f"{flow}: {' → '.join(ends)}"
        told = {
            "size_bytes": int(problem.size_bytes[flow]),
            "is_delivered": bool(came[flow]),
            "repeats": int(result.flows.repeats[flow]),
            "cnps": int(result.flows.cnps[flow]),
        }
        yield {"ph": "b", "ts": start_ps[flow] / PS_PER_US, "args": told, **shared}
        yield {"ph": "e", "ts": end_ps[flow] / PS_PER_US, **shared}


def _pauses(spans: PauseSpans, names: PortNames) -> Iterator[Event]:
    lanes: dict[tuple[int, int], int] = {}
    for span in range(len(spans)):
        lane = int(spans.channel[span]), int(spans.traffic[span])
        if lane not in lanes:
            lanes[lane] = len(lanes)
            name = f"{names.channels[lane[0]]}, {names.traffic(lane[1])}"
            yield _named("thread_name", PAUSES, lanes[lane], name)
    for span in range(len(spans)):
        tid = lanes[int(spans.channel[span]), int(spans.traffic[span])]
        cause, at = int(spans.cause[span]), int(spans.at[span])
        told = {
            "waits_in": names.channels[at] if at >= 0 else _("not known"),
            "root": names.channels[root_channel(spans, span)],
            "level": int(spans.level[span]),
            "is_ended_by_watchdog": bool(spans.ended[span] == Ending.WATCHDOG),
        }
        yield {
            "ph": "X",
            "name": _("paused"),
            "cat": "pause",
            "pid": PAUSES,
            "tid": tid,
            "ts": spans.from_ps[span] / PS_PER_US,
            "dur": spans.paused_ps[span] / PS_PER_US,
            "args": told,
        }
        if cause >= 0:
            yield from _arrow(spans, span, cause, lanes)


def _arrow(
    spans: PauseSpans, span: int, cause: int, lanes: dict[tuple[int, int], int]
) -> Iterator[Event]:
    """Draw an arrow from the pause that is the cause to the one that it caused."""
    at_us = max(spans.from_ps[span], spans.from_ps[cause]) / PS_PER_US
    for phase, which in (("s", cause), ("f", span)):
        tid = lanes[int(spans.channel[which]), int(spans.traffic[which])]
        arrow = {"ph": phase, "name": _("causes"), "cat": "pause", "id": span, "pid": PAUSES}
        yield {**arrow, "tid": tid, "ts": at_us, **({"bp": "e"} if phase == "f" else {})}


def _deadlock(result: PacketResult, names: PortNames) -> Iterator[Event]:
    if result.deadlock is not None:
        circle = [names.channels[queue.channel] for queue in result.deadlock.cycle]
        yield {
            "ph": "i",
            "s": "g",
            "name": _("deadlock"),
            "cat": "pause",
            "pid": PAUSES,
            "tid": 0,
            "ts": result.deadlock.since_ps / PS_PER_US,
            "args": {"circle": circle},
        }


def _counters(problem: PacketProblem, result: PacketResult, names: PortNames) -> Iterator[Event]:
    series = result.series
    if series is None:
        return
    deepest = series.deepest_bytes.max(axis=(1, 2))
    shown = np.argsort(-deepest, kind="stable")[:MOST_COUNTERS]
    time_us = np.arange(series.n_bins) * series.bin_ps / PS_PER_US
    for row in shown.tolist():
        channel = int(series.channels[row])
        gbps = rate_gbps(problem, series, row)
        for pid, values in ((QUEUES, series.deepest_bytes[row].max(axis=0)), (RATES, gbps)):
            changed = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
            for at in changed.tolist():
                yield {
                    "ph": "C",
                    "name": names.channels[channel],
                    "pid": pid,
                    "tid": 0,
                    "ts": float(time_us[at]),
                    "args": {"value": round(float(values[at]), 3)},
                }
