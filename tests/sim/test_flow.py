"""The flow engine by worked numbers, its statuses, its events and what it refuses."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.sim.flow import (
    FINISHED,
    PENDING,
    RUNNING,
    STALLED,
    WAITING,
    FabricEvents,
    FlowProblem,
    FlowResult,
    Paths,
    Predecessors,
    allocate,
    simulate,
)

GBYTE = 1e9  # 400 Gb/s are 50 GB/s


def on_one_channel(sizes: list[float], **more: object) -> FlowProblem:
    rows = Paths.from_lists([[0]] * len(sizes))
    return dataclasses.replace(
        FlowProblem(np.array([400.0]), rows, np.array(sizes)),
        **more,  # type: ignore[arg-type]
    )


def two_ways(size: float) -> FlowProblem:
    """One flow on channel 0, with channel 1 as row 1 of the paths."""
    paths = Paths.from_lists([[0], [1]])
    return FlowProblem(np.array([400.0, 400.0]), paths, np.array([size]), path=np.array([0]))


def test_three_flows_by_hand() -> None:
    """docs/models/flow.md works these numbers by hand."""
    problem = FlowProblem(
        np.array([400.0, 400.0, 100.0]),
        Paths.from_lists([[0, 1], [0, 2], [1]]),
        np.array([6.0, 1.25, 3.0]) * GBYTE,
    )
    result = simulate(problem)
    assert result.finish_s == pytest.approx([0.18, 0.1, 0.12])
    assert result.carried_bytes == pytest.approx([7.25e9, 9e9, 1.25e9])
    assert result.rates_gbps == pytest.approx([6 * 8 / 0.18, 100.0, 200.0])
    assert result.end_s == pytest.approx(0.18)


def test_weights_share_and_caps_hold() -> None:
    """1:3 of 400 Gb/s; with the heavy one held at 200, the other takes the rest."""
    paths = Paths.from_lists([[0], [0]])
    weights = np.array([1.0, 3.0])
    assert allocate(np.array([400.0]), paths, weights).rates_gbps.tolist() == [100.0, 300.0]
    found = allocate(np.array([400.0]), paths, weights, np.array([np.inf, 200.0]))
    assert found.rates_gbps.tolist() == [200.0, 200.0]
    assert found.bottleneck.tolist() == [0, -1]


def test_an_incast_ends_when_all_bytes_are_through() -> None:
    """Seven senders of 1 GB into 400 Gb/s: the last byte arrives after 7 GB / 50 GB/s."""
    paths = Paths.from_lists([[1 + sender, 0] for sender in range(7)])
    result = simulate(FlowProblem(np.full(8, 400.0), paths, np.full(7, GBYTE)))
    assert result.finish_s == pytest.approx(np.full(7, 7 / 50))
    assert result.rates_gbps == pytest.approx(np.full(7, 400 / 7))


def test_latency_comes_before_the_first_byte() -> None:
    paths = Paths.from_lists([[0]], latency_s=[0.005])
    problem = FlowProblem(np.array([400.0]), paths, np.array([GBYTE]), start_s=np.array([0.1]))
    result = simulate(problem)
    assert result.begun_s == pytest.approx([0.105])
    assert result.finish_s == pytest.approx([0.125])


def test_a_flow_waits_for_all_its_predecessors() -> None:
    """0 and 1 share the channel, 40 ms and 60 ms; then 2 starts, alone, with its latency."""
    problem = dataclasses.replace(
        on_one_channel([GBYTE, 2 * GBYTE, GBYTE]),
        paths=Paths.from_lists([[0]], latency_s=[0.001]),
        path=np.zeros(3, np.int32),
        predecessors=Predecessors(np.array([0, 0, 0, 2]), np.array([0, 1], np.int32)),
    )
    result = simulate(problem)
    assert result.finish_s == pytest.approx([0.041, 0.061, 0.082])
    assert result.begun_s[2] == pytest.approx(0.062)


def test_no_bytes_take_no_time() -> None:
    result = simulate(on_one_channel([0.0, GBYTE]))
    assert result.finish_s == pytest.approx([0.0, 0.02])
    assert np.isnan(result.rates_gbps[0])


def test_a_failed_link_stalls_its_flow_until_repaired() -> None:
    """Half of 2 GB through at 0.02; dead until 0.05; the other half takes 0.02."""
    events = FabricEvents.capacity(0.02, [0], 0.0) + FabricEvents.capacity(0.05, [0], 400.0)
    result = simulate(on_one_channel([2 * GBYTE]), events)
    assert result.finish_s == pytest.approx([0.07])


def test_a_link_that_stays_dead_leaves_a_stalled_flow() -> None:
    result = simulate(on_one_channel([2 * GBYTE]), FabricEvents.capacity(0.02, [0], 0.0))
    assert result.status.tolist() == [STALLED]
    assert np.isnan(result.finish_s[0])
    assert result.left_bytes == pytest.approx([GBYTE])
    assert result.carried_bytes == pytest.approx([GBYTE])


def test_a_rerouted_flow_goes_on_with_what_is_left() -> None:
    """1 GB over channel 0, then dead for 0.01 s, then 1 GB over channel 1."""
    events = FabricEvents.capacity(0.02, [0], 0.0) + FabricEvents.reroute(0.03, [0], [1])
    result = simulate(two_ways(2 * GBYTE), events)
    assert result.finish_s == pytest.approx([0.05])
    assert result.carried_bytes == pytest.approx([GBYTE, GBYTE])


def test_a_degraded_link_is_slower() -> None:
    result = simulate(on_one_channel([2 * GBYTE]), FabricEvents.capacity(0.02, [0], 100.0))
    assert result.finish_s == pytest.approx([0.02 + 0.08])


def test_a_run_may_end_early() -> None:
    problem = dataclasses.replace(
        on_one_channel([GBYTE, 4 * GBYTE, GBYTE, GBYTE]),
        start_s=np.array([0.0, 0.0, 0.5, 0.0]),
        predecessors=Predecessors(np.array([0, 0, 0, 0, 1]), np.array([2], np.int32)),
    )
    result = simulate(problem, until_s=0.05)
    assert result.status.tolist() == [FINISHED, RUNNING, PENDING, WAITING]
    assert result.left_bytes == pytest.approx([0.0, 2.5 * GBYTE, GBYTE, GBYTE])
    assert result.end_s == 0.05


def test_time_series_add_up() -> None:
    """300 Gb/s and 100 Gb/s until the first 1 GB is through, then 100 Gb/s until 0.16 s.

    The bins first cover the least time that 3 GB need, 0.06 s, and double twice.
    """
    problem = dataclasses.replace(
        on_one_channel([GBYTE, 2 * GBYTE]), cap_gbps=np.array([np.inf, 100.0])
    )
    result = simulate(problem, series_bins=8)
    assert result.series is not None
    assert result.series.bin_s == pytest.approx(0.03)
    full_s = GBYTE / 37.5e9
    expected = [(full_s + 0.25 * (0.03 - full_s)) / 0.03, *[0.25] * 4, 0.25 / 3, 0.0, 0.0]
    share = result.series.utilisation(problem.capacity_gbps)[:, 0]
    assert share == pytest.approx(expected)


def test_equal_flows_are_one_bundle_and_a_ring_is_not_touched_between_steps() -> None:
    """Each of 100 steps of a ring of 8 starts when the step before ends: rates never change."""
    n_ranks, n_steps = 8, 100
    path = np.tile(np.arange(n_ranks, dtype=np.int32), n_steps)
    step, rank = np.divmod(np.arange(n_ranks * n_steps), n_ranks)
    later = step > 0
    before = ((step - 1) * n_ranks + (rank - 1) % n_ranks)[later].astype(np.int32)
    problem = FlowProblem(
        np.full(n_ranks, 400.0),
        Paths.from_lists([[rank] for rank in range(n_ranks)]),
        np.full(path.size, GBYTE),
        path=path,
        predecessors=Predecessors(np.concatenate([[0], np.cumsum(later)]), before),
    )
    result = simulate(problem)
    assert result.finish_s[-1] == pytest.approx(n_steps * 0.02)
    assert result.n_adjusted == n_ranks


def digest(result: FlowResult) -> str:
    parts = (result.finish_s, result.carried_bytes, result.left_bytes, result.rates_gbps)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


RANDOM_RUN = """
import numpy as np
from gpufabric.sim.flow import FlowProblem, Paths, simulate
from tests.sim.test_flow import digest, random_problem
print(digest(simulate(random_problem())))
"""


def random_problem() -> FlowProblem:
    rng = np.random.default_rng(7)
    rows = [rng.choice(40, 4, replace=False).tolist() for _ in range(300)]
    size, start = rng.exponential(1e9, 300), rng.uniform(0, 0.1, 300)
    return FlowProblem(np.full(40, 400.0), Paths.from_lists(rows), size, start_s=start)


def test_same_input_same_bytes() -> None:
    """In this process twice, and in another one with another number of threads."""
    mine = digest(simulate(random_problem()))
    assert digest(simulate(random_problem())) == mine
    other = subprocess.run(
        [sys.executable, "-c", RANDOM_RUN],
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == mine


def test_inputs_are_not_written() -> None:
    problem = random_problem()
    before = [problem.capacity_gbps.copy(), problem.size_bytes.copy(), problem.paths.channel.copy()]
    simulate(problem, FabricEvents.capacity(0.05, [3], 100.0))
    after = [problem.capacity_gbps, problem.size_bytes, problem.paths.channel]
    assert all((one == two).all() for one, two in zip(before, after, strict=True))


def test_all_faults_are_told_together() -> None:
    problem = FlowProblem(
        np.array([400.0, -1.0]),
        Paths.from_lists([[0], [7]]),
        np.array([1.0, np.nan]),
        start_s=np.array([0.0]),
        weight=np.array([0.0, 1.0]),
    )
    with pytest.raises(InputError) as caught:
        simulate(problem)
    wheres = [fault.where for fault in caught.value.faults]
    expected = ["capacity_gbps[1]", "paths.channel[1]", "size_bytes[1]", "start_s", "weight[0]"]
    assert wheres == expected
    assert "paths.channel[1]: the value is 7. Expected: 0 to 1." in str(caught.value)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"path": np.array([0, 5])}, "path[1]"),
        ({"path": np.array([0.5, 1.0])}, "path"),
        ({"cap_gbps": np.array([-1.0, 1.0])}, "cap_gbps[0]"),
        ({"size_bytes": np.ones((2, 1))}, "size_bytes"),
        ({"size_bytes": np.ones(3)}, "path"),
        ({"paths": Paths(np.array([0, 2, 1]), np.array([0, 0]))}, "paths.first"),
        ({"paths": Paths.from_lists([[0], [0]], [[1.0], [-0.5]])}, "paths.fraction[1]"),
        ({"paths": Paths.from_lists([[0], [0]], None, [0.0, np.inf])}, "paths.latency_s[1]"),
        (
            {"predecessors": Predecessors(np.array([0, 1, 1]), np.array([2]))},
            "predecessors.flow[0]",
        ),
        ({"predecessors": Predecessors(np.array([0, 1, 2]), np.array([1, 0]))}, "predecessors"),
    ],
)
def test_what_is_refused(change: dict[str, object], where: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(on_one_channel([1.0, 1.0], **change))
    assert caught.value.faults[0].where == where


@pytest.mark.parametrize(
    ("events", "where"),
    [
        (FabricEvents.capacity(0.0, [3], 1.0), "events.channel[0]"),
        (FabricEvents.capacity(-1.0, [0], 1.0), "events.time_s[0]"),
        (FabricEvents.reroute(0.0, [0], [9]), "events.path[0]"),
        (FabricEvents.reroute(0.0, [0], [-1]), "events[0]"),
    ],
)
def test_events_that_are_refused(events: FabricEvents, where: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(on_one_channel([1.0]), events)
    assert caught.value.faults[0].where == where


@pytest.mark.parametrize(
    ("until_s", "bins", "where"), [(-1.0, 0, "until_s"), (1.0, 3, "series_bins")]
)
def test_options_that_are_refused(until_s: float, bins: int, where: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(on_one_channel([1.0]), until_s=until_s, series_bins=bins)
    assert caught.value.faults[0].where == where


def test_no_flows_is_no_fault() -> None:
    problem = FlowProblem(np.array([400.0]), Paths.from_lists([]), np.empty(0))
    result = simulate(problem)
    assert result.finish_s.size == 0
    assert result.end_s == 0.0
