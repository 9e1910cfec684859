"""Queues of a run that can never move again, and the circle of buffers in which they wait.

A queue that is paused, or has no credits, waits for the buffer at the far end of its channel. That
buffer has room again when enough of its packets have left, and they wait in the queues of its
switch. To find out which queues are stuck, all others are taken to empty at once, again and again:
whatever lets its sender go on then is not stuck. What remains waits for itself, whatever else
happens: each queue of it for another one, so there is a circle. Pauses that a NIC sends may end;
they are no deadlock. A watchdog or a pause that expires can still end one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_credit import MODULUS, MOST_AHEAD
from gpufabric.kernels.packet_events import NOW
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["Deadlock", "Lane", "StuckQueue", "find_deadlock"]

BLOCK_BYTES = 64  # of a credit


class Lane(NamedTuple):
    """A traffic class or virtual lane of a channel: its queue in front, its buffer behind."""

    channel: int
    traffic: int


@dataclass(frozen=True)
class StuckQueue:
    """A queue of the circle; it waits for the buffer behind its channel.

    Parameters
    ----------
    channel, traffic
        Where it stands: at the sending end of the channel.
    queued_bytes
        In the queue [byte].
    buffer_bytes
        Of the buffer behind the channel: what waits in the next queue of the circle [byte].
    since_ps
        Paused or without credits since [ps].
    """

    channel: int
    traffic: int
    queued_bytes: int
    buffer_bytes: int
    since_ps: int


@dataclass(frozen=True)
class Deadlock:
    """Queues that wait for each other.

    Parameters
    ----------
    cycle
        One circle, hop by hop: each queue waits for a buffer whose packets wait in the next queue;
        those of the last one wait in the first.
    stuck
        All queues that can never move, those behind the circle too.
    since_ps
        When the last queue of the circle was stopped [ps].
    found_ps
        When it was looked for and found [ps].
    """

    cycle: tuple[StuckQueue, ...]
    stuck: tuple[Lane, ...]
    since_ps: int
    found_ps: int


@dataclass
class Waiting:
    """Which lanes are stopped, and what of each buffer waits in which stopped queue [byte]."""

    stopped: list[Lane]
    parts: dict[Lane, dict[Lane, int]] = field(default_factory=lambda: defaultdict(dict))

    def bytes_in(self, buffer: Lane, stuck: set[Lane]) -> int:
        """Bytes of a buffer that wait in stuck queues."""
        parts = self.parts.get(buffer, {})
        return sum(n_bytes for queue, n_bytes in parts.items() if queue in stuck)


def find_deadlock(run: PacketRun) -> Deadlock | None:
    """Return a deadlock of a run that stands still for the moment, or None."""
    stopped = stopped_lanes(run)
    if not stopped:
        return None
    waiting = waiting_bytes(run, stopped)
    stuck = set(stopped)
    while freed := {lane for lane in stuck if _frees(run, lane, waiting, stuck)}:
        stuck -= freed
    if not stuck:
        return None
    cycle = _cycle(waiting, stuck)
    after = [*cycle[1:], cycle[0]]
    queues = tuple(
        StuckQueue(
            *lane,
            queued_bytes=int(run.queues["n_bytes"][_place(run, lane)]),
            buffer_bytes=waiting.parts[lane][following],
            since_ps=int(run.held["since_ps"][_place(run, lane)]),
        )
        for lane, following in zip(cycle, after, strict=True)
    )
    since_ps = max(queue.since_ps for queue in queues)
    return Deadlock(queues, tuple(sorted(stuck)), since_ps, int(run.clock[NOW]))


def stopped_lanes(run: PacketRun) -> list[Lane]:
    """Return the lanes that are paused or starved by a switch."""
    n_classes = int(run.rules["n_classes"][0])
    bits = run.ports["paused"][:, None] >> np.arange(n_classes) & 1
    bits &= (run.ports["head"] >= 0)[:, None]
    channels, classes = np.nonzero(bits)
    return [Lane(*pair) for pair in zip(channels.tolist(), classes.tolist(), strict=True)]


def waiting_bytes(run: PacketRun, stopped: list[Lane]) -> Waiting:
    """Return which bytes of each buffer wait in which of the stopped queues."""
    n_queues = int(run.rules["n_classes"][0]) + 1
    places = np.array([_place(run, lane) for lane in stopped])
    packet = run.queues["first"][places].astype(np.int64)
    found: list[NDArray[np.int64]] = []
    while (is_one := packet >= 0).any():
        places, packet = places[is_one], packet[is_one]
        origin = run.packets["channel"][packet].astype(np.int64)
        n_bytes = run.packets["n_bytes"][packet].astype(np.int64)
        if run.rules["has_credits"][0]:
            n_bytes = -(-n_bytes // BLOCK_BYTES) * BLOCK_BYTES
        found.append(np.stack([places, origin, n_bytes]))
        packet = run.packets["following"][packet].astype(np.int64)
    waiting = Waiting(stopped)
    if not found:
        return waiting
    place, origin, n_bytes = np.concatenate(found, axis=1)
    pairs, which = np.unique(np.stack([place, origin]), axis=1, return_inverse=True)
    total = np.bincount(which.ravel(), n_bytes).astype(np.int64)
    for at, channel, size in zip(*pairs.tolist(), total.tolist(), strict=True):
        queue = Lane(*divmod(at, n_queues))
        if channel >= 0:
            waiting.parts[Lane(channel, queue.traffic)][queue] = size
    return waiting


def _place(run: PacketRun, lane: Lane) -> int:
    return lane.channel * (int(run.rules["n_classes"][0]) + 1) + lane.traffic


def _frees(run: PacketRun, lane: Lane, waiting: Waiting, stuck: set[Lane]) -> bool:
    """Whether a buffer lets its sender go on when only what is stuck remains."""
    if run.rules["has_credits"][0]:
        return _has_credits(run, lane, waiting.bytes_in(lane, stuck))
    place = _place(run, lane)
    account, rules = run.inputs[place], run.rules[0]
    if account["is_pausing"] == 0:
        return True  # XON is on its way
    left = waiting.bytes_in(lane, stuck)
    leaves = max(0, int(account["used"]) + int(account["headroom_used"]) - left)
    if leaves == 0 or account["headroom_used"] > leaves:
        return False  # XON is sent only when a packet leaves
    used = int(account["used"]) - (leaves - int(account["headroom_used"]))
    share = max(0, used - int(rules["reserve"]))
    if share == 0:
        return True
    return bool(share + int(rules["xon_offset"]) <= _threshold(run, lane, waiting, stuck))


def _threshold(run: PacketRun, lane: Lane, waiting: Waiting, stuck: set[Lane]) -> int:
    """Return the threshold of an input when the pool holds only what is stuck [byte]."""
    place, switch = _place(run, lane), int(run.ports["head"][lane.channel])
    has_settings = bool(run.rules["has_settings"][0])
    static = int(run.settings["xoff"][place] if has_settings else run.rules["xoff"][0])
    if static > 0:
        return static
    shared, reserve = 0, int(run.rules["reserve"][0])
    for buffer in waiting.parts:
        if run.ports["head"][buffer.channel] == switch:
            shared += max(0, waiting.bytes_in(buffer, stuck) - reserve)
    free = max(0, int(run.switches["pool"][switch]) - shared)
    alpha = run.settings["alpha_log2"][place] if has_settings else run.inputs["alpha_log2"][place]
    shift = int(alpha)
    return free << shift if shift >= 0 else free >> -shift


def _has_credits(run: PacketRun, lane: Lane, left_bytes: int) -> bool:
    """Whether there are credits for the next packet when only what is stuck remains.

    The sender learns a limit that has grown by ``update_blocks``, and no smaller news.
    """
    if left_bytes == 0:
        return True
    place = _place(run, lane)
    first, credit = int(run.queues["first"][place]), run.credits[place]
    full = int(run.serial["n_bytes"].max())
    need = int(run.packets["n_bytes"][first]) if first >= 0 else full
    sent, told = int(credit["sent"]), int(credit["told"])
    room = int(credit["room"]) - -(-left_bytes // BLOCK_BYTES)
    news = (sent + min(room, MOST_AHEAD) - told) % MODULUS
    if int(run.rules["update_blocks"][0]) <= news <= MOST_AHEAD:
        told += news
    return (told - sent - -(-need // BLOCK_BYTES)) % MODULUS <= MOST_AHEAD


def _cycle(waiting: Waiting, stuck: set[Lane]) -> list[Lane]:
    """Follow the most bytes from queue to queue until one comes again."""
    lane, row = min(stuck), list[Lane]()
    while lane not in row:
        row.append(lane)
        parts = {q: n for q, n in waiting.parts[lane].items() if q in stuck}
        lane = min(parts, key=lambda queue: (-parts[queue], queue))
    return row[row.index(lane) :]
