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


def test_delay_of_a_replay_comes_before_the_first_byte(tmp_path: Path) -> None:
    """As SimGrid has it: b joins a channel of 1 GB/s after its 1 ms, when a has sent 1 of 2 MB.

    Both then have half: a ends at 1 + 2 ms; b has 1 MB left and the channel for itself, and ends
    at 3 + 1 ms.
    """
    (tmp_path / "links.csv").write_text(
        "link_id,bandwidth_Bps,latency_s\nshared,1e9,0\nslow,1e9,0.001\n"
    )
    path = tmp_path / "flows.csv"
    path.write_text("flow_id,src,dst,size_bytes,path\na,x,y,2e6,shared\nb,x,y,2e6,shared slow\n")
    links = read_links(tmp_path / "links.csv")
    result = replay(links, read_flows(path, None, links), Scenario(str(path)))
    assert result.finish_s == pytest.approx([0.003, 0.004], rel=1e-12)
    assert result.ideal_s == pytest.approx([0.002, 0.003], rel=1e-12)
