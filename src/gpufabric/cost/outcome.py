"""The whole cost of a case over its horizon, draw by draw, in present value and by item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpufabric.cost.case import Case
from gpufabric.cost.finance import annuity_factor, discounted, financing_extra, residual_after
from gpufabric.cost.opportunity import (
    LOSSES,
    deployment_gpu_hours,
    gpu_hour_usd,
    lost_shares,
    wanted_gpu_hours,
)
from gpufabric.cost.owning import (
    CAPITAL,
    OPERATING,
    capital_items,
    engineers,
    equipment_usd,
    operating_items,
)
from gpufabric.cost.quantity import Draws, Noted
from gpufabric.cost.subscription import FACILITY, SUBSCRIPTION, subscription_items

__all__ = ["FLOP_OF_EFLOP_DAY", "GROUPS", "LEAST_WORK", "Outcome", "evaluate", "group_of"]

Floats = NDArray[np.float64]

ONCE = (*CAPITAL, "training", "financing", "residual", "setup", "exit", "deployment")
"""Items that are not paid every year."""

GROUPS = ("capital", "operating", "subscription", "opportunity")
"""What items are summed to; they come in this order."""

LEAST_WORK = 1e-3
"""Share of the wanted GPU-hours that is taken for done at least, so that nothing divides by 0."""

FLOP_OF_EFLOP_DAY = 8.64e22
"""1 EFLOP/s sustained for a day [FLOP]."""

_RESOLD = frozenset({"switches", "transceivers", "managers", "other_networks"})


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a case costs: float64[n_draws] each.

    Parameters
    ----------
    case
        What was reckoned.
    items
        Present value over the horizon by item [USD]; negative for what comes back.
    yearly
        Undiscounted amount of a year, of the items that return every year [USD/year].
    once
        Undiscounted amount of the others [USD].
    lost_gpu_hours
        GPU-hours of a year by cause; ``deployment`` once [GPU h].
    work_gpu_hours
        GPU-hours that did work, over the horizon [GPU h].
    present_gpu_hours
        The same discounted as money is: those of a year at its end, less what the start takes
        [GPU h].
    discount_rate
        By which it was discounted [1/year].
    gpu_hour_usd
        What a GPU-hour is worth [USD].
    keys
        Quantities that were read.
    """

    case: Case
    items: dict[str, Floats]
    yearly: dict[str, Floats]
    once: dict[str, Floats]
    lost_gpu_hours: dict[str, Floats]
    work_gpu_hours: Floats
    present_gpu_hours: Floats
    discount_rate: Floats
    gpu_hour_usd: Floats
    keys: frozenset[str]

    @cached_property
    def total(self) -> Floats:
        """Present value of all items, lost GPU-hours included [USD]."""
        return self._sum(self.items)

    @cached_property
    def paid(self) -> Floats:
        """Present value of what is paid: all items but lost GPU-hours [USD]."""
        return self._sum(name for name in self.items if group_of(name) != "opportunity")

    def group(self, name: str) -> Floats:
        """Return the present value of one of ``GROUPS`` [USD]."""
        return self._sum(item for item in self.items if group_of(item) == name)

    @property
    def per_gpu(self) -> Floats:
        """Total for each GPU [USD]."""
        return self.total / self.case.facts.n_gpus

    @property
    def per_gpu_hour(self) -> Floats:
        """Levelised total for each GPU-hour that did work [USD/(GPU h)].

        That is the price that, asked for every such hour, would in present value bring in the
        total: both are discounted.
        """
        return self.total / self.present_gpu_hours

    @property
    def network_per_work(self) -> Floats | None:
        """Levelised total of the network for each `Performance.work_unit` [USD]; None if unknown.

        Lost GPU-hours are in it, those that work are not: see `per_work`.
        """
        return self._for_each(self._work_of_gpu_hour(), with_gpu_hours=False)

    @property
    def per_work(self) -> Floats | None:
        """The same with the GPU-hours that do the work at their value [USD]; None if unknown."""
        return self._for_each(self._work_of_gpu_hour(), with_gpu_hours=True)

    @property
    def network_per_eflop_day(self) -> Floats | None:
        """Levelised total of the network for each EFLOP-day [USD]; None if unknown.

        An EFLOP-day is 1 EFLOP/s of useful model work sustained for a day, 8.64e22 FLOP:
        FLOPs that the model itself needs, at the forecast's MFU and precision, in GPU-hours net
        of all losses.
        """
        return self._for_each(self._eflop_days_of_gpu_hour(), with_gpu_hours=False)

    @property
    def per_eflop_day(self) -> Floats | None:
        """The same with the GPU-hours that do the work at their value [USD]; None if unknown."""
        return self._for_each(self._eflop_days_of_gpu_hour(), with_gpu_hours=True)

    def _for_each(self, of_gpu_hour: float | None, *, with_gpu_hours: bool) -> Floats | None:
        if of_gpu_hour is None:
            return None
        value = self.gpu_hour_usd if with_gpu_hours else 0.0
        each: Floats = (self.per_gpu_hour + value) / of_gpu_hour
        return each

    def _work_of_gpu_hour(self) -> float | None:
        """Work of a GPU-hour from which all losses are taken off; None if unknown."""
        performance = self.case.facts.performance
        return None if performance is None else self._of_gpu_hour(performance.work_per_step)

    def _eflop_days_of_gpu_hour(self) -> float | None:
        performance = self.case.facts.performance
        if performance is None or performance.flops_per_step is None:
            return None
        return self._of_gpu_hour(performance.flops_per_step) / FLOP_OF_EFLOP_DAY

    def _of_gpu_hour(self, of_step: float) -> float:
        performance = self.case.facts.performance
        assert performance is not None, "asked for what a step yields"
        return of_step / performance.ideal_step_s * 3600 / self.case.facts.job_gpus

    def _sum(self, names: Iterable[str]) -> Floats:
        amounts = [self.items[name] for name in names]
        return np.sum(amounts, axis=0) if amounts else np.zeros_like(self.work_gpu_hours)


