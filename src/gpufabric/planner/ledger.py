"""The assumption ledger: every number that an advice rests on, and how much of it hangs on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpufabric.core.text import _
from gpufabric.cost.facts import NetworkFacts
from gpufabric.cost.outcome import evaluate
from gpufabric.cost.quantity import Draws, Quantity, draw
from gpufabric.cost.uncertainty import variance_shares
from gpufabric.planner.economics import CaseCost, Economics
from gpufabric.planner.quantity_words import quantity_label

__all__ = ["LedgerRow", "ledger"]

SHARE_DRAWS = 8192
"""Fewest draws from which shares of variance are taken."""


@dataclass(frozen=True)
class LedgerRow:
    """One number.

    Parameters
    ----------
    key, label
        Stable name, by which a spec overrides it where `is_settable`, and in words.
    low, mid, high
        Lowest, most likely and highest value.
    unit
        Unit; ``1`` or ``share`` without one.
    source, date, kind
        Where it is from, as in the catalogue; ``spec`` as kind where the user gave it, ``design``
        where it was counted or reckoned from the design.
    note
        What a reader must know about it.
    share_of_winner
        Share, 0 to 1, of the variance of the winner's total that it explains alone.
    share_of_margin
        The same of the runner-up's total less the winner's; 0 where there is no runner-up.
    is_settable
        Whether a spec may give another value under ``cost.assumptions``.
    """

    key: str
    label: str
    low: float
    mid: float
    high: float
    unit: str
    source: str
    date: str
    kind: str
    note: str
    share_of_winner: float
    share_of_margin: float
    is_settable: bool

    @property
    def is_assumed(self) -> bool:
        """Whether no source stands behind it."""
        return self.kind == "assumed"


def ledger(
    economics: Economics, winner: CaseCost, runner_up: CaseCost | None
) -> tuple[LedgerRow, ...]:
    """Return every number that some case read, those that move the decision most first.

    Parameters
    ----------
    economics
        All cases.
    winner, runner_up
        Those whose variance is shared out.
    """
    read = set().union(*(cost.outcome.keys for cost in economics.costs))
    draws = _enough(economics, read)
    mine = evaluate(winner.case, draws).total
    of_winner = variance_shares(mine, draws, sorted(read))
    of_margin: dict[str, float] = {}
    if runner_up is not None:
        theirs = evaluate(runner_up.case, draws).total
        of_margin = variance_shares(theirs - mine, draws, sorted(read))
    rows = [
        _row(economics.quantities[key], of_winner.get(key, 0.0), of_margin.get(key, 0.0))
        for key in read
    ]
    rows.sort(key=lambda row: (-row.share_of_margin, -row.share_of_winner, row.key))
    facts = {cost.case.facts.name: cost.case.facts for cost in economics.costs}
    counted = [row for one in facts.values() for row in _design_rows(one)]
    return (*rows, *counted, *_offer_rows(economics.costs))


def _enough(economics: Economics, read: set[str]) -> Draws:
    """Draws for shares of variance: of few, pairs of quantities look as if they hung together."""
    if len(next(iter(economics.draws.values()))) >= SHARE_DRAWS:
        return economics.draws
    needed = [economics.quantities[key] for key in sorted(read)]
    return draw(needed, SHARE_DRAWS, economics.plan.requirement.seed)


def _row(quantity: Quantity, of_winner: float, of_margin: float) -> LedgerRow:
    is_settable = not quantity.key.startswith(("price.", "forecast."))
    return LedgerRow(
        quantity.key,
        quantity_label(quantity.key),
        quantity.low,
        quantity.mid,
        quantity.high,
        quantity.unit,
        quantity.source,
        quantity.date,
        quantity.kind,
        quantity.note,
        of_winner,
        of_margin,
        is_settable,
    )


def _fixed(key: str, label: str, value: float, unit: str, source: str) -> LedgerRow:
    return LedgerRow(
        key, label, value, value, value, unit, source, "", "design", "", 0.0, 0.0, is_settable=False
    )


def _design_rows(facts: NetworkFacts) -> Iterator[LedgerRow]:
    """Yield what was counted in a design or forecast for its workload."""
    source = _("design of {name}, hash {hash}").format(name=facts.name, hash=facts.fabric_hash[:12])
    exposure = facts.exposure
    optical = exposure.access_optical + exposure.uplink_optical
    copper = exposure.access_copper + exposure.uplink_copper
    counted = (
        ("gpus", _("GPUs"), facts.n_gpus, "1"),
        ("job_gpus", _("GPUs that stop together"), facts.job_gpus, "1"),
        ("switches", _("Switches"), facts.n_switches, "1"),
        ("cables", _("Cables"), facts.n_cables, "1"),
        ("optical_links", _("Optical links"), optical, "1"),
        ("copper_links", _("Copper links"), copper, "1"),
        ("nics", _("NICs"), exposure.nics, "1"),
        ("planes", _("Planes"), exposure.planes, "1"),
        ("rack_units", _("Height of the switches"), facts.switch_units, "RU"),
        ("typical_w", _("Power of the networks, typical"), facts.typical_w, "W"),
        ("max_w", _("Power of the networks, largest"), facts.max_w, "W"),
        ("unpriced", _("Lines without a price"), facts.n_unpriced, "1"),
    )
    for key, label, value, unit in counted:
        yield _fixed(f"design.{facts.name}.{key}", label, float(value), unit, source)
    performance = facts.performance
    if performance is None:
        return
    times: list[tuple[str, str, float]] = [
        ("step_s", _("Step or token, packets spread"), performance.step_s),
        (
            "ideal_step_s",
            _("Step or token on a network that never blocks"),
            performance.ideal_step_s,
        ),
        ("hashed_step_s", _("Step or token, flows hashed"), performance.hashed_step_s),
        ("jitter_s", _("Late messages in a step or token"), performance.jitter_s),
    ]
    direct = facts.direct_performance
    if direct is not None:
        times.append(("direct_step_s", _("Step or token with GPUDirect RDMA"), direct.step_s))
    for key, label, value in times:
        yield _fixed(f"forecast.{facts.name}.{key}", label, value, "s", performance.source)


def _offer_rows(costs: Sequence[CaseCost]) -> Iterator[LedgerRow]:
    """Yield what offers say."""
    offers = {cost.case.offer.name: cost.case.offer for cost in costs if cost.case.offer}
    for name, offer in offers.items():
        said = (
            ("usd_per_port_month", _("Fee of a GPU's port"), offer.usd_per_port_month, "USD/month"),
            ("usd_per_gbps_month", _("Fee of 1 Gb/s"), offer.usd_per_gbps_month, "USD/month"),
            ("setup_usd", _("Set-up fee"), offer.setup_usd, "USD"),
            ("term_months", _("Term"), offer.term_months, "month"),
            ("credit_share", _("Credit of a missed month"), offer.credit_share, "share"),
            ("exit_months", _("Fees due on leaving"), offer.exit_months, "month"),
        )
        for key, label, value, unit in said:
            if value is not None:
                source = offer.source or "spec"
                yield _fixed(f"offer.{name}.{key}", label, float(value), unit, source)
