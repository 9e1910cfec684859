"""Max-min fair rates of flows, and their finish times from event to event.

The fluid model of docs/models/flow.md: exact weighted max-min fairness over directed channels.
This module speaks Gb/s, bytes and seconds; kernels/maxmin.py and kernels/flow.py do the work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import GpufabricError
from gpufabric.core.text import _
from gpufabric.kernels.adjust import CONVERGED
from gpufabric.kernels.bundle import add_caps, binding_caps
from gpufabric.kernels.flow import (
    FINISHED,
    N_ADJUSTED,
    N_INSTANTS,
    PENDING,
    RUNNING,
    STALLED,
    WAITING,
    run_flows,
)
from gpufabric.kernels.heap import new_heap
from gpufabric.kernels.maxmin import UNLIMITED, fill
from gpufabric.kernels.structs import CHANNEL, Run, records
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.flow_problem import FabricEvents, FlowProblem, Paths, Predecessors
from gpufabric.sim.flow_setup import (
    BYTES_PER_S,
    check_cap,
    check_capacity,
    check_paths,
    check_problem,
    check_weight,
    new_run,
)

__all__ = [
    "FINISHED",
    "LIMITED_BY_CAP",
    "PENDING",
    "RUNNING",
    "STALLED",
    "UNLIMITED",
    "WAITING",
    "Allocation",
    "FabricEvents",
    "FlowProblem",
    "FlowResult",
    "NoProgressError",
    "Paths",
    "Predecessors",
    "Utilisation",
    "allocate",
    "simulate",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

LIMITED_BY_CAP = -1


class NoProgressError(GpufabricError):
    """The solver did not come to an end: a fault of gpufabric, not of the input."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Max-min fair rates.

    Parameters
    ----------
    rates_gbps
        float64[n_flows] [Gb/s]; infinite for a flow without channel and cap.
    bottleneck
        int32[n_flows]: full channel at which no flow has a higher level (rate / weight);
        ``LIMITED_BY_CAP`` or ``UNLIMITED`` where there is none.
    """

    rates_gbps: Floats
    bottleneck: Ints


@dataclass(frozen=True, eq=False)
class Utilisation:
    """Load of every channel over time.

    Parameters
    ----------
    bin_s
        Width of a bin [s]; bin k is from ``k * bin_s`` to ``(k + 1) * bin_s``.
    carried_bytes
        float64[n_bins, n_channels] [byte].
    """

    bin_s: float
    carried_bytes: Floats

    def utilisation(self, capacity_gbps: Floats) -> Floats:
        """Return carried / capacity of each bin and channel [1]; nan where capacity is 0."""
        room = np.asarray(capacity_gbps, np.float64) * (BYTES_PER_S * self.bin_s)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.carried_bytes / room
        share[:, room == 0] = np.nan
        return share


@dataclass(frozen=True, eq=False)
class FlowResult:
    """How a run went.

    Parameters
    ----------
    status
        int8[n_flows], at the end of the run: ``FINISHED``; ``RUNNING``; ``STALLED``: begun, but
        its rate is 0; ``PENDING``: not begun; ``WAITING``: a predecessor has not ended.
    begun_s
        float64[n_flows]: first byte, start and latency included [s]; nan if it has not begun.
    finish_s
        float64[n_flows]: last byte [s]; nan if it has not ended.
    rates_gbps
        float64[n_flows]: mean rate from first to last byte [Gb/s]; nan if it has not ended, or
        took no time.
    left_bytes
        float64[n_flows]: what has not arrived at the end of the run [byte].
    carried_bytes
        float64[n_channels] [byte].
    end_s
        Last byte of all; `until_s` where flows were left that could move [s].
    n_instants
        Instants at which something happened.
    n_adjusted
        Rates looked at over all instants: what the run cost.
    series
        Load over time, where asked for.
    """

    status: NDArray[np.int8]
    begun_s: Floats
    finish_s: Floats
    rates_gbps: Floats
    left_bytes: Floats
    carried_bytes: Floats
    end_s: float
    n_instants: int
    n_adjusted: int
    series: Utilisation | None = None


def allocate(
    capacity_gbps: Floats,
    paths: Paths,
    weights: Floats | None = None,
    caps_gbps: Floats | None = None,
) -> Allocation:
    """Weighted max-min fair rates of flows that are all active, in Gb/s.

    Parameters
    ----------
    capacity_gbps
        float64[n_channels]: capacity of each direction of each link [Gb/s].
    paths
        One row a flow.
    weights
        float64[n_flows]: share of a full channel, relative to others there [1]; 1 where None.
    caps_gbps
        float64[n_flows]: largest rate [Gb/s]; no caps where None.

    Raises
    ------
    InputError
        If an array has a wrong size, type or value; all faults are told.

    Notes
    -----
    An allocation is max-min fair if no level (rate / weight) can rise without lowering one that
    is not higher. There is exactly one.

    Source: D. Bertsekas, R. Gallager, Data Networks, 2nd edition, section 6.5.2.

    Examples
    --------
    Two flows share a 400 Gb/s channel; one of them also crosses a channel of 100 Gb/s:

    >>> paths = Paths.from_lists([[0], [0, 1]])
    >>> allocate(np.array([400.0, 100.0]), paths).rates_gbps.tolist()
    [300.0, 100.0]
    """
    checks = ArrayChecks()
    capacity = check_capacity(checks, capacity_gbps)
    routes = check_paths(checks, paths, capacity.size)
    n_flows = paths.n_paths
    weight = check_weight(checks, weights, n_flows)
    cap = check_cap(checks, caps_gbps, n_flows) if caps_gbps is not None else None
    checks.raise_all()
    n_channels = capacity.size
    if cap is not None and (binding := binding_caps(routes, capacity, cap)).any():
        routes = add_caps(routes, binding, n_channels, np.empty(n_flows, np.int32))
        capacity = np.concatenate([capacity, cap[binding]])
    rates_gbps = np.empty(n_flows)
    bottleneck = np.empty(n_flows, np.int32)
    channels = records(CHANNEL, capacity.size)
    channels["capacity"] = capacity
    fill(routes, weight, channels, new_heap(capacity.size), rates_gbps, bottleneck)
    bottleneck[bottleneck >= n_channels] = LIMITED_BY_CAP
    return Allocation(rates_gbps, bottleneck)


def simulate(
    problem: FlowProblem,
    events: FabricEvents | None = None,
    *,
    until_s: float = np.inf,
    series_bins: int = 0,
) -> FlowResult:
    """Run flows with max-min fair rates from event to event; finish times in seconds.

    Parameters
    ----------
    problem
        Channels, paths and flows.
    events
        Failures, repairs, degraded speeds and reroutes. A flow on a failed channel stands still
        until the channel is repaired or the flow rerouted.
    until_s
        End of the run [s]; until nothing more can happen where infinite.
    series_bins
        Number of time bins in which to count what each channel carries, an even number; their
        width grows with the run. 0: none.

    Raises
    ------
    InputError
        If an array has a wrong size, type or value, or flows wait for each other in a circle.
    NoProgressError
        If the solver does not come to an end.

    Examples
    --------
    Two flows of 1 GB and 3 GB share 400 Gb/s (50 GB/s): both get half until the first ends:

    >>> problem = FlowProblem(
    ...     capacity_gbps=np.array([400.0]),
    ...     paths=Paths.from_lists([[0], [0]]),
    ...     size_bytes=np.array([1e9, 3e9]),
    ... )
    >>> simulate(problem).finish_s.round(6).tolist()
    [0.04, 0.08]
    """
    checked = check_problem(problem, events)
    _check_options(until_s, series_bins)
    run = new_run(checked, series_bins)
    if run_flows(run, until_s) != CONVERGED:
        raise NoProgressError(
            _("The flow engine came to no end after {n} instants.").format(
                n=int(run.clock[N_INSTANTS])
            )
        )
    return _result(run, until_s)


def _check_options(until_s: float, series_bins: int) -> None:
    checks = ArrayChecks()
    if not until_s >= 0:
        checks.fault("until_s", _("the value is {value}.").format(value=until_s), _("0 or more"))
    if series_bins < 0 or series_bins % 2:
        what = _("the value is {value}.").format(value=series_bins)
        checks.fault("series_bins", what, _("an even number, 0 for none"))
    checks.raise_all()


def _result(run: Run, until_s: float) -> FlowResult:
    flows, bundles = run.flows, run.solver.bundles
    status = flows["status"].astype(np.int8)
    running = (status == RUNNING) | (status == STALLED)
    left_bytes = np.where(status == FINISHED, 0.0, flows["size_bytes"])
    served = bundles["served"][flows["bundle"][running]]
    left_bytes[running] = np.maximum(0.0, flows["target"][running] - served)
    took_s = flows["finish_s"] - flows["begun_s"]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates_gbps = flows["size_bytes"] / took_s / BYTES_PER_S
    rates_gbps[~(took_s > 0)] = np.nan
    entries = run.solver.entries
    moved = np.repeat(bundles["carried"], bundles["end"] - bundles["first"])
    n_bins, n_channels = run.series.carried.shape
    carried = np.bincount(entries["channel"], moved * entries["fraction"], minlength=n_channels)
    series = None
    if n_bins:
        series = Utilisation(float(run.series.width_s[0]), run.series.carried)
    return FlowResult(
        status=status,
        begun_s=flows["begun_s"].copy(),
        finish_s=flows["finish_s"].copy(),
        rates_gbps=rates_gbps,
        left_bytes=left_bytes,
        carried_bytes=carried[:n_channels].astype(np.float64),
        end_s=_end(status, flows["finish_s"], until_s),
        n_instants=int(run.clock[N_INSTANTS]),
        n_adjusted=int(run.clock[N_ADJUSTED]),
        series=series,
    )


def _end(status: NDArray[np.int8], finish_s: Floats, until_s: float) -> float:
    if np.isin(status, (RUNNING, PENDING)).any():
        return until_s
    return float(np.nanmax(finish_s, initial=0.0))
