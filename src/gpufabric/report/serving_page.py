"""A study of serving as one HTML page: first token, each token, batches, tail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.report.figure_style import GRID, QUIET, WARNING, rail_colour
from gpufabric.report.forecast_words import seconds_words, token_words
from gpufabric.report.html_page import cards, document, section, table, told_list
from gpufabric.report.packet_figures import frame
from gpufabric.report.serving_table import (
    decode_parts,
    findings_of,
    first_parts,
    key_figures,
    plan_words,
    title_of,
)
from gpufabric.report.training_page import fabric_words
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.serving_study import ServingStudy

__all__ = ["serving_page", "write_serving_page"]

Rows = Sequence[tuple[str, str, float]]

COLOURS = {
    "wait": QUIET,
    "compute": rail_colour(0),
    "network": rail_colour(3),
    "transfer": rail_colour(1),
    "decode": rail_colour(2),
    "weights": rail_colour(2),
    "cache": rail_colour(4),
    "kernels": rail_colour(6),
    "jitter": rail_colour(5),
}


def write_serving_page(study: ServingStudy, view: NetworkView, path: Path) -> Path:
    """Write the page of a study; return `path`."""
    return write_text(path, serving_page(study, view))


def serving_page(study: ServingStudy, view: NetworkView) -> str:
    """Return the page of a study."""
    told = [(words, True) for words in findings_of(study)]
    told += [(plan_words(study) + ".", False), (fabric_words(view), False)]
    told += [(reason, False) for reason in study.numbers.extrapolates]
    first, each = first_parts(study), decode_parts(study)
    parts = [
        told_list(told),
        cards(key_figures(study)),
        section(_("First token by parts"), _words(first), _bar(first), "first"),
        section(_("Each output token by parts"), _words(each), _bar(each), "each"),
        section(_("Sequences at once"), _batch_words(study), _batches(study), "batches"),
        _batch_table(study),
        section(_("Jitter of the network"), _jitter_words(study), _jitter(study), "jitter"),
    ]
    return document(title_of(study, view), "".join(parts))


def _bar(rows: Rows) -> go.Figure:
    figure = go.Figure()
    for key, words, seconds in rows:
        if not seconds:
            continue
        figure.add_bar(
            y=[""],
            x=[seconds * 1e3],
            orientation="h",
            name=words,
            marker={"color": COLOURS[key], "line": {"color": "#ffffff", "width": 1}},
            hovertemplate=f"{words}: %{{x:.4g}} ms<extra></extra>",
        )
    figure.update_layout(
        frame(240, barmode="stack", hovermode="closest"),
        xaxis={"title": _("milliseconds"), "gridcolor": GRID, "rangemode": "tozero"},
        legend={"y": -0.55, "traceorder": "normal"},
        margin={"l": 14, "r": 14, "t": 10, "b": 40},
    )
    return figure


def _words(rows: Rows) -> str:
    total = sum(seconds for _key, _words, seconds in rows)
    told = ", ".join(
        _("{words} {time} ({share:.1f} %)").format(
            words=words, time=seconds_words(seconds), share=seconds / total * 100
        )
        for _key, words, seconds in rows
        if seconds
    )
    return _("{total} in all: {parts}.").format(total=seconds_words(total), parts=told)


def _batches(study: ServingStudy) -> go.Figure:
    fits = [point for point in study.by_batch if point.fits]
    figure = go.Figure(
        go.Scatter(
            x=[point.token_s * 1e3 for point in fits],
            y=[point.tokens_per_s_per_gpu for point in fits],
            text=[f"{point.sequences:,}" for point in fits],
            mode="lines+markers",
            line={"color": rail_colour(0), "width": 2},
            name=_("batches that fit"),
            hovertemplate="%{text}: %{x:.4g} ms, %{y:,.0f}<extra></extra>",
        )
    )
    numbers = study.numbers
    figure.add_scatter(
        x=[numbers.token_s * 1e3],
        y=[numbers.tokens_per_s_per_gpu],
        mode="markers",
        marker={"size": 13, "color": WARNING, "symbol": "diamond"},
        name=_("{n} sequences, as asked").format(n=f"{study.estimate.plan.sequences:,}"),
        hoverinfo="skip",
    )
    figure.update_layout(
        frame(340, hovermode="closest"),
        xaxis={
            "title": _("milliseconds per output token"),
            "gridcolor": GRID,
            "rangemode": "tozero",
        },
        yaxis={"title": _("tokens/s and GPU"), "gridcolor": GRID, "rangemode": "tozero"},
    )
    figure.update_layout(legend={"y": -0.24})
    return figure


def _batch_words(study: ServingStudy) -> str:
    fits = [point for point in study.by_batch if point.fits]
    if not fits:
        return _("No batch fits into memory.")
    first, last = fits[0], fits[-1]
    return _(
        "From {few} sequences at once, {before} a token and {slow} tokens a second and GPU, to "
        "{many}, {after} and {fast}: more at once cost each request time and give the GPU more."
    ).format(
        few=f"{first.sequences:,}",
        before=seconds_words(first.token_s),
        slow=token_words(first.tokens_per_s_per_gpu),
        many=f"{last.sequences:,}",
        after=seconds_words(last.token_s),
        fast=token_words(last.tokens_per_s_per_gpu),
    )


def _batch_table(study: ServingStudy) -> str:
    heads = (
        _("sequences"),
        _("per token"),
        _("tokens/s and GPU"),
        _("communication"),
        _("fits"),
    )
    rows = [
        (
            f"{point.sequences:,}",
            seconds_words(point.token_s),
            token_words(point.tokens_per_s_per_gpu),
            f"{point.network_share * 100:.1f} %",
            _("yes") if point.fits else _("no"),
        )
        for point in study.by_batch
    ]
    return table(heads, rows)


def _jitter(study: ServingStudy) -> go.Figure:
    points = study.by_jitter
    figure = go.Figure()
    for number, (name, words) in enumerate(
        (("p50_s", "p50"), ("p99_s", "p99"), ("p999_s", "p99.9"))
    ):
        figure.add_scatter(
            x=[point.jitter_us for point in points],
            y=[getattr(point, name) * 1e3 for point in points],
            mode="lines+markers",
            name=words,
            line={"color": (rail_colour(0), WARNING, rail_colour(5))[number], "width": 2},
            hovertemplate=f"{words}, %{{x}} µs: %{{y:.4g}} ms<extra></extra>",
        )
    figure.update_layout(
        frame(320, hovermode="closest"),
        xaxis={"title": _("a message's lateness in the mean [µs]"), "gridcolor": GRID},
        yaxis={"title": _("ms per token"), "gridcolor": GRID, "rangemode": "tozero"},
    )
    figure.update_layout(legend={"y": -0.26})
    return figure


def _jitter_words(study: ServingStudy) -> str:
    decode, last = study.estimate.decode, study.by_jitter[-1]
    if not decode.collectives:
        return _("A step has no collective: jitter of the network does not touch it.")
    return _(
        "A step runs {n} collectives one after the other; each waits for the slowest of {ranks} "
        "ranks. Without jitter a token takes {base}; where messages are {late:g} µs late in the "
        "mean, 99 % take at most {p99}."
    ).format(
        n=decode.collectives,
        ranks=decode.ranks,
        base=seconds_words(study.tail.base_s),
        late=last.jitter_us,
        p99=seconds_words(last.p99_s),
    )
