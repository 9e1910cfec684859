from __future__ import annotations

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.inference import ServingPlan, serve
from gpufabric.workload.jitter import (
    Hashing,
    Jitter,
    collision_factors,
    decode_tail,
    distribution,
    slowest_of,
)
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.training import TrainingEstimate, train
from gpufabric.workload.transformer import preset


def step(n_hosts: int = 16) -> TrainingEstimate:
    plan = TrainingPlan(zero=3, global_batch=8 * n_hosts, sequence_tokens=4096)
    cluster = Cluster("H100", 8, n_hosts, 400.0)
    return train(TrainingJob(preset("llama3-8b"), cluster, plan))


@pytest.mark.parametrize("n", [1, 8, 1024, 100_000])
def test_the_slowest_of_many_is_late_by_the_harmonic_number(n: int) -> None:
    uniform = np.random.default_rng(3).random(200_000)
    harmonic = np.sum(1 / np.arange(1, n + 1))
    assert slowest_of(n, 2.0, uniform).mean() == pytest.approx(2 * harmonic, rel=0.01)
    assert np.isfinite(slowest_of(n, 2.0, np.array([0.0, 1 - 2**-53]))).all()


def test_steps_are_late_by_each_cause() -> None:
    estimate = step()
    hashing = Hashing(leaves=4, flows=32, uplinks=16)
    found = distribution(estimate, Jitter(0.002, 128, 3000.0, 3.0, hashing), seed=5)
    assert found.step_s.min() >= found.base_s
    assert found.mean_s == pytest.approx(found.step_s.mean(), rel=0.01)
    late = 0.002 * estimate.parts.compute_s * np.sum(1 / np.arange(1, 129))
    assert found.by_cause_s["ranks"] == pytest.approx(late)
    a_step = 128 * 3000.0 / (730 * 3600) * estimate.step_s * 3.0
    assert found.by_cause_s["flaps"] == pytest.approx(a_step)
    assert found.by_cause_s["collisions"] > 0
    assert found.quantile_s(0.99) > found.quantile_s(0.5)
    lost = (found.mean_s - found.base_s) * 1000 * 128 / 3600
    assert found.lost_gpu_hours(1000) == pytest.approx(lost)


def test_the_same_seed_gives_the_same() -> None:
    jitter = Jitter(links=64, hashing=Hashing(4, 32, 32))
    first, again, other = (distribution(step(), jitter, 50, 5, seed) for seed in (1, 1, 2))
    assert (first.step_s == again.step_s).all()
    assert (first.step_s != other.step_s).any()


def test_nothing_makes_late_where_nothing_jitters() -> None:
    found = distribution(step(), Jitter(0.0, 0, 0.0), 10, 3)
    assert (found.step_s == found.base_s).all()
    assert found.lost_gpu_hours(10**6) == 0


def test_collisions_by_hand() -> None:
    random = np.random.default_rng(1)
    # One uplink takes all: no collision. Two flows, two uplinks: half of all hashes collide.
    assert (collision_factors(Hashing(3, 8, 1), 10, random) == 1).all()
    factors = collision_factors(Hashing(1, 2, 2), 4000, random)
    assert set(factors.tolist()) == {1.0, 2.0}
    assert factors.mean() == pytest.approx(1.5, abs=0.03)
    # Many flows on an uplink even out.
    few, many = (collision_factors(Hashing(8, n, 16), 50, random).mean() for n in (16, 16_000))
    assert few > 2
    assert many < 1.2


def test_a_larger_job_loses_more() -> None:
    shares = []
    for n_hosts in (2, 16, 128):
        found = distribution(step(n_hosts), Jitter(), 400, 2)
        shares.append(found.mean_s / found.base_s)
    assert shares == sorted(shares)


def test_the_tail_of_decoding_grows_with_jitter() -> None:
    serving = serve(preset("llama3-70b"), Cluster("H100", 8), ServingPlan(tensor=8))
    tails = [decode_tail(serving, jitter_us) for jitter_us in (0.0, 5.0, 20.0)]
    assert tails[0].p999_s == pytest.approx(tails[0].base_s)
    assert tails[1].p50_s < tails[1].p99_s < tails[1].p999_s
    # 160 collectives, each late by 5 us times 1 + 1/2 + ... + 1/8.
    late = 160 * 5e-6 * np.sum(1 / np.arange(1, 9))
    assert tails[1].mean_s - tails[1].base_s == pytest.approx(late, rel=0.02)
    assert tails[2].p99_s > tails[1].p99_s
    farther = decode_tail(serving, 5.0, latency_us=2.0)
    assert farther.p50_s - tails[1].p50_s == pytest.approx(160 * 2e-6)
    alone = serve(preset("llama3-8b"), Cluster("H100", 1), ServingPlan())
    assert decode_tail(alone, 50.0).p99_s == pytest.approx(alone.decode.step_s)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="rank_share"):
        Jitter(rank_share=-1.0)
    with pytest.raises(InputError, match="hashing"):
        Jitter(hashing=Hashing(1, 0, 4))
    serving = serve(preset("llama3-8b"), Cluster("H100", 1), ServingPlan())
    with pytest.raises(InputError, match="jitter_us"):
        decode_tail(serving, -1.0)
