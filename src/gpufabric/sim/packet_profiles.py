"""Named settings of the packet engine: what NICs and switches do, and what other simulators do.

The second kind is for comparison alone. It takes over the short-cuts of the simulator it is named
for, and its numbers say nothing about hardware.
"""

from __future__ import annotations

from dataclasses import replace

from gpufabric.sim.packet_config import (
    ClassKind,
    Control,
    ControlKind,
    Dcqcn,
    Ecn,
    Headers,
    PacketConfig,
    SwitchBuffer,
    TrafficClass,
    Transport,
)
from gpufabric.sim.packet_control import Hpcc
from gpufabric.sim.packet_infiniband_config import Arbitration, Credits, Fecn

__all__ = [
    "INFINIBAND_HEADERS",
    "NS3_DCQCN",
    "NS3_DCQCN_PAPER",
    "infiniband",
    "like_htsim",
    "like_ns3",
    "like_ns3_hpcc",
    "roce",
    "roce_tuned",
]

NS3_DCQCN = Dcqcn(
    dce_tcp_g=0.00390625,
    dce_tcp_rtt_us=1.0,
    rate_reduce_monitor_period_us=4.0,
    rpg_time_reset_us=300.0,
    rpg_byte_reset=0,
    rpg_threshold=1,
    rpg_min_rate_gbps=1.0,
    rpg_ai_rate_gbps=0.02,
    rpg_hai_rate_gbps=0.2,
    rpg_min_dec_fac=0.0,
    min_time_between_cnps_us=0.0,
    shortens_waits=False,
    first_check_later_ns=1.0,
)
"""DCQCN as the run scripts of the ns-3 model set it at 100 Gb/s."""

NS3_DCQCN_PAPER = replace(
    NS3_DCQCN,
    dce_tcp_rtt_us=50.0,
    rate_reduce_monitor_period_us=50.0,
    rpg_time_reset_us=55.0,
)
"""The same with the timers of the DCQCN paper."""

INFINIBAND_HEADERS = Headers(
    data_bytes=26, first_bytes=16, ack_bytes=30, cnp_bytes=42, pfc_bytes=6, gap_bytes=2
)
"""LRH 8, BTH 12, ICRC 4, VCRC 2; RETH 16; AETH 4; CNP payload 16; a flow control packet; one symbol
each to begin and end a packet. A routed packet has a GRH of 40 bytes more.

Source: InfiniBand Architecture Specification 1.2.1, volume 1, sections 5.2, 7.7 to 7.9 and 9.2, and
volume 2, section 5.3. That links coded 64b/66b take no more than two bytes to frame a packet is
assumed.
"""


def infiniband(
    n_lanes: int = 1, *, is_routed: bool = False, with_control: bool = False
) -> PacketConfig:
    """Return an InfiniBand subnet: credits for each virtual lane, and no drops.

    Parameters
    ----------
    n_lanes
        Virtual lanes, each a traffic class; they take turns, a full packet each.
    is_routed
        Packets carry a GRH, as between subnets.
    with_control
        Switches mark (FECN) and senders wait by their table (CCT); off in most subnets.

    Notes
    -----
    Forwarding takes 190 ns, between the 130 and the 330 ns that resellers of Quantum-2 switches
    name (2025; sources in the catalogue at qm9700). That credits take effect at once is assumed.
    """
    headers, grh = INFINIBAND_HEADERS, 40 if is_routed else 0
    return PacketConfig(
        classes=tuple(TrafficClass(ClassKind.CREDITED) for _ in range(n_lanes)),
        ack_class=0,
        cnp_class=0,
        headers=replace(
            headers,
            data_bytes=headers.data_bytes + grh,
            ack_bytes=headers.ack_bytes + grh,
            cnp_bytes=headers.cnp_bytes + grh,
        ),
        ecn=None,
        credits=Credits(cut_through_bytes=64),
        fecn=Fecn() if with_control else None,
        controls=(Control(ControlKind.CCT),) if with_control else (),
        transport=Transport(cnp_in_ack=with_control),
        arbitration=Arbitration(low_lanes=tuple(range(n_lanes)), low_weights=(64,) * n_lanes),
        forwarding_ns=190.0,
        pause_reaction_ns=0.0,
    )


def roce(*, with_dcqcn: bool = True) -> PacketConfig:
    """Return RoCE v2 with PFC, ECN and, unless told otherwise, DCQCN, all at their defaults."""
    return PacketConfig(dcqcn=Dcqcn() if with_dcqcn else None)


def roce_tuned() -> PacketConfig:
    """Return RoCE v2 with thresholds and alpha that ``tune ecn`` finds for training traffic.

    Notes
    -----
    Kmin 1,600 kB, Kmax 6,400 kB and Pmax 0.01 at 100 Gb/s, alpha 1. Found in November 2026 on two
    tiers of 64 GPUs at 400 Gb/s, hotspot of 4, 8 and 16 MB: at the defaults switches mark so early
    that DCQCN, which begins with a cut to the half and needs 300 us for each raise, leaves links
    idle; with alpha 1/8 they pause hosts whose packets the buffer could hold.
    """
    config = roce()
    return replace(
        config,
        ecn=Ecn(kmin_bytes=1_600_000.0, kmax_bytes=6_400_000.0, pmax=0.01),
        buffer=replace(config.buffer, alpha_log2=0),
    )


