"""Faults of a packet run checked, and written out as the schedule that the kernels follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.kernels.packet_events import NEVER
from gpufabric.kernels.packet_faults import (
    AVOID,
    CALM,
    CUT,
    LIMIT,
    LOSE,
    MEND,
    SLOW,
    SPEED,
    STORM,
    TABLE,
)
from gpufabric.kernels.packet_structs import FAULT_ROW, FAULTY
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_faults import (
    BitErrors,
    LinkDown,
    LinkFlap,
    PacketFault,
    PauseStorm,
    SlowHost,
    SlowLink,
    SmallMtu,
)
from gpufabric.sim.packet_problem import Wires

__all__ = ["Schedule", "chances", "check_faults", "faulty_channels", "schedule_of"]

PS = 1_000_000  # in a microsecond
MOST_US = 1e11  # 28 hours
MOST_FLAPS = 100_000
OF_LINK = (LinkDown, LinkFlap, SlowLink)
AT_NIC = (PauseStorm, SlowHost)


@dataclass(frozen=True)
class Schedule:
    """All changes in the order of time; what ends comes before what begins.

    `rates` has a bit error rate and a loss for each row of the table of chances.
    """

    time_ps: NDArray[np.int64]
    rows: Records  # FAULT_ROW
    rates: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class _Change:
    """One row: at this time, of this kind, with these values."""

    time_us: float
    what: int
    channel: int
    value: int = 0
    gbps: float = 0.0
    gap_us: float = 0.0
    end_us: float = math.inf
    xoff: int = 0
    xon: int = 0
    rank: int = 1  # of changes at one time: 0 for the end of a fault


def check_faults(
    checks: ArrayChecks, faults: Sequence[PacketFault], wires: Wires, config: PacketConfig
) -> None:
    """Note every fault that names what is not there, or a value out of range."""
    before = len(checks.faults)
    for at, fault in enumerate(faults):
        where = f"faults[{at}]"
        _within(checks, f"{where}.channel", fault.channel, 0, wires.n_channels - 1)
        _within(checks, f"{where}.start_us", fault.start_us, 0, MOST_US)
        if not (fault.start_us < fault.end_us <= MOST_US or fault.end_us == math.inf):
            what = _("the value is {value}.").format(value=fault.end_us)
            expected = _("above start_us, to {most}; .inf: never").format(most=MOST_US)
            checks.fault(f"{where}.end_us", what, expected)
        for name, (least, most) in _ranges(fault, config).items():
            _within(checks, f"{where}.{name}", getattr(fault, name), least, most)
    if len(checks.faults) == before:
        _check_places(checks, faults, wires)
        _check_flow_control(checks, faults, config)
        _check_overlaps(checks, faults, wires)


def _within(checks: ArrayChecks, where: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        what = _("the value is {value}.").format(value=value)
        checks.fault(where, what, _("{least} to {most}").format(least=least, most=most))


def _ranges(fault: PacketFault, config: PacketConfig) -> dict[str, tuple[float, float]]:
    """Least and most of each value that a fault of this kind has besides channel and time."""
    match fault:
        case PauseStorm():
            ranges = {"traffic_class": (0, len(config.classes) - 1), "every_us": (0.001, 1e9)}
        case BitErrors():
            ranges = {"bit_error_rate": (0.0, 1.0), "loss_per_packet": (0.0, 1.0)}
        case LinkDown():
            most_us = math.inf if math.isinf(fault.detect_us) else MOST_US
            ranges = {"detect_us": (0.0, most_us)}
        case LinkFlap():
            ranges = {
                "down_us": (0.001, 1e9),
                "up_us": (0.001, 1e9),
                "end_us": (0.0, fault.start_us + MOST_FLAPS * (fault.down_us + fault.up_us)),
            }
        case SlowLink():
            ranges = {"gbps": (1e-3, 1e6)}
        case SmallMtu():
            ranges = {"frame_bytes": (64, 10**6)}
        case SlowHost():
            ranges = {
                "gbps": (1e-3, 1e6),
                "buffer_bytes": (1, 2**31 - 1),
                "xoff_bytes": (0, fault.buffer_bytes),
                "xon_bytes": (0, fault.xoff_bytes),
            }
    return ranges


def _check_places(checks: ArrayChecks, faults: Sequence[PacketFault], wires: Wires) -> None:
    """Note storms that do not come from a NIC, and slow hosts behind none."""
    for at, fault in enumerate(faults):
        if not isinstance(fault, AT_NIC):
            continue
        ends = wires.tail if isinstance(fault, PauseStorm) else wires.head
        if ends[fault.channel] >= 0:
            what = _("there is no NIC at that end of channel {channel}.").format(
                channel=fault.channel
            )
            checks.fault(f"faults[{at}].channel", what)


def _check_flow_control(
    checks: ArrayChecks, faults: Sequence[PacketFault], config: PacketConfig
) -> None:
    """Note faults that need PFC where credits take its place."""
    for at, fault in enumerate(faults):
        if config.credits is not None and isinstance(fault, AT_NIC):
            what = _("{kind} needs PFC, and InfiniBand has credits.").format(
                kind=type(fault).__name__
            )
            checks.fault(f"faults[{at}]", what)


def _check_overlaps(checks: ArrayChecks, faults: Sequence[PacketFault], wires: Wires) -> None:
    """Note faults of one kind that hold for one channel at the same time."""
    until: dict[tuple[object, ...], float] = {}
    for at in sorted(range(len(faults)), key=lambda one: faults[one].start_us):
        fault = faults[at]
        channel = fault.channel
        if isinstance(fault, OF_LINK):
            channel = min(channel, int(wires.reverse[channel]))
        kind = LinkDown if isinstance(fault, LinkFlap) else type(fault)
        traffic = fault.traffic_class if isinstance(fault, PauseStorm) else 0
        key = kind, channel, traffic
        if fault.start_us < until.get(key, 0.0):
            what = _("another fault of this kind still holds at {us} us.").format(us=fault.start_us)
            checks.fault(f"faults[{at}].start_us", what, remedy=_("Let one end before the next."))
        until[key] = max(until.get(key, 0.0), fault.end_us)


def schedule_of(
    faults: Sequence[PacketFault], wires: Wires, table_us: Sequence[float], n_entries: int
) -> Schedule:
    """Return the changes that the faults are, and those of tables of `n_entries` groups each."""
    rates = [(0.0, 0.0)]
    changes = [change for fault in faults for change in _changes(fault, wires, rates)]
    changes += [_Change(us, TABLE, 0, (at + 1) * n_entries) for at, us in enumerate(table_us)]
    changes.sort(key=lambda change: (round(change.time_us * PS), change.rank))
    rows = records(FAULT_ROW, len(changes))
    for row, change in zip(rows, changes, strict=True):
        row.what, row.channel, row.value = change.what, change.channel, change.value
        row.gap_ps = round(change.gap_us * PS)
        row.end_ps = NEVER if math.isinf(change.end_us) else round(change.end_us * PS)
        row.xoff, row.xon, row.gbps = change.xoff, change.xon, change.gbps
    times = [round(change.time_us * PS) for change in changes]
    return Schedule(np.array(times, np.int64), rows, tuple(rates))


def _changes(
    fault: PacketFault, wires: Wires, rates: list[tuple[float, float]]
) -> Iterator[_Change]:
    """Rows of one fault, with its end if it has one."""
    channel, start, end = fault.channel, fault.start_us, fault.end_us
    match fault:
        case LinkDown() | LinkFlap() | SlowLink():
            yield from _link_changes(fault, wires)
        case PauseStorm():
            traffic, gap = fault.traffic_class, fault.every_us
            yield _Change(start, STORM, channel, traffic, gap_us=gap, end_us=end)
            yield from _end(_Change(end, CALM, channel, traffic))
        case BitErrors():
            rates.append((fault.bit_error_rate, fault.loss_per_packet))
            yield _Change(start, LOSE, channel, len(rates) - 1)
            yield from _end(_Change(end, LOSE, channel))
        case SmallMtu():
            yield _Change(start, LIMIT, channel, fault.frame_bytes)
            yield from _end(_Change(end, LIMIT, channel))
        case SlowHost():
            size, xoff, xon = fault.buffer_bytes, fault.xoff_bytes, fault.xon_bytes
            yield _Change(start, SLOW, channel, size, fault.gbps, xoff=xoff, xon=xon)
            yield from _end(_Change(end, SLOW, channel))


def _link_changes(fault: LinkDown | LinkFlap | SlowLink, wires: Wires) -> Iterator[_Change]:
    """Rows of a fault that holds for both directions of a link."""
    channel, start, end = fault.channel, fault.start_us, fault.end_us
    match fault:
        case LinkDown():
            yield from _down(channel, start, end, wires)
            for one in (channel, int(wires.reverse[channel])):
                yield from _timed(_Change(start + fault.detect_us, AVOID, one, 1))
                yield from _end(_Change(end + fault.detect_us, AVOID, one))
        case LinkFlap():
            period = fault.down_us + fault.up_us
            for turn in range(math.ceil((end - start) / period)):
                at = start + turn * period
                yield from _down(channel, at, min(end, at + fault.down_us), wires)
        case SlowLink():
            for one in (channel, int(wires.reverse[channel])):
                yield _Change(start, SPEED, one, gbps=fault.gbps)
                yield from _end(_Change(end, SPEED, one, gbps=float(wires.gbps[one])))


def _down(channel: int, start_us: float, end_us: float, wires: Wires) -> Iterator[_Change]:
    for one in (channel, int(wires.reverse[channel])):
        yield _Change(start_us, CUT, one)
        yield from _end(_Change(end_us, MEND, one))


def _timed(change: _Change) -> Iterator[_Change]:
    if not math.isinf(change.time_us):
        yield change


def _end(change: _Change) -> Iterator[_Change]:
    if not math.isinf(change.time_us):
        yield replace(change, rank=0)


def chances(schedule: Schedule, wire_bytes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return float64[n_rates, n_sizes]: chance that a frame of each size class is lost."""
    bit, packet = np.array(schedule.rates).T
    with np.errstate(divide="ignore", invalid="ignore"):
        kept_log = np.where(bit > 0, np.outer(8 * wire_bytes, np.log1p(-bit)), 0.0).T
    lost: NDArray[np.float64] = 1.0 - (1.0 - packet[:, None]) * np.exp(kept_log)
    return np.ascontiguousarray(lost)  # another order would be compiled for once more


def faulty_channels(faults: Sequence[PacketFault], wires: Wires) -> Records:
    """Return FAULTY[n_channels] before the first change; none without faults."""
    faulty = records(FAULTY, wires.n_channels if faults else 0)
    if faults:
        faulty["cut_ps"] = faulty["mended_ps"] = -NEVER
        faulty["wire_ps"] = wires.delay_ps
        faulty["host"] = -1
    return faulty
