"""What was made to go wrong in a packet run: a table of its page, and lines of its trace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from gpufabric.core.text import _
from gpufabric.report.packet_names import PortNames
from gpufabric.report.traffic_table import time_words
from gpufabric.sim.named_faults import KINDS
from gpufabric.sim.packet import PacketProblem, PacketResult
from gpufabric.sim.packet_faults import PacketFault

__all__ = ["fault_events", "faults_table"]

MOST_ROWS = 20
OWN = ("channel", "start_us", "end_us")
PS_PER_US = 1e6

_KIND_OF = {kind: name for name, kind in KINDS.items()}


def faults_table(problem: PacketProblem, names: PortNames) -> tuple[list[str], list[list[str]]]:
    """Return the faults in the order of their beginnings; of many only the first."""
    heads = [_("Fault"), _("Where"), _("From"), _("Until"), _("How")]
    faults = sorted(problem.faults, key=lambda fault: fault.start_us)
    rows = [
        [
            _KIND_OF[type(fault)],
            names.channels[fault.channel],
            time_words(fault.start_us * 1e-6),
            "–" if math.isinf(fault.end_us) else time_words(fault.end_us * 1e-6),
            ", ".join(f"{name} {value:g}" for name, value in _values(fault).items()),
        ]
        for fault in faults[:MOST_ROWS]
    ]
    if len(faults) > MOST_ROWS:
        rows.append([_("{n} more").format(n=len(faults) - MOST_ROWS), "", "", "", ""])
    return heads, rows


def fault_events(
    problem: PacketProblem, result: PacketResult, names: PortNames, pid: int
) -> Iterator[dict[str, Any]]:
    """Yield an event of Chrome's tracing for each fault that begins before the run ends."""
    end_us = result.end_ps / PS_PER_US
    for number, fault in enumerate(problem.faults):
        if fault.start_us > end_us:
            continue
        yield {
            "ph": "X",
            "name": f"{_KIND_OF[type(fault)]}: {names.channels[fault.channel]}",
            "cat": "fault",
            "pid": pid,
            "tid": number,
            "ts": fault.start_us,
            "dur": min(fault.end_us, end_us) - fault.start_us,
            "args": _values(fault),
        }


def _values(fault: PacketFault) -> dict[str, float]:
    """Return what the fault says beside its place and time."""
    values = {one.name: getattr(fault, one.name) for one in fields(fault) if one.name not in OWN}
    return {name: value for name, value in values.items() if not math.isinf(value)}
