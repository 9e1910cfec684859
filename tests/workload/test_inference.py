from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.expert_exchange import exchange_s
from gpufabric.workload.inference import ServingPlan, cache_bytes_per_token, serve
from gpufabric.workload.parallelism import placed
from gpufabric.workload.transformer import preset

HOST = Cluster("H100", 8)
HOSTS = Cluster("H800", 8, 18, 400.0)
SHARED = Path(__file__).parents[3] / "shared" / "measurements" / "ep_alltoall.csv"


def test_keys_and_values_by_hand() -> None:
    plan = ServingPlan(cache_bytes=2.0)
    # 80 layers, keys and values of 8 heads of 128, 2 bytes each.
    assert cache_bytes_per_token(preset("llama3-70b"), plan, 4096) == 80 * 2 * 8 * 128 * 2
    # Compressed: 512 + 64 numbers a layer; DeepSeek-V3, arXiv:2412.19437: 70 KB a token.
    assert cache_bytes_per_token(preset("deepseek-v3"), plan, 4096) == 61 * 576 * 2
    windowed = cache_bytes_per_token(preset("gpt-oss-120b"), plan, 4096)
    assert windowed == (18 + 18 * 128 / 4096) * 2 * 8 * 64 * 2


def test_one_sequence_is_bound_by_reading_weights() -> None:
    found = serve(preset("llama3-8b"), Cluster("H100", 1), ServingPlan(sequences=1))
    # 8.03e9 parameters, matrices of tokens in 16 bit, others in 8; 80 % of 3.35 TB/s.
    n_bytes = 8.03e9 - 2 * 4096 * 128256 + 2 * 4096 * 128256 * 2
    assert found.decode.weights_s == pytest.approx(n_bytes / (0.8 * 3.35e12), rel=0.01)
    assert found.decode.network_s == 0
    assert found.decode.weights_s > 0.7 * found.decode.step_s


def test_more_sequences_give_more_tokens_and_take_longer() -> None:
    found = [
        serve(preset("llama3-70b"), HOST, ServingPlan(tensor=8, sequences=n)) for n in (1, 16, 128)
    ]
    steps = [one.decode.step_s for one in found]
    rates = [one.decode_tokens_per_s_per_gpu for one in found]
    assert steps == sorted(steps)
    assert rates == sorted(rates)


def test_few_sequences_use_few_experts() -> None:
    few, many = (
        serve(preset("mixtral-8x7b"), HOST, ServingPlan(tensor=8, sequences=n)) for n in (1, 64)
    )
    assert few.decode.weights_s < 0.5 * many.decode.weights_s


def test_disaggregation_sends_keys_and_values() -> None:
    plan = ServingPlan(tensor=8, prompt_tokens=8192)
    together = serve(preset("llama3-70b"), HOSTS, plan)
    apart = serve(preset("llama3-70b"), HOSTS, replace(plan, is_disaggregated=True))
    slow = Cluster("H800", 8, 18, 1.0)
    slowly = serve(preset("llama3-70b"), slow, replace(plan, is_disaggregated=True))
    assert together.prefill.transfer_s == 0
    assert apart.prefill.cache_bytes == pytest.approx(8192 * 80 * 2 * 8 * 128 * 2)
    # Fast: only the last layer's part shows. Slow: all but what hides behind prefill.
    assert apart.prefill.transfer_s < 0.02 * apart.prefill.busy_s
    assert slowly.prefill.transfer_s > slowly.prefill.busy_s
    assert slowly.network_share > apart.network_share


def test_waiting_grows_with_utilisation() -> None:
    found = [
        serve(preset("llama3-8b"), HOST, ServingPlan(utilisation=share)).prefill
        for share in (0.0, 0.5, 0.9)
    ]
    assert found[0].wait_s == 0
    # M/D/1: half of load / (1 - load) times the service.
    assert found[1].wait_s == pytest.approx(found[1].busy_s / 2)
    assert found[2].wait_s == pytest.approx(4.5 * found[2].busy_s)


def test_deepseek_as_published() -> None:
    # "DeepSeek-V3/R1 Inference System Overview", 2025-03: on hosts of 8 H800, experts over 144
    # GPUs, contexts of 4,989 tokens in the mean: 14.8e3 output tokens a second and host, 20 to
    # 22 tokens a second and request. No constant is fitted on this.
    plan = ServingPlan(expert=144, sequences=144 * 88, prompt_tokens=4889, output_tokens=200)
    found = serve(preset("deepseek-v3"), HOSTS, plan)
    assert found.fits
    assert 1 / found.decode.step_s == pytest.approx(21, rel=0.25)
    assert 8 * found.decode_tokens_per_s_per_gpu == pytest.approx(14800, rel=0.25)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared measurements are not here")
def test_exchange_with_experts_as_deepep_measured() -> None:
    # 128 tokens to 8 experts each of 7168 numbers: dispatched in fp8, combined in 16 bit.
    sizes = {"dispatch": 128 * 8 * 7168 * 1.03, "combine": 128 * 8 * 7168 * 2.0}
    with SHARED.open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["kernel"] == "low_latency"]
    assert len(rows) >= 10
    for row in rows:
        ranks = int(row["ep_ranks"])
        if ranks > 8:
            group = placed(Cluster("H800", 8, ranks // 8, 400.0), "expert", ranks, 1)
            time_us = exchange_s(group, sizes[row["op"]]) * 1e6
            assert time_us == pytest.approx(float(row["latency_us"]), rel=0.2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tensor": 3}, "tensor ways"),
        ({"sequences": 0}, "sequences"),
        ({"utilisation": 1.0}, "utilisation"),
        ({"precision": "nvfp4"}, "no nvfp4"),
        ({"is_disaggregated": True}, "need a network"),
        ({"expert": 8}, "expert ways"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, object], words: str) -> None:
    plan = replace(ServingPlan(), **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        serve(preset("llama3-8b"), HOST, plan)
