"""The summary of a plan on a terminal: candidates side by side, warnings, paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.cost.capital import Amount, Capital
from gpufabric.planner.compare import CandidatePlan, Plan, comparison
from gpufabric.report.amounts import Currency, currency_of, power_words, share_words, unknown
from gpufabric.report.design_table import design_facts, rack_words
from gpufabric.report.forecast_words import forecast_facts, forecast_notes
from gpufabric.report.side_by_side import Fact, decision_texts, side_by_side

__all__ = ["amount_words", "plan_facts", "print_plan"]


def print_plan(plan: Plan, console: Console) -> None:
    """Print the comparison of all candidates, then their warnings."""
    console.print(Text(_headline(plan), "bold"))
    console.print()
    names = [candidate.name for candidate in plan.candidates]
    for table in side_by_side(names, plan_facts(plan), console.width):
        console.print(table)
        console.print()
    console.print(Text(_notes(plan), "dim"))
    for words in forecast_notes([candidate.forecast for candidate in plan.candidates]):
        console.print(Text(words, "dim"))
    for candidate in plan.candidates:
        if candidate.warnings:
            console.print()
            console.print(Text(candidate.name, "bold"))
            for text in decision_texts(candidate.warnings):
                console.print(text)
    console.print()


def _headline(plan: Plan) -> str:
    requirement = plan.requirement
    first = plan.candidates[0]
    words = _("{gpus} GPUs on {hosts} × {host}").format(
        gpus=f"{first.n_gpus:,}",
        hosts=f"{int(first.summary['hosts']):,}",
        host=first.design.host.name,
    )
    if first.fabric.n_gpus > first.n_gpus:
        words = _("{words}, growing to {gpus} GPUs").format(
            words=words, gpus=f"{first.fabric.n_gpus:,}"
        )
    return f"{requirement.name}: {words}" if requirement.name else words


def _notes(plan: Plan) -> str:
    currency = currency_of(plan.requirement.site)
    words = _(
        "List prices are sums of the sources' middle prices, in brackets those of the lowest and "
        "of the highest. The compute fabric is switches, transceivers, cables and managers; NICs "
        "count with the hosts. plan.json names every source."
    )
    wanted = plan.requirement.site.currency
    if wanted != currency.code:
        words += " " + _("No rate of {currency} is given (site.currency_rate): in USD.").format(
            currency=wanted
        )
    return words


def plan_facts(plan: Plan) -> list[Fact]:
    """Return all rows of the comparison."""
    designs = [candidate.design for candidate in plan.candidates]
    return [
        *design_facts(designs)[2:],
        *forecast_facts([candidate.forecast for candidate in plan.candidates]),
        *_parts(plan.candidates),
        *_money(plan),
        *_growth(plan),
    ]


def _fact(
    plans: Sequence[CandidatePlan],
    label: str,
    value: Callable[[CandidatePlan], str],
    *,
    opens: bool = False,
) -> Fact:
    return Fact(label, tuple(value(plan) for plan in plans), opens)


def _parts(plans: Sequence[CandidatePlan]) -> list[Fact]:
    counts = {row.key: row.values for row in comparison(plans)}

    def count(key: str) -> tuple[str, ...]:
        return tuple(f"{value:,}" for value in counts[key])

    copper = tuple(
        _("{cables} ({copper} copper)").format(cables=cables, copper=copper)
        for cables, copper in zip(count("cables"), count("copper_cables"), strict=True)
    )
    return [
        Fact(_("Cables"), copper, opens=True),
        Fact(_("Transceivers"), count("optics")),
        _fact(plans, _("Racks"), lambda plan: rack_words(plan.fabric)),
        _fact(plans, _("Network power, typical"), lambda plan: _power(plan, "typical_w")),
        _fact(plans, _("Network power, largest"), lambda plan: _power(plan, "max_w")),
    ]


def _power(plan: CandidatePlan, name: str) -> str:
    power = plan.bill.power("compute")
    words = power_words(getattr(power, name))
    return _("at least {power}").format(power=words) if power.n_unknown else words


def _money(plan: Plan) -> list[Fact]:
    currency = currency_of(plan.requirement.site)

    def fact(label: str, amount: Callable[[Capital], Amount], *, opens: bool = False) -> Fact:
        return _fact(
            plan.candidates,
            label,
            lambda candidate: amount_words(currency, amount(candidate.capital)),
            opens=opens,
        )

    return [
        fact(_("List price"), lambda cost: cost.network, opens=True),
        fact(_("List price per GPU"), lambda cost: cost.network_per_gpu),
        _fact(plan.candidates, _("Share of hardware cost"), _share),
        fact(_("With other networks"), lambda cost: cost.all_networks),
        fact(_("Spares"), lambda cost: cost.spares),
    ]


def amount_words(currency: Currency, amount: Amount) -> str:
    """Return an amount as middle and range; ``≥`` where a line of it has no price."""
    if amount.is_unknown:
        return unknown()
    words = currency.range_words((amount.low_usd, amount.mid_usd, amount.high_usd))
    return f"≥ {words}" if amount.is_lower_bound else words


def _share(plan: CandidatePlan) -> str:
    share = plan.capital.share
    return share_words(None if share is None else (share.low, share.mid, share.high))


def _growth(plan: Plan) -> list[Fact]:
    plans, currency = plan.candidates, currency_of(plan.requirement.site)
    return [
        _fact(plans, _("Fits at most"), _most, opens=True),
        _fact(plans, _("Bought when it grows"), _bought_later),
        _fact(plans, _("Price of that"), lambda plan: _price_later(plan, currency)),
        _fact(plans, _("Warnings"), lambda plan: str(len(plan.warnings))),
    ]


def _most(plan: CandidatePlan) -> str:
    tiers = plan.design.sized.tiers
    words = _("{gpus} GPUs in {tiers} tiers") if tiers > 1 else _("{gpus} GPUs in {tiers} tier")
    return words.format(gpus=f"{plan.most_hosts * plan.design.host.gpus:,}", tiers=tiers)


def _bought_later(plan: CandidatePlan) -> str:
    growth = plan.summary["growth"]
    if growth is None:
        return ""
    later = growth["bought_later"]
    switches = later["leaf"] + later["spine"] + later["core"]
    cables = sum(later["links"].values())
    return _("{hosts} hosts, {switches} switches, {cables} cables").format(
        hosts=f"{later['hosts']:,}", switches=f"{switches:,}", cables=f"{cables:,}"
    )


def _price_later(plan: CandidatePlan, currency: Currency) -> str:
    if plan.summary["growth"] is None:
        return ""
    return amount_words(currency, plan.capital.later)
