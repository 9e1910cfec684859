"""What a port does with a class, looked up each time in classes and overrides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from gpufabric.sim.packet_config import ClassKind, Ecn, PacketConfig
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.packet_switch_config import PortOverride


class Settings:
    """Answers for an input (a channel) or an output (a port) and a class."""

    def __init__(
        self, wires: Wires, config: PacketConfig, headroom: Callable[[int, int], int]
    ) -> None:
        self.config = config
        self.gbps = [float(x) for x in wires.gbps]
        self.delay = [int(x) for x in wires.delay_ps]
        self.tail = [int(x) for x in wires.tail]
        self.reverse = [int(x) for x in wires.reverse]
        self.headroom_for = headroom

    def overrides(self, port: int, traffic: int) -> Iterator[PortOverride]:
        for one in self.config.overrides:
            everywhere = not one.switches and not one.ports
            here = everywhere or port in one.ports or self.tail[port] in one.switches
            if here and (not one.classes or traffic in one.classes):
                yield one

    def last(self, port: int, traffic: int, name: str, otherwise: Any) -> Any:
        for one in self.overrides(port, traffic):
            if getattr(one, name) is not None:
                otherwise = getattr(one, name)
        return otherwise

    def queue(self, channel: int, traffic: int) -> int:
        return int(self.last(self.reverse[channel], traffic, "queue", traffic))

    def kind(self, channel: int, traffic: int) -> ClassKind:
        plain = self.config.classes[traffic].kind
        kind: ClassKind = self.last(self.reverse[channel], traffic, "kind", plain)
        return kind

    def headroom(self, channel: int, traffic: int) -> int:
        if self.kind(channel, traffic) is not ClassKind.LOSSLESS:
            return 0
        size = self.config.buffer.headroom_bytes
        if size is None:
            size = self.headroom_for(channel, self.delay[channel])
        for one in self.overrides(self.reverse[channel], traffic):
            if one.headroom_bytes is not None:
                size = one.headroom_bytes
            if one.headroom_cable_m is not None:
                size = self.headroom_for(channel, round(one.headroom_cable_m * 5000))
        return size

    def alpha_log2(self, channel: int, traffic: int) -> int:
        buffer, gbps = self.config.buffer, self.gbps[channel]
        own = self.config.classes[traffic].alpha_log2
        plain = buffer.alpha_log2 if own is None else own
        power = int(self.last(self.reverse[channel], traffic, "alpha_log2", plain))
        if buffer.alpha_gbps and gbps > buffer.alpha_gbps:
            power += math.floor(math.log2(gbps / buffer.alpha_gbps))
        return power

    def xoff(self, channel: int, traffic: int) -> int:
        plain = self.config.buffer.xoff_bytes
        return int(self.last(self.reverse[channel], traffic, "xoff_bytes", plain))

    def sends_pfc(self, channel: int, traffic: int) -> bool:
        return bool(self.last(self.reverse[channel], traffic, "has_pfc", otherwise=True))

    def obeys_pfc(self, port: int, traffic: int) -> bool:
        return bool(self.last(port, traffic, "has_pfc", otherwise=True))

    def has_watchdog(self, port: int, traffic: int) -> bool:
        return self.tail[port] >= 0 and bool(
            self.last(port, traffic, "has_watchdog", otherwise=True)
        )

    def ecn(self, port: int, traffic: int) -> tuple[int, int, float] | None:
        """Kmin and Kmax for the port's speed, and Pmax."""
        one = self.config.classes[traffic]
        plain = one.ecn or self.config.ecn
        is_on = one.is_marked and plain is not None
        if not self.last(port, traffic, "is_marked", is_on):
            return None
        ecn, scale = plain or Ecn(), self.gbps[port] / 100
        kmin = self.last(port, traffic, "kmin_bytes", ecn.kmin_bytes)
        kmax = self.last(port, traffic, "kmax_bytes", ecn.kmax_bytes)
        return int(kmin * scale), int(kmax * scale), self.last(port, traffic, "pmax", ecn.pmax)
