"""Each impairment costs what the shared list of bad runs says, within a quarter.

Sizes, algorithms and clusters are those of the threads named in each row.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.impairment import (
    IMPAIRMENTS,
    asks_of,
    estimate_impaired,
    impair,
)

MIB, GIB = 2**20, 2**30
TOLERANCE = 0.25


@dataclass(frozen=True)
class Case:
    """One bad run: the thread, its figures as written there, and the question that repeats it."""

    thread: str
    quoted: str
    cluster: Cluster
    operation: str
    asked: str
    bad_gbytes_per_s: float
    healthy_gbytes_per_s: float
    sizes: tuple[int, ...] = (GIB,)
    healthy_sizes: tuple[int, ...] = ()
    algorithm: str | None = None


A100_4_NICS = Cluster("A100", 8, 2, 100, n_nics=4)
CASES = [
    # Bad: the average over 16 MiB … 1 GiB of all_gather_perf. Good: its figure at 1 GiB.
    Case("NVIDIA/nccl#1412", "avg busbw 33 GB/s", A100_4_NICS, "all_gather", "gdr_off", 33.3, 93.0,
         tuple(16 * MIB * 2**k for k in range(7)), (GIB,)),
    # One NIC alone, whose link carries 180 Gb/s.
    Case("NVIDIA/nccl-tests#112", "9.84 GB/s", Cluster("A100", 8, 2, 25, n_nics=1), "all_reduce",
         "acs_on", 9.84, 22.5, (GIB, 2 * GIB, 4 * GIB, 8 * GIB), algorithm="Ring"),
    Case("NVIDIA/nccl#439", "24 instead of 48", Cluster("A100", 8, 2, 50, n_nics=2), "all_reduce",
         "shared_nic", 24.0, 48.0, algorithm="Ring"),
    Case("NVIDIA/nccl-tests#347", "2x 8xH100, 4 NICs", Cluster("H100", 8, 2, 200, n_nics=4),
         "all_reduce", "far_nic", 0.5, 1.0, (8 * GIB,)),
    Case("Azure/aks-rdma-infiniband expected-output.md", "3.2 vs 187", Cluster("A100", 8, 2, 200),
         "all_reduce", "tcp=4092", 3.2, 187.0, (8 * GIB,)),
    Case("eth-cscs/cscs-docs nccl.md", "6.0 vs 122.6",
         Cluster("GH200", 4, 2, 100, "slingshot", n_nics=4), "all_reduce", "tcp", 6.0, 122.6,
         (128 * MIB,)),
    Case("NVIDIA/nccl#1303", "one port of two", Cluster("H100", 8, 2, 200, n_nics=8), "all_gather",
         "one_port", 1.0, 2.0),
    Case("NVIDIA/nccl-tests#353", "31 Gb/s per NIC", Cluster("H100", 8, 2, 50, n_nics=4),
         "all_reduce", "degraded_nic=0.326", 31.0, 95.0, algorithm="Ring"),
]  # fmt: skip


def busbw(case: Case, sizes: tuple[int, ...], asked: str) -> float:
    found = estimate_impaired(
        case.cluster, case.operation, np.array(sizes, float), asks_of(asked), case.algorithm
    )
    return float(found.busbw_gbytes_per_s.mean())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.thread)
def test_the_loss_is_that_of_the_thread(case: Case) -> None:
    bad = busbw(case, case.sizes, case.asked)
    healthy = busbw(case, case.healthy_sizes or case.sizes, "")
    measured = case.bad_gbytes_per_s / case.healthy_gbytes_per_s
    assert bad / healthy == pytest.approx(measured, rel=TOLERANCE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.thread)
def test_the_thread_says_so(case: Case, shared: Path) -> None:
    with (shared / "measurements" / "bad_threads.csv").open(newline="") as file:
        rows = {row["thread"]: " ".join(row.values()) for row in csv.DictReader(file)}
    assert case.quoted in rows[case.thread]


# 216 to 231 GB/s all-reduce, 13 GB/s to the next rank; the rest from nccl_tests.csv.
@pytest.mark.parametrize(
    ("op", "size_bytes", "measured"),
    [
        ("all_reduce", GIB, 216.5),
        ("all_reduce", 8 * GIB, 231.0),
        ("all_gather", 256 * MIB, 101.0),
        ("reduce_scatter", 256 * MIB, 100.0),
        ("alltoall", 256 * MIB, 25.0),
        ("sendrecv", 256 * MIB, 13.0),
    ],
)
def test_slow_steps_give_the_rates_of_nccl_2409(op: str, size_bytes: int, measured: float) -> None:
    found = estimate_impaired(
        Cluster("H100", 8, 2, 400), op, np.array([size_bytes], float), asks_of("slow_steps")
    )
    assert found.busbw_gbytes_per_s[0] == pytest.approx(measured, rel=TOLERANCE)


def test_one_nic_for_four_gpus_without_rings() -> None:
    """CCI-MOC/roce-testing: 5.85 GB/s of send and receive with four GPUs a host, 13.96 with one."""
    size = np.array([16.0 * GIB])
    four = estimate_impaired(
        Cluster("H100", 4, 2, 200, n_nics=4), "sendrecv", size, asks_of("shared_nic")
    )
    one = estimate(Cluster("H100", 1, 2, 50, n_nics=1), "sendrecv", size)
    loss = four.busbw_gbytes_per_s[0] / one.busbw_gbytes_per_s[0]
    assert loss == pytest.approx(5.85 / 13.96, rel=TOLERANCE)


def test_eight_of_eighteen_nvlinks() -> None:
    """NVIDIA/nccl issue 1374: an H800, which is an H100 with eight links, 215 against 480 GB/s."""
    size = np.array([8.0 * GIB])
    bad = estimate_impaired(Cluster("H100", 8), "all_reduce", size, asks_of("nvlink_down=10"))
    healthy = estimate(Cluster("H100", 8), "all_reduce", size)
    loss = bad.busbw_gbytes_per_s[0] / healthy.busbw_gbytes_per_s[0]
    assert loss == pytest.approx(215 / 480, rel=TOLERANCE)
    itself = estimate(Cluster("H800", 8), "all_reduce", size)
    assert itself.busbw_gbytes_per_s[0] == pytest.approx(215, rel=TOLERANCE)
    none = estimate_impaired(Cluster("H800", 8), "all_reduce", size, asks_of("nvlink_down=8"))
    assert none.busbw_gbytes_per_s[0] == pytest.approx(20, rel=TOLERANCE)


def test_no_nvlink_at_all_is_pcie() -> None:
    """NVIDIA/nccl-tests issue 178: 20 GB/s between pairs of A100 that no NVLink joins."""
    found = estimate_impaired(
        Cluster("A100", 8), "all_reduce", np.array([8.0 * GIB]), asks_of("nvlink_down=12"), "Ring"
    )
    assert found.busbw_gbytes_per_s[0] == pytest.approx(20, rel=TOLERANCE)


@pytest.mark.parametrize("name", IMPAIRMENTS)
def test_nothing_gets_faster(name: str) -> None:
    cluster = Cluster("H100", 8, 4, 200, n_nics=4)
    sizes = 2.0 ** np.arange(10, 34)
    for op in ("all_reduce", "all_gather", "alltoall"):
        bad = estimate_impaired(cluster, op, sizes, asks_of(name), "Ring,Pairwise", "Simple")
        healthy = estimate(cluster, op, sizes, "Ring,Pairwise", "Simple")
        assert (bad.time_us >= healthy.time_us * (1 - 1e-9)).all(), op
        assert bad.time_us[-1] > healthy.time_us[-1] or name == "nvlink_down", op
    assert bad.extrapolates


def test_two_at_once_are_worse_than_one() -> None:
    one = impair(A100_4_NICS, asks_of("shared_nic=2")).cluster.wire_gbytes_per_s
    two = impair(A100_4_NICS, asks_of("shared_nic=2,degraded_nic=0.5")).cluster.wire_gbytes_per_s
    assert (one, two) == (50, 25)


def test_every_fault_of_a_text_is_told() -> None:
    with pytest.raises(InputError) as caught:
        asks_of("gdr_of,tcp=x,degraded_nic=2,acs-on")
    messages = [str(fault) for fault in caught.value.faults]
    assert len(messages) == 3
    assert "gdr_off" in messages[0]


def test_a_cluster_without_network_has_no_tcp() -> None:
    with pytest.raises(InputError, match="nothing of the kind"):
        impair(Cluster("H100", 8), asks_of("tcp"))


def test_every_impairment_can_be_told() -> None:
    for entry in IMPAIRMENTS.values():
        assert entry.title
        assert entry.remedy
        assert entry.source
