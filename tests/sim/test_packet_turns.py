from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.packet import PacketProblem, simulate_packets
from gpufabric.sim.packet_config import ClassKind, PacketConfig, SwitchBuffer, TrafficClass
from tests.sim.packet_cases import US, incast, problem_of, star

LOSSLESS = ClassKind.LOSSLESS


def weighted(*weights: int, quantum_bytes: int = 1_600) -> PacketConfig:
    classes = tuple(TrafficClass(LOSSLESS, weight=weight) for weight in weights)
    strict = TrafficClass(ClassKind.UNCOUNTED, is_strict=True)
    return PacketConfig(
        classes=(*classes, strict),
        ack_class=len(weights),
        cnp_class=len(weights),
        quantum_bytes=quantum_bytes,
        buffer=SwitchBuffer(total_bytes=100_000_000, alpha_log2=0),
        ecn=None,
    )


def with_classes(problem: PacketProblem, *traffic: int) -> PacketProblem:
    return replace(problem, traffic_class=np.array(traffic, np.int8))


@pytest.mark.parametrize("quantum_bytes", [50, 1_600, 20_000])
@pytest.mark.parametrize("place", ["switch", "nic"])
def test_classes_share_a_port_as_their_weights(place: str, quantum_bytes: int) -> None:
    size, weights = 100_000_000, (1, 2, 5)
    problem = incast(3, size)
    if place == "nic":
        problem = problem_of(star(4), 4, [(0, 1, size), (0, 2, size), (0, 3, size)])
    config = weighted(*weights, quantum_bytes=quantum_bytes)
    result = simulate_packets(with_classes(problem, 0, 1, 2), config, until_ps=2_000 * US)
    done = result.flows.acked_packets
    assert done / done.sum() == pytest.approx(np.array(weights) / 8, rel=0.02)


def test_weights_hold_for_bytes_and_not_for_packets() -> None:
    big = incast(2, 10**8)
    # 100,000 messages of a packet each are small packets from one NIC.
    small = problem_of(star(3), 3, [(1, 0, 10**8)] + [(2, 0, 400)] * 6_000)
    traffic = [0] + [1] * 6_000
    result = simulate_packets(with_classes(small, *traffic), weighted(3, 3), until_ps=250 * US)
    wire = result.ports.wire_bytes
    assert wire[1] > 0.95 * 250e-6 * 100e9 / 8
    payload = result.flows.acked_packets
    ours, theirs = payload[0] * 4178, payload[1:].sum() * 498
    assert ours == pytest.approx(theirs, rel=0.03)
    both = simulate_packets(with_classes(big, 0, 1), weighted(3, 3), until_ps=250 * US)
    assert both.flows.acked_packets[0] == pytest.approx(both.flows.acked_packets[1], abs=2)


def test_what_a_class_does_not_use_goes_to_the_others() -> None:
    problem = with_classes(incast(2, 50 * 4096), 0, 1)
    fct_ps = simulate_packets(problem, weighted(1, 9)).flows.fct_ps
    all_bytes = 100 * 4178 + 2 * 16
    assert fct_ps.max() == pytest.approx(all_bytes * 80 + 2 * US + 500_000 + 80 * 4194, rel=1e-3)


def test_strict_classes_go_before_weights() -> None:
    config = weighted(1, 9)
    classes = (replace(config.classes[0], is_strict=True), *config.classes[1:])
    problem = with_classes(incast(2, 10**7), 0, 1)
    done = simulate_packets(problem, replace(config, classes=classes), until_ps=300 * US).flows
    assert done.acked_packets[1] < 0.02 * done.acked_packets[0]


def test_a_class_without_a_weight_beside_one_with_is_told() -> None:
    with pytest.raises(InputError) as caught:
        simulate_packets(incast(2, 1000), weighted(0, 3, 999))
    assert "classes[0].weight: there is no weight, but another class has one." in str(caught.value)
    assert "classes[2].weight" in str(caught.value)
