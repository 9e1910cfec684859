from __future__ import annotations

from dataclasses import replace

import pytest

from gpufabric.sim.packet import simulate_packets
from gpufabric.sim.packet_config import PacketConfig, SwitchBuffer
from tests.sim.packet_cases import incast


@pytest.mark.parametrize("alpha_log2", [-3, 0, 2])
def test_inputs_share_the_pool_as_choudhury_and_hahne_found(alpha_log2: int) -> None:
    """N inputs that all want more hold alpha * pool / (1 + n * alpha) each."""
    n, pool, headroom = 4, 3_000_000, 100_000
    buffer = SwitchBuffer(
        total_bytes=pool + (n + 1) * headroom,
        reserve_bytes=0,
        headroom_bytes=headroom,
        alpha_log2=alpha_log2,
        xon_offset_bytes=10_000,
    )
    result = simulate_packets(incast(n, 4_000_000), replace(PacketConfig(ecn=None), buffer=buffer))
    alpha = 2.0**alpha_log2
    assert not any(result.drops.values())
    assert result.most_shared_bytes[0] == pytest.approx(
        n * alpha * pool / (1 + n * alpha), rel=0.01
    )
