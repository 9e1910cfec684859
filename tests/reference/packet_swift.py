"""Swift from algorithms 1 and 2 of Kumar et al., SIGCOMM 2020."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufabric.sim.packet_control import Swift


@dataclass(eq=False)
class SwiftSender:
    """State of a sender; the window in packets, times in ps."""

    swift: Swift
    base: int
    n_switches: int
    most: float
    window: float
    cut_ps: int = -(2**61)
    wait_ps: int = 0

    def take(self, now: int, trip: int, n_acked: int, *, missing: bool) -> None:
        swift = self.swift
        target = self.base * swift.target_trips + round(swift.hop_us * 1e6) * self.n_switches
        least, most = (
            1 / math.sqrt(swift.scale_most_window),
            1 / math.sqrt(swift.scale_least_window),
        )
        alpha = swift.scale_us * 1e6 / (most - least)
        wider = alpha / math.sqrt(self.window) - alpha * least
        target += min(max(wider, 0.0), swift.scale_us * 1e6)
        may_cut = now - self.cut_ps >= trip
        factor = 1 - swift.most_cut
        if not missing and trip < target:
            self.window += swift.additive_packets * n_acked / max(1.0, self.window)
        elif may_cut:
            if not missing:
                factor = max(1 - swift.beta * ((trip - target) / trip), factor)
            self.window *= factor
            self.cut_ps = now
        self.window = min(max(self.window, swift.least_window), self.most)
        self.wait_ps = int(trip / self.window) if self.window < 1 else 0
