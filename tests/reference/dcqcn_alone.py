"""One flow under DCQCN whose packets are marked at random: the rate that it comes to.

The algorithm of Zhu et al., SIGCOMM 2015, section 3, and nothing else: no queue, no other flow, no
delay. It tells what the fluid model of the same paper leaves out by taking the mean of everything.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

__all__ = ["Flow", "mean_gbps"]

TIMER_US, CNP_US, G, STEPS = 55.0, 50.0, 1 / 256, 5
COUNTER_BYTES = 10_000_000


@dataclass
class Flow:
    """Rates [Gb/s] and timers [us] of a flow."""

    line_gbps: float
    additive_gbps: float
    now_us: float = 0.0
    rate_gbps: float = 0.0
    target_gbps: float = 0.0
    alpha: float = 1.0
    alpha_at_us: float = math.inf
    timer_at_us: float = math.inf
    counter_bytes: float = math.inf
    by_timer: int = 0
    by_bytes: int = 0
    cnp_us: float = -math.inf

    def cut(self) -> None:
        """Take a CNP, if the receiver may send one again."""
        if self.now_us - self.cnp_us < CNP_US:
            return
        self.cnp_us, self.target_gbps = self.now_us, self.rate_gbps
        self.rate_gbps *= 1 - self.alpha / 2
        self.alpha += G * (1 - self.alpha)
        self.alpha_at_us = self.timer_at_us = self.now_us + TIMER_US
        self.counter_bytes, self.by_timer, self.by_bytes = COUNTER_BYTES, 0, 0

    def rise(self) -> None:
        """Fast recovery, then a higher target."""
        if max(self.by_timer, self.by_bytes) > STEPS:
            self.target_gbps = min(self.line_gbps, self.target_gbps + self.additive_gbps)
        self.rate_gbps = (self.rate_gbps + self.target_gbps) / 2


def mean_gbps(mark_share: float, line_gbps: float, additive_gbps: float, wire_bytes: int) -> float:
    """Return the rate over five seconds, after one to settle [Gb/s, with all headers]."""
    draw = random.Random(1)
    flow = Flow(line_gbps, additive_gbps, rate_gbps=line_gbps, target_gbps=line_gbps)
    sent_bytes, before_bytes, settle_us, end_us = 0.0, 0.0, 1e6, 6e6
    to_mark_bytes = _to_mark(draw, mark_share) * wire_bytes
    while flow.now_us < end_us:
        per_us = flow.rate_gbps * 125
        ways_us = (
            to_mark_bytes / per_us,
            flow.counter_bytes / per_us,
            flow.timer_at_us - flow.now_us,
            flow.alpha_at_us - flow.now_us,
        )
        wait_us = max(0.0, min(ways_us))
        what = ways_us.index(min(ways_us))
        flow.now_us += wait_us
        sent_bytes += wait_us * per_us
        to_mark_bytes -= wait_us * per_us
        flow.counter_bytes -= wait_us * per_us
        if flow.now_us < settle_us:
            before_bytes = sent_bytes
        if what == 0:
            flow.cut()
            to_mark_bytes = _to_mark(draw, mark_share) * wire_bytes
        elif what == 1:
            flow.counter_bytes, flow.by_bytes = COUNTER_BYTES, flow.by_bytes + 1
            flow.rise()
        elif what == 2:
            flow.timer_at_us, flow.by_timer = flow.now_us + TIMER_US, flow.by_timer + 1
            flow.rise()
        else:
            flow.alpha_at_us, flow.alpha = flow.now_us + TIMER_US, flow.alpha * (1 - G)
    return (sent_bytes - before_bytes) / (end_us - settle_us) / 125


def _to_mark(draw: random.Random, share: float) -> int:
    """Return the number of packets up to and with the next that is marked."""
    return 1 + int(math.log(1 - draw.random()) / math.log(1 - share))
