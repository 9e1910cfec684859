"""Numbers that are not certain: each a distribution with source and date, drawn together.

All candidates see the same draw of the same number (common random numbers), so that what they
share cancels when one is held against another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from gpufabric.catalog.cost_constants import CostConstant, Spread, cost_constants
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _

__all__ = ["Draws", "Quantity", "draw", "fixed", "known_quantities", "one_draw", "quantile"]

Floats = NDArray[np.float64]

MOST_DRAWS = 1 << 20
"""Draws that one call may ask for."""


@dataclass(frozen=True)
class Quantity:
    """One number that an outcome rests on.

    Parameters
    ----------
    key
        Stable name, such as ``energy.usd_per_kwh``.
    low, mid, high
        Lowest, most likely and highest value, in `unit`.
    unit
        Unit; ``1`` or ``share`` without one.
    source, date, kind
        As in the catalogue; ``spec`` as kind where the user gave it.
    spread
        Over what the triangle stands: the value (``linear``) or its logarithm (``log``).
    note
        What a reader must know about it.
    """

    key: str
    low: float
    mid: float
    high: float
    unit: str
    source: str
    date: str
    kind: str
    spread: Spread = "linear"
    note: str = ""

    @property
    def is_fixed(self) -> bool:
        """Whether it has one value only."""
        return self.low == self.high

    @property
    def is_assumed(self) -> bool:
        """Whether no source stands behind it."""
        return self.kind == "assumed"

    def at(self, value: float) -> Quantity:
        """Return the quantity fixed at `value`."""
        return replace(self, low=value, mid=value, high=value, spread="linear")


Draws = Mapping[str, Floats]
"""Values by key: float64[n_draws] each, in the unit of its quantity."""


def fixed(key: str, value: float, unit: str, source: str, date: str = "") -> Quantity:
    """Return a number without spread, such as one that the design gives."""
    return Quantity(key, value, value, value, unit, source, date, "derived")


def known_quantities(overrides: Mapping[str, Quantity] | None = None) -> dict[str, Quantity]:
    """Return the quantities of the catalogue by key, those of `overrides` in place of ours.

    Raises
    ------
    InputError
        If a key of `overrides` is none of ours; the nearest is given.
    """
    known = {key: _of_constant(key, constant) for key, constant in cost_constants().items()}
    faults = [
        Fault(
            f"assumptions.{key}"[:160],
            _("the cost model has no such number."),
            _("a key of the ledger"),
            nearest(key[:64], sorted(known)),
        )
        for key in overrides or {}
        if key not in known
    ]
    if faults:
        raise InputError(faults)
    return {**known, **(overrides or {})}


def _of_constant(key: str, constant: CostConstant) -> Quantity:
    return Quantity(
        key,
        constant.low,
        constant.mid,
        constant.high,
        constant.unit,
        constant.source,
        constant.date,
        constant.kind,
        constant.spread,
        constant.note or "",
    )


def quantile(quantity: Quantity, share: Floats) -> Floats:
    """Return the value that the quantity does not exceed with probability `share`.

    Notes
    -----
    Triangular distribution with mode m on [a, b]: ``a + sqrt(u (b - a) (m - a))`` up to the mode,
    ``b - sqrt((1 - u) (b - a) (b - m))`` above it; over the logarithm where `spread` says so.

    Examples
    --------
    >>> quantile(Quantity("k", 0.0, 1.0, 2.0, "1", "x", "2026", "assumed"), np.array([0.5]))
    array([1.])
    """
    if quantity.is_fixed:
        return np.full(share.shape, quantity.mid)
    low, mid, high = quantity.low, quantity.mid, quantity.high
    if quantity.spread == "log":
        low, mid, high = (float(np.log(value)) for value in (low, mid, high))
    turn = (mid - low) / (high - low)
    rising = low + np.sqrt(share * (high - low) * (mid - low))
    falling = high - np.sqrt((1 - share) * (high - low) * (high - mid))
    value: Floats = np.where(share < turn, rising, falling)
    return np.exp(value) if quantity.spread == "log" else value


def draw(quantities: Iterable[Quantity], n_draws: int, seed: int) -> dict[str, Floats]:
    """Return `n_draws` draws of every quantity, by key.

    Parameters
    ----------
    quantities
        What is drawn; one of a key.
    n_draws
        How many; rounded up to a power of two, for which Sobol points are balanced.
    seed
        Of the scrambling; the same gives the same.

    Raises
    ------
    InputError
        If `n_draws` is not from 2 to 1,048,576.

    Notes
    -----
    Scrambled Sobol points [1]_. The point of a key hangs on the sorted keys that are not fixed.

    References
    ----------
    .. [1] A. B. Owen, "Scrambling Sobol' and Niederreiter-Xing points", J. Complexity 14 (1998);
       ``scipy.stats.qmc.Sobol``.
    """
    if not 2 <= n_draws <= MOST_DRAWS:
        raise InputError(
            Fault(
                "draws",
                _("{n} draws are asked for.").format(n=n_draws),
                _("2 to {most}").format(most=f"{MOST_DRAWS:,}"),
            )
        )
    by_key = {quantity.key: quantity for quantity in quantities}
    loose = [key for key in sorted(by_key) if not by_key[key].is_fixed]
    exponent = int(n_draws - 1).bit_length()
    values = {key: np.full(1 << exponent, by_key[key].mid) for key in by_key if key not in loose}
    if loose:
        points = qmc.Sobol(len(loose), scramble=True, rng=seed).random_base2(exponent)
        for column, key in enumerate(loose):
            values[key] = quantile(by_key[key], np.ascontiguousarray(points[:, column]))
    return {key: values[key] for key in sorted(values)}


def one_draw(quantities: Iterable[Quantity]) -> dict[str, Floats]:
    """Return every quantity at its most likely value: float64[1] each."""
    return {quantity.key: np.array([quantity.mid]) for quantity in quantities}


class Noted(Mapping[str, Floats]):
    """Draws that note which keys were read: what an outcome rests on."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Floats:
        self.read.add(key)
        return self._draws[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._draws)

    def __len__(self) -> int:
        return len(self._draws)
