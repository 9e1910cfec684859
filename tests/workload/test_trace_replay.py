"""Traces on a fabric: times of the models, what shows, and another GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gpufabric.catalog.load import load_catalog
from gpufabric.catalog.workload_constants import gpu_compute, training_software
from gpufabric.core.errors import InputError
from gpufabric.parse.chakra import parse_chakra
from gpufabric.parse.trace import (
    COLLECTIVE,
    COMPUTE,
    RECEIVE,
    SEND,
    Message,
    RankTrace,
    TraceOperation,
)
from gpufabric.parse.trace_files import parse_traces
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.chakra_writer import chakra_files
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.collectives import messages_of
from gpufabric.workload.group_times import GroupTimes
from gpufabric.workload.on_fabric import cluster_of
from gpufabric.workload.parallelism import TrainingJob, TrainingPlan
from gpufabric.workload.step_trace import collective_traces, message_traces, step_traces
from gpufabric.workload.step_work import work_of
from gpufabric.workload.trace_replay import Replayed, ReplayOptions, replay_traces
from gpufabric.workload.trace_work import ComputeTimes
from gpufabric.workload.training import SOFTWARE, train
from gpufabric.workload.transformer import preset
from tests.sim.plants import HALF_SMALL_LEAFS, RAIL, plant

IDEAL = Scenario("permutation", routing=Routing("adaptive"))


def replay(
    traces: Sequence[RankTrace], level: str = "closed", where: str = RAIL, **more: object
) -> Replayed:
    options = ReplayOptions(level, **more)  # type: ignore[arg-type]
    return replay_traces(traces, plant(where), load_catalog(), IDEAL, options)


def all_reduce(us: float, size: float, n: int = 64) -> list[RankTrace]:
    rows = (
        TraceOperation("f", "gemm", COMPUTE, us),
        TraceOperation("f", "sum", COLLECTIVE, 0, (0,), Message("all_reduce", size)),
        TraceOperation("f", "gemm", COMPUTE, us, (0,)),
    )
    return [RankTrace("f", "chakra", rank, rows, {}, n) for rank in range(n)]


def test_a_step_by_hand() -> None:
    cluster = cluster_of(plant(RAIL), load_catalog())
    time_us = float(estimate(cluster, "all_reduce", np.array([2.0**28])).time_us[0])
    found = replay(all_reduce(100.0, 2.0**28))
    assert found.step_us == pytest.approx(100 + time_us)
    assert found.exposed_us == pytest.approx(time_us - 100)
    assert found.low_us < found.step_us < found.high_us
    (kind,) = found.kinds
    assert (kind.operation, kind.n_ranks, kind.number) == ("all_reduce", 64, 64)
    assert kind.crosses_network
    assert all(row.compute_us == 200 for row in found.ranks)


def test_one_trace_gives_what_all_give() -> None:
    every = all_reduce(100.0, 2.0**28)
    assert replay(every[:1]).step_us == pytest.approx(replay(every).step_us)
    assert "stands for 64 ranks" in " ".join(replay(every[:1]).notes)


def test_full_flows_give_the_closed_form_and_half_the_uplinks_cost() -> None:
    def each(level: str, where: str) -> float:
        message = Message("alltoall", 2.0**28)
        row = TraceOperation("f", "a2a", COLLECTIVE, 0, (), message)
        return replay([RankTrace("f", "chakra", 0, (row,), {}, 64)], level, where).kinds[0].each_us

    closed = each("closed", RAIL)
    assert each("flow", RAIL) == pytest.approx(closed, rel=2e-3)
    place = plant(HALF_SMALL_LEAFS)
    cluster = cluster_of(place, load_catalog())
    times = GroupTimes(place, cluster, "flow", IDEAL)
    flat = GroupTimes(place, cluster, "closed", IDEAL)
    everyone = tuple(range(64))
    slowed = times.collective(everyone, "alltoall", 2.0**30).time_us
    assert slowed > 1.2 * flat.collective(everyone, "alltoall", 2.0**30).time_us


def test_groups_of_one_rail_run_at_once_and_do_not_meet() -> None:
    place = plant(RAIL)
    cluster = cluster_of(place, load_catalog())
    groups = tuple(tuple(range(rail, 64, 8)) for rail in range(8))
    runs = []

    def run(*asked: object) -> object:
        runs.append(asked[2].n_flows)  # type: ignore[attr-defined]
        return GroupTimes(place, cluster, "flow", IDEAL).run(*asked)  # type: ignore[arg-type]

    times = GroupTimes(place, cluster, "flow", IDEAL, groups, run)  # type: ignore[arg-type]
    found = [times.collective(group, "reduce_scatter", 2.0**28).time_us for group in groups]
    closed = GroupTimes(place, cluster, "closed", IDEAL, groups)
    assert found == pytest.approx(
        [closed.collective(group, "reduce_scatter", 2.0**28).time_us for group in groups], rel=2e-3
    )
    assert runs == [runs[0]]  # once for all groups
    assert runs[0] >= 64


def test_packets_say_nearly_what_flows_say() -> None:
    row = TraceOperation("f", "sum", COLLECTIVE, 0, (), Message("all_gather", 2.0**22, "a"))
    trace = RankTrace("f", "chakra", 0, (row,), {"a": (0, 8)}, 64)
    closed, packet = (replay([trace], level).step_us for level in ("closed", "packet"))
    assert closed <= packet < 1.15 * closed


def test_another_gpu_scales_computing() -> None:
    rows = (
        TraceOperation("f", "sm80_xmma_gemm", COMPUTE, 100.0),
        TraceOperation("f", "elementwise_kernel", COMPUTE, 100.0),
    )
    same, other = ComputeTimes("H100"), ComputeTimes("H100", "A100")
    assert [same.time_us(row) for row in rows] == [100, 100]
    product, memory = (other.time_us(row) for row in rows)
    a100, h100 = gpu_compute("A100"), gpu_compute("H100")
    assert memory == pytest.approx(100 * a100.memory_gbytes_per_s / h100.memory_gbytes_per_s)
    assert product < memory
    found = replay([RankTrace("f", "kineto", 0, rows, {}, 64, "NVIDIA A100-SXM4-80GB")])
    assert found.step_us < 200
    assert "computing scaled" in " ".join(found.notes)


def test_work_without_a_time_is_reckoned() -> None:
    row = TraceOperation("f", "mm", COMPUTE, 0.0, flops=1e15, moved_bytes=1e6)
    tflops = gpu_compute("H100").tflops["bf16"]
    times = ComputeTimes("H100")
    assert times.time_us(row) > 1e15 / tflops / 1e12 * 1e6
    assert times.notes


def test_a_job_larger_than_the_fabric_is_refused() -> None:
    with pytest.raises(InputError, match="128 ranks; the fabric has 64 GPUs"):
        replay(all_reduce(1.0, 8.0, 128))


def job(**plan: object) -> TrainingJob:
    """Four layers on the 64 GPUs of the fabric."""
    cluster = Cluster("H100", 8, 8, 400.0)
    model = preset(str(plan.pop("model", "llama3-8b"))).with_layers(4)
    made = {"tensor": 2, "global_batch": 64, "micro_batch": 1, "sequence_tokens": 4096} | plan
    return TrainingJob(model, cluster, TrainingPlan(**made))  # type: ignore[arg-type]


PLANS: list[dict[str, object]] = [
    {"zero": 1},
    {"zero": 0, "pipeline": 2},
    {"zero": 3, "tensor": 1},
    {"zero": 1, "context": 2, "recompute": "full"},
    {"model": "mixtral-8x7b", "expert": 8, "zero": 1, "global_batch": 32},
]


@pytest.mark.parametrize("plan", PLANS)
def test_a_step_that_is_written_takes_what_the_model_says(plan: dict[str, object]) -> None:
    made = job(**plan)
    traces = list(step_traces(made))
    found = replay(traces)
    parts = train(made).parts
    ranks = found.ranks
    own_us = 1e6 * float(parts.compute_s + parts.optimizer_s)
    stage = max(row.compute_us for row in ranks)
    assert stage == pytest.approx(own_us, rel=0.01)
    work = work_of(made, training_software(SOFTWARE))
    by_group = dict.fromkeys(("tensor", "expert", "context"), 0.0)
    names = {traces[0].groups[name]: name for name in by_group if name in traces[0].groups}
    for row in found.played:
        if row.rank == 0:
            at = found.job.members[0][row.place]
            if at in names and traces[0].operations[row.place].message.group in by_group:  # type: ignore[union-attr]
                by_group[names[at]] += (row.end_us - row.start_us) / 1e6
    n = made.n_micro_batches
    assert by_group["tensor"] == pytest.approx(n * work.tensor_s, rel=0.02)
    assert by_group["expert"] == pytest.approx(n * (work.expert_s + work.expert_far_s), rel=0.02)
    assert by_group["context"] == pytest.approx(n * work.context_s, rel=0.02)
    assert found.step_us >= own_us


def test_written_and_read_again_a_step_plays_the_same() -> None:
    traces = list(step_traces(job(pipeline=2, global_batch=32)))
    files = chakra_files(traces, "step")
    again = parse_traces(files)
    first, second = replay(traces), replay(again)
    assert second.step_us == pytest.approx(first.step_us, rel=1e-9)
    assert [len(trace.operations) for trace in again] == [len(t.operations) for t in traces]


@pytest.mark.parametrize("algorithm", ["Ring", "Tree"])
def test_a_schedule_written_as_messages_ends_and_sends_all(algorithm: str) -> None:
    cluster = Cluster("H100", 4, 2, 200.0)
    messages = messages_of(cluster, "all_reduce", algorithm, 8e6)
    traces = message_traces(messages)
    kinds = [row.kind for trace in traces for row in trace.operations]
    assert kinds.count(SEND) == kinds.count(RECEIVE) == len(messages)
    read = [
        parse_chakra(data, name, int(name.split(".")[1]))
        for name, data in chakra_files(traces, "ring").items()
        if name.endswith(".et")
    ]
    found = replay(sorted(read, key=lambda trace: trace.rank))
    sent = sum(
        row.message.input_bytes
        for trace in read
        for row in trace.operations
        if row.kind == SEND and row.message
    )
    assert sent == pytest.approx(messages.n_bytes.sum(), abs=len(messages))
    assert len(found.played) == len(kinds)


def test_a_switch_cannot_be_written_as_messages() -> None:
    messages = messages_of(Cluster("H100", 8), "all_reduce", "NVLS", 8e6)
    with pytest.raises(InputError, match="switches"):
        message_traces(messages)


def test_a_collective_is_one_node_a_rank() -> None:
    traces = collective_traces(8, "all_gather", 8e6)
    assert [row.message.input_bytes for t in traces for row in t.operations if row.message] == [
        1e6
    ] * 8
    with pytest.raises(InputError, match="no collective of a trace"):
        collective_traces(8, "sendrecv", 8e6)
