"""What a network costs to buy and to run: capital and operating cost, draw by draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpufabric.cost.case import Case
from gpufabric.cost.quantity import Draws

__all__ = [
    "CAPITAL",
    "OPERATING",
    "capital_items",
    "engineers",
    "equipment_usd",
    "operating_items",
]

Floats = NDArray[np.float64]

CAPITAL = (
    "switches",
    "transceivers",
    "cables",
    "managers",
    "other_networks",
    "spares",
    "installation",
)
"""Paid once, at the start."""

OPERATING = ("energy", "space", "support", "licences", "staff", "replacement")
"""Paid every year."""

HOURS_A_YEAR = 8760.0
_SUPPORTED = frozenset({"switches", "managers"})


def capital_items(case: Case, draws: Draws) -> dict[str, Floats]:
    """Return what is paid once, by item: float64[n_draws] each [USD].

    Raises
    ------
    KeyError
        If a quantity that the case needs was not drawn.
    """
    zero = np.zeros(_length(draws))
    items = dict.fromkeys(CAPITAL, zero)
    for term in case.facts.price_terms:
        price = draws[term.key]
        items[term.item] = items[term.item] + term.pieces * price
        items["spares"] = items["spares"] + term.spares * price
    minutes = (
        case.facts.n_cables * draws["installation.minutes_per_cable"]
        + case.facts.n_switches * draws["installation.minutes_per_switch"]
    )
    items["installation"] = minutes / 60 * draws["installation.usd_per_hour"]
    return items


def operating_items(case: Case, draws: Draws) -> dict[str, Floats]:
    """Return what is paid every year, by item: float64[n_draws] each [USD/year].

    Notes
    -----
    Energy is the power between typical and largest, times PUE, all hours of the year. Failed parts
    are paid where neither warranty nor support replaces them; links fail as in `exposure`, and
    each failure costs one module or cable of the mean price.
    """
    facts, fabric = case.facts, case.facts.fabric
    watts = facts.typical_w + draws["energy.load"] * max(0.0, facts.max_w - facts.typical_w)
    kwh = watts / 1000 * HOURS_A_YEAR * draws["energy.pue"]
    supported = equipment_usd(case, draws, _SUPPORTED)
    people = engineers(case, draws)
    return {
        "energy": kwh * draws["energy.usd_per_kwh"],
        "space": 12 * facts.switch_units * draws["space.usd_per_unit_month"],
        "support": supported * draws[f"support.share.{fabric}"],
        "licences": facts.n_switches
        * (draws[f"licence.usd_per_switch_year.{fabric}"] + _tools_usd(case, draws)),
        "staff": people * draws["staff.usd_per_year"],
        "replacement": _failed_usd(case, draws) * draws["replacement.paid_share"],
    }


def _tools_usd(case: Case, draws: Draws) -> Floats:
    """What watches one switch [USD/year]; what switches themselves show is free."""
    if case.operator_tools == "none":
        return np.zeros(_length(draws))
    return draws[f"tools.usd_per_switch_year.{case.operator_tools}"]


def engineers(case: Case, draws: Draws) -> Floats:
    """Return the people that run the network [FTE]."""
    fabric, skill = case.facts.fabric, case.skill
    hundreds = case.facts.n_switches / 100
    needed = (
        draws[f"staff.base_fte.{fabric}"] + hundreds * draws[f"staff.fte_per_100_switches.{fabric}"]
    )
    if case.is_hired:
        return np.maximum(needed, draws["hiring.least_fte"])
    return needed if skill == "expert" else needed * draws[f"staff.factor.{skill}"]


def equipment_usd(case: Case, draws: Draws, items: frozenset[str] = frozenset(CAPITAL)) -> Floats:
    """Return the price of today's pieces of some items, all networks [USD]."""
    total = np.zeros(_length(draws))
    for term in case.facts.price_terms:
        if term.item in items:
            total = total + term.pieces * draws[term.key]
    return total


def _failed_usd(case: Case, draws: Draws) -> Floats:
    """Price of the parts that fail in a year [USD/year]."""
    exposure = case.facts.exposure
    optical = exposure.access_optical + exposure.uplink_optical
    copper = exposure.access_copper + exposure.uplink_copper
    rate = draws["failure.optical_link"]
    failed = rate * (optical + copper * draws["failure.copper_factor"])
    links = optical + copper
    modules = equipment_usd(case, draws, frozenset({"transceivers", "cables"}))
    pieces = sum(part.pieces for part in case.facts.parts if part.item == "transceivers")
    each = modules / max(1, pieces or links)
    switches = equipment_usd(case, draws, frozenset({"switches"}))
    return failed * each + switches * draws["failure.switch"]


def _length(draws: Draws) -> int:
    return len(next(iter(draws.values())))
