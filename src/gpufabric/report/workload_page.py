"""What every candidate of a plan makes of the workload, as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from gpufabric.core.text import _
from gpufabric.planner.compare import Plan
from gpufabric.report.collective_table import size_words
from gpufabric.report.figure_style import GRID, INK, rail_colour
from gpufabric.report.forecast_words import (
    forecast_facts,
    forecast_notes,
    group_words,
    range_words,
    seconds_words,
)
from gpufabric.report.html_page import cards, document, section, table, told_list
from gpufabric.report.packet_figures import frame
from gpufabric.report.training_page import COLOURS
from gpufabric.workload.forecast import WorkloadForecast
from gpufabric.workload.forecast_training import TrainingForecast

__all__ = ["workload_page"]

Named = Sequence[tuple[str, WorkloadForecast]]


def workload_page(plan: Plan) -> str:
    """Return the page of a plan's forecasts; the same plan gives the same page."""
    named = [(candidate.name, candidate.forecast) for candidate in plan.candidates]
    forecasts = [one for _name, one in named]
    title = _("Workload: {name}").format(
        name=plan.requirement.name or _("{n} GPUs").format(n=f"{forecasts[0].n_gpus:,}")
    )
    parts = [
        told_list([(words, False) for words in forecast_notes(forecasts)]),
        cards(_figures(forecasts[0])),
    ]
    if any(one.collectives for one in forecasts):
        heading = _("Bus bandwidth of collectives")
        parts.append(section(heading, _busbw_words(named), _busbw(named), "busbw"))
    trained = [(name, one.training) for name, one in named if one.training is not None]
    if trained:
        parts.append(
            section(_("A training step by parts"), _step_words(trained), _steps(trained), "steps")
        )
    if any(one.serving is not None for one in forecasts):
        heading = _("Time per output token")
        parts.append(section(heading, _token_words(named), _tokens(named), "tokens"))
    facts = [fact for fact in forecast_facts(forecasts) if fact.is_told]
    if facts:
        heads = ["", *(name for name, _one in named)]
        parts.append(table(heads, [(fact.label, *fact.values) for fact in facts]))
    return document(title, "".join(parts))


def _figures(one: WorkloadForecast) -> list[tuple[str, str]]:
    """Key figures of the first candidate: what is the same for all."""
    found = [(_("GPUs"), f"{one.n_gpus:,} × {one.gpu}")]
    if one.training is not None:
        plan = one.training.plan
        found += [
            (_("model"), one.training.model),
            (_("sequences of a step"), f"{plan['global_batch']:,}"),
            (_("memory of a GPU"), f"{one.training.memory_gb:.0f} GB"),
        ]
    if one.serving is not None:
        found += [
            (_("model"), one.serving.model),
            (_("instances"), f"{one.serving.n_instances:,} × {one.serving.instance_gpus} GPUs"),
            (_("memory of a GPU"), f"{one.serving.memory_gb:.0f} GB"),
        ]
    return found


def _busbw(named: Named) -> go.Figure:
    figure = go.Figure()
    for number, (name, one) in enumerate(named):
        rows = one.collectives
        middle = [row.busbw_gbytes_per_s for row in rows]
        figure.add_bar(
            x=[f"{row.operation}<br>{size_words(row.size_bytes)}" for row in rows],
            y=[round(value, 3) for value in middle],
            name=name,
            marker={"color": rail_colour(number)},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [row.high_gbytes_per_s - row.busbw_gbytes_per_s for row in rows],
                "arrayminus": [row.busbw_gbytes_per_s - row.low_gbytes_per_s for row in rows],
                "thickness": 1.2,
                "color": INK,
            },
            hovertemplate=f"{name}: %{{y:.1f}} GB/s<extra></extra>",
        )
    figure.update_layout(
        frame(380, barmode="group", hovermode="closest"),
        yaxis={"title": _("busbw [GB/s]"), "gridcolor": GRID, "rangemode": "tozero"},
    )
    figure.update_layout(legend={"y": -0.2})
    return figure


