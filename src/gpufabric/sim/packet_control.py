"""How a sender reacts to congestion: a window, DCQCN, HPCC, Swift or credit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Cct", "Control", "ControlKind", "Dcqcn", "Hpcc", "Rccc", "Swift"]


class ControlKind(Enum):
    """What sets the rate or window of a flow."""

    NONE = "none"
    """Line rate, within the window if there is one."""
    DCQCN = "dcqcn"
    """ECN marks come back as CNPs."""
    CCT = "cct"
    """InfiniBand's: FECN marks come back as BECNs, a table says how long to wait."""
    HPCC = "hpcc"
    """Switches write queue and bytes sent into every packet; ACKs bring it back."""
    SWIFT = "swift"
    """The delay of each packet, held against a target."""
    RCCC = "rccc"
    """The receiver grants credit, as fast as its link takes what is granted."""


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
class Hpcc:
    """HPCC: a window and rate from what switches write into packets (INT).

    Parameters
    ----------
    base_rtt_us
        Round trip without queues [us]; 0: that of a full packet and its ACK on the flow's path.
    target_utilization
        Share of a link that flows together are to fill [1].
    additive_gbps
        Added to the rate at every renewal [Gb/s].
    most_stages
        Additive steps below the target before the rate may jump there.
    min_rate_gbps
        Smallest rate [Gb/s].
    reacts_fast
        Every ACK moves the rate; otherwise only the first one of a round trip does.
    byte_unit, queue_unit
        What switches count bytes sent and queued bytes in [byte].
    data_bytes, ack_bytes
        What the record adds to every data packet and to its ACK [byte].

    Notes
    -----
    Source: Y. Li et al., HPCC, SIGCOMM 2019: algorithm 1; section 5.1 for 0.95 and five stages;
    section 4.1 for the record, 2 B and 8 B a switch, here with room for five. The additive step is
    assumed: the paper ties it to the number of flows, 40 Mb/s being what its programs use at
    100 Gb/s.
    """

    base_rtt_us: float = 0.0
    target_utilization: float = 0.95
    additive_gbps: float = 0.04
    most_stages: int = 5
    min_rate_gbps: float = 0.1
    reacts_fast: bool = True
    byte_unit: int = 1
    queue_unit: int = 1
    data_bytes: int = 42
    ack_bytes: int = 42


@dataclass(frozen=True)
class Cct:
    """InfiniBand's congestion control at the sender: a table of delays and an index into it.

    Parameters
    ----------
    delays
        Wait after each packet, in times that the packet takes [1]: the congestion control table.
    ccti_increase
        Entries that one BECN moves the flow on.
    ccti_min
        Entry that a flow begins at and comes back to.
    ccti_timer_us
        After this time the flow moves one entry back [us].

    Notes
    -----
    Source: InfiniBand Architecture Specification 1.2.1, annex A10; increase 1 and minimum 0 are
    defaults of NVIDIA's congestion control manager (MLNX_OFED manual 2.2, section 8.9.4), which
    computes table and timer from the number of hosts. Here they are assumed: 128 entries up to a
    32nd of the line rate, 1.024 us times 150. The timer runs for each flow, from its first BECN.
    """

    delays: tuple[float, ...] = tuple(0.25 * entry for entry in range(128))
    ccti_increase: int = 1
    ccti_min: int = 0
    ccti_timer_us: float = 153.6


@dataclass(frozen=True)
class Swift:
    """Swift: a window from the delay of each packet and its ACK.

    Parameters
    ----------
    target_trips
        Delay that the window grows up to, in round trips without queues [1].
    hop_us
        More of it for each switch on the path [us].
    scale_us
        More of it, at most, for small windows [us].
    scale_least_window, scale_most_window
        Windows at which that is all and nothing [packet].
    additive_packets
        Growth in a round trip [packet].
    beta
        Weight of the excess over the target in a cut [1].
    most_cut
        Largest part of the window that one cut takes; as much for a missing packet [1].
    least_window
        Smallest window; one below a packet is a wait between packets [packet].

    Notes
    -----
    Source of the algorithm: G. Kumar et al., Swift, SIGCOMM 2020, section 3; beta 0.8 and a cut of
    at most a half from there too. The paper's targets are for its own hosts and network; that of
    one and a half round trips, and the range for small windows, are assumed.
    """

    target_trips: float = 1.5
    hop_us: float = 0.0
    scale_us: float = 10.0
    scale_least_window: float = 0.1
    scale_most_window: float = 100.0
    additive_packets: float = 1.0
    beta: float = 0.8
    most_cut: float = 0.5
    least_window: float = 0.01


@dataclass(frozen=True)
class Rccc:
    """Receiver-credit congestion control in the manner of Ultra Ethernet's RCCC.

    Parameters
    ----------
    initial_credit_bytes
        Payload that a sender may send before any grant [byte]; 0: what the slower of the two ends'
        links takes in a round trip without queues.
    credit_bytes
        Payload granted at once to one sender [byte], in whole packets, at least one; those that
        want credit take turns.
    credit_rate
        Share of the receiver's link that its grants add up to [1].

    Notes
    -----
    Mechanism: Ultra Ethernet Specification 1.0, transport layer, congestion management, as its
    public descriptions tell it: the receiver grants, to all its senders together, what its link
    takes; a sender starts before its first grant. Names and numbers are assumed: a round trip of
    initial credit; 4 KiB and a rate just below the link's as open simulators of the protocol have
    it. What was sent before a grant counts as granted. Credit comes in ACKs and in packets of its
    own of the same size and class. A sender without any for a retry time-out sends one packet.
    """

    initial_credit_bytes: int = 0
    credit_bytes: int = 4096
    credit_rate: float = 0.99


@dataclass(frozen=True)
class Control:
    """Congestion control of one flow class.

    Parameters
    ----------
    kind
        Which of the controls below.
    window_bytes
        Most payload on its way [byte]; 0: no limit, for HPCC what a base round trip takes, for
        Swift twice that.
    window_follows_rate
        The window shrinks with the rate; with HPCC it always does.
    dcqcn, hpcc, swift, cct, rccc
        Parameters of the kind in question; the others are not looked at.
    """

    kind: ControlKind = ControlKind.NONE
    window_bytes: int = 0
    window_follows_rate: bool = False
    dcqcn: Dcqcn = Dcqcn()
    hpcc: Hpcc = Hpcc()
    swift: Swift = Swift()
    cct: Cct = Cct()
    rccc: Rccc = Rccc()

    @property
    def header_bytes(self) -> tuple[int, int]:
        """What data packets and ACKs carry for it [byte]."""
        if self.kind is ControlKind.HPCC:
            return self.hpcc.data_bytes, self.hpcc.ack_bytes
        return 0, 0
