"""What goes wrong in a packet run, and when: links, packets lost to bit errors, NICs, MTU.

Each fault names a channel and holds from `start_us` until `end_us`. docs/models/packet.md says what
happens then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = [
    "BitErrors",
    "LinkDown",
    "LinkFlap",
    "PacketFault",
    "PauseStorm",
    "SlowHost",
    "SlowLink",
    "SmallMtu",
]


@dataclass(frozen=True)
class PauseStorm:
    """A NIC that sends XOFF for ever: the storm of a broken adapter.

    Parameters
    ----------
    channel
        From the NIC to its switch.
    start_us, end_us
        First XOFF, and the XON that ends it; never where infinite [us].
    traffic_class
        That it pauses.
    every_us
        Between two XOFF frames [us].

    Notes
    -----
    Source: C. Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016, section 4.3. The
    default is assumed, below the 335 us that the longest pause lasts at 100 Gb/s (IEEE 802.3, 31B).
    """

    channel: int
    start_us: float = 0.0
    end_us: float = math.inf
    traffic_class: int = 0
    every_us: float = 100.0


@dataclass(frozen=True)
class BitErrors:
    """A channel that spoils frames: a dirty fibre, a bad plug. A spoilt frame is dropped.

    Parameters
    ----------
    channel
        One direction of a link.
    start_us, end_us
        When [us].
    bit_error_rate
        After error correction; b bytes on the wire are lost with 1 - (1 - rate)^(8 b) [1].
    loss_per_packet
        Besides, the same for all frames [1].
    """

    channel: int
    start_us: float = 0.0
    end_us: float = math.inf
    bit_error_rate: float = 0.0
    loss_per_packet: float = 0.0


@dataclass(frozen=True)
class LinkDown:
    """A link that is down, both ways.

    Parameters
    ----------
    channel
        One of its two channels.
    start_us, end_us
        When it goes down and comes up again [us].
    detect_us
        Where packets are routed one by one: how long either switch takes to see it and to use the
        other channels of its groups, and likewise to use the link again [us]. Assumed, as for a
        loss of signal that software acts on.
    """

    channel: int
    start_us: float = 0.0
    end_us: float = math.inf
    detect_us: float = 1000.0


@dataclass(frozen=True)
class LinkFlap:
    """A link that goes down and comes up again and again, both ways.

    Parameters
    ----------
    channel
        One of its two channels.
    start_us, end_us
        First time down; up for good [us].
    down_us, up_us
        How long it is down, and up, each time [us].
    """

    channel: int
    start_us: float
    end_us: float
    down_us: float
    up_us: float


@dataclass(frozen=True)
class SlowLink:
    """A link that runs at another speed, both ways: lanes lost, or a speed negotiated down.

    Parameters
    ----------
    channel
        One of its two channels.
    gbps
        Speed meanwhile [Gb/s].
    start_us, end_us
        When [us].
    """

    channel: int
    gbps: float
    start_us: float = 0.0
    end_us: float = math.inf


@dataclass(frozen=True)
class SmallMtu:
    """A port that drops longer frames: its MTU is smaller than the senders'.

    Parameters
    ----------
    channel
        The direction that leads to the port.
    frame_bytes
        Longest frame that it takes, headers and FCS counted, without preamble and gap [byte].
    start_us, end_us
        When [us].
    """

    channel: int
    frame_bytes: int
    start_us: float = 0.0
    end_us: float = math.inf


@dataclass(frozen=True)
class SlowHost:
    """A NIC whose host takes data slower than the link brings it: the slow-receiver symptom.

    Data wait in the NIC's receive buffer; for lossless classes it sends XOFF above `xoff_bytes` and
    XON when the buffer is down to `xon_bytes`. What does not fit is dropped.

    Parameters
    ----------
    channel
        From the switch to the NIC.
    gbps
        At which the host takes frames [Gb/s].
    start_us, end_us
        When [us].
    buffer_bytes, xoff_bytes, xon_bytes
        Of the NIC [byte].

    Notes
    -----
    Source: C. Guo et al., SIGCOMM 2016, section 4.4. The buffer sizes are assumed.
    """

    channel: int
    gbps: float
    start_us: float = 0.0
    end_us: float = math.inf
    buffer_bytes: int = 2_000_000
    xoff_bytes: int = 500_000
    xon_bytes: int = 250_000


PacketFault = PauseStorm | BitErrors | LinkDown | LinkFlap | SlowLink | SmallMtu | SlowHost
