from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from gpufabric.core.errors import Fault, InputError, StateError
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import SWEEP_KEYS, Scenario, changed, parse_bytes
from gpufabric.sim.sweep import (
    METRICS,
    Point,
    by_combination,
    check_size,
    make_points,
    parse_axes,
    run_sweep,
    spread_of,
)
from gpufabric.sim.sweep_journal import open_journal
from gpufabric.sim.traffic import PatternOptions
from tests.sim.plants import RAIL, RAIL_ONLY, fabric, plant

SMALL = Scenario("permutation", PatternOptions(1e8), n_gpus=16)


def points_of(*asked: str, n_seeds: int = 2, scenario: Scenario = SMALL) -> tuple[Point, ...]:
    return make_points(
        scenario, parse_axes(asked), n_seeds, {("", ""): 0}, [(plant(RAIL).digest, "roce")]
    )


def silent(_done: int) -> None:
    """Tell nobody."""


# Axes and points ---------------------------------------------------------------------------------


def test_all_combinations_come_in_order_each_with_all_seeds() -> None:
    points = points_of("routing=ecmp, spray", "qps=1,2")
    assert [tuple(point.values.values()) for point in points[::2]] == [
        ("ecmp", "1"),
        ("ecmp", "2"),
        ("spray", "1"),
        ("spray", "2"),
    ]
    assert [point.scenario.seed for point in points] == [0, 1] * 4
    assert [point.number for point in points] == list(range(8))
    assert points[2].scenario.routing == Routing("ecmp", 2)


def test_the_key_depends_on_all_that_the_result_depends_on(tmp_path: Path) -> None:
    file = tmp_path / "flows.csv"
    file.write_text("flow_id,src,dst,size_bytes\n0,0,9,1e6\n")
    axes = parse_axes([])
    scenarios = [
        SMALL,
        Scenario("permutation", PatternOptions(2e8), n_gpus=16),
        Scenario("permutation", PatternOptions(1e8), Routing("spray"), n_gpus=16),
        Scenario("permutation", PatternOptions(1e8), fail=("random:0.1",), n_gpus=16),
        Scenario(str(file)),
    ]
    keys = set()
    for digest in ("a", "b"):
        for scenario in scenarios:
            points = make_points(scenario, axes, 2, {("", ""): 0}, [(digest, "roce")])
            keys |= {point.key for point in points}
    assert len(keys) == 2 * len(scenarios) * 2
    assert points_of()[0].key == points_of()[0].key


def test_every_key_can_be_set() -> None:
    texts = {
        "routing": "spray",
        "pattern": "ring",
        "bytes": "1MiB",
        "sizes": "pareto",
        "fan-in": "3",
        "load": "0.2",
        "flows": "7",
        "hot-share": "0.1",
        "qps": "4",
        "hash-seeds": "tier",
        "lmc": "2",
        "cross-rail": "pxn",
        "gpudirect": "no",
        "fail": "random:0.1+switch:spine-01",
        "gpus": "8",
    }
    assert {*texts, "candidate", "oversubscription"} == set(SWEEP_KEYS)
    for key, text in texts.items():
        assert changed(SMALL, key, text) != SMALL
    assert changed(SMALL, "fail", texts["fail"]).fail == ("random:0.1", "switch:spine-01")
    assert changed(SMALL, "fail", "none").fail == ()
    assert changed(SMALL, "bytes", "1MiB").options.size_bytes == 2**20


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["rooting=ecmp"], 'Did you mean "routing"?'),
        (["routing"], "a value is missing."),
        (["routing="], "a value is missing."),
        (["routing=ecmp,,spray"], "a value is missing."),
        (["routing=ecmp,ecmp"], "a value stands twice."),
        (["qps=1", "qps=2"], "the key stands twice."),
    ],
)
def test_a_faulty_axis_is_told(asked: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_axes(asked)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("routing=ecmp,ecpm", 'Did you mean "ecmp"?'),
        ("qps=1,x", '--sweep qps: "x" is no whole number.'),
        ("load=high", '--sweep load: "high" is no number.'),
        ("bytes=1XB", '--sweep bytes: "1XB" is no number of bytes.'),
        ("gpudirect=maybe", '"maybe" is neither yes nor no.'),
        ("cross-rail=x", "--cross-rail"),
    ],
)
def test_a_faulty_value_is_told_before_anything_runs(asked: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        points_of(asked)
    assert message in str(caught.value)


def test_too_many_runs_are_refused() -> None:
    for n_seeds in (0, -1, 100_001):
        with pytest.raises(InputError, match="--sweep, --seeds"):
            check_size((), n_seeds)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1e9", 1e9), ("64 KiB", 65536), ("1.5GB", 1.5e9), ("2m", 2e6), ("7b", 7), ("0", 0)],
)
def test_bytes_are_read(text: str, size: float) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "1XB", "-1", "nan", "inf", "1 2"])
def test_what_are_no_bytes_is_told(text: str) -> None:
    with pytest.raises(InputError, match="is no number of bytes"):
        parse_bytes(text)


