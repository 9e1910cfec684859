"""The bill of materials as data: lines with quantity, spares, price, power and their sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from gpufabric.catalog.groups import Price, Range, Sourced
from gpufabric.topology.decision import Decision

__all__ = [
    "SECTIONS",
    "Bill",
    "BillLine",
    "BillPower",
    "Section",
    "UnitPower",
    "UnitPrice",
    "in_order",
    "part_power",
    "sourced_power",
    "unit_price",
    "with_later",
]

Section = Literal["hosts", "compute", "storage", "management"]

SECTIONS: tuple[Section, ...] = ("hosts", "compute", "storage", "management")
"""Hosts with their NICs; the compute fabric; the storage network; the out-of-band network."""


@dataclass(frozen=True)
class UnitPrice:
    """Price of one piece, with where it comes from.

    Parameters
    ----------
    low_usd, mid_usd, high_usd
        The range that the sources give [USD].
    source, date, kind
        As in the catalogue.
    note
        What a reader must know about it.
    """

    low_usd: float
    mid_usd: float
    high_usd: float
    source: str
    date: str
    kind: str
    note: str = ""


@dataclass(frozen=True)
class UnitPower:
    """Power of one piece, with where it comes from.

    Parameters
    ----------
    typical_w, max_w
        Power [W]; None where unknown.
    source, date, kind
        As in the catalogue.
    is_in_typical, is_in_max
        True if the figure of another line holds this one already: that of the host, or that of a
        switch "with active cables". Sums leave it out.
    """

    typical_w: float | None
    max_w: float | None
    source: str
    date: str
    kind: str
    is_in_typical: bool = False
    is_in_max: bool = False


@dataclass(frozen=True)
class BillLine:
    """One line of the bill.

    Parameters
    ----------
    section
        Which network or the hosts.
    category
        Kind of thing: ``host``, ``nic``, ``switch``, ``transceiver``, ``dac``, ``acc``, ``aec``,
        ``aoc``, ``fibre``, ``splitter``, ``manager`` or ``cat6``.
    use
        Where it goes: ``leaf``, ``spine``, ``host-end``, ``switch-end``, ``leaf_spine`` ….
    name, title
        Catalogue name, and the name as its maker writes it.
    quantity, later
        Pieces today, and pieces bought on top when the cluster grows.
    spares
        Pieces to keep in store beside today's.
    length_m
        Length of a cable [m]; None for what has none.
    price, power
        Of one piece; None where unknown.
    included_in
        Category whose price holds that of this line; empty where it is paid apart.
    note
        What the quantity rests on.
    """

    section: Section
    category: str
    use: str
    name: str
    title: str
    quantity: int
    later: int = 0
    spares: int = 0
    length_m: float | None = None
    price: UnitPrice | None = None
    power: UnitPower | None = None
    included_in: str = ""
    note: str = ""

    @property
    def is_priced(self) -> bool:
        """Whether the line adds to a total, or rightly adds nothing."""
        return self.price is not None or bool(self.included_in)


@dataclass(frozen=True)
class BillPower:
    """Power of some lines.

    Parameters
    ----------
    typical_w, max_w
        Sums over the lines whose figure is known [W].
    n_unknown
        Lines that are left out of either sum because no figure is known.
    """

    typical_w: float
    max_w: float
    n_unknown: int


@dataclass(frozen=True)
class Bill:
    """The bill of materials of one candidate.

    Parameters
    ----------
    lines
        By section, then as a buyer reads it: devices, modules, cables.
    decisions
        What the quantities rest on; warnings are marked.
    """

    lines: tuple[BillLine, ...]
    decisions: tuple[Decision, ...]

    def of(
        self, section: str | None = None, category: str | None = None, use: str | None = None
    ) -> tuple[BillLine, ...]:
        """Return the lines of a section, category and use; None takes every one."""
        return tuple(
            line
            for line in self.lines
            if section in (None, line.section)
            and category in (None, line.category)
            and use in (None, line.use)
        )

    def count(
        self, section: str | None = None, category: str | None = None, use: str | None = None
    ) -> int:
        """Return today's pieces of a section, category and use, without spares."""
        return sum(line.quantity for line in self.of(section, category, use))

    def power(self, *sections: str) -> BillPower:
        """Return the power of today's pieces of some sections, of all where none is named."""
        typical_w = max_w = 0.0
        n_unknown = 0
        for line in self.lines:
            if (sections and line.section not in sections) or line.category in _UNPOWERED:
                continue
            power = line.power
            if power is None or power.typical_w is None or power.max_w is None:
                n_unknown += 1
            if power is not None and not power.is_in_typical:
                typical_w += line.quantity * (power.typical_w or 0.0)
            if power is not None and not power.is_in_max:
                max_w += line.quantity * (power.max_w or 0.0)
        return BillPower(typical_w, max_w, n_unknown)


_UNPOWERED = frozenset({"fibre", "splitter", "cat6"})
"""Categories that draw no power."""


def unit_price(price: Price | None, length_m: float | None = None) -> UnitPrice | None:
    """Return the price of one piece, `length_m` long; None where unknown."""
    if price is None:
        return None
    low, mid, high = price.at(length_m or 0.0)
    return UnitPrice(
        round(low, 2),
        round(mid, 2),
        round(high, 2),
        price.source,
        price.date,
        price.kind,
        price.note or "",
    )


def part_power(
    power: Range | None, *, is_in_typical: bool = False, is_in_max: bool = False, ends: int = 1
) -> UnitPower | None:
    """Return the power of a module, or of the `ends` of a cable; None where unknown."""
    if power is None:
        return None
    return UnitPower(
        ends * power.value,
        ends * power.high,
        power.source,
        power.date,
        power.kind,
        is_in_typical,
        is_in_max,
    )


def sourced_power(
    typical_w: float | None,
    max_w: float | None,
    group: Sourced | None,
    *,
    is_assumed: bool,
    is_included: bool = False,
) -> UnitPower | None:
    """Return the power of a device by the catalogue's group or the rule that takes its place.

    It is marked where part of it is assumed, and None where nothing is known.
    """
    if group is None or (typical_w is None and max_w is None):
        return None
    kind = "assumed" if is_assumed else group.kind
    return UnitPower(typical_w, max_w, group.source, group.date, kind, is_included, is_included)


def in_order(lines: Iterable[BillLine]) -> tuple[BillLine, ...]:
    """Return the lines with something to buy, by section; the order within stays."""
    kept = [line for line in lines if line.quantity or line.later]
    return tuple(sorted(kept, key=lambda line: SECTIONS.index(line.section)))


def with_later(today: BillLine, total: int) -> BillLine:
    """Return a line whose later pieces bring it to `total`."""
    return replace(today, later=max(0, total - today.quantity))
