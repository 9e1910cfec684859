"""What a packet run is to note beside its totals, and what it has noted: series and latencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpufabric.core.text import _
from gpufabric.kernels.packet_tape_structs import (
    BUSY,
    DEEPEST,
    FILLED,
    LAST,
    LOG_COLUMNS,
    LOGGED,
    N_LATENCIES,
    PAUSED,
    QUANTITIES,
    SUB_BITS,
    WIDTH,
    Tape,
)
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_problem import Wires

__all__ = [
    "NO_TAPE",
    "PacketLatencies",
    "PacketSeries",
    "PauseLog",
    "Recording",
    "latencies_of",
    "new_tape",
    "pause_log_of",
    "series_of",
    "with_more_packets",
]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

LEAST_BINS, MOST_BINS = 8, 65_536
CELL_BYTES = 8 * QUANTITIES


@dataclass(frozen=True)
class Recording:
    """What to note; memory does not grow with the run.

    Parameters
    ----------
    bins
        Bins of the series; fewer, if `series_bytes` asks for it; 0: no series.
    first_bin_ns
        Width of a bin to begin with [ns]; it doubles whenever the run outgrows the bins.
    channels
        Channels with series; all where None.
    series_bytes
        Most memory for the series [byte].
    pause_rows
        Events of pauses to note, the first ones; 0: none.
    with_latencies
        Count the data packets by their latency.
    deadlock_every_us
        Look for a deadlock in such steps until one is found [us]; 0: at the end of the run alone.
    """

    bins: int = 512
    first_bin_ns: float = 1000.0
    channels: tuple[int, ...] | None = None
    series_bytes: int = 134_217_728
    pause_rows: int = 100_000
    with_latencies: bool = True
    deadlock_every_us: float = 0.0


@dataclass(frozen=True)
class PacketSeries:
    """Queues, pauses and rates over time, in bins of one width.

    Parameters
    ----------
    bin_ps
        Width of a bin [ps]; bin b begins at ``b * bin_ps``. The last one may be cut short.
    end_ps
        Last time that anything was in a queue, sent or paused [ps]; timers may run on.
    channels
        int32[n]: channels that the rows of the others are.
    deepest_bytes, mean_bytes
        float64[n, n_classes, n_bins]: queue at the sending end [byte].
    busy, paused
        float64[n, n_classes, n_bins]: share of the time that the port sent packets of this class
        (PFC frames not counted), and that the class was paused.
    """

    bin_ps: int
    end_ps: int
    channels: Ints
    deepest_bytes: Floats
    mean_bytes: Floats
    busy: Floats
    paused: Floats

    @property
    def n_bins(self) -> int:
        """Bins up to the end of the run."""
        return int(self.busy.shape[2])

    @property
    def time_us(self) -> Floats:
        """float64[n_bins]: middle of each bin [us]."""
        edges = np.arange(self.n_bins + 1) * float(self.bin_ps)
        edges[-1] = max(edges[-2] + 1.0, min(edges[-1], float(self.end_ps)))
        return (edges[:-1] + edges[1:]) / 2e6


@dataclass(frozen=True)
class PauseLog:
    """Events of pauses as they happened; see sim/packet_pauses.py for what they tell together.

    Parameters
    ----------
    rows
        int64[n, 7]: the columns of kernels/packet_tape_structs.py.
    n_lost
        Events after the last row, for which there was no room.
    end_ps
        Last event of the run [ps].
    """

    rows: Longs
    n_lost: int
    end_ps: int


@dataclass(frozen=True)
class PacketLatencies:
    """Data packets that arrived, by the time since they were made; repeats count from theirs.

    Parameters
    ----------
    from_ps
        int64[n]: least latency of each place [ps]; a place reaches to the next one, 3 % further.
    packets
        int64[n_classes, n]: packets by class and place.
    """

    from_ps: Longs
    packets: Longs

    def quantile_ps(self, share: float) -> int:
        """Return the latency that `share` of all packets do not exceed, to 3 % [ps]; -1: none."""
        total = np.cumsum(self.packets.sum(axis=0))
        if total[-1] == 0:
            return -1
        return int(self.from_ps[np.searchsorted(total, max(1.0, share * total[-1]))])


NO_TAPE = Tape(
    row=np.empty(0, np.int32),
    bins=np.empty((0, 1, QUANTITIES), np.float64),
    depth=np.empty(0, np.int64),
    since_ps=np.empty(0, np.int64),
    log=np.empty((0, LOG_COLUMNS), np.int64),
    marks=np.array([1, 0, 0], np.int64),
    first_output=np.zeros(1, np.int32),
    outputs=np.empty(0, np.int32),
    sent_ps=np.empty(0, np.int64),
    latencies=np.empty((0, N_LATENCIES), np.int64),
)
"""Nothing is noted."""


def new_tape(recording: Recording, wires: Wires, n_classes: int, n_packets: int) -> Tape:
    """Return an empty tape for a run whose arrays have room for `n_packets`.

    Raises
    ------
    InputError
        With all faults of `recording`.
    """
    checks = ArrayChecks()
    for name, least, most in (
        ("bins", 0, MOST_BINS),
        ("first_bin_ns", 0.001, 1e9),
        ("pause_rows", 0, 10**8),
        ("series_bytes", 0, 2**40),
        ("deadlock_every_us", 0, 1e9),
    ):
        checks.within(f"recording.{name}", getattr(recording, name), least, most)
    every = np.arange(wires.n_channels) if recording.channels is None else recording.channels
    channels = checks.ints("recording.channels", every, None, 0, wires.n_channels)
    channels = np.unique(channels).astype(np.int32)
    n_rows, n_bins = channels.size * n_classes, recording.bins
    if n_bins and n_rows:
        room = recording.series_bytes // (CELL_BYTES * n_rows)
        if room < min(n_bins, LEAST_BINS):
            need = CELL_BYTES * n_rows * LEAST_BINS
            what = _("{n} channels need {need} bytes.").format(n=channels.size, need=need)
            remedy = _("Name fewer channels in recording.channels, or give more memory.")
            checks.fault("recording.series_bytes", what, remedy=remedy)
        n_bins = min(n_bins, room)
    checks.raise_all()
    tape = NO_TAPE._replace(marks=np.array([max(1, round(recording.first_bin_ns * 1000)), 0, 0]))
    if n_bins and n_rows:
        tape = _with_series(tape, channels, wires.n_channels, n_classes, n_bins)
    if recording.pause_rows:
        order = np.argsort(wires.tail, kind="stable")
        order = order[wires.tail[order] >= 0]
        n_switches = 1 + int(max(wires.tail.max(initial=-1), wires.head.max(initial=-1)))
        first = np.searchsorted(wires.tail[order], np.arange(n_switches + 1))
        tape = tape._replace(
            log=np.zeros((recording.pause_rows, LOG_COLUMNS), np.int64),
            first_output=first.astype(np.int32),
            outputs=order.astype(np.int32),
        )
    if recording.with_latencies:
        tape = tape._replace(
            sent_ps=np.zeros(n_packets, np.int64),
            latencies=np.zeros((n_classes, N_LATENCIES), np.int64),
        )
    return tape


def _with_series(tape: Tape, channels: Ints, n_channels: int, n_classes: int, n_bins: int) -> Tape:
    row = np.full(n_channels, -1, np.int32)
    row[channels] = n_classes * np.arange(channels.size)
    n_rows = n_classes * channels.size
    return tape._replace(
        row=row,
        bins=np.zeros((n_rows, n_bins, QUANTITIES), np.float64),
        depth=np.zeros(n_rows, np.int64),
        since_ps=np.zeros(n_rows, np.int64),
    )


def with_more_packets(tape: Tape, n_packets: int) -> Tape:
    """Return the tape with room for `n_packets`."""
    if tape.sent_ps.size == 0:
        return tape
    sent_ps = np.zeros(n_packets, np.int64)
    sent_ps[: tape.sent_ps.size] = tape.sent_ps
    return tape._replace(sent_ps=sent_ps)


def series_of(tape: Tape, n_classes: int) -> PacketSeries | None:
    """Return the series of a tape that was closed; None where none were asked for."""
    if tape.row.size == 0:
        return None
    bin_ps, end_ps = int(tape.marks[WIDTH]), int(tape.marks[LAST])
    n_bins = end_ps // bin_ps + 1
    cells = tape.bins[:, :n_bins].reshape(-1, n_classes, n_bins, QUANTITIES)
    length_ps = np.minimum(bin_ps, end_ps - np.arange(n_bins) * float(bin_ps))
    length_ps = np.maximum(length_ps, 1.0)  # a run may end where a bin begins
    return PacketSeries(
        bin_ps=bin_ps,
        end_ps=end_ps,
        channels=np.flatnonzero(tape.row >= 0).astype(np.int32),
        deepest_bytes=cells[..., DEEPEST].copy(),
        mean_bytes=cells[..., FILLED] / length_ps,
        busy=cells[..., BUSY] / length_ps,
        paused=cells[..., PAUSED] / length_ps,
    )


def latencies_of(tape: Tape) -> PacketLatencies | None:
    """Return the latencies of a tape; None where they were not asked for."""
    if tape.sent_ps.size == 0:
        return None
    return PacketLatencies(_least_ps(np.arange(N_LATENCIES)), tape.latencies.copy())


def _least_ps(place: ArrayLike) -> Longs:
    """Return the least latency that is counted at a place [ps]."""
    number = np.asarray(place, np.int64)
    shift = np.maximum(0, (number >> SUB_BITS) - 1)
    least: Longs = number - (shift << SUB_BITS) << shift
    return least


def pause_log_of(tape: Tape, end_ps: int) -> PauseLog | None:
    """Return the events of pauses that were written down; None where none were asked for."""
    n_logged, room = int(tape.marks[LOGGED]), tape.log.shape[0]
    if room == 0:
        return None
    return PauseLog(tape.log[:n_logged].copy(), max(0, n_logged - room), end_ps)
