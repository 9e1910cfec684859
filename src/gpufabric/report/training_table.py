"""A training study on a terminal, as JSON, and as a table of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufabric.core.text import _
from gpufabric.report.forecast_words import group_words, range_words, seconds_words, token_words
from gpufabric.report.traffic_files import write_table
from gpufabric.sim.flow_columns import FileColumn
from gpufabric.workload.forecast import told_digits
from gpufabric.workload.network_view import NetworkView
from gpufabric.workload.training import MODEL, MODEL_VERSION, TrainingEstimate
from gpufabric.workload.training_study import TrainingStudy

__all__ = [
    "PART_COLUMNS",
    "findings_of",
    "key_figures",
    "plan_words",
    "print_training",
    "step_parts",
    "training_json",
    "write_parts",
]

PART_COLUMNS = (
    FileColumn("part", "text", "What the time of a step is spent on; groups that communicate."),
    FileColumn("seconds", "number", "In a step [s]; of communication, what shows."),
    FileColumn("share", "number", "Of a step without jitter, 0 to 1."),
    FileColumn("ranks", "number", "Ranks of one group; empty for what is no group."),
    FileColumn("over", "text", "network: the group crosses it; host: inside NVLink domains."),
)


def plan_words(found: TrainingEstimate) -> str:
    """Return model, GPUs and ways of a job in words."""
    job = found.job
    plan = job.plan
    ways = {
        "TP": plan.tensor,
        "PP": plan.pipeline,
        "CP": plan.context,
        "EP": plan.expert,
        "DP": job.data_ways,
    }
    told = [f"{name} {count}" for name, count in ways.items() if count > 1]
    more = [f"ZeRO {plan.zero}", plan.precision]
    if plan.chunks > 1:
        more.append(_("{n} chunks").format(n=plan.chunks))
    if plan.schedule == "zero-bubble":
        more.append(plan.schedule)
    if plan.recompute != "none":
        more.append(_("recomputes: {what}").format(what=plan.recompute))
    batch = _("{n} sequences of {tokens} tokens, micro-batch {micro}").format(
        n=f"{plan.global_batch:,}", tokens=f"{plan.sequence_tokens:,}", micro=plan.micro_batch
    )
    return ", ".join([*told, *more, batch])


def title_of(found: TrainingEstimate) -> str:
    """Return what trains where, as a heading."""
    job = found.job
    return _("{model} on {n} × {gpu}: one training step").format(
        model=job.model.name, n=f"{job.cluster.n_ranks:,}", gpu=job.cluster.gpu
    )


def findings_of(study: TrainingStudy) -> list[str]:
    """Return what is wrong with the plan, one sentence each."""
    if study.fits:
        return []
    memory = study.estimate.memory
    words = _("It does not fit: {need:.1f} GB a GPU, and {have:.0f} GB are there.")
    return [words.format(need=memory.total_gb, have=memory.available_gb)]


def step_parts(study: TrainingStudy) -> list[tuple[str, str, float, int | None, str]]:
    """Return key, words, seconds, ranks and way of every part of a step with jitter."""
    found = study.estimate
    parts = found.parts
    rows: list[tuple[str, str, float, int | None, str]] = [
        ("compute", _("computing"), float(parts.compute_s), None, ""),
        ("optimizer", _("optimizer"), float(parts.optimizer_s), None, ""),
        ("bubble", _("waiting for the pipeline"), float(parts.bubble_s), None, ""),
    ]
    groups = {group.name: group for group in found.groups}
    for name, seconds in found.exposed_s.items():
        group = groups[name]
        way = "" if group.size == 1 else "network" if group.crosses_network else "host"
        rows.append((name, group_words(name), seconds, group.size, way))
    rows.append(("jitter", _("jitter"), study.steps.mean_s - study.steps.base_s, None, ""))
    return rows


def key_figures(study: TrainingStudy) -> list[tuple[str, str]]:
    """Return what matters most as label and value."""
    numbers, lost = study.numbers, study.numbers.lost_gpu_hours_per_day
    found = study.estimate
    return [
        (_("step without jitter"), seconds_words(numbers.step_s)),
        (
            _("80 % of runs"),
            range_words(numbers.low_s, numbers.high_s),
        ),
        (_("tokens a second"), token_words(numbers.tokens_per_s)),
        (_("tokens a second and GPU"), token_words(found.tokens_per_s_per_gpu)),
        ("MFU", f"{numbers.mfu * 100:.1f} %"),
        (_("exposed communication"), f"{numbers.exposed_share * 100:.1f} %"),
        (_("memory of a GPU"), f"{numbers.memory_gb:.1f} / {numbers.available_gb:.0f} GB"),
        (_("step, p99 with jitter"), seconds_words(numbers.jitter.p99_s)),
        (_("GPU-hours a day: communication"), f"{lost['communication']:,.0f}"),
        (_("GPU-hours a day: jitter"), f"{lost['jitter']:,.0f}"),
    ]


def training_json(study: TrainingStudy, view: NetworkView, seed: int) -> dict[str, Any]:
    """Return the study as JSON-like values, numbers with six digits."""
    found, memory = study.estimate, study.estimate.memory
    content: dict[str, Any] = {
        "gpu": found.job.cluster.gpu,
        "gpus": found.job.cluster.n_ranks,
        "software": found.software,
        **asdict(study.numbers),
        "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
        "exposed_share": study.numbers.exposed_share,
        "fits": study.fits,
        "memory": asdict(memory),
        "groups": [
            {
                "name": group.name,
                "ranks": group.size,
                "ranks_inside": group.inside,
                "crosses_network": group.crosses_network,
                "slowdown": found.job.cluster.slowdown(group.name),
            }
            for group in found.groups
        ],
        "scaling": [asdict(point) for point in study.scaling],
    }
    if study.search is not None:
        content["search"] = {
            "tried": study.search.n_tried,
            "too_large": study.search.n_too_large,
            "best": [_brief(one) for one in study.search.best],
        }
    head = {
        "model_version": {"name": MODEL, "version": MODEL_VERSION},
        "fabric": {"name": view.fabric.name, "hash": view.fabric.content_hash},
        "seed": seed,
        "findings": findings_of(study),
    }
    rounded: dict[str, Any] = told_digits({**head, **content})
    return rounded


def _brief(found: TrainingEstimate) -> dict[str, Any]:
    plan = found.job.plan
    return {
        "tensor": plan.tensor,
        "pipeline": plan.pipeline,
        "context": plan.context,
        "expert": plan.expert,
        "data": found.job.data_ways,
        "chunks": plan.chunks,
        "zero": plan.zero,
        "micro_batch": plan.micro_batch,
        "recompute": plan.recompute,
        "step_s": found.step_s,
        "low_s": found.low_s,
        "high_s": found.high_s,
        "mfu": found.mfu,
        "memory_gb": found.memory.total_gb,
    }


def write_parts(study: TrainingStudy, path: Path) -> Path:
    """Write the parts of a step as a table; return `path`."""
    rows = step_parts(study)
    seconds = np.array(told_digits([row[2] for row in rows]))
    values = {
        "part": np.array([row[0] for row in rows], np.str_),
        "seconds": seconds,
        "share": np.array(told_digits((seconds / study.steps.base_s).tolist())),
        "ranks": np.array([np.nan if row[3] is None else float(row[3]) for row in rows]),
        "over": np.array([row[4] for row in rows], np.str_),
    }
    return write_table(path, PART_COLUMNS, values)


# Terminal ----------------------------------------------------------------------------------


def print_training(study: TrainingStudy, console: Console) -> None:
    """Print key figures, parts of the step, plans found, and what the numbers rest on."""
    found = study.estimate
    console.print(Text(title_of(found), "bold"))
    console.print(Text(plan_words(found), "dim"))
    figures = _table(("", ""), ("left", "left"))
    for label, value in key_figures(study):
        figures.add_row(Text(label, "dim"), value)
    console.print(figures)
    console.print()
    console.print(_parts_table(study))
    if study.search is not None:
        console.print()
        console.print(_search_table(study.search.best))
    for words in findings_of(study):
        console.print(Text(words, "bold red"))
    for reason in found.extrapolates:
        console.print(Text(_("Beyond what was measured: {reason}").format(reason=reason)))


def _table(headings: Sequence[str], sides: Sequence[str]) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        header_style="dim",
        padding=(0, 2, 0, 0),
        show_header=any(headings),
    )
    for heading, side in zip(headings, sides, strict=True):
        table.add_column(heading, justify="right" if side == "right" else "left", no_wrap=True)
    return table


def _parts_table(study: TrainingStudy) -> Table:
    headings = (_("part of the step"), _("time"), _("share"), _("ranks"), _("over"))
    table = _table(headings, ("left", "right", "right", "right", "left"))
    for _key, words, seconds, ranks, way in step_parts(study):
        if ranks == 1 or (ranks is None and seconds == 0):
            continue
        over = {"network": _("network"), "host": _("NVLink domain"), "": ""}[way]
        table.add_row(
            words,
            seconds_words(seconds) if seconds else "0",
            f"{seconds / study.steps.base_s * 100:.1f} %",
            "" if ranks is None else f"{ranks:,}",
            over,
        )
    return table


def _search_table(best: Sequence[TrainingEstimate]) -> Table:
    names = ("TP", "PP", "CP", "EP", "DP", "ZeRO")
    headings = (*names, _("chunks"), _("micro"), _("recomputes"), _("step"), "MFU", _("memory"))
    table = _table(headings, ("right",) * 8 + ("left",) + ("right",) * 3)
    for one in best:
        row = _brief(one)
        keys = ("tensor", "pipeline", "context", "expert", "data", "zero", "chunks", "micro_batch")
        table.add_row(
            *(str(row[key]) for key in keys),
            str(row["recompute"]),
            seconds_words(one.step_s),
            f"{one.mfu * 100:.1f} %",
            f"{one.memory.total_gb:.0f} GB",
        )
    return table
