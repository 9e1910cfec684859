"""What a port does with a class: by class alone, or each port for itself where ports differ.

An input is known by its channel, an output by the number of its port. Where no port differs, one
branch decides, and what is asked for lies in records that the packet touches anyway.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_structs import PacketRun

__all__ = [
    "LOSSLESS",
    "LOSSY",
    "UNCOUNTED",
    "alpha_log2_of",
    "headroom_of",
    "is_read",
    "kind_of",
    "kmax_of",
    "kmin_of",
    "obeys_pfc",
    "pmax_of",
    "queue_of",
    "sends_pfc",
    "xoff_of",
]

UNCOUNTED, LOSSY, LOSSLESS = range(3)  # kinds of classes


@kernel_part
def is_read(run: PacketRun, number: int) -> bool:
    """Tell whether the receiver of a flow asks for the data: RDMA READ.

    Reference: tests/reference/packet_ends.py, Engine.begin.
    """
    return run.rules[0].has_reads != 0 and run.flows[number].is_read != 0


@kernel_part
def queue_of(run: PacketRun, channel: int, traffic: int) -> int:
    """Class as which a switch treats packets of class `traffic` that come by a channel.

    Reference: tests/reference/packet_settings.py, Settings.queue.
    """
    if run.rules[0].has_settings:
        return int(np.int64(run.settings[channel * (run.rules[0].n_classes + 1) + traffic].queue))
    return traffic


@kernel_part
def kind_of(run: PacketRun, channel: int, traffic: int) -> int:
    """Kind of a class at an input: UNCOUNTED, LOSSY or LOSSLESS.

    Reference: tests/reference/packet_settings.py, Settings.kind.
    """
    rules = run.rules[0]
    if rules.has_settings:
        return int(np.int64(run.settings[channel * (rules.n_classes + 1) + traffic].kind))
    return (rules.counted >> traffic & 1) + (rules.lossless >> traffic & 1)


@kernel_part
def headroom_of(run: PacketRun, channel: int, traffic: int) -> int:
    """Headroom of a class at an input [byte].

    Reference: tests/reference/packet_settings.py, Settings.headroom.
    """
    if run.rules[0].has_settings:
        return int(
            np.int64(run.settings[channel * (run.rules[0].n_classes + 1) + traffic].headroom)
        )
    return int(np.int64(run.ports[channel].headroom))


@kernel_part
def alpha_log2_of(run: PacketRun, channel: int, traffic: int) -> int:
    """Exponent of the dynamic threshold of a class at an input.

    Reference: tests/reference/packet_settings.py, Settings.alpha_log2.
    """
    if run.rules[0].has_settings:
        return int(
            np.int64(run.settings[channel * (run.rules[0].n_classes + 1) + traffic].alpha_log2)
        )
    place = channel * (run.rules[0].n_classes + 1) + traffic
    return int(np.int64(run.inputs[place].alpha_log2))


@kernel_part
def xoff_of(run: PacketRun, channel: int, traffic: int) -> int:
    """Fixed threshold of a class at an input, 0 for a dynamic one [byte].

    Reference: tests/reference/packet_settings.py, Settings.xoff.
    """
    if run.rules[0].has_settings:
        return int(np.int64(run.settings[channel * (run.rules[0].n_classes + 1) + traffic].xoff))
    return run.rules[0].xoff


@kernel_part
def sends_pfc(run: PacketRun, channel: int, traffic: int) -> bool:
    """Tell whether an input sends PFC frames for a class.

    Reference: tests/reference/packet_settings.py, Settings.sends_pfc.
    """
    if run.rules[0].has_settings:
        return run.settings[channel * (run.rules[0].n_classes + 1) + traffic].sends != 0
    return True


@kernel_part
def obeys_pfc(run: PacketRun, number: int, traffic: int) -> bool:
    """Tell whether a port stops a class when a PFC frame says so.

    Reference: tests/reference/packet_settings.py, Settings.obeys_pfc.
    """
    if run.rules[0].has_settings:
        return run.settings[number * (run.rules[0].n_classes + 1) + traffic].obeys != 0
    return True


@kernel_part
def kmin_of(run: PacketRun, number: int, traffic: int) -> int:
    """Depth up to which a port marks no packet of a class [byte].

    Reference: tests/reference/packet_settings.py, Settings.ecn.
    """
    if run.rules[0].has_settings:
        return int(np.int64(run.settings[number * (run.rules[0].n_classes + 1) + traffic].kmin))
    return int(np.int64(run.ports[number].kmin))


@kernel_part
def kmax_of(run: PacketRun, number: int, traffic: int) -> int:
    """Depth above which a port marks every packet of a class [byte].

    Reference: tests/reference/packet_settings.py, Settings.ecn.
    """
    if run.rules[0].has_settings:
        return int(np.int64(run.settings[number * (run.rules[0].n_classes + 1) + traffic].kmax))
    return int(np.int64(run.aside[number].kmax))


@kernel_part
def pmax_of(run: PacketRun, number: int, traffic: int) -> float:
    """Probability of a mark at kmax.

    Reference: tests/reference/packet_settings.py, Settings.ecn.
    """
    if run.rules[0].has_settings:
        return run.settings[number * (run.rules[0].n_classes + 1) + traffic].pmax
    return run.aside[number].pmax
