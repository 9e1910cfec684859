"""A fabric seen from afar: switches and hosts gathered into the boxes that a figure draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric

__all__ = [
    "Bank",
    "Bundle",
    "Cell",
    "Column",
    "Grouped",
    "Pod",
    "bundles",
    "grouped",
    "is_alike",
    "one_group",
]

Rows = npt.NDArray[np.int64]

MAX_CELLS = 16
MAX_TOP_CELLS = 64
MAX_GROUP_CELLS = 32
MAX_SU_COLUMNS = 16
MAX_PLANES_BESIDE = 2


@dataclass(frozen=True, eq=False)
class Cell:
    """Switches drawn as one box: one switch, or all of one rail or group."""

    label: str
    rail: int
    rows: Rows
    is_later: bool


@dataclass(frozen=True, eq=False)
class Bank:
    """Switches of one tier and plane that stand together, as a strip of cells."""

    tier: int
    plane: int
    cells: tuple[Cell, ...]

    @property
    def n_switches(self) -> int:
        """Switches in all cells."""
        return sum(len(cell.rows) for cell in self.cells)


@dataclass(frozen=True, eq=False)
class Column:
    """Hosts that share leafs, with these leafs: one SU, or all SUs of a pod."""

    title: str
    hosts: Rows
    n_sus: int
    banks: tuple[Bank, ...]


@dataclass(frozen=True, eq=False)
class Pod:
    """Columns under their own spines."""

    title: str
    columns: tuple[Column, ...]
    spines: tuple[Bank, ...]


@dataclass(frozen=True, eq=False)
class Grouped:
    """All that a column figure draws.

    Parameters
    ----------
    pods
        Pods of a three-tier fabric; one without a frame otherwise.
    top
        Switches above all pods: cores of three tiers, spines of two, none else.
    planes
        Number of planes, and how many of them are drawn.
    by_su
        True where a column is one SU.
    """

    pods: tuple[Pod, ...]
    top: tuple[Bank, ...]
    planes: int
    planes_drawn: int
    by_su: bool
    tiers: int = field(default=2)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of all pods."""
        return tuple(column for pod in self.pods for column in pod.columns)


class Bundle(NamedTuple):
    """Links between two places, in one direction of reading: lower place first."""

    lower: int
    upper: int
    n_links: int
    gbps: float
    is_later: bool


def bundles(fabric: Fabric, place: npt.NDArray[np.int64], tiers: Iterable[int]) -> list[Bundle]:
    """Return the links of some tiers, counted by the two places that they join.

    Parameters
    ----------
    fabric
        The fabric.
    place
        int64[n_hosts + n_switches]: place of each vertex, -1 for those not drawn.
    tiers
        Link tiers to count.
    """
    links = fabric.links
    rows = np.flatnonzero(np.isin(links.tier, list(tiers)))
    ends = (fabric.port_vertex[links.port_a[rows]], fabric.port_vertex[links.port_b[rows]])
    a, b = place[ends[0]], place[ends[1]]
    kept = (a >= 0) & (b >= 0)
    key = np.stack(
        [a[kept], b[kept], links.gbps[rows][kept].astype(np.int64), links.stage[rows][kept]]
    )
    if not key.size:
        return []
    unique, count = np.unique(key, axis=1, return_counts=True)
    return [
        Bundle(int(low), int(high), int(n), float(gbps), bool(stage))
        for (low, high, gbps, stage), n in zip(unique.T, count, strict=True)
    ]


def grouped(fabric: Fabric) -> Grouped:
    """Return the fabric as pods, columns and banks."""
    switches = fabric.switches
    tiers = int(switches.tier.max())
    planes = int(switches.plane.max()) + 1
    drawn = planes if planes <= MAX_PLANES_BESIDE else 1
    n_sus = len(np.unique(switches.su[switches.tier == 1]))
    by_su = tiers < 3 or n_sus <= MAX_SU_COLUMNS
    block_of_su = _blocks(fabric)
    keys = sorted(set(block_of_su.values()))
    pods = [
        _pod(fabric, [su for su in block_of_su if block_of_su[su] == key], (number, drawn), by_su)
        for number, key in enumerate(keys, 1)
    ]
    top = [
        _bank(fabric, rows, tiers, plane, MAX_TOP_CELLS)
        for plane in range(drawn)
        if tiers > 1 and len(rows := _where(switches, tier=tiers, plane=plane))
    ]
    return Grouped(tuple(pods), tuple(top), planes, drawn, by_su, tiers)


def one_group(fabric: Fabric) -> Grouped:
    """Return the first group of a dragonfly or dragonfly+, alone."""
    switches, hosts = fabric.switches, fabric.hosts
    planes = int(switches.plane.max()) + 1
    rows = {tier: _where(switches, tier=tier, plane=0, pod=0) for tier in (1, 2)}
    host_rows = np.flatnonzero((hosts.pod == 0) & (hosts.role == 0))
    n_sus = len(np.unique(hosts.su[host_rows]))
    leafs = _bank(fabric, rows[1], 1, 0, MAX_GROUP_CELLS)
    column = Column(_("Group {number}").format(number=1), host_rows, n_sus, (leafs,))
    spines = (_bank(fabric, rows[2], 2, 0, MAX_GROUP_CELLS),) if len(rows[2]) else ()
    pod = Pod(column.title, (column,), spines)
    return Grouped((pod,), (), planes, 1, by_su=not spines, tiers=int(switches.tier.max()))


