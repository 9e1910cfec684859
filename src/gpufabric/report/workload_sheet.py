"""The sheet of ``bom.xlsx`` on the workload: what each candidate's network makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpufabric.core.text import _
from gpufabric.planner.compare import Plan
from gpufabric.report.collective_table import size_words
from gpufabric.report.forecast_words import group_words
from gpufabric.report.workbook_format import Book, Column
from gpufabric.workload.forecast import WorkloadForecast, told_digits
from gpufabric.workload.forecast_serving import ServingForecast
from gpufabric.workload.forecast_training import TrainingForecast

__all__ = ["workload_sheet"]

Row = tuple[str, Any, Any, Any, str]


def workload_sheet(book: Book, name: str, plan: Plan) -> None:
    """Append every number of every forecast with its 80 % interval, and what it rests on."""
    page = book.page(
        name,
        [
            Column(_("Candidate"), 20),
            Column(_("Number"), 44),
            Column(_("Middle"), 16),
            Column(_("Low"), 14),
            Column(_("High"), 14),
            Column(_("Unit or note"), 90, "wrapped"),
        ],
    )
    for candidate in plan.candidates:
        for row in _rows(candidate.forecast):
            page.add([candidate.name, *row])
    page.filter_to(max(page.row - 1, 1))


def _rows(found: WorkloadForecast) -> Iterator[Row]:
    for one in found.collectives:
        label = _("{operation}, {size}, {algorithm}").format(
            operation=one.operation,
            size=size_words(one.size_bytes),
            algorithm=f"{one.algorithm}/{one.protocol}",
        )
        values = (one.busbw_gbytes_per_s, one.low_gbytes_per_s, one.high_gbytes_per_s)
        yield (label, *told_digits(values), _("GB/s, bus bandwidth"))
    if found.training is not None:
        yield from _training(found.training)
    if found.serving is not None:
        yield from _serving(found.serving)
    for label, sentences in (
        (_("Assumed"), found.assumed),
        (_("Beyond what was measured"), found.extrapolates),
        (_("Unknown"), found.unknown),
    ):
        for words in sentences:
            yield (label, None, None, None, words)


def _plain(label: str, value: float | str, unit: str) -> Row:
    return (label, told_digits(value), None, None, unit)


def _training(found: TrainingForecast) -> Iterator[Row]:
    yield (
        _("Training step"),
        *told_digits((found.step_s, found.low_s, found.high_s)),
        _("s, without jitter; {model}").format(model=found.model),
    )
    for name, value in found.plan.items():
        yield _plain(_("Plan: {name}").format(name=name), value, "")
    yield _plain(_("MFU"), found.mfu, _("0 to 1"))
    yield _plain(_("Tokens a second"), found.tokens_per_s, _("all GPUs"))
    yield _plain(_("Computing"), found.compute_s, "s")
    yield _plain(_("Waiting for the pipeline"), found.bubble_s, "s")
    yield _plain(_("Optimizer"), found.optimizer_s, "s")
    for name, seconds in found.exposed_s.items():
        yield _plain(group_words(name), seconds, _("s of communication that shows"))
    yield _plain(_("Step at full NIC rate"), found.full_rate_step_s, "s")
    yield _plain(_("Step with hashed flows"), found.hashed_step_s, "s")
    yield _plain(_("Step with jitter, mean"), found.jitter.mean_s, "s")
    yield _plain(_("Step with jitter, p99"), found.jitter.p99_s, "s")
    yield _plain(_("Memory of the fullest GPU"), found.memory_gb, "GB")
    for name, hours in found.lost_gpu_hours_per_day.items():
        words = {"communication": _("communication"), "jitter": _("jitter")}[name]
        label = _("GPU-hours a day waited: {cause}").format(cause=words)
        yield _plain(label, hours, "h")


def _serving(found: ServingForecast) -> Iterator[Row]:
    for label, value in (
        (_("Time to first token"), found.first_token_s),
        (_("Time per output token"), found.token_s),
    ):
        values = (value, value * found.low_factor, value * found.high_factor)
        yield (label, *told_digits(values), _("s; {model}").format(model=found.model))
    for name, given in found.plan.items():
        yield _plain(_("Plan: {name}").format(name=name), given, "")
    yield _plain(_("Instances"), found.n_instances, "")
    yield _plain(_("Tokens a second"), found.tokens_per_s, _("all GPUs decoding"))
    yield _plain(_("Waits for communication"), found.network_share, _("0 to 1, of a request"))
    yield _plain(_("Time per output token, p99 with jitter"), found.p99_s, "s")
    yield _plain(_("Memory of a decoding GPU"), found.memory_gb, "GB")
