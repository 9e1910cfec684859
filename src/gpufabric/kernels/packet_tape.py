"""Notes of a packet run in bounded memory; nothing is done where nothing was asked for.

Series stand in a fixed number of bins, whose width doubles when the run outgrows them. The log of
pauses keeps the first ones. Latencies are counted by their leading bits.
"""

from __future__ import annotations

from gpufabric.kernels.jit import kernel_part, seldom_part, whole_kernel
from gpufabric.kernels.packet_events import NOW
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.packet_tape_structs import (
    ASKED,
    BUSY,
    BYTES,
    CAUSE,
    CAUSE_HELD,
    CHANNEL,
    CLASS,
    DEEPEST,
    FILLED,
    HELD_BACK,
    LAST,
    LOGGED,
    OVERRULED,
    PAUSED,
    QUANTITIES,
    SUB_BITS,
    TIME,
    WHAT,
    WIDTH,
    Tape,
)

__all__ = [
    "close_tape",
    "latency_place",
    "note_asked",
    "note_busy",
    "note_depth",
    "note_hold",
    "note_latency",
    "note_made",
    "note_overruled",
]


@kernel_part
def note_depth(run: PacketRun, number: int, traffic: int) -> None:
    """Note that the depth of a port's queue has changed.

    Reference: tests/reference/packet_tape.py, TapedEngine.note_depth.
    """
    if run.rules[0].has_tape and run.tape.row.size > 0 and run.tape.row[number] >= 0:
        n_classes = run.rules[0].n_classes
        if traffic < n_classes:
            n_bytes = run.queues[number * (n_classes + 1) + traffic].n_bytes
            keep_depth(run.tape, run.tape.row[number] + traffic, run.clock[NOW], n_bytes)


@kernel_part
def note_busy(run: PacketRun, number: int, traffic: int, time_ps: int) -> None:
    """Note that a port begins to send a packet, which takes so long.

    Reference: tests/reference/packet_tape.py, TapedEngine.transmit.
    """
    if run.rules[0].has_tape and run.tape.row.size > 0 and run.tape.row[number] >= 0:
        now = run.clock[NOW]
        keep_time(run.tape, run.tape.row[number] + traffic, BUSY, now, now + time_ps)


@kernel_part
def note_hold(run: PacketRun, number: int, traffic: int, what: int) -> None:
    """Note that a pause, or a want of credits, began or ended at a port, and what ended it.

    Reference: tests/reference/packet_tape.py, TapedEngine.hold.
    """
    if (
        run.rules[0].has_tape
        and run.tape.row.size > 0
        and run.tape.row[number] >= 0
        and what != HELD_BACK
    ):
        since_ps = run.held[number * (run.rules[0].n_classes + 1) + traffic].since_ps
        row = run.tape.row[number] + traffic
        keep_time(run.tape, row, PAUSED, since_ps, run.clock[NOW])
    if run.rules[0].has_tape and run.tape.log.shape[0] > 0:
        if run.rules[0].has_credits and what == HELD_BACK and run.ports[number].head >= 0:
            ask(run, number, traffic)
        write_log(run.tape, run.clock[NOW], what, number, traffic)


@kernel_part
def note_overruled(run: PacketRun, number: int, traffic: int) -> None:
    """Note that the watchdog drops what a pause keeps waiting, which the pause outlives.

    Reference: tests/reference/packet_tape.py, TapedPauses.watch.
    """
    if run.rules[0].has_tape and run.tape.log.shape[0] > 0:
        write_log(run.tape, run.clock[NOW], OVERRULED, number, traffic)


@kernel_part
def note_asked(run: PacketRun, channel: int, traffic: int) -> None:
    """Note that an input asks for a pause, and where most of its bytes wait.

    Reference: tests/reference/packet_tape.py, TapedEngine.send_pfc.
    """
    if run.rules[0].has_tape and run.tape.log.shape[0] > 0:
        ask(run, channel, traffic)


@kernel_part
def note_made(run: PacketRun, index: int) -> None:
    """Note when a data packet was made.

    Reference: tests/reference/packet_tape.py, TapedEngine.make_packet.
    """
    if run.rules[0].has_tape and run.tape.sent_ps.size > 0:
        run.tape.sent_ps[index] = run.clock[NOW]


@kernel_part
def note_latency(run: PacketRun, index: int) -> None:
    """Count a data packet that has reached its NIC by its latency.

    Reference: tests/reference/packet_tape.py, TapedEngine.receive.
    """
    if run.rules[0].has_tape and run.tape.sent_ps.size > 0:
        place = latency_place(run.clock[NOW] - run.tape.sent_ps[index])
        run.tape.latencies[run.packets[index].traffic, place] += 1


@seldom_part
def latency_place(time_ps: int) -> int:
    """Return the place of a latency: exact to 64, then by its first six bits.

    Reference: tests/reference/packet_tape.py, latency_place.
    """
    shift = 0
    while time_ps >> shift >= 2 << SUB_BITS:
        shift += 1
    return (shift << SUB_BITS) + (time_ps >> shift)


