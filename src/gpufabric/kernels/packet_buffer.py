"""A switch's shared buffer: reserve, dynamic threshold, headroom, and when PFC pauses.

A packet of a counted class is charged to the input it came by: to the input's reserve first, then
to the shared pool while the input's share stays within the threshold, then, if the class is
lossless, to the input's headroom. What fits nowhere is dropped.
"""

from __future__ import annotations

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_settings import (
    LOSSLESS,
    alpha_log2_of,
    headroom_of,
    kind_of,
    sends_pfc,
    xoff_of,
)
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["admit", "leaves_no_trace", "may_resume", "must_pause", "release"]


@kernel_part
def threshold_of(run: PacketRun, channel: int, traffic: int, free: int) -> int:
    """Most of the shared pool that one class of an input may take while so much is free [byte].

    Reference: tests/reference/packet_buffer.py, Buffer.threshold.
    """
    static = xoff_of(run, channel, traffic)
    if static > 0:
        return static
    shift = alpha_log2_of(run, channel, traffic)
    if shift >= 0:
        return free << shift
    return free >> -shift


@kernel_part
def free_of(run: PacketRun, channel: int, traffic: int) -> int:
    """What nobody has taken of the pool of an input's switch [byte].

    Reference: tests/reference/packet_buffer.py, Buffer.threshold.
    """
    switch = run.switches[run.inputs[channel * (run.rules[0].n_classes + 1) + traffic].switch]
    return int(switch.pool - switch.shared)


@kernel_part
def admit(run: PacketRun, channel: int, traffic: int, n_bytes: int) -> bool:
    """Charge a packet to its input; tell whether it fits.

    Reference: tests/reference/packet_buffer.py, Buffer.admit.
    """
    account = run.inputs[channel * (run.rules[0].n_classes + 1) + traffic]
    switch = run.switches[account.switch]
    over = account.used + n_bytes - run.rules[0].reserve
    if over <= 0:
        account.used += n_bytes
        return True
    share = min(n_bytes, over)
    limit = threshold_of(run, channel, traffic, free_of(run, channel, traffic))
    if over <= limit and share <= switch.pool - switch.shared:
        account.used += n_bytes
        switch.shared += share
        switch.most_shared = max(switch.most_shared, switch.shared)
        return True
    is_lossless = kind_of(run, channel, traffic) == LOSSLESS
    if is_lossless and account.headroom_used + n_bytes <= headroom_of(run, channel, traffic):
        account.headroom_used += n_bytes
        return True
    run.held[channel * (run.rules[0].n_classes + 1) + traffic].n_dropped += 1
    return False


@kernel_part
def leaves_no_trace(run: PacketRun, channel: int, traffic: int, n_bytes: int, kind: int) -> bool:
    """Tell whether a packet that came and went at once would change nothing but the most shared.

    Reference: tests/reference/packet_buffer.py, Buffer.admit, must_pause, release.
    """
    account = run.inputs[channel * (run.rules[0].n_classes + 1) + traffic]
    if account.is_pausing or account.headroom_used > 0:
        return False
    switch = run.switches[account.switch]
    over = max(0, account.used + n_bytes - run.rules[0].reserve)
    share = min(n_bytes, over)
    free = switch.pool - switch.shared
    limit = threshold_of(run, channel, traffic, free)
    if over > limit or share > free:
        return False
    if kind == LOSSLESS and over >= threshold_of(run, channel, traffic, free - share):
        return False
    switch.most_shared = max(switch.most_shared, switch.shared + share)
    return True


@kernel_part
def release(run: PacketRun, channel: int, traffic: int, n_bytes: int) -> None:
    """Give back what a packet took: headroom first, then the shared pool, then the reserve.

    Reference: tests/reference/packet_buffer.py, Buffer.release.
    """
    account = run.inputs[channel * (run.rules[0].n_classes + 1) + traffic]
    from_headroom = min(account.headroom_used, n_bytes)
    rest = n_bytes - from_headroom
    from_shared = min(rest, max(0, account.used - run.rules[0].reserve))
    account.headroom_used -= from_headroom
    account.used -= rest
    run.switches[account.switch].shared -= from_shared


@kernel_part
def must_pause(run: PacketRun, channel: int, traffic: int) -> bool:
    """Tell whether the input must send XOFF now.

    Reference: tests/reference/packet_buffer.py, Buffer.must_pause.
    """
    account = run.inputs[channel * (run.rules[0].n_classes + 1) + traffic]
    if account.is_pausing:
        return False
    share = max(0, account.used - run.rules[0].reserve)
    limit = threshold_of(run, channel, traffic, free_of(run, channel, traffic))
    return (account.headroom_used > 0 or share >= limit) and sends_pfc(run, channel, traffic)


@kernel_part
def may_resume(run: PacketRun, channel: int, traffic: int) -> bool:
    """Tell whether the input, which has sent XOFF, may send XON now.

    Reference: tests/reference/packet_buffer.py, Buffer.may_resume.
    """
    account = run.inputs[channel * (run.rules[0].n_classes + 1) + traffic]
    if account.is_pausing == 0 or account.headroom_used > 0:
        return False
    share = max(0, account.used - run.rules[0].reserve)
    limit = threshold_of(run, channel, traffic, free_of(run, channel, traffic))
    return share == 0 or share + run.rules[0].xon_offset <= limit
