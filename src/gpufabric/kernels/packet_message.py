"""Several messages on one queue pair: their packets are numbered through, in the order of posting.

Window, rate and what was lost belong to the queue pair and go on from one message to the next. A
message whose turn has not come waits until those before it have been posted.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import seldom_part
from gpufabric.kernels.packet_after import release
from gpufabric.kernels.packet_control_structs import RCCC
from gpufabric.kernels.packet_events import NOW
from gpufabric.kernels.packet_settings import is_read
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["MESSAGE", "acknowledge_messages", "post", "seek_message", "take_messages"]

NONE = -1

MESSAGE = np.dtype(
    [
        ("queue_pair", np.int32),
        ("first", np.int32),  # number of its first packet
        ("end", np.int32),  # number after that of its last packet
        ("size_first", np.int32),  # size class of its first packet
        ("size_last", np.int32),
        ("before", np.int32),  # message before it on the queue pair, -1 for the first
        ("behind", np.int32),  # message after it, -1 for the last
        ("is_posted", np.int32),  # 1: its time has come
        ("delivered_ps", np.int64),  # last byte at the receiver [ps], -1 before
        ("acked_ps", np.int64),  # last ACK at the sender [ps], -1 before
    ],
    align=True,
)


@seldom_part
def post(run: PacketRun, number: int) -> None:
    """Let a queue pair send message `number`, and those behind it whose time has come before.

    Reference: tests/reference/packet_ends.py, Engine.post.
    """
    messages = run.messages
    messages[number].is_posted = 1
    pair = np.int64(messages[number].queue_pair)
    flow, before = run.flows[pair], run.flows[pair].posted
    while flow.posting != NONE and messages[flow.posting].is_posted:
        flow.posted = messages[flow.posting].end
        flow.posting = messages[flow.posting].behind
    flow.limit = flow.posted
    if run.controls[flow.control].kind == RCCC:
        pace = run.pacing[pair]
        if flow.next >= before:
            pace.credit = max(pace.credit, before + pace.initial)
        flow.limit = min(pace.credit, flow.posted)


@seldom_part
def seek_message(run: PacketRun, number: int, at: int) -> None:
    """Find the message that packet `at` of a queue pair belongs to.

    Reference: tests/reference/packet.py, Engine.message_of.
    """
    flow, messages = run.flows[number], run.messages
    while at >= messages[flow.cutting].end:
        flow.cutting = messages[flow.cutting].behind
    while at < messages[flow.cutting].first:
        flow.cutting = messages[flow.cutting].before
    message = messages[flow.cutting]
    flow.first, flow.end = message.first, message.end
    flow.size_first, flow.size_last = message.size_first, message.size_last


@seldom_part
def take_messages(run: PacketRun, number: int) -> None:
    """Note at the receiver which messages of a queue pair are whole now.

    Reference: tests/reference/packet_ends.py, Engine.take_in_order.
    """
    flow, messages = run.flows[number], run.messages
    while flow.taking != NONE and flow.expected >= messages[flow.taking].end:
        message = np.int64(flow.taking)
        messages[message].delivered_ps = run.clock[NOW]
        if is_read(run, number):
            messages[message].acked_ps = run.clock[NOW]
        flow.taking = messages[message].behind
        if flow.taking != NONE:
            flow.taken_end = messages[flow.taking].end
        if run.rules[0].has_after and (is_read(run, number) or run.rules[0].until_acked == 0):
            release(run, message)


@seldom_part
def acknowledge_messages(run: PacketRun, number: int) -> None:
    """Note at the sender which messages of a queue pair have arrived.

    Reference: tests/reference/packet_ends.py, Engine.acknowledge.
    """
    flow, messages = run.flows[number], run.messages
    while flow.asking != NONE and flow.acked >= messages[flow.asking].end:
        message = np.int64(flow.asking)
        messages[message].acked_ps = run.clock[NOW]
        flow.asking = messages[message].behind
        if flow.asking != NONE:
            flow.asked_end = messages[flow.asking].end
        if run.rules[0].has_after and run.rules[0].until_acked:
            release(run, message)
