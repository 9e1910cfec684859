"""Forecasts of a workload in words: rows of a comparison, and what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpufabric.core.text import _, listed, sentences
from gpufabric.report.side_by_side import Fact
from gpufabric.workload.forecast import WorkloadForecast

__all__ = [
    "forecast_facts",
    "forecast_notes",
    "group_words",
    "range_words",
    "seconds_words",
    "token_words",
]

_SIZE = 2**30


def seconds_words(value: float) -> str:
    """Return seconds with three digits and a fitting unit.

    Examples
    --------
    >>> seconds_words(14.142), seconds_words(0.0249), seconds_words(6.3e-6)
    ('14.1 s', '24.9 ms', '6.30 µs')
    """
    for limit, factor, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs")):
        if value >= limit:
            number = value * factor
            digits = 0 if number >= 100 else 1 if number >= 10 else 2
            return f"{number:,.{digits}f} {unit}"
    return f"{value} s"


def range_words(low: float, high: float) -> str:
    """Return an interval of seconds; the unit once where both have the same.

    Examples
    --------
    >>> range_words(4.92, 7.45), range_words(0.9, 1.2)
    ('4.92 – 7.45 s', '900 ms – 1.20 s')
    """
    first, last = seconds_words(low), seconds_words(high)
    if first.split()[1] == last.split()[1]:
        first = first.split()[0]
    return f"{first} – {last}"


def token_words(per_s: float) -> str:
    """Return tokens a second with three digits.

    Examples
    --------
    >>> token_words(1186483.0), token_words(328.4)
    ('1.19 million', '328')
    """
    if per_s >= 1e6:
        return _("{n} million").format(n=f"{per_s / 1e6:,.3g}")
    return f"{per_s:,.0f}"


def group_words(name: str) -> str:
    """Return a kind of parallelism in words, with its usual letters."""
    return {
        "tensor": _("tensor (TP)"),
        "expert": _("experts (EP)"),
        "context": _("context (CP)"),
        "pipeline": _("pipeline (PP)"),
        "data": _("data (DP)"),
    }[name]


def forecast_facts(forecasts: Sequence[WorkloadForecast]) -> list[Fact]:
    """Return the rows of a comparison; those that no forecast answers are empty."""
    rows: list[tuple[str, Callable[[WorkloadForecast], str]]] = [
        (_("All-reduce of 1 GiB, busbw"), lambda one: _busbw(one, "all_reduce")),
        (_("All-to-all of 1 GiB, busbw"), lambda one: _busbw(one, "alltoall")),
        (_("Training step"), _step),
        (_("MFU"), lambda one: f"{one.training.mfu * 100:.1f} %" if one.training else ""),
        (_("Time to first token"), lambda one: _token(one, is_first=True)),
        (_("Time per output token"), lambda one: _token(one, is_first=False)),
        (_("Tokens a second"), _tokens),
        (_("Waits for communication"), _waits),
        (_("GPU-hours a day waited"), _lost),
    ]
    return [
        Fact(label, tuple(words(one) for one in forecasts), opens=number == 0)
        for number, (label, words) in enumerate(rows)
    ]


def forecast_notes(forecasts: Sequence[WorkloadForecast]) -> list[str]:
    """Return what the numbers rest on, each sentence once: model and plan, assumed, beyond."""
    notes = []
    first = next((one for one in forecasts if one.training or one.serving), None)
    if first is not None:
        notes.append(_("Workload: {words}.").format(words=_plan_words(first)))
        if first.assumed:
            notes.append(_("Assumed for it: {words}").format(words=sentences(*first.assumed)))
    reasons = [words for one in forecasts for words in one.extrapolates]
    if reasons:
        words = sentences(*dict.fromkeys(reasons))
        notes.append(_("Beyond what was measured: {reason}").format(reason=words))
    unknown = [words for one in forecasts for words in one.unknown]
    if unknown:
        words = sentences(*dict.fromkeys(unknown))
        notes.append(_("No forecast of the workload: {reason}").format(reason=words))
    if any(one.collectives for one in forecasts):
        words = _("Ranges are 80 % intervals.")
        if any(one.serving for one in forecasts):
            words = _("Ranges of bus bandwidths are 80 % intervals, those of serving assumed.")
        notes.append(words)
    return notes


def _plan_words(one: WorkloadForecast) -> str:
    found = one.training or one.serving
    assert found is not None
    ways = {"tensor": "TP", "pipeline": "PP", "context": "CP", "expert": "EP", "data": "DP"}
    told = [
        f"{letters} {found.plan[name]}"
        for name, letters in ways.items()
        if found.plan.get(name, 1) != 1
    ]
    return listed([found.model, *told, str(found.plan["precision"])])


def _busbw(one: WorkloadForecast, operation: str) -> str:
    for row in one.collectives:
        if row.operation == operation and row.size_bytes == _SIZE:
            return _("{mid:.0f} GB/s ({low:.0f} – {high:.0f})").format(
                mid=row.busbw_gbytes_per_s, low=row.low_gbytes_per_s, high=row.high_gbytes_per_s
            )
    return ""


def _range(values: tuple[float, float, float]) -> str:
    low, middle, high = values
    return f"{seconds_words(middle)} ({range_words(low, high)})"


def _step(one: WorkloadForecast) -> str:
    found = one.training
    return "" if found is None else _range((found.low_s, found.step_s, found.high_s))


def _token(one: WorkloadForecast, *, is_first: bool) -> str:
    found = one.serving
    if found is None:
        return ""
    value = found.first_token_s if is_first else found.token_s
    return _range((value * found.low_factor, value, value * found.high_factor))


def _tokens(one: WorkloadForecast) -> str:
    found = one.training or one.serving
    return "" if found is None else token_words(found.tokens_per_s)


def _waits(one: WorkloadForecast) -> str:
    return "" if one.exposed_share is None else f"{one.exposed_share * 100:.1f} %"


def _lost(one: WorkloadForecast) -> str:
    hours = one.lost_gpu_hours_per_day
    return "" if hours is None else f"{hours:,.0f}"
