"""Completion times of flows that are alone in the fabric, packet by packet, in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_fabric import QueuePairs
from gpufabric.sim.packet_problem import PacketProblem
from gpufabric.sim.profile import Profile
from gpufabric.sim.row_arrays import row_sums

__all__ = ["alone_s"]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

PS_PER_S = 1e12


def alone_s(problem: PacketProblem, pairs: QueuePairs, profile: Profile, n_flows: int) -> Floats:
    """Return float64[n_flows]: from start to last byte if nothing else were there [s].

    The first packet travels to the slowest channel, all packets pass that one after another, and
    the last packet travels on. Where a flow has several queue pairs, all their packets leave its
    NIC one after another too. No flow can be faster; it is as fast if nothing is in its way.
    """
    config = profile.config
    whole_bytes, first_bytes, last_bytes = _wire_bytes(pairs.size_bytes, config)
    first, channel = pairs.paths.first, pairs.paths.channel
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    ps_per_byte = 8000.0 / problem.wires.gbps[channel]
    slowest = _last_of_most(first, ps_per_byte)
    at = np.arange(len(channel))
    before, after = at < slowest[owner], at > slowest[owner]
    travel = ps_per_byte * np.where(before, first_bytes[owner], last_bytes[owner])
    travel_ps = row_sums(first, np.where(before | after, travel, 0.0))
    delay_ps = _delays(problem, pairs, config)
    alone_ps = travel_ps + delay_ps + whole_bytes * ps_per_byte[slowest]
    onward = np.where(at > first[:-1][owner], ps_per_byte * last_bytes[owner], 0.0)
    nics_ps = _through_nics(problem, pairs, whole_bytes, row_sums(first, onward) + delay_ps)
    flow_ps = np.zeros(n_flows)
    slack = _cut_ps(pairs, config)
    np.maximum.at(flow_ps, pairs.flow, np.floor(np.maximum(alone_ps, nics_ps) - slack))
    return flow_ps / PS_PER_S


def _cut_ps(pairs: QueuePairs, config: PacketConfig) -> Longs:
    """Most that a queue pair can gain, as times of sending are cut to whole ticks [ps]."""
    mtu = config.transport.mtu_bytes
    count = np.maximum(1, -(-pairs.size_bytes // mtu))
    together = np.bincount(pairs.flow, count)[pairs.flow]
    gain_ps: Longs = (together + np.diff(pairs.paths.first)).astype(np.int64) * config.tick_ps
    return gain_ps


def _wire_bytes(size: Longs, config: PacketConfig) -> tuple[Longs, Longs, Longs]:
    """Bytes on the wire of all packets of each queue pair, of its first and of its last."""
    mtu, headers = config.transport.mtu_bytes, config.headers
    count = np.maximum(1, -(-size // mtu))
    around = headers.data_bytes + headers.gap_bytes
    first = np.minimum(size, mtu) + around + headers.first_bytes
    last = size - (count - 1) * mtu + around + np.where(count == 1, headers.first_bytes, 0)
    return size + count * around + headers.first_bytes, first, last


def _last_of_most(first: Longs, values: Floats) -> Longs:
    """Place of the last of the largest values of each row."""
    most = np.maximum.reduceat(values, first[:-1]) if len(values) else np.empty(0)
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    at = np.flatnonzero(values == most[owner])
    place = np.zeros(len(first) - 1, np.int64)
    np.maximum.at(place, owner[at], at)
    return place


def _delays(problem: PacketProblem, pairs: QueuePairs, config: PacketConfig) -> Floats:
    """Cables and switches on the way of each queue pair [ps]."""
    channel = pairs.paths.channel
    delay_ps = problem.wires.delay_ps[channel].astype(np.float64)
    head = problem.wires.head[channel]
    if problem.forwarding_ps is not None:
        delay_ps += np.append(problem.forwarding_ps, 0)[head]
    else:
        delay_ps += np.where(head >= 0, round(config.forwarding_ns * 1000), 0)
    return row_sums(pairs.paths.first, delay_ps)


def _through_nics(
    problem: PacketProblem, pairs: QueuePairs, whole_bytes: Longs, onward_ps: Floats
) -> Floats:
    """Time until all packets of a flow have left a NIC port of its and the last is there [ps].

    Which queue pair's packet is the last is not known: the one that has the shortest way.
    """
    nic = pairs.paths.channel[pairs.paths.first[:-1]].astype(np.int64)
    key = pairs.flow * problem.wires.n_channels + nic
    port, which = np.unique(key, return_inverse=True)
    together = np.bincount(which, whole_bytes, minlength=len(port))
    shortest_ps = np.full(len(port), np.inf)
    np.minimum.at(shortest_ps, which, onward_ps)
    leave_ps = together * 8000.0 / problem.wires.gbps[port % problem.wires.n_channels]
    latest_ps: Floats = (leave_ps + shortest_ps)[which]
    return latest_ps