def _where(switches: Any, **wanted: int) -> Rows:
    mask = np.ones(len(switches), bool)
    for name, value in wanted.items():
        mask &= switches[name] == value
    return np.flatnonzero(mask)


def _blocks(fabric: Fabric) -> dict[int, int]:
    """Return the block of each SU: the lowest pod of its leafs; all in one below three tiers."""
    switches = fabric.switches
    leafs = np.flatnonzero(switches.tier == 1)
    sus = np.unique(switches.su[leafs])
    if switches.tier.max() < 3:
        return {int(su): 0 for su in sus}
    lowest = np.full(int(sus.max()) + 2, np.iinfo(np.int32).max)
    np.minimum.at(lowest, switches.su[leafs], switches.pod[leafs])
    return {int(su): int(lowest[su]) for su in sus}


def _pod(fabric: Fabric, sus: Sequence[int], which: tuple[int, int], by_su: bool) -> Pod:  # noqa: FBT001
    """Return a pod; `which` is its number, and the planes that are drawn."""
    number, drawn = which
    switches = fabric.switches
    if by_su:
        columns = [
            _column(fabric, [su], _("SU {number}").format(number=su + 1), drawn) for su in sus
        ]
    else:
        columns = [_column(fabric, sus, _("Pod {number}").format(number=number), drawn)]
    spines: list[Bank] = []
    if switches.tier.max() == 3:
        mine = np.isin(switches.su, sus) & (switches.tier == 1)
        pods = np.unique(switches.pod[mine])
        for plane in range(drawn):
            rows = _where(switches, tier=2, plane=plane)
            rows = rows[np.isin(switches.pod[rows], pods)]
            spines.append(_bank(fabric, rows, 2, plane, MAX_CELLS))
    return Pod(_("Pod {number}").format(number=number), tuple(columns), tuple(spines))


def _column(fabric: Fabric, sus: Sequence[int], title: str, drawn: int) -> Column:
    switches, hosts = fabric.switches, fabric.hosts
    host_rows = np.flatnonzero(np.isin(hosts.su, sus) & (hosts.role == 0))
    banks = []
    for plane in range(drawn):
        rows = _where(switches, tier=1, plane=plane)
        rows = rows[np.isin(switches.su[rows], sus)]
        banks.append(_bank(fabric, rows, 1, plane, MAX_CELLS))
    return Column(title, host_rows, len(sus), tuple(banks))


def _bank(fabric: Fabric, rows: Rows, tier: int, plane: int, most: int) -> Bank:
    """Return switches as cells: single ones if they are few, else by rail, by group, or as one."""
    switches = fabric.switches
    rails = switches.rail[rows]
    if len(rows) <= most:
        order = np.lexsort((rows, rails)) if tier < 3 else np.arange(len(rows))
        cells = [_single(fabric, int(row)) for row in rows[order]]
    elif 1 < len(np.unique(rails)) <= most:
        cells = [
            _cell(fabric, rows[rails == rail], f"r{rail}", int(rail)) for rail in np.unique(rails)
        ]
    else:
        groups = switches.group[rows]
        names = np.unique(groups)
        few = tier == 3 and 1 < len(names) <= most
        parts = [rows[groups == name] for name in names] if few else [rows]
        rail = int(rails[0]) if len(np.unique(rails)) == 1 else -1
        cells = [_cell(fabric, part, "", rail) for part in parts]
    return Bank(tier, plane, tuple(cells))


def _cell(fabric: Fabric, rows: Rows, label: str, rail: int) -> Cell:
    return Cell(label, rail, rows, bool((fabric.switches.stage[rows] > 0).all()))


def _single(fabric: Fabric, row: int) -> Cell:
    switches = fabric.switches
    rail = int(switches.rail[row])
    last = str(switches.name[row]).rsplit("-", 1)[-1]
    label = last.lstrip("0") if last.isdigit() else last if len(last) <= 3 else ""
    if rail >= 0 and switches.tier[row] == 1:
        label = f"r{rail}"
    return _cell(fabric, np.array([row], np.int64), label, rail)


def is_alike(columns: Sequence[Column], fabric: Fabric) -> bool:
    """Return whether columns have equal counts of hosts of each stage and of leafs."""

    def signature(column: Column) -> tuple[object, ...]:
        stages = np.bincount(fabric.hosts.stage[column.hosts], minlength=2).tolist()
        cells = [cell for bank in column.banks for cell in bank.cells]
        leafs = [(len(cell.rows), cell.rail, cell.is_later) for cell in cells]
        return (column.n_sus, *stages, *leafs)

    return len({signature(column) for column in columns}) <= 1
