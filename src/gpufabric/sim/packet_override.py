"""Where an override holds: at which ports, for which classes; names turned into numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_problem import Wires
from gpufabric.sim.packet_switch_config import PortOverride

__all__ = ["no_port", "numbered", "places_of", "port_numbers"]


def places_of(wires: Wires, config: PacketConfig, override: PortOverride) -> NDArray[np.bool_]:
    """Return bool[n_channels, n_classes + 1]: ports and classes that send; PFC frames never.

    The inputs of the same ports are the rows of ``wires.reverse``.
    """
    ports = np.ones(wires.n_channels, np.bool_)
    if override.switches or override.ports:
        ports = np.isin(wires.tail, [int(switch) for switch in override.switches])
        ports[[int(port) for port in override.ports]] = True
    n_classes = len(config.classes)
    is_class = np.zeros(n_classes + 1, np.bool_)
    is_class[list(override.classes or range(n_classes))] = True
    return ports[:, None] & is_class


def numbered(config: PacketConfig, channels: Channels, name: str = "") -> PacketConfig:
    """Return the settings with the names in its overrides turned into a fabric's numbers.

    Parameters
    ----------
    config
        The settings.
    channels
        The fabric's channels.
    name
        Name of the profile, told with every fault.

    Raises
    ------
    InputError
        If a name is none of a switch or port of the fabric; all faults are told.
    """
    faults: list[Fault] = []
    overrides = []
    for at, one in enumerate(config.overrides):
        where = f"{name}: overrides[{at}]" if name else f"overrides[{at}]"
        switches = _switches(channels, one.switches, f"{where}.switches", faults)
        ports = _ports(channels, one.ports, f"{where}.ports", faults)
        overrides.append(replace(one, switches=switches, ports=ports))
    if faults:
        raise InputError(faults)
    return replace(config, overrides=tuple(overrides))


def _switches(
    channels: Channels, given: Sequence[int | str], where: str, faults: list[Fault]
) -> tuple[int, ...]:
    names = channels.fabric.switches.name
    found: list[int] = []
    for at, one in enumerate(given):
        if isinstance(one, int):
            found.append(one)
            continue
        rows = np.flatnonzero(names == one)
        if rows.size:
            found.append(int(rows[0]))
            continue
        what = _('there is no switch "{name}".').format(name=one[:64])
        faults.append(Fault(f"{where}[{at}]", what, "", nearest(one, names.tolist())))
    return tuple(found)


def _ports(
    channels: Channels, given: Sequence[int | str], where: str, faults: list[Fault]
) -> tuple[int, ...]:
    """Return the channels that leave the ports."""
    if all(isinstance(one, int) for one in given):
        return tuple(int(one) for one in given)
    number = port_numbers(channels)
    found: list[int] = []
    for at, one in enumerate(given):
        if isinstance(one, int):
            found.append(one)
        elif one in number:
            found.append(number[one])
        else:
            faults.append(no_port(one, list(number), f"{where}[{at}]"))
    return tuple(found)


def port_numbers(channels: Channels) -> dict[str, int]:
    """Return the channel that leaves each port, by the port's name, ``DEVICE[PORT]``."""
    names = (channels.name(at).split(" > ")[0] for at in range(channels.n_link_channels))
    return {name: at for at, name in enumerate(names)}


def no_port(name: str, names: Sequence[str], where: str) -> Fault:
    """Return the fault of a port that there is not, with the nearest that there is."""
    what = _('there is no port "{name}".').format(name=name[:64])
    remedy = _near(name, names)
    return Fault(where, what, "" if remedy else "DEVICE[PORT]", remedy)


def _near(name: str, names: Sequence[str]) -> str:
    """Return the port or device that is meant; a fabric has too many ports to try them all."""
    device = name.partition("[")[0]
    mine = [one for one in names if one.partition("[")[0] == device]
    return nearest(name, mine or list({one.partition("[")[0]: None for one in names}))
