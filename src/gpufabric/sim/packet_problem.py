"""What the packet engine is asked: ports and cables, paths, messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.flow_problem import Paths
from gpufabric.sim.packet_faults import PacketFault
from gpufabric.sim.packet_hops import HopTable
from gpufabric.sim.packet_messages import After, Operation

__all__ = ["After", "Operation", "PacketProblem", "Wires"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Wires:
    """The channels of a fabric, two for each link.

    Parameters
    ----------
    gbps
        float64[n_channels] [Gb/s].
    delay_ps
        int64[n_channels]: propagation [ps].
    tail
        int32[n_channels]: switch that each channel leaves; -1: a NIC.
    head
        int32[n_channels]: switch that each channel leads to; -1: a NIC.
    reverse
        int32[n_channels]: channel of the same link that comes back; PFC frames go there.
    """

    gbps: Floats
    delay_ps: Longs
    tail: Ints
    head: Ints
    reverse: Ints

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(np.size(self.gbps))


@dataclass(frozen=True)
class PacketProblem:
    """RDMA messages over a fabric, each on a queue pair of its own or several on one.

    Parameters
    ----------
    wires
        The channels.
    paths
        Rows of channels from the sender's NIC to the receiver's.
    back
        Rows of channels from the receiver's NIC to the sender's, for ACKs; row r answers row r of
        `paths`.
    size_bytes
        int64[n_flows]: message [byte].
    path
        int32[n_flows]: row of each flow; flow f uses row f where None.
    start_ps
        int64[n_flows] [ps]; 0 where None.
    forwarding_ps
        int64[n_switches]: from a packet's last bit at each switch to its place in the buffer [ps];
        ``PacketConfig.forwarding_ns`` where None.
    buffer_bytes
        int64[n_switches]: buffer of each switch [byte]; ``SwitchBuffer.total_bytes`` where None.
    traffic_class
        int8[n_flows]: class of each flow's data; ``PacketConfig.data_class`` where None.
    faults
        What goes wrong, and when.
    hops
        Tables of next hops, for routing packet by packet; of a row of `paths` or `back` only the
        first and last channel then matter, and those between need not follow each other. All have
        the same columns.
    hops_from_us
        When each table after the first begins to hold: rerouting by a controller [us].
    control
        int32[n_flows]: flow class of each: entry of ``PacketConfig.controls``; 0 where None.
    operation
        int32[n_flows]: an ``Operation`` each; ``WRITE`` where None.
    queue_pair
        int32[n_flows]: queue pair that each flow, a message, is sent on, from 0 without a gap; each
        has its own where None. Messages of one are posted in the order of their numbers, and have
        one path, traffic class and control.
    after
        Flows that others wait for; none where None.
    """

    wires: Wires
    paths: Paths
    back: Paths
    size_bytes: Longs
    path: Ints | None = None
    start_ps: Longs | None = None
    forwarding_ps: Longs | None = None
    buffer_bytes: Longs | None = None
    traffic_class: NDArray[np.int8] | None = None
    faults: tuple[PacketFault, ...] = ()
    hops: tuple[HopTable, ...] = ()
    hops_from_us: tuple[float, ...] = ()
    control: Ints | None = None
    operation: Ints | None = None
    queue_pair: Ints | None = None
    after: After | None = None

    @property
    def n_flows(self) -> int:
        """Number of flows."""
        return int(np.size(self.size_bytes))
