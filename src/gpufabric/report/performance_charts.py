"""Figures of what the candidates' networks make of the workload: bandwidth, step, jitter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpufabric.core.text import _, listed, sentences
from gpufabric.planner.compare import CandidatePlan
from gpufabric.report.case_look import candidate_colour
from gpufabric.report.chart import Chart, layout
from gpufabric.report.figure_style import INK, QUIET, rail_colour, tinted
from gpufabric.report.forecast_words import group_words, seconds_words
from gpufabric.workload.forecast_curve import BandwidthCurve, bandwidth_curves
from gpufabric.workload.forecast_training import TrainingForecast

__all__ = ["performance_charts"]

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
SHOWN_SIZES = (2**20, 2**26, 2**30, 2**33)
"""Message sizes of the table [byte]."""

GROUP_COLOURS = {
    "tensor": rail_colour(1),
    "expert": rail_colour(3),
    "context": rail_colour(6),
    "pipeline": rail_colour(4),
    "data": rail_colour(2),
}


def performance_charts(plans: Sequence[CandidatePlan]) -> tuple[Chart, ...]:
    """Return the figures that the forecasts allow, bandwidth first."""
    curves = [
        bandwidth_curves(
            plan.fabric, plan.design.host.gpu or "", has_gpudirect=plan.direct_forecast is None
        )
        for plan in plans
    ]
    charts: list[Chart] = []
    for place, (operation, title) in enumerate(_operations()):
        found = [
            (number, plan, mine[place])
            for number, (plan, mine) in enumerate(zip(plans, curves, strict=True))
            if mine
        ]
        if found:
            charts.append(_bandwidth(operation, title, found))
    if any(plan.forecast.training for plan in plans):
        charts += [_steps(plans), _jitter(plans)]
    elif any(plan.forecast.serving for plan in plans):
        charts.append(_tokens(plans))
    return tuple(charts)


def _operations() -> tuple[tuple[str, str], ...]:
    return (
        ("all_reduce", _("All-reduce over all GPUs")),
        ("alltoall", _("All-to-all over all GPUs")),
    )


# Bandwidth -----------------------------------------------------------------------------------


_Curve = tuple[int, CandidatePlan, BandwidthCurve]


def _grouped(found: Sequence[_Curve]) -> list[tuple[int, str, BandwidthCurve]]:
    """Return the curves that differ, each with the names of all candidates that have it."""
    groups: dict[bytes, tuple[int, list[str], BandwidthCurve]] = {}
    for number, plan, curve in found:
        key = curve.busbw_gbytes_per_s.round(6).tobytes()
        groups.setdefault(key, (number, [], curve))[1].append(plan.name)
    return [(number, ", ".join(names), curve) for number, names, curve in groups.values()]


def _bandwidth(operation: str, title: str, found: Sequence[_Curve]) -> Chart:
    curves = _grouped(found)
    data = [trace for number, name, curve in curves for trace in _band(number, name, curve)]
    words = _("Bus bandwidth as nccl-tests prints it; bands hold 80 % of what would be measured.")
    if len(curves) == 1 and len(found) > 1:
        words = sentences(words, _("All candidates have the same curve."))
        if all(_slowdown(plan, operation) <= 1.0 for _number, plan, _curve in found):
            words = sentences(words, _("None of their networks slows it."))
    rows = [
        [
            _size_words(size),
            *(_at(curve, size) for _number, _name, curve in curves),
        ]
        for size in SHOWN_SIZES
    ]
    ticks = [2.0**power for power in (16, 20, 24, 28, 33)]
    return Chart(
        name=f"busbw-{operation}",
        title=title,
        words=words,
        traces=data,
        layout=layout(
            320,
            xaxis={
                "type": "log",
                "title": {"text": _("message size")},
                "tickvals": ticks,
                "ticktext": [_size_words(int(size)) for size in ticks],
            },
            yaxis={"title": {"text": "GB/s"}, "rangemode": "tozero"},
            hovermode="x unified",
            showlegend=True,
        ),
        heads=[_("Message size"), *(name for _number, name, _curve in curves)],
        rows=rows,
    )


def _slowdown(plan: CandidatePlan, operation: str) -> float:
    rows = [row for row in plan.forecast.collectives if row.operation == operation]
    return max((row.slowdown for row in rows), default=1.0)


def _band(number: int, name: str, curve: BandwidthCurve) -> Iterator[Mapping[str, Any]]:
    x = curve.size_bytes.tolist()
    colour = candidate_colour(number)
    edge = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    yield {"type": "scatter", "y": curve.low_gbytes_per_s.tolist(), **edge}
    high = curve.high_gbytes_per_s.tolist()
    fill = {"fill": "tonexty", "fillcolor": f"{colour}2e"}
    yield {"type": "scatter", "y": high, **edge, **fill}
    yield {
        "type": "scatter",
        "x": x,
        "y": curve.busbw_gbytes_per_s.tolist(),
        "mode": "lines",
        "name": name,
        "line": {"color": colour, "width": 2.2, "dash": DASHES[number % len(DASHES)]},
        "hovertemplate": "%{y:.3g} GB/s",
    }


def _at(curve: BandwidthCurve, size: int) -> str:
    row = curve.size_bytes.tolist().index(float(size))
    return _("{mid:.3g} GB/s ({low:.3g} – {high:.3g})").format(
        mid=float(curve.busbw_gbytes_per_s[row]),
        low=float(curve.low_gbytes_per_s[row]),
        high=float(curve.high_gbytes_per_s[row]),
    )


def _size_words(size: int) -> str:
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= limit:
            return f"{size // limit} {unit}"
    return f"{size} B"


# A training step -----------------------------------------------------------------------------


def _parts(found: TrainingForecast) -> dict[str, float]:
    """Return the parts of a step that last, compute first [s]."""
    parts = {"compute": found.compute_s, "optimizer": found.optimizer_s, "bubble": found.bubble_s}
    parts |= {name: found.exposed_s[name] for name in GROUP_COLOURS if name in found.exposed_s}
    return parts


def _part_words(name: str) -> str:
    own = {
        "compute": _("compute"),
        "optimizer": _("optimizer"),
        "bubble": _("pipeline bubble"),
    }
    return own[name] if name in own else _("waits for {group}").format(group=group_words(name))


def _colour(name: str) -> str:
    if name in GROUP_COLOURS:
        return GROUP_COLOURS[name]
    return {"compute": rail_colour(0), "optimizer": tinted(rail_colour(0), 0.45)}.get(name, QUIET)


def _steps(plans: Sequence[CandidatePlan]) -> Chart:
    found = [(plan.name, plan.forecast.training) for plan in plans if plan.forecast.training]
    names = [name for name, _one in found]
    longest = max(one.step_s for _name, one in found)
    parts = [_parts(one) for _name, one in found]
    keys = [key for key in parts[0] if any(part.get(key, 0.0) > 0.002 * longest for part in parts)]
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "y": names,
            "x": [part.get(key, 0.0) for part in parts],
            "name": _part_words(key),
            "marker": {"color": _colour(key), "line": {"color": "#ffffff", "width": 1}},
            "hovertemplate": "%{x:.3g} s",
        }
        for key in keys
    ]
    data.append(_whiskers(names, [one for _name, one in found]))
    waits = listed(f"{name} {100 * one.exposed_share:.1f} %" for name, one in found)
    words = _(
        "One step of {model} by parts; of communication only what is not hidden behind compute "
        "shows. The mark spans what 80 % of runs would measure. GPUs wait for the network: {waits}."
    ).format(model=found[0][1].model, waits=waits)
    return Chart(
        name="step",
        title=_("Training step by parts"),
        words=words,
        traces=data,
        layout=layout(
            150 + 44 * len(names),
            barmode="stack",
            xaxis={"title": {"text": _("seconds of a step")}, "rangemode": "tozero"},
            yaxis={"autorange": "reversed", "showgrid": False},
            bargap=0.35,
        ),
        heads=[_("Part"), *names],
        rows=[
            *(
                [_part_words(key), *(seconds_words(part.get(key, 0.0)) for part in parts)]
                for key in parts[0]
            ),
            [_("whole step"), *(seconds_words(one.step_s) for _name, one in found)],
            [_("hashed onto paths"), *(seconds_words(one.hashed_step_s) for _name, one in found)],
            [
                _("on a full-rate network"),
                *(seconds_words(one.full_rate_step_s) for _n, one in found),
            ],
        ],
    )


def _whiskers(names: Sequence[str], found: Sequence[TrainingForecast]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [one.step_s for one in found],
        "y": list(names),
        "mode": "markers",
        "name": _("80 % of runs"),
        "marker": {"symbol": "line-ns-open", "size": 16, "color": INK},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [one.high_s - one.step_s for one in found],
            "arrayminus": [one.step_s - one.low_s for one in found],
            "thickness": 1.4,
            "color": INK,
        },
        "hovertemplate": "%{x:.4g} s",
    }


# Jitter --------------------------------------------------------------------------------------


def _cause_words(name: str) -> str:
    return {
        "ranks": _("late GPUs (not the network)"),
        "flaps": _("flapping links"),
        "collisions": _("colliding flows"),
    }.get(name, name)


def _jitter(plans: Sequence[CandidatePlan]) -> Chart:
    """Median, mean and tail of a step, over the step without jitter."""
    found = [(plan.name, plan.forecast.training) for plan in plans if plan.forecast.training]
    names = [name for name, _one in found]
    data: list[dict[str, Any]] = []
    marks = (
        ("p50_s", "p50", "circle"),
        ("mean_s", _("mean"), "diamond"),
        ("p99_s", "p99", "square"),
    )
    for number, (key, words, symbol) in enumerate(marks):
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [1e3 * (getattr(one.jitter, key) - one.step_s) for _name, one in found],
                "y": names,
                "name": words,
                "marker": {"symbol": symbol, "size": 11, "color": rail_colour((0, 2, 1)[number])},
                "hovertemplate": "%{x:,.1f} ms",
            }
        )
    causes = list(dict.fromkeys(key for _name, one in found for key in one.jitter.by_cause_s))
    rows = [
        [words, *(seconds_words(getattr(one.jitter, key)) for _name, one in found)]
        for key, words, _symbol in marks
    ]
    rows += [
        [
            _("by {cause}").format(cause=_cause_words(cause)),
            *(seconds_words(one.jitter.by_cause_s.get(cause, 0.0)) for _name, one in found),
        ]
        for cause in causes
    ]
    return Chart(
        name="jitter",
        title=_("Jitter: how late a step is"),
        words=_jitter_words([one for _name, one in found]),
        traces=data,
        layout=layout(
            120 + 40 * len(names),
            xaxis={
                "title": {"text": _("later than a step without jitter [ms]")},
                "rangemode": "tozero",
            },
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False},
        ),
        heads=[_("Step"), *names],
        rows=rows,
    )


def _jitter_words(found: Sequence[TrainingForecast]) -> str:
    total = sum(sum(one.jitter.by_cause_s.values()) for one in found)
    ranks = sum(one.jitter.by_cause_s.get("ranks", 0.0) for one in found)
    words = _(
        "Every step ends with its slowest GPU and message. Ranks that compute late are counted "
        "here and charged to no network."
    )
    if total > 0:
        told = _("They are {share:.0f} % of the mean lateness.")
        words = sentences(words, told.format(share=100 * ranks / total))
    return words


# Serving -------------------------------------------------------------------------------------


def _tokens(plans: Sequence[CandidatePlan]) -> Chart:
    """Time per output token: without jitter, median, tail."""
    found = [(plan.name, plan.forecast.serving) for plan in plans if plan.forecast.serving]
    names = [name for name, _one in found]
    marks = (
        ("token_s", _("without jitter"), "diamond"),
        ("p50_s", "p50", "circle"),
        ("p99_s", "p99", "square"),
    )
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [1e3 * getattr(one, key) for _name, one in found],
            "y": names,
            "name": words,
            "marker": {"symbol": symbol, "size": 11, "color": rail_colour((2, 0, 1)[number])},
            "hovertemplate": "%{x:.4g} ms",
        }
        for number, (key, words, symbol) in enumerate(marks)
    ]
    rows = [
        [words, *(seconds_words(getattr(one, key)) for _name, one in found)]
        for key, words, _symbol in marks
    ]
    rows.append(
        [_("time to first token"), *(seconds_words(one.first_token_s) for _name, one in found)]
    )
    rows.append(
        [_("waits for the network"), *(f"{100 * one.network_share:.1f} %" for _name, one in found)]
    )
    words = _(
        "Time per output token of {model} on instances of {gpus} GPUs; jitter from messages that "
        "are late at random."
    ).format(model=found[0][1].model, gpus=found[0][1].instance_gpus)
    words = sentences(words, _("The axis does not start at zero."))
    return Chart(
        name="jitter",
        title=_("Time per output token, and its tail"),
        words=words,
        traces=data,
        layout=layout(
            120 + 40 * len(names),
            xaxis={"title": {"text": _("milliseconds per token")}},
            yaxis={"autorange": "reversed", "type": "category", "showgrid": False},
        ),
        heads=[_("Token"), *names],
        rows=rows,
    )
