"""What each port does with each class, where ports or classes differ: a table for the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_settings import LOSSLESS, LOSSY, UNCOUNTED
from gpufabric.kernels.packet_switch_structs import SETTING
from gpufabric.kernels.structs import Records, records
from gpufabric.model.fibre import FIBRE_NS_PER_M
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_headroom import headroom_for
from gpufabric.sim.packet_override import places_of
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.packet_switch_config import ClassKind, Ecn, PortOverride

__all__ = [
    "alpha_log2_for",
    "has_settings",
    "has_weights",
    "marked_classes",
    "quanta_for",
    "settings_for",
    "shares_for",
]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

KIND = {
    ClassKind.UNCOUNTED: UNCOUNTED,
    ClassKind.CREDITED: UNCOUNTED,
    ClassKind.LOSSY: LOSSY,
    ClassKind.LOSSLESS: LOSSLESS,
}
NO_MARK = 2**31 - 1  # kmin of a queue without ECN [byte]


def has_settings(config: PacketConfig) -> bool:
    """Tell whether any port or class differs from the others."""
    own = any(one.ecn is not None or one.alpha_log2 is not None for one in config.classes)
    return own or bool(config.overrides)


def has_weights(config: PacketConfig) -> bool:
    """Tell whether classes take turns by weight."""
    return any(one.weight > 0 and not one.is_strict for one in config.classes)


def shares_for(wires: Wires, config: PacketConfig) -> Ints:
    """Return int32[n_channels * (n_classes + 1)], all zero; none without weights."""
    n_queues = wires.n_channels * (len(config.classes) + 1)
    return np.zeros(n_queues if has_weights(config) else 0, np.int32)


def quanta_for(config: PacketConfig) -> Ints:
    """Return int32[n_classes]: bytes that each class may send at its turn."""
    return np.array([one.weight * config.quantum_bytes for one in config.classes], np.int32)


def settings_for(checked: CheckedPackets, config: PacketConfig) -> Records:
    """Return SETTING[n_channels * (n_classes + 1)]; no rows where all ports are alike."""
    if not has_settings(config):
        return records(SETTING, 0)
    wires, n_classes = checked.wires, len(config.classes)
    flat = records(SETTING, wires.n_channels * (n_classes + 1))
    table = flat.reshape(wires.n_channels, n_classes + 1)
    table["queue"] = np.arange(n_classes + 1)
    table["sends"] = table["obeys"] = 1
    table["xoff"] = config.buffer.xoff_bytes
    table["headroom"] = _headroom(checked, wires.delay_ps, config)[:, None]
    if config.buffer.headroom_bytes is not None:
        table["headroom"] = config.buffer.headroom_bytes
    marked = np.zeros(table.shape, np.bool_)
    for at, one in enumerate(config.classes):
        column = table[:, at]
        column["kind"] = KIND[one.kind]
        column["alpha_log2"] = alpha_log2_for(wires, config, one.alpha_log2)
        ecn = config.ecn if one.ecn is None else one.ecn
        marked[:, at] = one.is_marked and ecn is not None
        _set_ecn(column, wires, Ecn() if ecn is None else ecn)
    for override in config.overrides:
        goes_out = places_of(wires, config, override)
        comes_in = goes_out[wires.reverse]
        _apply_in(table, comes_in, checked, config, override)
        _apply_out(table, goes_out, wires, override)
        if override.is_marked is not None:
            marked[goes_out] = override.is_marked
    table["kmin"][~marked] = NO_MARK
    table["headroom"][table["kind"] != LOSSLESS] = 0
    return flat


def alpha_log2_for(wires: Wires, config: PacketConfig, given: int | None = None) -> Ints:
    """Return int32[n_channels]: exponent of the dynamic threshold, which rises with speed."""
    base = config.buffer.alpha_log2 if given is None else given
    alpha_log2 = np.full(wires.n_channels, base, np.int32)
    if config.buffer.alpha_gbps > 0:
        doublings = np.log2(np.maximum(1.0, wires.gbps / config.buffer.alpha_gbps))
        alpha_log2 += np.floor(doublings).astype(np.int32)
    return alpha_log2


def _headroom(checked: CheckedPackets, delay_ps: Longs, config: PacketConfig) -> Longs:
    wires = checked.wires
    forwarding_ps = np.append(checked.forwarding_ps, 0)[wires.head]
    return headroom_for(wires.gbps, delay_ps, forwarding_ps, config)


def marked_classes(config: PacketConfig) -> int:
    """Return bits: the classes that ECN marks at any port."""
    bits = 0
    for at, one in enumerate(config.classes):
        switched_on = any(
            override.is_marked and (not override.classes or at in override.classes)
            for override in config.overrides
        )
        has_ecn = one.is_marked and (config.ecn is not None or one.ecn is not None)
        bits |= (has_ecn or switched_on) << at
    return bits


def _set_ecn(rows: Records, wires: Wires, ecn: Ecn) -> None:
    rows["kmin"] = ecn.kmin_bytes * wires.gbps / 100
    rows["kmax"] = ecn.kmax_bytes * wires.gbps / 100
    rows["pmax"] = ecn.pmax


def _apply_in(
    table: Records,
    where: Bools,
    checked: CheckedPackets,
    config: PacketConfig,
    override: PortOverride,
) -> None:
    kind = None if override.kind is None else KIND[override.kind]
    for name, value in (
        ("kind", kind),
        ("sends", override.has_pfc),
        ("queue", override.queue),
        ("headroom", override.headroom_bytes),
        ("xoff", override.xoff_bytes),
    ):
        if value is not None:
            table[name][where] = value
    channel = np.nonzero(where)[0]
    if override.headroom_cable_m is not None:
        delay_ps = round(override.headroom_cable_m * FIBRE_NS_PER_M * 1000)
        delays_ps = np.full(checked.wires.n_channels, delay_ps)
        table["headroom"][where] = _headroom(checked, delays_ps, config)[channel]
    if override.alpha_log2 is not None:
        alpha_log2 = alpha_log2_for(checked.wires, config, override.alpha_log2)
        table["alpha_log2"][where] = alpha_log2[channel]


def _apply_out(table: Records, where: Bools, wires: Wires, override: PortOverride) -> None:
    scale = wires.gbps[np.nonzero(where)[0]] / 100
    if override.kmin_bytes is not None:
        table["kmin"][where] = override.kmin_bytes * scale
    if override.kmax_bytes is not None:
        table["kmax"][where] = override.kmax_bytes * scale
    if override.pmax is not None:
        table["pmax"][where] = override.pmax
    if override.has_pfc is not None:
        table["obeys"][where] = override.has_pfc
