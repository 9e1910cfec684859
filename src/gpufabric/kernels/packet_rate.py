"""DCQCN: how a sender's rate falls with CNPs and rises again by timer and byte counter.

The rules are those of NVIDIA's adapters: alpha is renewed and the rate checked at fixed periods,
once the first CNP has come.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import inner_kernel
from gpufabric.kernels.packet_events import (
    ALPHA,
    DECREASE,
    INCREASE,
    KIND_BITS,
    NOW,
    WAKE,
    push,
    push_later,
)
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.structs import Records

__all__ = [
    "FAILED",
    "LISTED",
    "PACED",
    "UNLISTED",
    "check_rate",
    "count_bytes",
    "raise_by_timer",
    "renew_alpha",
    "take_cnp",
]

UNLISTED, LISTED, PACED, FAILED = range(4)  # states of a flow


@inner_kernel
def take_cnp(run: PacketRun, number: int) -> None:
    """Note a CNP; the first one starts the flow's timers.

    Reference: tests/reference/packet.py, Dcqcn.take_cnp.
    """
    flow, rules, now = run.flows[number], run.rules[0], run.clock[NOW]
    flow.n_cnps += 1
    if not rules.has_dcqcn or flow.acked == flow.n_packets:
        return
    flow.alpha_cnp = 1
    flow.rate_cnp = 1
    if flow.is_slowed:
        return
    flow.is_slowed = 1
    flow.alpha_cnp = 0
    flow.alpha = rules.initial_alpha
    if rules.first_gbps > 0.0:
        flow.rate_gbps = min(flow.rate_gbps, rules.first_gbps)
    flow.target_gbps = flow.rate_gbps
    code = number << KIND_BITS
    push(run, rules.lane_alpha, now + rules.alpha_ps, code | ALPHA)
    if rules.check_later_ps > 0:
        push_later(run, now + rules.decrease_ps + rules.check_later_ps, code | DECREASE)
    else:
        push(run, rules.lane_decrease, now + rules.decrease_ps, code | DECREASE)


@inner_kernel
def renew_alpha(run: PacketRun, number: int) -> None:
    """Let alpha fall, or rise where a CNP has come since the last time.

    Reference: tests/reference/packet.py, Dcqcn.renew_alpha.
    """
    flow, rules = run.flows[number], run.rules[0]
    if flow.acked == flow.n_packets:
        return
    flow.alpha = (1.0 - rules.g) * flow.alpha
    if flow.alpha_cnp:
        flow.alpha += rules.g
    flow.alpha_cnp = 0
    push(run, rules.lane_alpha, run.clock[NOW] + rules.alpha_ps, number << KIND_BITS | ALPHA)


@inner_kernel
def check_rate(run: PacketRun, number: int) -> None:
    """Lower the rate where a CNP has come since the last time.

    Reference: tests/reference/packet.py, Dcqcn.check_rate.
    """
    flow, rules, now = run.flows[number], run.rules[0], run.clock[NOW]
    if flow.acked == flow.n_packets:
        return
    code = number << KIND_BITS
    push(run, rules.lane_decrease, now + rules.decrease_ps, code | DECREASE)
    if flow.rate_cnp == 0:
        return
    if rules.clamps_target or flow.time_stage > 0 or flow.byte_stage > 0:
        flow.target_gbps = flow.rate_gbps
    factor = max(1.0 - 0.5 * flow.alpha, rules.min_factor)
    flow.rate_gbps = max(rules.min_gbps, flow.rate_gbps * factor)
    flow.rate_cnp = 0
    flow.time_stage = 0
    flow.byte_stage = 0
    flow.sent_bytes = 0
    flow.increase_ps = now + rules.increase_ps
    push(run, rules.lane_increase, now + rules.increase_ps, code | INCREASE)


@inner_kernel
def raise_by_timer(run: PacketRun, number: int) -> None:
    """Raise the rate, unless a decrease has put this increase off.

    Reference: tests/reference/packet.py, Dcqcn.raise_by_timer.
    """
    flow, rules, now = run.flows[number], run.rules[0], run.clock[NOW]
    if flow.acked == flow.n_packets or flow.increase_ps != now:
        return
    flow.increase_ps = now + rules.increase_ps
    push(run, rules.lane_increase, now + rules.increase_ps, number << KIND_BITS | INCREASE)
    before_gbps = flow.rate_gbps
    raise_rate(run, flow)
    flow.time_stage += 1
    if rules.shortens_waits and flow.state == PACED and flow.next_ps > now:
        wait_ps = np.int64((flow.next_ps - now) * (before_gbps / flow.rate_gbps))
        flow.next_ps = now + wait_ps // rules.tick_ps * rules.tick_ps
        push_later(run, np.int64(flow.next_ps), number << KIND_BITS | WAKE)


@inner_kernel
def count_bytes(run: PacketRun, flow: Records, n_bytes: int) -> None:
    """Count bytes sent and raise the rate where they are enough.

    Reference: tests/reference/packet.py, Dcqcn.count_bytes.
    """
    reset = run.rules[0].byte_reset
    if reset == 0 or flow.is_slowed == 0:
        return
    flow.sent_bytes += n_bytes
    if flow.sent_bytes >= reset:
        flow.sent_bytes = 0
        raise_rate(run, flow)
        flow.byte_stage += 1


@inner_kernel
def raise_rate(run: PacketRun, flow: Records) -> None:
    """Fast recovery, additive or hyper increase, by how many increases there were.

    Reference: tests/reference/packet.py, Dcqcn.raise_rate.
    """
    rules = run.rules[0]
    most = max(flow.time_stage, flow.byte_stage)
    least = most if rules.byte_reset == 0 else min(flow.time_stage, flow.byte_stage)
    if least > rules.threshold:
        flow.target_gbps = min(flow.line_gbps, flow.target_gbps + rules.hai_gbps)
    elif most >= rules.threshold:
        flow.target_gbps = min(flow.line_gbps, flow.target_gbps + rules.ai_gbps)
    flow.rate_gbps = 0.5 * (flow.rate_gbps + flow.target_gbps)
