"""A packet problem checked: every array, every path, every parameter that can be wrong."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault
from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet_config import ClassKind, PacketConfig
from gpufabric.sim.packet_control_checks import check_controls, check_reads
from gpufabric.sim.packet_fault_rows import check_faults
from gpufabric.sim.packet_faults import PacketFault
from gpufabric.sim.packet_hop_checks import check_hops
from gpufabric.sim.packet_hops import HopTable
from gpufabric.sim.packet_infiniband_checks import check_credits
from gpufabric.sim.packet_messages import After, Operation, check_after
from gpufabric.sim.packet_pair_checks import check_queue_pairs, check_shared_pairs
from gpufabric.sim.packet_problem import PacketProblem, Wires
from gpufabric.sim.packet_switch_checks import check_ecn, check_places, check_switches

__all__ = ["CheckedPackets", "check_packets", "config_faults"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

MOST = 2**31 - 1  # indices and buffers are int32
MOST_CLASSES = 8
MOST_HEADER_BYTES = 65_536
MOST_PS = 2**54  # 5 hours


@dataclass(frozen=True)
class CheckedPackets:
    """A packet problem without a None, in the kernels' types."""

    wires: Wires
    paths: Paths
    back: Paths
    size_bytes: Longs  # int64[n_flows] [byte]
    path: Ints  # int32[n_flows]
    start_ps: Longs  # int64[n_flows] [ps]
    forwarding_ps: Longs  # int64[n_switches] [ps]
    buffer_bytes: Longs  # int64[n_switches] [byte]
    traffic_class: Ints  # int32[n_flows]
    faults: tuple[PacketFault, ...]
    hops: tuple[HopTable, ...]
    hops_from_us: tuple[float, ...]
    control: Ints  # int32[n_flows]
    operation: Ints  # int32[n_flows]
    queue_pair: Ints  # int32[n_flows]
    after: After | None

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return int(self.size_bytes.size)

    @cached_property
    def pairs(self) -> Longs:
        """int64[n_pairs]: the first message of each queue pair."""
        return np.unique(self.queue_pair, return_index=True)[1]

    @property
    def has_messages(self) -> bool:
        """Whether a queue pair has several messages."""
        return self.pairs.size < self.n_flows


def check_packets(problem: PacketProblem, config: PacketConfig) -> CheckedPackets:
    """Return the problem complete and in the kernels' types.

    Raises
    ------
    InputError
        With all faults found.
    """
    checks = ArrayChecks()
    wires = _check_wires(checks, problem.wires)
    n_flows = problem.n_flows
    _check_config(checks, config)
    check_places(checks, wires, config)
    paths = _check_rows(checks, "paths", problem.paths, wires.n_channels)
    back = _check_rows(checks, "back", problem.back, wires.n_channels)
    if paths.n_paths != back.n_paths:
        what = _("{n} rows.").format(n=back.n_paths)
        checks.fault("back", what, _("{n} rows, as in paths").format(n=paths.n_paths))
    path = np.arange(n_flows, dtype=np.int32) if problem.path is None else problem.path
    start_ps = np.zeros(n_flows, np.int64) if problem.start_ps is None else problem.start_ps
    control = np.zeros(n_flows, np.int32) if problem.control is None else problem.control
    operation = np.zeros(n_flows, np.int32) if problem.operation is None else problem.operation
    queue_pair = check_queue_pairs(checks, problem.queue_pair, n_flows)
    checked = CheckedPackets(
        wires,
        paths,
        back,
        _longs(checks, "size_bytes", problem.size_bytes, n_flows, MOST * 256),
        checks.ints("path", path, n_flows, 0, paths.n_paths),
        _longs(checks, "start_ps", start_ps, n_flows, MOST_PS),
        *_check_switches(checks, problem, config, int(wires.head.max(initial=-1)) + 1),
        _traffic_class(checks, problem, config),
        problem.faults,
        problem.hops,
        problem.hops_from_us,
        checks.ints("control", control, n_flows, 0, len(config.flow_controls)),
        checks.ints("operation", operation, n_flows, 0, len(Operation)),
        queue_pair,
        check_after(checks, problem.after, queue_pair),
    )
    if not checks.faults:
        _check_ends(checks, wires, paths, back, is_whole=not problem.hops)
        check_hops(checks, problem, wires, config)
        _check_length(checks, checked, config)
        check_shared_pairs(checks, checked)
        check_reads(checks, checked.operation, checked.control, config)
        check_faults(checks, problem.faults, wires, config)
    checks.raise_all()
    return checked


