"""A run of flows in time: from event to event, with fair rates between them.

A bundle's flows have one rate, so one number, `served`, tells how far each of them is: a flow that
joins when `served` is 5 GB and has 2 GB to move ends when it is 7 GB. Only bundles whose rate
changes are touched at an event; all others go on by themselves. What happens at one instant is
gathered first, so that a bundle which loses a flow and gains one is not touched at all.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.adjust import (
    CONVERGED,
    N_TOUCHED,
    NO_PROGRESS,
    adjust,
    join,
    leave,
    resize,
    reweigh,
)
from gpufabric.kernels.heap import drop, pop, rebuild, set_key, set_key_later
from gpufabric.kernels.jit import inner_kernel
from gpufabric.kernels.pairing import NONE, add, remove
from gpufabric.kernels.series import spread
from gpufabric.kernels.structs import Indices, Longs, Records, Run, Series, Solver

__all__ = [
    "FINISHED",
    "N_ADJUSTED",
    "N_INSTANTS",
    "PENDING",
    "RUNNING",
    "STALLED",
    "WAITING",
    "run_flows",
]

WAITING, PENDING, RUNNING, STALLED, FINISHED = range(5)
SAME_INSTANT = 1e-12  # relative; events this close happen together
NEXT_START, NEXT_CHANGE, N_CHANGED, N_INSTANTS, N_ADJUSTED = range(5)  # places in `clock`


@inner_kernel
def run_flows(run: Run, until_s: float) -> int:
    """Move the flows until all have ended, nothing more can happen or `until_s`; return a status.

    Reference: tests/reference/flow.py, run.
    """
    while True:
        now = next_instant(run)
        if now == np.inf or now > until_s:
            break
        if not happen(run, now):
            return NO_PROGRESS
        change_bundles(run.solver, run.changed, run.clock)
        if adjust(run.solver) != CONVERGED:
            return NO_PROGRESS
        renew_ends(run, now)
        run.clock[N_INSTANTS] += 1
    close_books(run, until_s)
    return CONVERGED


@inner_kernel
def next_instant(run: Run) -> float:
    """Time of the next event; infinite when there is none.

    Reference: tests/reference/flow.py, next_instant.
    """
    now = np.inf
    if run.clock[NEXT_START] < run.order.size:
        flow = run.flows[run.order[run.clock[NEXT_START]]]
        now = flow.start_s + flow.latency_s
    if run.starts[0] > 0:
        now = min(now, run.flows[run.starts[1]].key)
    if run.ends[0] > 0:
        now = min(now, run.solver.bundles[run.ends[1]].key)
    if run.clock[NEXT_CHANGE] < run.changes.size:
        now = min(now, run.changes[run.clock[NEXT_CHANGE]].time_s)
    return now


@inner_kernel
def happen(run: Run, now: float) -> bool:
    """Do all that happens at `now`, until nothing more does; tell whether anything did.

    What has arrived by `now` has arrived, whatever becomes of the fabric at `now`.

    Reference: tests/reference/flow.py, settle.
    """
    limit = now * (1.0 + SAME_INSTANT)
    n_done = end_due(run, now, limit) + change_fabric(run, now, limit)
    while True:
        n_now = end_due(run, now, limit) + begin_due(run, now, limit)
        if n_now == 0:
            break
        n_done += n_now
    return n_done > 0


@inner_kernel
def change_fabric(run: Run, now: float, limit: float) -> int:
    """Make the changes of the fabric that are due; return how many.

    Reference: tests/reference/flow.py, settle.
    """
    n_done = 0
    while run.clock[NEXT_CHANGE] < run.changes.size:
        change = run.changes[run.clock[NEXT_CHANGE]]
        if change.time_s > limit:
            break
        if change.channel >= 0:
            resize(run.solver, np.uint32(change.channel), change.capacity)
        else:
            reroute(run, np.uint32(change.flow), change.bundle, now)
        run.clock[NEXT_CHANGE] += 1
        n_done += 1
    return n_done


@inner_kernel
def reroute(run: Run, number: int, bundle: int, now: float) -> None:
    """Move a flow to another bundle with the bytes that it has left.

    Reference: tests/reference/flow.py, settle.
    """
    flow = run.flows[number]
    before = flow.bundle
    if flow.status != RUNNING or before == bundle:
        flow.bundle = bundle
        return
    part(run, number, now)
    left = max(0.0, flow.target - run.solver.bundles[before].served)
    flow.bundle = bundle
    if is_unlimited(run.solver.bundles[bundle]):
        end(run, number, now, now)
    else:
        enter(run, number, left, now)


@inner_kernel
def begin_due(run: Run, now: float, limit: float) -> int:
    """Begin the flows whose first byte is due; return how many.

    Reference: tests/reference/flow.py, settle.
    """
    n_begun = 0
    while run.clock[NEXT_START] < run.order.size:
        number = run.order[run.clock[NEXT_START]]
        if run.flows[number].start_s + run.flows[number].latency_s > limit:
            break
        run.clock[NEXT_START] += 1
        begin(run, number, now)
        n_begun += 1
    while run.starts[0] > 0 and run.flows[run.starts[1]].key <= limit:
        begin(run, pop(run.starts, run.flows), now)
        n_begun += 1
    return n_begun


@inner_kernel
def begin(run: Run, number: int, now: float) -> None:
    """Let a flow send its first byte; end it at once if nothing holds it back.

    Reference: tests/reference/flow.py, settle.
    """
    flow = run.flows[number]
    flow.begun_s = now
    if flow.size_bytes == 0.0 or is_unlimited(run.solver.bundles[flow.bundle]):
        end(run, number, now, now)
        return
    flow.status = RUNNING
    enter(run, number, flow.size_bytes, now)


@inner_kernel
def is_unlimited(bundle: Records) -> bool:
    """Tell whether the bundle crosses no channel and has no cap.

    Reference: tests/reference/flow.py, settle.
    """
    return bundle.first == bundle.end


@inner_kernel
def enter(run: Run, number: int, size_bytes: float, now: float) -> None:
    """Add a flow with `size_bytes` to move to its bundle.

    Reference: tests/reference/flow.py, run.
    """
    flow = run.flows[number]
    bundle = run.solver.bundles[flow.bundle]
    note_change(run, flow.bundle, now)
    bundle.n_active += 1
    flow.target = bundle.served + size_bytes
    bundle.root = add(run.flows, bundle.root, number)


@inner_kernel
def part(run: Run, number: int, now: float) -> None:
    """Take a flow out of its bundle.

    Reference: tests/reference/flow.py, run.
    """
    flow = run.flows[number]
    bundle = run.solver.bundles[flow.bundle]
    note_change(run, flow.bundle, now)
    bundle.n_active -= 1
    bundle.root = remove(run.flows, bundle.root, number)


@inner_kernel
def note_change(run: Run, number: int, now: float) -> None:
    """Bring the bundle up to `now` and note that its flows change.

    Reference: tests/reference/flow.py, run.
    """
    bundle = run.solver.bundles[number]
    catch_up(bundle, run.solver, run.series, now)
    if bundle.is_changed == 0:
        bundle.is_changed = 1
        bundle.n_before = bundle.n_active
        run.changed[run.clock[N_CHANGED]] = number
        run.clock[N_CHANGED] += 1


@inner_kernel
def catch_up(bundle: Records, solver: Solver, series: Series, now: float) -> None:
    """Count what the bundle moved since it was last looked at.

    Reference: tests/reference/flow.py, run.
    """
    since = bundle.since_s
    if now > since:
        moved = bundle.rate * (now - since)
        bundle.served += moved
        bundle.carried += moved * bundle.n_active
        bundle.since_s = now
        if moved > 0.0 and series.carried.shape[0] > 0:
            entries = solver.entries[bundle.first : bundle.end]
            spread(entries, series, bundle.rate * bundle.n_active, since, now)


@inner_kernel
def end_due(run: Run, now: float, limit: float) -> int:
    """End the flows whose last byte is due; return how many.

    Reference: tests/reference/flow.py, run.
    """
    ends, bundles = run.ends, run.solver.bundles
    n_ended = 0
    while ends[0] > 0 and bundles[ends[1]].key <= limit:
        bundle = bundles[pop(ends, bundles)]
        since, served, rate = bundle.since_s, bundle.served, bundle.rate
        while bundle.root != NONE:
            number = np.uint32(bundle.root)
            finish = since + max(0.0, run.flows[number].target - served) / rate
            if finish > limit:
                break
            part(run, number, now)
            end(run, number, finish, now)
            n_ended += 1
    return n_ended


@inner_kernel
def end(run: Run, number: int, finish: float, now: float) -> None:
    """Note a flow's last byte and let go the flows that waited for it alone.

    Reference: tests/reference/flow.py, start_time.
    """
    run.flows[number].status = FINISHED
    run.flows[number].finish_s = finish
    for at in range(run.first_successor[number], run.first_successor[number + 1]):
        successor = run.successor[at]
        flow = run.flows[successor]
        flow.waits_for -= 1
        if flow.waits_for == 0:
            flow.status = PENDING
            first_byte = max(now, flow.start_s) + flow.latency_s
            set_key(run.starts, run.flows, successor, first_byte)


@inner_kernel
def change_bundles(solver: Solver, changed: Indices, clock: Longs) -> None:
    """Tell the solver which bundles have more or fewer flows than before this instant.

    Reference: tests/reference/flow.py, run.
    """
    solver.tally[N_TOUCHED] = 0
    for at in range(clock[N_CHANGED]):
        number = changed[at]
        bundle = solver.bundles[number]
        if bundle.n_active == bundle.n_before:
            continue
        weight = bundle.n_active * bundle.flow_weight
        if bundle.cap_channel >= 0:
            solver.channels[bundle.cap_channel].capacity = bundle.n_active * bundle.flow_cap
        if bundle.n_active == 0:
            leave(solver, number)
        elif bundle.n_before == 0:
            join(solver, number, weight)
        else:
            reweigh(solver, number, weight)


@inner_kernel
def renew_ends(run: Run, now: float) -> None:
    """Give every bundle whose flows or rate changed its new rate and next end.

    Reference: tests/reference/flow.py, next_instant.
    """
    touched, bundles, ends = run.solver.touched, run.solver.bundles, run.ends
    n_changed, n_touched = run.clock[N_CHANGED], run.solver.tally[N_TOUCHED]
    run.clock[N_ADJUSTED] += n_touched
    run.clock[N_CHANGED] = 0
    in_bulk = n_changed + n_touched > max(64, ends[0] // 8)
    for at in range(n_touched):
        number = touched[at]
        bundle = bundles[number]
        if bundle.is_changed == 0 and bundle.rate != bundle.level * bundle.flow_weight:
            catch_up(bundle, run.solver, run.series, now)
            renew_end(run, number, now, in_bulk)
    for at in range(n_changed):
        number = run.changed[at]
        bundles[number].is_changed = 0
        renew_end(run, number, now, in_bulk)
    if in_bulk:
        rebuild(ends, bundles)


@inner_kernel
def renew_end(run: Run, number: int, now: float, in_bulk: bool) -> None:  # noqa: FBT001
    """Give a bundle brought up to `now` its new rate and next end; not yet in order if `in_bulk`.

    Reference: tests/reference/flow.py, next_instant.
    """
    bundles = run.solver.bundles
    bundle = bundles[number]
    bundle.rate = bundle.level * bundle.flow_weight
    if bundle.n_active == 0:
        bundle.served = 0.0
    if bundle.rate == 0.0:
        drop(run.ends, bundles, number)
        return
    left = max(0.0, run.flows[bundle.root].target - bundle.served)
    if in_bulk:
        set_key_later(run.ends, bundles, number, now + left / bundle.rate)
    else:
        set_key(run.ends, bundles, number, now + left / bundle.rate)


@inner_kernel
def close_books(run: Run, until_s: float) -> None:
    """Bring all bundles up to the end of the run; mark flows that cannot move as stalled.

    Reference: tests/reference/flow.py, run.
    """
    for number in range(run.flows.size):
        flow = run.flows[number]
        if flow.status != RUNNING:
            continue
        bundle = run.solver.bundles[flow.bundle]
        if bundle.rate == 0.0:
            flow.status = STALLED
        if until_s < np.inf:
            catch_up(bundle, run.solver, run.series, until_s)