def group_of(item: str) -> str:
    """Return which of ``GROUPS`` an item belongs to."""
    if item in CAPITAL or item in ("financing", "residual"):
        return "capital"
    if item in OPERATING or item == "training":
        return "operating"
    return "subscription" if item in SUBSCRIPTION else "opportunity"


def evaluate(case: Case, draws: Draws) -> Outcome:
    """Return what a case costs over its horizon.

    Parameters
    ----------
    case
        The candidate, its team and how it is had.
    draws
        Values of all quantities that it needs: see `Outcome.keys`.

    Notes
    -----
    What is paid once is paid at the start; what is paid every year, at its end. Taxes are left
    out. With a subscription, power and space stay with the customer, and some people who deal with
    the provider; all people and upkeep do where the fee does not include them.
    """
    noted = Noted(draws)
    rate = noted["finance.discount_rate"]
    years = case.horizon_years
    once, yearly = _payments(case, noted)
    lost = _lost(case, noted)
    value = gpu_hour_usd(case, noted)
    for name in LOSSES:
        yearly[name] = lost[name] * value
    once["deployment"] = lost["deployment"] * value
    annuity = annuity_factor(rate, years)
    items = {name: amount * annuity for name, amount in yearly.items()}
    late = {name for name in ("exit", "residual") if name in once}
    items |= {
        name: discounted(amount, rate, years) if name in late else amount
        for name, amount in once.items()
    }
    wanted = wanted_gpu_hours(case, noted)
    gone = np.sum([lost[name] for name in LOSSES], axis=0)
    late_hours = lost["deployment"]
    return Outcome(
        case=case,
        items=items,
        yearly=yearly,
        once=once,
        lost_gpu_hours=lost,
        work_gpu_hours=_worked(years, wanted, gone, late_hours),
        present_gpu_hours=_worked(annuity, wanted, gone, late_hours),
        discount_rate=rate,
        gpu_hour_usd=value,
        keys=frozenset(noted.read),
    )


def _worked(years: Floats | float, wanted: Floats, gone: Floats, late_hours: Floats) -> Floats:
    """GPU-hours that did work, of so many years or years' present value [GPU h]."""
    worked: Floats = np.maximum(years * (wanted - gone) - late_hours, LEAST_WORK * years * wanted)
    return worked


def _payments(case: Case, draws: Draws) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return what is paid once and what every year, lost GPU-hours apart [USD]."""
    offer = case.offer
    running = operating_items(case, draws)
    if offer is None:
        once = capital_items(case, draws)
        once["financing"] = _financing(case, once, draws)
        resold = equipment_usd(case, draws, _RESOLD)
        left = residual_after(draws["finance.residual_share"], case.horizon_years)
        once["residual"] = -resold * left
        once["training"] = _training(case, draws)
        return once, running
    fees = subscription_items(case, offer, draws)
    if offer.includes_operation:
        people = draws["subscription.own_fte"] * draws["staff.usd_per_year"]
        running = {**{name: running[name] for name in FACILITY}, "staff": people}
    once = {"setup": fees.pop("setup"), "exit": fees.pop("exit")}
    if not offer.includes_operation:
        once["training"] = _training(case, draws)
    return once, {**running, **fees}


def _financing(case: Case, once: dict[str, Floats], draws: Draws) -> Floats:
    amount: Floats = np.sum(list(once.values()), axis=0)
    return financing_extra(
        amount,
        draws["finance.financed_share"],
        draws["finance.interest_rate"],
        draws["finance.discount_rate"],
        case.horizon_years,
    )


def _training(case: Case, draws: Draws) -> Floats:
    if case.is_hired:
        return engineers(case, draws) * draws["hiring.usd_per_engineer"]
    if case.skill == "expert":
        return np.zeros(len(draws["finance.discount_rate"]))
    return engineers(case, draws) * draws["training.usd_per_engineer"]


def _lost(case: Case, draws: Draws) -> dict[str, Floats]:
    wanted = wanted_gpu_hours(case, draws)
    lost = {name: share * wanted for name, share in lost_shares(case, draws).items()}
    lost["deployment"] = deployment_gpu_hours(case, draws)
    return lost