def config_faults(config: PacketConfig) -> list[Fault]:
    """Return what is wrong with settings, each under the name of its parameter."""
    checks = ArrayChecks()
    _check_config(checks, config)
    return checks.faults


def _check_switches(
    checks: ArrayChecks, problem: PacketProblem, config: PacketConfig, n_switches: int
) -> tuple[Longs, Longs]:
    """Return forwarding delay and buffer of each switch."""
    forwarding_ps, buffer_bytes = problem.forwarding_ps, problem.buffer_bytes
    if forwarding_ps is None:
        forwarding_ps = np.full(n_switches, round(config.forwarding_ns * 1000), np.int64)
    if buffer_bytes is None:
        buffer_bytes = np.full(n_switches, config.buffer.total_bytes, np.int64)
    return (
        _longs(checks, "forwarding_ps", forwarding_ps, n_switches, 10**12),
        _longs(checks, "buffer_bytes", buffer_bytes, n_switches, MOST),
    )


def _traffic_class(checks: ArrayChecks, problem: PacketProblem, config: PacketConfig) -> Ints:
    if problem.traffic_class is None:
        return np.full(problem.n_flows, config.data_class, np.int32)
    given, n_classes = problem.traffic_class, len(config.classes)
    return checks.ints("traffic_class", given, problem.n_flows, 0, n_classes)


def _longs(checks: ArrayChecks, where: str, values: Longs, size: int, most: int) -> Longs:
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "iu":
        what = _("the values are of type {dtype}.").format(dtype=array.dtype)
        checks.fault(where, what, _("whole numbers"))
        return np.zeros(size, np.int64)
    if array.shape != (size,):
        what = _("it has {n} values.").format(n=array.size)
        checks.fault(where, what, _("{n} values").format(n=size))
        return np.zeros(size, np.int64)
    wrong = (array < 0) | (array > most)
    if wrong.any():
        at = int(np.argmax(wrong))
        what = _("the value is {value}.").format(value=array[at])
        checks.fault(f"{where}[{at}]", what, _("{least} to {most}").format(least=0, most=most))
    return array.astype(np.int64)


def _check_wires(checks: ArrayChecks, wires: Wires) -> Wires:
    n = wires.n_channels
    gbps = checks.floats(
        "wires.gbps", wires.gbps, n, lambda v: (v > 0) & (v < np.inf), _("above 0, finite")
    )
    checked = Wires(
        gbps,
        _longs(checks, "wires.delay_ps", wires.delay_ps, n, MOST_PS),
        checks.ints("wires.tail", wires.tail, n, -1, MOST),
        checks.ints("wires.head", wires.head, n, -1, MOST),
        checks.ints("wires.reverse", wires.reverse, n, 0, n),
    )
    if checks.faults:
        return checked
    there = checked.reverse
    wrong = (
        (there[there] != np.arange(n))
        | (checked.tail[there] != checked.head)
        | (checked.head[there] != checked.tail)
    )
    if wrong.any():
        at = int(np.argmax(wrong))
        what = _("channel {channel} is not its way back.").format(channel=there[at])
        checks.fault(f"wires.reverse[{at}]", what, _("the other direction of the same link"))
    return checked


def _check_rows(checks: ArrayChecks, where: str, paths: Paths, n_channels: int) -> Paths:
    channel = checks.ints(f"{where}.channel", paths.channel, None, 0, n_channels)
    first = checks.csr(f"{where}.first", paths.first, channel.size, None)
    if paths.fraction is not None and (np.asarray(paths.fraction) != 1.0).any():
        checks.fault(f"{where}.fraction", _("a flow is split."), _("one path a flow"))
    return Paths(first, channel)


def _check_ends(
    checks: ArrayChecks, wires: Wires, paths: Paths, back: Paths, *, is_whole: bool
) -> None:
    """Note rows that do not lead from NIC to NIC, or do not come back."""
    for where, rows in (("paths", paths), ("back", back)):
        wrong = _broken_rows(wires, rows, is_whole=is_whole)
        if wrong.any():
            row = int(np.argmax(wrong))
            channels = rows.channel[rows.first[row] : rows.first[row + 1]]
            what = _("the channels {row} do not lead from a NIC to a NIC.").format(
                row=channels.tolist()
            )
            checks.fault(f"{where}[{row}]", what)
    if checks.faults:
        return
    goes, comes = paths.channel[paths.first[:-1]], back.channel[back.first[1:] - 1]
    at_far, from_far = paths.channel[paths.first[1:] - 1], back.channel[back.first[:-1]]
    wrong = (wires.reverse[goes] != comes) | (wires.reverse[at_far] != from_far)
    if wrong.any():
        what = _("it does not lead back to where row {row} of paths begins.")
        at = int(np.argmax(wrong))
        checks.fault(f"back[{at}]", what.format(row=at))


