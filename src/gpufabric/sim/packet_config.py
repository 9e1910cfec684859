"""How hosts and switches of the packet engine behave: classes, buffers, ECN, DCQCN, transport."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufabric.sim.packet_control import Control, ControlKind, Dcqcn
from gpufabric.sim.packet_infiniband_config import Arbitration, Credits, Fecn
from gpufabric.sim.packet_routing_config import PacketRouting
from gpufabric.sim.packet_switch_config import (
    ClassKind,
    Ecn,
    PauseTime,
    PortOverride,
    SwitchBuffer,
    TrafficClass,
    Watchdog,
)

__all__ = [
    "ClassKind",
    "Control",
    "ControlKind",
    "Dcqcn",
    "Ecn",
    "Headers",
    "PacketConfig",
    "PacketRouting",
    "PauseTime",
    "PortOverride",
    "SwitchBuffer",
    "TrafficClass",
    "Transport",
    "Watchdog",
]


@dataclass(frozen=True)
class Headers:
    """Bytes of every packet beside its payload; RoCE v2 over IPv4 without VLAN tag.

    Parameters
    ----------
    data_bytes
        Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4 [byte].
    first_bytes
        RETH in the first packet of an RDMA WRITE [byte].
    response_bytes
        AETH in the first and last packet of the data of an RDMA READ [byte].
    request_bytes
        Whole frame of its request, with RETH 16 [byte].
    ack_bytes, cnp_bytes, pfc_bytes
        Whole frames: with AETH 4; with 16 reserved bytes; smallest Ethernet frame [byte].
    gap_bytes
        Preamble 8 and gap between packets 12: on the wire, not in buffers [byte].

    Notes
    -----
    Source: InfiniBand Architecture Specification 1.7, chapter 9 (BTH, RETH, AETH) and annexes A16,
    A17 (RoCE v2, CNP); IEEE 802.3, clauses 3 and 31B.
    """

    data_bytes: int = 62
    first_bytes: int = 16
    response_bytes: int = 4
    request_bytes: int = 78
    ack_bytes: int = 66
    cnp_bytes: int = 78
    pfc_bytes: int = 64
    gap_bytes: int = 20


@dataclass(frozen=True)
class Transport:
    """Queue pairs: a reliable connection with go-back-N or selective repeat.

    Parameters
    ----------
    mtu_bytes
        Payload of a full packet [byte].
    ack_every
        Packets in order for one ACK; the last of a message always has one.
    acks_duplicates
        The receiver acknowledges a packet that it had before.
    cnp_in_ack
        The ACK of a marked packet is the CNP; no CNP packets, no least time between them.
    window_bytes
        Most payload on its way [byte]; 0: no limit.
    window_follows_rate
        The window shrinks with the rate.
    timeout_us
        Retry time-out [us]; 0: none. A flow without progress for this long, looked at once in
        this time, sends again: after one to two times this long (the InfiniBand specification
        allows one to four). Default: 4.096 us * 2**14.
    most_apart_packets
        Selective repeat: most packets from the first that is missing to the last one sent; the
        receiver keeps those after a missing one, and only what is lost is sent again. 0: go-back-N.
    reorder_packets
        Selective repeat: a packet counts as lost when one more than so many behind it has come.
    retry_count
        Time-outs in a row before the queue pair fails.
    """

    mtu_bytes: int = 4096
    ack_every: int = 1
    acks_duplicates: bool = True
    cnp_in_ack: bool = False
    window_bytes: int = 0
    window_follows_rate: bool = False
    timeout_us: float = 67_108.864
    retry_count: int = 7
    most_apart_packets: int = 0
    reorder_packets: int = 0


def _classes() -> tuple[TrafficClass, ...]:
    return (
        TrafficClass(ClassKind.LOSSLESS, is_marked=True),
        TrafficClass(ClassKind.LOSSY, is_strict=True),
    )


@dataclass(frozen=True)
class PacketConfig:
    """Everything about hosts and switches that is not in the fabric; the default is RoCE v2.

    Parameters
    ----------
    classes
        Traffic classes, at most 8; by default data and ACKs lossless, CNPs strict.
    data_class, ack_class, cnp_class
        Class of each kind of packet; data may have others, see ``PacketProblem.traffic_class``.
        An `ack_class` of -1 is that of the data it answers.
    quantum_bytes
        With weights: bytes that a class may send at its turn for each unit of its weight [byte].
        What a packet takes beyond is missing at the next turn.
    overrides
        What single switches, ports and classes do differently, each over those before it.
    headers, buffer, ecn, dcqcn, transport
        The parts; without ECN where None, without rate control where None.
    credits
        InfiniBand's flow control, for classes that are all ``CREDITED``; RoCE where None.
    controls
        Congestion control of each flow class (``PacketProblem.control``), in place of `dcqcn` and
        of the window of `transport`, which hold for all flows where there are none.
    arbitration
        Turns of InfiniBand's lanes, in place of ``is_strict`` and a packet each.
    routing
        How switches choose among equal paths, where the problem has tables of next hops.
    fecn
        InfiniBand's marks, in place of `ecn`; none where None.
    pause_time, watchdog
        How long PFC pauses hold; no watchdog where None.
    forwarding_ns
        From a packet's last bit at a switch to its place in the buffer [ns]: store and forward.
    pause_reaction_ns
        From the last bit of a PFC frame or flow control packet to its effect [ns].
    tick_ps
        Serialisation and pacing times are cut to whole ticks [ps].
    seed
        Of the ECN marks.
    draws
        Random numbers from 0 to below 1 for the ECN marks, over and over, in place of those that
        come from `seed`: to compare with another simulator.
    """

    classes: tuple[TrafficClass, ...] = field(default_factory=_classes)
    data_class: int = 0
    ack_class: int = 0
    cnp_class: int = 1
    quantum_bytes: int = 1_600
    overrides: tuple[PortOverride, ...] = ()
    headers: Headers = Headers()
    buffer: SwitchBuffer = field(default_factory=SwitchBuffer)
    ecn: Ecn | None = field(default_factory=Ecn)
    dcqcn: Dcqcn | None = None
    controls: tuple[Control, ...] = ()
    transport: Transport = Transport()
    credits: Credits | None = None
    arbitration: Arbitration | None = None
    routing: PacketRouting = field(default_factory=PacketRouting)
    fecn: Fecn | None = None
    pause_time: PauseTime = field(default_factory=PauseTime)
    watchdog: Watchdog | None = None
    forwarding_ns: float = 500.0
    pause_reaction_ns: float = 600.0
    tick_ps: int = 1
    seed: int = 1
    draws: tuple[float, ...] = ()

    @property
    def flow_controls(self) -> tuple[Control, ...]:
        """`controls`, or the one control that all flows have without them."""
        if self.controls:
            return self.controls
        return (
            Control(
                ControlKind.NONE if self.dcqcn is None else ControlKind.DCQCN,
                window_bytes=self.transport.window_bytes,
                window_follows_rate=self.transport.window_follows_rate,
                dcqcn=self.dcqcn or Dcqcn(),
            ),
        )
