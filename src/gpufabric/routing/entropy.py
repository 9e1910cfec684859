"""What switches hash: the five-tuple of a RoCE flow, and the seed of each switch.

A connection has one or several queue pairs; each has a UDP source port of its own, made from the
two queue pair numbers as Linux and NIC firmware do, and is hashed on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpufabric.kernels.walk import mix_all
from gpufabric.model.fabric import Fabric

__all__ = ["ROCE_PORT", "Entropy", "SeedScope", "hash_seeds", "udp_source_port"]

Longs = npt.NDArray[np.int64]
AnyInts = npt.NDArray[np.integer[Any]]

ROCE_PORT = 4791
_UDP = 17
_QPN_MASK = 0xFFFFFF

SeedScope = Literal["switch", "tier", "fabric"]


def udp_source_port(local_qpn: AnyInts, remote_qpn: AnyInts) -> Longs:
    """Return the UDP source port of RoCE v2 packets between two queue pairs.

    Notes
    -----
    The product of the two 24-bit numbers is folded to a 20-bit flow label, and that to 14 bits
    under 0xC000, so that ports lie in 49152-65535.

    Source: Linux, include/rdma/ib_verbs.h, ``rdma_calc_flow_label`` and
    ``rdma_flow_label_to_udp_sport``.

    Examples
    --------
    >>> int(udp_source_port(np.array([0x11]), np.array([0x12]))[0])
    49458
    """
    label = np.asarray(local_qpn, np.int64) * np.asarray(remote_qpn, np.int64)
    label ^= label >> 20
    label ^= label >> 40
    label &= 0xFFFFF
    port: Longs = ((label & 0x3FFF) ^ (label >> 14)) | 0xC000
    return port


@dataclass(frozen=True)
class Entropy:
    """How flows differ for a hash.

    Parameters
    ----------
    seed
        Draws the queue pair numbers.
    queue_pairs
        Queue pairs of a connection; a flow is divided equally among them.
    """

    seed: int = 0
    queue_pairs: int = 1

    def keys(self, src_port: AnyInts, dst_port: AnyInts, flow: AnyInts) -> Longs:
        """Return int64[n_flows * queue_pairs], the hashed five-tuple of each queue pair, 32 bits.

        Parameters
        ----------
        src_port, dst_port
            int[n_flows]: NIC ports; their rows stand for their addresses.
        flow
            int[n_flows]: numbers of the flows, such as 0, 1, 2 …: another number is another
            connection with other queue pairs.
        """
        each = self.queue_pairs
        n_keys = len(src_port) * each
        pair = np.tile(np.arange(each, dtype=np.int64), len(src_port))
        local_qpn, remote_qpn = np.full((2, n_keys), self.seed & 0xFFFFFFFF, np.int64)
        for words in (np.repeat(np.asarray(flow, np.int64), each), pair):
            mix_all(words, local_qpn)
        remote_qpn[:] = local_qpn
        mix_all(np.ones(n_keys, np.int64), remote_qpn)
        source_port = udp_source_port(local_qpn & _QPN_MASK, remote_qpn & _QPN_MASK)
        key = np.full(n_keys, _UDP, np.int64)
        for words in (
            np.repeat(np.asarray(src_port, np.int64), each),
            np.repeat(np.asarray(dst_port, np.int64), each),
            source_port,
            np.full(n_keys, ROCE_PORT, np.int64),
        ):
            mix_all(words, key)
        return key


def hash_seeds(fabric: Fabric, seed: int = 0, scope: SeedScope = "switch") -> Longs:
    """Return int64[n_switches], the hash seed of each switch.

    Parameters
    ----------
    fabric
        The fabric.
    seed
        Draws the seeds.
    scope
        Which switches share a seed: each its own, one a ``tier``, or one for the whole ``fabric``.
        With one seed everywhere, switches of all tiers make the same choice for a flow: the
        second tier's links are used in part only (polarisation).
    """
    number = {
        "switch": np.arange(len(fabric.switches), dtype=np.int64),
        "tier": fabric.switches.tier.astype(np.int64),
        "fabric": np.zeros(len(fabric.switches), np.int64),
    }[scope]
    seeds = np.full(len(number), seed & 0xFFFFFFFF, np.int64)
    mix_all(number, seeds)
    return seeds
