"""Settings side by side as one HTML page: what running RoCE well is worth, in words and bars."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from gpufabric.core.text import _
from gpufabric.report.compare_words import (
    Head,
    Rows,
    cells,
    conclusions,
    headings,
    key_figures,
    labels_of,
    mistakes,
    notes,
    p50_us,
    ratio_of,
    reference_of,
)
from gpufabric.report.figure_style import GRID, WARNING, rail_colour
from gpufabric.report.html_page import (
    Bar,
    bars,
    cards,
    document,
    heading,
    section,
    table,
    told_list,
)
from gpufabric.report.packet_figures import frame
from gpufabric.report.traffic_table import bytes_words, time_words
from gpufabric.sim.compare import Compared
from gpufabric.sim.compare_variants import meanings
from gpufabric.sim.packet_run import PACKET_MODEL

__all__ = ["compare_html"]

MOST_POINTS = 1000
"""Points that a curve is drawn with."""
MOST_CURVES = 8


def compare_html(found: Rows, head: Head) -> str:
    """Return the page of a comparison.

    Parameters
    ----------
    found
        All iterations of all variants.
    head
        What was asked, as ``compare.json`` carries it.
    """
    rows = [[label, *cells(one.summary(), head)] for label, one in _labelled(found)]
    parts = [
        told_list(conclusions(found, head)),
        cards(key_figures(found, head)),
        _cost(found, head),
        heading(_("Side by side")),
        table([_("variant"), *headings()], rows),
        told_list([(words, False) for words in notes(found, head)]),
    ]
    if any(one.took_s.size for one in found):
        words = _("Box: the middle half of the iterations; whiskers and dots: the others.")
        never = [label for label, one in _labelled(found) if not one.took_s.size]
        if never:
            words += " " + _("No iteration finished: {names}.").format(names=", ".join(never))
        parts.append(section(_("Iteration times"), words, _boxes(found), "iterations"))
    if any(one.fct_s.size for one in found):
        words = _(
            "Share of flows that take longer than a time, both axes logarithmic: the further right "
            "a curve ends, the longer the tail. One that ends above the others has flows that "
            "never finish."
        )
        parts.append(section(_("Tail of flow completion times"), words, _curves(found), "tail"))
    parts.append(heading(_("How it was run")) + told_list(_facts(head)))
    return document(
        _("What it takes to run RoCE: InfiniBand and RoCE on the same traffic"), "".join(parts)
    )


def _labelled(found: Rows) -> list[tuple[str, Compared]]:
    return list(zip(labels_of(found), found, strict=True))


def _cost(found: Rows, head: Head) -> str:
    """Return a bar for each variant: its middle iteration time."""
    base, words = reference_of(found), meanings()
    rows = []
    for label, one in _labelled(found):
        value_us, ratio = p50_us(one), ratio_of(one, found)
        if value_us is None:
            told = _("more than {time}: not finished").format(time=time_words(head["until_s"]))
        else:
            told = time_words(value_us * 1e-6)
            if ratio is not None and one is not base:
                told += f" · {ratio:.2f}×"
            n_cut = len(one.iterations) - len(one.took_s)
            if n_cut:
                told += " · " + _("{n} of {all} not finished").format(
                    n=n_cut, all=len(one.iterations)
                )
        meaning = words[one.trial.variant.name]
        rows.append(Bar(label, meaning, value_us, told, _colour(one, ratio)))
    caption = _("Time of an iteration, p50, and how often it is that of {name}.").format(
        name=base.trial.variant.name
    )
    return bars(_("What each setting and each mistake costs"), caption, rows)


def _colour(one: Compared, ratio: float | None) -> str:
    if one.trial.variant.name == "infiniband":
        return rail_colour(0)
    return WARNING if ratio is None or ratio > 1.1 else rail_colour(2)


def _boxes(found: Rows) -> go.Figure:
    """Iteration times of the variants that have one."""
    figure = go.Figure()
    shown = [(label, one) for label, one in _labelled(found) if one.took_s.size]
    for number, (label, one) in enumerate(shown):
        figure.add_box(
            x=(one.took_s * 1e6).tolist(),
            y=[label] * one.took_s.size,
            orientation="h",
            name=label,
            marker={"color": rail_colour(number)},
            boxpoints="outliers",
            showlegend=False,
        )
    labels = [label for label, _one in shown]
    figure.update_layout(
        frame(120 + 30 * len(shown), showlegend=False, hovermode="closest"),
        xaxis={"title": _("iteration time [µs]"), "type": "log", "gridcolor": GRID},
        yaxis={
            "automargin": True,
            "type": "category",
            "categoryorder": "array",
            "categoryarray": labels[::-1],
            "range": [-0.7, len(labels) - 0.3],
        },
    )
    return figure


def _curves(found: Rows) -> go.Figure:
    figure = go.Figure()
    for number, (label, one) in enumerate(_worth_a_curve(found)):
        fct_us = one.fct_s * 1e6
        total = fct_us.size + sum(it.unfinished for it in one.iterations)
        cuts = np.linspace(0, fct_us.size - 1, min(fct_us.size, MOST_POINTS)).astype(int)
        tail = np.unique(np.concatenate([cuts, np.arange(max(0, fct_us.size - 50), fct_us.size)]))
        figure.add_scatter(
            x=fct_us[tail].tolist(),
            y=(1.0 - tail / total).tolist(),
            name=label,
            mode="lines",
            line={"color": rail_colour(number), "width": 2},
        )
    figure.update_layout(
        frame(420, hovermode="closest"),
        xaxis={"title": _("completion time [µs]"), "type": "log", "gridcolor": GRID},
        yaxis={
            "title": _("share of flows"),
            "type": "log",
            "gridcolor": GRID,
            "tickvals": [1.0, 0.1, 0.01, 0.001, 0.0001],
            "ticktext": ["100%", "10%", "1%", "0.1%", "0.01%"],
        },
    )
    figure.update_layout(legend={"y": -0.2})
    return figure


def _worth_a_curve(found: Rows) -> list[tuple[str, Compared]]:
    """Return the well run, the defaults, and the mistakes that cost most."""
    cut, slow, same = mistakes(found)
    slow = sorted(slow, key=lambda one: -(ratio_of(one, found) or 0.0))
    wrong = [*cut, *slow, *same]
    first = [one for one in found if one not in wrong]
    chosen = [*first, *wrong][:MOST_CURVES]
    return [(label, one) for label, one in _labelled(found) if one in chosen and one.fct_s.size]


def _facts(head: Head) -> list[tuple[str, bool]]:
    traffic: dict[str, Any] = head["traffic"]
    facts = [
        [_("Traffic"), _traffic(traffic)],
        [_("Iterations"), f"{head['iterations']:,}"],
        [_("Hosts begin apart"), f"≤ {head['skew_us']:g} µs"],
        [_("Iterations are cut off at"), time_words(head["until_s"])],
        [_("Model"), " ".join(str(part) for part in PACKET_MODEL)],
        [_("Seed"), str(head["seed"])],
    ]
    for one in head["fabrics"]:
        words = f"{one['name']}, {one['protocol']}, {one['routing']}, {one['hash'][:16]}"
        facts.append([_("Fabric"), words])
    return [(f"{label}: {words}", False) for label, words in facts]


def _traffic(traffic: dict[str, Any]) -> str:
    words = f"{traffic['pattern']}, {bytes_words(traffic['bytes'])}"
    if traffic["pattern"] == "hotspot":
        words += ", " + _("{share:.0%} of the GPUs to one host").format(share=traffic["hot_share"])
    if traffic["pattern"] == "incast":
        words += ", " + _("{n} to one").format(n=traffic["fan_in"])
    return words
