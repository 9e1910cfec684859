"""What switches of a packet run are told, checked: overrides of single ports and classes."""

from __future__ import annotations

import numpy as np

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_pause_time import STORM
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.packet_switch_config import Ecn, PortOverride

__all__ = ["check_ecn", "check_places", "check_switches"]

MOST = 2**31 - 1  # buffers are int32 [byte]
MOST_WEIGHT = 255
MOST_KBYTES = MOST / 100  # thresholds are for 100 Gb/s and grow with speed


def check_switches(checks: ArrayChecks, config: PacketConfig) -> None:
    """Note what is wrong with classes, pauses and overrides, whatever the fabric."""
    for at, one in enumerate(config.classes):
        if one.alpha_log2 is not None:
            checks.within(f"classes[{at}].alpha_log2", one.alpha_log2, -16, 16)
        if one.ecn is not None:
            check_ecn(checks, f"classes[{at}].ecn", one.ecn)
    _check_weights(checks, config)
    _check_pauses(checks, config)
    for at, override in enumerate(config.overrides):
        where, n_classes = f"overrides[{at}]", len(config.classes)
        checks.ints(f"{where}.classes", np.array(override.classes), None, 0, n_classes)
        _check_values(checks, where, override, n_classes)


def check_places(checks: ArrayChecks, wires: Wires, config: PacketConfig) -> None:
    """Note overrides of switches and ports that there are not."""
    n_switches = int(np.max(wires.head, initial=-1)) + 1
    for at, override in enumerate(config.overrides):
        where = f"overrides[{at}]"
        checks.ints(f"{where}.switches", np.array(override.switches), None, 0, n_switches)
        checks.ints(f"{where}.ports", np.array(override.ports), None, 0, wires.n_channels)


def _check_pauses(checks: ArrayChecks, config: PacketConfig) -> None:
    checks.within("pause_time.quanta", config.pause_time.quanta, 0, 65_535)
    checks.within("pause_time.refresh_part", config.pause_time.refresh_part, 0.01, 1)
    if config.watchdog is None:
        return
    for name in ("detect_us", "restore_us"):
        checks.within(f"watchdog.{name}", getattr(config.watchdog, name), 1e-3, 1e9)
    if config.watchdog.action not in STORM:
        what = _("the action is {action!r}.").format(action=config.watchdog.action)
        checks.fault("watchdog.action", what, _("one of {names}").format(names=", ".join(STORM)))


def _check_weights(checks: ArrayChecks, config: PacketConfig) -> None:
    checks.within("quantum_bytes", config.quantum_bytes, 1, MOST // MOST_WEIGHT)
    weights = {at: one.weight for at, one in enumerate(config.classes) if not one.is_strict}
    for at, weight in weights.items():
        checks.within(f"classes[{at}].weight", weight, 0, MOST_WEIGHT)
        if weight == 0 and any(weights.values()):
            what = _("there is no weight, but another class has one.")
            checks.fault(f"classes[{at}].weight", what, _("a weight, or is_strict"))


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
