"""One weighted max-min fair allocation by heap-ordered water-filling.

Channels wait in a heap by the level at which they would be full if no flow stopped earlier. The
lowest one is full: its flows stop at that level, and the other channels they cross get full
later, never earlier. A channel's key in the heap is thus a lower bound and is renewed only when
the channel reaches the top. Time grows with route entries x log(channels).
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.heap import pop, rebuild, second_key, set_key, set_key_later
from gpufabric.kernels.jit import inner_kernel, kernel
from gpufabric.kernels.prefetch import prefetch
from gpufabric.kernels.structs import Floats, Indices, Ints, Longs, Records, Routes

__all__ = ["UNLIMITED", "fill", "transpose"]

UNLIMITED = -2
RISING = -3
AHEAD = 8  # flows; enough to hide the way to memory
CANCELLED = 1e-3  # part of a sum below which what was taken off it made it inexact


@kernel
def transpose(routes: Routes, n_channels: int) -> tuple[Longs, Ints]:
    """Routes of every channel in CSR form, in order of route.

    Reference: tests/reference/maxmin.py, where every channel looks through all routes.
    """
    first = np.zeros(n_channels + 1, np.int64)
    for channel in routes.channel:
        first[channel + 1] += 1
    for channel in range(n_channels):
        first[channel + 1] += first[channel]
    at = first[:-1].copy()
    route_of = np.empty(routes.channel.size, np.int32)
    for route in range(routes.first.size - 1):
        for entry in range(routes.first[route], routes.first[route + 1]):
            channel = routes.channel[entry]
            route_of[at[channel]] = route
            at[channel] += 1
    return first, route_of


@kernel
def fill(
    routes: Routes,
    weight: Floats,
    channels: Records,
    heap: Indices,
    rate: Floats,
    bottleneck: Ints,
) -> int:
    """Write max-min fair rates and the channel that limits each flow; return channels filled.

    `channels` (CHANNEL[n_channels]) brings the capacities, else it and `heap` are room to work;
    its `level` holds the slope that was last added up.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    first, flow_of = transpose(routes, channels.size)
    start(routes, weight, channels, heap, rate, bottleneck)
    n_filled = 0
    while heap[0] > 0:
        full = heap[1]
        channel = channels[full]
        if channel.n_free == 0:
            pop(heap, channels)
            continue
        if channel.slope < CANCELLED * channel.level:
            recount(routes, weight, flow_of[first[full] : first[full + 1]], channels, full, rate)
        level = max(0.0, (channel.capacity - channel.load) / channel.slope)
        if level > channel.key and level > second_key(heap, channels):
            set_key(heap, channels, full, level)
            continue
        pop(heap, channels)
        flows = flow_of[first[full] : first[full + 1]]
        for at in range(flows.size):
            fetch_ahead(routes, flows, at, rate, bottleneck)
            flow = flows[at]
            if bottleneck[flow] == RISING:
                bottleneck[flow] = full
                rate[flow] = weight[flow] * level
                stop_flow(routes, flow, weight[flow], level, channels)
        n_filled += 1
    return n_filled


@inner_kernel
def start(
    routes: Routes,
    weight: Floats,
    channels: Records,
    heap: Indices,
    rate: Floats,
    bottleneck: Ints,
) -> None:
    """Let all flows rise and put every channel with a flow into the heap.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    for flow in range(rate.size):
        rate[flow] = np.inf
        empty = routes.first[flow] == routes.first[flow + 1]
        bottleneck[flow] = UNLIMITED if empty else RISING
        for entry in range(routes.first[flow], routes.first[flow + 1]):
            channel = channels[routes.channel[entry]]
            channel.slope += routes.fraction[entry] * weight[flow]
            channel.n_free += 1
    for number in range(channels.size):
        channel = channels[number]
        channel.level = channel.slope
        if channel.n_free > 0:
            set_key_later(heap, channels, number, channel.capacity / channel.slope)
    rebuild(heap, channels)


@inner_kernel
def fetch_ahead(routes: Routes, flows: Ints, at: int, rate: Floats, bottleneck: Ints) -> None:
    """Have the processor fetch what the flows after place `at` will need; a fifth of the time.

    Reference: tests/reference/maxmin.py, progressive_filling, which this changes in nothing.
    """
    if at + 2 * AHEAD < flows.size:
        later = flows[at + 2 * AHEAD]
        prefetch(bottleneck, later)
        prefetch(routes.first, later)
    if at + AHEAD < flows.size:
        soon = flows[at + AHEAD]
        if bottleneck[soon] == RISING:
            prefetch(rate, soon)
            prefetch(routes.channel, routes.first[soon])
            prefetch(routes.fraction, routes.first[soon])


@inner_kernel
def recount(
    routes: Routes, weight: Floats, flows: Ints, channels: Records, number: int, rate: Floats
) -> None:
    """Add up a channel's load and slope anew: taken off a large sum, a small one is inexact.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    channel = channels[number]
    channel.load = 0.0
    channel.slope = 0.0
    for flow in flows:
        for entry in range(routes.first[flow], routes.first[flow + 1]):
            if routes.channel[entry] != number:
                continue
            if rate[flow] == np.inf:
                channel.slope += routes.fraction[entry] * weight[flow]
            else:
                channel.load += routes.fraction[entry] * rate[flow]
    channel.level = channel.slope


@inner_kernel
def stop_flow(routes: Routes, flow: int, weight: float, level: float, channels: Records) -> None:
    """Stop a rising flow at `level` on all its channels.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    for entry in range(routes.first[flow], routes.first[flow + 1]):
        channel = channels[routes.channel[entry]]
        slope = routes.fraction[entry] * weight
        channel.load += slope * level
        channel.slope -= slope
        channel.n_free -= 1
