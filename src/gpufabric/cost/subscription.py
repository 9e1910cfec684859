"""A network as a service: what is paid each month, and what a provider must ask for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.cost.case import Case, Offer
from gpufabric.cost.facts import Tools
from gpufabric.cost.finance import annuity_factor, discounted
from gpufabric.cost.owning import capital_items, operating_items
from gpufabric.cost.quantity import Draws

__all__ = ["SUBSCRIPTION", "monthly_fee", "provider_fee", "subscription_items"]

Floats = NDArray[np.float64]

SUBSCRIPTION = ("fees", "setup", "exit", "credits")
"""What a subscription adds; credits are negative."""

FACILITY = ("energy", "space")
"""Running costs that stay with the customer, in whose hall the network stands."""


def monthly_fee(case: Case, offer: Offer, draws: Draws) -> Floats:
    """Return what a provider asks each month, all ports together [USD/month]."""
    facts = case.facts
    length = len(draws["finance.discount_rate"])
    if offer.usd_per_port_month is not None:
        return np.full(length, offer.usd_per_port_month * facts.n_gpus)
    if offer.usd_per_gbps_month is not None:
        return np.full(length, offer.usd_per_gbps_month * case.injection_gbps)
    return provider_fee(case, offer, draws)


def provider_fee(case: Case, offer: Offer, draws: Draws) -> Floats:
    """Return what a provider must ask each month to cover its cost and margin [USD/month].

    Notes
    -----
    The provider buys the same network, writes it off over the term of the contract but not under
    three years, and runs it with a skilled team that it shares between networks, and with
    telemetry; power and space are the customer's. It counts on no more at the end of the term than
    what is left after four years, since the network may find no other customer at once.
    """
    tools: Tools = "telemetry" if offer.includes_operation else "none"
    own = replace(case, skill="expert", offer=None, is_hired=False, tools=tools)
    capital = np.sum(list(capital_items(own, draws).values()), axis=0)
    running = operating_items(own, draws)
    yearly = sum(amount for name, amount in running.items() if name not in (*FACILITY, "staff"))
    if offer.includes_operation:
        yearly = yearly + running["staff"] * draws["subscription.staff_share"]
    years = max(3.0, offer.term_months / 12)
    rate = draws["finance.discount_rate"]
    left = discounted(draws["finance.residual_share"], rate, years)
    recovered = capital * (1 - left) / annuity_factor(rate, years)
    fee: Floats = (recovered + yearly) * (1 + draws["subscription.margin"]) / 12
    return fee


def subscription_items(case: Case, offer: Offer, draws: Draws) -> dict[str, Floats]:
    """Return fees and credits of a year, set-up at the start, and what leaving costs [USD].

    ``setup`` is paid at the start, ``exit`` at the end of the horizon, ``fees`` and ``credits``
    every year. Leaving costs nothing once the term has ended.
    """
    fee = monthly_fee(case, offer, draws)
    setup = (
        np.full(fee.shape, offer.setup_usd)
        if offer.setup_usd is not None
        else draws["subscription.setup_share"] * _capital(case, draws)
    )
    credit = (
        np.full(fee.shape, offer.credit_share)
        if offer.credit_share is not None
        else draws["subscription.outage_credit"]
    )
    left_months = max(0.0, offer.term_months - 12.0 * case.horizon_years)
    months = (
        np.full(fee.shape, offer.exit_months)
        if offer.exit_months is not None
        else draws["subscription.exit_months"]
    )
    return {
        "fees": 12 * fee,
        "setup": setup,
        "exit": fee * np.minimum(months, left_months),
        "credits": -12 * fee * credit * draws["subscription.missed_months_share"],
    }


def _capital(case: Case, draws: Draws) -> Floats:
    total: Floats = np.sum(list(capital_items(case, draws).values()), axis=0)
    return total
