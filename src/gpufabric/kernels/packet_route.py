"""Routing packet by packet: which channel of a group of equals a switch sends a packet to.

A group is a set of channels that lead on to one destination equally well. ECMP takes one by a hash
of the flow, spraying by turns or by chance, adaptive routing the one where least waits; flowlets
keep theirs until a flow has paused. The switch that a destination hangs on sends to it directly.
"""

from __future__ import annotations

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import FREE_BY, NOW
from gpufabric.kernels.packet_random import SPRAY_RANDOM, hash_of, random_of
from gpufabric.kernels.packet_structs import PacketRun

__all__ = ["ADAPTIVE", "ADAPTIVE_FLOWLET", "ECMP", "FLOWLET", "SPRAY", "TURN", "next_hop"]

ECMP, TURN, SPRAY, ADAPTIVE, FLOWLET, ADAPTIVE_FLOWLET = range(6)
DATA, NONE = 0, -1


@kernel_part
def next_hop(run: PacketRun, index: int, channel: int) -> int:
    """Choose the channel by which a packet leaves the switch that it has reached; -1 without any.

    Reference: tests/reference/packet_route.py, Hops.next_hop.
    """
    packet, hops = run.packets[index], run.hops
    is_back = comes_back(run, int(packet.hop))
    flow, switch = run.flows[packet.flow], int(run.ports[channel].head)
    from_end = flow.first_hop if is_back else flow.first_back
    end = run.ports[run.routes[from_end]]
    if end.head == switch:
        out = int(end.reverse)
    else:
        column = int(hops.column[end.head])
        group = int(hops.group[hops.table[0] + switch * run.rules[0].n_columns + column])
        if group == NONE:
            return NONE
        out = member(run, index, switch, group, is_back)
        if out == NONE:
            return NONE
    first = run.rules[0].first_channel_back if is_back else run.rules[0].first_channel
    packet.hop = first + out
    return out


@kernel_part
def comes_back(run: PacketRun, hop: int) -> int:
    """Tell whether a packet that is at this entry of ``routes`` is on its way back: 1.

    Reference: tests/reference/packet_route.py, Hops.next_hop.
    """
    rules = run.rules[0]
    if hop < rules.first_channel:
        return 1 if hop >= rules.first_back else 0
    return 1 if hop >= rules.first_channel_back else 0


@kernel_part
def member(run: PacketRun, index: int, switch: int, group: int, is_back: int) -> int:
    """Choose one of a group's channels that are not avoided; -1 if all are.

    Reference: tests/reference/packet_route.py, Hops.member.
    """
    packet, rules, hops = run.packets[index], run.rules[0], run.hops
    n = n_able(run, group)
    if n == 0:
        return NONE
    mode = ECMP
    if packet.kind == DATA and rules.routed >> int(packet.traffic) & 1:
        mode = rules.mode
    name = 2 * int(packet.flow) + is_back
    mixed = hash_of(hash_of(name, rules.hash_seed), int(hops.seed[switch]))
    if mode == ECMP:
        return able(run, group, mixed % n)
    if mode >= FLOWLET:
        slot = hops.flowlets[switch * rules.n_flowlets + mixed % rules.n_flowlets]
        now = run.clock[NOW]
        if slot.flow != name or now - slot.last_ps > rules.flowlet_ps or avoided(run, slot.channel):
            slot.flow = name
            slot.channel = fresh(run, group, n, int(packet.traffic))
        slot.last_ps = now
        return int(slot.channel)
    return fresh(run, group, n, int(packet.traffic))


@kernel_part
def fresh(run: PacketRun, group: int, n: int, traffic: int) -> int:
    """Choose a channel without regard to what the flow did before.

    Reference: tests/reference/packet_route.py, Hops.fresh.
    """
    mode, turn = run.rules[0].mode, run.hops.turn
    if mode in (SPRAY, FLOWLET):
        return able(run, group, int(random_of(run, SPRAY_RANDOM) * n))
    at = int(turn[group]) % n
    turn[group] = (at + 1) % n
    if mode == TURN:
        return able(run, group, at)
    best = able(run, group, at)
    least = waiting(run, best, traffic)
    for step in range(1, n):
        other = able(run, group, (at + step) % n)
        n_bytes = waiting(run, other, traffic)
        if n_bytes < least:
            best, least = other, n_bytes
    return best


@kernel_part
def waiting(run: PacketRun, number: int, traffic: int) -> int:
    """Bytes of a class that wait at a port, with the packet that it is sending [byte].

    Reference: tests/reference/packet_route.py, Hops.waiting.
    """
    n_bytes = int(run.queues[number * (run.rules[0].n_classes + 1) + traffic].n_bytes)
    if run.ports[number].free_ps > run.clock[FREE_BY]:
        n_bytes += run.ports[number].sending_bytes
    return n_bytes


@kernel_part
def avoided(run: PacketRun, channel: int) -> bool:
    """Tell whether a switch knows that a channel of its own is down.

    Reference: tests/reference/packet_route.py, Hops.able.
    """
    return run.rules[0].has_faults != 0 and run.faulty[channel].is_avoided != 0


@kernel_part
def n_able(run: PacketRun, group: int) -> int:
    """Count the channels of a group that are not avoided.

    Reference: tests/reference/packet_route.py, Hops.able.
    """
    first, end = int(run.hops.first[group]), int(run.hops.first[group + 1])
    if not run.rules[0].has_faults:
        return end - first
    n = 0
    for place in range(first, end):
        if not avoided(run, int(run.hops.channel[place])):
            n += 1
    return n


@kernel_part
def able(run: PacketRun, group: int, at: int) -> int:
    """Channel number `at` of a group's channels that are not avoided.

    Reference: tests/reference/packet_route.py, Hops.able.
    """
    place = int(run.hops.first[group])
    if not run.rules[0].has_faults:
        return int(run.hops.channel[place + at])
    while True:
        channel = int(run.hops.channel[place])
        if not avoided(run, channel):
            if at == 0:
                return channel
            at -= 1
        place += 1
