"""Messages packet by packet: finish times, drops, pauses, ECN marks, CNPs and what was sent again.

The packet model of docs/models/packet.md. This module speaks picoseconds and bytes;
kernels/packet.py does the work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.packet import NEEDS_ROOM, run_packets
from gpufabric.kernels.packet_events import LANE_BITS, N_EVENTS, N_TRACED, NEVER, NOW
from gpufabric.kernels.packet_settings import LOSSLESS
from gpufabric.kernels.packet_structs import (
    LOST_BY_ERROR,
    LOST_BY_LINK,
    LOST_BY_SIZE,
    LOST_IN_HOST,
    LOST_WITHOUT_WAY,
    PacketRun,
)
from gpufabric.kernels.packet_tape import close_tape
from gpufabric.sim.packet_checks import check_packets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_deadlock import Deadlock, find_deadlock
from gpufabric.sim.packet_faults import PauseStorm
from gpufabric.sim.packet_flow_outcome import FlowOutcome, flow_outcome
from gpufabric.sim.packet_infiniband import CreditOutcome, credit_outcome
from gpufabric.sim.packet_ledger import KINDS, Ledger, ledger_of
from gpufabric.sim.packet_messages import After, Operation
from gpufabric.sim.packet_problem import PacketProblem, Wires
from gpufabric.sim.packet_recording import (
    PacketLatencies,
    PacketSeries,
    PauseLog,
    Recording,
    latencies_of,
    new_tape,
    pause_log_of,
    series_of,
)
from gpufabric.sim.packet_setup import new_packet_run, settled, with_more_room

__all__ = [
    "KINDS",
    "After",
    "CreditOutcome",
    "FlowOutcome",
    "Ledger",
    "Operation",
    "PacketConfig",
    "PacketProblem",
    "PacketResult",
    "PortOutcome",
    "Recording",
    "Wires",
    "simulate_packets",
]

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class PortOutcome:
    """What became of each channel; arrays of two dimensions have a column for each class.

    Parameters
    ----------
    packets, wire_bytes
        int64[n_channels]: sent, PFC frames too [byte, with preamble and gap].
    marked
        int64[n_channels]: packets marked by ECN.
    most_queued_bytes
        int64[n_channels, n_classes]: deepest queue [byte].
    pauses, paused_ps
        int64[n_channels, n_classes]: XOFF that took effect at the sending port, or times that a
        virtual lane had no credits for what was next; and for how long in all [ps].
    dropped
        int64[n_channels, n_classes]: packets that came by the channel and found no room.
    expired
        int64[n_channels, n_classes]: pauses that ended by their time, without XON.
    storms, storm_ps
        int64[n_channels, n_classes]: storms that the watchdog saw, and how long in all [ps].
    watchdog_dropped
        int64[n_channels, n_classes]: packets that it dropped.
    """

    packets: Longs
    wire_bytes: Longs
    marked: Longs
    most_queued_bytes: Longs
    pauses: Longs
    paused_ps: Longs
    dropped: Longs
    expired: Longs
    storms: Longs
    storm_ps: Longs
    watchdog_dropped: Longs


@dataclass(frozen=True)
class PacketResult:
    """How a run went.

    Parameters
    ----------
    flows, ports, ledger
        By flow, by channel, by kind of packet.
    credits
        By channel, for InfiniBand; None otherwise.
    drops
        Packets dropped by reason: ``headroom`` (a lossless class), ``buffer`` (a lossy one),
        ``watchdog`` (a storm), ``link`` (it was down), ``error`` (spoilt), ``mtu`` (too long for a
        port), ``host`` (no room in a NIC with a slow host), ``route`` (its switch knew no way).
    most_shared_bytes
        int64[n_switches]: most of the shared pool in use [byte].
    hops
        int64[5]: channels crossed, by kind of packet.
    end_ps
        Last event [ps].
    n_events
        Events in all.
    trace
        int64[rows, 5]: the first events: time, kind, number, flow, packet.
    series, latencies, pause_log
        What was asked for with `recording`, otherwise None.
    deadlock
        Queues that can never move, if there are any.
    """

    flows: FlowOutcome
    ports: PortOutcome
    ledger: Ledger
    credits: CreditOutcome | None
    drops: dict[str, int]
    most_shared_bytes: Longs
    hops: Longs
    end_ps: int
    n_events: int
    trace: Longs
    series: PacketSeries | None
    latencies: PacketLatencies | None
    pause_log: PauseLog | None
    deadlock: Deadlock | None


def simulate_packets(
    problem: PacketProblem,
    config: PacketConfig | None = None,
    *,
    until_ps: int | None = None,
    trace_rows: int = 0,
    recording: Recording | None = None,
) -> PacketResult:
    """Run messages packet by packet; times in picoseconds.

    Parameters
    ----------
    problem
        Channels, paths and messages.
    config
        Hosts and switches; RoCE v2 without rate control where None.
    until_ps
        End of the run [ps]; until nothing more happens where None.
    trace_rows
        Events to note, the first ones.
    recording
        Series, pauses and latencies to note; none where None.

    Raises
    ------
    InputError
        If an array or parameter is wrong; all faults are told.
    LedgerError
        If what was sent is not what was received, dropped or is in flight: never, or the engine
        is wrong.

    Examples
    --------
    One packet of 1,000 B over a cable of 1 us between two NICs at 100 Gb/s: 1,098 B on the wire
    take 87,840 ps:

    >>> from gpufabric.sim.flow_problem import Paths
    >>> wires = Wires(
    ...     gbps=np.array([100.0, 100.0]),
    ...     delay_ps=np.array([1_000_000, 1_000_000]),
    ...     tail=np.array([-1, -1]),
    ...     head=np.array([-1, -1]),
    ...     reverse=np.array([1, 0]),
    ... )
    >>> problem = PacketProblem(
    ...     wires, Paths.from_lists([[0]]), Paths.from_lists([[1]]), np.array([1000])
    ... )
    >>> simulate_packets(problem).flows.fct_ps.tolist()
    [1087840]
    """
    if config is None:
        config = PacketConfig()
    checked = check_packets(problem, config)
    if until_ps is not None and not 0 <= until_ps < NEVER:
        what = _("the value is {value}.").format(value=until_ps)
        raise InputError(Fault("until_ps", what, _("0 or more")))
    endless = [isinstance(one, PauseStorm) and math.isinf(one.end_us) for one in problem.faults]
    if until_ps is None and any(endless):
        what = _("a storm without end has a run without end.")
        remedy = _("Give the run or the storm an end.")
        raise InputError(Fault(f"faults[{endless.index(True)}].end_us", what, remedy=remedy))
    run = new_packet_run(checked, config, trace_rows)
    if recording is not None:
        n_classes = len(config.classes)
        run.rules["has_tape"] = True
        run = run._replace(tape=new_tape(recording, checked.wires, n_classes, run.packets.size))
    run = settled(run)
    stop_ps = NEVER - 1 if until_ps is None else until_ps
    every_us = 0.0 if recording is None else recording.deadlock_every_us
    run, deadlock = _run_looking(run, stop_ps, round(every_us * 1_000_000))
    if recording is not None:
        close_tape(run)
    return PacketResult(
        flows=flow_outcome(run, checked.start_ps, checked.queue_pair),
        ports=_ports(run),
        ledger=ledger_of(run),
        credits=credit_outcome(run),
        drops=_drops(run),
        most_shared_bytes=run.switches["most_shared"].copy(),
        hops=run.counts["hops"].copy(),
        end_ps=int(run.clock[NOW]),
        n_events=int(run.clock[N_EVENTS]),
        trace=run.trace[: run.clock[N_TRACED]],
        series=series_of(run.tape, len(config.classes)),
        latencies=latencies_of(run.tape),
        pause_log=pause_log_of(run.tape, int(run.clock[NOW])),
        deadlock=deadlock,
    )


def _run_looking(run: PacketRun, stop_ps: int, every_ps: int) -> tuple[PacketRun, Deadlock | None]:
    """Run to the end; look for a deadlock in steps until one is found, and at the end."""
    deadlock, next_ps = None, every_ps
    while every_ps and deadlock is None and next_ps < stop_ps and run.due[1] < NEVER:
        run = _run_until(run, next_ps)
        deadlock = find_deadlock(run)
        next_ps = every_ps * (1 + max(next_ps, int(run.due[1]) >> LANE_BITS) // every_ps)
    run = _run_until(run, stop_ps)
    return run, find_deadlock(run) if deadlock is None else deadlock


def _run_until(run: PacketRun, until_ps: int) -> PacketRun:
    while run_packets(run, until_ps) == NEEDS_ROOM:
        run = with_more_room(run)
    return run


def _ports(run: PacketRun) -> PortOutcome:
    n_classes = int(run.rules["n_classes"][0])
    shape = (run.ports.size, n_classes + 1)
    bits = run.ports["paused"][:, None] >> np.arange(n_classes) & 1
    held = run.held["held_ps"].reshape(shape)[:, :n_classes]
    since = run.held["since_ps"].reshape(shape)[:, :n_classes]
    return PortOutcome(
        packets=run.ports["n_packets"].copy(),
        wire_bytes=run.ports["wire_bytes"].copy(),
        marked=run.aside["n_marked"].astype(np.int64),
        most_queued_bytes=_by_class(run.queues["most_bytes"], shape),
        pauses=_by_class(run.held["n_pauses"], shape),
        paused_ps=held + np.where(bits, run.clock[NOW] - since, 0),
        dropped=_by_class(run.held["n_dropped"], shape),
        **_watched(run, shape),
    )


def _watched(run: PacketRun, shape: tuple[int, int]) -> dict[str, Longs]:
    pauses = run.pauses
    if pauses.size == 0:
        names = ("expired", "storms", "storm_ps", "watchdog_dropped")
        return {name: np.zeros((shape[0], shape[1] - 1), np.int64) for name in names}
    open_ps = np.where(pauses["storm"] > 0, run.clock[NOW] - pauses["storm_since_ps"], 0)
    return {
        "expired": _by_class(pauses["n_expired"], shape),
        "storms": _by_class(pauses["n_storms"], shape),
        "storm_ps": _by_class(pauses["storm_ps"] + open_ps, shape),
        "watchdog_dropped": _by_class(pauses["n_dropped"], shape),
    }


def _by_class(values: NDArray[np.integer], shape: tuple[int, int]) -> Longs:
    return values.reshape(shape)[:, :-1].astype(np.int64)


def _drops(run: PacketRun) -> dict[str, int]:
    n_classes = int(run.rules["n_classes"][0])
    each = run.held["n_dropped"].reshape(-1, n_classes + 1)[:, :n_classes]
    bits = int(run.rules["lossless"][0]) >> np.arange(n_classes) & 1
    is_lossless = np.broadcast_to(bits == 1, each.shape)
    if run.settings.size:
        is_lossless = run.settings["kind"].reshape(-1, n_classes + 1)[:, :-1] == LOSSLESS
    return {
        "headroom": int(each[is_lossless].sum()),
        "buffer": int(each[~is_lossless].sum()),
        "link": int(run.lost[LOST_BY_LINK]),
        "error": int(run.lost[LOST_BY_ERROR]),
        "mtu": int(run.lost[LOST_BY_SIZE]),
        "host": int(run.lost[LOST_IN_HOST]),
        "route": int(run.lost[LOST_WITHOUT_WAY]),
        "watchdog": int(run.pauses["n_dropped"].sum()),
    }
