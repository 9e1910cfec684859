from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufabric.core.errors import InputError
from gpufabric.sim.endpoints import Endpoints
from gpufabric.sim.traffic import PATTERNS, PatternOptions, make_traffic
from tests.sim.plants import RAIL, TWO_PLANES, plant

GPUS = plant(RAIL).endpoints
SEEDS = st.integers(0, 2**63 - 1)


def hosts(n_hosts: int, each: int) -> Endpoints:
    """GPUs of hosts without a fabric."""
    host = np.repeat(np.arange(n_hosts, dtype=np.int32), each)
    gpu = np.tile(np.arange(each, dtype=np.int32), n_hosts)
    number = np.arange(len(host))
    names = np.array([f"h{row}" for row in range(n_hosts)])
    return Endpoints(host, gpu, names, np.full(len(host), 400.0), number, number[:, None])


@pytest.mark.parametrize("pattern", PATTERNS)
@given(seed=SEEDS)
def test_the_same_seed_gives_the_same_flows(pattern: str, seed: int) -> None:
    options = PatternOptions(sizes="exponential", n_flows=50)
    one, other = (make_traffic(pattern, GPUS, options, seed) for _ in range(2))
    for name in ("src", "dst", "size_bytes", "start_s"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert (one.src != one.dst).all()
    assert one.src.dtype == one.dst.dtype == np.int32


@given(seed=SEEDS, n_hosts=st.integers(1, 5), each=st.integers(1, 4))
def test_a_permutation_is_a_derangement(seed: int, n_hosts: int, each: int) -> None:
    gpus = hosts(n_hosts, each)
    if len(gpus) < 2:
        return
    flows = make_traffic("permutation", gpus, PatternOptions(), seed)
    assert np.array_equal(flows.src, np.arange(len(gpus)))
    assert np.array_equal(np.sort(flows.dst), np.arange(len(gpus)))
    assert (flows.src != flows.dst).all()


def test_derangements_are_equally_likely() -> None:
    """Of the nine derangements of four, each comes up a ninth of the time."""
    gpus = hosts(4, 1)
    found = [
        tuple(make_traffic("permutation", gpus, PatternOptions(), seed).dst) for seed in range(1800)
    ]
    counts = [found.count(one) for one in set(found)]
    assert len(counts) == 9
    assert min(counts) > 200 - 4 * 13.4  # four standard deviations of a binomial of 1,800 and 1/9
    assert max(counts) < 200 + 4 * 13.4


def test_all_to_all_has_every_ordered_pair_once() -> None:
    flows = make_traffic("all-to-all", GPUS, PatternOptions())
    pairs = set(zip(flows.src.tolist(), flows.dst.tolist(), strict=True))
    assert len(pairs) == flows.n_flows == 64 * 63
    # Each sends to its next one first, so that nobody is everybody's first.
    first = flows.dst[np.flatnonzero(np.diff(flows.src, prepend=-1))]
    assert np.array_equal(np.sort(first), np.arange(64))


@given(seed=SEEDS, fan_in=st.integers(1, 56))
def test_an_incast_comes_from_other_hosts(seed: int, fan_in: int) -> None:
    flows = make_traffic("incast", GPUS, PatternOptions(fan_in=fan_in), seed)
    assert len(set(flows.src.tolist())) == flows.n_flows == fan_in
    assert len(set(flows.dst.tolist())) == 1
    assert (GPUS.block[flows.src] != GPUS.block[flows.dst]).all()


def test_a_ring_goes_to_the_next_host_on_the_same_rail() -> None:
    flows = make_traffic("ring", GPUS, PatternOptions())
    assert np.array_equal(flows.dst, (np.arange(64) + 8) % 64)
    alone = make_traffic("ring", hosts(1, 4), PatternOptions())
    assert alone.dst.tolist() == [1, 2, 3, 0]


def test_uniform_arrivals_have_the_load_asked_for() -> None:
    options = PatternOptions(size_bytes=1e6, sizes="exponential", load=0.3, n_flows=40_000)
    flows = make_traffic("uniform", GPUS, options, 3)
    offered_gbps = flows.size_bytes.sum() * 8e-9 / flows.start_s.max()
    # Both sums have a relative deviation of 1 / sqrt(40,000) = 0.5 %.
    assert offered_gbps / (64 * 400) == pytest.approx(0.3, rel=0.03)
    assert (GPUS.block[flows.src] != GPUS.block[flows.dst]).all()
    assert flows.start_s[0] == 0
    assert (np.diff(flows.start_s) >= 0).all()
    gaps = np.diff(flows.start_s)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)  # as exponential gaps have it
    assert np.bincount(flows.dst, minlength=64) == pytest.approx(625, abs=4 * 25)


