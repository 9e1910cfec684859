"""Records of congestion control: each flow class, each flow, and what packets carry for it."""

from __future__ import annotations

import numpy as np

__all__ = [
    "CCT",
    "CONTROL",
    "DCQCN",
    "GRANTER",
    "HPCC",
    "NOTE",
    "PACING",
    "RCCC",
    "STAMP",
    "SWIFT",
    "WINDOW",
]

WINDOW, DCQCN, HPCC, SWIFT, RCCC = range(5)  # kinds of control
CCT = -1  # InfiniBand's, which needs none of the records below

CONTROL = np.dtype(
    [
        ("kind", np.int64),  # WINDOW, DCQCN, HPCC, SWIFT, RCCC, CCT
        ("window_follows_rate", np.int64),  # 1
        ("sends_cnps", np.int64),  # 1: the receiver answers marks
        ("cnp_gap_ps", np.int64),  # between two CNPs of one flow [ps]
        ("alpha_ps", np.int64),  # DCQCN: between renewals of alpha; CCT: timer [ps]
        ("decrease_ps", np.int64),  # DCQCN: between checks of the rate [ps]
        ("check_later_ps", np.int64),  # DCQCN: the first check is this much later [ps]
        ("increase_ps", np.int64),  # DCQCN: between increases [ps]
        ("byte_reset", np.int64),  # DCQCN: bytes between increases, 0: none [byte]
        ("threshold", np.int64),  # DCQCN: increases of fast recovery
        ("clamps_target", np.int64),  # DCQCN: 1: each decrease sets the target
        ("shortens_waits", np.int64),  # DCQCN: 1: a raise shortens the wait for the next packet
        ("g", np.float64),  # DCQCN
        ("initial_alpha", np.float64),  # DCQCN
        ("ai_gbps", np.float64),  # additive increase [Gb/s], with SWIFT [packet]
        ("hai_gbps", np.float64),  # DCQCN: hyper increase [Gb/s]
        ("min_gbps", np.float64),  # smallest rate [Gb/s]
        ("min_factor", np.float64),  # DCQCN: least part that a decrease leaves
        ("first_gbps", np.float64),  # DCQCN: rate after the first CNP, 0: as it is [Gb/s]
        ("lane_alpha", np.int64),  # DCQCN; -1: no lane
        ("lane_decrease", np.int64),
        ("lane_increase", np.int64),
        ("cct_increase", np.int64),  # CCT: entries for a BECN
        ("cct_min", np.int64),  # CCT: first entry
        ("cct_limit", np.int64),  # CCT: last entry
        ("target", np.float64),  # HPCC: share of a link to fill; SWIFT: delay in base round trips
        ("most_stages", np.int64),  # HPCC: additive steps before a jump
        ("reacts_fast", np.int64),  # HPCC: 1: every ACK moves the rate
        ("byte_unit", np.int64),  # HPCC: what switches count in [byte]
        ("queue_unit", np.int64),
        ("hop_ps", np.int64),  # SWIFT: more delay for each switch [ps]
        ("scale_ps", np.float64),  # SWIFT: more delay for a window of one packet, before [ps]
        ("scale_less_ps", np.float64),  # this is taken off [ps]
        ("scale_most_ps", np.float64),  # SWIFT: most more delay for small windows [ps]
        ("beta", np.float64),  # SWIFT: weight of the excess in a cut
        ("most_cut", np.float64),  # SWIFT: largest part that one cut takes
        ("least_window", np.float64),  # SWIFT: smallest window [packet]
        ("credit_packets", np.int64),  # RCCC: granted at once [packet]
    ],
    align=True,
)

PACING = np.dtype(
    [
        ("base_rtt_ps", np.int64),  # round trip without queues; RCCC: grants are so early [ps]
        ("wire_bytes", np.int64),  # of the last packet sent [byte]
        ("renewal", np.int32),  # HPCC: the ACK of this packet ends the round trip; 0: none came
        ("stage", np.int32),  # HPCC: additive steps since the last jump
        ("n_stamps", np.int32),  # HPCC, SWIFT: switches on the path
        ("initial", np.int32),  # RCCC: packets that an idle queue pair may send without a grant
        ("credit", np.int32),  # RCCC: sender: packets that may be sent
        ("granted", np.int32),  # RCCC: receiver: packets that may be sent
        ("demand", np.int32),  # RCCC: receiver: packets that there are to send, as far as known
        ("following", np.int32),  # RCCC: next flow that waits for credit, -1 for the last
        ("cut_ps", np.int64),  # SWIFT: last cut [ps]
        ("wait_ps", np.int64),  # SWIFT: from one packet to the next, 0: none; RCCC: a credit's [ps]
        ("base_gbps", np.float64),  # HPCC: rate at the last full renewal; SWIFT: most [packet]
        ("load", np.float64),  # HPCC: average use of the busiest link [1]; SWIFT: window [packet]
    ],
    align=True,
)

NOTE = np.dtype(
    [
        ("n_stamps", np.int32),  # HPCC: switches that have written; -1: none is to write
        ("sent_ps", np.int64),  # SWIFT: the data packet was made [ps]
        ("sacked", np.int32),  # NAK with selective repeat: the packet that has come
        ("credit", np.int32),  # RCCC: data: packets there are to send; ACK, NAK: granted
    ],
    align=True,
)

STAMP = np.dtype(
    [
        ("time_ps", np.int64),  # the packet began to leave [ps]
        ("n_bytes", np.int64),  # that the port had sent before [byte]
        ("queued", np.int64),  # behind it in the queue [byte]
        ("gbps", np.float64),  # speed of the port [Gb/s]
    ],
    align=True,
)

# Who hands out the credits of one receiving NIC port.
GRANTER = np.dtype(
    [
        ("booked_ps", np.int64),  # its link is taken until then by what was granted [ps]
        ("next_ps", np.int64),  # earliest next grant: they come no faster than the link takes [ps]
        ("first", np.int32),  # flow that is granted next, -1 without
        ("last", np.int32),
        ("is_planned", np.int64),  # 1: a GRANT event is under way
    ],
    align=True,
)
