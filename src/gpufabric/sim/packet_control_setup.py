"""Congestion control turned into the arrays that the kernels run on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.kernels.packet_after import AFTER
from gpufabric.kernels.packet_control_structs import (
    CCT,
    CONTROL,
    DCQCN,
    GRANTER,
    HPCC,
    NOTE,
    PACING,
    RCCC,
    STAMP,
    SWIFT,
    WINDOW,
)
from gpufabric.kernels.packet_structs import PacketRun
from gpufabric.kernels.structs import Records, records
from gpufabric.sim.packet_checks import CheckedPackets
from gpufabric.sim.packet_config import Control, ControlKind, PacketConfig

__all__ = [
    "ControlRecords",
    "control_records",
    "delay_tables",
    "header_bytes",
    "host_rules",
    "more_notes",
    "pacing_records",
]

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

KIND = {
    ControlKind.NONE: WINDOW,
    ControlKind.DCQCN: DCQCN,
    ControlKind.CCT: CCT,
    ControlKind.SWIFT: SWIFT,
    ControlKind.HPCC: HPCC,
    ControlKind.RCCC: RCCC,
}
KINDS_OF_MARKS = {ControlKind.NONE, ControlKind.DCQCN, ControlKind.CCT}
PS = 1_000_000  # in a microsecond


class ControlRecords(NamedTuple):
    """What a run needs for congestion control beside the flows."""

    pacing: Records
    notes: Records
    stamps: Records
    granters: Records
    past: Records
    sacked: NDArray[np.int8]
    kept: NDArray[np.int8]
    after: Records
    released_first: Longs
    released: NDArray[np.int32]


def _after_arrays(checked: CheckedPackets) -> tuple[Records, Longs, NDArray[np.int32]]:
    """Return AFTER[n_flows] and, row by row, which flows wait for each; empty if none waits."""
    after = checked.after
    if after is None:
        return records(AFTER, 0), np.zeros(0, np.int64), np.zeros(0, np.int32)
    rows = records(AFTER, checked.n_flows)
    rows["n_left"] = np.diff(after.first)
    rows["delay_ps"] = after.delay_ps
    rows["start_ps"] = checked.start_ps
    rows["started_ps"] = -1
    return rows, *after.released()


def host_rules(rules: Records, checked: CheckedPackets, control: ControlRecords, room: int) -> None:
    """Set the rules that follow from what `control` holds for `room` packets."""
    rules["most_stamps"] = control.stamps.size // room
    if checked.after is not None:
        rules["until_acked"] = checked.after.until_acked
        rules["fan_out"] = np.diff(control.released_first).max(initial=0)


def header_bytes(config: PacketConfig) -> tuple[Longs, Longs]:
    """Return int64[n_controls] twice: what each control adds to data packets and ACKs [byte]."""
    extra = [one.header_bytes for one in config.flow_controls]
    data, ack = np.array(extra, np.int64).T
    return data, ack


def control_records(config: PacketConfig, n_lanes: int) -> tuple[Records, int]:
    """Return CONTROL[n_controls] and how many lanes there are now; the first DCQCN takes three."""
    controls = config.flow_controls
    rows = records(CONTROL, len(controls))
    for name in ("lane_alpha", "lane_decrease", "lane_increase"):
        rows[name] = -1
    has_lanes = False
    for row, control in zip(rows, controls, strict=True):
        row["kind"] = KIND[control.kind]
        row["sends_cnps"] = control.kind in KINDS_OF_MARKS
        row["window_follows_rate"] = control.window_follows_rate
        if control.kind is ControlKind.DCQCN:
            _set_dcqcn(row, control)
            if not has_lanes:
                row["lane_alpha"], row["lane_decrease"] = n_lanes, n_lanes + 1
                row["lane_increase"] = n_lanes + 2
                n_lanes += 3
                has_lanes = True
        elif control.kind is ControlKind.HPCC:
            _set_hpcc(row, control)
        elif control.kind is ControlKind.SWIFT:
            _set_swift(row, control)
        elif control.kind is ControlKind.RCCC:
            each = control.rccc.credit_bytes // config.transport.mtu_bytes
            row["credit_packets"] = max(1, each)
        elif control.kind is ControlKind.CCT:
            row["alpha_ps"] = round(control.cct.ccti_timer_us * PS)
            row["cct_increase"], row["cct_min"] = control.cct.ccti_increase, control.cct.ccti_min
            row["cct_limit"] = len(control.cct.delays) - 1
    return rows, n_lanes


def _set_dcqcn(row: np.void, control: Control) -> None:
    dcqcn = control.dcqcn
    row["cnp_gap_ps"] = round(dcqcn.min_time_between_cnps_us * PS)
    row["alpha_ps"] = round(dcqcn.dce_tcp_rtt_us * PS)
    row["decrease_ps"] = round(dcqcn.rate_reduce_monitor_period_us * PS)
    row["shortens_waits"] = dcqcn.shortens_waits
    row["check_later_ps"] = round(dcqcn.first_check_later_ns * 1000)
    row["increase_ps"] = round(dcqcn.rpg_time_reset_us * PS)
    row["byte_reset"], row["threshold"] = dcqcn.rpg_byte_reset, dcqcn.rpg_threshold
    row["clamps_target"] = dcqcn.clamp_tgt_rate
    row["g"], row["initial_alpha"] = dcqcn.dce_tcp_g, dcqcn.initial_alpha_value
    row["ai_gbps"], row["hai_gbps"] = dcqcn.rpg_ai_rate_gbps, dcqcn.rpg_hai_rate_gbps
    row["min_gbps"], row["min_factor"] = dcqcn.rpg_min_rate_gbps, dcqcn.rpg_min_dec_fac
    row["first_gbps"] = dcqcn.rate_to_set_on_first_cnp_gbps


def _set_hpcc(row: np.void, control: Control) -> None:
    hpcc = control.hpcc
    row["window_follows_rate"] = 1
    row["target"], row["ai_gbps"] = hpcc.target_utilization, hpcc.additive_gbps
    row["most_stages"], row["min_gbps"] = hpcc.most_stages, hpcc.min_rate_gbps
    row["reacts_fast"] = hpcc.reacts_fast
    row["byte_unit"], row["queue_unit"] = hpcc.byte_unit, hpcc.queue_unit


def _set_swift(row: np.void, control: Control) -> None:
    swift = control.swift
    least, most = 1 / math.sqrt(swift.scale_most_window), 1 / math.sqrt(swift.scale_least_window)
    scale_ps = swift.scale_us * PS / (most - least)
    row["target"], row["hop_ps"] = swift.target_trips, round(swift.hop_us * PS)
    row["scale_ps"], row["scale_less_ps"] = scale_ps, scale_ps * least
    row["scale_most_ps"] = swift.scale_us * PS
    row["ai_gbps"], row["beta"] = swift.additive_packets, swift.beta
    row["most_cut"], row["least_window"] = swift.most_cut, swift.least_window


def pacing_records(
    checked: CheckedPackets, config: PacketConfig, flows: Records, delay_ps: Floats, room: int
) -> ControlRecords:
    """Return what flows and packets carry, and set the windows of `flows` that a trip fills."""
    kinds = np.array([KIND[one.kind] for one in config.flow_controls])
    n_stamps = 0
    if (kinds == HPCC).any():
        n_stamps = max(1, int(np.diff(checked.paths.first).max(initial=1)) - 1)
    most_apart = config.transport.most_apart_packets
    ring = np.zeros(flows.size * most_apart, np.int8)
    if (kinds <= DCQCN).all() and not most_apart:
        none, granters = records(STAMP, 0), _granters(checked, kinds)
        bare = records(PACING, 1), records(NOTE, 1), none, granters, none
        return ControlRecords(*bare, ring, ring, *_after_arrays(checked))
    pacing = records(PACING, flows.size)
    pacing["base_rtt_ps"] = _base_rtt_ps(checked, config, delay_ps)
    for at, control in enumerate(config.flow_controls):
        if control.kind is ControlKind.HPCC:
            of_class = flows["control"] == at
            if control.hpcc.base_rtt_us > 0:
                pacing["base_rtt_ps"][of_class] = round(control.hpcc.base_rtt_us * PS)
            trip = (pacing["base_rtt_ps"] * flows["line_gbps"] / 8000).astype(np.int64)
            if control.window_bytes == 0:
                flows["window"][of_class] = np.clip(trip, 1, 2**31 - 1)[of_class]
            pacing["base_gbps"][of_class] = flows["line_gbps"][of_class]
            pacing["load"][of_class] = 1.0
        elif control.kind is ControlKind.SWIFT:
            _begin_swift(checked, config, at, flows, pacing)
        elif control.kind is ControlKind.RCCC:
            _begin_rccc(checked, config, at, flows, pacing)
    notes = records(NOTE, room)
    notes["n_stamps"] = -1
    return ControlRecords(
        pacing,
        notes,
        records(STAMP, room * n_stamps),
        _granters(checked, kinds),
        records(STAMP, flows.size * n_stamps),
        ring,
        ring.copy(),
        *_after_arrays(checked),
    )


def _begin_swift(
    checked: CheckedPackets, config: PacketConfig, of_class: int, flows: Records, pacing: Records
) -> None:
    """Let flows of a class begin with the window of a base round trip, and never have twice it."""
    here, mtu = flows["control"] == of_class, config.transport.mtu_bytes
    trip = pacing["base_rtt_ps"] * flows["line_gbps"] / 8000 / mtu
    given = config.flow_controls[of_class].window_bytes / mtu
    most = np.maximum(1.0, np.full_like(trip, given) if given > 0 else 2 * trip)
    pacing["base_gbps"][here] = most[here]
    pacing["load"][here] = np.minimum(np.maximum(1.0, trip), most)[here]
    flows["window"][here] = pacing["load"].astype(np.int64)[here] * mtu
    pacing["n_stamps"] = np.diff(checked.paths.first)[checked.path[checked.pairs]] - 1
    pacing["cut_ps"] = -(2**61)


def _begin_rccc(
    checked: CheckedPackets, config: PacketConfig, at: int, flows: Records, pacing: Records
) -> None:
    """Set what flows may send without credit, and how early and how fast they are granted more."""
    mine, rccc = flows["control"] == at, config.flow_controls[at].rccc
    headers, mtu = config.headers, config.transport.mtu_bytes
    wire_bytes = mtu + headers.data_bytes + headers.gap_bytes
    last = checked.paths.first[checked.path[checked.pairs] + 1] - 1
    gbps = checked.wires.gbps[checked.paths.channel[last]]
    packet_ps = (wire_bytes * 8000 / np.minimum(flows["line_gbps"], gbps)).astype(np.int64)
    wait_ps = (wire_bytes * 8000 / (gbps * rccc.credit_rate)).astype(np.int64)
    trip_packets = -(-pacing["base_rtt_ps"] // packet_ps)
    initial = trip_packets
    if rccc.initial_credit_bytes:
        initial = np.full_like(trip_packets, -(-rccc.initial_credit_bytes // mtu))
    pacing["wait_ps"][mine] = wait_ps[mine]
    pacing["base_rtt_ps"][mine] = (trip_packets * wait_ps)[mine]
    pacing["initial"][mine] = initial[mine]
    if not checked.has_messages:
        pacing["credit"][mine] = initial[mine]
        flows["limit"][mine] = np.minimum(initial, flows["n_packets"])[mine]


def _granters(checked: CheckedPackets, kinds: NDArray[np.int64]) -> Records:
    """Return GRANTER[n_channels], or none where no flow class is granted credit."""
    granters = records(GRANTER, checked.wires.n_channels if (kinds == RCCC).any() else 0)
    granters["first"] = -1
    return granters


def _base_rtt_ps(checked: CheckedPackets, config: PacketConfig, delay_ps: Floats) -> Longs:
    """Time of a full packet over the path and of its ACK back, nothing else under way."""
    headers = config.headers
    data_extra, ack_extra = header_bytes(config)
    data = config.transport.mtu_bytes + headers.data_bytes + data_extra + headers.gap_bytes
    ack = headers.ack_bytes + ack_extra + headers.gap_bytes
    there, flat = _path_ps(checked, checked.paths.first, checked.paths.channel, delay_ps)
    back, flat_back = _path_ps(checked, checked.back.first, checked.back.channel, delay_ps)
    control, path = checked.control[checked.pairs], checked.path[checked.pairs]
    data_ps = data[control] * there[path]
    ack_ps = ack[control] * back[path]
    total = data_ps + ack_ps + (flat + flat_back)[path]
    rounded: Longs = np.maximum(1, total).astype(np.int64)
    return rounded


def _path_ps(
    checked: CheckedPackets, first: Longs, channel: NDArray[np.int32], delay_ps: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Time for each byte on the wire, and time whatever the size, of each row [ps]."""
    row = np.repeat(np.arange(first.size - 1), np.diff(first))
    per_byte, per_packet = np.zeros(first.size - 1), np.zeros(first.size - 1)
    np.add.at(per_byte, row, 8000 / checked.wires.gbps[channel])
    np.add.at(per_packet, row, delay_ps[channel])
    return per_byte, per_packet


def more_notes(run: PacketRun, n_packets: int) -> tuple[Records, Records]:
    """Return notes and stamps for `n_packets` packets, if there are any."""
    if run.notes.size <= 1:
        return run.notes, run.stamps
    notes, stamps = (
        records(NOTE, n_packets),
        records(STAMP, n_packets * int(run.rules["most_stamps"][0])),
    )
    notes["n_stamps"] = -1
    notes[: run.notes.size] = run.notes
    stamps[: run.stamps.size] = run.stamps
    return notes, stamps


def delay_tables(config: PacketConfig, flows: Records) -> NDArray[np.float64]:
    """Return float64[n_controls, n_entries] and set where flows begin; no entries without CCT."""
    controls = config.flow_controls
    rows = [one.cct.delays if one.kind is ControlKind.CCT else () for one in controls]
    cct = np.zeros((len(controls), max(len(row) for row in rows)))
    for at, (row, control) in enumerate(zip(rows, controls, strict=True)):
        cct[at, : len(row)] = row
        if row:
            mine = flows["control"] == at
            flows["cct_index"][mine] = control.cct.ccti_min
            flows["rate_gbps"][mine] /= 1.0 + row[control.cct.ccti_min]
    return cct
