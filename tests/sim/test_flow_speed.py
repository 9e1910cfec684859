"""Committed results of the flow engine's benchmark against the issue's targets, section 2.3."""

from __future__ import annotations

import pytest

from benchmarks import run
from benchmarks.bench_flow import AGAINST_PLAIN, AGAINST_SIMGRID

RESULTS = {entry["name"]: entry for entry in run.read(run.RESULTS)}
AT_LEAST_20 = {"flow, 20000 random flows, 5 x load", "flow, all to all of 256"}
WITH_PEER = [case.name for case in AGAINST_SIMGRID if case.has_peer]


@pytest.mark.parametrize("name", WITH_PEER)
def test_faster_than_simgrid(name: str) -> None:
    assert RESULTS[name]["peer"].startswith("SimGrid")
    assert RESULTS[name]["ratio"] >= (20 if name in AT_LEAST_20 else 10)


@pytest.mark.parametrize("name", AGAINST_PLAIN)
def test_never_slower_than_recomputing_everything(name: str) -> None:
    assert RESULTS[name]["ratio"] >= 1


def test_a_million_flows_in_time_and_memory() -> None:
    entry = RESULTS["flow, one allocation: 1047552 flows"]
    assert entry["ours_s"] <= 0.3
    assert entry["peak_mib"] <= 500


def test_all_to_all_of_1024_in_time() -> None:
    assert RESULTS["flow, all to all of 1024"]["ours_s"] <= 120
