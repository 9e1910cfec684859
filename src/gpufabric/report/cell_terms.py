"""Terms of a workbook's formulas that know their value: what Excel reckons, reckoned here too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "Term",
    "annuity",
    "exp",
    "greatest",
    "least",
    "log",
    "root",
    "term",
    "total",
    "where_at_most",
]

SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4
"""How tightly the last operation of a term binds."""


@dataclass(frozen=True)
class Term:
    """A part of a formula.

    Parameters
    ----------
    text
        As Excel writes it, without the equals sign.
    value
        What it is now.
    binds
        How tightly its last operation binds, so that brackets stand only where they must.

    Examples
    --------
    >>> (Term("A1", 2.0) + 3) * Term("B1", 4.0)
    Term(text='(A1+3)*B1', value=20.0, binds=2)
    """

    text: str
    value: float
    binds: int = ATOM

    def __add__(self, other: Term | float) -> Term:
        right = term(other)
        return Term(f"{self.text}+{right.text}", self.value + right.value, SUM)

    def __radd__(self, other: float) -> Term:
        return term(other) + self

    def __sub__(self, other: Term | float) -> Term:
        right = term(other)
        return Term(f"{self.text}-{right._at(PRODUCT)}", self.value - right.value, SUM)

    def __rsub__(self, other: float) -> Term:
        return term(other) - self

    def __mul__(self, other: Term | float) -> Term:
        right = term(other)
        text = f"{self._at(PRODUCT)}*{right._at(PRODUCT)}"
        return Term(text, self.value * right.value, PRODUCT)

    def __rmul__(self, other: float) -> Term:
        return term(other) * self

    def __truediv__(self, other: Term | float) -> Term:
        right = term(other)
        text = f"{self._at(PRODUCT)}/{right._at(POWER)}"
        return Term(text, self.value / right.value, PRODUCT)

    def __rtruediv__(self, other: float) -> Term:
        return term(other) / self

    def __pow__(self, other: Term | float) -> Term:
        right = term(other)
        text = f"{self._at(ATOM)}^{right._at(ATOM)}"
        return Term(text, self.value**right.value, POWER)

    def __neg__(self) -> Term:
        return Term(f"0-{self._at(PRODUCT)}", -self.value, SUM)

    def _at(self, binds: int) -> str:
        return self.text if self.binds >= binds else f"({self.text})"


def term(value: Term | float) -> Term:
    """Return a number as a term; a negative one in brackets."""
    if isinstance(value, Term):
        return value
    text = f"{value:.15g}"
    return Term(f"({text})" if value < 0 else text, float(value))


def greatest(first: Term | float, second: Term | float) -> Term:
    """Return the larger of two."""
    one, two = term(first), term(second)
    return Term(f"MAX({one.text},{two.text})", max(one.value, two.value))


def least(first: Term | float, second: Term | float) -> Term:
    """Return the smaller of two."""
    one, two = term(first), term(second)
    return Term(f"MIN({one.text},{two.text})", min(one.value, two.value))


def where_at_most(first: Term | float, limit: Term | float, then: Term, otherwise: Term) -> Term:
    """Return one term where the first number is at most the limit, else the other."""
    one, most = term(first), term(limit)
    chosen = then if one.value <= most.value else otherwise
    return Term(f"IF({one.text}<={most.text},{then.text},{otherwise.text})", chosen.value)


def root(value: Term) -> Term:
    """Return the square root."""
    return Term(f"SQRT({value.text})", math.sqrt(value.value))


def log(value: Term) -> Term:
    """Return the natural logarithm."""
    return Term(f"LN({value.text})", math.log(value.value))


def exp(value: Term) -> Term:
    """Return e to the power of a term."""
    return Term(f"EXP({value.text})", math.exp(value.value))


def total(values: Iterable[Term]) -> Term:
    """Return the sum of terms."""
    found = list(values)
    texts = ",".join(value.text for value in found)
    return Term(f"SUM({texts})", math.fsum(value.value for value in found))


def annuity(rate: Term, years: Term | float) -> Term:
    """Return the present value of 1 a year, paid at the end of each of so many years."""
    n = term(years)
    factor = (
        n.value if rate.value == 0 else -math.expm1(-n.value * math.log1p(rate.value)) / rate.value
    )
    return Term(f"PV({rate.text},{n.text},-1)", factor)
