from __future__ import annotations

import pytest

from gpufabric.core.errors import InputError
from gpufabric.workload.operations import OPERATIONS, bus_bandwidth, bus_factor, operation


@pytest.mark.parametrize(
    ("name", "n_ranks", "factor"),
    [
        ("all_reduce", 16, 1.875),
        ("all_gather", 16, 0.9375),
        ("reduce_scatter", 8, 0.875),
        ("alltoall", 64, 63 / 64),
        ("broadcast", 8, 1.0),
        ("reduce", 8, 1.0),
        ("sendrecv", 2, 1.0),
    ],
)
def test_factors_are_those_of_nccl_tests(name: str, n_ranks: int, factor: float) -> None:
    # nccl-tests, doc/PERFORMANCE.md, section "Bus bandwidth"
    assert bus_factor(name, n_ranks) == pytest.approx(factor, rel=1e-12)


def test_a_printed_row_of_nccl_tests() -> None:
    # DGX H100, one host: 1 GiB in 4029.4 us is printed as 266.47 and 466.33 GB/s.
    assert bus_bandwidth("all_reduce", 8, 2**30, 4029.4) == pytest.approx(466.33, abs=0.02)


@pytest.mark.parametrize("name", ["all-reduce", "AllReduce", "all_reduce_perf", "ALLREDUCE"])
def test_other_spellings(name: str) -> None:
    assert operation(name) is OPERATIONS["all_reduce"]


def test_an_unknown_operation_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        operation("all_redcue")
    text = str(caught.value)
    assert "all_redcue" in text
    assert "all_reduce" in text


def test_one_rank_has_no_bus() -> None:
    with pytest.raises(InputError, match="1 ranks"):
        bus_factor("all_reduce", 1)
