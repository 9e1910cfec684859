"""A training study as one HTML page: step by parts, scaling, memory, jitter, plans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.figure_style import GRID, QUIET, WARNING, rail_colour, tinted
from gpufabric.report.forecast_words import seconds_words
from gpufabric.report.html_page import cards, document, section, table, told_list
from gpufabric.report.packet_figures import frame
from gpufabric.report.training_table import (
    findings_of,
    key_figures,
    plan_words,
    step_parts,
    title_of,
)
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.training_study import TrainingStudy

__all__ = ["fabric_words", "training_page", "write_training_page"]

LEAST = 0.003
"""Of a step: parts with less are in the table only."""
COLOURS = {
    "compute": rail_colour(0),
    "optimizer": tinted(rail_colour(0), 0.45),
    "bubble": QUIET,
    "tensor": rail_colour(1),
    "expert": rail_colour(3),
    "context": rail_colour(6),
    "pipeline": rail_colour(4),
    "data": rail_colour(2),
    "jitter": rail_colour(5),
}


def write_training_page(study: TrainingStudy, view: NetworkView, path: Path) -> Path:
    """Write the page of a study; return `path`."""
    return write_text(path, training_page(study, view))


def training_page(study: TrainingStudy, view: NetworkView) -> str:
    """Return the page of a study."""
    found = study.estimate
    told = [(words, True) for words in findings_of(study)]
    told.append((plan_words(found) + ".", False))
    told.append((fabric_words(view), False))
    told += [
        (
            _("Beyond what was measured, so that the interval is wider: {reason}").format(
                reason=reason
            ),
            False,
        )
        for reason in found.extrapolates
    ]
    parts = [
        told_list(told),
        cards(key_figures(study)),
        section(_("A step by parts"), _parts_words(study), _parts_figure(study), "parts"),
        _parts_table(study),
        section(_("Memory of the fullest GPU"), _memory_words(study), _memory(study), "memory"),
        section(_("Steps with jitter"), _jitter_words(study), _jitter(study), "jitter"),
    ]
    if len(study.scaling) > 1:
        parts.append(section(_("Scaling"), _scaling_words(study), _scaling(study), "scaling"))
    if study.search is not None and len(study.search.best) > 1:
        parts.append(section(_("Fastest plans"), _plans_words(study), _plans(study), "plans"))
    return document(title_of(found), "".join(parts))


def fabric_words(view: NetworkView) -> str:
    """Return what the network is, in a sentence."""
    cluster = view.cluster
    if cluster.wire_gbytes_per_s is None:
        return _("One NVLink domain: nothing crosses the network.")
    protocol = {"infiniband": "InfiniBand", "roce": "RoCE v2"}[view.fabric.protocol]
    words = _("{name}: {protocol}, {domains} hosts with {wire:.0f} GB/s each way").format(
        name=view.fabric.name,
        protocol=protocol,
        domains=f"{cluster.n_domains:,}",
        wire=cluster.wire_gbytes_per_s,
    )
    ratios = [f"{block.name} {block.ratio:.3g}:1" for block in view.blocks]
    if ratios:
        words += _(", oversubscription {ratios}").format(ratios=", ".join(ratios))
    return words + "."


# A step by parts -----------------------------------------------------------------------------


def _shown(study: TrainingStudy) -> list[tuple[str, str, float]]:
    return [(key, words, seconds) for key, words, seconds, _n, _w in step_parts(study) if seconds]


def _parts_figure(study: TrainingStudy) -> go.Figure:
    figure = go.Figure()
    for key, words, seconds in _shown(study):
        if seconds < LEAST * study.steps.base_s:
            continue
        figure.add_bar(
            y=[""],
            x=[seconds],
            orientation="h",
            name=words,
            marker={"color": COLOURS[key], "line": {"color": "#ffffff", "width": 1}},
            hovertemplate=f"{words}: %{{x:.4g}} s<extra></extra>",
        )
    numbers = study.numbers
    figure.add_scatter(
        x=[numbers.step_s],
        y=[""],
        mode="markers",
        marker={"symbol": "line-ns", "size": 26, "line": {"width": 2, "color": "#1f2a37"}},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [numbers.high_s - numbers.step_s],
            "arrayminus": [numbers.step_s - numbers.low_s],
            "thickness": 1.6,
            "color": "#1f2a37",
        },
        name=_("without jitter, 80 % of runs"),
        hovertemplate="%{x:.4g} s<extra></extra>",
    )
    figure.update_layout(
        frame(280, barmode="stack", hovermode="closest"),
        xaxis={"title": _("seconds of a step"), "gridcolor": GRID, "rangemode": "tozero"},
        legend={"y": -0.42, "traceorder": "normal"},
        margin={"l": 14, "r": 14, "t": 10, "b": 40},
    )
    return figure


def _parts_words(study: TrainingStudy) -> str:
    base = study.steps.base_s
    told = ", ".join(
        _("{words} {time} ({share:.1f} %)").format(
            words=words, time=seconds_words(seconds), share=seconds / base * 100
        )
        for _key, words, seconds in _shown(study)
    )
    return _("{parts}. Of communication only what shows is counted.").format(parts=told)


def _parts_table(study: TrainingStudy) -> str:
    heads = (_("part"), _("seconds"), _("share"), _("ranks"), _("over"))
    over = {"network": _("network"), "host": _("NVLink domain"), "": ""}
    rows = [
        (
            words,
            f"{seconds:.4g}",
            f"{seconds / study.steps.base_s * 100:.1f} %",
            "" if ranks is None else f"{ranks:,}",
            over[way],
        )
        for _key, words, seconds, ranks, way in step_parts(study)
        if ranks != 1
    ]
    return table(heads, rows)


# Memory ------------------------------------------------------------------------------------


def _memory_rows(study: TrainingStudy) -> list[tuple[str, float]]:
    memory = study.estimate.memory
    return [
        (_("weights"), memory.weights_gb),
        (_("gradients"), memory.gradients_gb),
        (_("optimizer"), memory.optimizer_gb),
        (_("activations"), memory.activations_gb),
        (_("reserved"), memory.reserved_gb),
    ]


def _memory(study: TrainingStudy) -> go.Figure:
    figure = go.Figure()
    for number, (words, gigabytes) in enumerate(_memory_rows(study)):
        figure.add_bar(
            y=[""],
            x=[gigabytes],
            orientation="h",
            name=words,
            marker={
                "color": QUIET if number == 4 else rail_colour(number),
                "line": {"color": "#ffffff", "width": 1},
            },
            hovertemplate=f"{words}: %{{x:.3g}} GB<extra></extra>",
        )
    memory = study.estimate.memory
    figure.add_vline(
        memory.available_gb, line={"color": WARNING, "width": 2, "dash": "dash"}, layer="above"
    )
    most = max(memory.available_gb, memory.total_gb) * 1.05
    figure.update_layout(
        frame(240, barmode="stack", hovermode="closest"),
        xaxis={"title": _("GB; dashed: what the GPU has"), "gridcolor": GRID, "range": [0, most]},
        legend={"y": -0.55, "traceorder": "normal"},
        margin={"l": 14, "r": 14, "t": 10, "b": 40},
    )
    return figure


def _memory_words(study: TrainingStudy) -> str:
    memory = study.estimate.memory
    told = ", ".join(f"{words} {value:.1f} GB" for words, value in _memory_rows(study))
    return _("{parts}: {total:.1f} of {available:.0f} GB.").format(
        parts=told, total=memory.total_gb, available=memory.available_gb
    )


# Jitter ------------------------------------------------------------------------------------


def _jitter(study: TrainingStudy) -> go.Figure:
    shares = np.linspace(0, 1, 201)
    times = study.quantiles_s(shares)
    figure = go.Figure(
        go.Scatter(
            x=times.round(6).tolist(),
            y=shares.tolist(),
            mode="lines",
            line={"color": rail_colour(5), "width": 2},
            hovertemplate="%{y:.1%} ≤ %{x:.4g} s<extra></extra>",
            showlegend=False,
        )
    )
    numbers = study.numbers
    marks = (
        (numbers.step_s, _("without"), QUIET),
        (numbers.jitter.p50_s, "p50", rail_colour(0)),
        (numbers.jitter.p99_s, "p99", WARNING),
    )
    for value, words, colour in marks:
        figure.add_scatter(
            x=[value, value],
            y=[0, 1],
            mode="lines",
            line={"color": colour, "dash": "dot", "width": 1.6},
            name=f"{words} {seconds_words(value)}",
            hoverinfo="skip",
        )
    figure.update_layout(
        frame(340, hovermode="closest"),
        xaxis={"title": _("time of a step [s]"), "gridcolor": GRID},
        yaxis={"title": _("share of steps"), "tickformat": ".0%", "range": [0, 1.02]},
    )
    figure.update_layout(legend={"y": -0.22})
    return figure


def _jitter_words(study: TrainingStudy) -> str:
    spread = study.numbers.jitter
    names = {
        "ranks": _("slowest rank"),
        "flaps": _("links that flap"),
        "collisions": _("colliding flows"),
    }
    causes = ", ".join(
        f"{names[name]} {seconds_words(seconds)}" if seconds else f"{names[name]} 0"
        for name, seconds in spread.by_cause_s.items()
    )
    return _(
        "Half of all steps take at most {p50}, 99 % at most {p99}; the mean is {mean}. Late in the "
        "mean by: {causes}. Lateness of ranks is assumed: 0.2 % of computing."
    ).format(
        p50=seconds_words(spread.p50_s),
        p99=seconds_words(spread.p99_s),
        mean=seconds_words(spread.mean_s),
        causes=causes,
    )


# Scaling -----------------------------------------------------------------------------------


def _scaling(study: TrainingStudy) -> go.Figure:
    gpus = [point.n_gpus for point in study.scaling]
    rates = np.array([point.tokens_per_s_per_gpu for point in study.scaling])
    low = rates * [point.step_s / point.high_s for point in study.scaling]
    high = rates * [point.step_s / point.low_s for point in study.scaling]
    figure = go.Figure()
    figure.add_scatter(
        x=gpus + gpus[::-1],
        y=[*high.round(3).tolist(), *low[::-1].round(3).tolist()],
        fill="toself",
        fillcolor="rgba(78,121,167,0.16)",
        line={"width": 0},
        name=_("80 % of runs"),
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=gpus,
        y=rates.round(3).tolist(),
        mode="lines+markers",
        line={"color": rail_colour(0), "width": 2},
        name=_("tokens a second and GPU"),
        hovertemplate="%{x:,} GPUs: %{y:,.0f}<extra></extra>",
    )
    figure.update_layout(
        frame(340, hovermode="closest"),
        xaxis={
            "title": _("GPUs"),
            "type": "log",
            "gridcolor": GRID,
            "tickvals": gpus,
            "ticktext": [f"{n:,}" for n in gpus],
        },
        yaxis={"title": _("tokens/s and GPU"), "gridcolor": GRID, "rangemode": "tozero"},
    )
    figure.update_layout(legend={"y": -0.24})
    return figure


def _scaling_words(study: TrainingStudy) -> str:
    first, last = study.scaling[0], study.scaling[-1]
    return _(
        "The same plan with more data-parallel ways, each with as many sequences: from {few} GPUs "
        "with {before:,.0f} tokens a second and GPU to {many} with {after:,.0f}, {share:.1f} % of "
        "that."
    ).format(
        few=f"{first.n_gpus:,}",
        many=f"{last.n_gpus:,}",
        before=first.tokens_per_s_per_gpu,
        after=last.tokens_per_s_per_gpu,
        share=last.tokens_per_s_per_gpu / first.tokens_per_s_per_gpu * 100,
    )


# Plans -------------------------------------------------------------------------------------


def _plans(study: TrainingStudy) -> go.Figure:
    assert study.search is not None
    best = study.search.best[::-1]
    labels = [
        f"{len(best) - at}. TP {p.tensor} PP {p.pipeline} EP {p.expert} DP {one.job.data_ways}"
        for at, one in enumerate(best)
        for p in (one.job.plan,)
    ]
    steps = [one.step_s for one in best]
    figure = go.Figure(
        go.Bar(
            y=labels,
            x=steps,
            orientation="h",
            marker={"color": rail_colour(0)},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [one.high_s - one.step_s for one in best],
                "arrayminus": [one.step_s - one.low_s for one in best],
                "thickness": 1.4,
                "color": "#1f2a37",
            },
            hovertemplate="%{y}: %{x:.4g} s<extra></extra>",
        )
    )
    figure.update_layout(
        frame(110 + 34 * len(best), hovermode="closest", showlegend=False),
        xaxis={"title": _("seconds of a step"), "gridcolor": GRID, "rangemode": "tozero"},
        yaxis={"automargin": True},
    )
    return figure


def _plans_words(study: TrainingStudy) -> str:
    assert study.search is not None
    best = study.search.best
    return _(
        "{n} plans were computed, and {large} more do not fit into memory. The fastest takes "
        "{first}, the last shown {last}; whiskers are 80 % intervals."
    ).format(
        n=f"{study.search.n_tried:,}",
        large=f"{study.search.n_too_large:,}",
        first=seconds_words(best[0].step_s),
        last=seconds_words(best[-1].step_s),
    )
