"""Capital: what the pieces of a bill cost, as ranges, per GPU, and as a share of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gpufabric.core.text import _
from gpufabric.topology.bill import SECTIONS, Bill, BillLine

__all__ = ["Amount", "Capital", "Share", "amount_of", "capital", "range_note"]

Count = Literal["quantity", "spares", "later"]

CABLES = frozenset({"dac", "acc", "aec", "aoc", "fibre", "splitter", "cat6"})
"""Categories of a bill that count as cables."""


@dataclass(frozen=True)
class Amount:
    """A sum of money, as the range of its parts' prices.

    Parameters
    ----------
    low_usd, mid_usd, high_usd
        Sum of all low, middle and high prices [USD].
    n_unpriced
        Lines of the bill whose price is unknown: the sums are lower bounds if there are any.
    """

    low_usd: float
    mid_usd: float
    high_usd: float
    n_unpriced: int = 0

    @property
    def is_lower_bound(self) -> bool:
        """Whether something is missing in the sums."""
        return self.n_unpriced > 0

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of it has a price, so that zero would be a lie."""
        return self.is_lower_bound and not self.high_usd

    @property
    def remark(self) -> str:
        """What must stand beside the sums; empty where every line has a price."""
        if not self.is_lower_bound:
            return ""
        if self.is_unknown:
            return _("unknown: {n} lines without a price").format(n=self.n_unpriced)
        return _("≥, without {n} unpriced lines").format(n=self.n_unpriced)

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.low_usd + other.low_usd,
            self.mid_usd + other.mid_usd,
            self.high_usd + other.high_usd,
            self.n_unpriced + other.n_unpriced,
        )

    def rounded(self) -> Amount:
        """Return the amount to the cent."""
        return Amount(
            round(self.low_usd, 2), round(self.mid_usd, 2), round(self.high_usd, 2), self.n_unpriced
        )

    def over(self, count: int) -> Amount:
        """Return the amount for each of `count` pieces, such as GPUs."""
        return Amount(
            self.low_usd / count, self.mid_usd / count, self.high_usd / count, self.n_unpriced
        )


NOTHING = Amount(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Share:
    """A part of a whole, as a range.

    Parameters
    ----------
    low, mid, high
        Fractions: the middle one of the middle prices; the outer ones of the cheapest network
        beside the dearest hosts, and the reverse.
    """

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Capital:
    """What one candidate costs to buy.

    Parameters
    ----------
    sections
        Today's pieces without spares, by section of the bill.
    compute
        The same for the compute fabric by kind: ``switch``, ``transceiver``, ``cable``,
        ``manager``.
    spares
        Spares of all sections.
    later
        What is bought when the cluster grows.
    n_gpus
        Today's GPUs.
    share
        Compute fabric over compute fabric and hosts, NICs with the hosts; None where the price of
        the hosts is unknown.
    """

    sections: Mapping[str, Amount]
    compute: Mapping[str, Amount]
    spares: Amount
    later: Amount
    n_gpus: int
    share: Share | None

    @property
    def network(self) -> Amount:
        """The compute fabric: switches, modules, cables, managers; no NICs."""
        return self.sections["compute"]

    @property
    def fabric(self) -> Amount:
        """Switches, modules and cables of the compute fabric alone, as published costs count."""
        return self.compute["switch"] + self.compute["transceiver"] + self.compute["cable"]

    @property
    def network_per_gpu(self) -> Amount:
        """The compute fabric for each of today's GPUs."""
        return self.network.over(self.n_gpus)

    @property
    def fabric_per_gpu(self) -> Amount:
        """Switches, modules and cables for each of today's GPUs."""
        return self.fabric.over(self.n_gpus)

    @property
    def all_networks(self) -> Amount:
        """Compute, storage and out-of-band network."""
        return self.sections["compute"] + self.sections["storage"] + self.sections["management"]

    @property
    def total(self) -> Amount:
        """Everything of today without spares, the hosts included."""
        return self.all_networks + self.sections["hosts"]


def range_note() -> str:
    """Return what the range of an amount means, in words."""
    return _(
        "Low, middle and high are sums of the low, middle and high prices of all pieces. Prices "
        "of one kind move together, so the range is not narrowed for the number of pieces."
    )


def amount_of(lines: Iterable[BillLine], count: Count = "quantity") -> Amount:
    """Return what lines cost for today's pieces, for spares, or for later ones.

    A line without a price adds nothing and is counted as unpriced, unless the price of another
    line holds it.
    """
    total = NOTHING
    for line in lines:
        pieces = getattr(line, count)
        if not pieces:
            continue
        if line.price is None:
            total += Amount(0.0, 0.0, 0.0, 0 if line.is_priced else 1)
            continue
        price = line.price
        total += Amount(pieces * price.low_usd, pieces * price.mid_usd, pieces * price.high_usd)
    return total


def capital(bill: Bill, n_gpus: int) -> Capital:
    """Return what a bill costs.

    Parameters
    ----------
    bill
        The bill of materials.
    n_gpus
        Today's GPUs.

    Examples
    --------
    >>> from gpufabric.topology.bill import UnitPrice
    >>> price = UnitPrice(35_000, 38_000, 50_000, "x", "2026", "estimate")
    >>> switches = BillLine("compute", "switch", "leaf", "s", "S", quantity=8, price=price)
    >>> capital(Bill((switches,), ()), n_gpus=512).network_per_gpu.mid_usd
    593.75
    """
    sections: dict[str, Amount] = {name: amount_of(bill.of(name)) for name in SECTIONS}
    by_kind: dict[str, list[BillLine]] = {
        name: [] for name in ("switch", "transceiver", "cable", "manager")
    }
    for line in bill.of("compute"):
        by_kind["cable" if line.category in CABLES else line.category].append(line)
    return Capital(
        sections=sections,
        compute={name: amount_of(lines) for name, lines in by_kind.items()},
        spares=amount_of(bill.lines, "spares"),
        later=amount_of(bill.lines, "later"),
        n_gpus=n_gpus,
        share=_share(sections["compute"], sections["hosts"]),
    )


def _share(network: Amount, hosts: Amount) -> Share | None:
    if hosts.is_lower_bound or not hosts.mid_usd:
        return None

    def fraction(part: float, rest: float) -> float:
        return part / (part + rest) if part + rest else 0.0

    return Share(
        fraction(network.low_usd, hosts.high_usd),
        fraction(network.mid_usd, hosts.mid_usd),
        fraction(network.high_usd, hosts.low_usd),
    )
