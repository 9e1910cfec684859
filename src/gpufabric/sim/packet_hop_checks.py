"""Tables of next hops and the settings of routing checked."""

from __future__ import annotations

import numpy as np

from gpufabric.core.text import _
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_hops import HopTable
from gpufabric.sim.packet_problem import PacketProblem, Wires
from gpufabric.sim.packet_routing_config import MODES

__all__ = ["check_hops"]

MOST_SLOTS = 2**20


def check_hops(
    checks: ArrayChecks, problem: PacketProblem, wires: Wires, config: PacketConfig
) -> None:
    """Note tables that name what is not there, and settings that cannot be."""
    _check_routing(checks, config)
    if len(problem.hops_from_us) != max(0, len(problem.hops) - 1):
        what = _("{n} times for {tables} tables.").format(
            n=len(problem.hops_from_us), tables=len(problem.hops)
        )
        checks.fault("hops_from_us", what, _("one for each table after the first"))
    for at, us in enumerate(problem.hops_from_us):
        if not 0 <= us <= 1e11:
            what = _("the value is {value}.").format(value=us)
            checks.fault(f"hops_from_us[{at}]", what, _("0 to 1e11"))
    for at, table in enumerate(problem.hops):
        _check_table(checks, f"hops[{at}]", table, wires)
        if not np.array_equal(table.column, problem.hops[0].column):
            checks.fault(f"hops[{at}].column", _("it differs from that of the first table."))
    if problem.hops and not checks.faults:
        _check_targets(checks, problem, wires)


def _check_routing(checks: ArrayChecks, config: PacketConfig) -> None:
    routing = config.routing
    if routing.mode not in MODES:
        what = _("there is no mode {mode}.").format(mode=routing.mode)
        checks.fault("routing.mode", what, ", ".join(MODES))
    if any(not 0 <= one < len(config.classes) for one in routing.classes):
        checks.fault("routing.classes", _("a class is not there."))
    for name, most in (("flowlet_gap_us", 1e9), ("flowlet_slots", MOST_SLOTS)):
        value, least = getattr(routing, name), 1 if name == "flowlet_slots" else 0
        if not least <= value <= most:
            what = _("the value is {value}.").format(value=value)
            expected = _("{least} to {most}").format(least=least, most=most)
            checks.fault(f"routing.{name}", what, expected)


def _check_table(checks: ArrayChecks, where: str, table: HopTable, wires: Wires) -> None:
    n_switches = int(max(wires.tail.max(initial=-1), wires.head.max(initial=-1))) + 1
    before = len(checks.faults)
    channel = checks.ints(f"{where}.channel", table.channel, None, 0, wires.n_channels)
    first = checks.csr(f"{where}.first", table.first, channel.size, None)
    checks.ints(f"{where}.column", table.column, n_switches, -1, table.n_columns)
    checks.ints(f"{where}.group", table.group.ravel(), None, -1, max(0, first.size - 1))
    if table.group.shape[0] != n_switches:
        what = _("it has {n} rows.").format(n=table.group.shape[0])
        checks.fault(f"{where}.group", what, _("{n} rows, one a switch").format(n=n_switches))
    if table.seed is not None:
        checks.ints(f"{where}.seed", table.seed, n_switches, 0, 2**32)
    if len(checks.faults) > before:
        return
    switch, column = np.nonzero(table.group >= 0)
    group = table.group[switch, column]
    empty = first[group] == first[group + 1]
    wrong = wires.tail[channel[np.minimum(first[group], channel.size - 1)]] != switch
    if (empty | wrong).any():
        at = int(np.argmax(empty | wrong))
        what = _("group {group} of switch {switch} has no channel that leaves it.").format(
            group=group[at], switch=switch[at]
        )
        checks.fault(f"{where}.group", what)


def _check_targets(checks: ArrayChecks, problem: PacketProblem, wires: Wires) -> None:
    """Note flows whose ends hang on a switch without a column."""
    for where, rows in (("paths", problem.paths), ("back", problem.back)):
        target = wires.tail[rows.channel[np.asarray(rows.first[1:]) - 1]]
        wrong = (target >= 0) & (problem.hops[0].column[target] < 0)
        if wrong.any():
            at = int(np.argmax(wrong))
            what = _("the tables have no column for switch {switch}.").format(switch=target[at])
            checks.fault(f"{where}[{at}]", what)
