"""Max-min fair levels after a change, by a water-filling limited to what the change reaches.

The levels before the change are fair. A change at a channel leaves every level below the one at
which that channel is, or was, full: what happens below a level in progressive filling does not
depend on what happens above it. So the filling starts again only at channels that changed, in
order of level, and goes on only through bundles whose own level changes:

* a full channel that has room again at its level *opens*: the bundles that it limited are free;
* a channel that would be full at a lower level than before, or has free bundles, *closes*: its
  free bundles stop at that level and those that were above it come down to it.

Each channel opens at most once a round and is settled when it closes. The heap holds, for every
channel that may need attention, a lower bound of the level at which it does. Bundles that are not
free count with their old level, which is right below the level reached (they are settled) and
corrected when the channel closes (they come down). Where a change turns out to reach much of the
fabric, all bundles above the level reached are freed at once (a *flood*): from there on it is a
plain water-filling, which costs less for each bundle. The result is exact either way: the same
levels as a water-filling of everything, up to rounding.

Compare J. Ros-Giralt et al., "On the bottleneck structure of congestion-controlled networks",
SIGMETRICS 2019: a change moves only through the part of the bottleneck structure below it.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.heap import pop, rebuild, second_key, set_key, set_key_later
from gpufabric.kernels.jit import inner_kernel
from gpufabric.kernels.structs import Indices, Records, Solver

__all__ = ["CONVERGED", "NO_PROGRESS", "adjust", "join", "leave", "resize", "reweigh"]

CONVERGED = 0
NO_PROGRESS = 1
ROUND, N_TOUCHED, N_FREE, N_FLOODS = range(4)  # places in `tally`
SLACK = 1e-13  # relative; less room than this is none, two levels this close are one level
ALLOWED = 2  # members looked at for each active bundle before a flood is cheaper (measured)
OPENING = 4  # members looked at that freeing one of them costs as much as (measured)
MOST_FLOODS = 5  # each round of late that flooded halves ALLOWED, up to so many
PATIENCE = 1000  # steps per channel and bundle: far more than a round can need


@inner_kernel
def adjust(solver: Solver) -> int:
    """Bring all levels to max-min fairness after joins, leaves and changes. Return a status.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    heap, channels, tally = solver.heap, solver.channels, solver.tally
    patience = PATIENCE * (channels.size + solver.bundles.size)
    allowed = (ALLOWED * solver.active[0]) >> tally[N_FLOODS]
    is_flooded = False
    reached = 0.0
    while heap[0] > 0:
        number = heap[1]
        channel = channels[number]
        due = due_level(channel, tally[ROUND], reached)
        if due == np.inf:
            pop(heap, channels)
            continue
        if due > channel.key and due > second_key(heap, channels):
            set_key(heap, channels, number, due)
            continue
        reached = max(reached, due)
        opens = has_room(channel, tally[ROUND])
        allowed -= OPENING * channel.count if opens else channel.count
        if allowed < 0 and not is_flooded:
            flood(solver, reached)
            is_flooded = True
            continue
        pop(heap, channels)
        if opens:
            open_channel(solver, number, reached)
        else:
            close_channel(solver, number, max(reached, channel.key))
        if is_flooded and tally[N_FREE] == 0:
            clear(heap, channels)
        patience -= 1
        if patience < 0:
            return NO_PROGRESS
    tally[N_FLOODS] += 1 if is_flooded else -1
    tally[N_FLOODS] = min(max(tally[N_FLOODS], 0), MOST_FLOODS)
    tally[ROUND] += 1
    return CONVERGED


@inner_kernel
def flood(solver: Solver, reached: float) -> None:
    """Free all bundles at the level reached and above: from there on a plain water-filling.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    channels, heap, active = solver.channels, solver.heap, solver.active
    low = reached * (1.0 - SLACK)
    for at in range(1, active[0] + 1):
        number = active[at]
        bundle = solver.bundles[number]
        if bundle.free == 1 or bundle.level < low:
            continue
        remember(solver, number)
        bundle.free = 1
        solver.tally[N_FREE] += 1
        for place in range(bundle.first, bundle.end):
            entry = solver.entries[place]
            channel = channels[entry.channel]
            slope = entry.fraction * bundle.weight
            channel.load -= slope * bundle.level
            channel.slope += slope
            channel.n_free += 1
            set_key_later(heap, channels, entry.channel, 0.0)
    for at in range(1, heap[0] + 1):
        channel = channels[heap[at]]
        if channel.level >= low:
            channel.level = np.inf
        channel.key = due_level(channel, solver.tally[ROUND], reached)
    rebuild(heap, channels)


@inner_kernel
def clear(heap: Indices, channels: Records) -> None:
    """Take all channels out of the heap.

    Reference: tests/reference/heap.py.
    """
    for at in range(1, heap[0] + 1):
        channels[heap[at]].place = 0
    heap[0] = 0


@inner_kernel
def has_room(channel: Records, now: int) -> bool:
    """Tell whether the channel has room at the level at which it was full.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    if channel.level == np.inf or channel.settled == now:
        return False
    return channel.load + channel.slope * channel.level < channel.capacity * (1.0 - SLACK)


