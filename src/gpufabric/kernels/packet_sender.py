"""The sending side of a queue pair: which flow of a NIC sends next, ACKs, go-back-N, time-outs.

Flows of one class at one port take turns, a packet each. A flow that is paced waits apart and comes
back at the end of the row when its time has come; so does one whose window was full.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_after import release
from gpufabric.kernels.packet_control_structs import CCT, DCQCN, RCCC
from gpufabric.kernels.packet_events import (
    KIND_BITS,
    NOW,
    TIMEOUT,
    push,
    take_packet,
)
from gpufabric.kernels.packet_look import look_at_waiting
from gpufabric.kernels.packet_message import acknowledge_messages, seek_message
from gpufabric.kernels.packet_pacing import (
    FAILED,
    LISTED,
    PACED,
    UNLISTED,
    gap_ps,
    pace,
    sleep,
)
from gpufabric.kernels.packet_port import DATA, NONE
from gpufabric.kernels.packet_rate import count_bytes
from gpufabric.kernels.packet_selective import find_lost, forget_acked
from gpufabric.kernels.packet_settings import is_read
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.packet_tape import note_made

__all__ = [
    "acknowledge",
    "list_flow",
    "next_of_flows",
    "reject",
    "time_out",
    "wake",
]


@kernel_part
def has_work(run: PacketRun, number: int) -> bool:
    """Tell whether a flow has a packet to send that its window lets go.

    Reference: tests/reference/packet.py, Sender.has_work.
    """
    flow, most_apart = run.flows[number], run.rules[0].most_apart
    if most_apart > 0 and not is_read(run, number):
        if find_lost(run, number):
            return True
        if flow.next - flow.acked >= most_apart:
            return False
    if flow.next >= flow.limit:
        return False
    limit = int(flow.window)
    if limit == 0:
        return True
    if run.controls[flow.control].window_follows_rate:
        limit = max(1, int(limit * flow.rate_gbps / flow.line_gbps))
    return (flow.next - flow.acked) * run.rules[0].mtu < limit


@kernel_part
def list_flow(run: PacketRun, number: int) -> None:
    """Put a flow at the end of its row, if it stands nowhere and has something to send.

    Reference: tests/reference/packet.py, Engine.list_flow.
    """
    flow = run.flows[number]
    if flow.state != UNLISTED or not has_work(run, number):
        return
    append(run, number)
    look_at_waiting(run, np.int64(run.routes[flow.first_hop]))


@kernel_part
def append(run: PacketRun, number: int) -> None:
    """Put a flow at the end of its row.

    Reference: tests/reference/packet.py, Engine.list_flow.
    """
    flow = run.flows[number]
    port = np.int64(run.routes[flow.first_hop])
    queue = run.queues[port * (run.rules[0].n_classes + 1) + flow.traffic]
    flow.state = LISTED
    flow.following = NONE
    if queue.first_flow == NONE:
        queue.first_flow = number
        run.ports[port].ready |= np.int64(1) << flow.traffic
    else:
        run.flows[queue.last_flow].following = number
    queue.last_flow = number


@kernel_part
def next_of_flows(run: PacketRun, port: int, traffic: int) -> int:
    """Take the first flow of a row and make its next packet; -1 if it may not send now.

    Reference: tests/reference/packet.py, Engine.next_of_flows.
    """
    queue = run.queues[port * (run.rules[0].n_classes + 1) + traffic]
    number = np.int64(queue.first_flow)
    flow = run.flows[number]
    queue.first_flow = flow.following
    if queue.first_flow == NONE:
        run.ports[port].ready &= ~(np.int64(1) << traffic)
    if flow.state == FAILED:
        return NONE
    flow.state = UNLISTED
    if not has_work(run, number):
        return NONE
    if flow.next_ps > run.clock[NOW]:
        sleep(run, number)
        return NONE
    index = make_packet(run, number)
    if has_work(run, number):
        append(run, number)
    return index


@kernel_part
def make_packet(run: PacketRun, number: int) -> int:
    """Make the next packet of a flow and set the time of the one after it.

    Reference: tests/reference/packet.py, Engine.make_packet.
    """
    flow, rules, now = run.flows[number], run.rules[0], run.clock[NOW]
    at = take_number(run, number)
    if at < flow.first or at >= flow.end:
        seek_message(run, number, at)
    size = flow.size_middle
    if at == flow.first:
        size = flow.size_first
    elif at == flow.end - 1:
        size = flow.size_last
    serial = run.serial[size]
    index = take_packet(run)
    packet = run.packets[index]
    packet.flow = number
    packet.hop = flow.first_hop
    packet.channel = NONE
    packet.number = at
    packet.n_bytes = serial.n_bytes
    packet.length = size
    packet.kind = DATA
    packet.traffic = flow.traffic
    packet.lane = flow.traffic
    packet.marked = 0
    packet.is_repeat = 1 if at < flow.top else 0
    flow.n_repeats += packet.is_repeat
    flow.top = max(flow.top, flow.next)
    note_made(run, index)
    count = run.counts[DATA]
    count.sent += 1
    count.sent_bytes += serial.n_bytes
    kind = run.controls[flow.control].kind
    if run.rules[0].has_other_controls and kind == CCT:
        flow.next_ps = now + gap_ps(run, np.int64(serial.wire_bytes), np.float64(flow.rate_gbps))
    elif kind == DCQCN:
        flow.next_ps = now + gap_ps(run, np.int64(serial.wire_bytes), np.float64(flow.rate_gbps))
        count_bytes(run, flow, np.int64(serial.n_bytes))
    elif run.rules[0].has_other_controls and kind > DCQCN:
        pace(run, number, index, np.int64(serial.wire_bytes))
    if rules.timeout_ps > 0 and flow.has_timer == 0 and not is_read(run, number):
        flow.has_timer = 1
        flow.progress_ps = now
        push(run, rules.lane_timeout, now + rules.timeout_ps, number << KIND_BITS | TIMEOUT)
    return index


@kernel_part
def take_number(run: PacketRun, number: int) -> int:
    """Number of the packet that a flow sends next: a lost one, or the one after all others.

    Reference: tests/reference/packet_ends.py, Engine.make_packet.
    """
    flow = run.flows[number]
    if run.rules[0].most_apart > 0 and flow.again < flow.highest - run.rules[0].reorder:
        at = int(flow.again)
        flow.again += 1
    else:
        at = int(flow.next)
        flow.next += 1
    return at


@kernel_part
def acknowledge(run: PacketRun, number: int, expected: int) -> None:
    """Take in that all packets before `expected` have arrived.

    Reference: tests/reference/packet.py, Engine.acknowledge.
    """
    flow = run.flows[number]
    if expected > flow.acked:
        if run.rules[0].most_apart > 0:
            forget_acked(run, number, expected)
        flow.acked = expected
        flow.next = max(flow.next, flow.acked)
        flow.progress_ps = run.clock[NOW]
        flow.n_retries = 0
        if flow.acked >= flow.asked_end and flow.state != FAILED:
            flow.acked_ps = run.clock[NOW]
            if run.rules[0].has_messages:
                acknowledge_messages(run, number)
            elif run.rules[0].has_after and run.rules[0].until_acked:
                release(run, number)
    list_flow(run, number)


@kernel_part
def reject(run: PacketRun, number: int, expected: int) -> None:
    """Go back to the packet that the receiver misses.

    Reference: tests/reference/packet.py, Engine.reject.
    """
    flow = run.flows[number]
    if expected >= flow.acked and flow.next > expected:
        flow.next = expected
    acknowledge(run, number, expected)


@kernel_part
def time_out(run: PacketRun, number: int) -> None:
    """See whether a flow has made progress; send again from the first packet not acknowledged.

    Reference: tests/reference/packet.py, Engine.time_out.
    """
    flow, rules, now = run.flows[number], run.rules[0], run.clock[NOW]
    flow.has_timer = 0
    is_begging = flow.acked == flow.top and is_out_of_credit(run, number)
    if flow.state == FAILED or (flow.acked == flow.top and not is_begging):
        return
    if flow.progress_ps + rules.timeout_ps <= now:
        flow.n_timeouts += 1
        flow.n_retries += 1
        if flow.n_retries > rules.retry_count:
            flow.state = FAILED
            return
        if rules.most_apart > 0:
            flow.again = flow.acked
            flow.highest = flow.top + rules.reorder
        else:
            flow.next = flow.acked
        flow.limit += is_begging
        flow.progress_ps = now
    flow.has_timer = 1
    push(run, rules.lane_timeout, now + rules.timeout_ps, number << KIND_BITS | TIMEOUT)
    list_flow(run, number)


@kernel_part
def is_out_of_credit(run: PacketRun, number: int) -> bool:
    """Tell whether a flow has packets to send that its receiver has granted no credit for.

    Reference: tests/reference/packet_ends.py, Engine.time_out.
    """
    flow = run.flows[number]
    return (
        run.rules[0].has_other_controls
        and run.controls[flow.control].kind == RCCC
        and flow.limit < flow.posted
    )


@kernel_part
def wake(run: PacketRun, number: int) -> None:
    """Let a paced flow stand at the end of its row again.

    Reference: tests/reference/packet.py, Engine.wake.
    """
    flow = run.flows[number]
    if flow.state != PACED or flow.wake_ps != run.clock[NOW]:
        return
    if flow.next_ps > run.clock[NOW]:
        sleep(run, number)
        return
    flow.state = UNLISTED
    list_flow(run, number)
