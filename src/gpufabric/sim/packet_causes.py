"""Where the pauses of a run come from, its deadlock and its ledger, as JSON carries them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpufabric.sim.packet_deadlock import Deadlock
from gpufabric.sim.packet_ledger import KINDS, Ledger
from gpufabric.sim.packet_pauses import PauseEdge, PauseRoot, pause_edges, pause_roots, pause_spans
from gpufabric.sim.packet_recording import PauseLog

__all__ = ["deadlock_json", "ledger_json", "pause_tree_json"]

PS_PER_US = 1e6
MOST_ROOTS = 20
MOST_EDGES = 200

Name = Callable[[int], str]


def ledger_json(ledger: Ledger) -> dict[str, dict[str, int]]:
    """Return packets and bytes by what became of them, and by kind."""
    parts = ("sent", "received", "dropped", "in_flight")
    return {
        part + unit: dict(zip(KINDS, getattr(ledger, part + unit).tolist(), strict=True))
        for unit in ("", "_bytes")
        for part in parts
    }


def deadlock_json(deadlock: Deadlock | None, name: Name) -> dict[str, Any] | None:
    """Return the circle hop by hop, each queue waiting for the next; None without a deadlock."""
    if deadlock is None:
        return None
    return {
        "since_us": deadlock.since_ps / PS_PER_US,
        "found_us": deadlock.found_ps / PS_PER_US,
        "stuck_queues": len(deadlock.stuck),
        "cycle": [
            {
                "channel": name(queue.channel),
                "class": queue.traffic,
                "queued_bytes": queue.queued_bytes,
                "buffer_bytes": queue.buffer_bytes,
                "since_us": queue.since_ps / PS_PER_US,
            }
            for queue in deadlock.cycle
        ],
    }


def pause_tree_json(log: PauseLog | None, name: Name) -> dict[str, Any] | None:
    """Return roots and who paused whom, the longest first; None where nothing was noted."""
    if log is None:
        return None
    spans = pause_spans(log)
    roots, edges = pause_roots(spans), pause_edges(spans)
    total_ps = sum(root.paused_ps for root in roots)
    return {
        "roots": [_root(root, total_ps, name) for root in roots[:MOST_ROOTS]],
        "edges": [_edge(edge, name) for edge in edges[:MOST_EDGES]],
        "n_roots": len(roots),
        "n_edges": len(edges),
        "events_not_noted": spans.n_lost,
    }


def _root(root: PauseRoot, total_ps: int, name: Name) -> dict[str, Any]:
    return {
        "channel": name(root.channel),
        "class": root.traffic,
        "is_nic": root.is_nic,
        "from_us": root.from_ps / PS_PER_US,
        "pauses": root.n_pauses,
        "paused_us": root.paused_ps / PS_PER_US,
        "share": root.paused_ps / max(total_ps, 1),
        "ports": len(root.channels),
        "levels": root.levels,
        "ended_by_watchdog": root.n_overruled,
    }


def _edge(edge: PauseEdge, name: Name) -> dict[str, Any]:
    return {
        "cause": name(edge.cause),
        "channel": name(edge.channel),
        "class": edge.traffic,
        "is_root": edge.is_root,
        "pauses": edge.n_pauses,
        "paused_us": edge.paused_ps / PS_PER_US,
    }