def _busbw_words(named: Named) -> str:
    told = []
    for name, one in named:
        rows = [row for row in one.collectives if row.size_bytes == 2**30]
        values = ", ".join(
            _("{operation} {busbw:.0f} GB/s ({low:.0f} – {high:.0f})").format(
                operation=row.operation,
                busbw=row.busbw_gbytes_per_s,
                low=row.low_gbytes_per_s,
                high=row.high_gbytes_per_s,
            )
            for row in rows
        )
        told.append(f"{name}: {values}")
    words = "; ".join(told)
    return _("Of 1 GiB over all GPUs, with the 80 % interval: {words}.").format(words=words)


def _parts(found: TrainingForecast) -> list[tuple[str, str, float]]:
    return [
        ("compute", _("computing"), found.compute_s),
        ("optimizer", _("optimizer"), found.optimizer_s),
        ("bubble", _("waiting for the pipeline"), found.bubble_s),
        *((name, group_words(name), seconds) for name, seconds in found.exposed_s.items()),
        ("jitter", _("jitter"), found.jitter.mean_s - found.step_s),
    ]


def _steps(trained: Sequence[tuple[str, TrainingForecast]]) -> go.Figure:
    figure = go.Figure()
    names = [name for name, _found in trained][::-1]
    columns = [_parts(found) for _name, found in trained][::-1]
    for at, (key, words, _seconds) in enumerate(columns[0]):
        values = [column[at][2] for column in columns]
        if not any(values):
            continue
        figure.add_bar(
            y=names,
            x=[float(f"{value:.6g}") for value in values],
            orientation="h",
            name=words,
            marker={"color": COLOURS[key], "line": {"color": "#ffffff", "width": 1}},
            hovertemplate=f"%{{y}}, {words}: %{{x:.4g}} s<extra></extra>",
        )
    figure.update_layout(
        frame(230 + 34 * len(names), barmode="stack", hovermode="closest"),
        xaxis={"title": _("seconds of a step"), "gridcolor": GRID, "rangemode": "tozero"},
        yaxis={"automargin": True},
        margin={"l": 14, "r": 14, "t": 10, "b": 40},
    )
    figure.update_layout(legend={"y": -0.32, "traceorder": "normal"})
    return figure


def _step_words(trained: Sequence[tuple[str, TrainingForecast]]) -> str:
    told = [
        _("{name} {step} ({span}), {share:.1f} % of it waits for communication").format(
            name=name,
            step=seconds_words(found.step_s),
            span=range_words(found.low_s, found.high_s),
            share=found.exposed_share * 100,
        )
        for name, found in trained
    ]
    return "; ".join(told) + "."


def _tokens(named: Named) -> go.Figure:
    shown = [(name, one.serving) for name, one in named if one.serving is not None][::-1]
    figure = go.Figure(
        go.Bar(
            y=[name for name, _found in shown],
            x=[float(f"{found.token_s * 1e3:.6g}") for _name, found in shown],
            orientation="h",
            marker={"color": rail_colour(0)},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [found.token_s * 1e3 * (found.high_factor - 1) for _name, found in shown],
                "arrayminus": [
                    found.token_s * 1e3 * (1 - found.low_factor) for _name, found in shown
                ],
                "thickness": 1.4,
                "color": INK,
            },
            hovertemplate="%{y}: %{x:.4g} ms<extra></extra>",
        )
    )
    figure.update_layout(
        frame(130 + 34 * len(shown), hovermode="closest", showlegend=False),
        xaxis={"title": _("milliseconds"), "gridcolor": GRID, "rangemode": "tozero"},
        yaxis={"automargin": True},
    )
    return figure


def _token_words(named: Named) -> str:
    told = [
        _("{name} {time}, first token {first}, {share:.1f} % of a request waits").format(
            name=name,
            time=seconds_words(one.serving.token_s),
            first=seconds_words(one.serving.first_token_s),
            share=one.serving.network_share * 100,
        )
        for name, one in named
        if one.serving is not None
    ]
    words = "; ".join(told)
    return _("{words}. Whiskers are the assumed range of serving times.").format(words=words)
