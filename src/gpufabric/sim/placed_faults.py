"""Named faults put on a fabric: ports become channels, overrides go to the profile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels
from gpufabric.sim.array_checks import ArrayChecks
from gpufabric.sim.named_faults import KINDS, OVERRIDE, NamedFault, overrides_of
from gpufabric.sim.packet_checks import config_faults
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_fault_rows import AT_NIC, check_faults
from gpufabric.sim.packet_faults import BitErrors, PacketFault, PauseStorm, SlowHost, SmallMtu
from gpufabric.sim.packet_override import no_port, numbered, port_numbers
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.profile import Profile

__all__ = ["placed_faults", "with_overrides"]

SEEN_AT_ITS_END = (BitErrors, SmallMtu, SlowHost)
"""Faults of what comes to the port that is named."""
_FIRST = re.compile(r"(?:faults|overrides)\[(\d+)\]\.?(.*)")


def with_overrides(profile: Profile, named: Sequence[NamedFault], channels: Channels) -> Profile:
    """Return the profile with the overrides among the faults behind its own.

    Raises
    ------
    InputError
        If a value or name does not fit; all are told.
    """
    mine = [one for one in named if one.kind == OVERRIDE]
    if not mine:
        return profile
    overrides = overrides_of(mine)
    alone = replace(profile.config, overrides=overrides)
    faults = list(config_faults(alone))
    try:
        numbered(alone, channels)
    except InputError as error:
        faults += error.faults
    told = [_told(fault, mine, 0) for fault in faults if _FIRST.fullmatch(fault.where)]
    if told:
        raise InputError(told)
    every = (*profile.config.overrides, *overrides)
    return replace(profile, config=replace(profile.config, overrides=every))


def placed_faults(
    named: Sequence[NamedFault],
    channels: Channels,
    wires: Wires,
    config: PacketConfig,
    others: Sequence[PacketFault],
) -> tuple[PacketFault, ...]:
    """Return the faults as the engine takes them.

    Parameters
    ----------
    named
        The faults; overrides among them are left out.
    channels, wires
        The fabric.
    config
        The settings.
    others
        Links that fail beside, which they must not meet.

    Raises
    ------
    InputError
        If a port is none, or a value does not fit; all are told.
    """
    mine = [one for one in named if one.kind != OVERRIDE]
    if not mine:
        return ()
    number = port_numbers(channels)
    wrong = list(_port_faults(mine, number, wires))
    if wrong:
        raise InputError(wrong)
    found = tuple(_placed(one, number[one.port], wires, config) for one in mine)
    checks = ArrayChecks()
    check_faults(checks, (*others, *found), wires, config)
    if checks.faults:
        raise InputError([_told(fault, mine, len(others)) for fault in checks.faults])
    return found


def _port_faults(
    named: Sequence[NamedFault], number: Mapping[str, int], wires: Wires
) -> Iterator[Fault]:
    for one in named:
        if one.port not in number:
            yield no_port(one.port, list(number), one.at("port"))
        elif issubclass(KINDS[one.kind], AT_NIC) and wires.tail[number[one.port]] >= 0:
            what = _("{port} is a port of a switch.").format(port=one.port)
            yield Fault(one.at("port"), what, _("a port of a host"))


def _placed(one: NamedFault, leaving: int, wires: Wires, config: PacketConfig) -> PacketFault:
    kind = KINDS[one.kind]
    channel = int(wires.reverse[leaving]) if issubclass(kind, SEEN_AT_ITS_END) else leaving
    values = dict(one.values)
    if kind is PauseStorm:
        values.setdefault("traffic_class", config.data_class)
    fault: PacketFault = kind(channel=channel, **values)
    return fault


def _told(fault: Fault, named: Sequence[NamedFault], n_before: int) -> Fault:
    """Return a fault of the engine's checks in the words of who asked for it."""
    match = _FIRST.fullmatch(fault.where)
    assert match is not None
    at = int(match[1]) - n_before
    if at < 0:
        return replace(fault, where="--fail")
    name = "port" if match[2] == "channel" else match[2]
    where = named[at].at(name) if name else named[at].where.rstrip(".: ")
    return replace(fault, where=where)
