"""RDMA READ: a request goes to where the data are, and they come back without ACKs.

The requester keeps the time-out and asks again from the first packet that it misses: with the same
request, which has the kind of a NAK.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import KIND_BITS, NOW, TIMEOUT, push, take_packet
from gpufabric.kernels.packet_message import post
from gpufabric.kernels.packet_pacing import FAILED
from gpufabric.kernels.packet_port import NAK
from gpufabric.kernels.packet_receiver import answer
from gpufabric.kernels.packet_sender import list_flow, time_out
from gpufabric.kernels.packet_settings import is_read
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["begin", "look_at_progress"]


@kernel_part
def begin(run: PacketRun, number: int) -> None:
    """Start a message: stand in the row of the NIC, or ask for the data.

    Reference: tests/reference/packet_ends.py, Engine.begin.
    """
    if run.rules[0].has_after:
        run.after[number].started_ps = run.clock[NOW]
    if run.rules[0].has_messages:
        post(run, number)
        number = int(np.int64(run.messages[number].queue_pair))
    if not is_read(run, number):
        list_flow(run, number)
        return
    run.flows[number].progress_ps = run.clock[NOW]
    ask(run, number)


@kernel_part
def ask(run: PacketRun, number: int) -> None:
    """Ask for a message from the first packet that is missing, and wait for progress.

    Reference: tests/reference/packet_ends.py, Engine.ask.
    """
    rules, now = run.rules[0], run.clock[NOW]
    index = take_packet(run)
    run.packets[index].marked = 0
    answer(run, index, number, NAK)
    if rules.timeout_ps > 0:
        push(run, rules.lane_timeout, now + rules.timeout_ps, number << KIND_BITS | TIMEOUT)


@kernel_part
def look_at_progress(run: PacketRun, number: int) -> None:
    """See whether a flow has made progress; the requester of a READ asks again.

    Reference: tests/reference/packet_ends.py, Engine.time_out.
    """
    flow, rules, now = run.flows[number], run.rules[0], run.clock[NOW]
    if not is_read(run, number):
        time_out(run, number)
    elif flow.expected < flow.n_packets:
        if flow.progress_ps + rules.timeout_ps > now:
            push(run, rules.lane_timeout, now + rules.timeout_ps, number << KIND_BITS | TIMEOUT)
            return
        flow.n_timeouts += 1
        flow.n_retries += 1
        if flow.n_retries > rules.retry_count:
            flow.state = FAILED
            return
        flow.progress_ps = now
        flow.is_nak_sent = 0
        ask(run, number)
