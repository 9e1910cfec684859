from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.catalog.workload_constants import gpu_compute, training_fit, training_software
from gpufabric.core.errors import InputError
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.step_time import parts_of, shares_of
from gpufabric.workload.step_work import work_of
from gpufabric.workload.training import train
from gpufabric.workload.transformer import preset

PROGRAM = training_software("megatron-2025")


def hosts(n_hosts: int, wire: float = 400.0) -> Cluster:
    return Cluster("H100", 8, n_hosts, wire if n_hosts > 1 else None)


def dense(n_hosts: int = 8, wire: float = 400.0, **changes: Any) -> TrainingJob:
    plan: dict[str, Any] = {"tensor": 4, "pipeline": 4, "chunks": 5, "context": 2}
    plan |= {"global_batch": 16 * n_hosts}
    plan |= {"sequence_tokens": 8192, "schedule": "interleaved"} | changes
    made = TrainingPlan(**plan)
    return TrainingJob(preset("llama3-70b"), hosts(n_hosts, wire), made)


def test_products_and_core_by_hand() -> None:
    plan = TrainingPlan(global_batch=8, sequence_tokens=2048, micro_batch=1)
    job = TrainingJob(preset("gpt3-175b"), hosts(1), plan)
    work = work_of(job, PROGRAM)
    # 12 h**2 parameters a layer, 2 FLOPs each, forwards and twice backwards.
    products = 3 * 2 * 2048 * 96 * 12 * 12288**2 / 989e12
    assert work.product_s == pytest.approx(products)
    assert work.product16_s == pytest.approx(3 * 2 * 2048 * 12288 * 51200 / 989e12)
    core = 3.5 * 2048 * 96 * 4 * 12288 * 1024 / 989e12
    assert work.core_s == pytest.approx(core)


def test_communication_by_hand() -> None:
    work = work_of(dense(), PROGRAM)
    job = dense()
    tensor = job.group("tensor").cluster
    assert tensor is not None
    size = 4096 * 8192 * 2.0  # bytes of a micro-batch on one context rank
    gather, scatter = (
        float(estimate(tensor, op, [size]).time_us[0]) / 1e6  # type: ignore[arg-type]
        for op in ("all_gather", "reduce_scatter")
    )
    blocks = 2 * 20  # of a stage
    assert work.tensor_s == pytest.approx(blocks * (3 * gather + 2 * scatter))
    assert work.micro_batches == 16 * 8 / 2
    # Four stages of five chunks: three fifths of a micro-batch, but for the head's stage.
    assert 0.5 < work.bubble <= 0.6


def test_full_recomputation_is_one_more_pass() -> None:
    plain, again = (work_of(dense(recompute=name), PROGRAM) for name in ("none", "full"))
    assert again.product_s == pytest.approx(plain.product_s * 4 / 3)


def test_divided_experts_gather_their_tokens() -> None:
    plan = TrainingPlan(tensor=4, expert=8, global_batch=16)
    whole, split = (
        work_of(TrainingJob(preset("grok1-314b"), hosts(8), one), PROGRAM)
        for one in (plan, replace(plan, expert_tensor=4))
    )
    # The FLOPs stay, but for whole tiles; tokens go to more ranks and are gathered there.
    assert split.product_s == pytest.approx(whole.product_s, rel=0.01)
    assert split.tensor_s > whole.tensor_s


def test_a_balanced_pipeline_counts_token_matrices_as_layers() -> None:
    # Llama-3 405B: 126 layers and two matrices are 128 = 8 stages of 16.
    plan = TrainingPlan(tensor=8, pipeline=8, chunks=8, global_batch=64, sequence_tokens=8192)
    job = TrainingJob(preset("llama3-405b"), hosts(16), plan)
    assert work_of(job, PROGRAM).layers in {15.0, 16.0}


def test_no_step_beats_the_data_sheet() -> None:
    for name in ("llama3-8b", "llama3-405b", "mixtral-8x7b"):
        plan = TrainingPlan(tensor=8, global_batch=64, sequence_tokens=4096)
        found = train(TrainingJob(preset(name), hosts(8), plan))
        assert 0.05 < found.mfu < 0.9
        flops = found.job.model.flops_per_token(4096) * found.job.tokens
        assert found.step_s > flops / (64 * gpu_compute("H100").tflops["bf16"] * 1e12)


