"""How long pauses hold and what the watchdog guards: a table for the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_port import DROPS, FORWARDS
from gpufabric.kernels.packet_switch_structs import PAUSE
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_override import places_of
from gpufabric.sim.packet_problem import Wires

__all__ = ["STORM", "pause_rules", "pauses_for"]

STORM = {"drop": DROPS, "forward": FORWARDS}
QUANTUM_BITS = 512
PS = 1_000_000  # in a microsecond


def pause_rules(config: PacketConfig) -> dict[str, int]:
    """Return what holds for all pauses, by field of RULES."""
    watchdog = config.watchdog
    rules = {"has_pauses": int(config.pause_time.quanta > 0 or watchdog is not None)}
    if watchdog is not None:
        rules["detect_ps"] = round(watchdog.detect_us * PS)
        rules["restore_ps"] = round(watchdog.restore_us * PS)
        rules["storm"] = STORM[watchdog.action]
    return rules


def pauses_for(wires: Wires, config: PacketConfig) -> Records:
    """Return PAUSE[n_channels * (n_classes + 1)]; no rows if pauses hold until XON, unwatched."""
    if not pause_rules(config)["has_pauses"]:
        return records(PAUSE, 0)
    n_queues = len(config.classes) + 1
    flat = records(PAUSE, wires.n_channels * n_queues)
    table = flat.reshape(wires.n_channels, n_queues)
    pause_ps = config.pause_time.quanta * QUANTUM_BITS * 1000 / wires.gbps
    table["pause_ps"] = pause_ps.astype(np.int64)[:, None]
    refresh_ps = pause_ps.astype(np.int64) * config.pause_time.refresh_part
    table["refresh_ps"] = np.maximum(1, refresh_ps.astype(np.int64))[:, None]
    if config.watchdog is not None:
        table["is_guarded"] = _guarded(wires, config)
    return flat


def _guarded(wires: Wires, config: PacketConfig) -> NDArray[np.bool_]:
    """Tell which classes of which ports have a watchdog: those of switches, but for overrides."""
    shape = wires.n_channels, len(config.classes) + 1
    guarded = np.broadcast_to((wires.tail >= 0)[:, None], shape).copy()
    for override in config.overrides:
        if override.has_watchdog is not None:
            where = places_of(wires, config, override)
            guarded[where & (wires.tail >= 0)[:, None]] = override.has_watchdog
    return guarded
