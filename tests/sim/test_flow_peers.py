"""Finish times against SimGrid's, of every flow of every case in the peers' folder.

SimGrid 4.1, ``network/model:raw``, precision 1e-9: exact max-min fairness, printed with 12
decimals. The tolerance is the issue's: 1e-6 relative.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from gpufabric.sim.flow import FINISHED, FlowProblem, Paths, simulate
from gpufabric.sim.flow_setup import BYTES_PER_S

CASES = ["xv16_40", "xv128_1000", "xv1024_20000"]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def problem_of(folder: Path, case: str) -> FlowProblem:
    links, flows = table(folder / f"{case}_links.csv"), table(folder / f"{case}_flows.csv")
    assert [int(link["link_id"]) for link in links] == list(range(len(links)))
    latency_s = np.array([float(link["latency_s"]) for link in links])
    rows = [[int(name) for name in flow["path_link_ids"].split()] for flow in flows]
    return FlowProblem(
        np.array([float(link["bandwidth_Bps"]) for link in links]) / BYTES_PER_S,
        Paths.from_lists(rows, latency_s=[float(latency_s[row].sum()) for row in rows]),
        np.array([float(flow["size_bytes"]) for flow in flows]),
        start_s=np.array([float(flow["start_s"]) for flow in flows]),
    )


def test_all_cases_are_here(shared: Path) -> None:
    found = {path.name.removesuffix("_flows.csv") for path in shared.glob("peers/flow/*_flows.csv")}
    assert found == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_finish_times(shared: Path, case: str) -> None:
    folder = shared / "peers/flow"
    expected = table(folder / f"{case}_finish.csv")
    found = simulate(problem_of(folder, case))
    assert (found.status == FINISHED).all()
    finish_s = np.array([float(row["finish_s"]) for row in expected])
    assert found.finish_s == pytest.approx(finish_s, rel=1e-6, abs=0)
    took_s = np.array([float(row["fct_s"]) for row in expected])
    # Times are printed to 1e-12 s: a flow of 1 us is known to 1e-6 relative.
    assert found.finish_s - found.begun_s == pytest.approx(took_s, rel=1e-6, abs=1e-12)
