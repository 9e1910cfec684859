"""What the events after the next one will touch, fetched into the cache while there is time.

Lanes tell the future: the events that stand behind the first one will happen soon. The packet or
port of one far behind is fetched first; nearer to its turn, what that packet or port points to.
No value changes, so there is no reference.
"""

from __future__ import annotations

from gpufabric.kernels.jit import kernel_part
from gpufabric.kernels.packet_events import ARRIVE, KIND_BITS, KIND_MASK, SENT
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.prefetch import prefetch

__all__ = ["look_ahead"]

FAR, NEAR = 10, 4  # events of a lane


@kernel_part
def look_ahead(run: PacketRun, lane: int) -> None:
    """Fetch what later events of the lane that is served now will touch.

    Reference: tests/reference/packet.py, Engine.run.
    """
    ring = run.lanes[lane]
    if ring.first + FAR < ring.end:
        far = run.events[2 * (ring.offset + (ring.first + FAR & ring.mask)) + 1]
        near = run.events[2 * (ring.offset + (ring.first + NEAR & ring.mask)) + 1]
        kind, number = far & KIND_MASK, far >> KIND_BITS
        if kind == ARRIVE:
            prefetch(run.packets, number)
            look_at_packet(run, near >> KIND_BITS)
        elif kind == SENT:  # one that is asleep has another kind
            prefetch(run.ports, number)
            prefetch(run.queues, number * (run.rules[0].n_classes + 1))
            if near >= 0:
                look_at_port(run, near >> KIND_BITS)


@kernel_part
def look_at_packet(run: PacketRun, index: int) -> None:
    """Fetch the ports and accounts that an arriving packet will touch.

    Reference: tests/reference/packet.py, Engine.run.
    """
    packet, n_queues = run.packets[index], run.rules[0].n_classes + 1
    if packet.hop < 0:
        return
    channel = run.routes[packet.hop]
    prefetch(run.ports, channel)
    if run.ports[channel].head < 0:
        prefetch(run.flows, packet.flow)
        return
    out = run.routes[packet.hop + 1]
    prefetch(run.ports, out)
    prefetch(run.inputs, channel * n_queues + packet.traffic)
    prefetch(run.queues, out * n_queues + packet.traffic)


@kernel_part
def look_at_port(run: PacketRun, number: int) -> None:
    """Fetch the packet that waits first at a port that will be free.

    Reference: tests/reference/packet.py, Engine.run.
    """
    prefetch(run.packets, run.queues[number * (run.rules[0].n_classes + 1)].first)
