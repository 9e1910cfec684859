"""What commands on a spec begin with: the catalogue and the spec held against it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.load import load_catalog
from gpufabric.core.text import _
from gpufabric.model.requirement import Requirement, load_requirement
from gpufabric.model.spec_parts import Candidate

__all__ = ["CandidateNames", "CatalogFolder", "SpecFile", "chosen", "load_spec"]

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help=_("Spec in YAML."))]
CatalogFolder = Annotated[
    Path | None,
    typer.Option(
        "--catalog",
        metavar="DIR",
        help=_("Folder with device files that add to or replace ours; before the spec's own."),
    ),
]
CandidateNames = Annotated[
    list[str] | None,
    typer.Option(
        "--candidate",
        metavar="NAME",
        help=_("Only this candidate; may be given several times. Left out: all."),
    ),
]


def load_spec(path: Path, folder: Path | None) -> tuple[Requirement, Catalog]:
    """Return the spec in `path` and the catalogue it is held against.

    Parameters
    ----------
    path
        The spec's file.
    folder
        The user's own devices; None takes the folder that the spec names, if any.
    """
    requirement = load_requirement(path, lambda named: load_catalog(folder or named).known_names())
    return requirement, load_catalog(folder or requirement.catalog_folder)


def chosen(requirement: Requirement, names: list[str] | None) -> tuple[Candidate, ...]:
    """Return the candidates of those names, in the spec's order; all where none is named."""
    if not names:
        return requirement.candidates
    wanted = {requirement.candidate(name).name for name in names}
    return tuple(entry for entry in requirement.candidates if entry.name in wanted)
