"""The first screen of the report: who reads nothing else still decides rightly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufabric.core.text import _, sentences
from gpufabric.planner.advice import Advice, RankedCase
from gpufabric.report.amounts import Currency
from gpufabric.report.case_look import case_colour
from gpufabric.report.chart import Chart, chart_html, layout, percent
from gpufabric.report.chart import unbroken as escape
from gpufabric.report.decision_words import Decision, decision_of, network_words
from gpufabric.report.figure_style import INK

__all__ = ["decision_html", "ranges_chart"]

MOST_CASES = 6
MOST_PITFALLS = 3


def decision_html(advice: Advice, currency: Currency) -> str:
    """Return the card with the verdict."""
    told = decision_of(advice)
    sure = f"<b>{escape(told.sure)}</b>" if told.sure else ""
    answer = sentences(escape(told.answer), sure)
    left = [
        f'<h2>{escape(told.headline)}</h2><p class="what">{escape(told.network)}</p>',
        f'<p class="answer">{answer}</p>',
        _keys(told),
        _list(_("Why"), told.reasons, "ol"),
        _list(_("What speaks against it"), told.objections[:2], "ul"),
        _list(
            _("Buy or subscribe, InfiniBand or RoCE"),
            [words for words in (told.ownership, told.fabrics) if words],
            "ul",
        ),
        _list(_("What the workload gets"), [told.work], "ul"),
    ]
    right = [
        chart_html(ranges_chart(advice, currency)),
        _list(_("What would change it"), told.conditions, "ul", _("Nothing that was tried.")),
    ]
    wide = ""
    if told.wrong:
        wide += f"<h3>{escape(_('If it is wrong'))}</h3><p>{escape(told.wrong)}</p>"
    return (
        f'<div class="verdict"><div>{"".join(left)}</div><div>{"".join(right)}</div>'
        f'<div class="wide two"><div>{wide}</div><div>{_pitfalls(told)}</div></div></div>'
    )


def _keys(told: Decision) -> str:
    cells = "".join(
        f'<div class="key"><b>{escape(value)}</b><span>{escape(words)}</span></div>'
        for value, words in told.keys
    )
    return f'<div class="keys">{cells}</div>'


def _list(title: str, told: Sequence[str], tag: str, otherwise: str = "") -> str:
    if not told:
        return f"<h3>{escape(title)}</h3><p>{escape(otherwise)}</p>" if otherwise else ""
    items = "".join(f"<li>{_with_topic(words)}</li>" for words in told)
    return f"<h3>{escape(title)}</h3><{tag}>{items}</{tag}>"


def _with_topic(words: str) -> str:
    """Return a sentence with what stands before its first colon in bold."""
    for colon in (": ", "\uff1a"):
        topic, found, rest = words.partition(colon)
        if found and len(topic) < 64:
            return f"<b>{escape(topic)}{colon}</b>{escape(rest)}"
    return escape(words)


def _pitfalls(told: Decision) -> str:
    if not told.pitfalls:
        words = _("None was found.")
        return f"<h3>{escape(_('Pitfalls in this spec'))}</h3><p>{escape(words)}</p>"
    listed = [
        f"<li>{sentences(escape(what), f'<b>{escape(remedy)}</b>')}</li>"
        for what, remedy in told.pitfalls
    ]
    items = "".join(listed[:MOST_PITFALLS])
    rest = listed[MOST_PITFALLS:]
    if rest:
        words = escape(_("and {n} more").format(n=len(rest)))
        more = f"<summary>{words}</summary><ul>{''.join(rest)}</ul>"
        items += f'<li><details class="rest">{more}</details></li>'
    title = escape(_("Pitfalls in this spec"))
    return f'<h3>{title}</h3><ul class="pit">{items}</ul>'


def ranges_chart(advice: Advice, currency: Currency) -> Chart:
    """Draw the range of what each way costs, the best on top."""
    shown = advice.ranking[:MOST_CASES]
    names = [case.name for case in shown]
    plans = {plan.name: plan for plan in advice.economics.plan.candidates}
    return Chart(
        name="decision-ranges",
        title=_("Cost over {years} years [million {code}]").format(
            years=advice.horizon_years, code=currency.code
        ),
        words=_("Mean, and the range that holds eight of ten draws; lost GPU-hours included."),
        traces=_ranges(advice, shown, currency.per_usd / 1e6),
        layout=layout(
            48 + (40 if len(shown) < 5 else 30) * len(shown),
            showlegend=False,
            xaxis={"rangemode": "tozero"},
            yaxis={
                "type": "category",
                "categoryorder": "array",
                "categoryarray": names,
                "range": [len(names) - 0.6, -0.75],
                "showgrid": False,
            },
        ),
        heads=[_("Way"), _("network"), _("mean"), _("P10 to P90"), _("chance to be best")],
        rows=[
            [
                case.label,
                network_words(plans[case.candidate]),
                currency.words(case.total.mean),
                f"{currency.words(case.total.p10)} – {currency.words(case.total.p90)}",
                percent(case.best_chance),
            ]
            for case in shown
        ],
        is_labelled=True,
    )


def _ranges(advice: Advice, shown: Sequence[RankedCase], scale: float) -> list[dict[str, Any]]:
    """Return a bar for the range of each way, and the mean on it."""
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [case.total.p10 * scale, case.total.p90 * scale],
            "y": [case.name, case.name],
            "line": {
                "width": 9,
                "color": case_colour(advice, case.name),
            },
            "hoverinfo": "skip",
        }
        for case in shown
    ]
    middle = [case.total.mean * scale for case in shown]
    data.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": middle,
            "y": [case.name for case in shown],
            "text": [f"{value:,.2f}" for value in middle],
            "textposition": "top center",
            "textfont": {"size": 11},
            "cliponaxis": False,
            "marker": {"size": 9, "color": "#ffffff", "line": {"color": INK, "width": 2}},
            "hovertemplate": "%{y}: %{x:.3f}<extra></extra>",
        }
    )
    return data
