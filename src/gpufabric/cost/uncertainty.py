"""How sure a cost is: ranges, chances, what moves it most, and where the better choice changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.cost.case import Case
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import Draws, Quantity, quantile

__all__ = [
    "Band",
    "FlipPoint",
    "Swing",
    "band",
    "chance_below",
    "difference_of",
    "flip_point",
    "tornado",
    "total_of",
    "variance_shares",
]

Floats = NDArray[np.float64]
Measure = Callable[[Draws], Floats]
"""What is studied, such as the total of one case, or of one minus another: draws in, float64[n]."""

BINS = 32
"""Classes of equal size over which a conditional mean is taken."""

GRID = 41
"""Values at which a difference is looked at before a flip point is searched between two."""

FLIP_DRAWS = 1024
"""Draws over which the difference at one value is averaged."""


@dataclass(frozen=True)
class Band:
    """A range of an outcome, in its unit.

    Parameters
    ----------
    p10, p50, p90
        Values that a tenth, half, nine tenths of the draws do not exceed.
    mean
        Mean of all draws.
    """

    p10: float
    p50: float
    p90: float
    mean: float


def band(values: Floats) -> Band:
    """Return the range of float64[n_draws].

    Examples
    --------
    >>> band(np.arange(11.0))
    Band(p10=1.0, p50=5.0, p90=9.0, mean=5.0)
    """
    p10, p50, p90 = (float(value) for value in np.quantile(values, (0.1, 0.5, 0.9)))
    return Band(p10, p50, p90, float(values.mean()))


def chance_below(first: Floats, second: Floats) -> float:
    """Return the probability that `first` is less than `second`, draw by draw; ties count half."""
    return float(np.mean(first < second) + np.mean(first == second) / 2)


@dataclass(frozen=True)
class Swing:
    """How far one quantity alone moves an outcome.

    Parameters
    ----------
    quantity
        Which.
    low, high
        Outcome with the quantity at the value that a tenth and nine tenths do not exceed, all
        others most likely.
    """

    quantity: Quantity
    low: float
    high: float

    @property
    def size(self) -> float:
        """Distance between the two."""
        return abs(self.high - self.low)


def tornado(measure: Measure, quantities: Iterable[Quantity]) -> tuple[Swing, ...]:
    """Return what each quantity alone does to an outcome, the largest swing first.

    One at a time: all others stay at their most likely values.
    """
    chosen = sorted(quantities, key=lambda quantity: quantity.key)
    loose = [quantity for quantity in chosen if not quantity.is_fixed]
    if not loose:
        return ()
    rows = {quantity.key: np.full(2 * len(loose), quantity.mid) for quantity in chosen}
    shares = np.array([0.1, 0.9])
    for index, quantity in enumerate(loose):
        rows[quantity.key][2 * index : 2 * index + 2] = quantile(quantity, shares)
    found = measure(rows).reshape(-1, 2)
    swings = [Swing(q, float(at[0]), float(at[1])) for q, at in zip(loose, found, strict=True)]
    return tuple(sorted(swings, key=lambda swing: (-swing.size, swing.quantity.key)))


def variance_shares(values: Floats, draws: Draws, keys: Iterable[str]) -> dict[str, float]:
    """Return which share of an outcome's variance each quantity explains alone.

    Parameters
    ----------
    values
        float64[n_draws]: the outcome.
    draws
        The quantities that it was reckoned from.
    keys
        Those that are asked for.

    Notes
    -----
    First-order index ``Var(E[y | x]) / Var(y)`` [1]_, the conditional mean taken over 32 classes of
    x of equal size; what 32 classes of pure noise would explain, ``(32 - 1) / (n - 1)`` of the
    rest, is taken off. Shares of quantities that act together add up to less than 1.

    References
    ----------
    .. [1] A. Saltelli et al., "Global Sensitivity Analysis. The Primer", Wiley 2008, section 4.5.
    """
    spread = float(values.var())
    shares: dict[str, float] = {}
    for key in sorted(keys):
        column = draws[key]
        if spread == 0.0 or column.min() == column.max():
            shares[key] = 0.0
            continue
        order = np.argsort(column, kind="stable")
        classes = np.array_split(values[order], min(BINS, len(values)))
        means = np.array([part.mean() for part in classes])
        sizes = np.array([len(part) for part in classes])
        between = float(np.average((means - values.mean()) ** 2, weights=sizes)) / spread
        noise = (len(classes) - 1) / max(1, len(values) - 1)
        shares[key] = max(0.0, (between - noise) / (1 - noise)) if noise < 1 else 0.0
    return shares


@dataclass(frozen=True)
class FlipPoint:
    """Where the better of two cases changes.

    Parameters
    ----------
    quantity
        What is turned.
    value
        Value at which both cost the same in the mean; None if the better stays so on the whole
        range that was searched.
    low, high
        The range.
    below, above
        Name of the case that costs less below and above `value`; equal where it is None.
    """

    quantity: Quantity
    value: float | None
    low: float
    high: float
    below: str
    above: str


def flip_point(
    first: Case, second: Case, quantity: Quantity, draws: Draws, limits: tuple[float, float]
) -> FlipPoint:
    """Return the value of one quantity at which `first` and `second` cost the same in the mean.

    Parameters
    ----------
    first, second
        What is compared.
    quantity
        What is turned; all others are drawn.
    draws
        Draws of all quantities; the first 1,024 are used.
    limits
        Range that is searched.

    Notes
    -----
    The mean difference is taken at 41 values; where it changes sign nearest to the most likely
    value, the place is found by bisection to a millionth of the range.
    """
    few = {key: column[:FLIP_DRAWS] for key, column in draws.items()}
    low, high = limits

    def difference(value: float) -> float:
        turned = {**few, quantity.key: np.full(len(few[quantity.key]), value)}
        return float((evaluate(first, turned).total - evaluate(second, turned).total).mean())

    grid = [float(value) for value in _grid(low, high, quantity)]
    gaps = [difference(value) for value in grid]
    names = {True: first.name, False: second.name}
    turns = [index for index in range(len(grid) - 1) if (gaps[index] < 0) != (gaps[index + 1] < 0)]
    if not turns:
        return FlipPoint(quantity, None, low, high, names[gaps[0] < 0], names[gaps[0] < 0])
    nearest = min(turns, key=lambda index: abs(grid[index] - quantity.mid))
    left, right, at_left = grid[nearest], grid[nearest + 1], gaps[nearest]
    while right - left > 1e-6 * (high - low):
        middle = (left + right) / 2
        if (difference(middle) < 0) == (at_left < 0):
            left = middle
        else:
            right = middle
    is_first_below = at_left < 0
    return FlipPoint(
        quantity, (left + right) / 2, low, high, names[is_first_below], names[not is_first_below]
    )


def _grid(low: float, high: float, quantity: Quantity) -> Floats:
    if quantity.spread == "log" and low > 0:
        return np.geomspace(low, high, GRID)
    return np.linspace(low, high, GRID)


def total_of(case: Case) -> Measure:
    """Return the measure that is the total cost of a case [USD]."""
    return lambda draws: evaluate(case, draws).total


def difference_of(first: Case, second: Case) -> Measure:
    """Return the measure that is what `first` costs more than `second` [USD]."""
    return lambda draws: evaluate(first, draws).total - evaluate(second, draws).total
