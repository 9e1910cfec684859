from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketProblem, PacketResult, simulate_packets
from gpufabric.sim.packet_config import (
    ClassKind,
    Ecn,
    PacketConfig,
    PortOverride,
    SwitchBuffer,
    TrafficClass,
)
from tests.sim.packet_cases import US, Link, incast, problem_of, star

MTU, DATA, FIRST, GAP = 4096, 62, 16, 20  # bytes
LOSSLESS, LOSSY = ClassKind.LOSSLESS, ClassKind.LOSSY
TWO = PacketConfig(
    classes=(
        TrafficClass(LOSSLESS),
        TrafficClass(LOSSLESS),
        TrafficClass(LOSSY),
        TrafficClass(LOSSLESS, is_strict=True),
    ),
    ack_class=3,
    cnp_class=3,
    buffer=SwitchBuffer(xoff_bytes=40_000, xon_offset_bytes=10_000),
    ecn=None,
)


def line_of_switches(delay_ps: int = US) -> list[Link]:
    """Hosts 0 … 3 on the first of two switches, host 4 on the second at half the speed."""
    hosts = [(host, 5, 100.0, delay_ps) for host in range(4)]
    return [*hosts, (5, 6, 100.0, delay_ps), (4, 6, 50.0, delay_ps)]


def over_the_line(size: int, delay_ps: int = US) -> PacketProblem:
    return problem_of(line_of_switches(delay_ps), 5, [(host, 4, size) for host in range(4)])


def with_classes(problem: PacketProblem, *traffic: int) -> PacketProblem:
    return replace(problem, traffic_class=np.array(traffic, np.int8))


def dropped_at(result: PacketResult, problem: PacketProblem, switch: int) -> int:
    return int(result.ports.dropped[problem.wires.head == switch].sum())


def test_a_strict_class_goes_first_and_the_other_has_what_is_left() -> None:
    problem = problem_of(star(3), 3, [(0, 1, 40 * MTU), (0, 2, 40 * MTU)])
    fct_ps = simulate_packets(with_classes(problem, 0, 3), TWO).flows.fct_ps
    packet = 80 * (MTU + DATA + GAP)
    alone = 41 * packet + 2 * 80 * FIRST + 2 * US + 500_000
    assert fct_ps[1] == alone + packet + 80 * FIRST  # the other had begun a packet
    assert fct_ps[0] == alone + 40 * packet


def test_acks_go_in_the_class_of_the_data_they_answer() -> None:
    config = replace(TWO, ack_class=-1)
    problem = with_classes(incast(2, 10 * MTU), 0, 1)
    result = simulate_packets(problem, config)
    # The receiver's NIC leaves by port 0; ACKs wait there in two classes.
    assert (result.ports.most_queued_bytes[0] > 0).tolist() == [True, True, False, False]


def test_a_pause_stops_one_class_and_not_the_other() -> None:
    flows = [(host, 0, 2_000_000) for host in range(1, 4)] + [(3, 4, 400_000)]
    problem = problem_of(star(5), 5, flows)
    in_one = simulate_packets(with_classes(problem, 0, 0, 0, 0), TWO)
    in_two = simulate_packets(with_classes(problem, 0, 0, 0, 1), TWO)
    assert in_two.ports.pauses[6].tolist()[1:] == [0, 0, 0]
    assert in_one.flows.fct_ps[3] > 1.4 * in_two.flows.fct_ps[3]


def marks(config: PacketConfig, problem: PacketProblem) -> list[int]:
    ports = simulate_packets(problem, config).ports
    return [int(ports.marked[problem.wires.tail == switch].sum()) for switch in (0, 1)]


def test_ecn_can_be_off_on_one_switch() -> None:
    marked = replace(TWO.classes[0], is_marked=True)
    config = replace(TWO, classes=(marked, *TWO.classes[1:]), ecn=Ecn(10_000, 20_000, 0.5))
    problem = over_the_line(50 * MTU)
    both = marks(config, problem)
    off = replace(config, overrides=(PortOverride(switches=(1,), is_marked=False),))
    assert min(both) > 0
    assert marks(off, problem) == [both[0], 0]


def test_kmin_above_kmax_marks_all_above_kmin_on_that_switch_alone() -> None:
    marked = replace(TWO.classes[0], is_marked=True)
    config = replace(TWO, classes=(marked, *TWO.classes[1:]), ecn=Ecn(1e6, 2e6, 0.5))
    swapped = PortOverride(switches=(1,), kmin_bytes=20_000.0, kmax_bytes=10_000.0, pmax=0.0)
    step = PortOverride(switches=(1,), kmin_bytes=20_000.0, kmax_bytes=20_000.0, pmax=0.0)
    problem = over_the_line(20 * MTU)
    result = marks(replace(config, overrides=(swapped,)), problem)
    assert result == marks(replace(config, overrides=(step,)), problem)
    assert result[0] == 0
    assert result[1] > 0


