"""Amounts of money and power in words, in the currency of the report."""

from __future__ import annotations

from dataclasses import dataclass

from gpufabric.core.text import _
from gpufabric.model.spec_parts import Site

__all__ = ["Currency", "currency_of", "power_words", "range_words", "share_words", "unknown"]

Range = tuple[float, float, float]


@dataclass(frozen=True)
class Currency:
    """The currency that amounts are shown in, and its units for one US dollar."""

    code: str
    per_usd: float

    def words(self, amount_usd: float) -> str:
        """Return one amount, with as many digits as prices deserve.

        Examples
        --------
        >>> Currency("USD", 1.0).words(4_435_790.0)
        '4.44 M USD'
        """
        return f"{_scaled(amount_usd * self.per_usd)} {self.code}"

    def range_words(self, amount_usd: Range | None) -> str:
        """Return the middle amount, and the range in brackets; "unknown" where it is None.

        Examples
        --------
        >>> Currency("USD", 1.0).range_words((2715.91, 4331.83, 5769.61))
        '4,332 USD (2,716–5,770)'
        """
        if amount_usd is None:
            return unknown()
        return range_words(tuple(value * self.per_usd for value in amount_usd), self.code)


def currency_of(site: Site) -> Currency:
    """Return the currency of a site's report: US dollars where its rate is unknown."""
    if site.currency_rate is not None:
        return Currency(site.currency, site.currency_rate)
    return Currency("USD", 1.0)


def unknown() -> str:
    """Return the word for what is not known."""
    return _("unknown")


def _scaled(value: float) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.2f} M"
    return f"{value:,.0f}"


def range_words(value: tuple[float, ...], unit: str) -> str:
    """Return the middle of a range and its ends, all in one scale."""
    low, mid, high = value
    if high >= 1e6:
        low, mid, high = low / 1e6, mid / 1e6, high / 1e6
        return f"{mid:,.2f} M {unit} ({low:,.2f}–{high:,.2f})"
    return f"{mid:,.0f} {unit} ({low:,.0f}–{high:,.0f})"


def share_words(value: Range | None) -> str:
    """Return a share and its range as percentages.

    Examples
    --------
    >>> share_words((0.064144, 0.100549, 0.132575))
    '10.1 % (6.4–13.3)'
    """
    if value is None:
        return unknown()
    low, mid, high = (100 * part for part in value)
    return f"{mid:.1f} % ({low:.1f}–{high:.1f})"


def power_words(watt: float) -> str:
    """Return a power in kW or MW.

    Examples
    --------
    >>> power_words(58_896.0), power_words(2_460_000.0)
    ('58.9 kW', '2.46 MW')
    """
    return f"{watt / 1e6:,.2f} MW" if watt >= 1e6 else f"{watt / 1e3:,.1f} kW"