@seldom_part
def keep_depth(tape: Tape, row: int, now_ps: int, n_bytes: int) -> None:
    """Add the depth that a queue had until now to the bins, and take in its new one.

    Reference: tests/reference/packet_tape.py, depth_bins.
    """
    before = tape.depth[row]
    if before > 0:
        keep_time(tape, row, FILLED, tape.since_ps[row], now_ps)
    reach(tape, now_ps)
    cell = tape.bins[row, now_ps // tape.marks[WIDTH]]
    cell[DEEPEST] = max(cell[DEEPEST], n_bytes)
    tape.depth[row] = n_bytes
    tape.since_ps[row] = now_ps


@seldom_part
def keep_time(tape: Tape, row: int, quantity: int, since_ps: int, until_ps: int) -> None:
    """Add a span of time to the bins that it crosses; for ``FILLED`` times the depth.

    Reference: tests/reference/packet_tape.py, span_bins.
    """
    reach(tape, until_ps)
    width_ps = tape.marks[WIDTH]
    since_ps = max(0, since_ps)
    at = since_ps // width_ps
    while since_ps < until_ps:
        edge_ps = min(until_ps, (at + 1) * width_ps)
        cell = tape.bins[row, at]
        if quantity == FILLED:
            cell[FILLED] += float(tape.depth[row]) * (edge_ps - since_ps)
            cell[DEEPEST] = max(cell[DEEPEST], tape.depth[row])
        else:
            cell[quantity] += edge_ps - since_ps
        since_ps = edge_ps
        at += 1


@seldom_part
def reach(tape: Tape, time_ps: int) -> None:
    """Widen the bins until they reach a time, and note it as the last one.

    Reference: tests/reference/packet_tape.py, bin_width_ps.
    """
    tape.marks[LAST] = max(tape.marks[LAST], time_ps)
    while time_ps >= tape.bins.shape[1] * tape.marks[WIDTH]:
        widen(tape)


@seldom_part
def widen(tape: Tape) -> None:
    """Double the width of the bins: each new one takes up two.

    Reference: tests/reference/packet_tape.py, bin_width_ps.
    """
    n_rows, n_bins = tape.bins.shape[:2]
    for row in range(n_rows):
        cells = tape.bins[row]
        for at in range(n_bins):
            for quantity in range(QUANTITIES):
                one = other = 0.0
                if 2 * at < n_bins:
                    one = cells[2 * at, quantity]
                if 2 * at + 1 < n_bins:
                    other = cells[2 * at + 1, quantity]
                cells[at, quantity] = max(one, other) if quantity == DEEPEST else one + other
    tape.marks[WIDTH] *= 2


@seldom_part
def write_log(tape: Tape, now_ps: int, what: int, channel: int, traffic: int) -> int:
    """Write a row of the log, if there is room, and return its number; count it in any case.

    Reference: tests/reference/packet_tape.py, TapedEngine.
    """
    at = tape.marks[LOGGED]
    tape.marks[LOGGED] += 1
    if at >= tape.log.shape[0]:
        return -1
    row = tape.log[at]
    row[TIME], row[WHAT], row[CHANNEL], row[CLASS], row[CAUSE] = now_ps, what, channel, traffic, -1
    return int(at)


@seldom_part
def ask(run: PacketRun, channel: int, traffic: int) -> None:
    """Write into the log that an input asks for a pause; the fullest output of its bytes first.

    Reference: tests/reference/packet_tape.py, TapedEngine.send_pfc.
    """
    at = write_log(run.tape, run.clock[NOW], ASKED, channel, traffic)
    if at < 0:
        return
    row, switch = run.tape.log[at], run.ports[channel].head
    for place in range(run.tape.first_output[switch], run.tape.first_output[switch + 1]):
        output = run.tape.outputs[place]
        n_bytes = bytes_from(run, channel, output, traffic)
        if n_bytes > row[BYTES]:
            row[BYTES] = n_bytes
            row[CAUSE] = output
    if row[CAUSE] >= 0:
        row[CAUSE_HELD] = run.ports[row[CAUSE]].paused >> traffic & 1


@seldom_part
def bytes_from(run: PacketRun, channel: int, output: int, traffic: int) -> int:
    """Return the bytes in a queue that came by one channel.

    Reference: tests/reference/packet_tape.py, TapedEngine.send_pfc.
    """
    index = run.queues[output * (run.rules[0].n_classes + 1) + traffic].first
    n_bytes = 0
    while index >= 0:
        packet = run.packets[index]
        if packet.channel == channel:
            n_bytes += packet.n_bytes
        index = packet.following
    return n_bytes


@whole_kernel
def close_tape(run: PacketRun) -> None:
    """Bring depths and pauses that last to the end of the run.

    Reference: tests/reference/packet_tape.py, TapedEngine.
    """
    tape, now, n_classes = run.tape, run.clock[NOW], run.rules[0].n_classes
    for number in range(tape.row.size):
        if tape.row[number] < 0:
            continue
        for traffic in range(n_classes):
            row = tape.row[number] + traffic
            if tape.depth[row] > 0:
                keep_depth(tape, row, now, tape.depth[row])
            if run.ports[number].paused >> traffic & 1:
                since_ps = run.held[number * (n_classes + 1) + traffic].since_ps
                keep_time(tape, row, PAUSED, since_ps, now)
