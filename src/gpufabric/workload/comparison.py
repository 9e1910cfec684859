"""A measured collective against the prediction: where and by how much it falls short, and why.

The usual causes are those whose predicted curve comes nearest to the measured one. How near is
the root mean square of ``ln(measured / predicted)`` over the sizes, so that what matters is the
shape: a loss at large sizes only is bandwidth, one at small sizes only is latency. A cause is
named only where its curve is clearly nearer than the healthy one, and with all those that cannot
be told from it: GPUDirect RDMA off and ACS on, for one, cross PCIe the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.nccl_tests import NcclTestsOutput, Row
from gpufabric.workload.closed_form import Estimate, estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.impairment import IMPAIRMENTS, Ask, estimate_impaired
from gpufabric.workload.nccl_tuner import allowed
from gpufabric.workload.operations import OPERATIONS, bus_factor, operation

__all__ = ["Cause", "Comparison", "Point", "compare", "operation_of"]

SMALLEST_BYTES = 1024
"""Smaller messages take the time of this one and would only count it many times."""

NEARER = 0.6
"""Of the healthy curve's distance that a cause's may have at most to be named; assumed."""

AS_NEAR = 0.15
"""Causes within this of the nearest cannot be told apart: what their constants are worth."""

FARTHEST = 0.7
"""Distance from which no curve explains anything: a factor of two throughout. Assumed."""

FREEDOM = 0.1
"""Added where the amount was fitted too, because one of several fits more by luck. Assumed."""

SHORT = 0.1
"""Median shortfall from which a cause is looked for; below, the run is as predicted. Assumed."""

MOST_CAUSES = 5

_AMOUNTS = {
    "degraded_nic": (0.75, 0.5, 0.25, 0.125),
    "shared_nic": (1.0, 2.0, 4.0),
    "tcp": (4092.0, 9000.0),
    "nvlink_down": (1.0, 2.0, 4.0, 18.0),
    "slow_steps": (5.0, 10.0, 20.0, 50.0),
}
"""Amounts that are tried of each impairment."""


@dataclass(frozen=True)
class Point:
    """One size.

    Parameters
    ----------
    size_bytes
        Message [byte].
    measured_us, predicted_us
        Times [us].
    measured_gbytes_per_s, predicted_gbytes_per_s, low_gbytes_per_s, high_gbytes_per_s
        Bus bandwidths, and the 80 % interval of the prediction [GB/s].
    ratio
        Measured over predicted bus bandwidth; 1 is as predicted.
    verdict
        ``inside`` the interval, ``below`` or ``above``.
    """

    size_bytes: int
    measured_us: float
    predicted_us: float
    measured_gbytes_per_s: float
    predicted_gbytes_per_s: float
    low_gbytes_per_s: float
    high_gbytes_per_s: float
    ratio: float
    verdict: str


@dataclass(frozen=True)
class Cause:
    """What would explain the measured curve.

    Parameters
    ----------
    name
        Of the impairment, or ``algorithm``.
    text
        What is wrong, with its amount.
    distance
        Root mean square of ``ln(measured / predicted)`` with it.
    remedy, source
        What to do; who measured such a loss.
    """

    name: str
    text: str
    distance: float
    remedy: str
    source: str


@dataclass(frozen=True)
class Comparison:
    """A measured run against the prediction.

    Parameters
    ----------
    operation
        That was compared.
    points
        By size.
    healthy_distance
        Root mean square of ``ln(measured / predicted)`` as it should be.
    causes
        The nearest first; empty where the run is as predicted or nothing explains it.
    prediction
        That was compared with.
    summary
        Sentences: where, by how much, what usually causes it.
    """

    operation: str
    points: tuple[Point, ...]
    healthy_distance: float
    causes: tuple[Cause, ...]
    prediction: Estimate
    summary: tuple[str, ...]

    @property
    def n_inside(self) -> int:
        """Points inside the interval."""
        return sum(point.verdict == "inside" for point in self.points)


def operation_of(measured: NcclTestsOutput, n_ranks: int) -> str:
    """Return the operation that was measured, by its name or by what busbw is of algbw.

    Raises
    ------
    InputError
        If neither tells.
    """
    if measured.operation is not None:
        return operation(measured.operation, measured.name).name
    rates = [
        row.out_of_place.busbw_gbytes_per_s / row.out_of_place.algbw_gbytes_per_s
        for row in measured.rows
        if row.out_of_place.algbw_gbytes_per_s and row.out_of_place.algbw_gbytes_per_s >= 1
    ]
    ratio = float(np.median(rates)) if rates else float("nan")
    near = [name for name in OPERATIONS if abs(bus_factor(name, n_ranks) / ratio - 1) < 0.01]
    if "all_reduce" in near:
        return "all_reduce"
    what = _("the text does not tell which operation was measured.")
    raise InputError(Fault(measured.name, what, ", ".join(near or OPERATIONS), "--op"))


def compare(
    measured: NcclTestsOutput,
    cluster: Cluster,
    op: str | None = None,
    algorithm: str | None = None,
    protocol: str | None = None,
) -> Comparison:
    """Compare a measured run with the prediction for a cluster.

    Parameters
    ----------
    measured
        As `parse_nccl_tests` gives it; the out-of-place times are compared.
    cluster
        On which it ran.
    op
        Operation; by the output where None.
    algorithm, protocol
        Forced in the run, or None.

    Raises
    ------
    InputError
        If the output has other ranks than the cluster, no size of 1 KiB or more, or does not
        tell the operation.
    """
    _check_ranks(measured, cluster)
    kind = operation(op).name if op else operation_of(measured, cluster.n_ranks)
    sizes, times = _measured_times(measured, kind, cluster.n_ranks)
    healthy = estimate(cluster, kind, sizes, algorithm, protocol)
    points = tuple(_points(healthy, times))
    distance = _distance(times, healthy)
    causes: tuple[Cause, ...] = ()
    ratios = np.array([point.ratio for point in points])
    is_short = float(np.median(ratios)) < 1 - SHORT or any(
        point.verdict == "below" for point in points
    )
    if is_short:
        found = [
            *_impairments(cluster, kind, sizes, times, algorithm, protocol),
            *_algorithms(cluster, kind, sizes, times, healthy, forced=algorithm is not None),
        ]
        causes = _nearest(found, distance)
    return Comparison(
        kind, points, distance, causes, healthy, tuple(_summary(points, causes, is_short=is_short))
    )


def _check_ranks(measured: NcclTestsOutput, cluster: Cluster) -> None:
    if measured.n_ranks is not None and measured.n_ranks != cluster.n_ranks:
        what = _("the output is of {n} ranks.").format(n=measured.n_ranks)
        expected = _("{n}, the cluster's").format(n=cluster.n_ranks)
        raise InputError(Fault(measured.name, what, expected, _("Give hosts and GPUs of the run.")))


def _measured_times(
    measured: NcclTestsOutput, op: str, n_ranks: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes and times, each size once, in order."""
    factor = bus_factor(op, n_ranks)
    times = {
        row.size_bytes: _time_us(row, factor)
        for row in measured.rows
        if row.size_bytes >= SMALLEST_BYTES and _time_us(row, factor) > 0
    }
    if not times:
        what = _("no size of {least} bytes or more was measured.").format(least=SMALLEST_BYTES)
        raise InputError(Fault(measured.name, what))
    sizes = sorted(times)
    return np.array(sizes, np.float64), np.array([times[size] for size in sizes])


