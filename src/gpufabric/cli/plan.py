"""``gpufabric plan``: all candidates of a spec designed, compared and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from gpufabric.catalog.collection import Catalog
from gpufabric.cli.loading import CandidateNames, CatalogFolder, SpecFile, chosen, load_spec
from gpufabric.cli.progress import Progress
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement
from gpufabric.planner.advice import advise
from gpufabric.planner.compare import Plan, plan_all, plan_candidate, plan_json
from gpufabric.planner.economics import economics
from gpufabric.report.decision_table import print_decision
from gpufabric.report.output import check_folder, write_plan
from gpufabric.report.side_by_side import terminal
from gpufabric.report.terminal import print_paths, print_plan

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


def plan(
    spec: SpecFile,
    *,
    output: _Output,
    candidate: CandidateNames = None,
    as_json: _AsJson = False,
    catalog: CatalogFolder = None,
) -> None:
    """Design all candidates of a spec, compare them, advise, write everything."""
    check_folder(output)
    requirement, known = load_spec(spec, catalog)
    with Progress() as progress:
        progress.tell(_("designing"))
        made = _planned(requirement, known, candidate)
        progress.tell(_("costs and advice"))
        advice = advise(economics(made))
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
