"""The channels that flows cross, in CSR form: the outcome of every kind of routing.

``WalkedPaths.first``, ``channel``, ``fraction`` and ``latency_s`` are what ``sim.Paths`` takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.graph import Ends
from gpufabric.routing.channels import Channels

__all__ = [
    "LOOPS",
    "REACHED",
    "UNLINKED",
    "UNREACHABLE",
    "AnyInts",
    "WalkedPaths",
    "ends_of",
    "explicit_paths",
    "from_rows",
    "join_paths",
    "path_latency_s",
    "repeat_paths",
    "room_for",
    "status_words",
]

Ints = npt.NDArray[np.int32]
AnyInts = npt.NDArray[np.integer[Any]]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Status = npt.NDArray[np.int8]

REACHED = 0
UNREACHABLE = 1
UNLINKED = 2
LOOPS = 3

MOST_ENTRIES = 2**31 - 1


def status_words() -> dict[int, str]:
    """Return what each status says of a flow, in the language in use."""
    return {
        REACHED: _("has a path"),
        UNREACHABLE: _("no path leads to the destination"),
        UNLINKED: _("the NIC port of the source or the destination has no link that is up"),
        LOOPS: _("the forwarding tables send it round in a circle"),
    }


@dataclass(frozen=True, eq=False)
class WalkedPaths:
    """One row of channels a flow.

    Parameters
    ----------
    first
        int64[n_flows + 1]: row f has entries ``first[f]`` … ``first[f + 1] - 1``.
    channel
        int32[n_entries].
    fraction
        float64[n_entries]: part of the flow that crosses the channel [1]; all 1 where None.
    latency_s
        float64[n_flows]: delay of the channels, of the longest path where it has several [s].
    status
        int8[n_flows]: ``REACHED``, or why the row is empty. The row of a flow from a NIC port to
        itself is empty too: it does not leave the NIC.
    """

    first: Longs
    channel: Ints
    fraction: Floats | None
    latency_s: Floats
    status: Status

    @property
    def n_flows(self) -> int:
        """Number of rows."""
        return len(self.status)

    def row(self, flow: int) -> list[int]:
        """Return the channels of one flow."""
        row: list[int] = self.channel[self.first[flow] : self.first[flow + 1]].tolist()
        return row

    def load(self, n_channels: int, demand: Floats | None = None) -> Floats:
        """Return float64[n_channels]: sum of the demands that cross each channel; 1 a flow."""
        each = np.ones(self.n_flows) if demand is None else np.asarray(demand, np.float64)
        weight = np.repeat(each, np.diff(self.first))
        if self.fraction is not None:
            weight = weight * self.fraction
        return np.bincount(self.channel, weight, minlength=n_channels).astype(np.float64)

    def counts(self) -> dict[int, int]:
        """Return how many flows have each status."""
        return {code: int(np.count_nonzero(self.status == code)) for code in range(4)}


def ends_of(channels: Channels, src_port: AnyInts, dst_port: AnyInts) -> tuple[Ends, Status]:
    """Return where flows enter and leave the switches, and ``UNLINKED`` where they cannot.

    Raises
    ------
    InputError
        If a port is no NIC port of the fabric, or the arrays differ in length.
    """
    src, dst = np.asarray(src_port, np.int64), np.asarray(dst_port, np.int64)
    if src.shape != dst.shape or src.ndim != 1:
        what = _("{n} sources and {m} destinations.").format(n=src.size, m=dst.size)
        raise InputError(Fault("flows", what, _("as many of both")))
    n_nic_ports = int(np.count_nonzero(channels.fabric.ports.is_switch == 0))
    for where, ports in (("src_port", src), ("dst_port", dst)):
        wrong = (ports < 0) | (ports >= n_nic_ports)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(
                Fault(
                    f"{where}[{at}]",
                    _("{port} is no NIC port.").format(port=ports[at]),
                    _("0 to {last}").format(last=n_nic_ports - 1),
                )
            )
    leaf_from, leaf_to = channels.leaf_of[src], channels.leaf_of[dst]
    status = np.where((leaf_from < 0) | (leaf_to < 0), UNLINKED, REACHED).astype(np.int8)
    status[src == dst] = REACHED
    channel_out = channels.leaving[dst] ^ 1
    return Ends(leaf_from, leaf_to, channels.leaving[src], channel_out), status


def path_latency_s(
    channels: Channels, first: Longs, channel: Ints, fraction: Floats | None = None
) -> Floats:
    """Return float64[n_rows]: sum of the delays of each row's channels, weighted [s]."""
    delay_s = channels.latency_ns[channel] * 1e-9
    if fraction is not None:
        delay_s *= fraction
    total = np.concatenate([[0.0], np.cumsum(delay_s)])
    latency_s: Floats = total[first[1:]] - total[first[:-1]]
    return latency_s