def like_ns3(
    payload_bytes: int = 4096,
    buffer_mib: int = 32,
    dcqcn: Dcqcn | None = None,
    *,
    has_window: bool = False,
) -> PacketConfig:
    """Return settings with the semantics of the public ns-3 RDMA model (2019), for comparison.

    Times cut to 1 ns, 52 B of headers, ACKs that no buffer holds and no pause stops, CNPs in the
    ACKs of marked packets, no retry time-out, headroom of three link delays, a free forwarding.
    It holds for links of 100 Gb/s and 1 us.

    Parameters
    ----------
    payload_bytes
        Payload of a full packet [byte].
    buffer_mib
        Buffer of a switch [MiB].
    dcqcn
        ``NS3_DCQCN`` or ``NS3_DCQCN_PAPER``; without rate control and ECN where None.
    has_window
        No more than a round trip's bytes on their way, less as the rate falls, and ACKs in the
        class of the data: its run script's ``dcqcn_vwin``. It holds for two links.
    """
    window_bytes = int(_ns3_trip_ns(payload_bytes) * 100 / 8) if has_window else 0
    return PacketConfig(
        classes=(
            TrafficClass(ClassKind.LOSSLESS, is_marked=True),
            TrafficClass(ClassKind.UNCOUNTED, is_strict=True),
        ),
        ack_class=0 if has_window else 1,
        cnp_class=1,
        headers=Headers(
            data_bytes=52, first_bytes=0, ack_bytes=60, cnp_bytes=60, pfc_bytes=43, gap_bytes=0
        ),
        buffer=SwitchBuffer(
            total_bytes=buffer_mib * 2**20,
            reserve_bytes=4096,
            headroom_bytes=37_500,
            alpha_log2=-3,
            xon_offset_bytes=3072,
        ),
        ecn=None if dcqcn is None else Ecn(400_000, 1_600_000, 0.2),
        dcqcn=dcqcn,
        transport=Transport(
            mtu_bytes=payload_bytes,
            acks_duplicates=False,
            cnp_in_ack=True,
            window_bytes=window_bytes,
            window_follows_rate=has_window,
            timeout_us=0.0,
        ),
        forwarding_ns=0.0,
        pause_reaction_ns=0.0,
        tick_ps=1000,
    )


def like_ns3_hpcc(payload_bytes: int = 4096, buffer_mib: int = 32) -> PacketConfig:
    """Return settings with the semantics of the same model's HPCC, for comparison.

    42 B of record in data packets and 32 B in ACKs, which have the class of the data; counts in
    units of 512 and 320 B; a round trip of four link delays and two payloads; no additive stages.
    It holds for two links of 100 Gb/s and 1 us.

    Parameters
    ----------
    payload_bytes
        Payload of a full packet [byte].
    buffer_mib
        Buffer of a switch [MiB].
    """
    hpcc = Hpcc(
        base_rtt_us=_ns3_trip_ns(payload_bytes) / 1000,
        most_stages=0,
        min_rate_gbps=1.0,
        byte_unit=512,
        queue_unit=320,
        ack_bytes=32,
    )
    config = like_ns3(payload_bytes, buffer_mib)
    return replace(config, ack_class=0, controls=(Control(ControlKind.HPCC, hpcc=hpcc),))


def _ns3_trip_ns(payload_bytes: int) -> int:
    """Return what the model takes for the round trip over two links of 100 Gb/s and 1 us [ns]."""
    return 4 * 1000 + 2 * (payload_bytes * 8 // 100)


def like_htsim(payload_bytes: int = 4096) -> PacketConfig:
    """Return settings with the semantics of csg-htsim's RoCE (2023), for comparison.

    64 B of headers, ACKs in the queue of the data, XOFF above 15 payloads of an input and XON
    below 12, pauses that take no time to send, headroom without end, no rate control. That
    simulator gives buffer back when a packet has left, this engine when it begins to leave; and it
    sends whole packets only, so sizes must be multiples of the payload.

    Parameters
    ----------
    payload_bytes
        Payload of every packet [byte].
    """
    xoff_bytes = 15 * payload_bytes + 1
    return PacketConfig(
        classes=(TrafficClass(ClassKind.LOSSLESS),),
        ack_class=0,
        cnp_class=0,
        headers=Headers(
            data_bytes=64, first_bytes=0, ack_bytes=64, cnp_bytes=64, pfc_bytes=1, gap_bytes=0
        ),
        buffer=SwitchBuffer(
            total_bytes=1_000_000_000,
            reserve_bytes=0,
            headroom_bytes=2000 * (payload_bytes + 64),
            xoff_bytes=xoff_bytes,
            xon_offset_bytes=xoff_bytes - (12 * payload_bytes - 1),
        ),
        ecn=None,
        transport=Transport(mtu_bytes=payload_bytes, timeout_us=0.0),
        forwarding_ns=0.0,
        pause_reaction_ns=0.0,
    )
