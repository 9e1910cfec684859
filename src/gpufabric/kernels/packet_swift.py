"""Swift: the window of a flow follows the delay of each packet, held against a target.

G. Kumar et al., SIGCOMM 2020, algorithms 1 and 2: additive increase below the target, a cut in
proportion to the excess above it, once a round trip at most. A window below one packet is a wait
between packets. The target is higher for small windows, so that flows come to equal ones.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import NOW
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["take_delay"]


@kernel_part
def take_delay(run: PacketRun, number: int, index: int, n_acked: int) -> None:
    """Renew a flow's window from an ACK, packet `index`; `n_acked` below 0: a packet is missing.

    Reference: tests/reference/packet_swift.py, Swift.take.
    """
    flow, pace, now = run.flows[number], run.pacing[number], run.clock[NOW]
    control = run.controls[flow.control]
    trip_ps = now - run.notes[index].sent_ps
    target_ps = pace.base_rtt_ps * control.target + control.hop_ps * pace.n_stamps
    wider = control.scale_ps / np.sqrt(pace.load) - control.scale_less_ps
    target_ps += min(max(wider, 0.0), np.float64(control.scale_most_ps))
    may_cut = now - pace.cut_ps >= trip_ps
    if n_acked < 0:
        if may_cut:
            pace.load *= 1.0 - control.most_cut
            pace.cut_ps = now
    elif trip_ps < target_ps:
        pace.load += control.ai_gbps * n_acked / max(1.0, pace.load)
    elif may_cut:
        excess = (trip_ps - target_ps) / trip_ps
        pace.load *= max(1.0 - control.beta * excess, 1.0 - control.most_cut)
        pace.cut_ps = now
    pace.load = min(max(pace.load, control.least_window), pace.base_gbps)
    flow.window = max(1, int(pace.load)) * run.rules[0].mtu
    pace.wait_ps = np.int64(trip_ps / pace.load) if pace.load < 1.0 else 0
