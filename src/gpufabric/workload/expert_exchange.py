"""Time to send tokens to experts and back while decoding, by kernels made for few tokens.

Training sends large batches through NCCL or its like; decoding sends a few hundred kilobytes to
each peer, for which programs have own kernels that write straight into peers' memory.
"""

from __future__ import annotations

from gpufabric.workload.parallelism import Group

__all__ = ["exchange_s"]

START_US = 10.0
"""Beginning and end of a kernel and the first byte's way; assumed."""
NIC_SHARE = 0.78
"""Of a GPU's NIC: 39 GB/s of 50 with 128 ranks. Source: DeepEP README, low-latency kernels on
H800 and CX-7 400 Gb/s, which send all over the NIC, inside the host as well."""
NVLINK_SHARE = 0.8
"""Of a GPU's NVLink: 726 GB/s of 900 on one host of Blackwell. Source: DeepEP README, v2."""


def exchange_s(group: Group, n_bytes: float) -> float:
    """Seconds until each rank of a group has sent `n_bytes`, evenly to all ranks.

    Notes
    -----
    Over the network ``START + bytes / (NIC share * rate of a GPU's NIC)``; inside one NVLink
    domain all but the own part over NVLink.

    Source: DeepEP, README.md, as of 2025-04 and 2026-07.
    """
    cluster = group.cluster
    if cluster is None:
        return 0.0
    wire = cluster.wire_gbytes_per_s
    if group.crosses_network and wire is not None:
        rate = NIC_SHARE * wire / group.inside
    else:
        rate = NVLINK_SHARE * cluster.facts.nvlink_gbytes_per_s
        n_bytes *= (group.size - 1) / group.size
    return START_US / 1e6 + n_bytes / rate / 1e9