def test_a_class_has_its_own_ecn() -> None:
    rows = (
        TrafficClass(LOSSLESS, is_marked=True),
        TrafficClass(LOSSLESS, is_marked=True, ecn=Ecn(0.0, 0.0, 1.0)),
    )
    config = replace(TWO, classes=(*rows, *TWO.classes[2:]), ecn=Ecn(1e7, 1e7, 1.0))
    problem = with_classes(incast(4, 20 * MTU), 0, 0, 1, 1)
    assert simulate_packets(with_classes(problem, 0, 0, 0, 0), config).ports.marked.sum() == 0
    # All packets of the class but those that leave its queue empty.
    marked = simulate_packets(problem, config).ports.marked.sum()
    assert 30 < marked < 40


def test_lossless_everywhere_loses_nothing_over_two_switches() -> None:
    problem = over_the_line(200 * MTU)
    result = simulate_packets(problem, TWO)
    assert result.ledger.dropped.sum() == 0
    assert result.ports.pauses[problem.wires.tail == 0].sum() > 0


def test_pfc_off_on_one_hop_loses_packets_there_and_only_there() -> None:
    problem = over_the_line(200 * MTU)
    off = PortOverride(switches=(1,), has_pfc=False)
    result = simulate_packets(problem, replace(TWO, overrides=(off,)))
    assert dropped_at(result, problem, 1) == result.ledger.dropped.sum() > 0
    assert result.ledger.is_balanced
    # The port that does not obey is as bad as the one that does not ask.
    deaf = PortOverride(ports=(8,), has_pfc=False)  # of the first switch, towards the second
    result = simulate_packets(problem, replace(TWO, overrides=(deaf,)))
    assert dropped_at(result, problem, 1) == result.ledger.dropped.sum() > 0


def test_pfc_on_another_priority_of_one_switch_loses_packets_there() -> None:
    overrides = (
        PortOverride(switches=(1,), classes=(0,), kind=LOSSY),
        PortOverride(switches=(1,), classes=(2,), kind=LOSSLESS),
    )
    problem = over_the_line(200 * MTU)
    result = simulate_packets(problem, replace(TWO, overrides=overrides))
    assert result.drops["headroom"] == 0
    assert result.drops["buffer"] == dropped_at(result, problem, 1) > 0
    other = simulate_packets(with_classes(problem, 2, 2, 2, 2), replace(TWO, overrides=overrides))
    assert dropped_at(other, problem, 1) == 0


def test_a_dscp_mapped_to_a_lossy_queue_on_one_switch_loses_packets_there() -> None:
    wrong = PortOverride(switches=(1,), classes=(0,), queue=2)
    problem = over_the_line(200 * MTU)
    result = simulate_packets(problem, replace(TWO, overrides=(wrong,)))
    assert result.drops["buffer"] == dropped_at(result, problem, 1) > 0
    assert result.ports.most_queued_bytes[problem.wires.tail == 1][:, 0].sum() == 0
    assert result.ports.most_queued_bytes[problem.wires.tail == 0][:, 0].max() > 0
    assert (result.flows.acked_ps > 0).all()


def test_headroom_for_a_shorter_cable_than_the_real_one_loses_packets() -> None:
    problem = over_the_line(800 * MTU, 10 * US)  # cables of 2 km

    def dropped(cable_m: float) -> int:
        own = PortOverride(switches=(1,), headroom_cable_m=cable_m)
        result = simulate_packets(problem, replace(TWO, overrides=(own,)))
        assert dropped_at(result, problem, 0) == 0
        return dropped_at(result, problem, 1)

    assert dropped(2_000.0) == 0
    assert dropped(100.0) > 0


@pytest.mark.parametrize("alpha_log2", [-2, 0, 1])
def test_a_class_takes_its_alpha_of_what_is_free(alpha_log2: int) -> None:
    pool = 400_000
    rows = (replace(TWO.classes[2], alpha_log2=alpha_log2), *TWO.classes[1:3], TrafficClass(LOSSY))
    buffer = SwitchBuffer(total_bytes=0, reserve_bytes=0, alpha_log2=-8)
    n_inputs = 3
    config = replace(
        TWO,
        classes=(rows[0], TrafficClass(LOSSY), rows[2], rows[3]),
        buffer=replace(buffer, total_bytes=pool),
    )
    problem = incast(n_inputs, 600 * MTU)
    most = simulate_packets(problem, config, until_ps=300 * US).most_shared_bytes[0]
    # n inputs with alpha each: each has alpha * free, so n * alpha / (1 + n * alpha) of the pool.
    share = n_inputs * 2.0**alpha_log2
    assert most == pytest.approx(pool * share / (1 + share), abs=(n_inputs + 1) * MTU)


def test_wrong_overrides_are_told_together_with_their_places() -> None:
    wrong = PortOverride(switches=(3,), ports=(99,), classes=(7,), queue=5, pmax=2.0)
    both = PortOverride(headroom_bytes=1, headroom_cable_m=1.0)
    config = replace(TWO, overrides=(wrong, both))
    problem = with_classes(incast(2, 1000), 0, 9)
    with pytest.raises(InputError) as caught:
        simulate_packets(problem, config)
    for place in (
        "traffic_class[1]",
        "overrides[0].switches[0]",
        "overrides[0].ports[0]",
        "overrides[0].classes[0]",
        "overrides[0].queue",
        "overrides[0].pmax",
        "overrides[1].headroom_cable_m",
    ):
        assert place in str(caught.value)
