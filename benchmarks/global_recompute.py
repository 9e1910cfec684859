"""The plain way to run flows: at every event, all rates anew by heap-ordered water-filling.

What the flow engine must never be slower than. Compiled like the engine, but not tuned: no
bundles, no limited recomputation, no memory from one event to the next but the bytes left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.heap import new_heap
from gpufabric.kernels.jit import kernel
from gpufabric.kernels.maxmin import fill
from gpufabric.kernels.structs import CHANNEL, Floats, Indices, Ints, Records, Routes, records
from gpufabric.sim.flow import FlowProblem

__all__ = ["finish_times"]

BYTES_PER_S = 1.25e8  # in 1 Gb/s
SAME_INSTANT = 1e-12


def finish_times(problem: FlowProblem) -> NDArray[np.float64]:
    """Finish time of every flow of a problem without caps, weights, dependencies, latencies [s]."""
    paths = problem.paths
    routes = Routes(paths.first, paths.channel, np.ones(paths.channel.size))
    channels = records(CHANNEL, np.size(problem.capacity_gbps))
    channels["capacity"] = np.asarray(problem.capacity_gbps) * BYTES_PER_S
    start_s = np.zeros(problem.n_flows) if problem.start_s is None else problem.start_s
    order = np.argsort(start_s, kind="stable").astype(np.int32)
    finish_s = np.empty(problem.n_flows)
    _run(routes, channels, new_heap(channels.size), problem.size_bytes, start_s, order, finish_s)
    return finish_s


@kernel  # type: ignore[untyped-decorator]  # numba has no types
def _run(  # noqa: PLR0913, PLR0917 - arrays, as in a kernel
    routes: Routes,
    channels: Records,
    heap: Indices,
    size_bytes: Floats,
    start_s: Floats,
    order: Ints,
    finish_s: Floats,
) -> None:
    active = np.empty(order.size, np.int32)
    left, rate = size_bytes.copy(), np.empty(order.size)
    n_active, n_begun, now = 0, 0, 0.0
    while n_begun < order.size or n_active > 0:
        while n_begun < order.size and start_s[order[n_begun]] <= now:
            active[n_active] = order[n_begun]
            n_active += 1
            n_begun += 1
        _rates(routes, channels, heap, active[:n_active], rate)
        step = np.inf if n_begun == order.size else start_s[order[n_begun]] - now
        for at in range(n_active):
            step = min(step, left[active[at]] / rate[at])
        step_end = now + step
        n_left = 0
        for at in range(n_active):
            flow = active[at]
            left[flow] -= rate[at] * step
            if left[flow] <= rate[at] * step_end * SAME_INSTANT:
                finish_s[flow] = step_end
            else:
                active[n_left] = flow
                n_left += 1
        n_active, now = n_left, step_end


@kernel  # type: ignore[untyped-decorator]  # numba has no types
def _rates(routes: Routes, channels: Records, heap: Indices, active: Ints, rate: Floats) -> None:
    first = np.zeros(active.size + 1, np.int64)
    for at in range(active.size):
        flow = active[at]
        first[at + 1] = first[at] + routes.first[flow + 1] - routes.first[flow]
    channel = np.empty(first[-1], np.int32)
    for at in range(active.size):
        begin = routes.first[active[at]]
        for step in range(first[at + 1] - first[at]):
            channel[first[at] + step] = routes.channel[begin + step]
    for number in range(channels.size):
        channels[number].load = 0.0
        channels[number].slope = 0.0
        channels[number].n_free = 0
    bottleneck = np.empty(active.size, np.int32)
    now = Routes(first, channel, np.ones(channel.size))
    fill(now, np.ones(active.size), channels, heap, rate[: active.size], bottleneck)
