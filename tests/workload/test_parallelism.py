from __future__ import annotations

from dataclasses import replace

import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.memory import training_memory
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.transformer import preset

HOSTS = Cluster("H100", 8, 16, 400.0)


def job(**changes: object) -> TrainingJob:
    plan = {"tensor": 4, "pipeline": 4, "global_batch": 128, "sequence_tokens": 8192} | changes
    return TrainingJob(preset("llama3-70b"), HOSTS, TrainingPlan(**plan))  # type: ignore[arg-type]


def test_groups_lie_as_megatron_numbers_ranks() -> None:
    found = {name: job().group(name) for name in ("tensor", "data", "pipeline")}
    # Ranks 0-3 are one tensor group; data parallelism takes every fourth rank of 32; a stage
    # begins every 32 ranks.
    assert (found["tensor"].size, found["tensor"].inside) == (4, 4)
    assert (found["data"].size, found["data"].inside) == (8, 2)
    assert (found["pipeline"].size, found["pipeline"].inside) == (4, 1)
    assert not found["tensor"].crosses_network
    assert found["data"].crosses_network


def test_groups_side_by_side_share_the_nics() -> None:
    data = job().group("data").cluster
    assert data is not None
    assert (data.n_domains, data.wire_gbytes_per_s) == (4, 400.0 * 2 / 8)
    alone = job(tensor=1, pipeline=1).group("data").cluster
    assert alone is not None
    assert (alone.n_domains, alone.wire_gbytes_per_s) == (16, 400.0)


def test_experts_lie_on_consecutive_ranks() -> None:
    model = preset("deepseek-v3")
    plan = TrainingPlan(tensor=1, pipeline=2, expert=16, global_batch=64)
    moe = TrainingJob(model, HOSTS, plan)
    experts, copies = moe.group("expert"), moe.group("expert_data")
    assert (experts.size, experts.inside) == (16, 8)
    assert (copies.size, copies.inside) == (4, 1)


def test_experts_may_be_divided_themselves() -> None:
    model, plan = preset("grok1-314b"), TrainingPlan(tensor=4, expert=8, global_batch=32)
    whole = TrainingJob(model, HOSTS, plan)
    split = TrainingJob(model, HOSTS, replace(plan, expert_tensor=4))
    alone = TrainingJob(model, HOSTS, replace(plan, expert=1))
    assert [job.expert_tensor_ways for job in (whole, split, alone)] == [1, 4, 4]
    assert split.group("expert").inside == 2
    assert [job.expert_data_ways for job in (whole, split)] == [16, 4]
    experts = 2 * model.expert_parameters / 8 / 1e9
    less = training_memory(whole).weights_gb - training_memory(split).weights_gb
    assert less == pytest.approx(experts * 3 / 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tensor": 3}, "do not divide into tensor"),
        ({"tensor": 128, "pipeline": 1}, "heads do not divide"),
        ({"context": 8, "sequence_tokens": 4100}, "tokens do not divide"),
        ({"global_batch": 100}, "do not divide among"),
        ({"expert": 2}, "experts do not divide"),
        ({"pipeline": 32, "tensor": 1, "chunks": 4}, "fewer than"),
        ({"precision": "nvfp4"}, "H100 has no nvfp4"),
        ({"precision": "bf1"}, "bf16"),
        ({"zero": 4}, "0 … 3"),
        ({"recompute": "some", "schedule": "gpip"}, "schedule"),
        ({"micro_batch": 0}, "micro_batch"),
        ({"expert_tensor": -1}, "expert_tensor"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        job(**changes)


def test_memory_by_hand() -> None:
    # 8.03e9 parameters on 8 GPUs, ZeRO 1: 2 + 4 + 12 / 8 bytes each.
    plan = TrainingPlan(zero=1, global_batch=8, sequence_tokens=4096, recompute="full")
    memory = training_memory(TrainingJob(preset("llama3-8b"), Cluster("H100", 8), plan))
    assert memory.weights_gb == pytest.approx(16.06, rel=0.01)
    assert memory.gradients_gb == pytest.approx(32.1, rel=0.01)
    assert memory.optimizer_gb == pytest.approx(12.05, rel=0.01)
    # Full recomputation keeps 2 bytes of 4096 numbers a layer, one layer's insides, and logits.
    inside = 2 * (2 * 4096 + 6144 + 4096) + 2 * (2 * 4096 + 3 * 14336)
    by_hand = 4096 * (32 * 2 * 4096 + inside + 4 * 128256)
    assert memory.activations_gb == pytest.approx(by_hand / 1e9, rel=1e-6)
    assert memory.fits


def test_memory_falls_with_each_stage_of_zero() -> None:
    totals = [training_memory(job(zero=zero)).total_gb for zero in range(4)]
    assert totals == sorted(totals, reverse=True)
    assert len(set(totals)) == 4
    adapters = training_memory(job(trains_adapters=True))
    assert adapters.gradients_gb == adapters.optimizer_gb == 0


def test_memory_falls_with_tensor_ways_and_recomputation() -> None:
    assert training_memory(job(tensor=8)).total_gb < training_memory(job(tensor=4)).total_gb
    full = training_memory(job(recompute="full"))
    assert full.activations_gb < training_memory(job()).activations_gb / 4
