"""What may still come after a pause was decided: the headroom of an input."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.sim.packet_config import PacketConfig

__all__ = ["headroom_for"]

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


def headroom_for(
    gbps: Floats, delay_ps: Longs, forwarding_ps: Longs, config: PacketConfig
) -> Longs:
    """Return int64[n_channels]: bytes that may still come after XOFF was decided [byte].

    The PFC frame waits for a full packet, is sent, travels and takes effect; the far end then
    finishes a full packet, which travels and is forwarded. Two packets are added for what does not
    divide.
    """
    headers = config.headers
    full = config.transport.mtu_bytes + headers.data_bytes + headers.first_bytes
    full += max(one.header_bytes[0] for one in config.flow_controls)
    wire = 2 * (full + headers.gap_bytes) + headers.pfc_bytes + headers.gap_bytes
    wait_ps = 2 * delay_ps + forwarding_ps + int(config.pause_reaction_ns * 1000)
    return (np.ceil(wait_ps * gbps / 8000) + wire + 2 * full).astype(np.int64)
