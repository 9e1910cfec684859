"""Pages that the documentation derives: the reference from the code, the table of benchmarks.

``docs_hook.py`` hands them to MkDocs. Pages of the reference are never written to disk.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/gpufabric"
NO_RESULTS = "No benchmark has been run yet: `make bench`."
COMMANDS = "gpufabric.cli.main"
RESULTS = ROOT / "benchmarks/results.json"
BENCHMARKS_MARK = "<!-- benchmarks -->"
DESIGN_MARK = "<!-- design -->"
DESIGN = re.compile(r"design (?P<fabric>[\w-]+), (?P<gpus>\d+) GPUs, (?P<links>\d+) links")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the tables of benchmarks where a page asks for them."""
    for mark, table in ((BENCHMARKS_MARK, benchmark_table), (DESIGN_MARK, design_table)):
        if mark in markdown:
            markdown = markdown.replace(mark, table(RESULTS))
    return markdown


def expand(entry: dict[str, Any], files: Files) -> dict[str, Any]:
    """Replace a folder in an entry of the navigation by the pages it holds, index first."""
    ((title, target),) = entry.items()
    if not target.endswith("/"):
        return entry
    pages = sorted(
        (file.src_uri for file in files.documentation_pages() if file.src_uri.startswith(target)),
        key=lambda name: (not name.endswith("index.md"), name),
    )
    return {title: pages}


def reference_pages() -> dict[str, str]:
    """Name and text of every page of the reference that the code yields."""
    pages = {f"reference/api-{folder}.md": api_page(folder) for folder in folders()}
    if (PACKAGE / "cli/main.py").exists():
        pages["reference/commands.md"] = commands_page()
    return pages


def folders() -> list[str]:
    """Folders of the package that hold code."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def api_page(folder: str) -> str:
    """Text of the page that documents every public module of one folder."""
    package = f"gpufabric.{folder}"
    names = [
        f"{package}.{path.stem}"
        for path in sorted((PACKAGE / folder).glob("*.py"))
        if not path.stem.startswith("_")
    ]
    blocks = "\n\n".join(f"::: {name}" for name in [package, *names])
    return f"# {package}\n\n{blocks}\n"


def commands_page() -> str:
    """Text of the page that shows every command and option, as typer tells them."""
    command = [sys.executable, "-m", "typer", COMMANDS, "utils", "docs"]
    command += ["--name", "gpufabric", "--title", "Commands"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        message = f"the commands cannot be documented:\n{run.stderr}"
        raise RuntimeError(message)
    return run.stdout


def benchmark_table(path: Path) -> str:
    """Return the benchmarks' results as a Markdown table; a sentence where there are none yet."""
    results = results_of(path)
    if not results:
        return NO_RESULTS
    lines = [
        "| benchmark | gpufabric [s] | peer | peer [s] | peer ÷ ours | peak [MiB] |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for entry in results:
        cells = [
            entry["name"],
            figure(entry["ours_s"]),
            entry["peer"] or "–",
            figure(entry["peer_s"]),
            figure(entry["ratio"]),
            figure(entry["peak_mib"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def design_table(path: Path) -> str:
    """Return the time that a design takes for each link, smallest cluster first."""
    rows = []
    for entry in results_of(path):
        match = DESIGN.fullmatch(entry["name"])
        if match:
            gpus, links = int(match["gpus"]), int(match["links"])
            rows.append((gpus, match["fabric"], links, 1e6 * entry["ours_s"] / links))
    if not rows:
        return NO_RESULTS
    lines = ["| fabric | GPUs | links | µs per link |", "|---|--:|--:|--:|"]
    for gpus, fabric, links, each_us in sorted(rows):
        lines.append(f"| {fabric} | {gpus:,} | {links:,} | {figure(each_us)} |")
    return "\n".join(lines)


def results_of(path: Path) -> list[dict[str, Any]]:
    """Return the entries of the benchmarks; none where they have not been run."""
    results: list[dict[str, Any]] = []
    if path.exists():
        results = json.loads(path.read_text(encoding="utf-8"))
    return results


def figure(value: float | None) -> str:
    """Return `value` with three significant digits, or a dash where it is unknown."""
    return "–" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
