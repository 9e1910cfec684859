from __future__ import annotations

import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.placement_search import search
from gpufabric.workload.training import train
from gpufabric.workload.transformer import preset

HOSTS = Cluster("H100", 8, 8, 400.0)
PLAN = TrainingPlan(global_batch=256, sequence_tokens=8192)


def test_the_best_is_at_least_as_fast_as_a_published_plan() -> None:
    published = TrainingPlan(
        tensor=4,
        pipeline=4,
        context=2,
        chunks=5,
        global_batch=256,
        sequence_tokens=8192,
        schedule="interleaved",
        recompute="full",
    )
    known = train(TrainingJob(preset("llama3-70b"), HOSTS, published), "megatron-2025")
    found = search(preset("llama3-70b"), HOSTS, PLAN, "megatron-2025")
    assert known.memory.fits
    assert found.best[0].step_s <= known.step_s
    times = [one.step_s for one in found.best]
    assert times == sorted(times)
    assert found.n_tried > 20
    assert all(one.memory.fits for one in found.best)


def test_what_does_not_fit_is_not_returned() -> None:
    # On 64 GPUs of 80 GB, 405e9 parameters leave no room for plain data parallelism.
    found = search(preset("llama3-70b"), HOSTS, PLAN)
    assert found.n_too_large > 0
    with pytest.raises(InputError, match="more memory"):
        search(preset("deepseek-v3"), HOSTS, PLAN)


@pytest.mark.parametrize(
    "kept",
    [
        {"schedule": "zero-bubble"},
        {"schedule": "interleaved"},
        {"chunks": 2, "pipeline": 2},
        {"recompute": "full"},
        {"recompute": "selective", "schedule": "1f1b"},
    ],
)
def test_what_is_kept_is_in_every_plan(kept: dict[str, int | str]) -> None:
    best = search(preset("llama3-70b"), HOSTS, PLAN, n_best=50, kept=kept).best
    for name, value in kept.items():
        assert {getattr(one.job.plan, name) for one in best} == {value}
    if kept.get("schedule") in {"zero-bubble", "interleaved"}:
        assert all(one.job.plan.pipeline > 1 for one in best)


def test_experts_are_spread() -> None:
    found = search(preset("qwen3-30b-a3b"), Cluster("H100", 8, 2, 400.0), PLAN)
    assert any(one.job.plan.expert > 1 for one in found.best)
    assert all(one.job.plan.tensor <= 8 for one in found.best)


def test_a_slow_network_changes_the_plan() -> None:
    slow = Cluster("H100", 8, 8, 12.5, "tcp")
    at_best = search(preset("llama3-8b"), HOSTS, PLAN).best[0]
    for_slow = search(preset("llama3-8b"), slow, PLAN).best[0]
    moved = train(TrainingJob(preset("llama3-8b"), slow, at_best.job.plan))
    assert for_slow.step_s <= moved.step_s


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    odd = Cluster("H100", 13)  # prime, and 13 stages would share 32 layers badly
    with pytest.raises(InputError, match="cannot be divided"):
        search(preset("llama3-8b"), odd, TrainingPlan(global_batch=5))
