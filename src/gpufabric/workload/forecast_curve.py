"""Bus bandwidth of a collective over the size of its message, on a candidate's network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import InputError
from gpufabric.model.fabric import Fabric
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import Block
from gpufabric.workload.forecast import slowed_cluster
from gpufabric.workload.network_view import view_of

__all__ = ["BandwidthCurve", "bandwidth_curves"]

Floats = NDArray[np.float64]

SIZES_BYTES: Floats = np.exp2(np.arange(16, 34, dtype=np.float64))
"""64 KiB to 8 GiB: what nccl-tests are usually run over [byte]."""


@dataclass(frozen=True, eq=False)
class BandwidthCurve:
    """Bus bandwidth over size, all GPUs taking part.

    Parameters
    ----------
    operation
        ``all_reduce`` or ``alltoall``.
    size_bytes
        Message sizes as nccl-tests counts them: float64[n] [byte].
    busbw_gbytes_per_s, low_gbytes_per_s, high_gbytes_per_s
        Bus bandwidth, and the 80 % interval of what would be measured: float64[n] [GB/s].
    """

    operation: str
    size_bytes: Floats
    busbw_gbytes_per_s: Floats
    low_gbytes_per_s: Floats
    high_gbytes_per_s: Floats


def bandwidth_curves(
    fabric: Fabric, gpu: str, *, has_gpudirect: bool = True
) -> tuple[BandwidthCurve, ...]:
    """Return the curves of all-reduce and all-to-all; none where the GPU is unknown or alone.

    Parameters
    ----------
    fabric
        The candidate's fabric; today's hosts and links are taken.
    gpu
        Model of its GPUs.
    has_gpudirect
        Whether NICs reach the GPUs' memory themselves.
    """
    try:
        view = view_of(fabric, gpu, has_gpudirect=has_gpudirect)
    except InputError:
        return ()
    if view.cluster.n_ranks < 2:
        return ()
    return tuple(_curve(view.cluster, view.blocks, name) for name in ("all_reduce", "alltoall"))


def _curve(cluster: Cluster, blocks: tuple[Block, ...], operation: str) -> BandwidthCurve:
    slowed, _slowdown = slowed_cluster(cluster, blocks, operation)
    found = estimate(slowed, operation, SIZES_BYTES)
    gain = SIZES_BYTES * found.factor / 1e3
    return BandwidthCurve(
        operation,
        SIZES_BYTES,
        found.busbw_gbytes_per_s,
        gain / found.high_us,
        gain / found.low_us,
    )
