"""The selection guide: who wins at which size of cluster and value of a GPU-hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpufabric.core.text import _, listed, sentences
from gpufabric.planner.advice import Advice, ScaleCell, ScaleChart
from gpufabric.planner.ranking import case_label
from gpufabric.report.amounts import Currency
from gpufabric.report.case_look import case_colour
from gpufabric.report.chart import Chart, layout, percent
from gpufabric.report.figure_style import HAIRLINE, INK, LETTERS, ink_on

__all__ = ["guide_chart"]


def guide_chart(advice: Advice, guide: ScaleChart, currency: Currency) -> Chart:
    """Draw the winner of every size and value; the letter names the case, the share its chance."""
    names = _winners(advice, guide)
    colours = {name: case_colour(advice, name) for name in names}
    rows = [[guide.cell(size, value) for size in guide.sizes] for value in guide.gpu_hour_usd]
    own = advice.economics.plan.candidates[0].n_gpus
    return Chart(
        name="guide",
        title=_("Selection guide: who wins at which size and value of a GPU-hour"),
        words=_words(advice, guide, own),
        traces=[_cells(guide, rows, colours), *_legend(advice, colours)],
        layout=layout(
            130 + 44 * len(rows),
            xaxis={"type": "category", "title": {"text": _("GPUs")}, "showgrid": False},
            yaxis={
                "type": "category",
                "title": {"text": _("value of a GPU-hour [USD]")},
                "showgrid": False,
            },
            annotations=_marks(rows, colours),
            shapes=_framed(guide, own),
            plot_bgcolor=HAIRLINE,
        ),
        heads=[_("GPUs"), _("winner"), _("next"), _("margin"), _("chance to be cheaper")],
        rows=[_row(cell, currency) for cell in guide.drawn],
    )


_Rows = Sequence[Sequence[ScaleCell]]


def _cells(guide: ScaleChart, rows: _Rows, colours: Mapping[str, str]) -> dict[str, Any]:
    names = list(colours)
    return {
        "type": "heatmap",
        "x": [f"{size:,}" for size in guide.sizes],
        "y": [f"{value:g}" for value in guide.gpu_hour_usd],
        "z": [[names.index(cell.winner) for cell in row] for row in rows],
        "zmin": -0.5,
        "zmax": len(names) - 0.5,
        "colorscale": _steps(list(colours.values())),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "customdata": [[_told(cell) for cell in row] for row in rows],
        "hovertemplate": "%{x} GPUs, %{y} USD: %{customdata}<extra></extra>",
    }


def _legend(advice: Advice, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [None],
            "y": [None],
            "name": f"{LETTERS[number]} {_label(advice, name)}",
            "marker": {"symbol": "square", "size": 12, "color": colour},
            "showlegend": True,
        }
        for number, (name, colour) in enumerate(colours.items())
    ]


def _marks(rows: _Rows, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return letter and chance of every cell."""
    letters = dict(zip(colours, LETTERS, strict=False))
    return [
        {
            "x": column,
            "y": row,
            "text": f"<b>{letters[cell.winner]}</b><br>{100 * cell.confidence:.0f}",
            "showarrow": False,
            "font": {"size": 11, "color": ink_on(colours[cell.winner])},
        }
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
    ]


def _framed(guide: ScaleChart, own: int) -> list[dict[str, Any]]:
    """Return the frame around the spec's own size."""
    if own not in guide.sizes:
        return []
    at, top = guide.sizes.index(own), len(guide.gpu_hour_usd) - 0.5
    place = {"x0": at - 0.5, "x1": at + 0.5, "y0": -0.5, "y1": top}
    return [{"type": "rect", **place, "line": {"color": INK, "width": 2}}]


def _winners(advice: Advice, guide: ScaleChart) -> list[str]:
    """Return the cases that win anywhere, in the order of the ranking."""
    found = {cell.winner for cell in (*guide.cells, *guide.drawn)}
    order = [case.name for case in advice.ranking]
    return [*(name for name in order if name in found), *sorted(found - set(order))]


def _label(advice: Advice, name: str) -> str:
    case = next((one for one in advice.economics.costs if one.name == name), None)
    return name if case is None else case_label(case.case)


def _steps(colours: Sequence[str]) -> list[list[object]]:
    """Return a colour scale of equal steps."""
    n = len(colours)
    return [
        [edge / n, colour] for number, colour in enumerate(colours) for edge in (number, number + 1)
    ]


def _told(cell: ScaleCell) -> str:
    return f"{cell.winner} ({percent(cell.confidence)})"


def _row(cell: ScaleCell, currency: Currency) -> list[str]:
    return [
        f"{cell.gpus:,}",
        cell.winner,
        cell.runner_up or "–",
        f"{currency.words(cell.margin_usd)} ({percent(cell.margin_share)})",
        percent(cell.confidence),
    ]


def _words(advice: Advice, guide: ScaleChart, own: int) -> str:
    words = _(
        "Each size was designed anew from this spec, with its team, prices and workload. The "
        "number is the chance, in percent, that the winner is cheaper than the next; near 50 it "
        "is a toss-up. The frame marks {own} GPUs. The table takes the value of a GPU-hour as it "
        "is drawn."
    ).format(own=f"{own:,}")
    if guide.left_out:
        told = _("Could not be designed: {names}.").format(names=listed(guide.left_out))
        words = sentences(words, told)
    if guide.without_forecast:
        told = _("Without a forecast of the workload: {sizes} GPUs.").format(
            sizes=listed(f"{size:,}" for size in guide.without_forecast)
        )
        words = sentences(words, told)
    if advice.decide_by == "p90":
        words = sentences(words, _("Winners are those whose P90 is least."))
    return words
