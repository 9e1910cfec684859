"""A checked packet problem turned into the arrays that the kernels run on, and more room later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.packet_events import (
    FAULT,
    FREE,
    FULL,
    KIND_BITS,
    LANE_BITS,
    MOST_LANES,
    N_CLOCK,
    N_FREE,
    N_LATER,
    NEVER,
    SPARE,
    START,
)
from gpufabric.kernels.packet_faults import SPEED
from gpufabric.kernels.packet_port import SIZE_ACK, SIZE_CNP
from gpufabric.kernels.packet_settings import UNCOUNTED
from gpufabric.kernels.packet_structs import (
    ASIDE,
    HELD,
    INPUT,
    LANE,
    LATER,
    N_REASONS,
    PACKET,
    PACKET_COUNT,
    PORT,
    QUEUE,
    QUEUE_PAIR,
    RULES,
    SERIAL,
    SWITCH,
    PacketRun,
)
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import ClassKind, PacketConfig
from gpufabric.sim.packet_control_setup import (
    control_records,
    delay_tables,
    header_bytes,
    host_rules,
    more_notes,
    pacing_records,
)
from gpufabric.sim.packet_fault_rows import (
    Schedule,
    chances,
    faulty_channels,
    schedule_of,
)
from gpufabric.sim.packet_headroom import headroom_for
from gpufabric.sim.packet_hop_setup import hops_for, routes_for, routing_rules
from gpufabric.sim.packet_infiniband import credit_rules, link_records
from gpufabric.sim.packet_messages import Operation
from gpufabric.sim.packet_recording import NO_TAPE, with_more_packets
from gpufabric.sim.packet_seeds import generators
from gpufabric.sim.packet_settings import (
    alpha_log2_for,
    has_settings,
    marked_classes,
    settings_for,
)

__all__ = ["Sizes", "new_packet_run", "with_more_room"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_ROOM = 1024  # packets, and events of a lane, to begin with
COMMON_SIZES = 3  # data sizes whose ends of sending have lanes
COMMON_SPEEDS = 3  # speeds with most ports, likewise
SERIAL_LANES = 18  # for all sizes at all common speeds
COMMON_DELAYS = 8  # delays whose arrivals have lanes
CACHE_LINE = 64  # [byte]
PS = 1_000_000  # in a microsecond


def line_records(dtype: np.dtype[np.void], size: int) -> Records:
    """Return records, all zero, that begin where a cache line does."""
    raw = np.zeros(size * dtype.itemsize + CACHE_LINE, np.uint8)
    skip = -raw.ctypes.data % CACHE_LINE
    return raw[skip : skip + size * dtype.itemsize].view(dtype).view(np.recarray)


@dataclass(frozen=True)
class Sizes:
    """Size classes of packets, and those of each flow's first, middle and last packet."""

    n_bytes: Longs  # int64[n_sizes]: in buffers [byte]
    wire_bytes: Longs  # int64[n_sizes] [byte]
    n_packets: Longs  # int64[n_flows]
    of_flow: Ints  # int32[3, n_flows]
    is_common: NDArray[np.bool_]  # bool[n_sizes]
    ack: Ints  # int32[n_flows]: size class of ACKs, or of the requests of a READ


