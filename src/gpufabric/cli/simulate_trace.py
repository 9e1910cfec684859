"""``gpufabric simulate trace``: a job's traces played again on a fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gpufabric.cli.fabrics import FabricSource
from gpufabric.cli.loading import CatalogFolder
from gpufabric.cli.simulate_collective import given_options, network_fault
from gpufabric.cli.workload_options import RoutingMode
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.parse.trace_files import parse_traces
from gpufabric.report.side_by_side import terminal
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import plant_of
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.chakra_writer import GROUP_FILE
from gpufabric.workload.group_times import LEVELS
from gpufabric.workload.trace_replay import (
    MODEL,
    MODEL_VERSION,
    Replayed,
    ReplayOptions,
    replay_traces,
)

__all__ = ["trace", "trace_contents"]

MOST_BYTES = 8 * 2**30
_SUFFIXES = (".et", ".json", ".gz", ".pkl", ".pickle", ".pt", ".trace")
_SHOWN = 24

_Fabric = Annotated[
    Path,
    typer.Argument(metavar="FABRIC", help=_("Fabric file (.json, .fab) or spec (.yaml).")),
]
_Traces = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE…",
        help=_(
            "Folder or files, one a rank: Chakra (.et), PyTorch profile (.json), flight recorder. "
            "One file alone stands for all ranks."
        ),
    ),
]
_Candidate = Annotated[
    str | None, typer.Option(metavar="NAME", help=_("Candidate of the spec to simulate."))
]
_Engine = Annotated[str, typer.Option(metavar="NAME", help=", ".join(LEVELS))]
_Gpu = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=_(
            "GPU that the trace was taken on; computing is scaled to the fabric's. Left out: as "
            "the trace tells, else the fabric's."
        ),
    ),
]
_Ranks = Annotated[
    int | None, typer.Option(min=1, help=_("Ranks of the job, where the traces do not tell."))
]
_Fail = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help=_("Switch or link that is down; several times for more.")),
]
_Seed = Annotated[
    int | None, typer.Option(min=0, help=_("Seed of all that is drawn. Left out: 0."))
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=_("Write the result as JSON there too.")),
]
_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]


def trace(  # noqa: PLR0913 - one parameter for each option
    fabric: _Fabric,
    traces: _Traces,
    *,
    candidate: _Candidate = None,
    engine: _Engine = "closed",
    gpu: _Gpu = "",
    ranks: _Ranks = None,
    routing: RoutingMode = "",
    fail: _Fail = None,
    seed: _Seed = None,
    output: _Output = None,
    as_json: _AsJson = False,
    catalog: CatalogFolder = None,
) -> None:
    """Play a job's traces on a fabric: step time, and what of communication shows."""
    given = given_options({"--routing": routing, "--fail": fail, "--seed": seed})
    if engine == "closed" and given:
        raise InputError([network_fault(name) for name in given])
    contents = trace_contents(traces)
    source = FabricSource(fabric, candidate, catalog)
    scenario = Scenario(
        pattern="permutation",
        routing=Routing(routing),
        fail=tuple(fail or ()),
        seed=seed or 0,
        n_bins=0,
        engine="packet" if engine == "packet" else "flow",
    )
    plant = plant_of(source.fabric(), source.catalog)
    found = replay_traces(
        parse_traces(contents), plant, source.catalog, scenario, ReplayOptions(engine, gpu, ranks)
    )
    content = _content(found, plant.fabric.name, plant.fabric.content_hash, seed or 0)
    text = json.dumps(content, indent=2, ensure_ascii=False)
    if output is not None:
        write_text(output, text + "\n")
    if as_json:
        typer.echo(text)
    else:
        _print(found)


