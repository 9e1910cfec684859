"""GPUDirect RDMA off, in forecasts: by its definition, and never faster than with it on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import Block, Span, hashed_slowdowns, slowdown_of
from gpufabric.workload.forecast import WorkloadForecast
from gpufabric.workload.forecast_curve import bandwidth_curves
from gpufabric.workload.forecast_training import collided_s, on_network
from gpufabric.workload.impairment import asks_of, impair
from gpufabric.workload.network_view import copying_hosts
from gpufabric.workload.parallelism import GROUP_NAMES, TrainingJob, TrainingPlan, placed
from gpufabric.workload.training import train
from gpufabric.workload.transformer import preset
from tests.report.designs import plan

H100 = Cluster("H100", 8, 16, 400.0)
LEAF = Block("leaf", 4, 2.0, 4, 32, 16, 400.0, 400.0)
JOB = TrainingJob(preset("llama3-8b"), H100, TrainingPlan(tensor=2, pipeline=2, global_batch=256))


def test_a_host_gives_its_nics_what_the_impairment_leaves_them() -> None:
    (host,) = copying_hosts(H100)
    left = impair(H100, asks_of("gdr_off")).cluster.wire_gbytes_per_s
    assert left == 192.0
    assert host.ratio == 400 / 192
    assert host.up_gbps == pytest.approx(192 / 8 * 8)
    for span in (Span(16), Span(4, 4), Span(2, 1, is_exchange=True), Span(16, is_exchange=True)):
        assert slowdown_of(span, (host,)) == pytest.approx(400 / 192)
    assert slowdown_of(Span(1), (host,)) == 1.0, "what stays in the host is not copied"


def test_the_slower_of_host_and_network_counts_and_not_both() -> None:
    (host,) = copying_hosts(H100)
    steep = replace(LEAF, ratio=4.0)
    exchange = Span(16, 1, is_exchange=True)
    assert slowdown_of(exchange, (host, steep)) == 4.0 * 12 / 15
    assert slowdown_of(exchange, (host, LEAF)) == pytest.approx(400 / 192)
    uniform = np.linspace(0.01, 0.99, 50)
    both = hashed_slowdowns(exchange, (host, LEAF), uniform)
    alone = hashed_slowdowns(exchange, (LEAF,), uniform)
    np.testing.assert_allclose(both, np.maximum(alone, 400 / 192))


def test_each_group_that_leaves_its_host_has_its_wire_so_much_slower() -> None:
    hosts = copying_hosts(H100)
    slowed = on_network(JOB, hosts).cluster
    for name in GROUP_NAMES:
        size, stride = JOB.size_and_stride(name)
        mine, full = placed(slowed, name, size, stride), placed(H100, name, size, stride)
        if full.cluster is None or full.cluster.wire_gbytes_per_s is None:
            assert mine == full
            continue
        assert mine.cluster is not None
        assert mine.cluster.wire_gbytes_per_s == pytest.approx(
            full.cluster.wire_gbytes_per_s * 192 / 400
        )
    assert on_network(JOB, ()).cluster.slowdown("data") == 1.0


@pytest.mark.parametrize(
    "cluster", [Cluster("H100", 8), Cluster("H100", 8, 4, 50.0), Cluster("H100", 8, 4, 400, "efa")]
)
def test_hosts_that_lose_nothing_are_no_blocks(cluster: Cluster) -> None:
    assert copying_hosts(cluster) == ()


@settings(max_examples=30, deadline=None)
@given(
    gpu=st.sampled_from(["V100", "A100", "H100", "B200"]),
    hosts=st.sampled_from([2, 4, 16]),
    nics=st.sampled_from([1, 2, 4, 8]),
    gbps=st.sampled_from([100, 200, 400, 800]),
    ratio=st.floats(0.5, 8.0),
)
def test_nothing_is_faster_with_gpudirect_off(
    gpu: str, hosts: int, nics: int, gbps: int, ratio: float
) -> None:
    cluster = Cluster(gpu, 8, hosts, nics * gbps / 8, n_nics=nics)
    off = copying_hosts(cluster)
    leaf = replace(LEAF, ratio=ratio, n_hosts=2)
    for span in (Span(hosts), Span(hosts, 1, is_exchange=True), Span(2, 2)):
        assert slowdown_of(span, (*off, leaf)) >= slowdown_of(span, (leaf,))
    for block in off:
        slow = replace(cluster, wire_gbytes_per_s=cluster.wire_gbytes_per_s / block.ratio)  # type: ignore[operator]
        sizes = np.array([2.0**16, 2.0**26, 2.0**33])
        for op in ("all_reduce", "alltoall"):
            assert (estimate(slow, op, sizes).time_us >= estimate(cluster, op, sizes).time_us).all()


def of(workload: str) -> list[WorkloadForecast]:
    """A forecast with GPUDirect RDMA, and the same without."""
    spec = (
        "{{gpus: 128, host: dgx-h100, candidates: [{{fabric: roce, topology: fat-tree, "
        "switch: th4-64x400g, tiers: 2, oversubscription: 2}}], workload: {{{0}, gpudirect: {1}}}}}"
    )
    found = [plan(spec.format(workload, given)).candidates[0] for given in ("true", "false")]
    assert found[0].direct_forecast is None
    assert found[1].direct_forecast == found[0].forecast
    return [one.forecast for one in found]


def test_a_step_keeps_its_plan_and_full_rate_and_is_slower() -> None:
    on, off = of("kind: training, model: llama3-8b")
    assert on.training is not None
    assert off.training is not None
    assert off.training.plan == on.training.plan
    assert off.training.full_rate_step_s == on.training.full_rate_step_s
    assert off.training.step_s > on.training.step_s
    assert off.training.hashed_step_s >= on.training.hashed_step_s
    assert off.exposed_share is not None
    assert on.exposed_share is not None
    assert off.exposed_share > on.exposed_share
    for mine, theirs in zip(off.collectives, on.collectives, strict=True):
        assert mine.slowdown == pytest.approx(max(theirs.slowdown, 400 / 192))
        assert mine.time_us > theirs.time_us
    assert any("modelled" in words for words in off.extrapolates)


def test_tokens_and_the_cache_that_is_handed_over_are_slower() -> None:
    on, off = (one.serving for one in of("kind: inference, model: deepseek-v3, precision: fp8"))
    assert on is not None
    assert off is not None
    assert off.plan == on.plan
    assert off.full_rate_token_s == on.full_rate_token_s
    assert off.token_s > on.token_s
    assert off.transfer_s > on.transfer_s
    assert off.hashed_token_s is not None
    assert on.hashed_token_s is not None
    assert off.hashed_token_s >= on.hashed_token_s


def test_the_curves_are_those_of_the_slower_hosts() -> None:
    candidate = plan("{gpus: 64, host: dgx-h100, candidates: [roce]}").candidates[0]
    on = bandwidth_curves(candidate.fabric, "H100")
    off = bandwidth_curves(candidate.fabric, "H100", has_gpudirect=False)
    slow = estimate(Cluster("H100", 8, 8, 192.0), "all_reduce", off[0].size_bytes)
    np.testing.assert_allclose(off[0].busbw_gbytes_per_s, slow.busbw_gbytes_per_s)
    assert (off[0].busbw_gbytes_per_s < on[0].busbw_gbytes_per_s)[-1]


def test_collisions_add_only_where_they_are_slower_than_the_copies() -> None:
    hosts = copying_hosts(H100)
    ample = Block("leaf", 4, 1.0, 4, 32, 32, 400.0, 400.0)
    found = train(on_network(JOB, (*hosts, ample)))
    late_s = collided_s(found, (*hosts, ample), 1)
    bare = train(on_network(JOB, (ample,)))
    bare_late_s = collided_s(bare, (ample,), 1)
    assert (late_s >= 0).all()
    np.testing.assert_array_less(bare.step_s + bare_late_s, found.step_s + late_s + 1e-12)
