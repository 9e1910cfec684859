"""Records and arrays of the packet engine; each field with type, shape and unit.

A *port* is the sending end of a channel, so ports and channels have the same numbers. A port has
one queue for each traffic class and a last one for PFC frames. An *input* is the buffer account of
one channel and class at the switch that the channel leads to. A *lane* is a ring of events that
leave in the order they came, because all were made with the same delay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.by_pointer import by_pointer
from gpufabric.kernels.packet_route_structs import Hops
from gpufabric.kernels.packet_tape_structs import Tape
from gpufabric.kernels.structs import Floats, Ints, Longs, Records

__all__ = [
    "ASIDE",
    "CREDIT",
    "FAULTY",
    "FAULT_ROW",
    "HELD",
    "INPUT",
    "LANE",
    "LATER",
    "LINK",
    "LOST_BY_ERROR",
    "LOST_BY_LINK",
    "LOST_BY_SIZE",
    "LOST_IN_HOST",
    "LOST_WITHOUT_WAY",
    "N_REASONS",
    "PACKET",
    "PACKET_COUNT",
    "PLAIN",
    "PLAIN_RULES",
    "PORT",
    "QUEUE",
    "QUEUE_PAIR",
    "RULES",
    "SERIAL",
    "SWITCH",
    "PacketRun",
]

LOST_BY_LINK, LOST_BY_ERROR, LOST_BY_SIZE, LOST_IN_HOST, LOST_WITHOUT_WAY, N_REASONS = range(6)

PACKET = np.dtype(
    [
        ("following", np.int32),  # next one in its queue, -1 for the last; of a free one: how far
        # the next free one is behind the place after it, so that zeros are a list of all
        ("flow", np.int32),  # -1: a PFC frame
        ("hop", np.int32),  # entry of `routes`: the channel that it is on or waits for
        ("channel", np.int32),  # channel that it is on, or came on while it waits; -1 before
        ("number", np.int32),  # of the packet in its message; ACK: next one expected; PFC: see port
        ("n_bytes", np.int32),  # what it takes of a buffer, 0: never used so far [byte]
        ("length", np.int16),  # its size class: column of `serial`
        ("kind", np.int8),  # DATA, ACK, NAK, CNP, PFC; -1: free
        ("traffic", np.int8),  # traffic class
        ("marked", np.int8),  # 1: ECN "congestion experienced", or the echo of it in an ACK
        ("is_repeat", np.int8),  # 1: sent before
        ("lane", np.int8),  # InfiniBand: virtual lane that it waits for or is on
        ("came_lane", np.int8),  # InfiniBand: lane that it came on
    ],
    align=True,
)

# One cache line: what every packet touches.
PORT = np.dtype(
    [
        ("free_ps", np.int64),  # free for the next packet from then on [ps]
        ("head", np.int32),  # switch at the far end, -1: a NIC
        ("queued", np.int16),  # bit c: queue c has packets
        ("ready", np.int16),  # bit c: flows of class c may send here (ports of NICs)
        ("paused", np.int16),  # bit c: class c is paused by the far end
        ("last", np.int16),  # class that round robin served last
        ("reverse", np.int32),  # channel that comes back
        ("link", np.int32),  # first entry of `serial` for its speed and delays
        ("kmin", np.int32),  # ECN: no mark at this depth or less [byte]
        ("headroom", np.int32),  # of each lossless class of the channel's input [byte]
        ("slot", np.int32),  # place in `events` for its next look at what waits, see packet_look.py
        ("lane", np.int32),  # lane of that place
        ("sending_bytes", np.int32),  # of the packet that was sent last or is being sent [byte]
        ("n_packets", np.int64),  # sent, the one that is being sent too
        ("wire_bytes", np.int64),  # the same, with preamble and gap [byte]
    ],
    align=True,
)

# What few packets touch.
ASIDE = np.dtype(
    [
        ("kmax", np.int32),  # ECN: always a mark above this depth [byte]
        ("n_marked", np.int32),
        ("pmax", np.float64),  # ECN: probability of a mark at kmax
        ("gbps", np.float64),  # speed [Gb/s]
    ],
    align=True,
)

QUEUE = np.dtype(
    [
        ("first", np.int32),  # packet, -1 when empty
        ("last", np.int32),
        ("n_bytes", np.int32),  # [byte]
        ("most_bytes", np.int32),  # largest so far [byte]
        ("first_flow", np.int32),  # flow that may send next, -1 without
        ("last_flow", np.int32),
        ("room", np.int64),  # unused; two queues a cache line
    ],
    align=True,
)

INPUT = np.dtype(
    [
        ("used", np.int32),  # in reserve and shared pool [byte]
        ("headroom_used", np.int32),  # [byte]
        ("switch", np.int32),  # whose input it is, -1: a NIC
        ("alpha_log2", np.int16),  # dynamic threshold: free pool * 2**this
        ("is_pausing", np.int16),  # 1: XOFF sent, XON not yet
    ],
    align=True,
)

HELD = np.dtype(
    [
        ("since_ps", np.int64),  # XOFF took effect [ps]
        ("held_ps", np.int64),  # time paused, without a pause that still holds [ps]
        ("n_pauses", np.int64),
        ("n_dropped", np.int64),  # packets that came by the channel and found no room
    ],
    align=True,
)

CREDIT = np.dtype(
    [
        ("sent", np.int32),  # by the sender, modulo 4096 [block of 64 byte]
        ("limit", np.int32),  # of `sent`, as the sender knows it [block]
        ("received", np.int32),  # by the receiver, modulo 4096 [block]
        ("told", np.int32),  # limit that the receiver last sent [block]
        ("held", np.int32),  # in the receiver's buffer [block]
        ("room", np.int32),  # of the receiver's buffer [block]
        ("most_held", np.int32),  # largest so far [block]
        ("is_waiting", np.int32),  # 1: a flow control packet waits to leave
        ("n_updates", np.int64),  # flow control packets sent by the receiver
    ],
    align=True,
)

# What an InfiniBand port keeps beside PORT.
LINK = np.dtype(
    [
        ("frees", np.int32),  # channel that the packet on its way out came on, -1: none
        ("frees_lane", np.int32),  # the virtual lane whose buffer it leaves
        ("frees_blocks", np.int32),  # what it leaves there [block]
        ("fecn_bytes", np.int32),  # FECN: no mark at this depth or less [byte]
        ("unmarked", np.int32),  # FECN: packets that could have been marked since one was
        ("cut_ps", np.int64),  # that the first bytes take, after which the far end forwards [ps]
    ],
    align=True,
)

SWITCH = np.dtype(
    [
        ("pool", np.int64),  # buffer without reserves and headrooms [byte]
        ("shared", np.int64),  # of the pool in use [byte]
        ("most_shared", np.int64),  # largest so far [byte]
    ],
    align=True,
)

# Four cache lines: a receiver touches the third alone, a sender the first two.
QUEUE_PAIR = np.dtype(
    [
        ("first_hop", np.int32),  # entry of `routes` of its first channel
        ("limit", np.int32),  # packets that may be sent: all posted, or what there is credit for
        ("acked", np.int32),  # packets known to have arrived
        ("next", np.int32),  # packet to send next
        ("top", np.int32),  # packets sent at least once
        ("following", np.int32),  # next flow that may send, -1 for the last
        ("state", np.int32),  # UNLISTED, LISTED, PACED, FAILED
        ("traffic", np.int32),  # traffic class of its packets
        ("first", np.int32),  # number of the first packet of the message that is being cut
        ("end", np.int32),  # number after that of its last packet
        ("size_first", np.int32),  # size classes of its first, middle and last packet
        ("size_middle", np.int32),
        ("size_last", np.int32),
        ("control", np.int32),  # entry of `controls`
        ("window", np.int32),  # most bytes under way, 0: no limit [byte]
        ("has_timer", np.int8),  # 1: a retry time-out is pending
        ("is_read", np.int8),  # 1: the receiver asks for the data and sends no ACKs
        ("is_slowed", np.int8),  # DCQCN: 1 since the first CNP
        ("alpha_cnp", np.int8),  # DCQCN: 1: CNP since alpha was last renewed
        ("next_ps", np.int64),  # pacing: earliest next packet [ps]
        ("wake_ps", np.int64),  # pacing: first event that wakes it [ps]
        ("progress_ps", np.int64),  # last progress [ps]
        ("sent_bytes", np.int64),  # DCQCN: since the byte counter was last reset [byte]
        ("line_gbps", np.float64),  # speed of its NIC [Gb/s]
        ("rate_gbps", np.float64),
        ("asked_end", np.int32),  # the same of the first message not acknowledged
        ("n_retries", np.int32),  # time-outs since the last progress
        ("n_repeats", np.int32),  # packets sent again
        ("n_timeouts", np.int32),
        ("last_cnp_ps", np.int64),  # receiver: last CNP sent [ps]
        ("delivered_ps", np.int64),  # last byte at the receiver [ps], -1 before
        ("acked_ps", np.int64),  # last ACK at the sender [ps], -1 before
        ("first_back", np.int32),  # the same for what comes back
        ("expected", np.int32),  # receiver: packets that have arrived in order
        ("taken_end", np.int32),  # the same of the message that is being received
        ("size_ack", np.int32),  # size class of its ACKs
        ("n_packets", np.int32),
        ("n_cnps", np.int32),
        ("n_out_of_order", np.int32),  # receiver: packets after a missing one
        ("posted", np.int32),  # packets of messages whose time has come
        ("time_stage", np.int32),  # DCQCN: increases by the timer since the last decrease
        ("is_nak_sent", np.int8),  # receiver: 1 since a NAK until the missing packet comes
        ("rate_cnp", np.int8),  # DCQCN: 1: CNP since the rate was last checked
        ("gap", np.int16),  # unused
        ("increase_ps", np.int64),  # DCQCN: next increase by the timer [ps]
        ("target_gbps", np.float64),  # DCQCN
        ("alpha", np.float64),  # DCQCN
        ("byte_stage", np.int32),  # DCQCN: increases by the byte counter
        ("highest", np.int32),  # selective repeat: last packet known to have arrived
        ("again", np.int32),  # selective repeat: packets before it are not looked at again
        ("cct_index", np.int32),  # CCT: entry of the table
        ("posting", np.int32),  # several messages: the next to be posted, -1: all are
        ("cutting", np.int32),  # several messages: the one that is being cut
        ("taking", np.int32),  # several messages: the one that is being received, -1: none
        ("asking", np.int32),  # several messages: the first not acknowledged, -1: none
        ("room", np.int64),  # unused
    ],
    align=True,
)

SERIAL = np.dtype(
    [
        ("time_ps", np.int64),  # to send a packet of one size class over one kind of link [ps]
        ("arrive_ps", np.int64),  # from the begin of sending to the far end's decision [ps]
        ("lane", np.int32),  # lane of the end of sending, -1: no lane of its own
        ("lane_arrive", np.int32),  # lane of the arrival, -1: no lane of its own
        ("n_bytes", np.int32),  # in buffers [byte]
        ("wire_bytes", np.int32),  # with preamble and gap [byte]
    ],
    align=True,
)

LANE = np.dtype(
    [
        ("offset", np.int64),  # first entry in `events`
        ("mask", np.int64),  # room - 1, the room a power of two
        ("first", np.int64),  # the next event that will happen; all before are taken or asleep
        ("end", np.int64),  # events added so far
        ("kept", np.int64),  # events before are done with, and their places may be used again
    ],
    align=True,
)

LATER = np.dtype(
    [
        ("time_ps", np.int64),  # [ps]
        ("order", np.int64),  # of making
        ("code", np.int64),
    ],
    align=True,
)

PACKET_COUNT = np.dtype(
    [
        ("sent", np.int64),
        ("received", np.int64),
        ("dropped", np.int64),
        ("hops", np.int64),  # channels crossed
        ("sent_bytes", np.int64),  # in buffers [byte]
        ("received_bytes", np.int64),
        ("dropped_bytes", np.int64),
    ],
    align=True,
)

RULES = np.dtype(
    [
        ("n_classes", np.int64),
        ("has_pauses", np.int64),  # 1: pauses end by themselves or are watched, see PAUSE
        ("detect_ps", np.int64),  # watchdog: pause with packets waiting that is a storm [ps]
        ("restore_ps", np.int64),  # watchdog: without a pause before a storm is over [ps]
        ("storm", np.int64),  # watchdog: FORWARDS, DROPS
        ("has_weights", np.int64),  # 1: classes take turns by weight
        ("has_settings", np.int64),  # 1: ports or classes differ, see SETTING
        ("strict", np.int64),  # bit c: class c goes before those without
        ("counted", np.int64),  # bit c: class c takes buffer from the pool, and may be dropped
        ("lossless", np.int64),  # bit c: class c has headroom and PFC
        ("ecn", np.int64),  # bit c: class c may be marked
        ("ack_class", np.int64),  # -1: that of the data
        ("cnp_class", np.int64),
        ("reserve", np.int64),  # of each input and counted class [byte]
        ("xoff", np.int64),  # static threshold, 0: dynamic [byte]
        ("xon_offset", np.int64),  # XON this far below the threshold [byte]
        ("tail", np.int64),  # most bytes in a lossy queue, 0: no limit [byte]
        ("tick_ps", np.int64),  # times are cut to whole ones [ps]
        ("mtu", np.int64),  # payload of a full packet [byte]
        ("ack_every", np.int64),  # packets
        ("acks_duplicates", np.int64),  # 1: a packet that came before is acknowledged again
        ("timeout_ps", np.int64),  # 0: none [ps]
        ("retry_count", np.int64),
        ("cnp_in_ack", np.int64),  # 1: the ACK of a marked packet is the CNP
        ("has_credits", np.int64),  # 1: InfiniBand; classes are virtual lanes
        ("update_blocks", np.int64),  # a limit is told when it has grown by so many [block]
        ("has_faults", np.int64),  # 1: look at `faulty`
        ("most_apart", np.int64),  # selective repeat: packets under way, 0: go-back-N
        ("reorder", np.int64),  # selective repeat: packets that may overtake one
        ("until_acked", np.int64),  # 1: an ACK, 0: the last byte lets others start
        ("fan_out", np.int64),  # most flows that wait for one
        ("has_hops", np.int64),  # 1: routed packet by packet
        ("mode", np.int64),  # of data: ECMP, TURN, …: see packet_route.py
        ("routed", np.int64),  # bit c: data of class c are routed by `mode`, others by ECMP
        ("hash_seed", np.int64),  # of the flows' names, 32 bits
        ("flowlet_ps", np.int64),  # a longer gap ends a flowlet [ps]
        ("n_flowlets", np.int64),  # slots of a switch
        ("n_columns", np.int64),  # of `hops.group`
        ("first_back", np.int64),  # entry of `routes`: ways back from here on
        ("first_channel", np.int64),  # entry of `routes`: channel c stands c behind it
        ("first_channel_back", np.int64),  # the same for packets on their way back
        ("most_stamps", np.int64),  # switches that a packet has room for, 0: none writes
        ("has_fecn", np.int64),
        ("marking_rate", np.int64),  # FECN: packets between two marks
        ("fecn_least", np.int64),  # FECN: shorter packets are not marked [byte]
        ("has_arbiter", np.int64),  # 1: lanes take turns by tables of arbitration
        ("high_limit", np.int64),  # high priority may send so much in a row [block]
        ("lane_sent", np.int64),  # the first of those of ends of sending
        ("lane_timeout", np.int64),
        ("has_reads", np.int64),  # 1: some flow is an RDMA READ
        ("has_messages", np.int64),  # 1: several messages on a queue pair
        ("has_after", np.int64),  # 1: some message waits for others
        ("has_granters", np.int64),  # 1: some flow has receiver's credit
        ("has_other_controls", np.int64),  # 1: some flow has a control beside DCQCN or none
        ("has_tape", np.int64),  # 1: something is noted beside the totals
        ("is_plain", np.int64),  # 1: see PLAIN
    ],
    align=True,
)

# Rules of a plain run, as the usual profiles of RoCE have them. Such a run has rules of a type of
# their own, and its machine code is compiled with these numbers in it.
PLAIN = {
    "n_classes": 2,
    "has_pauses": 0,
    "has_weights": 0,
    "has_settings": 0,
    "xoff": 0,
    "tail": 0,
    "tick_ps": 1,
    "ack_every": 1,
    "cnp_in_ack": 0,
    "has_credits": 0,
    "has_faults": 0,
    "most_apart": 0,
    "has_hops": 0,
    "most_stamps": 0,
    "has_fecn": 0,
    "has_arbiter": 0,
    "has_reads": 0,
    "has_messages": 0,
    "has_after": 0,
    "has_granters": 0,
    "has_other_controls": 0,
    "has_tape": 0,
    "is_plain": 1,
}
PLAIN_RULES = np.dtype([*RULES.descr, ("twin", np.int64)])  # another type to whoever looks


FAULT_ROW = np.dtype(
    [
        ("what", np.int32),  # CUT, MEND, LOSE, …: see packet_faults.py
        ("channel", np.int32),
        ("value", np.int64),  # traffic class; row of `losses`; entry of `serial`; bytes
        ("gap_ps", np.int64),  # storm: between two XOFF [ps]
        ("end_ps", np.int64),  # storm: no XOFF any more [ps]
        ("xoff", np.int64),  # slow host: XOFF above [byte]
        ("xon", np.int64),  # slow host: XON at or below [byte]
        ("gbps", np.float64),  # slow host [Gb/s]
    ],
    align=True,
)

FAULTY = np.dtype(
    [
        ("cut_ps", np.int64),  # last time it went down [ps]
        ("mended_ps", np.int64),  # time it came up after that, NEVER while down [ps]
        ("wire_ps", np.int64),  # propagation [ps]
        ("limit", np.int64),  # longest frame that its port takes, 0: any [byte]
        ("loss", np.int32),  # row of `losses`, 0: no loss
        ("host", np.int32),  # row of `faults` of its slow host, -1: none
        ("backlog", np.int64),  # in the NIC of its slow host [byte]
        ("free_ps", np.int64),  # when that will have been taken [ps]
        ("holding", np.int64),  # bit c: that NIC has paused class c
        ("is_avoided", np.int64),  # 1: its switch knows that it is down, and routes around it
    ],
    align=True,
)

Bits = NDArray[np.int8]


@by_pointer("rules", "serial", "controls", known=(PLAIN_RULES, PLAIN))
class PacketRun(NamedTuple):
    """A whole run of the packet engine: what is asked for and what is known so far."""

    packets: Records  # PACKET[room]
    ports: Records  # PORT[n_channels]
    aside: Records  # ASIDE[n_channels]
    queues: Records  # QUEUE[n_channels * (n_classes + 1)]: those of a port together
    inputs: Records  # INPUT[n_channels * (n_classes + 1)]
    held: Records  # HELD[n_channels * (n_classes + 1)]
    credits: Records  # CREDIT[n_channels * (n_classes + 1)]; none without credits
    links: Records  # LINK[n_channels]; none without credits
    cct: Floats  # float64[n_controls, n_entries]: wait after a packet in packet times, CCT only
    lane_table: Longs  # int64[2, n_entries, 2]: lane and weight [block], high and low
    turns: Longs  # int64[n_channels, 6]: see the names in packet_arbiter.py; none without arbiter
    switches: Records  # SWITCH[n_switches]
    flows: Records  # QUEUE_PAIR[n_pairs]
    messages: Records  # MESSAGE[n_flows], or none: each queue pair has one
    routes: Ints  # int32[n_entries]: channels, row by row
    serial: Records  # SERIAL[n_kinds_of_links * n_sizes]
    lanes: Records  # LANE[n_lanes]
    due: Longs  # int64[2 * room]: time [ps] * 128 + lane of each lane's first event, heap last,
    #   from place `room`; before them the smaller of two, two by two, until place 1
    events: Longs  # int64[2 * room]: time [ps] and code, which is negative while asleep
    later: Records  # LATER[room + 1]: a heap of all other events, from place 1
    rules: Records  # RULES[1]
    shares: Ints  # int32[n_channels * (n_classes + 1)]: bytes a class may still send, or none
    quanta: Ints  # int32[n_classes]: bytes at each turn; see packet_turns.py
    pauses: Records  # PAUSE[n_channels * (n_classes + 1)], or none: no watchdog, no pause time
    settings: Records  # SETTING[n_channels * (n_classes + 1)], or none: all ports are alike
    controls: Records  # CONTROL[n_controls]
    pacing: Records  # PACING[n_pairs], or one row where no control needs it
    notes: Records  # NOTE[room of packets], or one row where no control needs it
    stamps: Records  # STAMP[room of packets * most_stamps]
    sacked: Bits  # int8[n_pairs * most_apart]: sender: 1: has arrived; by number, in a ring
    kept: Bits  # int8[n_pairs * most_apart]: receiver, likewise
    after: Records  # AFTER[n_flows], or no row: none waits for others
    released: Ints  # int32[n_entries]: flows that wait for a flow, row by row
    released_first: Longs  # int64[n_flows + 1], or none
    granters: Records  # GRANTER[n_channels], or none: no flow class with receiver's credit
    past: Records  # STAMP[n_pairs * most_stamps]: the last ones that came back
    counts: Records  # PACKET_COUNT[5]: by kind of packet
    clock: Longs  # int64[…]: see the names in packet_events.py
    random: NDArray[np.uint64]  # uint64[3]: see packet_random.py; marks: or place in `given`
    faults: Records  # FAULT_ROW[n_changes]: the schedule
    faulty: Records  # FAULTY[n_channels]; none without faults
    losses: NDArray[np.float64]  # float64[n_rates, n_sizes]: chance that a packet is lost; row 0: 0
    lost: Longs  # int64[N_REASONS]: packets dropped by faults
    hops: Hops  # of routing packet by packet
    given: Floats  # float64[n]: random numbers in place of the generator's; none: the generator
    trace: Longs  # int64[room, 5]: events as they happened; no rows: no trace
    tape: Tape  # what is noted beside the totals
