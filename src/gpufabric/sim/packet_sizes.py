"""How long packets are: size classes, which every table of times and lengths is indexed by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_port import SIZE_ACK, SIZE_CNP
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_control_setup import header_bytes
from gpufabric.sim.packet_messages import Operation

__all__ = ["Sizes", "sizes_of"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

COMMON_SIZES = 3  # data sizes with lanes


@dataclass(frozen=True)
class Sizes:
    """Size classes of packets, and those of each flow's first, middle and last packet."""

    n_bytes: Longs  # int64[n_sizes]: in buffers [byte]
    wire_bytes: Longs  # int64[n_sizes] [byte]
    n_packets: Longs  # int64[n_flows]
    of_flow: Ints  # int32[3, n_flows]
    is_common: NDArray[np.bool_]  # bool[n_sizes]
    ack: Ints  # int32[n_flows]: size class of ACKs, or of the requests of a READ


def sizes_of(checked: CheckedPackets, config: PacketConfig) -> Sizes:
    """Return the sizes of all packets; PFC, ACK and CNP come first, then ACKs of other lengths.

    The three data sizes with the most packets are common, of equals the largest; control sizes are.
    """
    headers, mtu = config.headers, config.transport.mtu_bytes
    data_extra, ack_extra = header_bytes(config)
    n_packets = np.maximum(1, -(-checked.size_bytes // mtu))
    left = checked.size_bytes - (n_packets - 1) * mtu
    bare = np.stack([np.minimum(checked.size_bytes, mtu), np.full_like(left, mtu), left])
    bare += headers.data_bytes + data_extra[checked.control]
    is_read = checked.operation == Operation.READ
    bare[0] += np.where(checked.operation == Operation.WRITE, headers.first_bytes, 0)
    bare[::2] += np.where(is_read, headers.response_bytes, 0)
    count = np.stack([np.ones_like(left), np.maximum(n_packets - 2, 0), n_packets > 1])
    values, kind = np.unique(bare, return_inverse=True)
    weight = np.bincount(kind.ravel(), count.ravel(), minlength=values.size)
    common = np.lexsort((-values, -weight))[:COMMON_SIZES]
    extras, ack = np.unique(np.append(0, ack_extra), return_inverse=True)
    control = [headers.pfc_bytes, headers.ack_bytes, headers.cnp_bytes]
    control += [headers.ack_bytes + int(extra) for extra in extras[1:]]
    ack = np.where(ack == 0, SIZE_ACK, ack + SIZE_CNP)[1:][checked.control]
    if is_read.any():
        ack[is_read] = len(control)
        control.append(headers.request_bytes)
    is_common = np.zeros(len(control) + values.size, np.bool_)
    is_common[: len(control)] = True
    is_common[len(control) + common] = True
    n_bytes = np.concatenate([control, values])
    return Sizes(
        n_bytes,
        n_bytes + headers.gap_bytes,
        n_packets,
        (kind.reshape(bare.shape) + len(control)).astype(np.int32),
        is_common,
        ack.astype(np.int32),
    )
