from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.catalog.constants import collective_fit
from gpufabric.workload.closed_form import estimate, terms_of, time_us, wire_factor
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.nccl_tuner import Choice
from gpufabric.workload.operations import OPERATIONS, bus_factor

SIZES = 2.0 ** np.arange(10, 35)
TREE, RING = Choice("Tree", "Simple"), Choice("Ring", "Simple")


def test_the_formula_by_hand() -> None:
    cluster = Cluster("H100", 8, 4, 400.0)
    fit = collective_fit()
    terms = terms_of(cluster, "all_reduce", RING)
    bus = min(fit.ring_gbytes_per_s["hopper"], 400.0 * fit.wire_efficiency["rdma"])
    moved = 2 * 31 / 32 * 2**30 / bus / 1e3
    chunk = fit.chunk_us["hopper"] + fit.wire_chunk_us["rdma"]
    hand = (
        fit.latency_factor["hopper"] * (terms.inside_us + terms.hops_us)
        + fit.network_us["rdma"] * 2 * 3  # 2 (4 - 1) hops
        + moved
        + 2 * (chunk * moved) ** 0.5
    )
    assert time_us(cluster, "all_reduce", RING, np.array([2.0**30]))[0] == pytest.approx(hand)


@pytest.mark.parametrize(
    ("domains", "factor"),
    [
        # Halves of S that the busiest domain of two mirrored binary trees sends: 2, 3, 4 of 2 S.
        (2, 2 * 15 / 16),
        (3, 4 / 3 * 23 / 24),
        (4, 31 / 32),
        (64, 511 / 512),
    ],
)
def test_trees_of_few_domains_beat_the_wire(domains: int, factor: float) -> None:
    cluster = Cluster("A100", 8, domains, 200.0)
    assert wire_factor(cluster, "all_reduce", TREE) == pytest.approx(factor)
    assert wire_factor(cluster, "all_reduce", RING) == 1.0


def test_all_to_all_sends_what_leaves_the_host() -> None:
    # 16 GPUs on two hosts: each sends 8/16 of its buffer away over one eighth of the NICs.
    cluster = Cluster("H100", 8, 2, 400.0)
    factor = wire_factor(cluster, "alltoall", Choice("Pairwise", "Simple"))
    time_s = 1e9 * 8 / 16 / (400e9 / 8)
    busbw = 1e9 / time_s * 15 / 16 / 1e9
    assert 400.0 * factor == pytest.approx(busbw)


@given(
    st.sampled_from(sorted(OPERATIONS)),
    st.sampled_from(["A100", "H100", "B200", "GB200", "MI300X"]),
    st.integers(1, 300),
    st.sampled_from([1, 4, 8]),
)
def test_laws(op: str, gpu: str, domains: int, each: int) -> None:
    if domains * each < 2:
        return
    cluster = Cluster(gpu, each, domains, 50.0 * each, n_nics=each)
    result = estimate(cluster, op, SIZES)
    assert np.isfinite(result.time_us).all()
    assert (result.time_us > 0).all()
    assert (result.low_us < result.time_us).all()
    assert (result.high_us > result.time_us).all()
    for choice in set(result.choices):
        one = time_us(cluster, op, choice, SIZES)
        assert (np.diff(one) > 0).all()  # more bytes, more time
    wire = terms_of(cluster, op, result.choices[-1]).wire_gbytes_per_s
    if wire is not None:
        assert result.busbw_gbytes_per_s.max() <= wire  # nothing beats the wire
    assert result.factor == bus_factor(op, cluster.n_ranks)


def test_a_faster_wire_is_never_slower() -> None:
    slow, fast = (Cluster("H100", 8, 32, wire) for wire in (200.0, 400.0))
    assert (
        estimate(fast, "all_reduce", SIZES, "Ring").time_us
        <= estimate(slow, "all_reduce", SIZES, "Ring").time_us
    ).all()


def test_no_rate_is_above_what_the_links_can_do() -> None:
    fit = collective_fit()
    assert max(fit.wire_efficiency.values()) <= 1.0
    for generation, links in (("ampere", 300.0), ("hopper", 450.0), ("blackwell", 900.0)):
        assert fit.ring_gbytes_per_s[generation] <= links
        assert fit.nvls_gbytes_per_s[generation] <= 2 * links


def test_beyond_what_was_measured_is_said_and_wider() -> None:
    known = estimate(Cluster("H100", 8, 2, 400.0), "all_reduce", SIZES[-10:-4])
    beyond = estimate(Cluster("H100", 8, 1024, 400.0), "all_reduce", SIZES[-10:-4])
    assert known.extrapolates == ()
    assert any("1024" in reason for reason in beyond.extrapolates)
    assert (beyond.high_us / beyond.time_us > known.high_us / known.time_us).all()
