"""The folder that a plan is written to: all of it, or none of it.

::

    out/train-1024/
    ├── report.html             the decision and everything behind it, on one page
    ├── report.md               the decision in words
    ├── report.xlsx             what each way costs, with live formulas
    ├── plan.json               everything, schema: gpufabric schema --of plan
    ├── bom.xlsx                bills, racks, cables, decisions, sources of all candidates
    ├── workload.html           what each network makes of the workload, with figures
    ├── written.json            what this folder holds, by which it is known as ours
    └── infiniband/             one folder a candidate
        ├── fabric.json         hosts, switches, ports, links, racks, cables
        ├── bom.csv             bill of materials
        ├── cables.csv          one row a cable, in the order of laying
        ├── addresses.csv       addresses and AS numbers, or LIDs
        ├── topology.svg        the network as a figure
        └── racks.svg           floor plan and elevations

Everything is written to a folder beside the target, which then takes its place; a failure leaves
the old folder as it was.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import write_bytes, write_text
from gpufabric.core.text import _
from gpufabric.model.files import save_fabric
from gpufabric.planner.advice import Advice
from gpufabric.planner.compare import CandidatePlan, Plan, plan_json
from gpufabric.report.address_csv import addresses_csv
from gpufabric.report.bom_csv import bom_csv
from gpufabric.report.bom_xlsx import bom_xlsx
from gpufabric.report.racks_svg import racks_svg
from gpufabric.report.report_markdown import report_markdown
from gpufabric.report.report_page import Drawings, report_html
from gpufabric.report.report_xlsx import report_xlsx
from gpufabric.report.topology_svg import topology_svg
from gpufabric.report.workload_page import workload_page
from gpufabric.topology.cable_table import cables_csv
from gpufabric.topology.rack_power import rack_power

__all__ = ["MANIFEST", "check_folder", "folder_names", "write_plan"]

MANIFEST = "written.json"
_FORMAT = "gpufabric-output"
_RESERVED = frozenset(
    {
        "plan.json",
        "bom.xlsx",
        "report.html",
        "report.md",
        "report.xlsx",
        "workload.html",
        MANIFEST,
    }
)
_SHOWN = 3


def write_plan(
    plan: Plan,
    folder: Path,
    told: Callable[[str], None] = lambda _name: None,
    advice: Advice | None = None,
) -> list[Path]:
    """Write all files of a plan to `folder` and return their paths.

    Parameters
    ----------
    plan
        The plan.
    folder
        Folder to make, or one that an earlier plan was written to.
    told
        Called with the name of each file before it is written.
    advice
        What to build of it; without, the report is not written.

    Raises
    ------
    InputError
        If the folder holds files that are not ours, or cannot be written. The folder is then as
        it was.
    """
    check_folder(folder)
    with _replacing(folder) as new:
        names = list(_write_all(plan, new, told, advice))
        digests = {name: _digest(new / name) for name in names}
        content = {"format": _FORMAT, "format_version": 1, "files": digests}
        write_text(new / MANIFEST, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return [folder / name for name in names]


def folder_names(plan: Plan) -> dict[str, str]:
    """Return the folder of each candidate by its name: that name, unless it is taken."""
    found: dict[str, str] = {}
    taken = {name.casefold() for name in _RESERVED}
    for candidate in plan.candidates:
        trial, number = candidate.name, 2
        while trial.casefold() in taken:
            trial = f"{candidate.name}-{number}"
            number += 1
        taken.add(trial.casefold())
        found[candidate.name] = trial
    return found


def _write_all(
    plan: Plan, folder: Path, told: Callable[[str], None], advice: Advice | None
) -> Iterator[str]:
    """Write the files one by one; yield the name of each."""
    content = plan_json(plan, advice)
    folders = folder_names(plan)
    drawings = {one.name: _drawings(plan, one) for one in plan.candidates}
    steps: dict[str, Callable[[Path], object]] = {}
    if advice is not None:
        steps |= _report_steps(advice, [drawings[one.name] for one in plan.candidates])
    steps |= {
        "plan.json": lambda path: write_text(path, _json(content)),
        "bom.xlsx": lambda path: write_bytes(path, bom_xlsx(plan, content)),
        "workload.html": lambda path: write_text(path, workload_page(plan)),
    }
    for candidate in plan.candidates:
        for name, step in _candidate_steps(candidate, drawings[candidate.name]).items():
            steps[f"{folders[candidate.name]}/{name}"] = step
    for name, step in steps.items():
        told(name)
        step(folder / name)
        yield name


def _report_steps(
    advice: Advice, drawings: Sequence[Drawings]
) -> Mapping[str, Callable[[Path], object]]:
    return {
        "report.html": lambda path: write_text(path, report_html(advice, drawings)),
        "report.md": lambda path: write_text(path, report_markdown(advice)),
        "report.xlsx": lambda path: write_bytes(path, report_xlsx(advice)),
    }


def _drawings(plan: Plan, one: CandidatePlan) -> Drawings:
    prints = one.placement.footprints
    power = rack_power(one.fabric, prints, one.cabling)
    site = plan.requirement.site
    return Drawings(topology_svg(one.fabric), racks_svg(one.fabric, prints, power, site))


def _candidate_steps(
    one: CandidatePlan, drawings: Drawings
) -> Mapping[str, Callable[[Path], object]]:
    return {
        "fabric.json": lambda path: save_fabric(one.fabric, path),
        "bom.csv": lambda path: write_bytes(path, bom_csv(one.bill)),
        "cables.csv": lambda path: write_bytes(path, cables_csv(one.cabling)),
        "addresses.csv": lambda path: write_bytes(path, addresses_csv(one.addressing, one.fabric)),
        "topology.svg": lambda path: write_text(path, drawings.topology),
        "racks.svg": lambda path: write_text(path, drawings.racks),
    }


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The folder -------------------------------------------------------------------------------


def check_folder(folder: Path) -> None:
    """Check that `folder` is absent, empty, or holds exactly what an earlier plan wrote there.

    Raises
    ------
    InputError
        If it is no folder, is below a file, cannot be read, or holds a file that was added or
        changed since.
    """
    try:
        if not folder.exists():
            above = next((path for path in folder.absolute().parents if path.exists()), None)
            if above is not None and not above.is_dir():
                raise _unwritable(folder, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
            return
        if not folder.is_dir():
            raise InputError(Fault(str(folder), _("this is not a folder."), remedy=_remedy()))
        strange = list(islice(_strange(folder), _SHOWN + 1))
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from error
    if strange:
        listed = ", ".join(sorted(strange[:_SHOWN])) + (" …" if len(strange) > _SHOWN else "")
        raise InputError(
            Fault(
                str(folder),
                _(
                    "it holds files that gpufabric plan did not write, or that were changed "
                    "since: {files}."
                ).format(files=listed),
                _("a new or empty folder, or an earlier output as it was written"),
                _remedy(),
            )
        )


def _remedy() -> str:
    return _("Choose another folder with -o, or move these files away.")


def _strange(folder: Path) -> Iterator[str]:
    """Yield the names of files that were not written by us, or changed since."""
    written = _manifest(folder)
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if (path.is_dir() and not path.is_symlink()) or name == MANIFEST:
            continue
        is_plain = path.is_file() and not path.is_symlink()
        if name not in written or not is_plain or _digest(path) != written[name]:
            yield name


def _manifest(folder: Path) -> Mapping[str, Any]:
    """Return the digests of what an earlier plan wrote to `folder`; nothing where unknown."""
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        return {}
    files = content.get("files")
    return files if isinstance(files, dict) else {}


def _unwritable(folder: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(
        Fault(
            str(folder),
            _("cannot be written: {reason}.").format(reason=reason),
            remedy=_("Choose another output path or change its permissions."),
        )
    )


@contextlib.contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Give a new folder that takes the place of `folder` when the block ends without error."""
    try:
        target = folder.resolve()
    except RuntimeError as error:  # how Python 3.11 and 3.12 tell a loop of links
        raise _unwritable(folder, OSError(errno.ELOOP, os.strerror(errno.ELOOP))) from error
    if not target.name:
        raise _unwritable(folder, OSError(errno.EBUSY, os.strerror(errno.EBUSY)))
    mark = secrets.token_hex(4)
    new, old = (target.with_name(f".{target.name[:200]}.{mark}.{end}") for end in ("new", "old"))
    made = [parent for parent in target.parents if not parent.exists()]
    try:
        new.mkdir(parents=True)
        yield new
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)
        with contextlib.suppress(OSError):
            if old.exists() and not target.exists():
                old.rename(target)
            for parent in made:
                parent.rmdir()
        cause = error.__cause__ if isinstance(error, InputError) else error
        if isinstance(cause, OSError):  # told of the folder asked for, not of the one beside it
            raise _unwritable(folder, cause) from error
        raise
    shutil.rmtree(old, ignore_errors=True)