def _broken_rows(wires: Wires, rows: Paths, *, is_whole: bool) -> NDArray[np.bool_]:
    """Tell which rows do not lead from a NIC over switches to a NIC, one channel after another."""
    first, end = rows.first[:-1], rows.first[1:]
    broken: NDArray[np.bool_] = first == end
    if rows.channel.size == 0:
        return broken
    tails, heads = wires.tail[rows.channel], wires.head[rows.channel]
    apart = np.zeros(rows.channel.size, np.bool_)
    apart[:-1] = (heads[:-1] != tails[1:]) | (heads[:-1] < 0)
    apart[end[~broken] - 1] = False
    total = np.concatenate([[0], np.cumsum(apart)])
    inside = is_whole & (total[end] - total[first] > 0)
    broken |= inside
    whole = ~broken
    broken[whole] = (tails[first[whole]] != -1) | (heads[end[whole] - 1] != -1)
    return broken


def _check_length(checks: ArrayChecks, checked: CheckedPackets, config: PacketConfig) -> None:
    mtu = config.transport.mtu_bytes
    if checked.n_flows and int(checked.size_bytes.max()) // mtu >= MOST // 16:
        at = int(np.argmax(checked.size_bytes))
        what = _("{n} packets are too many.").format(n=int(checked.size_bytes[at]) // mtu)
        checks.fault(f"size_bytes[{at}]", what, _("at most {most}").format(most=MOST // 16))


def _check_config(checks: ArrayChecks, config: PacketConfig) -> None:
    n_classes = len(config.classes)
    if not 1 <= n_classes <= MOST_CLASSES:
        what = _("{n} classes.").format(n=n_classes)
        checks.fault("classes", what, _("{least} to {most}").format(least=1, most=MOST_CLASSES))
    for name, least in (("data_class", 0), ("ack_class", -1), ("cnp_class", 0)):
        checks.within(name, getattr(config, name), least, n_classes - 1)
    check_switches(checks, config)
    for field in fields(config.headers):
        value = getattr(config.headers, field.name)
        checks.within(f"headers.{field.name}", value, 0, MOST_HEADER_BYTES)
    checks.within("transport.mtu_bytes", config.transport.mtu_bytes, 1, 65_536)
    checks.within("transport.ack_every", config.transport.ack_every, 1, MOST)
    checks.within("transport.window_bytes", config.transport.window_bytes, 0, MOST)
    checks.within("transport.timeout_us", config.transport.timeout_us, 0, 1e9)
    checks.within("transport.retry_count", config.transport.retry_count, 0, 1000)
    apart = config.transport.most_apart_packets
    checks.within("transport.most_apart_packets", apart, 0, 65_536)
    checks.within("transport.reorder_packets", config.transport.reorder_packets, 0, 65_536)
    checks.within("buffer.total_bytes", config.buffer.total_bytes, 0, MOST)
    for name in ("reserve_bytes", "xoff_bytes", "xon_offset_bytes", "tail_bytes"):
        checks.within(f"buffer.{name}", getattr(config.buffer, name), 0, MOST)
    checks.within("buffer.alpha_log2", config.buffer.alpha_log2, -16, 16)
    checks.within("tick_ps", config.tick_ps, 1, 10**6)
    checks.within("forwarding_ns", config.forwarding_ns, 0, 1e9)
    checks.within("pause_reaction_ns", config.pause_reaction_ns, 0, 1e9)
    checks.within("seed", config.seed, 1, 2**63 - 1)
    if any(not 0 <= one < 1 for one in config.draws):
        checks.fault("draws", _("a number is not from 0 to below 1."))
    _check_control(checks, config)


def _check_control(checks: ArrayChecks, config: PacketConfig) -> None:
    if config.ecn is not None:
        check_ecn(checks, "ecn", config.ecn)
    check_credits(checks, config)
    check_controls(checks, config)
    if any(one.kind is ClassKind.LOSSLESS for one in config.classes):
        return
    if config.buffer.headroom_bytes:
        what = _("headroom without a lossless class.")
        checks.fault("buffer.headroom_bytes", what, _("0 or a lossless class"))