def _time_us(row: Row, factor: float) -> float:
    timing = row.out_of_place
    if timing.time_us:
        return timing.time_us
    return (
        row.size_bytes * factor / timing.busbw_gbytes_per_s / 1e3
        if (timing.busbw_gbytes_per_s > 0)
        else 0.0
    )


def _points(healthy: Estimate, times: NDArray[np.float64]) -> Iterator[Point]:
    for at, time_us in enumerate(times):
        size, predicted = float(healthy.size_bytes[at]), float(healthy.time_us[at])
        low, high = float(healthy.low_us[at]), float(healthy.high_us[at])
        moved = size * healthy.factor / 1e3
        yield Point(
            int(size),
            float(time_us),
            predicted,
            moved / float(time_us),
            moved / predicted,
            moved / high,
            moved / low,
            predicted / float(time_us),
            "below" if time_us > high else "above" if time_us < low else "inside",
        )


def _distance(times: NDArray[np.float64], found: Estimate) -> float:
    return float(np.sqrt(np.mean(np.log(times / found.time_us) ** 2)))


def _impairments(
    cluster: Cluster,
    op: str,
    sizes: NDArray[np.float64],
    times: NDArray[np.float64],
    algorithm: str | None,
    protocol: str | None,
) -> Iterator[Cause]:
    """The nearest amount of each impairment that the cluster can have."""
    for entry in IMPAIRMENTS.values():
        if not entry.applies_to(cluster):
            continue
        tried = []
        for amount in _AMOUNTS.get(entry.name, (entry.default,)):
            ask = Ask(entry, amount)
            found = estimate_impaired(cluster, op, sizes, [ask], algorithm, protocol)
            tried.append((_distance(times, found), str(ask)))
        distance, text = min(tried)
        yield Cause(entry.name, text, distance, entry.remedy, entry.source)


