"""A measured run against the prediction: how far, where, and which cause's curve is nearest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.parse.nccl_tests import NcclTestsOutput, parse_nccl_tests
from gpufabric.workload.closed_form import Estimate, estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.comparison import compare, operation_of
from gpufabric.workload.impairment import asks_of, estimate_impaired

SIZES = 2.0 ** np.arange(12, 34)
CLUSTER = Cluster("H100", 8, 4, 400)


def printed(found: Estimate, program: str = "all_reduce_perf", slower: float = 1.0) -> str:
    """What nccl-tests would print of such times."""
    lines = [
        f"# Collective test starting: {program}",
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong",
    ]
    for size, time_us in zip(found.size_bytes, found.time_us * slower, strict=True):
        algbw = size / time_us / 1e3
        half = f"{time_us:.2f} {algbw:.2f} {algbw * found.factor:.2f} 0"
        lines.append(f"{int(size)} {int(size) // 4} float sum -1 {half} {half}")
    return "\n".join(lines) + "\n"


def measured(asked: str = "", op: str = "all_reduce") -> NcclTestsOutput:
    found = estimate_impaired(CLUSTER, op, SIZES, asks_of(asked))
    return parse_nccl_tests(printed(found, f"{op}_perf"))


def test_a_run_as_predicted() -> None:
    found = compare(measured(), CLUSTER)
    assert found.n_inside == len(found.points) == len(SIZES)
    assert all(point.ratio == pytest.approx(1, abs=0.01) for point in found.points)
    assert found.causes == ()
    assert "reaches what was predicted" in found.summary[-1]


@pytest.mark.parametrize(
    "asked",
    ["gdr_off", "acs_on", "shared_nic=1", "tcp=9000", "far_nic", "one_port", "degraded_nic=0.125",
     "slow_steps=50"],
)  # fmt: skip
@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "alltoall"])
def test_the_cause_is_among_those_named(asked: str, op: str) -> None:
    found = compare(measured(asked, op), CLUSTER)
    assert asked.split("=", maxsplit=1)[0] in [cause.name for cause in found.causes]
    assert all(cause.source and cause.remedy for cause in found.causes)


def test_what_cannot_be_told_apart_is_named_together() -> None:
    names = [cause.name for cause in compare(measured("gdr_off"), CLUSTER).causes]
    assert {"gdr_off", "acs_on"} <= set(names)


def test_inside_one_host() -> None:
    host = Cluster("H100", 8)
    bad = estimate_impaired(host, "all_reduce", SIZES, asks_of("nvlink_down=18"))
    found = compare(parse_nccl_tests(printed(bad)), host)
    assert found.causes[0].name == "nvlink_down"


def test_another_algorithm() -> None:
    host = Cluster("H100", 8)
    rings = estimate(host, "all_reduce", SIZES, "Ring")
    found = compare(parse_nccl_tests(printed(rings)), host)
    assert found.points[-1].verdict == "below"
    assert any("Ring" in cause.text for cause in found.causes)


def test_a_run_that_nothing_explains() -> None:
    """A thousand times slower at one size: no impairment has such a curve."""
    found = estimate(CLUSTER, "all_reduce", SIZES)
    times = found.time_us.copy()
    times[::2] *= 1000
    spiked = Estimate(
        found.size_bytes, times, times, times, found.choices, found.factor, found.extrapolates
    )
    result = compare(parse_nccl_tests(printed(spiked)), CLUSTER)
    assert result.causes == ()
    assert "No known cause" in result.summary[-1]


@pytest.mark.parametrize(
    ("run", "cluster", "cause"),
    [
        ("az_ndv4_2n_ipoib", Cluster("A100", 8, 2, 200), "tcp"),
        ("iss_nccl2409_ag", Cluster("H100", 8, 2, 400), "slow_steps"),
        ("cw_a100_ib_128_2022", Cluster("A100", 8, 16, 200), "gdr_off"),
        ("az_ndv4_2n_sriov", Cluster("A100", 8, 2, 200), ""),
        ("cscs_gh200_2n_cxi", Cluster("GH200", 4, 2, 100, "slingshot", n_nics=4), ""),
    ],
)
def test_shared_runs(shared: Path, run: str, cluster: Cluster, cause: str) -> None:
    path = shared / "measurements" / "nccl_tests.csv"
    found = compare(parse_nccl_tests(path.read_text(), path.name, run), cluster)
    names = [entry.name for entry in found.causes]
    assert cause in names if cause else names == []


def test_other_ranks_are_refused() -> None:
    text = "#  Rank  0 Group  0 Pid  1 on  a device  0 [0x07] NVIDIA H100\n"
    found = parse_nccl_tests(text + printed(estimate(CLUSTER, "all_reduce", SIZES)))
    with pytest.raises(InputError, match="1 ranks"):
        compare(found, CLUSTER)


def test_the_operation_from_busbw_over_algbw() -> None:
    text = printed(estimate(CLUSTER, "all_reduce", SIZES))
    without = "\n".join(text.splitlines()[1:])
    assert operation_of(parse_nccl_tests(without), CLUSTER.n_ranks) == "all_reduce"
    gathered = printed(estimate(CLUSTER, "all_gather", SIZES))
    with pytest.raises(InputError, match="does not tell which operation"):
        operation_of(parse_nccl_tests("\n".join(gathered.splitlines()[1:])), CLUSTER.n_ranks)


def test_busbw_alone_is_enough() -> None:
    text = "size_bytes,busbw,collective\n1073741824,300,all_reduce\n"
    found = compare(parse_nccl_tests(text), CLUSTER)
    assert found.points[0].measured_gbytes_per_s == pytest.approx(300)
