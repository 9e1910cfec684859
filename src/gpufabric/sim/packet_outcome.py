"""What the packet engine counts beside completion times, by flow, by channel, and in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.packet import KINDS, PacketResult
from gpufabric.sim.packet_causes import deadlock_json, ledger_json, pause_tree_json
from gpufabric.sim.packet_fabric import QueuePairs
from gpufabric.sim.packet_problem import PacketProblem
from gpufabric.sim.profile import Profile

__all__ = ["COUNTERS", "PacketOutcome"]

Longs = NDArray[np.int64]

COUNTERS = (
    "ecn_marks",
    "cnps",
    "pauses",
    "paused_us",
    "drops",
    "repeats",
    "timeouts",
    "failed_queue_pairs",
    "out_of_order",
    "most_queued_bytes",
)
"""Numbers of a whole run; units in their names."""

PS_PER_US = 1e6


@dataclass(frozen=True, eq=False)
class PacketOutcome:
    """Counters of a run of the packet engine.

    Parameters
    ----------
    result
        What the engine gave.
    pairs
        The queue pairs that were run.
    profile
        The settings.
    problem
        What the engine was asked.
    """

    result: PacketResult
    pairs: QueuePairs
    profile: Profile
    problem: PacketProblem

    def counters(self) -> dict[str, float]:
        """Return the ``COUNTERS``."""
        flows, ports = self.result.flows, self.result.ports
        return {
            "ecn_marks": int(ports.marked.sum()),
            "cnps": int(flows.cnps.sum()),
            "pauses": int(ports.pauses.sum()),
            "paused_us": float(ports.paused_ps.sum()) / PS_PER_US,
            "drops": sum(self.result.drops.values()),
            "repeats": int(flows.repeats.sum()),
            "timeouts": int(flows.timeouts.sum()),
            "failed_queue_pairs": int(flows.has_failed.sum()),
            "out_of_order": int(flows.out_of_order.sum()),
            "most_queued_bytes": int(ports.most_queued_bytes.max(initial=0)),
        }

    def summary(self, name: Callable[[int], str]) -> dict[str, Any]:
        """Return counters, ledger, pause tree and deadlock, as JSON carries them.

        Parameters
        ----------
        name
            Gives the name of a channel.
        """
        ledger = self.result.ledger
        return {
            **self.counters(),
            "flow_control": "pfc" if self.result.credits is None else "credits",
            "drops_by_reason": dict(self.result.drops),
            "queue_pairs": self.pairs.n_own,
            "packets": dict(zip(KINDS, ledger.sent.tolist(), strict=True)),
            "packet_hops": int(self.result.hops.sum()),
            "events": self.result.n_events,
            "most_shared_bytes": int(self.result.most_shared_bytes.max(initial=0)),
            "is_balanced": ledger.is_balanced,
            "ledger": ledger_json(ledger),
            "pause_tree": pause_tree_json(self.result.pause_log, name),
            "deadlock": deadlock_json(self.result.deadlock, name),
        }

    def by_flow(self, n_flows: int) -> dict[str, Longs]:
        """Return counters of each flow: sums over its queue pairs."""
        flows = self.result.flows
        pair_flow = self.pairs.flow
        each = {
            "queue_pairs": np.ones(len(pair_flow)),
            "repeats": flows.repeats,
            "timeouts": flows.timeouts,
            "cnps": flows.cnps,
            "out_of_order": flows.out_of_order,
        }
        return {
            name: np.bincount(pair_flow, values, minlength=n_flows).astype(np.int64)
            for name, values in each.items()
        }

    def by_channel(self, n_channels: int) -> dict[str, NDArray[Any]]:
        """Return counters of each channel; 0 for those inside hosts, where no packets run."""
        ports = self.result.ports
        each: dict[str, NDArray[Any]] = {
            "packets": ports.packets,
            "marked": ports.marked,
            "pauses": ports.pauses.sum(axis=1),
            "paused_us": ports.paused_ps.sum(axis=1) / PS_PER_US,
            "dropped": ports.dropped.sum(axis=1),
            "most_queued_bytes": ports.most_queued_bytes.max(axis=1, initial=0),
        }
        return {
            name: np.concatenate([values, np.zeros(n_channels - len(values), values.dtype)])
            for name, values in each.items()
        }
