"""A spec's workload on its candidates: hand arithmetic, laws, and what is told when it cannot."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from gpufabric.planner.plan import Plan
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.forecast import WorkloadForecast, forecast
from gpufabric.workload.forecast_training import TrainingForecast
from gpufabric.workload.network_view import view_of
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.training import train
from gpufabric.workload.transformer import preset
from tests.report.designs import plan

CANDIDATES = "[infiniband, {fabric: roce, oversubscription: 2, tiers: 2}]"


@functools.cache
def planned(workload: str, host: str = "dgx-h100", gpus: int = 2048) -> Plan:
    return plan(
        f"{{gpus: {gpus}, host: {host}, candidates: {CANDIDATES}, workload: {{{workload}}}}}"
    )


def of(workload: str, host: str = "dgx-h100", gpus: int = 2048) -> list[WorkloadForecast]:
    return [one.forecast for one in planned(workload, host, gpus).candidates]


def trained(workload: str) -> list[TrainingForecast]:
    found = [one.training for one in of(workload)]
    return [one for one in found if one is not None]


FULL = "model: llama3-70b, parallelism: {tp: 8, pp: 4, dp: 64, cp: 1, ep: 1}, precision: bf16"


def test_the_cluster_is_that_of_the_hosts() -> None:
    candidate = planned(FULL).candidates[0]
    assert view_of(candidate.fabric, "H100").cluster == Cluster("H100", 8, 256, 400.0)


def test_a_step_is_that_of_the_model_alone() -> None:
    found, _second = trained(FULL)
    assert {name: found.plan[name] for name in ("tensor", "pipeline", "data", "context")} == {
        "tensor": 8,
        "pipeline": 4,
        "data": 64,
        "context": 1,
    }
    given = {name: value for name, value in found.plan.items() if name != "data"}
    ways = replace(TrainingPlan(), **given)  # type: ignore[arg-type]
    alone = train(TrainingJob(preset("llama3-70b"), Cluster("H100", 8, 256, 400.0), ways))
    assert found.step_s == found.full_rate_step_s == alone.step_s
    assert found.tokens_per_s == pytest.approx(2048 * 8192 / alone.step_s)
    assert (found.low_s, found.high_s, found.mfu) == (alone.low_s, alone.high_s, alone.mfu)


def test_the_parts_make_the_step_and_the_hours_lost() -> None:
    for found in trained(FULL):
        parts = found.compute_s + found.bubble_s + found.optimizer_s + sum(found.exposed_s.values())
        assert parts == pytest.approx(found.step_s)
        waited = sum(found.exposed_s.values()) / found.jitter.mean_s * 2048 * 24
        assert found.lost_gpu_hours_per_day["communication"] == pytest.approx(waited)
        late = found.jitter.mean_s - found.step_s
        assert sum(found.jitter.by_cause_s.values()) == pytest.approx(late)
        assert found.step_s <= found.jitter.p50_s <= found.jitter.p99_s


def test_candidates_differ_by_their_networks_only() -> None:
    infiniband, roce = trained("model: deepseek-v3, parallelism: {ep: 64}")
    assert infiniband.plan == roce.plan
    assert infiniband.full_rate_step_s == roce.full_rate_step_s == infiniband.step_s
    assert roce.step_s >= infiniband.step_s
    assert infiniband.jitter.by_cause_s["collisions"] == 0
    assert roce.jitter.by_cause_s["collisions"] > 0
    assert roce.hashed_step_s == pytest.approx(roce.step_s + roce.jitter.by_cause_s["collisions"])


def test_oversubscription_slows_an_exchange_and_no_ring() -> None:
    full, half = of(FULL)
    rows = {(row.operation, row.size_bytes): row for row in half.collectives}
    assert rows["all_reduce", 2**30].slowdown == 1
    exchange = rows["alltoall", 2**30]
    assert 1 < exchange.slowdown < 2
    slowed = Cluster("H100", 8, 256, 400.0 / exchange.slowdown)
    alone = estimate(slowed, "alltoall", np.array([2.0**30]))
    assert exchange.busbw_gbytes_per_s == alone.busbw_gbytes_per_s[0]
    assert exchange.low_gbytes_per_s < exchange.busbw_gbytes_per_s < exchange.high_gbytes_per_s
    assert full.collectives[-1].busbw_gbytes_per_s > exchange.busbw_gbytes_per_s


def test_inference_counts_whole_instances() -> None:
    found = of("kind: inference, model: deepseek-v3, parallelism: {tp: 1, ep: 64}")[0].serving
    assert found is not None
    assert (found.instance_gpus, found.n_instances) == (64, 32)
    assert found.fits
    each = float(found.plan["sequences"]) / found.token_s
    assert found.tokens_per_s == pytest.approx(32 * each)
    assert found.token_s < found.p50_s <= found.p99_s
    assert 0 < found.network_share < 1


def test_serving_over_leafs_is_slowed_by_blocking_and_more_by_hashing() -> None:
    towers = "fabric: roce, topology: fat-tree, switch: th4-64x400g, tiers: 2"
    spec = (
        "{gpus: 256, host: dgx-h100, candidates: "
        f"[{{name: full, {towers}}}, {{name: half, {towers}, oversubscription: 2}}], "
        "workload: {kind: inference, model: deepseek-v3, parallelism: {tp: 1, ep: 256}}}"
    )
    full, half = (one.forecast.serving for one in plan(spec).candidates)
    assert full is not None
    assert half is not None
    assert full.full_rate_token_s == full.token_s
    assert half.full_rate_token_s == full.token_s
    assert half.token_s > full.token_s
    assert full.hashed_token_s is not None
    assert half.hashed_token_s is not None
    assert full.hashed_token_s > full.token_s, "the fullest uplink is late without blocking too"
    assert half.hashed_token_s > half.token_s


def test_what_is_left_open_is_chosen_and_told() -> None:
    found = of("kind: training")[0]
    assert found.training is not None
    assert found.training.model == "llama3-70b"
    assert any("llama3-70b" in words for words in found.assumed)
    assert found.training.fits
    assert of(FULL)[0].assumed == ("Batch: 2,048 sequences of 8,192 tokens a step.",)


@pytest.mark.parametrize(
    ("workload", "host", "gpus", "words"),
    [
        ("model: llama3-405b", "dgx-h100", 64, "more memory than 64 GPUs have"),
        ("kind: training", "dgx-rubin-nvl8", 64, "Rubin"),
        ("model: llama3-70b, precision: fp4", "dgx-h100", 64, "has no nvfp4"),
        ("kind: inference, model: llama3-405b, parallelism: {tp: 2}", "dgx-h100", 64, "GB a GPU"),
        (
            "global_batch: 7, model: llama3-8b, parallelism: {tp: 1, pp: 1}",
            "dgx-h100",
            64,
            "cannot be divided",
        ),
    ],
)
def test_what_cannot_be_told_has_a_reason(workload: str, host: str, gpus: int, words: str) -> None:
    for found in of(workload, host, gpus):
        assert found.training is None
        assert found.serving is None
        assert found.exposed_share is None
        assert found.lost_gpu_hours_per_day is None
        assert any(words in reason for reason in found.unknown), found.unknown


def test_a_host_of_ones_own_has_a_forecast_where_its_gpu_is_named() -> None:
    host = "{gpus: 8, nics: 8, nic_gbps: 400}"
    assert "no compute rates" in of("kind: training", host)[0].unknown[0]
    named = of(FULL, host.replace("}", ", gpu: H100}"))[0].training
    assert named is not None
    assert named.step_s == trained(FULL)[0].step_s


def test_it_is_deterministic_and_a_seed_changes_jitter_only() -> None:
    made = planned(FULL)
    candidate = made.candidates[1]
    again = forecast(made.requirement, candidate.design.host, candidate.fabric)
    assert again == candidate.forecast
    other = made.requirement.model_copy(update={"seed": 2})
    drawn = forecast(other, candidate.design.host, candidate.fabric)
    assert drawn.training is not None
    assert again.training is not None
    assert drawn != again
    same = replace(
        drawn.training,
        jitter=again.training.jitter,
        lost_gpu_hours_per_day=again.training.lost_gpu_hours_per_day,
        hashed_step_s=again.training.hashed_step_s,
    )
    assert same == again.training
