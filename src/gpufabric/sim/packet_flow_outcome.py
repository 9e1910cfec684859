"""What became of each message of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_pacing import FAILED
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["FlowOutcome", "flow_outcome"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class FlowOutcome:
    """What became of each flow: a message, on a queue pair of its own or with others.

    Of a queue pair with several messages, what is counted stands at its first one, 0 at the others.

    Parameters
    ----------
    delivered_ps
        int64[n_flows]: last byte at the receiver [ps]; -1 if it has not come.
    started_ps
        int64[n_flows]: its start [ps]; -1 if it still waits for others.
    acked_ps
        int64[n_flows]: its ACK at the sender [ps]; -1 if it has not come.
    fct_ps
        int64[n_flows]: from start to last byte at the receiver [ps]; -1 if it has not come.
    has_failed
        bool[n_flows]: the retry count was used up: the queue pair is in error.
    acked_packets
        int64[n_flows]: packets that the sender knows to have arrived.
    repeats, timeouts, cnps, out_of_order
        int64[n_flows]: packets sent again; retry time-outs; CNPs taken in; packets thrown away
        because one before them was missing.
    rate_gbps
        float64[n_flows]: allowed by rate control at the end [Gb/s].
    """

    delivered_ps: Longs
    acked_ps: Longs
    started_ps: Longs
    fct_ps: Longs
    has_failed: NDArray[np.bool_]
    acked_packets: Longs
    repeats: Longs
    timeouts: Longs
    cnps: Longs
    out_of_order: Longs
    rate_gbps: NDArray[np.float64]


def flow_outcome(run: PacketRun, start_ps: Longs, queue_pair: Ints) -> FlowOutcome:
    """Return what became of each flow.

    Parameters
    ----------
    run
        The run.
    start_ps
        int64[n_flows]: when each flow was to start [ps].
    queue_pair
        int32[n_flows]: queue pair of each.
    """
    pairs, messages = run.flows, run.messages
    started_ps = run.after["started_ps"].copy() if run.after.size else start_ps
    ends, acked = pairs, pairs["acked"].astype(np.int64)
    is_leader = is_alone = np.ones(queue_pair.size, np.bool_)
    if messages.size:
        ends = messages
        acked = np.clip(acked[queue_pair], messages["first"], messages["end"]) - messages["first"]
        is_leader = messages["before"] < 0
        is_alone = is_leader & (messages["behind"] < 0)
    delivered_ps, acked_ps = ends["delivered_ps"].copy(), ends["acked_ps"].copy()

    def counted(name: str) -> Longs:
        return np.where(is_leader, pairs[name][queue_pair], 0).astype(np.int64)

    return FlowOutcome(
        delivered_ps=delivered_ps,
        acked_ps=acked_ps,
        started_ps=started_ps,
        fct_ps=np.where(delivered_ps >= 0, delivered_ps - started_ps, -1),
        has_failed=(pairs["state"] == FAILED)[queue_pair] & (is_alone | (acked_ps < 0)),
        acked_packets=acked,
        repeats=counted("n_repeats"),
        timeouts=counted("n_timeouts"),
        cnps=counted("n_cnps"),
        out_of_order=counted("n_out_of_order"),
        rate_gbps=pairs["rate_gbps"][queue_pair],
    )
