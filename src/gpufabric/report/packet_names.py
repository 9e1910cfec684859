"""What the ports, switches and NICs of a packet run are called in reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufabric.core.text import _
from gpufabric.sim.packet_problem import Wires

__all__ = ["PortNames", "plain_names"]


@dataclass(frozen=True)
class PortNames:
    """Names for the numbers of a run.

    Parameters
    ----------
    channels
        Of each channel, such as ``leaf-1 > spine-2``.
    switches
        Of each switch.
    nics
        Of the NIC at the end of each channel that has one; anything for the others.
    classes
        Of each traffic class; numbers where empty.
    """

    channels: Sequence[str]
    switches: Sequence[str]
    nics: Sequence[str]
    classes: Sequence[str] = ()

    def traffic(self, number: int) -> str:
        """Return the name of a class."""
        if number < len(self.classes):
            return self.classes[number]
        return _("class {number}").format(number=number)

    def end(self, channel: int, switch: int) -> str:
        """Return the name of an end of a channel: a switch, or its NIC where negative."""
        return self.nics[channel] if switch < 0 else self.switches[switch]


def plain_names(wires: Wires) -> PortNames:
    """Return names made of numbers: switches as they are, NICs in the order of their links."""
    n_switches = 1 + int(max(wires.tail.max(initial=-1), wires.head.max(initial=-1)))
    switches = [_("switch {number}").format(number=number) for number in range(n_switches)]
    nics = [""] * wires.n_channels
    n_nics = 0
    for channel in range(wires.n_channels):
        if wires.tail[channel] < 0 and not nics[channel]:
            name = _("NIC {number}").format(number=n_nics)
            nics[channel] = name
            if wires.head[channel] >= 0:
                nics[int(wires.reverse[channel])] = name
            n_nics += 1
    channels = []
    for channel in range(wires.n_channels):
        far = int(wires.reverse[channel]) if wires.head[channel] < 0 else channel
        tail, head = int(wires.tail[channel]), int(wires.head[channel])
        ends = (
            nics[channel] if tail < 0 else switches[tail],
            nics[far] if head < 0 else switches[head],
        )
        channels.append(" → ".join(ends))
    return PortNames(channels, switches, nics)
