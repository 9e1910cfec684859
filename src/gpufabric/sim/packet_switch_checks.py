"""What switches of a packet run are told, checked: overrides of single ports and classes."""

from __future__ import annotations

import numpy as np

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.packet_switch_config import Ecn, PortOverride

__all__ = ["check_ecn", "check_switches"]

MOST = 2**31 - 1  # buffers are int32 [byte]
MOST_KBYTES = MOST / 100  # thresholds are for 100 Gb/s and grow with speed


def check_switches(checks: ArrayChecks, wires: Wires, config: PacketConfig) -> None:
    """Note what is wrong with classes and overrides."""
    for at, one in enumerate(config.classes):
        if one.alpha_log2 is not None:
            checks.within(f"classes[{at}].alpha_log2", one.alpha_log2, -16, 16)
        if one.ecn is not None:
            check_ecn(checks, f"classes[{at}].ecn", one.ecn)
    n_switches = int(np.max(wires.head, initial=-1)) + 1
    for at, override in enumerate(config.overrides):
        where, n_classes = f"overrides[{at}]", len(config.classes)
        checks.ints(f"{where}.switches", np.array(override.switches), None, 0, n_switches)
        checks.ints(f"{where}.ports", np.array(override.ports), None, 0, wires.n_channels)
        checks.ints(f"{where}.classes", np.array(override.classes), None, 0, n_classes)
        _check_values(checks, where, override, n_classes)


def check_ecn(checks: ArrayChecks, where: str, ecn: Ecn) -> None:
    """Note thresholds and probabilities out of range."""
    checks.within(f"{where}.pmax", ecn.pmax, 0, 1)
    checks.within(f"{where}.kmin_bytes", ecn.kmin_bytes, 0, MOST_KBYTES)
    checks.within(f"{where}.kmax_bytes", ecn.kmax_bytes, 0, MOST_KBYTES)


def _check_values(checks: ArrayChecks, where: str, override: PortOverride, n_classes: int) -> None:
    ranges = {
        "queue": (0, n_classes - 1),
        "headroom_bytes": (0, MOST),
        "headroom_cable_m": (0, 1e6),
        "alpha_log2": (-16, 16),
        "xoff_bytes": (0, MOST),
        "kmin_bytes": (0, MOST_KBYTES),
        "kmax_bytes": (0, MOST_KBYTES),
        "pmax": (0, 1),
    }
    for name, (least, most) in ranges.items():
        value = getattr(override, name)
        if value is not None:
            checks.within(f"{where}.{name}", value, least, most)
    if override.headroom_bytes is not None and override.headroom_cable_m is not None:
        what = _("headroom_bytes is given too.")
        checks.fault(f"{where}.headroom_cable_m", what, _("one of the two"))
