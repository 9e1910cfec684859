"""Lanes of events: how long packets take over links, and a ring for each common time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_events import LANE_BITS, NEVER, SPARE
from gpufabric.kernels.packet_port import SIZE_PFC
from gpufabric.kernels.packet_structs import LANE, SERIAL, PacketRun
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.large_arrays import line_longs
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_sizes import Sizes

__all__ = ["LinkTimes", "first_lanes", "link_rows", "link_times", "wider_lanes"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_ROOM = 1024  # events of a lane, to begin with
SMALL_ROOM = 8192  # up to here a lane's room grows by more than twice
COMMON_LINKS = 6  # kinds of links with lanes
LINK_LANES = 36  # for all sizes over all common links


def serial_ps(wire_bytes: Longs, gbps: float, tick_ps: int) -> Longs:
    """Return the times to send packets of `wire_bytes` at `gbps` [ps], cut to whole ticks."""
    return (wire_bytes * 8000 / gbps).astype(np.int64) // tick_ps * tick_ps


@dataclass(frozen=True)
class LinkTimes:
    """What takes how long over which link, and which lanes the events are for."""

    serial: Records  # SERIAL[n_kinds * n_sizes]
    link: Longs  # int64[n_rows]: first entry of `serial` for each row that was given
    n_lanes: int  # lanes until now, that of the starts counted
    lane_sent: int  # first lane of ends of sending; those of arrivals come before


def link_times(of_port: Floats, n_ports: int, sizes: Sizes, tick_ps: int) -> LinkTimes:
    """Return times by kind of link and size; `of_port` has rows as ``link_rows`` gives them.

    Kinds of links that most ports have get lanes. Rows beyond the first `n_ports` are what ports
    may become; they count for nothing there.
    """
    links, link = _kinds(of_port)
    count = np.bincount(link[:n_ports], minlength=len(links))
    n_common = min(COMMON_LINKS, LINK_LANES // int(sizes.is_common.sum()))
    common = np.sort(np.argsort(-count, kind="stable")[:n_common])
    regular = np.ix_(common, sizes.is_common)
    sent = np.stack([serial_ps(sizes.wire_bytes, gbps, tick_ps) for gbps in links[:, 0]])
    cut = links[:, 3:4].astype(np.int64)
    arrive = np.where((cut > 0) & (cut < sent), cut, sent) + links[:, 1:2].astype(np.int64)
    arrive[:, SIZE_PFC] = sent[:, SIZE_PFC] + links[:, 2].astype(np.int64)
    serial, n_lanes, lane_sent = records(SERIAL, sent.size), 1, 1
    for name, times in (("lane_arrive", arrive), ("lane", sent)):
        lane_sent = n_lanes
        lane_of, lane = np.unique(times[regular], return_inverse=True)
        serial[name] = -1
        serial[name].reshape(times.shape)[regular] = n_lanes + lane.reshape(common.size, -1)
        n_lanes += lane_of.size
    serial["time_ps"], serial["arrive_ps"] = sent.ravel(), arrive.ravel()
    serial["n_bytes"] = np.tile(sizes.n_bytes, len(links))
    serial["wire_bytes"] = np.tile(sizes.wire_bytes, len(links))
    return LinkTimes(serial, link * sizes.n_bytes.size, n_lanes, lane_sent)


def _kinds(rows: Floats) -> tuple[Floats, Longs]:
    """Return the different rows, sorted, and which of them each row is; by far the fewest differ.

    It is what ``np.unique`` does, column by column, which is many times as fast.
    """
    kind = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, of_row = np.unique(column, return_inverse=True)
        kind = np.unique(kind * values.size + of_row, return_inverse=True)[1]
    _first, at = np.unique(kind, return_index=True)
    return rows[at], kind


def link_rows(
    checked: CheckedPackets, config: PacketConfig, cut_ps: Longs, channels: Ints, gbps: Floats
) -> Floats:
    """Return what makes a kind of link, of all ports and then of `channels` at speeds `gbps`.

    Columns: speed, delay, delay of PFC frames, and time of the first bytes where they are enough.
    """
    wires = checked.wires
    forwarding_ps = np.append(checked.forwarding_ps, 0)[wires.head]  # -1, a NIC: without
    delay_pfc_ps = wires.delay_ps + round(config.pause_reaction_ns * 1000)
    ports = np.stack([wires.gbps, wires.delay_ps + forwarding_ps, delay_pfc_ps, cut_ps], axis=1)
    others = ports[channels]
    others[:, 0] = gbps
    return np.concatenate([ports, others])


def first_lanes(times: Longs, codes: Longs, n_lanes: int) -> tuple[Records, Longs, Longs]:
    """Return rings with the given events in the first one, whose is next, and all events."""
    n_first = times.size
    room = np.full(n_lanes, FIRST_ROOM, np.int64)
    room[0] = 1 << int(n_first + 2 * SPARE).bit_length()
    lanes = records(LANE, n_lanes)
    lanes["mask"] = room - 1
    lanes["offset"] = np.cumsum(room) - room
    lanes["end"][0] = n_first
    events = np.zeros(2 * room.sum(), np.int64)
    events[0 : 2 * n_first : 2] = times
    events[1 : 2 * n_first : 2] = codes
    depth = n_lanes.bit_length()  # the heap is one more lane
    due = np.full(2 << depth, NEVER, np.int64)
    if n_first:  # these are lane 0: the leaf and all above it
        due[1 << np.arange(depth + 1)] = events[0] << LANE_BITS
    return lanes, due, events


def wider_lanes(run: PacketRun) -> tuple[Records, Longs]:
    """Return rings and events with more room where a ring is nearly full."""
    lanes = run.lanes.copy()
    held = lanes["end"] - lanes["kept"]
    room = lanes["mask"] + 1
    if (held + 2 * SPARE <= room).all():
        return run.lanes, run.events
    # Those that will be full soon at once, since all are moved.
    room = np.where(held + 2 * SPARE > room // 2, np.where(room < SMALL_ROOM, 4, 2) * room, room)
    lanes["mask"] = room - 1
    lanes["offset"] = np.cumsum(room) - room
    lanes["first"] -= lanes["kept"]
    lanes["kept"], lanes["end"] = 0, held
    events = line_longs(2 * int(room.sum()))
    pairs, old_pairs = events.reshape(-1, 2), run.events.reshape(-1, 2)
    old = run.lanes
    at = old["kept"] & old["mask"]
    n_before = np.minimum(
        held, old["mask"] + 1 - at
    )  # before the ring's end; the rest at its begin
    columns = (lanes["offset"], old["offset"], at, n_before, held)
    for new, begin, first, before, n in zip(*(column.tolist() for column in columns), strict=True):
        pairs[new : new + before] = old_pairs[begin + first : begin + first + before]
        pairs[new + before : new + n] = old_pairs[begin : begin + n - before]
    _move_slots(run, lanes)
    return lanes, events


def _move_slots(run: PacketRun, lanes: Records) -> None:
    """Let ports know the new places of events that are asleep."""
    slot, old = run.ports["slot"], run.lanes
    asleep = np.flatnonzero(slot >= 0)
    lane = run.ports["lane"][asleep]
    kept = (old["offset"] + old["kept"])[lane]
    number = slot[asleep] - kept & old["mask"][lane]
    slot[asleep] = lanes["offset"][lane] + number
