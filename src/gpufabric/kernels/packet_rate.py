"""DCQCN: how a sender's rate falls with CNPs and rises again by timer and byte counter.

The rules are those of NVIDIA's adapters: alpha is renewed and the rate checked at fixed periods,
once the first CNP has come.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_cct import lower_index, raise_index
from gpufabric.kernels.packet_control_structs import CCT, DCQCN
from gpufabric.kernels.packet_events import (
    ALPHA,
    DECREASE,
    INCREASE,
    KIND_BITS,
    NOW,
    WAKE,
    post,
    push_later,
)
from gpufabric.kernels.packet_pacing import PACED
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.structs import Records

__all__ = [
    "check_rate",
    "count_bytes",
    "raise_by_timer",
    "renew_alpha",
    "take_cnp",
]


@kernel_part
def take_cnp(run: PacketRun, number: int) -> None:
    """Note a CNP; the first one starts the flow's timers.

    Reference: tests/reference/packet.py, Dcqcn.take_cnp.
    """
    flow, now = run.flows[number], run.clock[NOW]
    control = run.controls[flow.control]
    flow.n_cnps += 1
    if run.rules[0].has_other_controls and control.kind == CCT:
        raise_index(run, number)
    if control.kind != DCQCN or flow.acked == flow.n_packets:
        return
    flow.alpha_cnp = 1
    flow.rate_cnp = 1
    if flow.is_slowed:
        return
    flow.is_slowed = 1
    flow.alpha_cnp = 0
    flow.alpha = control.initial_alpha
    if control.first_gbps > 0.0:
        flow.rate_gbps = min(flow.rate_gbps, control.first_gbps)
    flow.target_gbps = flow.rate_gbps
    code = number << KIND_BITS
    post(run, control.lane_alpha, now + control.alpha_ps, code | ALPHA)
    if control.check_later_ps > 0:
        push_later(run, now + control.decrease_ps + control.check_later_ps, code | DECREASE)
    else:
        post(run, control.lane_decrease, now + control.decrease_ps, code | DECREASE)


@kernel_part
def renew_alpha(run: PacketRun, number: int) -> None:
    """Let alpha fall, or rise where a CNP has come since the last time.

    Reference: tests/reference/packet.py, Dcqcn.renew_alpha.
    """
    flow = run.flows[number]
    control = run.controls[flow.control]
    if run.rules[0].has_other_controls and control.kind == CCT:
        lower_index(run, number)
        return
    if flow.acked == flow.n_packets:
        return
    flow.alpha = (1.0 - control.g) * flow.alpha
    if flow.alpha_cnp:
        flow.alpha += control.g
    flow.alpha_cnp = 0
    post(run, control.lane_alpha, run.clock[NOW] + control.alpha_ps, number << KIND_BITS | ALPHA)


@kernel_part
def check_rate(run: PacketRun, number: int) -> None:
    """Lower the rate where a CNP has come since the last time.

    Reference: tests/reference/packet.py, Dcqcn.check_rate.
    """
    flow, now = run.flows[number], run.clock[NOW]
    control = run.controls[flow.control]
    if flow.acked == flow.n_packets:
        return
    code = number << KIND_BITS
    post(run, control.lane_decrease, now + control.decrease_ps, code | DECREASE)
    if flow.rate_cnp == 0:
        return
    if control.clamps_target or flow.time_stage > 0 or flow.byte_stage > 0:
        flow.target_gbps = flow.rate_gbps
    factor = max(1.0 - 0.5 * flow.alpha, control.min_factor)
    flow.rate_gbps = max(control.min_gbps, flow.rate_gbps * factor)
    flow.rate_cnp = 0
    flow.time_stage = 0
    flow.byte_stage = 0
    flow.sent_bytes = 0
    flow.increase_ps = now + control.increase_ps
    post(run, control.lane_increase, now + control.increase_ps, code | INCREASE)


@kernel_part
def raise_by_timer(run: PacketRun, number: int) -> None:
    """Raise the rate, unless a decrease has put this increase off.

    Reference: tests/reference/packet.py, Dcqcn.raise_by_timer.
    """
    flow, now = run.flows[number], run.clock[NOW]
    control = run.controls[flow.control]
    if flow.acked == flow.n_packets or flow.increase_ps != now:
        return
    flow.increase_ps = now + control.increase_ps
    post(run, control.lane_increase, now + control.increase_ps, number << KIND_BITS | INCREASE)
    before_gbps = flow.rate_gbps
    raise_rate(run, flow)
    flow.time_stage += 1
    if control.shortens_waits and flow.state == PACED and flow.next_ps > now:
        wait_ps = np.int64((flow.next_ps - now) * (before_gbps / flow.rate_gbps))
        tick_ps = run.rules[0].tick_ps
        flow.next_ps = now + wait_ps // tick_ps * tick_ps
        flow.wake_ps = flow.next_ps
        push_later(run, np.int64(flow.next_ps), number << KIND_BITS | WAKE)


@kernel_part
def count_bytes(run: PacketRun, flow: Records, n_bytes: int) -> None:
    """Count bytes sent and raise the rate where they are enough.

    Reference: tests/reference/packet.py, Dcqcn.count_bytes.
    """
    reset = run.controls[flow.control].byte_reset
    if reset == 0 or flow.is_slowed == 0:
        return
    flow.sent_bytes += n_bytes
    if flow.sent_bytes >= reset:
        flow.sent_bytes = 0
        raise_rate(run, flow)
        flow.byte_stage += 1


@kernel_part
def raise_rate(run: PacketRun, flow: Records) -> None:
    """Fast recovery, additive or hyper increase, by how many increases there were.

    Reference: tests/reference/packet.py, Dcqcn.raise_rate.
    """
    control = run.controls[flow.control]
    most = max(flow.time_stage, flow.byte_stage)
    least = most if control.byte_reset == 0 else min(flow.time_stage, flow.byte_stage)
    if least > control.threshold:
        flow.target_gbps = min(flow.line_gbps, flow.target_gbps + control.hai_gbps)
    elif most >= control.threshold:
        flow.target_gbps = min(flow.line_gbps, flow.target_gbps + control.ai_gbps)
    flow.rate_gbps = 0.5 * (flow.rate_gbps + flow.target_gbps)
