"""Flows of other simulators, with their paths: their finish times must be ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from gpufabric.sim.flow_files import read_flows, read_links
from gpufabric.sim.run import replay
from gpufabric.sim.scenario import Scenario

CASES = ("xv16_40", "xv128_1000", "xv1024_20000")


@pytest.mark.parametrize("case", CASES)
def test_finish_times_are_those_of_simgrid(case: str, shared: Path) -> None:
    """SimGrid 4.1, network/model:raw; see README.md beside the files."""
    folder = shared / "peers/flow"
    links = read_links(folder / f"{case}_links.csv")
    path = folder / f"{case}_flows.csv"
    result = replay(links, read_flows(path, None, links), Scenario(str(path), n_bins=0))
    expected = pyarrow.csv.read_csv(folder / f"{case}_finish.csv")
    assert result.traffic.flow_id is not None
    assert result.traffic.flow_id.tolist() == [str(one) for one in expected["flow_id"].to_pylist()]
    assert result.is_finished.all()
    finish_s, fct_s = (np.asarray(expected[name]) for name in ("finish_s", "fct_s"))
    assert np.abs(result.finish_s / finish_s - 1).max() <= 1e-6
    # Their times have twelve decimals.
    assert np.allclose(result.fct_s, fct_s, rtol=1e-6, atol=2e-12)
    assert result.slowdown.min() >= 1 - 1e-9