# Runs --------------------------------------------------------------------------------------------


def test_a_sweep_gives_what_single_runs_give() -> None:
    told: list[int] = []
    rows = run_sweep(points_of("routing=ecmp,spray"), [plant(RAIL)], None, told.append)
    assert told == [0, 1, 2, 3, 4]
    groups = by_combination(rows)
    assert [values["routing"] for values, _group in groups] == ["ecmp", "spray"]
    for _values, group in groups:
        spread = spread_of(group, "completion_s")
        assert spread is not None
        found = [row.metrics["completion_s"] for row in group]
        assert (spread["min"], spread["max"]) == (min(found), max(found))  # type: ignore[type-var]
    assert set(rows[0].metrics) == set(METRICS)
    assert groups[1][1][0].metrics["bandwidth_share"] == pytest.approx(1.0, rel=1e-3)


def test_where_nothing_finishes_there_is_no_number() -> None:
    scenario = Scenario("permutation", n_gpus=16, cross_rail="fabric", until_s=1e-9)
    points = make_points(scenario, (), 1, {("", ""): 0}, [("x", "roce")])
    (row,) = run_sweep(points, [plant(RAIL_ONLY)], None, silent)
    assert row.metrics["completion_s"] is None
    assert row.metrics["unfinished"] == 16
    assert spread_of([row], "completion_s") is None


def test_a_fault_in_a_worker_comes_whole() -> None:
    error = InputError([Fault("here", "wrong"), Fault("there", "too")])
    assert pickle.loads(pickle.dumps(error)).faults == error.faults


def test_a_fabric_goes_to_workers_whole() -> None:
    copy = pickle.loads(pickle.dumps(plant(RAIL)))
    assert isinstance(copy, Plant)
    assert copy.fabric == fabric(RAIL)
    assert copy.digest == plant(RAIL).digest
    with pytest.raises(ValueError, match="read-only"):
        copy.fabric.links.gbps[0] = 1


# Journal -----------------------------------------------------------------------------------------


def test_only_what_is_missing_is_run(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    points = points_of("routing=ecmp,spray", n_seeds=3)
    with open_journal(path) as journal:
        whole = run_sweep(points, [plant(RAIL)], journal, silent)
    lines = path.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["key"] for line in lines] == [point.key for point in points]
    kept = path.read_bytes()
    # Two lines, out of order, and half a third one: as a kill leaves it.
    path.write_bytes(lines[4] + lines[1] + lines[2][:25])
    told: list[int] = []
    with open_journal(path) as journal:
        again = run_sweep(points, [plant(RAIL)], journal, told.append)
    assert told == [2, 3, 4, 5, 6]
    assert [row.metrics for row in again] == [row.metrics for row in whole]
    assert path.read_bytes() == kept


def test_a_result_is_on_the_disk_as_soon_as_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sweep.jsonl"
    metrics = {"completion_s": 0.1, "jain_index": None}
    with open_journal(path) as journal:
        journal.add("k", metrics)
        assert json.loads(path.read_text()) == {"key": "k", "metrics": metrics}
        with pytest.raises(StateError, match="in use by another sweep"), open_journal(path):
            pass


def test_results_of_other_sweeps_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    with open_journal(path) as journal:
        journal.add("other", {"completion_s": 1.0})
    points = points_of()
    with open_journal(path) as journal:
        run_sweep(points, [plant(RAIL)], journal, silent)
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert keys == ["other", *(point.key for point in points)]


@pytest.mark.parametrize("line", ["{}", "nonsense", '{"key": 1, "metrics": {}}', "[1]", "\x00"])
def test_what_is_no_journal_is_told_and_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "sweep.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"sweep.jsonl:1: this is no line"), open_journal(path):
        pass
    assert path.read_text() == f"{line}\n"


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"), open_journal(tmp_path):
        pass


def test_numbers_come_back_bit_by_bit(tmp_path: Path) -> None:
    value = float(np.nextafter(0.1, 1))
    with open_journal(tmp_path / "j") as journal:
        journal.add("k", {"completion_s": value})
    with open_journal(tmp_path / "j") as journal:
        assert dict(journal.known(["k", "z"])) == {"k": {"completion_s": value}}
