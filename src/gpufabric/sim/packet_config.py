"""How hosts and switches of the packet engine behave: classes, buffers, ECN, DCQCN, transport."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufabric.sim.packet_infiniband_config import Credits
from gpufabric.sim.packet_switch_config import (
    ClassKind,
    Ecn,
    PortOverride,
    SwitchBuffer,
    TrafficClass,
)

__all__ = [
    "ClassKind",
    "Dcqcn",
    "Ecn",
    "Headers",
    "PacketConfig",
    "PortOverride",
    "SwitchBuffer",
    "TrafficClass",
    "Transport",
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
    ack_bytes: int = 66
    cnp_bytes: int = 78
    pfc_bytes: int = 64
    gap_bytes: int = 20


@dataclass(frozen=True)
class Dcqcn:
    """DCQCN under the names of NVIDIA's adapters, in plain units.

    Parameters
    ----------
    dce_tcp_g
        Weight of a CNP in alpha [1]; the adapter's 1019 stands for 1 - 1019 / 1024.
    dce_tcp_rtt_us
        Between two renewals of alpha [us].
    initial_alpha_value
        Alpha at the first CNP [1].
    rate_reduce_monitor_period_us
        Between two checks whether to lower the rate [us].
    rate_to_set_on_first_cnp_gbps
        Rate after the first CNP; 0 leaves it [Gb/s].
    rpg_min_dec_fac
        Least part of the rate that one decrease leaves [1].
    rpg_min_rate_gbps
        Smallest rate [Gb/s].
    clamp_tgt_rate
        Every decrease makes the rate before it the target; otherwise only one after an increase.
    rpg_time_reset_us
        Between two increases by the timer [us].
    rpg_byte_reset
        Between two increases by the byte counter [byte]; 0: no byte counter.
    rpg_threshold
        Increases of fast recovery before the target rises [1].
    rpg_ai_rate_gbps, rpg_hai_rate_gbps
        Additive and hyper increase of the target [Gb/s].
    min_time_between_cnps_us
        Receiver: between two CNPs of one flow [us].
    shortens_waits
        A raise of the rate by the timer shortens the time until a paced flow's next packet, as a
        limiter does that fills at the rate of now; otherwise the time is fixed when a packet is
        sent, and at the smallest rate a flow stands still for long.
    first_check_later_ns
        The first check of the rate, and with it all others, comes this much later [ns].

    Notes
    -----
    The decrease is ``rate * (1 - alpha / 2)``: ``rpg_gd`` 11. Source of names and defaults: NVIDIA,
    "DCQCN Parameters" (Enterprise Support, 2018); 50 us between CNPs:
    Y. Zhu et al., SIGCOMM 2015, section 5.
    """

    dce_tcp_g: float = 5 / 1024
    dce_tcp_rtt_us: float = 1.0
    initial_alpha_value: float = 1.0
    rate_reduce_monitor_period_us: float = 4.0
    rate_to_set_on_first_cnp_gbps: float = 0.0
    rpg_min_dec_fac: float = 0.5
    rpg_min_rate_gbps: float = 0.001
    clamp_tgt_rate: bool = False
    rpg_time_reset_us: float = 300.0
    rpg_byte_reset: int = 32_767
    rpg_threshold: int = 1
    rpg_ai_rate_gbps: float = 0.005
    rpg_hai_rate_gbps: float = 0.05
    min_time_between_cnps_us: float = 50.0
    shortens_waits: bool = True
    first_check_later_ns: float = 0.0


@dataclass(frozen=True)
class Transport:
    """Queue pairs: a reliable connection with go-back-N.

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
    overrides
        What single switches, ports and classes do differently, each over those before it.
    headers, buffer, ecn, dcqcn, transport
        The parts; without ECN where None, without rate control where None.
    credits
        InfiniBand's flow control, for classes that are all ``CREDITED``; RoCE where None.
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
    overrides: tuple[PortOverride, ...] = ()
    headers: Headers = Headers()
    buffer: SwitchBuffer = field(default_factory=SwitchBuffer)
    ecn: Ecn | None = field(default_factory=Ecn)
    dcqcn: Dcqcn | None = None
    transport: Transport = Transport()
    credits: Credits | None = None
    forwarding_ns: float = 500.0
    pause_reaction_ns: float = 600.0
    tick_ps: int = 1
    seed: int = 1
    draws: tuple[float, ...] = ()
