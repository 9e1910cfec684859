from __future__ import annotations

import numpy as np
import pytest

from gpufabric.kernels.packet import run_packets
from gpufabric.sim.packet_checks import check_packets
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_ledger import LedgerError, ledger_of
from gpufabric.sim.packet_setup import new_packet_run
from tests.sim.packet_cases import US, incast


def test_a_packet_that_vanishes_is_found() -> None:
    config = PacketConfig(ecn=None)
    run = new_packet_run(check_packets(incast(2, 40_000), config), config, 0)
    run_packets(run, 5 * US)
    assert ledger_of(run).in_flight[0] > 0
    lost = int(np.flatnonzero(run.packets["kind"] == 0)[0])
    run.packets["kind"][lost] = -1
    with pytest.raises(LedgerError, match=r"data: 20 packets sent are not \d+ received \+ 0 drop"):
        ledger_of(run)
