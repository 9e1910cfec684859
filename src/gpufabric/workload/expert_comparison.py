"""Measured exchanges with experts against what a cluster should reach, as DeepEP counts it.

A token goes over the network once to each host that has experts for it, and from there over
NVLink once to each GPU that has. What takes longer, counts; kernels for few tokens send each copy
over the NIC instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.expert_exchange_runs import ExchangeRow, ExchangeRuns
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.expert_exchange import NIC_SHARE, START_US
from gpufabric.workload.pairwise import Experts, expert_phases, mean_hosts_reached
from gpufabric.workload.schedule import Schedule

__all__ = ["ExchangeComparison", "ExchangePoint", "compare_exchange", "exchange_schedule"]

HIDDEN, TOP_K, EXPERTS, MOST_HOSTS = 7168, 8, 256, 4
"""Of DeepSeek-V3, with which DeepEP is measured. Source: DeepEP README."""
TOKENS = {"normal": 4096, "v2": 8192, "low_latency": 128}
"""Of a GPU. Source: the same."""
TOKEN_BYTES = {"dispatch": 1 + 4 / 128, "combine": 2.0}
"""Of a number: FP8 with a scale for 128, and 16 bit. Source: the same."""
WIRE_SHARE = 0.9
"""Of a GPU's NIC that large batches reach: 45 of 50 GB/s, of ten published rates over 16 to 64
ranks, without what stays on the own host. Source: DeepEP README, 2025-04 and 2026-07."""
NVLINK_SHARE = 0.85
"""Of what rings may use of a GPU's NVLink that large batches reach: 137 of 165 GB/s on H800, 640
of 722 on Blackwell, without what stays on the own GPU. Source: the same."""
LOW, HIGH = 0.8, 1.25
"""Range of a rate that is as it should be; nine of ten of the published ones are within 17 %."""


@dataclass(frozen=True)
class ExchangePoint:
    """One measured exchange beside its prediction.

    Parameters
    ----------
    row
        What was measured.
    n_ranks
        GPUs.
    predicted_gbytes_per_s, predicted_us
        What is expected: rate as DeepEP counts it [GB/s], and time for its usual tokens [us].
    """

    row: ExchangeRow
    n_ranks: int
    predicted_gbytes_per_s: float
    predicted_us: float

    @property
    def ratio(self) -> float:
        """Measured over predicted rate; 1 is as predicted."""
        return self.row.gbytes_per_s / self.predicted_gbytes_per_s

    @property
    def verdict(self) -> str:
        """``inside`` the range of what is healthy, ``below`` or ``above``."""
        return "below" if self.ratio < LOW else "above" if self.ratio > HIGH else "inside"


@dataclass(frozen=True)
class ExchangeComparison:
    """Measured exchanges against the prediction.

    Parameters
    ----------
    points
        By line of the file.
    n_left_out
        Rows of more GPUs than the cluster has.
    summary
        Sentences: how many are as they should be, the worst, and what to look at.
    """

    points: tuple[ExchangePoint, ...]
    n_left_out: int
    summary: tuple[str, ...]

    @property
    def is_short(self) -> bool:
        """Whether most are below what they should be."""
        return 2 * sum(one.verdict == "below" for one in self.points) > len(self.points)


def exchange_schedule(cluster: Cluster, n_ranks: int) -> Schedule:
    """Return dispatch of a large batch among the first GPUs, of whole hosts."""
    each = cluster.gpus_per_domain
    hosts = n_ranks // each
    experts = Experts(EXPERTS, TOP_K, min(hosts, MOST_HOSTS))
    size_bytes = TOKENS["v2"] * HIDDEN * TOKEN_BYTES["dispatch"]
    phases = expert_phases(hosts, each, experts, size_bytes)
    return Schedule("dispatch", "Experts", n_ranks, n_ranks, size_bytes, phases)


def compare_exchange(
    measured: ExchangeRuns, cluster: Cluster, slowdown: Callable[[int], float] | None = None
) -> ExchangeComparison:
    """Compare measured exchanges with experts with what a cluster should reach.

    Parameters
    ----------
    measured
        As `parse_exchange` gives it; rows without ranks are those of the whole cluster.
    cluster
        On which they ran, at least as large as one of them.
    slowdown
        How many times slower than at full NIC rate the network is for so many GPUs, which are
        whole hosts; never slower where None.

    Raises
    ------
    InputError
        If all rows are of more GPUs than the cluster has, or are not of whole hosts.
    """
    points, faults, n_left_out = [], [], 0
    for row in measured.rows:
        n_ranks = row.n_ranks or cluster.n_ranks
        where = f"{measured.name}:{row.line}"
        if n_ranks > cluster.n_ranks:
            n_left_out += 1
        elif n_ranks > cluster.gpus_per_domain and n_ranks % cluster.gpus_per_domain:
            what = _("{n} GPUs are not as many on every host.").format(n=n_ranks)
            remedy = _("a multiple of {each}").format(each=cluster.gpus_per_domain)
            faults.append(Fault(where, what, remedy))
        else:
            is_far = n_ranks > cluster.gpus_per_domain
            slower = slowdown(n_ranks) if slowdown is not None and is_far else 1.0
            points.append(ExchangePoint(row, n_ranks, *_predicted(row, n_ranks, cluster, slower)))
    if not points and not faults:
        what = _("all rows are of more than {n} GPUs, those of the fabric.")
        faults.append(Fault(measured.name, what.format(n=cluster.n_ranks)))
    if faults:
        raise InputError(faults)
    return ExchangeComparison(tuple(points), n_left_out, tuple(_summary(points, n_left_out)))


def _predicted(
    row: ExchangeRow, n_ranks: int, cluster: Cluster, slowdown: float
) -> tuple[float, float]:
    """Rate as DeepEP counts it [GB/s], and time [us]."""
    each = min(n_ranks, cluster.gpus_per_domain)
    hosts = n_ranks // each
    bytes_of_gpu = TOKENS[row.kernel] * HIDDEN * TOKEN_BYTES[row.operation]
    wire = (cluster.wire_gbytes_per_s or 0.0) / cluster.gpus_per_domain / slowdown
    if row.kernel == "low_latency":
        moved = TOP_K * bytes_of_gpu
        rate = NIC_SHARE * wire or NVLINK_SHARE * cluster.facts.nvlink_gbytes_per_s
        time_us = START_US + moved / rate / 1e3
        return moved / time_us / 1e3, time_us
    allowed = min(hosts, MOST_HOSTS) if row.kernel == "normal" else hosts
    hit_gpus = _all(mean_hosts_reached(n_ranks, EXPERTS, TOP_K, allowed * each), n_ranks)
    far = mean_hosts_reached(hosts, EXPERTS, TOP_K, allowed) if hosts > 1 else 0.0
    near_us = (
        hit_gpus
        * (each - 1)
        / each
        * bytes_of_gpu
        / (NVLINK_SHARE * cluster.facts.nvlink_gbytes_per_s)
        / 1e3
    )
    far_us = far * bytes_of_gpu / (WIRE_SHARE * wire) / 1e3 if hosts > 1 else 0.0
    time_us = START_US + max(near_us, far_us)
    counts_gpus = row.over_nvlink or hosts == 1
    counted = hit_gpus if counts_gpus else _all(far, hosts)
    return counted * bytes_of_gpu / time_us / 1e3, time_us


def _all(others: float, n: int) -> float:
    """Of n places, those reached with the own one, from those reached without."""
    return others * n / (n - 1)


def _summary(points: list[ExchangePoint], n_left_out: int) -> Iterator[str]:
    n_fine = sum(one.verdict != "below" for one in points)
    yield _("{n} of {all} exchanges reach what DeepEP's authors do, within a fifth.").format(
        n=n_fine, all=len(points)
    )
    worst = min(points, key=lambda one: one.ratio)
    if worst.verdict == "below":
        yield _(
            "Worst: {operation} of {kernel} on {n} GPUs, {measured:.1f} GB/s where {predicted:.1f} "
            "was predicted, {share:.0f} % of it."
        ).format(
            operation=worst.row.operation,
            kernel=worst.row.kernel,
            n=worst.n_ranks,
            measured=worst.row.gbytes_per_s,
            predicted=worst.predicted_gbytes_per_s,
            share=100 * worst.ratio,
        )
        yield _remedy(worst)
    if n_left_out:
        yield _("{n} rows are of more GPUs than the fabric has and were left out.").format(
            n=n_left_out
        )
    if any(one.row.n_ranks is None for one in points):
        yield _("The output does not tell its GPUs: all of the fabric, or give --ranks.")


def _remedy(worst: ExchangePoint) -> str:
    if worst.row.over_nvlink:
        return _("Look at nvidia-smi nvlink -s, and tune the chunks and SMs of DeepEP.")
    return _(
        "Compare one NIC with perftest; then look at adaptive routing, at the virtual lane that "
        "DeepEP has for itself (NVSHMEM_IB_SL), and tune its chunks and SMs."
    )
