"""The depreciation schedule in words: one column a network, one row a year."""

from __future__ import annotations

from collections.abc import Sequence

from gpufabric.core.text import _
from gpufabric.planner.advice import Advice
from gpufabric.report.amounts import Currency

__all__ = ["depreciation_rows", "depreciation_words"]

MOST_COLUMNS = 8


def depreciation_rows(
    advice: Advice, currency: Currency
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the heads and rows of the schedule; experts hired change nothing in it."""
    hired = {case.name for case in advice.ranking if case.is_hired}
    shown = [one for one in advice.depreciation if one.name not in hired][:MOST_COLUMNS]
    if not shown:
        return (), []
    years = range(1, advice.horizon_years + 1)
    rows: list[tuple[str, Sequence[float]]] = [
        (_("bought at the start"), [one.bought_usd for one in shown]),
        (_("written off each year"), [one.yearly_usd for one in shown]),
        *(
            (
                _("left in the books after year {n}").format(n=year),
                [o.book_usd[year] for o in shown],
            )
            for year in years
        ),
    ]
    heads = (_("Depreciation"), *(one.name for one in shown))
    return heads, [[label, *map(currency.words, amounts)] for label, amounts in rows]


def depreciation_words(advice: Advice) -> str:
    """Return method and life of the schedule, where they are from, and that nobody pays it."""
    question = advice.economics.plan.requirement.cost
    residual = advice.economics.quantities["finance.residual_share"]
    from_spec, assumed = _("from the spec"), _("assumed")
    otherwise = assumed if residual.is_assumed else residual.source
    return _(
        "Straight line over {years} years ({life}: cost.horizon_years), down to what resale brings "
        "then ({residual}: finance.residual_share). No payment: price and resale are in the total "
        "already, so that this is counted in no cost above."
    ).format(
        years=advice.horizon_years,
        life=from_spec if "horizon_years" in question.model_fields_set else assumed,
        residual=from_spec if residual.kind == "spec" else otherwise,
    )
