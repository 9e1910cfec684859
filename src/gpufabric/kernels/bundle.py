"""Routes put into plain form, and the flows of one route, weight and cap merged into bundles."""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel
from gpufabric.kernels.structs import Bools, Floats, Ints, Longs, Routes

__all__ = ["add_caps", "binding_caps", "is_plain", "make_plain", "merge", "merge_routes", "pick"]

NONE = -1
PRIME = 2_147_483_629  # below 2**31: products of hashes stay within int64
FACTOR = 1_000_003


@kernel
def is_plain(routes: Routes, n_channels: int) -> bool:
    """Tell whether no route names a channel twice or with a fraction of zero.

    Reference: tests/reference/bundle.py, plain.
    """
    seen_by = np.full(n_channels, NONE, np.int32)
    for route in range(routes.first.size - 1):
        for entry in range(routes.first[route], routes.first[route + 1]):
            channel = routes.channel[entry]
            if seen_by[channel] == route or routes.fraction[entry] == 0.0:
                return False
            seen_by[channel] = route
    return True


@kernel
def make_plain(routes: Routes, n_channels: int) -> Routes:
    """Routes with one entry a channel: fractions of one channel added, zeros left out.

    Reference: tests/reference/bundle.py, plain.
    """
    first = np.zeros_like(routes.first)
    channels = np.empty_like(routes.channel)
    fractions = np.empty_like(routes.fraction)
    place = np.full(n_channels, -1, np.int64)
    size = 0
    for route in range(routes.first.size - 1):
        for entry in range(routes.first[route], routes.first[route + 1]):
            channel = routes.channel[entry]
            if routes.fraction[entry] == 0.0:
                continue
            if place[channel] >= first[route]:
                fractions[place[channel]] += routes.fraction[entry]
                continue
            place[channel] = size
            channels[size] = channel
            fractions[size] = routes.fraction[entry]
            size += 1
        first[route + 1] = size
    return Routes(first, channels[:size].copy(), fractions[:size].copy())


@kernel
def same_route(routes: Routes, one: int, other: int) -> bool:
    """Tell whether two routes have the same entries in the same order.

    Reference: tests/reference/bundle.py, bundles.
    """
    start, start_other = routes.first[one], routes.first[other]
    size = routes.first[one + 1] - start
    if size != routes.first[other + 1] - start_other:
        return False
    for step in range(size):
        if routes.channel[start + step] != routes.channel[start_other + step]:
            return False
        if routes.fraction[start + step] != routes.fraction[start_other + step]:
            return False
    return True


@kernel
def table_for(n_items: int) -> Ints:
    """Hash table with room for `n_items`, at most half full.

    Reference: tests/reference/bundle.py, bundles.
    """
    size = 8
    while size < 2 * n_items:
        size *= 2
    return np.full(size, NONE, np.int32)


@kernel
def merge_routes(routes: Routes) -> Ints:
    """For each route the first one that is equal to it.

    Reference: tests/reference/bundle.py, bundles.
    """
    n_routes = routes.first.size - 1
    table = table_for(n_routes)
    leader = np.empty(n_routes, np.int32)
    for route in range(n_routes):
        mixed = np.int64(1)
        for entry in range(routes.first[route], routes.first[route + 1]):
            mixed = (mixed * FACTOR + routes.channel[entry]) % PRIME
        at = mixed & (table.size - 1)
        while table[at] != NONE and not same_route(routes, table[at], route):
            at = (at + 1) & (table.size - 1)
        if table[at] == NONE:
            table[at] = route
        leader[route] = table[at]
    return leader


@kernel
def merge(route: Ints, weight_bits: Longs, cap_bits: Longs, bundle: Ints) -> Ints:
    """Number the distinct (route, weight, cap) in `bundle`; return the first flow of each.

    Reference: tests/reference/bundle.py, bundles.
    """
    table = table_for(route.size)
    leader = np.empty(route.size, np.int32)
    n_bundles = 0
    for flow in range(route.size):
        mixed = (route[flow] + 1) * FACTOR % PRIME
        mixed = (mixed + weight_bits[flow] % PRIME) * FACTOR % PRIME
        mixed = (mixed + cap_bits[flow] % PRIME) * FACTOR % PRIME
        at = mixed & (table.size - 1)
        while table[at] != NONE:
            first = leader[table[at]]
            if (
                route[first] == route[flow]
                and weight_bits[first] == weight_bits[flow]
                and cap_bits[first] == cap_bits[flow]
            ):
                break
            at = (at + 1) & (table.size - 1)
        if table[at] == NONE:
            table[at] = n_bundles
            leader[n_bundles] = flow
            n_bundles += 1
        bundle[flow] = table[at]
    return leader[:n_bundles].copy()


@kernel
def pick(routes: Routes, chosen: Ints) -> Routes:
    """Copy the chosen routes, in that order.

    Reference: tests/reference/bundle.py, bundles.
    """
    first = np.zeros(chosen.size + 1, np.int64)
    for at in range(chosen.size):
        route = chosen[at]
        first[at + 1] = first[at] + routes.first[route + 1] - routes.first[route]
    channel = np.empty(first[-1], np.int32)
    fraction = np.empty(first[-1], np.float64)
    for at in range(chosen.size):
        start = routes.first[chosen[at]]
        for step in range(first[at + 1] - first[at]):
            channel[first[at] + step] = routes.channel[start + step]
            fraction[first[at] + step] = routes.fraction[start + step]
    return Routes(first, channel, fraction)


@kernel
def binding_caps(routes: Routes, capacity: Floats, cap: Floats) -> Bools:
    """Tell for each route whether its cap can be lower than what its channels allow.

    Reference: tests/reference/bundle.py, with_caps.
    """
    binding = np.zeros(cap.size, np.bool_)
    for route in range(cap.size):
        least = np.inf
        for entry in range(routes.first[route], routes.first[route + 1]):
            least = min(least, capacity[routes.channel[entry]] / routes.fraction[entry])
        binding[route] = cap[route] < least
    return binding


@kernel
def add_caps(routes: Routes, binding: Bools, n_channels: int, cap_channel: Ints) -> Routes:
    """Give every route with a binding cap one more channel, its own, which stands for the cap.

    Reference: tests/reference/bundle.py, with_caps.
    """
    n_routes = routes.first.size - 1
    n_more = np.sum(binding)
    first = np.zeros(n_routes + 1, np.int64)
    channel = np.empty(routes.channel.size + n_more, np.int32)
    fraction = np.empty(routes.channel.size + n_more, np.float64)
    size = 0
    following = n_channels
    for route in range(n_routes):
        for entry in range(routes.first[route], routes.first[route + 1]):
            channel[size] = routes.channel[entry]
            fraction[size] = routes.fraction[entry]
            size += 1
        cap_channel[route] = NONE
        if binding[route]:
            cap_channel[route] = following
            channel[size] = following
            fraction[size] = 1.0
            following += 1
            size += 1
        first[route + 1] = size
    return Routes(first, channel, fraction)
