"""The parameters of congestion control, checked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_control import Cct, Control, ControlKind, Dcqcn, Hpcc, Rccc, Swift
from gpufabric.sim.packet_messages import Operation

__all__ = ["check_controls", "check_reads"]

MOST_CONTROLS = 64
MOST_DELAY = 16_384  # of a table: the multiplier has 14 bits
MOST_BYTES = 2**31 - 1  # windows are int32

DCQCN_RANGES = {
    "dce_tcp_rtt_us": (1e-3, 1e9),
    "rate_reduce_monitor_period_us": (1e-3, 1e9),
    "rpg_time_reset_us": (1e-3, 1e9),
    "rpg_min_rate_gbps": (1e-6, 1e6),
    "dce_tcp_g": (0, 1),
    "initial_alpha_value": (0, 1),
    "rpg_byte_reset": (0, 2**40),
    "rpg_threshold": (0, 1000),
    "rpg_ai_rate_gbps": (0, 1e6),
    "rpg_hai_rate_gbps": (0, 1e6),
    "rpg_min_dec_fac": (0, 1),
    "rate_to_set_on_first_cnp_gbps": (0, 1e6),
    "min_time_between_cnps_us": (0, 1e9),
    "first_check_later_ns": (0, 1e9),
}
HPCC_RANGES = {
    "base_rtt_us": (0, 1e6),
    "target_utilization": (1e-3, 1),
    "additive_gbps": (0, 1e6),
    "most_stages": (0, 1000),
    "min_rate_gbps": (1e-6, 1e6),
    "byte_unit": (1, 2**20),
    "queue_unit": (1, 2**20),
    "data_bytes": (0, 1000),
    "ack_bytes": (0, 1000),
}
SWIFT_RANGES = {
    "target_trips": (0, 1000),
    "hop_us": (0, 1e6),
    "scale_us": (0, 1e6),
    "scale_least_window": (1e-6, 1e6),
    "scale_most_window": (1e-6, 1e6),
    "additive_packets": (0, 1e6),
    "beta": (0, 1),
    "most_cut": (0, 0.999),
    "least_window": (1e-6, 1),
}
RCCC_RANGES: dict[str, tuple[float, float]] = {
    "initial_credit_bytes": (0, MOST_BYTES),
    "credit_bytes": (1, MOST_BYTES),
    "credit_rate": (1e-3, 1),
}


def check_controls(checks: ArrayChecks, config: PacketConfig) -> None:
    """Note every parameter that is out of its range, and two answers to one question."""
    if config.controls:
        if len(config.controls) > MOST_CONTROLS:
            what = _("{n} controls.").format(n=len(config.controls))
            checks.fault("controls", what, _("at most {most}").format(most=MOST_CONTROLS))
        if config.dcqcn is not None:
            _told_twice(checks, "dcqcn")
        if config.transport.window_bytes or config.transport.window_follows_rate:
            _told_twice(checks, "transport.window_bytes")
    elif config.dcqcn is not None:
        _check_ranges(checks, "dcqcn", config.dcqcn, DCQCN_RANGES)
    for at, control in enumerate(config.controls):
        _check_control(checks, f"controls[{at}]", control)


def check_reads(
    checks: ArrayChecks,
    operation: NDArray[np.int32],
    control: NDArray[np.int32],
    config: PacketConfig,
) -> None:
    """Note READs whose control needs ACKs, which they have none of."""
    needs_acks = [
        one.window_bytes > 0 or one.kind not in {ControlKind.NONE, ControlKind.DCQCN}
        for one in config.flow_controls
    ]
    wrong = (operation == Operation.READ) & np.array(needs_acks)[control]
    if wrong.any():
        at = int(np.argmax(wrong))
        what = _("a READ has no ACKs, which its control {control} needs.").format(
            control=int(control[at])
        )
        checks.fault(f"operation[{at}]", what, _("a control without a window, or DCQCN"))


def _told_twice(checks: ArrayChecks, where: str) -> None:
    what = _("it is set, and so are controls.")
    checks.fault(where, what, remedy=_("Give each control what it needs."))


def _check_control(checks: ArrayChecks, where: str, control: Control) -> None:
    _check_ranges(checks, where, control, {"window_bytes": (0, MOST_BYTES)})
    if control.kind is ControlKind.DCQCN:
        _check_ranges(checks, f"{where}.dcqcn", control.dcqcn, DCQCN_RANGES)
    elif control.kind is ControlKind.HPCC:
        _check_ranges(checks, f"{where}.hpcc", control.hpcc, HPCC_RANGES)
    elif control.kind is ControlKind.SWIFT:
        _check_ranges(checks, f"{where}.swift", control.swift, SWIFT_RANGES)
        if not control.swift.scale_least_window < control.swift.scale_most_window:
            what = _("it is not below scale_most_window.")
            checks.fault(f"{where}.swift.scale_least_window", what)
    elif control.kind is ControlKind.RCCC:
        _check_ranges(checks, f"{where}.rccc", control.rccc, RCCC_RANGES)
    elif control.kind is ControlKind.CCT:
        _check_cct(checks, f"{where}.cct", control.cct)


def _check_cct(checks: ArrayChecks, where: str, cct: Cct) -> None:
    if not cct.delays or any(not 0 <= delay < MOST_DELAY for delay in cct.delays):
        expected = _("one entry or more, {least} to {most}").format(least=0, most=MOST_DELAY)
        checks.fault(f"{where}.delays", _("the table is wrong."), expected)
    ranges = {
        "ccti_increase": (0, 255),
        "ccti_min": (0, max(0, len(cct.delays) - 1)),
        "ccti_timer_us": (1e-3, 1e6),
    }
    _check_ranges(checks, where, cct, ranges)


def _check_ranges(
    checks: ArrayChecks,
    where: str,
    section: Control | Cct | Dcqcn | Hpcc | Rccc | Swift,
    ranges: dict[str, tuple[float, float]],
) -> None:
    for name, (least, most) in ranges.items():
        value = getattr(section, name)
        if not least <= value <= most:
            what = _("the value is {value}.").format(value=value)
            expected = _("{least} to {most}").format(least=least, most=most)
            checks.fault(f"{where}.{name}", what, expected)
