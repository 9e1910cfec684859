"""Settings of InfiniBand links: credits for each virtual lane, and the turns of lanes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Arbitration", "Credits", "Fecn"]


@dataclass(frozen=True)
class Credits:
    """Link-level flow control: a packet leaves only when its room at the far end is promised.

    The receiver tells for each virtual lane up to which block the sender may send (FCCL), in blocks
    of 64 B, modulo 4096, and never more than 2048 ahead of what has come.

    Parameters
    ----------
    buffer_bytes
        Receive buffer of each port and virtual lane [byte]; 0: what keeps the port's speed over its
        cable, see ``credit_buffer_for``.
    update_blocks
        A flow control packet is sent when the limit has grown by so many blocks of 64 B [1]. The
        smallest buffer must hold as many besides a full packet, or the sender could wait for ever.
    cut_through_bytes
        A switch forwards a packet when so many bytes have come [byte]; 0: when all have. A packet
        takes its whole room from then on. Where a port of the switch is faster than the one that
        the packet comes by, on links that a fault is planned for, and with tables of next hops, all
        of it comes first.

    Notes
    -----
    Source: InfiniBand Architecture Specification 1.2.1, volume 1, section 7.9. It asks for an
    update at least every 65,536 symbol times and leaves it open when it is sent before; that it
    comes after 64 blocks, that it names the limit of the moment it leaves, and that a switch
    decides after the first block is assumed. Credits lost with a broken packet come back at once
    here, on a real link with the next update; flow control packets are never spoilt.
    """

    buffer_bytes: int = 0
    update_blocks: int = 64
    cut_through_bytes: int = 0


@dataclass(frozen=True)
class Arbitration:
    """How virtual lanes of a port take turns: a table of high and one of low priority.

    Parameters
    ----------
    high_lanes, low_lanes
        Lane of each entry; a lane may have several.
    high_weights, low_weights
        What each entry may send in its turn, in blocks of 64 B [1], 0 to 255; 0 skips it. The last
        packet of a turn may go over.
    high_limit
        High priority may send so many times 4,096 B before a packet of low priority goes, if one
        may [1]; 0: one packet; 255: without end.

    Notes
    -----
    Source: InfiniBand Architecture Specification 1.2.1, volume 1, section 7.6.9, as OpenSM's
    ``qos-config.txt`` and the Mellanox OFED manual (QoS, "SL2VL Mapping and VL Arbitration")
    describe it. The default is the manual's advice for packets of 4 KiB, weights in multiples of 64
    (a full packet takes 65 blocks), for one lane.
    """

    high_lanes: tuple[int, ...] = ()
    high_weights: tuple[int, ...] = ()
    low_lanes: tuple[int, ...] = (0,)
    low_weights: tuple[int, ...] = (64,)
    high_limit: int = 0


@dataclass(frozen=True)
class Fecn:
    """When InfiniBand switches mark packets (FECN), at ports where congestion has its root.

    Parameters
    ----------
    threshold
        15 marks early, 1 late, 0 never: the depth of the queue behind a packet, in 16ths of the
        port's receive buffer, above which it may be marked, is 16 less this.
    marking_rate
        Packets that could be marked between two that are [1].
    packet_bytes
        Shorter packets are not marked [byte].

    Notes
    -----
    Source: InfiniBand Architecture Specification 1.2.1, annex A10, which leaves the depth of each
    threshold to the switch: linear, as here, is assumed. Defaults: NVIDIA's congestion control
    manager (MLNX_OFED manual 2.2, section 8.9.4). A lane without credits for another packet is a
    victim and marks nothing, as with a victim mask of 0.
    """

    threshold: int = 15
    marking_rate: int = 10
    packet_bytes: int = 512