def trace_contents(paths: list[Path]) -> dict[str, bytes]:
    """Return the contents of trace files by name; of folders, those of all that may be traces.

    Raises
    ------
    InputError
        If a file cannot be read, a folder has none, or all are too large together.
    """
    files: list[Path] = []
    faults = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                part
                for part in path.iterdir()
                if part.is_file() and (part.suffix in _SUFFIXES or "rank" in part.name)
            )
            if not inside:
                faults.append(Fault(str(path), _("the folder has no trace."), ", ".join(_SUFFIXES)))
            files += inside
        else:
            files += _with_groups(path, paths)
    found, total = {}, 0
    for path in files:
        try:
            total += path.stat().st_size
            if total > MOST_BYTES:
                what = _("the traces are larger than {most} bytes.").format(most=MOST_BYTES)
                raise InputError(Fault(str(path), what))
            found[str(path)] = path.read_bytes()
        except OSError as error:
            faults.append(Fault(str(path), str(error.strerror), _("a trace file or folder")))
    if faults:
        raise InputError(faults)
    return found


def _with_groups(path: Path, paths: list[Path]) -> list[Path]:
    """A trace, and the file of groups that lies beside it."""
    beside = path.parent / GROUP_FILE
    if path.suffix == ".et" and beside not in paths and beside.is_file():
        return [path, beside]
    return [path]


def _content(found: Replayed, name: str, content_hash: str, seed: int) -> dict[str, Any]:
    return {
        "model": {"name": MODEL, "version": MODEL_VERSION, "engine": found.level},
        "fabric": {"name": name, "hash": content_hash},
        "format": found.job.traces[0].form,
        "ranks": found.job.n_ranks,
        "traces": len(found.job.traces),
        "gpu": found.cluster.gpu,
        "seed": seed,
        "step_us": found.step_us,
        "step_low_us": found.low_us,
        "step_high_us": found.high_us,
        "exposed_us": found.exposed_us,
        "by_rank": [vars(rank) for rank in found.ranks],
        "communication": [vars(kind) for kind in found.kinds],
        "notes": [{"what": text, "number": n} for text, n in found.notes.items()],
        "extrapolates": list(found.extrapolates),
    }


def _print(found: Replayed) -> None:
    console = terminal()
    head = _("{n} ranks of {gpu}, traces of {form}, engine {level}").format(
        n=found.job.n_ranks,
        gpu=found.cluster.gpu,
        form=found.job.traces[0].form,
        level=found.level,
    )
    console.print(Text(head, "bold"))
    console.print(
        _("step {step:.3f} ms ({low:.3f} – {high:.3f}), communication that shows {shown:.3f} ms")
        .format(
            step=found.step_us / 1e3,
            low=found.low_us / 1e3,
            high=found.high_us / 1e3,
            shown=found.exposed_us / 1e3,
        )
    )  # fmt: skip
    console.print(_kinds(found))
    if len(found.kinds) > _SHOWN:
        console.print(_("{n} more kinds with --json").format(n=len(found.kinds) - _SHOWN))
    for text, n in found.notes.items():
        console.print(Text(f"{text}: {n}" if n > 1 else text, "dim"))
    for reason in found.extrapolates:
        console.print(Text(_("Beyond what was measured: {reason}").format(reason=reason)))


def _kinds(found: Replayed) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for at, heading in enumerate(
        (
            _("operation"),
            _("ranks"),
            _("input [B]"),
            _("number"),
            _("µs each"),
            _("traced"),
            _("shows [ms]"),
            _("over"),
        )
    ):
        table.add_column(heading, justify="left" if at in {0, 7} else "right", no_wrap=True)
    for kind in found.kinds[:_SHOWN]:
        table.add_row(
            kind.operation,
            str(kind.n_ranks or "?"),
            f"{kind.input_bytes:.0f}",
            str(kind.number),
            f"{kind.each_us:.1f}",
            f"{kind.measured_us:.1f}" if kind.measured_us else "–",
            f"{kind.exposed_us / 1e3:.3f}",
            _("net") if kind.crosses_network else _("host"),
        )
    return table
