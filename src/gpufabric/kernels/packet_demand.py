"""Receiver's credit: what senders have to send, who waits for credit, and credit that comes in.

See packet_grant.py.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part, seldom_part
from gpufabric.kernels.packet_control_structs import RCCC
from gpufabric.kernels.packet_events import GRANT, KIND_BITS, NOW, push_later
from gpufabric.kernels.packet_port import NONE
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["learn_demand", "plan_grant", "take_credit", "wait_for_credit"]


@kernel_part
def learn_demand(run: PacketRun, index: int) -> None:
    """Read in a data packet what there is to send; book the link for what comes without credit.

    Reference: tests/reference/packet_grant.py, Granters.learn.
    """
    number = np.int64(run.packets[index].flow)
    pace, flow = run.pacing[number], run.flows[number]
    if run.controls[flow.control].kind == RCCC and run.notes[index].credit > pace.demand:
        before = np.int64(pace.demand)
        pace.demand = run.notes[index].credit
        if pace.granted >= before:
            pace.granted = max(pace.granted, np.int32(before) + pace.initial)
            begin_granting(run, number, before)


@seldom_part
def begin_granting(run: PacketRun, number: int, before: int) -> None:
    """Book the link for the packets behind `before` that come ungranted; put a flow in the row.

    Reference: tests/reference/packet_grant.py, Granters.learn.
    """
    pace, port = run.pacing[number], np.int64(run.routes[run.flows[number].first_back])
    granter = run.granters[port]
    n_packets = np.int64(min(pace.granted, pace.demand)) - before
    granter.booked_ps = max(granter.booked_ps, run.clock[NOW]) + n_packets * pace.wait_ps
    if pace.granted < pace.demand:
        wait_for_credit(run, port, number)
        plan_grant(run, port)


@seldom_part
def wait_for_credit(run: PacketRun, port: int, number: int) -> None:
    """Put a flow at the end of the row of a receiving port.

    Reference: tests/reference/packet_grant.py, Granters.learn.
    """
    granter = run.granters[port]
    run.pacing[number].following = NONE
    if granter.first == NONE:
        granter.first = number
    else:
        run.pacing[granter.last].following = number
    granter.last = number


@seldom_part
def plan_grant(run: PacketRun, port: int) -> None:
    """Plan the next grant of a receiving port, if a flow waits and none is planned.

    Reference: tests/reference/packet_grant.py, Granters.plan.
    """
    granter = run.granters[port]
    if granter.first == NONE or granter.is_planned:
        return
    granter.is_planned = 1
    time_ps = max(granter.next_ps, granter.booked_ps - run.pacing[granter.first].base_rtt_ps)
    push_later(run, max(run.clock[NOW], time_ps), port << KIND_BITS | GRANT)


@kernel_part
def take_credit(run: PacketRun, number: int, index: int) -> None:
    """Let a flow send what an ACK or NAK, packet `index`, says is granted.

    Reference: tests/reference/packet_grant.py, Granters.take.
    """
    flow, pace = run.flows[number], run.pacing[number]
    pace.credit = max(pace.credit, run.notes[index].credit)
    flow.limit = max(flow.limit, min(pace.credit, flow.posted))
