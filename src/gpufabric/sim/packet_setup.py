"""A checked packet problem turned into the arrays that the kernels run on, and more room later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.kernels.packet_control_structs import DCQCN, WINDOW
from gpufabric.kernels.packet_events import (
    FAULT,
    FULL,
    KIND_BITS,
    N_CLOCK,
    N_FREE,
    N_LATER,
    NEVER,
    SPARE,
    START,
)
from gpufabric.kernels.packet_faults import SPEED
from gpufabric.kernels.packet_settings import UNCOUNTED
from gpufabric.kernels.packet_structs import (
    ASIDE,
    HELD,
    INPUT,
    LATER,
    N_REASONS,
    PACKET,
    PACKET_COUNT,
    PLAIN,
    PLAIN_RULES,
    PORT,
    QUEUE,
    QUEUE_PAIR,
    RULES,
    SWITCH,
    PacketRun,
)
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.large_arrays import line_records
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import ClassKind, PacketConfig
from gpufabric.sim.packet_control_setup import (
    control_records,
    delay_tables,
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
from gpufabric.sim.packet_lanes import first_lanes, link_rows, link_times, wider_lanes
from gpufabric.sim.packet_message_setup import message_records
from gpufabric.sim.packet_messages import Operation
from gpufabric.sim.packet_pause_time import pause_rules, pauses_for
from gpufabric.sim.packet_recording import NO_TAPE, with_more_packets
from gpufabric.sim.packet_seeds import generators
from gpufabric.sim.packet_settings import (
    alpha_log2_for,
    has_settings,
    has_weights,
    marked_classes,
    quanta_for,
    settings_for,
    shares_for,
)
from gpufabric.sim.packet_sizes import Sizes, sizes_of

__all__ = ["new_packet_run", "settled", "with_more_room"]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_ROOM = 1024  # packets, and later events, to begin with
MOST_FIRST_ROOM = 2**19  # packets
PS = 1_000_000  # in a microsecond


def new_packet_run(checked: CheckedPackets, config: PacketConfig, trace_rows: int) -> PacketRun:
    """Return a run that has not begun."""
    run = _new_run(checked, config, trace_rows)
    rules = run.rules
    rules["has_messages"] = run.messages.size > 0
    rules["has_after"] = run.after.size > 0
    rules["has_granters"] = run.granters.size > 0
    rules["has_reads"] = run.flows["is_read"].any()
    rules["has_other_controls"] = not np.isin(run.controls["kind"], [WINDOW, DCQCN]).all()
    return run


def _new_run(checked: CheckedPackets, config: PacketConfig, trace_rows: int) -> PacketRun:
    sizes = sizes_of(checked, config)
    packets, clock = _packets(_room(sizes))
    link = link_records(checked, config)
    ports, aside = _ports(checked, config)
    n_groups = checked.hops[0].group.size if checked.hops else 0
    schedule = schedule_of(checked.faults, checked.wires, checked.hops_from_us, n_groups)
    slow = schedule.rows["what"] == SPEED
    others = schedule.rows["channel"][slow], schedule.rows["gbps"][slow]
    of_port = link_rows(checked, config, link.links["cut_ps"], *others)
    times = link_times(of_port, ports.size, sizes, config.tick_ps)
    ports["link"], schedule.rows["value"][slow] = np.split(times.link, [ports.size])
    controls, n_lanes = control_records(config, times.n_lanes)
    rules, n_lanes = _rules(config, n_lanes)
    rules["lane_sent"], rules["has_faults"] = times.lane_sent, bool(checked.faults)
    routing_rules(rules, checked, config)
    flows = _flows(checked, config, sizes)
    messages = message_records(checked, sizes, flows)
    control = pacing_records(checked, config, flows, of_port[: ports.size, 1], packets.size)
    host_rules(rules, checked, control, packets.size)
    n_queues = checked.wires.n_channels * (len(config.classes) + 1)
    settings = settings_for(checked, config)
    lanes, due, events = first_lanes(*_first_events(checked, schedule), n_lanes)
    return PacketRun(
        packets=packets,
        ports=ports,
        aside=aside,
        queues=_queues(n_queues),
        inputs=_inputs(checked, config),
        held=line_records(HELD, n_queues),
        switches=_switches(checked, config, ports, settings),
        **link._asdict(),
        cct=delay_tables(config, flows),
        flows=flows,
        messages=messages,
        routes=routes_for(checked),
        serial=times.serial,
        lanes=lanes,
        due=due,
        events=events,
        later=records(LATER, FIRST_ROOM + 2 * int(rules["fan_out"][0])),
        rules=rules,
        settings=settings,
        controls=controls,
        **control._asdict(),
        pauses=pauses_for(checked.wires, config),
        shares=shares_for(checked.wires, config),
        quanta=quanta_for(config),
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


def _inputs(checked: CheckedPackets, config: PacketConfig) -> Records:
    wires, each = checked.wires, len(config.classes) + 1
    inputs = line_records(INPUT, wires.n_channels * each)
    inputs["switch"] = np.repeat(wires.head, each)
    inputs["alpha_log2"] = np.repeat(alpha_log2_for(wires, config), each)
    return inputs


def _ports(checked: CheckedPackets, config: PacketConfig) -> tuple[Records, Records]:
    wires, buffer = checked.wires, config.buffer
    ports = line_records(PORT, wires.n_channels)
    aside = records(ASIDE, wires.n_channels)
    aside["gbps"] = wires.gbps
    ports["slot"] = ports["free_ps"] = -1
    ports["last"] = len(config.classes) - 1
    ports["head"], ports["reverse"] = wires.head, wires.reverse
    if config.ecn is not None:
        ports["kmin"] = config.ecn.kmin_bytes * wires.gbps / 100
        aside["kmax"] = config.ecn.kmax_bytes * wires.gbps / 100
        aside["pmax"] = config.ecn.pmax
    forwarding_ps = np.append(checked.forwarding_ps, 0)[wires.head]
    headroom = headroom_for(wires.gbps, wires.delay_ps, forwarding_ps, config)
    ports["headroom"] = headroom if buffer.headroom_bytes is None else buffer.headroom_bytes
    return ports, aside


def _rules(config: PacketConfig, n_lanes: int) -> tuple[Records, int]:
    rules = records(RULES, 1)
    classes, transport = config.classes, config.transport
    of_rule = {
        "strict": [one.is_strict for one in classes] + [True],
        "counted": [one.kind.is_counted for one in classes],
        "lossless": [one.kind is ClassKind.LOSSLESS for one in classes],
    }
    rules["ecn"] = marked_classes(config)
    rules["has_weights"] = has_weights(config)
    for name, value in pause_rules(config).items():
        rules[name] = value
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
    rules["most_apart"] = transport.most_apart_packets
    rules["reorder"] = transport.reorder_packets
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


def _room(sizes: Sizes) -> int:
    """Return for how many packets there is room to begin with: all of a small run.

    Places that no packet ever takes cost nothing.
    """
    n_packets = int(sizes.n_packets.sum())
    return min(max(FIRST_ROOM, 1 << n_packets.bit_length()), MOST_FIRST_ROOM)


def _packets(room: int) -> tuple[Records, Longs]:
    """Return packets that are all free, and the clock."""
    clock = np.zeros(N_CLOCK, np.int64)
    clock[N_FREE] = room
    return line_records(PACKET, room), clock


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
    pairs = checked.pairs
    flows = line_records(QUEUE_PAIR, pairs.size)
    path = checked.path[pairs]
    flows["first_hop"] = checked.paths.first[path]
    flows["first_back"] = checked.back.first[path] + checked.paths.channel.size
    for name in ("n_packets", "limit", "posted", "end", "taken_end", "asked_end"):
        flows[name] = sizes.n_packets[pairs]
    flows["following"] = -1
    flows["traffic"] = checked.traffic_class[pairs]
    flows["size_first"], flows["size_middle"], flows["size_last"] = sizes.of_flow[:, pairs]
    control = checked.control[pairs]
    flows["control"] = control
    flows["is_read"] = checked.operation[pairs] == Operation.READ
    flows["size_ack"] = sizes.ack[pairs]
    flows["window"] = np.array([one.window_bytes for one in config.flow_controls])[control]
    flows["delivered_ps"] = flows["acked_ps"] = -1
    flows["last_cnp_ps"] = -NEVER // 2
    line = checked.wires.gbps[checked.paths.channel[flows["first_hop"]]]
    flows["line_gbps"] = flows["rate_gbps"] = flows["target_gbps"] = line
    return flows


def settled(run: PacketRun) -> PacketRun:
    """Return the run with rules of the plain type if they are plain: see ``PLAIN``."""
    asked = {name: value for name, value in PLAIN.items() if name != "is_plain"}
    if any(run.rules[name][0] != value for name, value in asked.items()):
        return run
    rules = records(PLAIN_RULES, 1)
    for name in RULES.names or ():
        rules[name] = run.rules[name]
    rules["is_plain"] = True
    return run._replace(rules=rules)


def with_more_room(run: PacketRun) -> PacketRun:
    """Return the run with twice the room in every array that is nearly full."""
    clock = run.clock
    clock[FULL] = 0
    packets, later = run.packets, run.later
    if clock[N_FREE] < SPARE:
        old = packets.size
        packets = line_records(PACKET, 2 * old)
        packets[:old] = run.packets
        clock[N_FREE] += old
    if clock[N_LATER] + 2 * (SPARE + int(run.rules["fan_out"][0])) > later.size:
        later = np.concatenate([later, records(LATER, later.size)]).view(np.recarray)
    lanes, events = wider_lanes(run)
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
