"""What the events after the next one will touch, fetched into the cache while there is time.

Lanes tell the future: the events that stand behind the first one will happen soon. The event of one
very far behind is fetched, nearer to its turn its packet or port, and then what that points to.
No value changes, so there is no reference.
"""

from __future__ import annotations

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import ARRIVE, KIND_BITS, KIND_MASK, SENT
from gpufabric.kernels.packet_port import DATA
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.prefetch import prefetch, prefetch_part

__all__ = ["look_ahead"]

NEXT, FAR, MIDDLE, NEAR = 24, 12, 8, 4  # events of a lane
RECEIVER = 128  # the part of a queue pair that a receiver touches begins here [byte]


@kernel_part
def look_ahead(run: PacketRun, lane: int) -> None:
    """Fetch what later events of the lane that is served now will touch.

    Reference: tests/reference/packet.py, Engine.run.
    """
    ring = run.lanes[lane]
    first, offset, mask = ring.first, ring.offset, ring.mask
    if first + FAR >= ring.end:
        return
    prefetch(run.events, 2 * (offset + (first + NEXT & mask)))
    far = run.events[2 * (offset + (first + FAR & mask)) + 1]
    middle = run.events[2 * (offset + (first + MIDDLE & mask)) + 1]
    near = run.events[2 * (offset + (first + NEAR & mask)) + 1]
    kind, number = far & KIND_MASK, far >> KIND_BITS
    if kind == ARRIVE:
        prefetch(run.packets, number)
        look_at_packet(run, middle >> KIND_BITS)
        look_at_ways(run, near >> KIND_BITS)
    elif kind == SENT or far < 0:  # asleep, as only these are
        if far >= 0:
            prefetch(run.ports, number)
            prefetch(run.queues, number * (run.rules[0].n_classes + 1))
        if middle >= 0:
            look_at_port(run, middle >> KIND_BITS)
        if near >= 0:
            look_at_first(run, near >> KIND_BITS)


@kernel_part
def look_at_packet(run: PacketRun, index: int) -> None:
    """Fetch the account that an arriving packet will be charged to, and its way.

    Reference: tests/reference/packet.py, Engine.run.
    """
    packet = run.packets[index]
    prefetch(run.inputs, packet.channel * (run.rules[0].n_classes + 1) + packet.traffic)
    prefetch(run.routes, packet.hop + 1)


@kernel_part
def look_at_ways(run: PacketRun, index: int) -> None:
    """Fetch the port and queue that an arriving packet will wait at, or its flow.

    Reference: tests/reference/packet.py, Engine.run.
    """
    packet, n_queues = run.packets[index], run.rules[0].n_classes + 1
    if packet.hop < 0:
        return
    if run.inputs[packet.channel * n_queues + packet.traffic].switch < 0:
        prefetch_part(run.flows, packet.flow, RECEIVER if packet.kind == DATA else 0)
        return
    out = run.routes[packet.hop + 1]
    prefetch(run.ports, out)
    prefetch(run.queues, out * n_queues + packet.traffic)


@kernel_part
def look_at_port(run: PacketRun, number: int) -> None:
    """Fetch the packet that waits first at a port that will be free.

    Reference: tests/reference/packet.py, Engine.run.
    """
    prefetch(run.packets, run.queues[number * (run.rules[0].n_classes + 1)].first)


@kernel_part
def look_at_first(run: PacketRun, number: int) -> None:
    """Fetch the account of the packet that waits first at a port that will be free.

    Reference: tests/reference/packet.py, Engine.run.
    """
    n_queues = run.rules[0].n_classes + 1
    index = run.queues[number * n_queues].first
    if index >= 0:
        packet = run.packets[index]
        prefetch(run.inputs, packet.channel * n_queues + packet.traffic)