@given(seed=SEEDS, share=st.floats(0, 1))
def test_a_hot_host_gets_its_share(seed: int, share: float) -> None:
    flows = make_traffic("hotspot", GPUS, PatternOptions(hot_share=share), seed)
    assert np.array_equal(flows.src, np.arange(64))
    assert (GPUS.block[flows.src] != GPUS.block[flows.dst]).all()
    most = np.bincount(GPUS.block[flows.dst]).max()
    assert most >= round(share * 56)


def test_sizes_have_the_mean_asked_for() -> None:
    for sizes, tolerance in (("fixed", 0.0), ("exponential", 0.02), ("pareto", 0.2)):
        options = PatternOptions(size_bytes=1e6, sizes=sizes, n_flows=100_000)
        drawn = make_traffic("uniform", GPUS, options, 5).size_bytes
        assert drawn.mean() == pytest.approx(1e6, rel=tolerance or 1e-12)
        assert np.array_equal(drawn, np.round(drawn))
        assert (drawn == 1e6).all() == (sizes == "fixed")


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        ("permutaton", PatternOptions(), 'Did you mean "permutation"?'),
        ("incast", PatternOptions(fan_in=57), "--fan-in: 57 senders. Expected: 1 to 56"),
        ("incast", PatternOptions(fan_in=0), "--fan-in: 0 senders."),
        ("uniform", PatternOptions(load=0.0), "--load: the value is 0.0."),
        ("uniform", PatternOptions(load=float("nan")), "--load"),
        ("uniform", PatternOptions(n_flows=0), "--flows: the value is 0."),
        ("hotspot", PatternOptions(hot_share=1.5), "--hot-share: the value is 1.5."),
        ("ring", PatternOptions(sizes="paretto"), 'Did you mean "pareto"?'),
        ("ring", PatternOptions(size_bytes=-1.0), "--bytes: the value is -1.0."),
    ],
)
def test_what_does_not_fit_is_told(pattern: str, options: PatternOptions, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_traffic(pattern, GPUS, options)
    assert message in str(caught.value)


def test_more_flows_than_memory_holds_are_refused() -> None:
    with pytest.raises(InputError, match="--gpus: 25,004,938,770 flows"):
        make_traffic("all-to-all", hosts(1, 158130), PatternOptions())
    with pytest.raises(InputError, match="--flows: 18,000,000 flows"):
        make_traffic("uniform", GPUS, PatternOptions(n_flows=18_000_000))


def test_one_gpu_has_nobody_to_send_to() -> None:
    with pytest.raises(InputError, match="one GPU"):
        make_traffic("ring", hosts(1, 1), PatternOptions())


# Endpoints ---------------------------------------------------------------------------------------


def test_gpus_have_names_hosts_and_nics() -> None:
    assert len(GPUS) == 64
    assert GPUS.n_hosts == 8
    assert GPUS.names[[0, 63]].tolist() == ["host-01:0", "host-08:7"]
    assert (GPUS.gbps == 400).all()
    assert GPUS.ports.shape == (64, 1)
    assert GPUS.index("host-02:3", "") == GPUS.index(" 11 ", "") == 11
    two = plant(TWO_PLANES).endpoints
    assert two.ports.shape == (64, 2)
    assert (two.gbps == 400).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("64", "Expected: 0 to 63, or HOST:GPU."),
        ("host-2:0", "Did you mean"),
        ("host-01:8", 'there is no GPU "host-01:8"'),
        ("-1", "there is no GPU"),
        ("", "there is no GPU"),
    ],
)
def test_an_unknown_gpu_is_told(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        GPUS.index(name, "here")
    assert message in str(caught.value)


def test_the_first_gpus_alone() -> None:
    few = GPUS.first_of(12)
    assert np.bincount(few.block).tolist() == [8, 4]
    flows = make_traffic("ring", few, PatternOptions())
    assert flows.dst.tolist() == [8, 9, 10, 11, 11, 11, 11, 11, 0, 1, 2, 3]
    for wrong in (1, 65):
        with pytest.raises(InputError, match="--gpus"):
            GPUS.first_of(wrong)
