"""Measured exchanges with experts against the prediction: by hand, by law, and as published."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.parse.expert_exchange_runs import ExchangeRow, ExchangeRuns, parse_exchange
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.expert_comparison import ExchangePoint, compare_exchange

HOSTS = Cluster("H100", 8, 8, 400.0)
SHARED = Path(__file__).parents[3] / "shared" / "measurements" / "ep_alltoall.csv"
ROW = ExchangeRow("normal", "combine", 32, 60.0, None, over_nvlink=False, line=2)


def point(row: ExchangeRow, cluster: Cluster = HOSTS) -> ExchangePoint:
    return compare_exchange(ExchangeRuns("runs.csv", (row,)), cluster).points[0]


def test_a_rate_by_hand() -> None:
    # Four hosts, of which three are over the network: 45 GB/s of wire count as 4 / 3 of it.
    assert point(ROW).predicted_gbytes_per_s == pytest.approx(60.0, rel=0.01)
    # Few tokens: 128 x 8 copies of 7,168 numbers of 2 bytes at 39 GB/s, and 10 us.
    few = point(replace(ROW, kernel="low_latency"))
    assert few.predicted_us == pytest.approx(10 + 128 * 8 * 7168 * 2 / 39e3, rel=1e-6)


def test_a_faster_wire_is_never_slower_and_more_hosts_never_faster() -> None:
    rates = [point(ROW, Cluster("H100", 8, 8, w)).predicted_gbytes_per_s for w in (100, 200, 400)]
    assert rates == sorted(rates)
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.02)
    counts = [point(replace(ROW, n_ranks=n)).predicted_gbytes_per_s for n in (16, 32, 64)]
    assert counts == sorted(counts, reverse=True)


def test_what_falls_short_is_told() -> None:
    found = compare_exchange(ExchangeRuns("a", (replace(ROW, gbytes_per_s=20.0),)), HOSTS)
    assert found.is_short
    assert "33 % of it" in " ".join(found.summary)
    assert "perftest" in " ".join(found.summary)
    assert not compare_exchange(ExchangeRuns("a", (ROW,)), HOSTS).is_short


def test_rows_of_more_gpus_are_left_out_and_told() -> None:
    found = compare_exchange(ExchangeRuns("a", (ROW, replace(ROW, n_ranks=128))), HOSTS)
    assert (len(found.points), found.n_left_out) == (1, 1)
    for n_ranks, told in ((128, "more than 64 GPUs"), (12, "not as many on every host")):
        with pytest.raises(InputError, match=told):
            compare_exchange(ExchangeRuns("a", (replace(ROW, n_ranks=n_ranks),)), HOSTS)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared measurements are not here")
def test_deepep_as_published() -> None:
    text = SHARED.read_text(encoding="utf-8")
    setups = [row["setup"] for row in csv.DictReader(text.splitlines())]
    rows = parse_exchange(text).rows
    assert len(rows) == len(setups) == 30
    ratios = []
    for row, setup in zip(rows, setups, strict=True):
        gpu = next(gpu for key, gpu in GPUS.items() if key in setup)
        ratios.append(point(row, Cluster(gpu, 8, 32, 400.0)).ratio)
    errors = np.abs(np.array(ratios) - 1)
    assert np.median(errors) < 0.08
    assert np.quantile(errors, 0.9) < 0.25


GPUS = {"H800": "H800", "SM100": "B200", "SM90": "H100"}
"""By what a row says of its hosts."""
