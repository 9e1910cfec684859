"""InfiniBand's congestion control: FECN marks at switches, and a table of delays at the senders.

Each BECN moves a flow some entries down its table (CCT), the timer one entry back; an entry says
for how many packet times the flow waits after each packet.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_credit import blocks_of, has_more
from gpufabric.kernels.packet_events import ALPHA, KIND_BITS, NOW, push_later
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["lower_index", "mark_fecn", "raise_index"]


@kernel_part
def mark_fecn(run: PacketRun, number: int, traffic: int, index: int) -> None:
    """Mark a packet that begins to leave, if its port is the root of congestion and it is its turn.

    A lane without credits for another packet is a victim of congestion elsewhere and marks none.

    Reference: tests/reference/packet_cct.py, mark.
    """
    link, packet, rules = run.links[number], run.packets[index], run.rules[0]
    depth = run.queues[number * (rules.n_classes + 1) + traffic].n_bytes
    if depth <= link.fecn_bytes or packet.n_bytes < rules.fecn_least:
        return
    if not has_more(run, number, traffic, blocks_of(np.int64(packet.n_bytes))):
        return
    link.unmarked += 1
    if link.unmarked > rules.marking_rate:
        link.unmarked = 0
        packet.marked = 1
        run.aside[number].n_marked += 1


@kernel_part
def raise_index(run: PacketRun, number: int) -> None:
    """Slow a flow down on a BECN; the first one starts its timer.

    Reference: tests/reference/packet_cct.py, take_becn.
    """
    flow = run.flows[number]
    control = run.controls[flow.control]
    if flow.acked == flow.n_packets:
        return
    set_index(run, number, min(control.cct_limit, flow.cct_index + control.cct_increase))
    if flow.is_slowed == 0:
        flow.is_slowed = 1
        push_later(run, run.clock[NOW] + control.alpha_ps, number << KIND_BITS | ALPHA)


@kernel_part
def lower_index(run: PacketRun, number: int) -> None:
    """Let a flow go faster when its timer has run down.

    Reference: tests/reference/packet_cct.py, run_down.
    """
    flow = run.flows[number]
    control = run.controls[flow.control]
    flow.is_slowed = 0
    if flow.acked == flow.n_packets or flow.cct_index <= control.cct_min:
        return
    set_index(run, number, flow.cct_index - 1)
    if flow.cct_index > control.cct_min:
        flow.is_slowed = 1
        push_later(run, run.clock[NOW] + control.alpha_ps, number << KIND_BITS | ALPHA)


@kernel_part
def set_index(run: PacketRun, number: int, index: int) -> None:
    """Let a flow wait as its table says.

    Reference: tests/reference/packet_cct.py, rate.
    """
    flow = run.flows[number]
    flow.cct_index = index
    flow.rate_gbps = flow.line_gbps / (1.0 + run.cct[flow.control, index])
