"""Money over time: present values, loans, and when one way has cost as much as another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "RESIDUAL_YEARS",
    "annuity_factor",
    "break_even_month",
    "cumulative",
    "discounted",
    "financing_extra",
    "residual_after",
]

RESIDUAL_YEARS = 4.0
"""Age at which ``finance.residual_share`` is left of a price."""

Floats = NDArray[np.float64]


def discounted(amount: ArrayLike, rate: ArrayLike, years: float) -> Floats:
    """Return the present value of an amount that is paid after so many years."""
    return np.asarray(amount, np.float64) * (1 + np.asarray(rate, np.float64)) ** -years


def annuity_factor(rate: ArrayLike, years: float) -> Floats:
    """Return the present value of 1 a year, paid at the end of each of so many years.

    Notes
    -----
    ``(1 - (1 + r)**-n) / r``; n where r is 0 (R. Brealey, S. Myers, "Principles of Corporate
    Finance", chapter 2).

    Examples
    --------
    >>> round(float(annuity_factor(0.1, 2)), 6), float(annuity_factor(0.0, 4))
    (1.735537, 4.0)
    """
    rates = np.asarray(rate, np.float64)
    safe = np.where(rates == 0, 1.0, rates)
    factor: Floats = np.where(rates == 0, float(years), -np.expm1(-years * np.log1p(safe)) / safe)
    return factor


def residual_after(share: ArrayLike, years: float) -> Floats:
    """Return what is left of a price after so many years, `share` of it being left after four.

    Value falls by the same share every year.

    Examples
    --------
    >>> [round(float(residual_after(0.1, years)), 3) for years in (0, 2, 4, 8)]
    [1.0, 0.316, 0.1, 0.01]
    """
    left: Floats = np.asarray(share, np.float64) ** (years / RESIDUAL_YEARS)
    return left


def financing_extra(
    amount: Floats, share: Floats, interest: Floats, discount: Floats, years: float
) -> Floats:
    """Return what paying a share by a loan costs more than paying at once, in present value.

    The loan is paid back in equal instalments at the end of each year; the extra is negative where
    the interest is below the cost of capital.
    """
    instalment = amount * share / annuity_factor(interest, years)
    return instalment * annuity_factor(discount, years) - amount * share


def cumulative(once: float, yearly: float, rate: float, months: int) -> Floats:
    """Return what was paid up to each month, in present value: float64[months + 1].

    `once` is paid in month 0, a twelfth of `yearly` at the end of each month.
    """
    month = np.arange(months + 1)
    paid = np.zeros(months + 1)
    paid[1:] = yearly / 12 * (1 + rate) ** (-month[1:] / 12)
    return once + np.cumsum(paid)


def break_even_month(first: Floats, second: Floats) -> int | None:
    """Return the first month in which `first`, dearer at the start, has cost no more; else None.

    Examples
    --------
    >>> break_even_month(np.array([10.0, 11.0, 12.0]), np.array([0.0, 6.0, 12.0]))
    2
    """
    if first[0] <= second[0]:
        return None
    reached = np.flatnonzero(first <= second)
    return int(reached[0]) if len(reached) else None
