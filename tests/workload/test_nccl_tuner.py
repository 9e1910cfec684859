from __future__ import annotations

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.nccl_tuner import Choice, allowed, choose, steps_of, tuner_times

H100 = Cluster("H100", 8, 16, 400.0)
ONE = Cluster("H100", 8)
SIZES = 2.0 ** np.arange(10, 33)


def test_a_ring_over_two_domains_by_hand() -> None:
    # 16 ranks, LL: base 6.6, 30 steps, of them 2 over the network at 2.7; the others max(0.6, 1).
    steps = steps_of(Cluster("H100", 8, 2, 400.0), "all_reduce", Choice("Ring", "LL"))
    assert steps.inside_us == pytest.approx(6.6 + 28 * 1.0)
    assert steps.n_hops * steps.hop_us == pytest.approx(2 * 2.7)


def test_a_tree_over_sixteen_domains_by_hand() -> None:
    # base 6.8, 2 x 7 steps of 0.6 inside, 2 x log2(16) steps of 5 over the network
    time = tuner_times(H100, "all_reduce", Choice("Tree", "LL"), np.array([0.0]))
    assert time[0] == pytest.approx(6.8 + 2 * (7 * 0.6 + 4 * 5.0))


def test_a_ring_inside_a_host_by_hand() -> None:
    # Simple: base 8.4, 14 steps of 3.4; 370.8 GB/s times 8 / 14 for the algorithm
    time = tuner_times(ONE, "all_reduce", Choice("Ring", "Simple"), np.array([2.0**30]))
    assert time[0] == pytest.approx(8.4 + 14 * 3.4 + 2**30 / (370.8 * 8 / 14 * 1e3))


def test_small_messages_take_little_latency_and_large_ones_much_bandwidth() -> None:
    choices = choose(H100, "all_reduce", SIZES)
    assert choices[0] == Choice("Tree", "LL")
    assert choices[-1] == Choice("NVLSTree", "Simple")
    protocols = [("LL", "LL128", "Simple").index(choice.protocol) for choice in choices]
    assert protocols == sorted(protocols)


def test_one_host_reduces_in_its_switches() -> None:
    assert choose(ONE, "all_reduce", SIZES)[-1] == Choice("NVLS", "Simple")
    without = Cluster("H100", 8, has_nvls=False)
    assert choose(without, "all_reduce", SIZES)[-1] == Choice("Ring", "Simple")


@pytest.mark.parametrize("protocol", ["LL", "ll128", "Simple"])
def test_what_is_forced_is_taken(protocol: str) -> None:
    choices = choose(H100, "all_reduce", SIZES, "ring", protocol)
    assert {choice.algorithm for choice in choices} == {"Ring"}
    assert {choice.protocol.lower() for choice in choices} == {protocol.lower()}


def test_several_may_be_left_open() -> None:
    assert {c.algorithm for c in choose(H100, "all_reduce", SIZES, "Ring,Tree")} == {"Ring", "Tree"}


@pytest.mark.parametrize(
    ("algorithm", "protocol", "word"),
    [
        ("Rings", None, "Ring"),
        ("Ring", "LL64", "LL"),
        ("NVLS", "LL", "Simple"),
        ("PAT", None, "PAT"),
    ],
)
def test_what_cannot_be_is_refused(algorithm: str, protocol: str | None, word: str) -> None:
    with pytest.raises(InputError, match=word):
        choose(H100, "all_reduce", SIZES, algorithm, protocol)


def test_what_a_transport_cannot_do_is_not_chosen() -> None:
    tcpx, tcpxo = (Cluster("H100", 8, 2, 100.0, name) for name in ("tcpx", "tcpxo"))
    assert set(choose(tcpx, "all_reduce", SIZES)) == {Choice("Ring", "Simple")}
    assert {choice.algorithm for choice in allowed(tcpxo, "all_reduce")} == {"Ring", "Tree"}
    # EFA's first generation, on A100: LL and LL128 are not safe; H100 has them.
    old, new = (Cluster(gpu, 8, 2, 50.0, "efa") for gpu in ("A100", "H100"))
    assert {choice.protocol for choice in allowed(old, "all_reduce")} == {"Simple"}
    assert {choice.protocol for choice in allowed(new, "all_reduce")} == {"LL", "LL128", "Simple"}
    # Inside one host the transport does not matter.
    assert allowed(Cluster("H100", 8, transport="tcpx"), "all_reduce") == allowed(ONE, "all_reduce")


def test_what_a_plugin_tells_of_its_latency_counts_by_hop() -> None:
    # A tree over two hosts: as over RDMA, and 75 us for each of two hops, twice that for Simple.
    rdma, efa = (Cluster("H100", 8, 2, 400.0, name) for name in ("rdma", "efa"))
    for protocol, factor in (("LL", 1), ("Simple", 2)):
        choice = Choice("Tree", protocol)
        times = [tuner_times(c, "all_reduce", choice, np.array([0.0]))[0] for c in (rdma, efa)]
        assert times[1] - times[0] == pytest.approx(factor * 2 * 75.0)


def test_every_choice_is_the_least_of_those_allowed() -> None:
    for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast"):
        times = np.array([tuner_times(H100, op, c, SIZES) for c in allowed(H100, op)])
        chosen = np.array(
            [
                tuner_times(H100, op, choice, SIZES[at : at + 1])[0]
                for at, choice in enumerate(choose(H100, op, SIZES))
            ]
        )
        assert np.allclose(chosen, times.min(axis=0), rtol=1e-12)