def room_for(n_entries: int) -> None:
    """Raise where paths take more entries than can be numbered.

    Raises
    ------
    InputError
        If they do.
    """
    if n_entries > MOST_ENTRIES:
        raise InputError(
            Fault(
                "flows",
                _("their paths have {n} entries.").format(n=n_entries),
                _("at most {most}").format(most=MOST_ENTRIES),
                _("Take fewer flows at once, or fewer paths a flow."),
            )
        )


def join_paths(paths: WalkedPaths, per_flow: int) -> WalkedPaths:
    """Return one row a flow from `per_flow` consecutive rows each, its parts of equal size.

    Rows without a path take no part; a flow without any has the status of its first row.
    """
    status = paths.status.reshape(-1, per_flow)
    is_whole = (status == REACHED).any(axis=1)
    share = (status == REACHED) / np.maximum((status == REACHED).sum(axis=1), 1)[:, None]
    fraction = np.repeat(share.ravel(), np.diff(paths.first))
    if paths.fraction is not None:
        fraction = fraction * paths.fraction
    return WalkedPaths(
        np.ascontiguousarray(paths.first[::per_flow]),
        paths.channel,
        fraction,
        paths.latency_s.reshape(-1, per_flow).max(axis=1),
        np.where(is_whole, REACHED, status[:, 0]).astype(np.int8),
    )


def repeat_paths(paths: WalkedPaths, times: int) -> WalkedPaths:
    """Return every row so many times, one after the other."""
    row = np.repeat(np.arange(paths.n_flows), times)
    size = np.diff(paths.first)[row]
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    at = np.repeat(paths.first[:-1][row] - first[:-1], size) + np.arange(first[-1])
    fraction = None if paths.fraction is None else paths.fraction[at]
    return WalkedPaths(first, paths.channel[at], fraction, paths.latency_s[row], paths.status[row])


def from_rows(channels: Channels, rows: Sequence[Sequence[int]], status: Status) -> WalkedPaths:
    """Return paths from lists of channels, each flow on one path."""
    first = np.zeros(len(rows) + 1, np.int64)
    first[1:] = np.cumsum([len(row) for row in rows])
    channel = np.array([number for row in rows for number in row], np.int32)
    return WalkedPaths(first, channel, None, path_latency_s(channels, first, channel), status)


def explicit_paths(channels: Channels, rows: Sequence[Sequence[int]]) -> WalkedPaths:
    """Return paths given as lists of channels (source routing), checked.

    Raises
    ------
    InputError
        If a channel does not exist, is down, or does not begin where the one before it ends; all
        faults are told.
    """
    faults: list[Fault] = []
    n_channels = len(channels.capacity_gbps)
    owner = channels.fabric.port_vertex
    for flow, row in enumerate(rows):
        where = f"path[{flow}]"
        before = -1
        for channel in row:
            if not 0 <= channel < n_channels:
                what = _("there is no channel {channel}.").format(channel=channel)
                faults.append(Fault(where, what, _("0 to {last}").format(last=n_channels - 1)))
                break
            name = channels.name(channel)
            if channels.capacity_gbps[channel] <= 0:
                faults.append(Fault(where, _("{channel} is down.").format(channel=name)))
            is_link = channel < channels.n_link_channels
            start = int(owner[channels.tail_port[channel]]) if is_link else -1
            if start >= 0 and before not in {-1, start}:
                what = _("{channel} does not begin where the channel before it ends.").format(
                    channel=name
                )
                faults.append(Fault(where, what))
            before = int(owner[channels.head_port[channel]]) if is_link else -1
    if faults:
        raise InputError(faults)
    return from_rows(channels, rows, np.full(len(rows), REACHED, np.int8))