@inner_kernel
def due_level(channel: Records, now: int, reached: float) -> float:
    """Level at which the channel needs attention, or a lower bound of it; infinite if never.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    if channel.settled == now:
        return reached if channel.n_free > 0 else np.inf
    if channel.n_free == 0:
        if channel.load > channel.capacity * (1.0 + SLACK):
            return reached
        if channel.level < np.inf and channel.load < channel.capacity * (1.0 - SLACK):
            return channel.level
        return np.inf
    if channel.level < np.inf:
        load = channel.load + channel.slope * channel.level
        if load <= channel.capacity * (1.0 + SLACK):
            return channel.level
    return max(reached, (channel.capacity - channel.load) / channel.slope)


@inner_kernel
def consider(channels: Records, heap: Indices, number: int, now: int, reached: float) -> None:
    """Put the channel into the heap, or move it up, if it needs attention earlier than known.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    channel = channels[number]
    due = due_level(channel, now, reached)
    if due < np.inf and (channel.place == 0 or due < channel.key):
        set_key(heap, channels, number, due)


@inner_kernel
def resize(solver: Solver, number: int, capacity: float) -> None:
    """Give the channel a new capacity.

    Reference: tests/reference/flow.py, settle.
    """
    solver.channels[number].capacity = capacity
    consider(solver.channels, solver.heap, number, solver.tally[ROUND], 0.0)


@inner_kernel
def join(solver: Solver, number: int, weight: float) -> None:
    """Put an idle bundle with `weight` onto the channels of its route.

    Reference: tests/reference/flow.py, settle.
    """
    bundle = solver.bundles[number]
    for at in range(bundle.first, bundle.end):
        channel = solver.channels[solver.entries[at].channel]
        slot = channel.first + channel.count
        channel.count += 1
        solver.members[slot].bundle = number
        solver.members[slot].entry = at
        solver.entries[at].slot = slot
    bundle.level = 0.0
    solver.active[0] += 1
    solver.active[solver.active[0]] = number
    bundle.at = solver.active[0]
    reweigh(solver, number, weight)


@inner_kernel
def reweigh(solver: Solver, number: int, weight: float) -> None:
    """Give an active bundle a new weight and free it.

    Reference: tests/reference/flow.py, settle.
    """
    bundle = solver.bundles[number]
    remember(solver, number)
    before = bundle.weight * bundle.level
    bundle.weight = weight
    bundle.free = 1
    solver.tally[N_FREE] += 1
    for at in range(bundle.first, bundle.end):
        entry = solver.entries[at]
        channel = solver.channels[entry.channel]
        slope = entry.fraction * weight
        solver.members[entry.slot].load = slope
        channel.load -= entry.fraction * before
        channel.slope += slope
        channel.n_free += 1
        consider(solver.channels, solver.heap, entry.channel, solver.tally[ROUND], 0.0)


@inner_kernel
def leave(solver: Solver, number: int) -> None:
    """Take a bundle that is not free off the channels of its route.

    Reference: tests/reference/flow.py, settle.
    """
    members, entries = solver.members, solver.entries
    bundle = solver.bundles[number]
    before = bundle.weight * bundle.level
    bundle.weight = 0.0
    bundle.level = 0.0
    bundle.bottleneck = -1
    moved = solver.active[solver.active[0]]
    solver.active[bundle.at] = moved
    solver.bundles[moved].at = bundle.at
    solver.active[0] -= 1
    for at in range(bundle.first, bundle.end):
        entry = entries[at]
        channel = solver.channels[entry.channel]
        channel.count -= 1
        last = members[channel.first + channel.count]
        gap = members[entry.slot]
        gap.load = last.load
        gap.bundle = last.bundle
        gap.entry = last.entry
        entries[last.entry].slot = entry.slot
        if channel.count == 0:
            channel.load = 0.0
            channel.level = np.inf
        else:
            channel.load -= entry.fraction * before
            consider(solver.channels, solver.heap, entry.channel, solver.tally[ROUND], 0.0)


@inner_kernel
def remember(solver: Solver, number: int) -> None:
    """Note that the bundle's level may change in this round.

    Reference: tests/reference/flow.py, where every rate is new at every event.
    """
    bundle, tally = solver.bundles[number], solver.tally
    if bundle.last_round != tally[ROUND]:
        bundle.last_round = tally[ROUND]
        solver.touched[tally[N_TOUCHED]] = number
        tally[N_TOUCHED] += 1


