"""Routes in plain form and bundles of equal flows, with dicts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

Route = Sequence[tuple[int, float]]


def plain(route: Route) -> list[tuple[int, float]]:
    """The route with one entry a channel, in order of first mention, and no zero fraction."""
    parts: dict[int, float] = {}
    for channel, fraction in route:
        if fraction > 0:
            parts[channel] = parts.get(channel, 0.0) + fraction
    return list(parts.items())


def bundles(kinds: Sequence[Hashable]) -> list[int]:
    """Number of the kind of each flow, kinds numbered as they are met."""
    number: dict[Hashable, int] = {}
    return [number.setdefault(kind, len(number)) for kind in kinds]


def binding(capacity: Sequence[float], route: Route, cap: float) -> bool:
    """Whether the cap can be lower than what the channels of the route allow."""
    return all(cap < capacity[channel] / fraction for channel, fraction in route)


def with_caps(
    n_channels: int, routes: Sequence[Route], is_binding: Sequence[bool]
) -> list[list[tuple[int, float]]]:
    """The routes, those with a binding cap with one more channel, numbered from `n_channels`."""
    result = []
    for route, has_cap in zip(routes, is_binding, strict=True):
        entries = list(route)
        if has_cap:
            entries.append((n_channels, 1.0))
            n_channels += 1
        result.append(entries)
    return result
