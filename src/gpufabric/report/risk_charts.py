"""Figures of what is uncertain: what moves the margin, what would turn it, what fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpufabric.core.text import _, listed
from gpufabric.cost.opportunity import (
    interruptions,
    locate_hours,
    misconfigurations,
    repair_factor,
    stop_hours,
)
from gpufabric.cost.quantity import one_draw
from gpufabric.cost.uncertainty import Swing, difference_of
from gpufabric.planner.advice import Advice
from gpufabric.planner.cost_words import item_label
from gpufabric.planner.economics import CaseCost, Economics
from gpufabric.planner.quantity_words import SHARES, quantity_label, tools_label, unit_words
from gpufabric.report.amounts import Currency
from gpufabric.report.case_look import case_colour
from gpufabric.report.chart import Chart, layout, signed
from gpufabric.report.figure_style import INK, rail_colour

__all__ = ["failure_rows", "lost_chart", "margin_chart", "number_words", "tornado_chart"]

MOST_SWINGS = 12
MOST_CASES = 8
BINS = 48
CAUSES = ("deployment", "failures", "misconfiguration", "communication", "jitter")
HOURS_A_YEAR = 8760.0


def number_words(value: float, unit: str = "") -> str:
    """Return a number to three digits with its unit; shares as percentages.

    Examples
    --------
    >>> number_words(0.0144, "1/(link year)"), number_words(0.08, "share"), number_words(300000.0)
    ('0.0144 per link and year', '8 %', '300,000')
    """
    if unit in SHARES:
        return f"{float(f'{100 * value:.3g}'):g} %"
    exact = float(f"{value:.3g}")
    text = f"{exact:,.0f}" if abs(exact) >= 1000 else f"{exact:g}"
    return text if unit in ("", "1") else f"{text} {unit_words(unit)}"


# Tornado -------------------------------------------------------------------------------------


def tornado_chart(advice: Advice, currency: Currency) -> Chart:
    """Draw what each number alone does to what the second choice costs more."""
    money = advice.economics
    best, other = money.cost(advice.winner), money.cost(advice.runner_up)
    keys = best.outcome.keys | other.outcome.keys
    at_middle = one_draw(money.quantities[key] for key in keys)
    centre = float(difference_of(other.case, best.case)(at_middle)[0]) * currency.per_usd / 1e6
    swings = [swing for swing in advice.tornado_margin if swing.size > 0][:MOST_SWINGS]
    labels = [quantity_label(swing.quantity.key) for swing in swings]
    data = [
        _side(swings, labels, centre, currency, is_low=True),
        _side(swings, labels, centre, currency, is_low=False),
    ]
    words = _(
        "What {other} costs more than {best}, as each number alone goes from what a tenth of its "
        "draws stay below to what nine tenths do, all others at their most likely. Left of zero "
        "{other} would be the cheaper one. With every number at its most likely the margin is "
        "{centre} million {code}, in the mean of all draws {mean}."
    ).format(
        best=best.name,
        other=other.name,
        centre=signed(centre),
        mean=signed((other.total.mean - best.total.mean) * currency.per_usd / 1e6),
        code=currency.code,
    )
    return Chart(
        name="tornado",
        title=_("What moves the margin most"),
        words=words,
        traces=data,
        layout=layout(
            110 + 27 * len(labels),
            barmode="overlay",
            xaxis={
                "title": {
                    "text": _("{other} less {best} [million {code}]").format(
                        other=other.name, best=best.name, code=currency.code
                    )
                },
                "zeroline": True,
                "zerolinewidth": 2,
                "zerolinecolor": INK,
            },
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False},
            bargap=0.3,
        ),
        heads=[_("Number"), _("low"), _("high"), _("margin at low"), _("margin at high")],
        rows=[_swing_row(swing, currency) for swing in swings],
    )


def _side(
    swings: Sequence[Swing],
    labels: Sequence[str],
    centre: float,
    currency: Currency,
    *,
    is_low: bool,
) -> dict[str, Any]:
    ends = [(swing.low if is_low else swing.high) * currency.per_usd / 1e6 for swing in swings]
    values = [swing.quantity.low if is_low else swing.quantity.high for swing in swings]
    units = [swing.quantity.unit for swing in swings]
    return {
        "type": "bar",
        "orientation": "h",
        "name": _("number is low") if is_low else _("number is high"),
        "y": list(labels),
        "base": [centre] * len(ends),
        "x": [end - centre for end in ends],
        "marker": {
            "color": rail_colour(4) if is_low else rail_colour(5),
            "pattern": {
                "shape": "" if is_low else "/",
                "fillmode": "overlay",
                "fgcolor": "#ffffff",
                "size": 6,
            },
        },
        "customdata": [
            [number_words(value, unit), end]
            for value, unit, end in zip(values, units, ends, strict=True)
        ],
        "hovertemplate": "%{y}, %{customdata[0]}: %{customdata[1]:.3f}<extra></extra>",
    }


def _swing_row(swing: Swing, currency: Currency) -> list[str]:
    one = swing.quantity
    return [
        quantity_label(one.key),
        number_words(one.low, one.unit),
        number_words(one.high, one.unit),
        currency.words(swing.low),
        currency.words(swing.high),
    ]


# The margin as a distribution ------------------------------------------------------------------


def margin_chart(advice: Advice, currency: Currency) -> Chart:
    """Draw how often the second choice costs how much more."""
    best, other = (advice.economics.cost(name) for name in (advice.winner, advice.runner_up))
    gaps = (other.outcome.total - best.outcome.total) * currency.per_usd / 1e6
    low, high = (float(value) for value in np.quantile(gaps, (0.002, 0.998)))
    counts, edges = np.histogram(np.clip(gaps, low, high), bins=BINS, range=(low, high))
    centres = (edges[:-1] + edges[1:]) / 2
    shares = counts / len(gaps)
    mine, theirs = case_colour(advice, best.name), case_colour(advice, other.name)
    colours = [mine if centre > 0 else theirs for centre in centres]
    wins = float(np.mean(gaps > 0))
    p10, p50, p90 = (float(value) for value in np.quantile(gaps, (0.1, 0.5, 0.9)))
    words = _(
        "All {n} draws: {best} is cheaper than {other} in {share} %. In the middle {other} costs "
        "{mid} million {code} more; eight of ten draws lie from {low} to {high}."
    ).format(
        n=f"{len(gaps):,}",
        best=best.name,
        other=other.name,
        share=f"{100 * wins:.0f}",
        mid=f"{p50:,.2f}",
        code=currency.code,
        low=signed(p10),
        high=signed(p90),
    )
    return Chart(
        name="margin-draws",
        title=_("How sure the margin is"),
        words=words,
        traces=[
            {
                "type": "bar",
                "x": centres.tolist(),
                "y": shares.tolist(),
                "marker": {"color": colours},
                "hovertemplate": "%{x:.2f}: %{y:.1%}<extra></extra>",
            }
        ],
        layout=layout(
            300,
            bargap=0.06,
            showlegend=False,
            xaxis={
                "title": {
                    "text": _("{other} less {best} [million {code}]").format(
                        other=other.name, best=best.name, code=currency.code
                    )
                },
                "zeroline": True,
                "zerolinewidth": 2,
                "zerolinecolor": INK,
            },
            yaxis={"title": {"text": _("share of draws")}, "tickformat": ".0%"},
            margin={"l": 12, "r": 16, "t": 30, "b": 12},
            annotations=_sides(best.name, other.name),
        ),
        heads=[_("Margin"), _("million {code}").format(code=currency.code)],
        rows=[["P10", f"{p10:,.3f}"], ["P50", f"{p50:,.3f}"], ["P90", f"{p90:,.3f}"]],
        is_labelled=True,
    )


def _sides(best: str, other: str) -> list[dict[str, Any]]:
    """Return the words beside zero, above the bars, that tell who is cheaper there."""
    place = {"x": 0, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    return [
        {"text": f"<b>← {other}</b>", **place, "xanchor": "right", "xshift": -6},
        {"text": f"<b>{best} →</b>", **place, "xanchor": "left", "xshift": 6},
    ]


# Failures and repair -----------------------------------------------------------------------------


def lost_chart(costs: Sequence[CaseCost]) -> Chart:
    """Draw the GPU-hours that each case loses over the horizon, by cause."""
    shown = costs[:MOST_CASES]
    names = [cost.name for cost in shown]
    lost = {
        cause: [
            float(cost.outcome.lost_gpu_hours[cause].mean())
            * (1 if cause == "deployment" else cost.case.horizon_years)
            for cost in shown
        ]
        for cause in CAUSES
    }
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": lost[cause],
            "name": item_label(cause),
            "marker": {
                "color": rail_colour((7, 3, 6, 4, 5)[number]),
                "line": {"color": "#ffffff", "width": 1},
            },
            "hovertemplate": "%{x:,.0f}",
        }
        for number, cause in enumerate(CAUSES)
    ]
    words = _(
        "Mean GPU-hours that do no work over {years} years because of the network. Waiting counts "
        "only beyond a network that never blocks, so that all GPUs' own share is charged to none."
    ).format(years=shown[0].case.horizon_years)
    return Chart(
        name="lost-hours",
        title=_("GPU-hours lost, by cause"),
        words=words,
        traces=data,
        layout=layout(
            190 + 36 * len(names),
            barmode="stack",
            xaxis={"title": {"text": _("GPU-hours")}, "rangemode": "tozero", "tickformat": ",d"},
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False},
            bargap=0.32,
        ),
        heads=[_("Cause"), *names],
        rows=[
            [item_label(cause), *(f"{value:,.0f}" for value in values)]
            for cause, values in lost.items()
        ],
    )


def failure_rows(costs: Sequence[CaseCost], money: Economics) -> list[list[str]]:
    """Return what fails in a year, what it stops, and how long that lasts: a column a case."""
    columns = [_failure_column(cost, money) for cost in costs[:MOST_CASES]]
    labels = [
        _("Links to hosts and NICs that fail in a year"),
        _("Links between switches that fail in a year"),
        _("Switches that fail in a year"),
        _("Stops of the job by the network in a year"),
        _("Days between two of them"),
        _("Lost by one stop"),
        _("Time to find a cause, where no automatism helps"),
        _("Time to exchange a part; a switch"),
        _("Incidents by wrong settings in a year"),
        _("A failure at a host's link"),
    ]
    return [[label, *(column[row] for column in columns)] for row, label in enumerate(labels)]


def _failure_column(cost: CaseCost, money: Economics) -> list[str]:
    case, draws = cost.case, money.draws
    events = interruptions(case, draws)
    stops = events.stopping(case.facts.exposure.planes, draws)
    longer = repair_factor(case, draws)
    planes = case.facts.exposure.planes
    days = HOURS_A_YEAR / 24 / np.maximum(stops, 1e-9)
    return [
        _spread(events.access),
        _spread(events.uplinks),
        _spread(events.leafs + events.upper_switches),
        _spread(stops),
        _spread(days),
        _spread(stop_hours(case, draws), " h"),
        listed([_spread(locate_hours(case, draws), " h"), tools_label(case.operator_tools)]),
        "; ".join(
            _spread(longer * draws[key], " h") for key in ("repair.hours", "repair.switch_hours")
        ),
        _spread(misconfigurations(case, draws)),
        _("stops the job")
        if planes == 1
        else _("takes 1/{planes} of its bandwidth").format(planes=planes),
    ]


def _spread(values: Any, unit: str = "") -> str:
    """Return the median and, in brackets, what eight of ten draws lie within."""
    low, mid, high = (float(value) for value in np.quantile(values, (0.1, 0.5, 0.9)))
    mid_words, low_words, high_words = (_short(value) for value in (mid, low, high))
    return f"{mid_words}{unit} ({low_words}–{high_words})"


def _short(value: float) -> str:
    """Return a number with two digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{float(f'{value:.2g}'):g}"