def _algorithms(
    cluster: Cluster,
    op: str,
    sizes: NDArray[np.float64],
    times: NDArray[np.float64],
    healthy: Estimate,
    *,
    forced: bool,
) -> Iterator[Cause]:
    """A healthy cluster where NCCL took another algorithm than its model says."""
    if forced:
        return
    chosen = {choice.algorithm for choice in healthy.choices}
    for name in dict.fromkeys(choice.algorithm for choice in allowed(cluster, op)):
        if chosen == {name}:
            continue
        found = estimate(cluster, op, sizes, name)
        text = _("NCCL took {algorithm} at all sizes").format(algorithm=name)
        remedy = _("Look at NCCL_DEBUG_SUBSYS=TUNING; unset NCCL_ALGO, or set it.")
        yield Cause(
            "algorithm", text, _distance(times, found), remedy, "NVIDIA/nccl issues 812, 2035"
        )


def _nearest(causes: list[Cause], healthy_distance: float) -> tuple[Cause, ...]:
    """The nearest cause and those that cannot be told from it, if they explain enough."""
    ordered = sorted(causes, key=_rank)
    if not ordered or _rank(ordered[0]) > min(NEARER * healthy_distance, FARTHEST):
        return ()
    most = _rank(ordered[0]) + AS_NEAR
    return tuple(cause for cause in ordered if _rank(cause) <= most)[:MOST_CAUSES]


def _rank(cause: Cause) -> float:
    return cause.distance + (FREEDOM if cause.name in _AMOUNTS else 0.0)


def _summary(
    points: tuple[Point, ...], causes: tuple[Cause, ...], *, is_short: bool
) -> Iterator[str]:
    n_inside = sum(point.verdict == "inside" for point in points)
    yield _("{n} of {all} sizes are inside the interval that 80 % of healthy runs keep.").format(
        n=n_inside, all=len(points)
    )
    worst = min(points, key=lambda point: point.ratio)
    if worst.ratio < 1:
        yield _(
            "Worst at {size} bytes: {measured:.2f} GB/s where {predicted:.2f} was predicted, "
            "{share:.0f} % of it."
        ).format(
            size=worst.size_bytes,
            measured=worst.measured_gbytes_per_s,
            predicted=worst.predicted_gbytes_per_s,
            share=100 * worst.ratio,
        )
    if not is_short:
        yield _("The cluster reaches what was predicted.")
    elif causes:
        for cause in causes:
            yield _("Such a curve usually comes of this: {text} ({source}). {remedy}").format(
                text=cause.text, source=cause.source, remedy=cause.remedy
            )
    else:
        yield _("No known cause gives such a curve; compare single links with perftest.")
