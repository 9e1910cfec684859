"""Measured exchanges with experts, as DeepEP prints them and as tables hold them."""

from __future__ import annotations

import re

import pytest

from gpufabric.core.errors import InputError
from gpufabric.parse.expert_exchange_runs import is_exchange, parse_exchange

TABLE = """kernel,op,ep_ranks,bandwidth_GBps,latency_us,bw_kind
normal,dispatch,8,150,,NVLink
low_latency,combine,16,44,329,RDMA
"""
TUNED = """[testing] Running with BF16 ... passed
[tuning] SMs 24, NVL chunk 8, RDMA chunk 4: 25.68 GB/s (RDMA), 83.83 GB/s (NVL)
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 16: 43.24 GB/s (RDMA), 141.1 GB/s (NVL)
[tuning] Best combine: SMs 24, NVL chunk 15: 399.63 GB/s (NVL), t: 775.61 us
"""  # noqa: E501 - a line of DeepEP's
FEW = """[rank 0] Dispatch + combine bandwidth: 50.00 GB/s, avg_t=400.00 us, min_t=1 us, max_t=9 us
[rank 0] Dispatch bandwidth: 40.00 GB/s, avg_t=180.00 us | Combine bandwidth: 41.00 GB/s, avg_t=350.00 us
[rank 1] Dispatch bandwidth: 42.00 GB/s, avg_t=184.00 us | Combine bandwidth: 43.00 GB/s, avg_t=354.00 us
"""  # noqa: E501 - lines of DeepEP's


def test_a_table() -> None:
    first, second = parse_exchange(TABLE).rows
    assert (first.kernel, first.operation, first.n_ranks) == ("normal", "dispatch", 8)
    assert (first.gbytes_per_s, first.latency_us, first.over_nvlink) == (150.0, None, True)
    assert (second.latency_us, second.over_nvlink, second.line) == (329.0, False, 3)


def test_what_a_tuning_prints() -> None:
    first, second = parse_exchange(TUNED).rows
    assert (first.kernel, first.operation, first.n_ranks) == ("normal", "dispatch", None)
    assert (first.gbytes_per_s, first.over_nvlink, first.line) == (43.24, False, 3)
    assert (second.operation, second.gbytes_per_s, second.over_nvlink) == ("combine", 399.63, True)


def test_the_median_of_ranks_for_few_tokens() -> None:
    first, second = parse_exchange(FEW).rows
    assert (first.kernel, first.operation, first.gbytes_per_s) == ("low_latency", "dispatch", 41.0)
    assert (second.operation, second.gbytes_per_s, second.latency_us) == ("combine", 42.0, 352.0)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [(TABLE, True), (TUNED, True), (FEW, True), ("size,time,busbw\n1,2,3\n", False), ("", False)],
)
def test_what_is_such_a_file(text: str, *, is_one: bool) -> None:
    assert is_exchange(text) is is_one


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TABLE.replace("dispatch", "despatch"), 'mean "dispatch"'),
        (TABLE.replace(",16,", ",1,"), ":3: ep_ranks is 1"),
        (TABLE.replace(",16,", ",nan,"), "ep_ranks is nan"),
        (TABLE.replace(",44,", ",-44,"), "bandwidth_GBps is -44"),
        (TABLE.replace("329", "inf"), "latency_us is inf"),
        (TABLE.replace("bandwidth_GBps", "rate"), "no column bandwidth_GBps"),
        (TABLE.partition("\n")[0], "no row"),
        (TUNED.replace("399.63", "nan"), ":4:"),
        (FEW.replace("40.00", "nan"), ":2:"),
    ],
)
def test_damage_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        parse_exchange(text, "runs.csv")
