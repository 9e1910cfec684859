"""The receiving side of a queue pair: packets in order, ACK, NAK and CNP.

The packet that has arrived becomes the ACK or NAK that answers it. Packets after a missing one are
thrown away (go-back-N); one NAK is sent for each gap.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_after import release
from gpufabric.kernels.packet_control_structs import HPCC, RCCC, SWIFT
from gpufabric.kernels.packet_demand import learn_demand, take_credit
from gpufabric.kernels.packet_events import NOW, give_back, take_packet
from gpufabric.kernels.packet_hpcc import take_telemetry
from gpufabric.kernels.packet_message import take_messages
from gpufabric.kernels.packet_port import (
    ACK,
    CNP,
    DATA,
    NAK,
    NONE,
    SIZE_CNP,
    enqueue,
)
from gpufabric.kernels.packet_rate import take_cnp
from gpufabric.kernels.packet_selective import keep_early, note_arrived, take_kept
from gpufabric.kernels.packet_sender import acknowledge, reject
from gpufabric.kernels.packet_settings import is_read
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.packet_swift import take_delay
from gpufabric.kernels.packet_tape import note_latency

__all__ = ["receive"]

SILENT = -1


@kernel_part
def receive(run: PacketRun, index: int) -> None:
    """Take in a packet at a NIC: data at the receiver, the rest at the sender.

    Reference: tests/reference/packet.py, Engine.receive.
    """
    packet = run.packets[index]
    count = run.counts[packet.kind]
    count.received += 1
    count.received_bytes += packet.n_bytes
    if packet.kind == DATA:
        note_latency(run, index)
        receive_data(run, index)
        return
    number, expected, kind = int(packet.flow), int(packet.number), packet.kind
    marked = packet.marked
    give_back(run, index)
    if kind == CNP or marked:
        take_cnp(run, number)
    if run.rules[0].has_other_controls:
        take_other(run, index, number, expected, kind)
    if kind == ACK:
        acknowledge(run, number, expected)
    elif kind == NAK:
        if run.rules[0].most_apart > 0 and not is_read(run, number):
            note_arrived(run, number, np.int64(run.notes[index].sacked))
            acknowledge(run, number, expected)
        else:
            reject(run, number, expected)


@kernel_part
def take_other(run: PacketRun, index: int, number: int, expected: int, kind: int) -> None:
    """Let a control other than DCQCN learn from a packet that came back.

    Reference: tests/reference/packet.py, Engine.receive.
    """
    control_kind = run.controls[run.flows[number].control].kind
    if control_kind == HPCC and kind != CNP:
        take_telemetry(run, number, index, expected)
    elif control_kind == SWIFT and kind != CNP:
        n_acked = -1 if kind == NAK else max(0, expected - run.flows[number].acked)
        take_delay(run, number, index, n_acked)
    elif control_kind == RCCC and kind != CNP:
        take_credit(run, number, index)


@kernel_part
def receive_data(run: PacketRun, index: int) -> None:
    """Take in a data packet and answer it.

    Reference: tests/reference/packet.py, Engine.receive_data.
    """
    packet, rules = run.packets[index], run.rules[0]
    flow = run.flows[packet.flow]
    is_echo = packet.marked and rules.cnp_in_ack and not is_read(run, int(packet.flow))
    if packet.marked and not is_echo:
        answer_mark(run, int(packet.flow))
    if run.rules[0].has_granters:
        learn_demand(run, index)
    kind = SILENT
    if packet.number == flow.expected:
        kind = take_in_order(run, int(packet.flow), is_echo)
    elif packet.number > flow.expected:
        kind = take_early(run, index)
    elif rules.acks_duplicates and not is_read(run, int(packet.flow)):
        kind = ACK
    if kind == SILENT:
        give_back(run, index)
    else:
        number = int(packet.flow)
        packet.marked = 1 if is_echo else 0
        answer(run, index, number, kind)


@kernel_part
def take_early(run: PacketRun, index: int) -> int:
    """Take in a packet that follows a missing one; return the kind of the answer.

    Reference: tests/reference/packet_ends.py, Engine.receive_data.
    """
    packet = run.packets[index]
    number = np.int64(packet.flow)
    flow = run.flows[number]
    flow.n_out_of_order += 1
    if run.rules[0].most_apart > 0 and not is_read(run, number):
        if not keep_early(run, number, np.int64(packet.number)):
            return SILENT
        run.notes[index].sacked = packet.number
        return NAK
    if flow.is_nak_sent:
        return SILENT
    flow.is_nak_sent = 1
    return NAK


@kernel_part
def answer_mark(run: PacketRun, number: int) -> None:
    """Send a CNP unless the last one of the flow has just been sent.

    Reference: tests/reference/packet.py, Engine.receive_data.
    """
    flow, now = run.flows[number], run.clock[NOW]
    control = run.controls[flow.control]
    if control.sends_cnps and now - flow.last_cnp_ps >= control.cnp_gap_ps:
        flow.last_cnp_ps = now
        answer(run, take_packet(run), number, CNP)


@kernel_part
def take_in_order(run: PacketRun, number: int, must_answer: bool) -> int:  # noqa: FBT001
    """Take in the packet that was expected; return the kind of the answer.

    Reference: tests/reference/packet.py, Engine.receive_data.
    """
    flow = run.flows[number]
    flow.expected += 1
    flow.is_nak_sent = 0
    if run.rules[0].most_apart > 0 and not is_read(run, number):
        take_kept(run, number)
    is_last = flow.expected >= flow.taken_end
    if is_last:
        flow.delivered_ps = run.clock[NOW]
        if run.rules[0].has_messages:
            take_messages(run, number)
    if is_read(run, number):
        flow.progress_ps = run.clock[NOW]
        flow.n_retries = 0
        if is_last:
            flow.acked = flow.n_packets
            flow.acked_ps = run.clock[NOW]
    is_over = is_last and run.rules[0].has_messages == 0
    if (
        is_over
        and run.rules[0].has_after
        and (is_read(run, number) or run.rules[0].until_acked == 0)
    ):
        release(run, number)
    if is_read(run, number):
        return SILENT
    if is_last or must_answer or flow.expected % run.rules[0].ack_every == 0:
        return ACK
    return SILENT


@kernel_part
def answer(run: PacketRun, index: int, number: int, kind: int) -> None:
    """Make a packet an ACK, NAK or CNP of a flow and let it wait at the receiver's port.

    Reference: tests/reference/packet.py, Engine.answer.
    """
    packet, rules, flow = run.packets[index], run.rules[0], run.flows[number]
    size = SIZE_CNP if kind == CNP else int(flow.size_ack)
    traffic = rules.cnp_class if kind == CNP else rules.ack_class
    if traffic < 0:
        traffic = np.int64(flow.traffic)
    packet.flow = number
    packet.hop = flow.first_back
    packet.channel = NONE
    packet.number = flow.expected
    packet.length = size
    packet.kind = kind
    packet.n_bytes = run.serial[size].n_bytes
    packet.traffic = traffic
    packet.lane = traffic
    packet.is_repeat = 0
    if kind == CNP:
        packet.marked = 0
    elif run.rules[0].has_granters:
        run.notes[index].credit = run.pacing[number].granted
    count = run.counts[kind]
    count.sent += 1
    count.sent_bytes += packet.n_bytes
    enqueue(run, int(run.routes[flow.first_back]), traffic, index)
