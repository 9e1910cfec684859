"""Why a case wins: what it costs less than others, item by item, and what being wrong costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.cost.owning import CAPITAL
from gpufabric.cost.subscription import SUBSCRIPTION
from gpufabric.cost.uncertainty import Band, band, chance_below
from gpufabric.planner.cost_words import item_label
from gpufabric.planner.economics import CaseCost

__all__ = [
    "Contrast",
    "Reason",
    "Regret",
    "compared_items",
    "contrast",
    "reason_words",
    "regrets",
]

Floats = NDArray[np.float64]

LINK_ITEMS = ("transceivers", "cables")
OWNED = (*CAPITAL, "financing", "residual", "support", "licences", "replacement")
"""What an owner pays for that a subscriber has for the fees."""

MOST_REASONS = 3
LEAST_SHARE = 0.005
"""Share of the winner's total below which a difference is no reason."""


@dataclass(frozen=True)
class Reason:
    """One item in which two cases differ.

    Parameters
    ----------
    item, label
        The item (see `gpufabric.cost.outcome`), and in words.
    winner_usd, other_usd
        Mean present value in the winner and in the other case [USD]; 0 where it has none.
    saved
        What the winner saves by it [USD]; negative where it pays more.
    sentence
        The same as a sentence.
    """

    item: str
    label: str
    winner_usd: float
    other_usd: float
    saved: Band
    sentence: str


@dataclass(frozen=True)
class Contrast:
    """The winner held against one other case.

    Parameters
    ----------
    other
        Name of the other case.
    role
        What it stands for: ``runner_up``, ``other_fabric`` (the best of the other fabric) or
        ``other_way`` (the best that is bought where the winner is subscribed, or the reverse).
    saved
        What the winner costs less [USD].
    chance
        Probability, 0 to 1, that the winner costs less.
    reasons
        The largest items in which the winner costs less.
    objections
        The largest items in which it costs more.
    """

    other: str
    role: str
    saved: Band
    chance: float
    reasons: tuple[Reason, ...]
    objections: tuple[Reason, ...]


@dataclass(frozen=True)
class Regret:
    """What choosing a case costs too much, draw by draw, over the best that could be chosen.

    Parameters
    ----------
    name
        The case.
    mean_usd, p90_usd
        Mean, and what nine of ten draws stay under [USD].
    chance
        Probability, 0 to 1, that another would have been cheaper.
    if_wrong_usd
        Mean over the draws in which another is cheaper [USD]; 0 where none is.
    """

    name: str
    mean_usd: float
    p90_usd: float
    chance: float
    if_wrong_usd: float


def contrast(winner: CaseCost, other: CaseCost, role: str) -> Contrast:
    """Return the winner held against another case."""
    mine, theirs = winner.outcome, other.outcome
    zero = np.zeros_like(mine.total)
    own_items, other_items = compared_items(mine.items, theirs.items)
    names = dict.fromkeys((*own_items, *other_items))
    least = LEAST_SHARE * abs(float(mine.total.mean()))
    found = [
        _reason(name, own_items.get(name, zero), other_items.get(name, zero), other)
        for name in names
    ]
    told = [reason for reason in found if abs(reason.saved.mean) > least]
    told.sort(key=lambda reason: -abs(reason.saved.mean))
    return Contrast(
        other=other.name,
        role=role,
        saved=band(theirs.total - mine.total),
        chance=chance_below(mine.total, theirs.total),
        reasons=tuple(reason for reason in told if reason.saved.mean > 0)[:MOST_REASONS],
        objections=tuple(reason for reason in told if reason.saved.mean < 0)[:MOST_REASONS],
    )


def compared_items(
    mine: Mapping[str, Floats], theirs: Mapping[str, Floats]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the items of two cases, joined where apart they would argue against each other.

    A cable with fixed modules stands for a fibre and two transceivers: they are one item. Fees
    stand for parts, their upkeep, financing and what they are worth at the end: where one case is
    a subscription and the other is not, all these are one item.
    """
    if ("fees" in mine) != ("fees" in theirs):
        names = (*OWNED, *SUBSCRIPTION)
        return _joined(mine, "network", names), _joined(theirs, "network", names)
    return _joined(mine, "links", LINK_ITEMS), _joined(theirs, "links", LINK_ITEMS)


def _joined(items: Mapping[str, Floats], joint: str, names: Sequence[str]) -> dict[str, Floats]:
    found = {name: amount for name, amount in items.items() if name not in names}
    parts = [amount for name, amount in items.items() if name in names]
    return {joint: np.sum(parts, axis=0), **found} if parts else found


def reason_words(label: str, amounts: tuple[str, str, str], other: str, *, is_less: bool) -> str:
    """Return a reason as a sentence: what the winner pays, the other pays, and the difference."""
    what = (
        _("{label}: {mine} against {theirs} with {other}, {saved} less.")
        if is_less
        else _("{label}: {mine} against {theirs} with {other}, {saved} more.")
    )
    mine, theirs, saved = amounts
    return what.format(
        label=label[:1].upper() + label[1:], mine=mine, theirs=theirs, other=other, saved=saved
    )


def _reason(item: str, mine: Floats, theirs: Floats, other: CaseCost) -> Reason:
    saved = band(theirs - mine)
    label = item_label(item)
    amounts = (float(mine.mean()), float(theirs.mean()), abs(saved.mean))
    first, second, third = (_usd(amount) for amount in amounts)
    sentence = reason_words(label, (first, second, third), other.name, is_less=saved.mean >= 0)
    return Reason(item, label, float(mine.mean()), float(theirs.mean()), saved, sentence)


def _usd(amount: float) -> str:
    """Return an amount to three digits, grouped."""
    return f"{float(f'{amount:.3g}'):,.0f} USD"


def regrets(costs: Sequence[CaseCost]) -> tuple[Regret, ...]:
    """Return the regret of each case over the best of all, in their order."""
    if not costs:
        return ()
    totals = np.stack([cost.outcome.total for cost in costs])
    lost = totals - totals.min(axis=0)
    found = []
    for cost, row in zip(costs, lost, strict=True):
        wrong = row > 0
        found.append(
            Regret(
                cost.name,
                float(row.mean()),
                float(np.quantile(row, 0.9)),
                float(wrong.mean()),
                float(row[wrong].mean()) if wrong.any() else 0.0,
            )
        )
    return tuple(found)
