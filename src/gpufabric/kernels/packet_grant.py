"""Receiver's credit: a NIC grants its senders packets, in turn, as fast as its link takes them.

In the manner of RCCC (Ultra Ethernet 1.0). A sender begins without credit for a round trip; its
packets tell what there is to send. The receiver books its link for what comes so and for each
grant, and grants a round trip before the link is free: what is granted arrives when its turn is.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import seldom_part
from gpufabric.kernels.packet_demand import plan_grant, wait_for_credit
from gpufabric.kernels.packet_events import NOW, take_packet
from gpufabric.kernels.packet_port import ACK
from gpufabric.kernels.packet_receiver import answer
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["grant"]


@seldom_part
def grant(run: PacketRun, port: int) -> None:
    """Grant the first flow of a port's row, unless its link has been booked for longer since.

    Reference: tests/reference/packet_grant.py, Granters.grant.
    """
    granter, now = run.granters[port], run.clock[NOW]
    granter.is_planned = 0
    number = np.int64(granter.first)
    flow, pace = run.flows[number], run.pacing[number]
    if granter.booked_ps - pace.base_rtt_ps <= now:
        granter.first = pace.following
        most = run.controls[flow.control].credit_packets
        n_packets = min(most, np.int64(pace.demand - pace.granted))
        pace.granted += n_packets
        granter.booked_ps = max(granter.booked_ps, now) + n_packets * pace.wait_ps
        granter.next_ps = now + n_packets * pace.wait_ps
        index = take_packet(run)
        run.packets[index].marked = 0
        answer(run, index, number, ACK)
        if pace.granted < pace.demand:
            wait_for_credit(run, port, number)
    plan_grant(run, port)
