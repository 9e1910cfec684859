"""Which virtual lane an InfiniBand port serves next: a table of high and one of low priority.

An entry names a lane and how many blocks of 64 bytes it may send in its turn; the last packet of a
turn may go over. High priority goes first until its limit is used up; then a packet of low priority
goes, if one may.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["LIMIT_LEFT", "N_TURNS", "UNLIMITED", "charge_turn", "next_lane"]

HIGH, LOW = range(2)
# Places in a row of `turns`: entry at work and blocks left to it, of the high and the low table.
ENTRY_HIGH, LEFT_HIGH, ENTRY_LOW, LEFT_LOW, LIMIT_LEFT, PICKED, N_TURNS = range(7)
UNLIMITED = 2**40  # blocks that high priority may send in a row
NONE = -1


@kernel_part
def next_lane(run: PacketRun, number: int) -> int:
    """Lane that a port serves next, -1 when nothing there may leave; flow control goes first.

    Reference: tests/reference/packet_arbiter.py, Arbiter.next_lane.
    """
    port, n_classes = run.ports[number], run.rules[0].n_classes
    able = np.int64((port.queued | port.ready) & ~port.paused)
    if able >> n_classes & 1:
        return n_classes
    if able == 0:
        return NONE
    turns = run.turns[number]
    high, low = entry_of(run, number, HIGH, able), entry_of(run, number, LOW, able)
    if high != NONE and (low == NONE or turns[LIMIT_LEFT] > 0):
        turns[PICKED] = high
        return run.lane_table[HIGH, high, 0]
    if low == NONE:
        return NONE
    turns[PICKED] = run.lane_table.shape[1] + low
    return run.lane_table[LOW, low, 0]


@kernel_part
def entry_of(run: PacketRun, number: int, table: int, able: int) -> int:
    """Entry of one table whose turn it is among the lanes that are able, -1 without.

    Reference: tests/reference/packet_arbiter.py, Arbiter.entry_of.
    """
    entries = run.lane_table[table]
    at, left = run.turns[number, 2 * table], run.turns[number, 2 * table + 1]
    if left > 0 and able >> entries[at, 0] & 1:
        return at
    for step in range(1, entries.shape[0] + 1):
        entry = (at + step) % entries.shape[0]
        if entries[entry, 1] > 0 and able >> entries[entry, 0] & 1:
            return entry
    return NONE


@kernel_part
def charge_turn(run: PacketRun, number: int, blocks: int) -> None:
    """Charge a packet that begins to leave to the entry that was picked for it.

    Reference: tests/reference/packet_arbiter.py, Arbiter.charge.
    """
    turns, n_entries = run.turns[number], run.lane_table.shape[1]
    table = LOW if turns[PICKED] >= n_entries else HIGH
    entry = turns[PICKED] - table * n_entries
    if entry != turns[2 * table] or turns[2 * table + 1] <= 0:
        turns[2 * table] = entry
        turns[2 * table + 1] = run.lane_table[table, entry, 1]
    turns[2 * table + 1] -= blocks
    if table == LOW or turns[LIMIT_LEFT] <= 0:
        turns[LIMIT_LEFT] = run.rules[0].high_limit
    if table == HIGH:
        turns[LIMIT_LEFT] -= blocks
