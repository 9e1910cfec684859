"""A study of serving on a terminal, as JSON, and as a table of batches."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.report.forecast_words import range_words, seconds_words, token_words
from gpufabric.report.traffic_files import write_table
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.workload.forecast import told_digits
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.serving_study import ServingStudy

__all__ = [
    "BATCH_COLUMNS",
    "decode_parts",
    "findings_of",
    "first_parts",
    "key_figures",
    "plan_words",
    "print_serving",
    "serving_json",
    "title_of",
    "write_batches",
]

MODEL, MODEL_VERSION = "serving", 1
MOST_ROWS = 8

BATCH_COLUMNS = (
    FileColumn("sequences", "number", "Sequences that an instance decodes at once."),
    FileColumn("token_s", "number", "Time per output token [s]."),
    FileColumn("tokens_per_s_per_gpu", "number", "Output tokens a second and GPU."),
    FileColumn("network_share", "number", "Share of a step that waits for communication."),
    FileColumn("fits", "text", "yes, or no where keys and values do not fit into memory."),
)


def title_of(study: ServingStudy, view: NetworkView) -> str:
    """Return what is served where, as a heading."""
    return _("{model} served on {n} × {gpu}").format(
        model=study.model.name, n=f"{view.cluster.n_ranks:,}", gpu=view.cluster.gpu
    )


def plan_words(study: ServingStudy) -> str:
    """Return ways, batch and lengths in words."""
    plan, numbers = study.estimate.plan, study.numbers
    told = [
        _("{n} instances of {gpus} GPUs").format(
            n=f"{numbers.n_instances:,}", gpus=numbers.instance_gpus
        )
    ]
    told += [f"{name} {n}" for name, n in (("TP", plan.tensor), ("EP", plan.expert)) if n > 1]
    told.append(plan.precision)
    told.append(_("{n} sequences at once").format(n=f"{plan.sequences:,}"))
    told.append(
        _("{prompt} tokens of prompt, {output} of answer").format(
            prompt=f"{plan.prompt_tokens:,}", output=f"{plan.output_tokens:,}"
        )
    )
    if plan.is_disaggregated:
        told.append(_("prefill on other GPUs"))
    told.append(_("prefill busy {share:.0f} % of the time").format(share=plan.utilisation * 100))
    return ", ".join(told)


def findings_of(study: ServingStudy) -> list[str]:
    """Return what is wrong, one sentence each."""
    found, estimate, rate = [], study.estimate, study.rate
    if not estimate.fits:
        words = _("It does not fit: {need:.1f} GB a GPU, and {have:.0f} GB are there.")
        found.append(words.format(need=estimate.memory_gb, have=estimate.available_gb))
    if rate is not None and rate.utilisation >= 1:
        words = _("{rate:g} requests a second are too many: prefill could follow {most:.3g}.")
        most = rate.requests_per_s / rate.utilisation
        found.append(words.format(rate=rate.requests_per_s, most=most))
    return found


def first_parts(study: ServingStudy) -> list[tuple[str, str, float]]:
    """Return key, words and seconds of what the first token waits for."""
    first = study.estimate.prefill
    return [
        ("wait", _("waiting for its turn"), first.wait_s),
        ("compute", _("prefill, computing"), first.compute_s),
        ("network", _("prefill, communication"), first.network_s),
        ("transfer", _("keys and values"), first.transfer_s),
        ("decode", _("first step of decode"), study.estimate.decode.step_s),
    ]


def decode_parts(study: ServingStudy) -> list[tuple[str, str, float]]:
    """Return key, words and seconds of what each output token takes."""
    decode = study.estimate.decode
    return [
        ("weights", _("reading weights"), decode.weights_s),
        ("cache", _("reading keys and values"), decode.cache_s),
        ("compute", _("products not hidden"), decode.compute_s),
        ("kernels", _("starting kernels"), decode.kernels_s),
        ("network", _("communication"), decode.network_s),
        ("jitter", _("jitter"), study.tail.mean_s - study.tail.base_s),
    ]


def key_figures(study: ServingStudy) -> list[tuple[str, str]]:
    """Return what matters most as label and value."""
    numbers, estimate = study.numbers, study.estimate
    low, high = numbers.low_factor, numbers.high_factor
    first, each = numbers.first_token_s, numbers.token_s
    return [
        (_("time to first token"), seconds_words(first)),
        (_("its range, assumed"), range_words(first * low, first * high)),
        (_("time per output token"), seconds_words(each)),
        (_("its range, assumed"), range_words(each * low, each * high)),
        (_("tokens a second and GPU, decode"), token_words(numbers.tokens_per_s_per_gpu)),
        (
            _("tokens a second and GPU, prefill"),
            token_words(estimate.prefill_tokens_per_s_per_gpu),
        ),
        (_("waits for communication"), f"{numbers.network_share * 100:.1f} %"),
        (_("token, p99 with jitter"), seconds_words(study.tail.p99_s)),
        (_("memory of a GPU"), f"{numbers.memory_gb:.1f} / {numbers.available_gb:.0f} GB"),
        (_("a whole request"), seconds_words(estimate.request_s)),
    ]


def serving_json(study: ServingStudy, view: NetworkView, seed: int) -> dict[str, Any]:
    """Return the study as JSON-like values, numbers with six digits."""
    estimate = study.estimate
    content = {
        "model_version": {"name": MODEL, "version": MODEL_VERSION},
        "fabric": {"name": view.fabric.name, "hash": view.fabric.content_hash},
        "seed": seed,
        "findings": findings_of(study),
        "gpu": view.cluster.gpu,
        "gpus": view.cluster.n_ranks,
        **asdict(study.numbers),
        "fits": estimate.fits,
        "is_disaggregated": estimate.plan.is_disaggregated,
        "utilisation": estimate.plan.utilisation,
        "prefill_tokens_per_s_per_gpu": estimate.prefill_tokens_per_s_per_gpu,
        "request_s": estimate.request_s,
        "first_token_parts_s": {key: seconds for key, _words, seconds in first_parts(study)},
        "token_parts_s": {key: seconds for key, _words, seconds in decode_parts(study)},
        "full_rate": {
            "first_token_s": study.full_rate.first_token_s,
            "token_s": study.full_rate.decode.step_s,
        },
        "tail": asdict(study.tail),
        "by_batch": [asdict(point) for point in study.by_batch],
        "by_jitter": [asdict(point) for point in study.by_jitter],
        "rate": None if study.rate is None else asdict(study.rate),
    }
    rounded: dict[str, Any] = told_digits(content)
    return rounded


def write_batches(study: ServingStudy, path: Path) -> Path:
    """Write what other batches give as a table; return `path`."""
    points = study.by_batch
    numbers = {
        name: np.array(told_digits([float(getattr(point, name)) for point in points]))
        for name in ("token_s", "tokens_per_s_per_gpu", "network_share")
    }
    values = {
        "sequences": np.array([point.sequences for point in points]),
        **numbers,
        "fits": np.array(["yes" if point.fits else "no" for point in points], np.str_),
    }
    return write_table(path, BATCH_COLUMNS, values)


# Terminal ----------------------------------------------------------------------------------


def print_serving(study: ServingStudy, view: NetworkView, console: Console) -> None:
    """Print key figures, parts, batches, the tail, and what the numbers rest on."""
    console.print(Text(title_of(study, view), "bold"))
    console.print(Text(plan_words(study), "dim"))
    figures = _table(("", ""))
    for label, value in key_figures(study):
        figures.add_row(Text(label, "dim"), value)
    console.print(figures)
    for heading, rows in (
        (_("first token"), first_parts(study)),
        (_("each output token"), decode_parts(study)),
    ):
        console.print()
        total = sum(seconds for _key, _words, seconds in rows)
        table = _table((heading, _("time"), _("share")))
        for _key, words, seconds in rows:
            if seconds:
                table.add_row(words, seconds_words(seconds), f"{seconds / total * 100:.1f} %")
        console.print(table)
    console.print()
    console.print(_batch_table(study))
    console.print()
    console.print(_jitter_table(study))
    _print_rate(study, console)
    for words in findings_of(study):
        console.print(Text(words, "bold red"))
    for reason in study.numbers.extrapolates:
        console.print(Text(reason, "dim"))


def _table(headings: tuple[str, ...]) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
        padding=(0, 2, 0, 0),
        show_header=any(headings),
    )
    for at, heading in enumerate(headings):
        right = at > 0 and any(headings)
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    return table


def _batch_table(study: ServingStudy) -> Table:
    table = _table(
        (_("sequences at once"), _("per token"), _("tokens/s and GPU"), _("communication"))
    )
    for point in study.by_batch[-MOST_ROWS:]:
        is_asked = point.sequences == study.estimate.plan.sequences
        words = (
            f"{point.sequences:,}"
            if point.fits
            else _("{n} (does not fit)").format(n=f"{point.sequences:,}")
        )
        table.add_row(
            words,
            seconds_words(point.token_s),
            token_words(point.tokens_per_s_per_gpu),
            f"{point.network_share * 100:.1f} %",
            style="bold" if is_asked else "",
        )
    return table


def _jitter_table(study: ServingStudy) -> Table:
    table = _table((_("messages late in the mean"), _("token, p50"), "p99", "p99.9"))
    for point in study.by_jitter:
        table.add_row(
            f"{point.jitter_us:g} µs",
            *(seconds_words(value) for value in (point.p50_s, point.p99_s, point.p999_s)),
        )
    return table


def _print_rate(study: ServingStudy, console: Console) -> None:
    rate = study.rate
    if rate is None:
        return
    words = _(
        "{rate:g} requests a second: {prefill} instances for prefill, busy {share:.1f} % of the "
        "time, and {decode} that decode {n} sequences at once."
    )
    console.print()
    console.print(
        words.format(
            rate=rate.requests_per_s,
            prefill=rate.prefill_instances,
            share=rate.utilisation * 100,
            decode=rate.decode_instances,
            n=f"{rate.sequences:,}",
        )
    )
