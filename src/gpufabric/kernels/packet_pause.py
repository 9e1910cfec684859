"""Pauses at the port that obeys them: until XON or for the time in the frame, and the watchdog.

A frame holds for its quanta of 512 bit times (IEEE 802.3, annex 31B); an input that still wants the
pause sends another one in time. The watchdog of a switch's port takes a class that was paused for
long without a break, with packets waiting, as a storm: until the pauses have stopped for a while it
no longer obeys them, and sends the class's packets or drops them.
"""

from __future__ import annotations

import numpy as np

from gpufabric.kernels.jit import kernel_part, seldom_part
from gpufabric.kernels.packet_events import (
    EXPIRE,
    KIND_BITS,
    NOW,
    PURGE,
    WATCH,
    kick,
    push_later,
)
from gpufabric.kernels.packet_port import (
    DROPS,
    NO_STORM,
    NONE,
    drop,
    send_xoff,
    take_waiting,
)
from gpufabric.kernels.packet_settings import obeys_pfc
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.packet_tape import note_hold, note_overruled
from gpufabric.kernels.packet_tape_structs import EXPIRED, FREED, HELD_BACK, OVERRULED

__all__ = ["expire", "hold", "purge", "refresh", "watch"]


@kernel_part
def hold(run: PacketRun, number: int, traffic: int, is_pause: int) -> None:
    """Pause one class at a port, or let it go on, as a PFC frame says.

    Reference: tests/reference/packet_pause.py, Pauses.hold.
    """
    if not obeys_pfc(run, number, traffic):
        return
    if run.rules[0].has_pauses and not heeds(run, number, traffic, is_pause):
        return
    is_paused = run.ports[number].paused >> traffic & 1
    if is_pause and not is_paused:
        stop(run, number, traffic)
    elif not is_pause and is_paused:
        resume(run, number, traffic, FREED)


@kernel_part
def stop(run: PacketRun, number: int, traffic: int) -> None:
    """Let one class of a port wait.

    Reference: tests/reference/packet_pause.py, Pauses.stop.
    """
    now, place = run.clock[NOW], number * (run.rules[0].n_classes + 1) + traffic
    run.ports[number].paused |= np.int64(1) << traffic
    held = run.held[place]
    held.since_ps = now
    held.n_pauses += 1
    note_hold(run, number, traffic, HELD_BACK)
    if run.rules[0].has_pauses:
        pause = run.pauses[place]
        if pause.is_guarded and not pause.is_watched:
            pause.is_watched = 1
            push_later(run, now + run.rules[0].detect_ps, place << KIND_BITS | WATCH)


@kernel_part
def resume(run: PacketRun, number: int, traffic: int, why: int) -> None:
    """Let one class of a port go on; `why` is FREED, EXPIRED or OVERRULED.

    Reference: tests/reference/packet_pause.py, Pauses.resume.
    """
    held = run.held[number * (run.rules[0].n_classes + 1) + traffic]
    run.ports[number].paused &= ~(np.int64(1) << traffic)
    held.held_ps += run.clock[NOW] - held.since_ps
    note_hold(run, number, traffic, why)
    kick(run, number)


@kernel_part
def heeds(run: PacketRun, number: int, traffic: int, is_pause: int) -> bool:
    """Note a PFC frame; tell whether the port obeys it, which it does not in a storm.

    Reference: tests/reference/packet_pause.py, Pauses.hold.
    """
    place = number * (run.rules[0].n_classes + 1) + traffic
    pause = run.pauses[place]
    pause.frame_ps = run.clock[NOW]
    pause.is_asked = is_pause
    if is_pause and pause.pause_ps > 0:
        pause.until_ps = pause.frame_ps + pause.pause_ps
        push_later(run, np.int64(pause.until_ps), place << KIND_BITS | EXPIRE)
    return pause.storm == NO_STORM


