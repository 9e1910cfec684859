"""InfiniBand's congestion control: who marks, and how far senders go down their table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketConfig, PacketProblem, simulate_packets
from gpufabric.sim.packet_config import Control, ControlKind
from gpufabric.sim.packet_control import Cct
from gpufabric.sim.packet_infiniband_config import Fecn
from gpufabric.sim.packet_profiles import infiniband
from tests.sim.packet_cases import US, incast, problem_of, star

WIRE = 4096 + 26 + 2  # bytes
PLAIN = infiniband()


def controlled(cct: Cct, fecn: Fecn | None = None) -> PacketConfig:
    config = infiniband(with_control=True)
    return replace(config, controls=(Control(ControlKind.CCT, cct=cct),), fecn=fecn or Fecn())


def hot_spot() -> PacketProblem:
    """Hosts 0, 1 and 2 want host 4; host 3 wants host 5 over the same cable of 400 Gb/s."""
    links = [*[(host, 6, 100.0, US // 10) for host in range(4)], (6, 7, 400.0, US // 10)]
    links += [(host, 7, 100.0, US // 10) for host in (4, 5)]
    return problem_of(links, 6, [*[(host, 4, 3_000_000) for host in range(3)], (3, 5, 3_000_000)])


@pytest.mark.parametrize("delay", [0.0, 1.0, 2.5])
def test_an_entry_makes_a_flow_wait_so_many_packet_times(delay: float) -> None:
    n = 50
    problem = problem_of(star(2), 2, [(0, 1, n * 4096)])
    flows = simulate_packets(problem, controlled(Cct(delays=(delay,)))).flows
    alone = simulate_packets(problem, controlled(Cct(delays=(0.0,)))).flows
    # Packets after the first begin so much later; the first is 16 bytes longer than the others.
    waited = flows.fct_ps[0] - alone.fct_ps[0]
    assert waited == pytest.approx(delay * 80 * ((n - 1) * WIRE + 16), abs=n)


def test_each_becn_moves_one_entry_on_up_to_the_last() -> None:
    cct = Cct(delays=(0.0, 0.1, 0.2, 0.7), ccti_timer_us=1e6)
    for marks_until_us, last in ((3, 0.0), (400, 0.7)):
        flows = simulate_packets(
            incast(3, 2_000_000), controlled(cct), until_ps=marks_until_us * US
        ).flows
        assert flows.rate_gbps == pytest.approx([100 / (1 + last)] * 3)
        assert (flows.cnps > 3).all() == (last > 0)


def test_the_timer_brings_a_flow_back_to_its_first_entry() -> None:
    cct = Cct(delays=(0.0, 5.0), ccti_timer_us=40.0)
    links = [(0, 2, 100.0, US), (1, 2, 50.0, US)]
    problem = problem_of(links, 2, [(0, 1, 3_000_000)])
    # Marks come while more arrives than leaves, and none once the flow has a sixth of the speed.
    rates = {
        at: simulate_packets(problem, controlled(cct), until_ps=at * US).flows.rate_gbps[0]
        for at in range(2, 200, 4)
    }
    assert sorted(set(rates.values())) == pytest.approx([100 / 6, 100.0])
    assert sum(a != b for a, b in pairwise(rates.values())) >= 4


def test_one_packet_in_marking_rate_and_one_is_marked() -> None:
    def marked(fecn: Fecn) -> int:
        config = replace(PLAIN, fecn=fecn, ack_class=0)
        return int(simulate_packets(incast(4, 100 * 4096), config).ports.marked.sum())

    every = marked(Fecn(marking_rate=0))
    assert 300 < every < 400
    assert marked(Fecn(marking_rate=3)) == every // 4
    assert marked(Fecn(marking_rate=10)) == every // 11
    assert marked(Fecn(threshold=0, marking_rate=0)) == 0
    assert marked(Fecn(threshold=1, marking_rate=0)) < every
    assert marked(Fecn(packet_bytes=5000, marking_rate=0)) == 0


def test_the_root_of_congestion_marks_and_its_victim_does_not() -> None:
    result = simulate_packets(hot_spot(), replace(PLAIN, fecn=Fecn(marking_rate=0)))
    between, to_hot = 8, 11  # channels to the second switch and from it to host 4
    assert result.ports.pauses[between, 0] > 100
    assert result.ports.most_queued_bytes[between, 0] > 50_000
    assert result.ports.marked[to_hot] > 500
    assert result.ports.marked[between] < 0.05 * result.ports.marked[to_hot]


def test_a_victim_of_a_hot_spot_is_helped_by_congestion_control() -> None:
    """Behind the hot spot it takes as long as those that make it; with marks hardly half."""
    without = simulate_packets(hot_spot(), PLAIN)
    helped = simulate_packets(hot_spot(), controlled(Cct(ccti_timer_us=20.0)))
    hot_ps = without.flows.fct_ps[:3].max()
    assert without.flows.fct_ps[3] > 0.95 * hot_ps
    assert helped.flows.fct_ps[3] < 0.6 * without.flows.fct_ps[3]
    assert helped.flows.fct_ps[:3].max() < 1.15 * hot_ps
    assert helped.ledger.dropped.sum() + without.ledger.dropped.sum() == 0


def test_tables_and_marks_that_make_no_sense_are_told() -> None:
    config = controlled(Cct(delays=(0.0, -1.0), ccti_min=2), Fecn(threshold=16))
    with pytest.raises(InputError) as caught:
        simulate_packets(incast(2, 1000), config)
    for place in ("controls[0].cct.delays", "controls[0].cct.ccti_min", "fecn.threshold"):
        assert place in str(caught.value)
    with pytest.raises(InputError, match="fecn: without credits"):
        simulate_packets(incast(2, 1000), PacketConfig(fecn=Fecn()))