def sizes_of(checked: CheckedPackets, config: PacketConfig) -> Sizes:
    """Return the sizes of all packets; PFC, ACK and CNP come first, then ACKs of other lengths.

    The three data sizes with the most packets are common, of equals the largest; control sizes are.
    """
    headers, mtu = config.headers, config.transport.mtu_bytes
    data_extra, ack_extra = header_bytes(config)
    n_packets = np.maximum(1, -(-checked.size_bytes // mtu))
    left = checked.size_bytes - (n_packets - 1) * mtu
    bare = np.stack([np.minimum(checked.size_bytes, mtu), np.full_like(left, mtu), left])
    bare += headers.data_bytes + data_extra[checked.control]
    is_read = checked.operation == Operation.READ
    bare[0] += np.where(checked.operation == Operation.WRITE, headers.first_bytes, 0)
    bare[::2] += np.where(is_read, headers.response_bytes, 0)
    count = np.stack([np.ones_like(left), np.maximum(n_packets - 2, 0), n_packets > 1])
    values, kind = np.unique(bare, return_inverse=True)
    weight = np.bincount(kind.ravel(), count.ravel(), minlength=values.size)
    common = np.lexsort((-values, -weight))[:COMMON_SIZES]
    extras, ack = np.unique(np.append(0, ack_extra), return_inverse=True)
    control = [headers.pfc_bytes, headers.ack_bytes, headers.cnp_bytes]
    control += [headers.ack_bytes + int(extra) for extra in extras[1:]]
    ack = np.where(ack == 0, SIZE_ACK, ack + SIZE_CNP)[1:][checked.control]
    if is_read.any():
        ack[is_read] = len(control)
        control.append(headers.request_bytes)
    is_common = np.zeros(len(control) + values.size, np.bool_)
    is_common[: len(control)] = True
    is_common[len(control) + common] = True
    n_bytes = np.concatenate([control, values])
    return Sizes(
        n_bytes,
        n_bytes + headers.gap_bytes,
        n_packets,
        (kind.reshape(bare.shape) + len(control)).astype(np.int32),
        is_common,
        ack.astype(np.int32),
    )


def serial_ps(wire_bytes: Longs, gbps: float, tick_ps: int) -> Longs:
    """Return the times to send packets of `wire_bytes` at `gbps` [ps], cut to whole ticks."""
    return (wire_bytes * 8000 / gbps).astype(np.int64) // tick_ps * tick_ps


def new_packet_run(checked: CheckedPackets, config: PacketConfig, trace_rows: int) -> PacketRun:
    """Return a run that has not begun."""
    sizes = sizes_of(checked, config)
    link = link_records(checked, config)
    ports, aside, n_lanes = _ports(checked, config, link.links, 1)
    n_groups = checked.hops[0].group.size if checked.hops else 0
    schedule = schedule_of(checked.faults, checked.wires, checked.hops_from_us, n_groups)
    gbps = np.concatenate(
        [checked.wires.gbps, schedule.rows["gbps"][schedule.rows["what"] == SPEED]]
    )
    serial, n_lanes, speed = _serial(gbps, ports.size, config, sizes, n_lanes)
    ports["speed"] = speed[: ports.size]
    schedule.rows["value"][schedule.rows["what"] == SPEED] = speed[ports.size :]
    controls, n_lanes = control_records(config, n_lanes)
    rules, n_lanes = _rules(config, n_lanes)
    rules["has_faults"] = bool(checked.faults)
    routing_rules(rules, checked, config)
    flows = _flows(checked, config, sizes)
    control = pacing_records(checked, config, flows, ports, FIRST_ROOM)
    host_rules(rules, checked, control, FIRST_ROOM)
    n_queues = checked.wires.n_channels * (len(config.classes) + 1)
    settings = settings_for(checked, config)
    lanes, due, events = _lanes(*_first_events(checked, schedule), n_lanes)
    packets, clock = _packets()
    return PacketRun(
        packets=packets,
        ports=ports,
        aside=aside,
        queues=_queues(n_queues),
        inputs=records(INPUT, n_queues),
        held=records(HELD, n_queues),
        switches=_switches(checked, config, ports, settings),
        **link._asdict(),
        cct=delay_tables(config, flows),
        flows=flows,
        routes=routes_for(checked),
        serial=serial,
        lanes=lanes,
        due=due,
        events=events,
        later=records(LATER, FIRST_ROOM + 2 * int(rules["fan_out"][0])),
        rules=rules,
        settings=settings,
        controls=controls,
        **control._asdict(),
        counts=records(PACKET_COUNT, 5),
        clock=clock,
        random=generators(config),
        faults=schedule.rows,
        faulty=faulty_channels(checked.faults, checked.wires),
        losses=chances(schedule, sizes.wire_bytes),
        lost=np.zeros(N_REASONS, np.int64),
        hops=hops_for(checked, config),
        given=np.array(config.draws, np.float64),
        trace=np.zeros((trace_rows, 5), np.int64),
        tape=NO_TAPE,
    )


def _queues(n_queues: int) -> Records:
    queues = line_records(QUEUE, n_queues)
    for name in ("first", "last", "first_flow", "last_flow"):
        queues[name] = -1
    return queues


def _serial(
    gbps: Floats, n_ports: int, config: PacketConfig, sizes: Sizes, n_lanes: int
) -> tuple[Records, int, Longs]:
    """Times of sending by speed and size, how many lanes there are now, and each speed's first.

    The first `n_ports` of `gbps` are ports'; the others, that ports may have for a time, do not
    count for what is common.
    """
    speeds, speed = np.unique(gbps, return_inverse=True)
    count = np.bincount(speed[:n_ports], minlength=speeds.size)
    n_common = min(COMMON_SPEEDS, SERIAL_LANES // int(sizes.is_common.sum()))
    common = np.sort(np.argsort(-count, kind="stable")[:n_common])
    times = np.stack([serial_ps(sizes.wire_bytes, one, config.tick_ps) for one in speeds])
    regular = np.ix_(common, sizes.is_common)
    lane_of, lane = np.unique(times[regular], return_inverse=True)
    serial = records(SERIAL, times.size)
    serial["time_ps"] = times.ravel()
    serial["lane"] = -1
    table = serial["lane"].reshape(times.shape)
    table[regular] = n_lanes + lane.reshape(common.size, -1)
    serial["n_bytes"] = np.tile(sizes.n_bytes, speeds.size)
    serial["wire_bytes"] = np.tile(sizes.wire_bytes, speeds.size)
    return serial, n_lanes + lane_of.size, speed * sizes.n_bytes.size


def _ports(
    checked: CheckedPackets, config: PacketConfig, links: Records, n_lanes: int
) -> tuple[Records, Records, int]:
    wires, buffer = checked.wires, config.buffer
    ports = line_records(PORT, wires.n_channels)
    aside = records(ASIDE, wires.n_channels)
    aside["gbps"] = wires.gbps
    ports["sending"] = -1
    ports["last"] = len(config.classes) - 1
    ports["head"], ports["reverse"] = wires.head, wires.reverse
    forwarding_ps = np.append(checked.forwarding_ps, 0)[wires.head]  # -1, a NIC: without
    delay = wires.delay_ps + forwarding_ps
    delay_pfc = wires.delay_ps + round(config.pause_reaction_ns * 1000)
    ports["delay_ps"], aside["delay_pfc_ps"] = delay, delay_pfc
    cuts = np.flatnonzero(links["cut_ps"])
    delay_cut = delay[cuts] + links["cut_ps"][cuts]
    values, which, count = np.unique(
        np.concatenate([delay, delay_pfc, delay_cut]), return_inverse=True, return_counts=True
    )
    common = np.sort(np.argsort(-count, kind="stable")[:COMMON_DELAYS])
    lane = np.full(values.size, -1)
    lane[common] = n_lanes + np.arange(common.size)
    n_channels = wires.n_channels
    ports["lane"], ports["lane_pfc"] = lane[which[: 2 * n_channels].reshape(2, -1)]
    links["lane_cut"][cuts] = lane[which[2 * n_channels :]]
    if config.ecn is not None:
        ports["kmin"] = config.ecn.kmin_bytes * wires.gbps / 100
        aside["kmax"] = config.ecn.kmax_bytes * wires.gbps / 100
        aside["pmax"] = config.ecn.pmax
    ports["alpha_log2"] = alpha_log2_for(wires, config)
    headroom = headroom_for(wires.gbps, wires.delay_ps, forwarding_ps, config)
    ports["headroom"] = headroom if buffer.headroom_bytes is None else buffer.headroom_bytes
    return ports, aside, n_lanes + common.size


def _rules(config: PacketConfig, n_lanes: int) -> tuple[Records, int]:
    rules = records(RULES, 1)
    classes, transport = config.classes, config.transport
    of_rule = {
        "strict": [one.is_strict for one in classes] + [True],
        "counted": [one.kind.is_counted for one in classes],
        "lossless": [one.kind is ClassKind.LOSSLESS for one in classes],
    }
    rules["ecn"] = marked_classes(config)
    rules["has_settings"] = has_settings(config)
    for name, bits in of_rule.items():
        rules[name] = sum(1 << at for at, is_set in enumerate(bits) if is_set)
    rules["n_classes"] = len(classes)
    rules["ack_class"], rules["cnp_class"] = config.ack_class, config.cnp_class
    rules["reserve"], rules["xoff"] = config.buffer.reserve_bytes, config.buffer.xoff_bytes
    rules["xon_offset"], rules["tail"] = config.buffer.xon_offset_bytes, config.buffer.tail_bytes
    rules["tick_ps"] = config.tick_ps
    rules["mtu"], rules["ack_every"] = transport.mtu_bytes, transport.ack_every
    rules["acks_duplicates"] = transport.acks_duplicates
    rules["timeout_ps"] = round(transport.timeout_us * PS)
    rules["retry_count"] = transport.retry_count
    rules["cnp_in_ack"] = transport.cnp_in_ack
    credit_rules(rules, config)
    rules["lane_timeout"] = -1
    if transport.timeout_us > 0:
        rules["lane_timeout"] = n_lanes
        n_lanes += 1
    return rules, n_lanes


def _first_events(checked: CheckedPackets, schedule: Schedule) -> tuple[Longs, Longs]:
    """Times and codes of what is known from the beginning: faults and starts, in order."""
    n_changes = schedule.time_ps.size
    free = np.arange(checked.n_flows)
    if checked.after is not None:
        free = free[np.diff(checked.after.first) == 0]
    times = np.concatenate([schedule.time_ps, checked.start_ps[free]])
    codes = np.concatenate([np.arange(n_changes) << KIND_BITS | FAULT, free << KIND_BITS | START])
    order = np.argsort(times, kind="stable")
    return times[order], codes[order]


def _lanes(times: Longs, codes: Longs, n_lanes: int) -> tuple[Records, Longs, Longs]:
    """Rings with the first events in the first."""
    n_first = times.size
    room = np.full(n_lanes, FIRST_ROOM, np.int64)
    room[0] = 1 << int(n_first + 2 * SPARE).bit_length()
    lanes = records(LANE, n_lanes)
    lanes["mask"] = room - 1
    lanes["offset"] = np.cumsum(room) - room
    lanes["end"][0] = n_first
    events = np.zeros(2 * room.sum(), np.int64)
    events[0 : 2 * n_first : 2] = times
    events[1 : 2 * n_first : 2] = codes
    due = np.full(2 * MOST_LANES, NEVER, np.int64)
    if n_first:  # these are lane 0: the leaf and all above it
        due[MOST_LANES >> np.arange(LANE_BITS + 1)] = events[0] << LANE_BITS
    return lanes, due, events


def _packets() -> tuple[Records, Longs]:
    packets = line_records(PACKET, FIRST_ROOM)
    packets["following"] = np.arange(1, FIRST_ROOM + 1)
    packets["kind"] = -1
    clock = np.zeros(N_CLOCK, np.int64)
    clock[FREE], clock[N_FREE] = 0, FIRST_ROOM
    return packets, clock


def _switches(
    checked: CheckedPackets, config: PacketConfig, ports: Records, settings: Records
) -> Records:
    """Pools: what reserves and headrooms leave of the buffer.

    Raises
    ------
    InputError
        If they leave nothing.
    """
    head = checked.wires.head
    inward = head >= 0
    n_switches = int(head.max(initial=-1)) + 1
    n_counted = sum(one.kind.is_counted for one in config.classes)
    n_lossless = sum(one.kind is ClassKind.LOSSLESS for one in config.classes)
    each = config.buffer.reserve_bytes * n_counted + ports["headroom"].astype(np.int64) * n_lossless
    if settings.size:
        own = settings.reshape(head.size, -1)[:, :-1]
        each = own["headroom"].astype(np.int64).sum(axis=1)
        each += config.buffer.reserve_bytes * (own["kind"] != UNCOUNTED).sum(axis=1)
    taken = np.bincount(head[inward], each[inward], minlength=n_switches).astype(np.int64)
    switches = records(SWITCH, n_switches)
    switches["pool"] = checked.buffer_bytes - taken
    if (switches["pool"] <= 0).any():
        at = int(np.argmax(switches["pool"] <= 0))
        what = _("reserves and headrooms of switch {switch} take {taken} bytes of {total}.").format(
            switch=at, taken=taken[at], total=checked.buffer_bytes[at]
        )
        remedy = _("Take a larger buffer, shorter cables, or fewer lossless classes.")
        raise InputError(Fault("buffer.total_bytes", what, remedy=remedy))
    return switches


def _flows(checked: CheckedPackets, config: PacketConfig, sizes: Sizes) -> Records:
    flows = records(QUEUE_PAIR, checked.n_flows)
    flows["first_hop"] = checked.paths.first[checked.path]
    flows["first_back"] = checked.back.first[checked.path] + checked.paths.channel.size
    flows["n_packets"] = sizes.n_packets
    flows["following"] = -1
    flows["traffic"] = checked.traffic_class
    flows["size_first"], flows["size_middle"], flows["size_last"] = sizes.of_flow
    flows["control"] = checked.control
    flows["is_read"] = checked.operation == Operation.READ
    flows["size_ack"] = sizes.ack
    flows["window"] = np.array([one.window_bytes for one in config.flow_controls])[checked.control]
    flows["delivered_ps"] = flows["acked_ps"] = -1
    flows["last_cnp_ps"] = -NEVER // 2
    line = checked.wires.gbps[checked.paths.channel[flows["first_hop"]]]
    flows["line_gbps"] = flows["rate_gbps"] = flows["target_gbps"] = line
    return flows


def with_more_room(run: PacketRun) -> PacketRun:
    """Return the run with twice the room in every array that is nearly full."""
    clock = run.clock
    clock[FULL] = 0
    packets, later = run.packets, run.later
    if clock[N_FREE] < SPARE:
        old = packets.size
        packets = line_records(PACKET, 2 * old)
        packets[:old] = run.packets
        packets["following"][old:] = np.append(np.arange(old + 1, 2 * old), clock[FREE])
        packets["kind"][old:] = -1
        clock[FREE] = old
        clock[N_FREE] += old
    if clock[N_LATER] + 2 * (SPARE + int(run.rules["fan_out"][0])) > later.size:
        later = np.concatenate([later, records(LATER, later.size)]).view(np.recarray)
    lanes, events = _wider_lanes(run)
    notes, stamps = more_notes(run, packets.size)
    return run._replace(
        packets=packets,
        later=later,
        lanes=lanes,
        events=events,
        notes=notes,
        stamps=stamps,
        tape=with_more_packets(run.tape, packets.size),
    )


def _wider_lanes(run: PacketRun) -> tuple[Records, Longs]:
    lanes = run.lanes.copy()
    held = lanes["end"] - lanes["first"]
    room = lanes["mask"] + 1
    room = np.where(held + 2 * SPARE > room, 2 * room, room)
    if (room == lanes["mask"] + 1).all():
        return run.lanes, run.events
    lanes["mask"] = room - 1
    lanes["offset"] = np.cumsum(room) - room
    lanes["first"], lanes["end"] = 0, held
    events = np.zeros(2 * room.sum(), np.int64)
    pairs, old_pairs = events.reshape(-1, 2), run.events.reshape(-1, 2)
    for new, old, n in zip(lanes, run.lanes, held, strict=True):
        at = old.offset + ((old.first + np.arange(n)) & old.mask)
        pairs[new.offset : new.offset + n] = old_pairs[at]
    return lanes, events
