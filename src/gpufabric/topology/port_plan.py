"""How many ports a switch offers at a speed, and which port sits in which cage and lane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["PortPlan", "SwitchPorts", "plan_ports", "switch_ports"]


class _Ports(Protocol):
    @property
    def count(self) -> int: ...
    @property
    def gbps(self) -> float: ...
    @property
    def cages(self) -> int: ...
    @property
    def breakouts(self) -> Mapping[float, int]: ...


class _Switch(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def managed(self) -> bool | None: ...
    @property
    def ports(self) -> _Ports: ...


@dataclass(frozen=True)
class SwitchPorts:
    """What sizing needs to know of a switch model.

    Parameters
    ----------
    name
        Catalogue name.
    count
        Native ports.
    gbps
        Rate of a native port [Gb/s].
    per_cage
        Native ports in one cage (2 for a twin-port OSFP).
    splits
        Logical ports one native port gives at a lower rate [Gb/s -> ports].
    managed
        True if it can run the subnet manager itself.
    """

    name: str
    count: int
    gbps: float
    per_cage: int
    splits: Mapping[float, int]
    managed: bool = False

    def split_at(self, gbps: float) -> int:
        """Return how many logical ports of `gbps` one native port gives; 0 if it is too slow.

        A rate below the native one that has no breakout takes a whole native port.
        """
        if gbps > self.gbps:
            return 0
        if gbps == self.gbps:
            return 1
        return self.splits.get(gbps, 1)

    def count_at(self, gbps: float) -> int:
        """Return how many logical ports of `gbps` the whole switch gives."""
        return self.count * self.split_at(gbps)

    def rates(self) -> tuple[float, ...]:
        """Return the rates it can run its ports at, fastest first [Gb/s]."""
        return (self.gbps, *sorted((r for r in self.splits if r < self.gbps), reverse=True))

    def fits(self, segments: Sequence[tuple[float, int]]) -> bool:
        """Tell whether the (rate, ports) segments fit together; a native port is never mixed."""
        need = 0
        for gbps, ports in segments:
            split = self.split_at(gbps)
            if ports and not split:
                return False
            need += -(-ports // split) if ports else 0
        return need <= self.count


def switch_ports(switch: _Switch) -> SwitchPorts:
    """Return the port facts of a catalogue switch."""
    ports = switch.ports
    per_cage = max(1, ports.count // ports.cages) if ports.cages else 1
    splits = {float(rate): int(n) for rate, n in ports.breakouts.items()}
    managed = switch.managed is True
    return SwitchPorts(switch.name, ports.count, float(ports.gbps), per_cage, splits, managed)


class PortPlan(NamedTuple):
    """The logical ports of one switch in order, the same for every switch of its kind."""

    cage: npt.NDArray[np.int16]
    """int16[n_ports]: cage, from 0."""
    lane: npt.NDArray[np.int8]
    """int8[n_ports]: lane in the cage, from 0."""
    gbps: npt.NDArray[np.float32]
    """float32[n_ports]: rate [Gb/s]."""
    first: tuple[int, ...]
    """First port of each segment asked for."""


def plan_ports(switch: SwitchPorts, segments: Sequence[tuple[float, int]]) -> PortPlan:
    """Lay the segments (rate, ports) on native ports in order; what remains stays native.

    A breakout that a segment does not fill leaves its last lanes as free ports.

    Raises
    ------
    ValueError
        If the segments do not fit the switch; the sizing must have checked that.
    """
    if not switch.fits(segments):
        raise ValueError(f"{switch.name}: {segments} do not fit {switch.count} ports")
    cage: list[int] = []
    lane: list[int] = []
    rate: list[float] = []
    first: list[int] = []
    native = 0
    lanes_in_cage: Counter[int] = Counter()

    def add_native(gbps: float) -> None:
        place = native // switch.per_cage
        for _ in range(switch.split_at(gbps)):
            cage.append(place)
            lane.append(lanes_in_cage[place])
            rate.append(gbps)
            lanes_in_cage[place] += 1

    for gbps, ports in segments:
        first.append(len(cage))
        for _ in range(-(-ports // switch.split_at(gbps)) if ports else 0):
            add_native(gbps)
            native += 1
    while native < switch.count:
        add_native(switch.gbps)
        native += 1
    return PortPlan(
        np.array(cage, np.int16),
        np.array(lane, np.int8),
        np.array(rate, np.float32),
        tuple(first),
    )
