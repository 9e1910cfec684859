"""What the kernels keep for InfiniBand links: credits by channel and virtual lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.packet_arbiter import LIMIT_LEFT, N_TURNS, UNLIMITED
from gpufabric.kernels.packet_credit import MOST_AHEAD
from gpufabric.kernels.packet_structs import CREDIT, LINK, PacketRun
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_faults import SlowLink

__all__ = [
    "BLOCK_BYTES",
    "CreditOutcome",
    "LinkRecords",
    "credit_buffer_for",
    "credit_outcome",
    "credit_rules",
    "link_records",
]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

BLOCK_BYTES = 64
NO_MARK = 2**31 - 1  # no queue is so deep [byte]


@dataclass(frozen=True)
class CreditOutcome:
    """What became of the credits; all arrays int64[n_channels, n_lanes].

    Parameters
    ----------
    room_blocks
        Receive buffer at the channel's far end [64 bytes].
    most_held_blocks
        Most of it in use [64 bytes].
    updates
        Flow control packets that the far end sent.
    """

    room_blocks: Longs
    most_held_blocks: Longs
    updates: Longs


def credit_buffer_for(
    gbps: Floats, delay_ps: Longs, forwarding_ps: Longs, config: PacketConfig
) -> Longs:
    """Return int64[n_channels]: receive buffer of a lane that keeps the channel's speed [byte].

    A full packet comes in, is forwarded and leaves; then the flow control packet waits for a full
    packet, is sent, travels and takes effect, and the next packet travels. What is told late, up to
    ``update_blocks``, is added, and one packet for what does not divide.
    """
    headers, rules = config.headers, config.credits
    assert rules is not None
    full = config.transport.mtu_bytes + headers.data_bytes + headers.first_bytes
    wire = 3 * (full + headers.gap_bytes) + headers.pfc_bytes + headers.gap_bytes
    wait_ps = 2 * delay_ps + forwarding_ps + int(config.pause_reaction_ns * 1000)
    late = (rules.update_blocks + 2 * (-(-full // BLOCK_BYTES))) * BLOCK_BYTES
    return (np.ceil(wait_ps * gbps / 8000) + wire + late).astype(np.int64)


def credit_rules(rules: Records, config: PacketConfig) -> None:
    """Fill in the rules of InfiniBand links."""
    if config.credits is not None:
        rules["has_credits"] = 1
        rules["update_blocks"] = config.credits.update_blocks
        rules["has_fecn"] = config.fecn is not None
    if config.fecn is not None:
        rules["marking_rate"] = config.fecn.marking_rate
        rules["fecn_least"] = config.fecn.packet_bytes
    if config.arbitration is not None:
        limit = config.arbitration.high_limit
        rules["has_arbiter"] = 1
        rules["high_limit"] = UNLIMITED if limit == 255 else max(1, 64 * limit)


class LinkRecords(NamedTuple):
    """What a run needs for InfiniBand links; empty without credits."""

    credits: Records
    links: Records
    lane_table: Longs
    turns: Longs


def link_records(checked: CheckedPackets, config: PacketConfig) -> LinkRecords:
    """Return what InfiniBand links need.

    Raises
    ------
    InputError
        If a buffer cannot hold a full packet and what is told late.
    """
    lane_table, turns = _arbiter_arrays(checked, config)
    if config.credits is None:
        none = records(LINK, checked.wires.n_channels)
        return LinkRecords(records(CREDIT, 0), none, lane_table, turns)
    wires, n_lanes = checked.wires, len(config.classes)
    links = records(LINK, wires.n_channels)
    links["frees"] = -1
    links["cut_ps"] = _cut_ps(checked, config)
    n_bytes = np.full(wires.n_channels, config.credits.buffer_bytes, np.int64)
    if config.credits.buffer_bytes == 0:
        forwarding_ps = np.append(checked.forwarding_ps, 0)[wires.head]  # -1, a NIC: without
        n_bytes = credit_buffer_for(wires.gbps, wires.delay_ps, forwarding_ps, config)
    room = n_bytes // BLOCK_BYTES
    _check_room(room, config)
    if config.fecn is not None:
        level = room[wires.reverse] * BLOCK_BYTES * (16 - config.fecn.threshold) // 16
        links["fecn_bytes"] = level if config.fecn.threshold else NO_MARK
    table = records(CREDIT, wires.n_channels * (n_lanes + 1))
    table["room"] = np.repeat(room, n_lanes + 1)
    table["limit"] = table["told"] = np.minimum(table["room"], MOST_AHEAD)
    return LinkRecords(table, links, lane_table, turns)


def _cut_ps(checked: CheckedPackets, config: PacketConfig) -> Longs:
    """How long the first bytes of a packet take on each channel whose switch cuts through [ps]."""
    wires, rules = checked.wires, config.credits
    assert rules is not None
    fastest = np.zeros(checked.forwarding_ps.size + 1)
    inside = wires.tail >= 0
    np.maximum.at(fastest, wires.tail[inside], wires.gbps[inside])
    planned = np.zeros(wires.n_channels, np.bool_)
    for fault in checked.faults:
        planned[[fault.channel, wires.reverse[fault.channel]]] = True
        tail = wires.tail[fault.channel]
        if isinstance(fault, SlowLink) and tail >= 0:
            fastest[tail] = max(fastest[tail], fault.gbps)
    cuts = (wires.head >= 0) & (wires.gbps >= fastest[wires.head]) & ~planned
    cut_ps = (rules.cut_through_bytes * 8000 / wires.gbps).astype(np.int64)
    if checked.hops:
        cuts[:] = False
    return np.where(cuts, cut_ps // config.tick_ps * config.tick_ps, 0)


def _arbiter_arrays(checked: CheckedPackets, config: PacketConfig) -> tuple[Longs, Longs]:
    """Tables and the state of each port, empty without arbitration."""
    rules = config.arbitration
    if rules is None:
        return np.zeros((2, 0, 2), np.int64), np.zeros((0, N_TURNS), np.int64)
    tables = ((rules.high_lanes, rules.high_weights), (rules.low_lanes, rules.low_weights))
    lane_table = np.zeros((2, max(len(lanes) for lanes, _ in tables), 2), np.int64)
    turns = np.zeros((checked.wires.n_channels, N_TURNS), np.int64)
    for at, (lanes, weights) in enumerate(tables):
        lane_table[at, : len(lanes)] = np.column_stack([lanes, weights])
        turns[:, 2 * at + 1] = lane_table[at, 0, 1]
    turns[:, LIMIT_LEFT] = UNLIMITED if rules.high_limit == 255 else max(1, 64 * rules.high_limit)
    return lane_table, turns


def _check_room(room: Longs, config: PacketConfig) -> None:
    headers, rules = config.headers, config.credits
    assert rules is not None
    full = config.transport.mtu_bytes + headers.data_bytes + headers.first_bytes
    least = -(-full // BLOCK_BYTES) + rules.update_blocks
    if room.size and int(np.minimum(room, MOST_AHEAD).min()) < least:
        at = int(np.argmin(room))
        what = _("the receive buffer of channel {channel} has {n} blocks of 64 bytes.").format(
            channel=at, n=min(int(room[at]), MOST_AHEAD)
        )
        expected = _("at least {n}: a full packet and update_blocks").format(n=least)
        raise InputError(Fault("credits.buffer_bytes", what, expected))


def credit_outcome(run: PacketRun) -> CreditOutcome | None:
    """Return what became of the credits of a run; None without credits."""
    if run.credits.size == 0:
        return None
    table = run.credits.reshape(run.ports.size, -1)[:, :-1]
    return CreditOutcome(
        room_blocks=table["room"].astype(np.int64),
        most_held_blocks=table["most_held"].astype(np.int64),
        updates=table["n_updates"].astype(np.int64),
    )