def test_parts_add_up_and_lie_in_the_interval() -> None:
    found = train(dense())
    assert sum(found.parts) == pytest.approx(found.step_s)
    assert min(found.parts) >= 0
    assert found.low_s < found.step_s < found.high_s
    rate = found.tokens_per_s_per_gpu * found.step_s * 64
    assert rate == pytest.approx(found.job.tokens)


def test_a_slower_network_never_helps() -> None:
    times = [train(dense(wire=wire)).step_s for wire in (400.0, 100.0, 25.0, 6.25)]
    assert times == sorted(times)
    assert times[-1] > 1.2 * times[0]


def test_tensor_parallelism_over_the_network_costs() -> None:
    inside = train(dense(tensor=8, pipeline=4, context=2))
    plan = replace(dense().plan, tensor=16, pipeline=2)
    outside = train(TrainingJob(preset("llama3-70b"), hosts(8), plan))
    assert outside.exposed_s["tensor"] > 2 * inside.exposed_s["tensor"]
    assert outside.network_share > inside.network_share


def test_zero_bubble_and_chunks_wait_less() -> None:
    plain, chunks, zero = (
        train(dense(chunks=n, schedule=schedule))
        for n, schedule in ((1, "1f1b"), (5, "interleaved"), (1, "zero-bubble"))
    )
    assert plain.parts.bubble_s > zero.parts.bubble_s > chunks.parts.bubble_s
    assert any("zero-bubble" in reason for reason in zero.extrapolates)


def test_sharded_training_moves_each_micro_batch() -> None:
    plan = TrainingPlan(zero=3, global_batch=64, sequence_tokens=4096, micro_batch=1)
    slow = train(TrainingJob(preset("llama3-8b"), hosts(8, 25.0), plan), "fsdp-compiled")
    fast = train(TrainingJob(preset("llama3-8b"), hosts(8, 400.0), plan), "fsdp-compiled")
    assert slow.exposed_s["data"] > 5 * fast.exposed_s["data"]
    twice = replace(plan, global_batch=128)
    double = train(TrainingJob(preset("llama3-8b"), hosts(8, 25.0), twice), "fsdp-compiled")
    assert double.exposed_s["data"] == pytest.approx(2 * slow.exposed_s["data"])


def test_weak_scaling_is_flat_where_data_parallelism_hides() -> None:
    small, large = (train(dense(n_hosts)) for n_hosts in (8, 64))
    assert large.step_s == pytest.approx(small.step_s, rel=0.02)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_more_micro_batches_take_longer_and_fill_the_pipeline(
    tensor: int, pipeline: int, micro: int
) -> None:
    changes: dict[str, Any] = {"tensor": tensor, "pipeline": pipeline, "context": 1}
    changes |= {"chunks": 1, "schedule": "1f1b", "micro_batch": micro}
    data = 64 // (tensor * pipeline)
    few, many = (train(dense(global_batch=data * micro * count, **changes)) for count in (2, 8))
    assert few.step_s < many.step_s <= 4 * few.step_s * (1 + 1e-9)


def test_arrays_and_numbers_agree() -> None:
    work = work_of(dense(), PROGRAM)
    shares = shares_of(training_fit(), "H100", "hopper", "bf16", ("megatron-2025", PROGRAM))
    once = parts_of(work, shares)
    assert once.total_s == pytest.approx(train(dense(), "megatron-2025").step_s)


def test_what_was_never_measured_is_said() -> None:
    plan = TrainingPlan(tensor=8, global_batch=64)
    job = TrainingJob(preset("llama3-8b"), Cluster("MI300X", 8, 8, 400.0), plan)
    found = train(job)
    assert "MI300X" in found.extrapolates[0]
    known = train(dense(), "megatron-2025")
    assert known.extrapolates == ()
    assert known.high_s / known.step_s < found.high_s / found.step_s
    with pytest.raises(InputError, match="megatron-2025"):
        train(job, "megatron-2024")
