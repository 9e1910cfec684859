"""What a unit costs in words: a GPU, a GPU-hour, a million tokens, an EFLOP-day of useful work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufabric.core.text import _
from gpufabric.cost.uncertainty import Band
from gpufabric.planner.advice import Advice, RankedCase
from gpufabric.planner.flips import number_text
from gpufabric.report.amounts import Currency, unknown
from gpufabric.report.chart import percent

__all__ = ["UnitCosts", "unit_costs"]


@dataclass(frozen=True)
class UnitCosts:
    """A table of what units cost, one row a way, and what a reader must know of it."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def unit_costs(advice: Advice, currency: Currency) -> UnitCosts:
    """Return what units cost each way, the best first, means over the draws."""
    code = currency.code
    rows = [
        (
            case.label,
            *(
                unknown() if each is None else number_text(each.mean * currency.per_usd)
                for each in _bands(case)
            ),
        )
        for case in advice.ranking
    ]
    heads = (
        _("Way"),
        _("a GPU [{code}]").format(code=code),
        _("a GPU-hour [{code}]").format(code=code),
        _("a million tokens: the network [{code}]").format(code=code),
        _("with GPU-hours [{code}]").format(code=code),
        _("an EFLOP-day: the network [{code}]").format(code=code),
        _("with GPU-hours [{code}]").format(code=code),
    )
    return UnitCosts(heads, tuple(rows), tuple(_notes(advice)))


def _bands(case: RankedCase) -> tuple[Band | None, ...]:
    return (
        case.per_gpu,
        case.per_gpu_hour,
        case.network_per_million_work,
        case.per_million_work,
        case.network_per_eflop_day,
        case.per_eflop_day,
    )


def _notes(advice: Advice) -> Sequence[str]:
    notes = [
        _(
            "Levelised: the price that, asked for each unit when its work is done, has the same "
            "present value as the cost. The network is all that is paid for it and the GPU-hours "
            "that are lost; with GPU-hours, those that do the work are added at their value."
        ),
        _("Means are the mean cost over the mean work."),
    ]
    case = advice.ranked(advice.winner)
    forecast = advice.economics.plan.candidate(case.candidate).forecast
    if forecast.training is not None:
        words = _(
            "An EFLOP-day is 1 EFLOP/s of what the model itself needs, for a day: 8.64e22 FLOP. "
            "{name} gets {mfu} of the GPUs' data-sheet rate in {precision} (MFU), recomputation "
            "not counted."
        )
        notes.append(
            words.format(
                name=case.candidate, mfu=percent(forecast.training.mfu), precision=case.precision
            )
        )
    elif forecast.serving is not None:
        notes.append(
            _(
                "The cost of an EFLOP-day is unknown: the forecast of serving tells tokens, not "
                "which share of the GPUs' FLOPs does useful work."
            )
        )
    else:
        notes.append(_("Costs of work are unknown: there is no forecast of the workload."))
    return notes
