"""``gpufabric plan``: all candidates of a spec designed, compared and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.catalog.collection import Catalog
from gpufabric.cli.language import METAVAR, speak
from gpufabric.cli.loading import CandidateNames, CatalogFolder, SpecFile, chosen, load_spec
from gpufabric.cli.progress import Progress
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement
from gpufabric.planner.advice import advise
from gpufabric.planner.compare import Plan, plan_all, plan_candidate, plan_json
from gpufabric.planner.economics import economics
from gpufabric.report.decision_table import print_decision
from gpufabric.report.output import check_folder, write_plan
from gpufabric.report.side_by_side import print_paths, terminal
from gpufabric.report.terminal import print_plan

__all__ = ["plan"]

_Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help=_("Folder to write: a new one, or one that plan wrote before."),
    ),
]
_AsJson = Annotated[
    bool, typer.Option("--json", help=_("Print what plan.json holds, and the paths."))
]

_Sizes = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        metavar="GPUS,…",
        help=_(
            "Sizes of the selection guide, such as 128,1024,8192; none leaves it out. "
            "Left out: 64 to 16,384 GPUs, further for larger specs."
        ),
    ),
]
_Language = Annotated[
    str | None,
    typer.Option(
        "--lang",
        callback=speak,
        is_eager=True,
        metavar=METAVAR,
        help=_("Language of the report. Left out: that of gpufabric --lang, or GPUFABRIC_LANG."),
    ),
]
MOST_SIZES, MOST_GPUS = 16, 1 << 20


def plan(  # noqa: PLR0913 - one parameter for each option
    spec: SpecFile,
    *,
    output: _Output,
    candidate: CandidateNames = None,
    sizes: _Sizes = None,
    lang: _Language = None,  # noqa: ARG001 - its callback acts as it is read
    as_json: _AsJson = False,
    catalog: CatalogFolder = None,
) -> None:
    """Design all candidates of a spec, compare them, advise, write everything."""
    wanted = _wanted_sizes(sizes)
    check_folder(output)
    requirement, known = load_spec(spec, catalog)
    with Progress() as progress:
        progress.tell(_("designing"))
        made = _planned(requirement, known, candidate)
        progress.tell(_("costs and advice"))
        advice = advise(economics(made), wanted)
        paths = write_plan(made, output, progress.tell, advice)
    if as_json:
        content = {**plan_json(made, advice), "files": [str(path) for path in paths]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        print_plan(made, terminal())
        print_decision(advice, terminal())
        print_paths(paths, terminal())


def _planned(requirement: Requirement, known: Catalog, names: list[str] | None) -> Plan:
    if not names:
        return plan_all(requirement, known)
    wanted = chosen(requirement, names)
    plans = tuple(plan_candidate(requirement, entry, known) for entry in wanted)
    return Plan(requirement.model_copy(update={"candidates": wanted}), known, plans)


def _wanted_sizes(text: str | None) -> tuple[int, ...] | None:
    """Return the sizes that were asked for; none where the guide is left out.

    Raises
    ------
    InputError
        If they are no sizes.
    """
    if text is None or text.strip().lower() == "none":
        return None if text is None else ()
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    is_fine = all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts)
    sizes = tuple(sorted({int(part) for part in parts})) if is_fine else ()
    if not sizes or len(sizes) > MOST_SIZES or not 1 <= sizes[0] <= sizes[-1] <= MOST_GPUS:
        raise InputError(
            Fault(
                "--sizes",
                _('"{text}" is no list of sizes.').format(text=text[:64]),
                _(
                    "up to {n} numbers of GPUs from 1 to {most}, such as 128,1024,8192; or none"
                ).format(n=MOST_SIZES, most=f"{MOST_GPUS:,}"),
            )
        )
    return sizes