@inner_kernel
def open_channel(solver: Solver, number: int, reached: float) -> None:
    """Free the bundles that the channel limited, for it has room again.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    channel = solver.channels[number]
    load = 0.0
    for slot in range(channel.first, channel.first + channel.count):
        member = solver.members[slot]
        bundle = solver.bundles[member.bundle]
        if bundle.free == 1:
            continue
        if bundle.bottleneck == number:
            set_free(solver, member.bundle, number, reached)
        else:
            load += member.load * bundle.level
    channel.load = load
    channel.level = np.inf
    consider(solver.channels, solver.heap, number, solver.tally[ROUND], reached)


@inner_kernel
def set_free(solver: Solver, number: int, opened: int, reached: float) -> None:
    """Let the bundle rise; its channels count it as free from now on.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    bundle = solver.bundles[number]
    remember(solver, number)
    bundle.free = 1
    solver.tally[N_FREE] += 1
    for at in range(bundle.first, bundle.end):
        entry = solver.entries[at]
        channel = solver.channels[entry.channel]
        slope = entry.fraction * bundle.weight
        channel.load -= slope * bundle.level
        channel.slope += slope
        channel.n_free += 1
        if entry.channel != opened:
            now = solver.tally[ROUND]
            consider(solver.channels, solver.heap, entry.channel, now, reached)


@inner_kernel
def close_channel(solver: Solver, number: int, least: float) -> None:
    """Stop the channel's free bundles where it is full, at `least` or above; or put it off.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    channels, members, bundles = solver.channels, solver.members, solver.bundles
    heap = solver.heap
    channel = channels[number]
    level = full_level(channel, members, bundles, least)
    if level == np.inf:
        return
    if level > least * (1.0 + SLACK) and heap[0] > 0 and level > channels[heap[1]].key:
        set_key(heap, channels, number, level)
        return
    channel.settled = solver.tally[ROUND]
    channel.level = level
    for slot in range(channel.first, channel.first + channel.count):
        bundle = members[slot].bundle
        if bundles[bundle].free == 1:
            stop(solver, bundle, number, level)
        elif bundles[bundle].level > level * (1.0 + SLACK):
            bring_down(solver, bundle, number, level)


@inner_kernel
def full_level(channel: Records, members: Records, bundles: Records, level: float) -> float:
    """Level at which the channel is full, sought from `level` up; infinite if it never is.

    The load is a concave function of the level, made of straight pieces: Newton's method ends in
    it exactly, from the left after the first step. Renews the channel's load on the way.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    before = -1
    while True:
        load, slope, above, n_above = 0.0, 0.0, 0.0, 0
        for slot in range(channel.first, channel.first + channel.count):
            member = members[slot]
            bundle = bundles[member.bundle]
            if bundle.free == 1:
                slope += member.load
            elif bundle.level > level * (1.0 + SLACK):
                slope += member.load
                above += member.load * bundle.level
                n_above += 1
            else:
                load += member.load * bundle.level
        channel.load = load + above
        if slope == 0.0:
            return np.inf
        level = max(0.0, (channel.capacity - load) / slope)
        if n_above in (0, before):
            return level
        before = n_above


@inner_kernel
def stop(solver: Solver, number: int, full: int, level: float) -> None:
    """Fix a free bundle at `level`, limited by the channel `full`.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    bundle = solver.bundles[number]
    bundle.free = 0
    solver.tally[N_FREE] -= 1
    bundle.level = level
    bundle.bottleneck = full
    for at in range(bundle.first, bundle.end):
        entry = solver.entries[at]
        channel = solver.channels[entry.channel]
        slope = entry.fraction * bundle.weight
        channel.load += slope * level
        channel.n_free -= 1
        channel.slope = channel.slope - slope if channel.n_free > 0 else 0.0


@inner_kernel
def bring_down(solver: Solver, number: int, full: int, level: float) -> None:
    """Lower a bundle to `level`, limited by the channel `full`, and look at its other channels.

    Reference: tests/reference/maxmin.py, progressive_filling.
    """
    bundle = solver.bundles[number]
    remember(solver, number)
    fall = bundle.weight * (bundle.level - level)
    bundle.level = level
    bundle.bottleneck = full
    for at in range(bundle.first, bundle.end):
        entry = solver.entries[at]
        solver.channels[entry.channel].load -= entry.fraction * fall
        if entry.channel != full:
            now = solver.tally[ROUND]
            consider(solver.channels, solver.heap, entry.channel, now, level)