@seldom_part
def expire(run: PacketRun, place: int) -> None:
    """End a pause whose time is over, unless another frame has made it longer.

    Reference: tests/reference/packet_pause.py, Pauses.expire.
    """
    pause, n_queues = run.pauses[place], run.rules[0].n_classes + 1
    if pause.is_asked == 0 or pause.until_ps != run.clock[NOW]:
        return
    pause.is_asked = 0
    number, traffic = place // n_queues, place % n_queues
    if pause.storm == NO_STORM and run.ports[number].paused >> traffic & 1:
        pause.n_expired += 1
        resume(run, number, traffic, EXPIRED)


@seldom_part
def refresh(run: PacketRun, place: int) -> None:
    """Send XOFF again where an input still wants the pause.

    Reference: tests/reference/packet_pause.py, Pauses.refresh.
    """
    n_queues = run.rules[0].n_classes + 1
    if run.inputs[place].is_pausing and run.pauses[place].again_ps == run.clock[NOW]:
        send_xoff(run, place // n_queues, place % n_queues)


@seldom_part
def watch(run: PacketRun, place: int) -> None:
    """Let the watchdog look at a class of a port.

    Reference: tests/reference/packet_pause.py, Pauses.watch.
    """
    pause, n_queues = run.pauses[place], run.rules[0].n_classes + 1
    if pause.storm != NO_STORM:
        end_storm(run, place)
        return
    now, detect_ps = run.clock[NOW], run.rules[0].detect_ps
    if not run.ports[place // n_queues].paused >> place % n_queues & 1:
        pause.is_watched = 0
        return
    due_ps = np.int64(run.held[place].since_ps) + detect_ps
    if due_ps <= now and run.queues[place].first == NONE:
        due_ps = now + detect_ps
    if due_ps > now:
        push_later(run, due_ps, place << KIND_BITS | WATCH)
    else:
        begin_storm(run, place)


@kernel_part
def begin_storm(run: PacketRun, place: int) -> None:
    """No longer obey pauses: let the class go on, or drop what waits, a packet an event.

    Reference: tests/reference/packet_pause.py, Pauses.watch.
    """
    pause, rules, now = run.pauses[place], run.rules[0], run.clock[NOW]
    number, traffic = place // (rules.n_classes + 1), place % (rules.n_classes + 1)
    pause.storm = rules.storm
    pause.storm_since_ps = now
    pause.n_storms += 1
    if rules.storm == DROPS:
        push_later(run, now, place << KIND_BITS | PURGE)
        note_overruled(run, number, traffic)
    else:
        resume(run, number, traffic, OVERRULED)
    push_later(run, now + rules.restore_ps, place << KIND_BITS | WATCH)


@kernel_part
def end_storm(run: PacketRun, place: int) -> None:
    """Obey pauses again if there was none for long enough; else look again later.

    Reference: tests/reference/packet_pause.py, Pauses.watch.
    """
    pause, rules, now = run.pauses[place], run.rules[0], run.clock[NOW]
    last_ps = now if pause.is_asked else np.int64(pause.frame_ps)
    if last_ps + rules.restore_ps > now:
        push_later(run, last_ps + rules.restore_ps, place << KIND_BITS | WATCH)
        return
    pause.storm = NO_STORM
    pause.storm_ps += now - pause.storm_since_ps
    pause.is_watched = 0
    number, traffic = place // (rules.n_classes + 1), place % (rules.n_classes + 1)
    if run.ports[number].paused >> traffic & 1:
        resume(run, number, traffic, FREED)


@seldom_part
def purge(run: PacketRun, place: int) -> None:
    """Drop the first packet that waits in a class whose watchdog drops, and come back.

    Reference: tests/reference/packet_pause.py, Pauses.purge.
    """
    n_queues = run.rules[0].n_classes + 1
    if run.pauses[place].storm != DROPS or run.queues[place].first == NONE:
        return
    run.pauses[place].n_dropped += 1
    drop(run, take_waiting(run, place // n_queues, place % n_queues))
    push_later(run, np.int64(run.clock[NOW]), place << KIND_BITS | PURGE)
