"""Figures of what the cases cost: groups, items of the winner, the margin, cost over time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _, sentences
from gpufabric.cost.outcome import GROUPS, group_of
from gpufabric.cost.uncertainty import Band
from gpufabric.planner.advice import Advice, BreakEven
from gpufabric.planner.argument import compared_items
from gpufabric.planner.cost_words import item_label
from gpufabric.planner.economics import CaseCost
from gpufabric.report.amounts import Currency
from gpufabric.report.case_look import candidate_colour, case_dash
from gpufabric.report.chart import Chart, layout, signed
from gpufabric.report.figure_style import INK, QUIET, SPINE, rail_colour, tinted

__all__ = ["cost_charts", "crossing_words", "group_words"]

Floats = NDArray[np.float64]

GROUP_COLOURS = {
    "capital": SPINE,
    "operating": rail_colour(4),
    "subscription": rail_colour(5),
    "opportunity": rail_colour(6),
}
TOTAL_COLOUR = tinted(INK, 0.35)
LEAST_SHARE = 0.004
"""Share of the total below which an item is summed up with others."""
MOST_CASES = 12
"""Cases that a figure shows."""
MOST_LINES = 6
"""Lines of the cost over time."""


def cost_charts(advice: Advice, currency: Currency) -> tuple[Chart, ...]:
    """Return the figures: groups, items of the winner, the margin, cost over time."""
    costs = [advice.economics.cost(case.name) for case in advice.ranking]
    charts = [_groups(costs[:MOST_CASES], currency), _waterfall(costs[0], currency)]
    if advice.runner_up:
        charts.append(_margin(costs[0], advice.economics.cost(advice.runner_up), currency))
    charts.append(_over_time(_lines(costs), advice, currency))
    return tuple(charts)


def group_words(name: str) -> str:
    """Return what a group of items is called."""
    return {
        "capital": _("bought"),
        "operating": _("running costs"),
        "subscription": _("subscription"),
        "opportunity": _("GPU-hours lost"),
    }[name]


def _million(amount: float, currency: Currency) -> float:
    return amount * currency.per_usd / 1e6


def _axis(currency: Currency) -> dict[str, Any]:
    return {"title": {"text": _("million {code}").format(code=currency.code)}}


# Groups --------------------------------------------------------------------------------------


def _groups(costs: Sequence[CaseCost], currency: Currency) -> Chart:
    names = [cost.name for cost in costs]
    means = {group: [float(cost.outcome.group(group).mean()) for cost in costs] for group in GROUPS}
    shown = [group for group in GROUPS if any(means[group])]
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": [_million(value, currency) for value in means[group]],
            "name": group_words(group),
            "marker": {"color": GROUP_COLOURS[group], "line": {"color": "#ffffff", "width": 1}},
            "hovertemplate": "%{x:.3f}",
        }
        for group in shown
    ]
    words = _(
        "Present value over {years} years, the cheapest first; the mark spans eight of ten draws. "
        "GPU-hours lost are no invoice: they are work that does not get done, at its market value."
    ).format(years=costs[0].case.horizon_years)
    return Chart(
        name="cost-groups",
        title=_("What each way costs"),
        words=words,
        traces=[*data, _ranges(names, [cost.total for cost in costs], currency)],
        layout=layout(
            150 + 40 * len(names),
            barmode="relative",
            xaxis={**_axis(currency), "rangemode": "tozero"},
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False},
            bargap=0.32,
        ),
        heads=[_("Way"), *(group_words(group) for group in shown), _("mean"), "P10", "P50", "P90"],
        rows=[
            [
                cost.name,
                *(currency.words(means[group][at]) for group in shown),
                *map(currency.words, (cost.total.mean, *_quantiles(cost.total))),
            ]
            for at, cost in enumerate(costs)
        ],
    )


def _quantiles(total: Band) -> tuple[float, float, float]:
    return total.p10, total.p50, total.p90


def _ranges(names: Sequence[str], totals: Sequence[Band], currency: Currency) -> dict[str, Any]:
    """Return the marks of the mean, with what eight of ten draws lie within."""
    above = [_million(max(0.0, total.p90 - total.mean), currency) for total in totals]
    below = [_million(max(0.0, total.mean - total.p10), currency) for total in totals]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [_million(total.mean, currency) for total in totals],
        "y": list(names),
        "name": _("mean, P10 to P90"),
        "marker": {"symbol": "line-ns-open", "size": 14, "color": INK},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "thickness": 1.4,
            "color": INK,
        },
        "hovertemplate": "%{x:.3f}",
    }


# Waterfalls ----------------------------------------------------------------------------------


def _told_items(amounts: Mapping[str, float], least: float) -> list[tuple[str, str, float]]:
    """Return group, words and amount of each item, group by group; small ones are summed up."""
    told = [
        ("capital" if name in ("links", "network") else group_of(name), item_label(name), value)
        for name, value in amounts.items()
        if abs(value) >= least
    ]
    told.sort(key=lambda row: (GROUPS.index(row[0]), -abs(row[2])))
    rest = sum(value for value in amounts.values() if abs(value) < least)
    if rest:
        told.append(("", _("all other"), rest))
    return told


@dataclass(frozen=True)
class _Step:
    """One bar of a waterfall: what it is, where it starts, how long it is, its colour, its text."""

    label: str
    base: float
    length: float
    colour: str
    text: str


def _waterfall(cost: CaseCost, currency: Currency) -> Chart:
    amounts = {name: float(value.mean()) for name, value in cost.outcome.items.items()}
    at, steps = 0.0, []
    for group, label, value in _told_items(amounts, LEAST_SHARE * abs(cost.total.mean)):
        length = _million(value, currency)
        steps.append(_Step(label, at, length, GROUP_COLOURS.get(group, QUIET), signed(length)))
        at += length
    steps.append(_Step(_("total"), 0.0, at, TOTAL_COLOUR, f"{at:,.2f}"))
    words = _(
        "How the mean cost of {name} adds up over {years} years, in present value: bought, "
        "running, then GPU-hours lost. What comes back at the end is taken off."
    ).format(name=cost.name, years=cost.case.horizon_years)
    return _falling("waterfall", _("What the total is made of"), words, steps, currency)


def _margin(best: CaseCost, other: CaseCost, currency: Currency) -> Chart:
    mine, theirs = compared_items(best.outcome.items, other.outcome.items)
    zero = np.zeros(1)
    amounts = {
        name: float(theirs.get(name, zero).mean() - mine.get(name, zero).mean())
        for name in dict.fromkeys((*mine, *theirs))
    }
    least = 0.03 * sum(abs(value) for value in amounts.values()) / 2
    told = sorted(_told_items(amounts, least), key=lambda row: -row[2])
    at = _million(best.total.mean, currency)
    steps = [_Step(best.name, 0.0, at, TOTAL_COLOUR, f"{at:,.2f}")]
    for _group, label, value in told:
        length = _million(value, currency)
        colour = rail_colour(3) if length > 0 else rail_colour(4)
        steps.append(_Step(label, at, length, colour, signed(length)))
        at += length
    steps.append(_Step(other.name, 0.0, at, TOTAL_COLOUR, f"{at:,.2f}"))
    words = _(
        "From the mean cost of {best} to that of {other}: where the second choice costs more "
        "(red), and where it saves (green). The axis does not start at zero."
    ).format(best=best.name, other=other.name)
    ends = [step.base + step.length for step in steps]
    edge = 0.3 * (max(ends) - min(ends) or abs(at))
    span = (max(0.0, min(ends) - edge), max(ends) + edge)
    return _falling("margin", _("Where the margin comes from"), words, steps, currency, span)


def _falling(
    name: str,
    title: str,
    words: str,
    steps: Sequence[_Step],
    currency: Currency,
    span: tuple[float, float] | None = None,
) -> Chart:
    axis = _axis(currency)
    ends = [max(step.base, step.base + step.length) for step in steps]
    labels = [step.label for step in steps]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": labels,
        "base": [step.base for step in steps],
        "x": [step.length for step in steps],
        "marker": {"color": [step.colour for step in steps]},
        "customdata": [step.text for step in steps],
        "hovertemplate": "%{y}: %{customdata}<extra></extra>",
    }
    texts = {
        "type": "scatter",
        "mode": "text",
        "y": labels,
        "x": ends,
        "text": [f" {step.text}" for step in steps],
        "textposition": "middle right",
        "textfont": {"size": 11},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }
    shown = {"range": list(span)} if span else {"rangemode": "tozero"}
    return Chart(
        name=name,
        title=title,
        words=words,
        traces=[bars, texts],
        layout=layout(
            90 + 25 * len(labels),
            xaxis={**axis, **shown},
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False},
            margin={"l": 12, "r": 50, "t": 10, "b": 12},
            showlegend=False,
            bargap=0.3,
        ),
        heads=[_("Item"), axis["title"]["text"]],
        rows=[[step.label, step.text] for step in steps],
        is_labelled=True,
    )


# Over time -----------------------------------------------------------------------------------


def _lines(costs: Sequence[CaseCost]) -> list[CaseCost]:
    """Return the winner, the other ways to have the same network, and the best of others."""
    best = costs[0]
    same = [cost for cost in costs[1:] if cost.plan.name == best.plan.name][: MOST_LINES - 2]
    rest = [cost for cost in costs[1:] if cost.plan.name != best.plan.name]
    return [best, *same, *rest[: MOST_LINES - 1 - len(same)]]


def _over_time(costs: Sequence[CaseCost], advice: Advice, currency: Currency) -> Chart:
    flows = {flow.name: flow.cumulative_usd for flow in advice.cash}
    paid = {cost.name: flows[cost.name] for cost in costs}
    return Chart(
        name="over-time",
        title=_("Cost over time"),
        words=_time_words(advice, paid),
        traces=_time_lines(costs, paid, advice, currency),
        layout=layout(
            380,
            xaxis={"title": {"text": _("years")}, "dtick": 1},
            yaxis={**_axis(currency), "rangemode": "tozero"},
            hovermode="x unified",
        ),
        heads=[_("After"), *paid],
        rows=[
            [
                _("{n} years").format(n=year),
                *(currency.words(float(values[12 * year])) for values in paid.values()),
            ]
            for year in range(costs[0].case.horizon_years + 1)
        ],
    )


def _time_lines(
    costs: Sequence[CaseCost], paid: Mapping[str, Floats], advice: Advice, currency: Currency
) -> list[dict[str, Any]]:
    plans = advice.economics.plan.candidates
    colours = {plan.name: candidate_colour(number) for number, plan in enumerate(plans)}
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": cost.name,
            "x": (np.arange(len(paid[cost.name])) / 12).tolist(),
            "y": (paid[cost.name] * currency.per_usd / 1e6).tolist(),
            "line": {
                "color": colours[cost.plan.name],
                "width": 2.4,
                "dash": case_dash(advice, cost.name),
            },
            "hovertemplate": "%{y:.2f}",
        }
        for cost in costs
    ]
    crossed = [
        (one.month, paid[one.bought])
        for one in advice.break_evens
        if one.month and one.bought in paid and one.subscribed in paid
    ]
    if crossed:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": _("cost the same"),
                "x": [month / 12 for month, _values in crossed],
                "y": [_million(float(values[month]), currency) for month, values in crossed],
                "marker": {
                    "symbol": "circle-open",
                    "size": 12,
                    "color": INK,
                    "line": {"width": 2},
                },
                "hoverinfo": "skip",
            }
        )
    return data


def _time_words(advice: Advice, shown: Container[str]) -> str:
    words = _(
        "Everything paid and lost up to a month, in present value. What the equipment fetches at "
        "the end comes back in the last month; fees for leaving fall due then."
    )
    told = [
        crossing_words(one)
        for one in advice.break_evens
        if one.bought in shown and one.subscribed in shown
    ]
    return sentences(words, *told)


def crossing_words(one: BreakEven) -> str:
    """Return when a bought network has cost no more than a subscription, as a sentence."""
    names = {"bought": one.bought, "subscribed": one.subscribed}
    if one.month is None:
        return _("{bought} never comes down to the cost of {subscribed}.").format(**names)
    if one.month == 0:
        return _("{bought} costs less than {subscribed} from the start.").format(**names)
    return _("{bought} has cost no more than {subscribed} from month {month} on.").format(
        **names, month=one.month
    )
