"""What ``gpufabric simulate traffic`` does: one run, a replay, or a sweep, and where it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpufabric.cli.fabrics import FabricSource
from gpufabric.cli.outputs import check_output_folder
from gpufabric.cli.workers import check_workers, workers
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.kernels.jit import FOLDER, is_compiled, is_kept
from gpufabric.report.heat_map_png import write_heat_maps
from gpufabric.report.packet_names import PortNames
from gpufabric.report.packet_page import write_packet_page
from gpufabric.report.packet_trace import write_packet_trace
from gpufabric.report.side_by_side import terminal
from gpufabric.report.sweep_table import print_sweep, sweep_json, write_sweep
from gpufabric.report.traffic_files import FORMATS, TableFormat, write_traffic
from gpufabric.report.traffic_html import write_page
from gpufabric.report.traffic_table import print_traffic
from gpufabric.sim.flow_files import read_flows, read_links
from gpufabric.sim.heat_map import heat_maps
from gpufabric.sim.packet_recording import Recording
from gpufabric.sim.packet_run import run_with_engine
from gpufabric.sim.run import Plant, is_file, plant_of, replay
from gpufabric.sim.scenario import Scenario, check_scenario
from gpufabric.sim.sweep import (
    Axis,
    SweepRow,
    check_size,
    combinations,
    fabric_values,
    make_points,
    model_of,
    parse_axes,
    run_sweep,
    warnings_of,
)
from gpufabric.sim.sweep_journal import open_journal
from gpufabric.sim.traffic_result import TrafficResult

__all__ = ["Output", "Request", "Source", "Sweep", "is_count", "progress_bar", "run"]

JOURNAL = "sweep.jsonl"
MOST_BINS = 10_000
PAUSES = Recording(bins=0, with_latencies=False)
"""What a run notes that is not drawn: where its pauses come from."""

PATTERN_OPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "fan_in": ("--fan-in", "incast"),
        "load": ("--load", "uniform"),
        "n_flows": ("--flows", "uniform"),
        "hot_share": ("--hot-share", "hotspot"),
    }
)


@dataclass(frozen=True)
class Output:
    """Where results go: a folder, a form of tables, JSON on standard output, pictures."""

    folder: Path | None
    form: str
    as_json: bool
    plot: bool


@dataclass(frozen=True)
class Sweep:
    """What is varied, and where the runs take place."""

    asked: tuple[str, ...]
    n_seeds: int
    jobs: int | None
    backend: str | None
    scheduler: str | None

    @property
    def is_wanted(self) -> bool:
        """Whether there is more than one run."""
        return bool(self.asked) or self.n_seeds != 1


@dataclass(frozen=True)
class Source:
    """What a run takes place on: a fabric or spec, or the channels of a replay."""

    fabric: Path | None
    candidate: str | None
    catalog: Path | None
    links: Path | None

    def open(self) -> FabricSource:
        """Return the fabric, or what designs it."""
        assert self.fabric is not None
        return FabricSource(self.fabric, self.candidate, self.catalog)


@dataclass(frozen=True)
class Request:
    """Everything that the command line says.

    Parameters
    ----------
    source
        What the run takes place on.
    scenario
        The run; a sweep changes it.
    given
        Names of the options of single patterns that were given; ``--bytes``, ``--sizes`` if given.
    output, sweep
        Where results go, and what is varied.
    """

    source: Source
    scenario: Scenario
    given: frozenset[str]
    output: Output
    sweep: Sweep


def run(request: Request) -> None:
    """Do what is asked.

    Raises
    ------
    InputError
        If options do not go together, or a value or file is wrong.
    """
    _check(request)
    _say_that_it_compiles()
    if request.source.links is not None:
        _tell(_replayed(request), request.output, None)
    elif request.sweep.is_wanted:
        _sweep(request)
    else:
        source = request.source.open()
        plant = plant_of(source.fabric(), source.catalog)
        result = run_with_engine(plant, request.scenario, recording=PAUSES)
        _tell(result, request.output, plant)


def _say_that_it_compiles() -> None:
    """Tell a person why the first command is slow."""
    console = terminal(is_error=True)
    if is_compiled("flow") or not console.is_terminal:
        return
    console.print(_("Compiling the simulator, which takes some 20 seconds."), style="dim")
    if is_kept:
        console.print(_("It is kept in {folder}.").format(folder=FOLDER.parent), style="dim")
    else:
        what = _("{folder} cannot be written, so it cannot be kept: set NUMBA_CACHE_DIR.")
        console.print(what.format(folder=FOLDER.parent), style="dim")


# Checks -----------------------------------------------------------------------------------------


def _check(request: Request) -> None:
    faults = [*_input_faults(request), *_output_faults(request), *_option_faults(request)]
    checks: tuple[Callable[[], None], ...] = (
        lambda: check_scenario(request.scenario),
        lambda: _check_sweep(request.sweep, request.scenario.engine),
        lambda: check_output_folder(request.output.folder),
    )
    for check in checks:
        try:
            check()
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)


def _input_faults(request: Request) -> Iterator[Fault]:
    if request.source.fabric is None and request.source.links is None:
        yield Fault("FABRIC", _("is missing."), _("a fabric file, a spec, or --links"))
    if request.source.links is None:
        return
    if request.source.fabric is not None:
        yield Fault("--links", _("there is a fabric too."), _("one of the two"))
    if not is_file(request.scenario.pattern):
        yield Fault("--links", _("--pattern is no file of flows."), _("--pattern FILE"))
    routing = request.scenario.routing
    for option, is_given in (
        ("--candidate", request.source.candidate is not None),
        ("--routing", bool(routing.mode)),
        ("--cross-rail", bool(request.scenario.cross_rail)),
        ("--fail", bool(request.scenario.fail)),
        ("--gpus", request.scenario.n_gpus is not None),
        ("--sweep, --seeds", request.sweep.is_wanted),
        ("--plot", request.output.plot),
        ("--engine packet", request.scenario.engine == "packet"),
        ("--qps", routing.queue_pairs != 1),
        ("--hash-seeds", routing.hash_seeds != "switch"),
        ("--lmc", routing.lmc != 0),
        ("--no-gpudirect", not request.scenario.has_gpudirect),
        ("--reconverge", request.scenario.reconverge_s != 0),
    ):
        if is_given:
            yield Fault(option, _("needs a fabric, and --links takes its place."))


def is_count(bins: int) -> bool:
    """Tell whether there may be so many time bins."""
    return 0 <= bins <= MOST_BINS


def _output_faults(request: Request) -> Iterator[Fault]:
    output = request.output
    if output.form not in FORMATS:
        what = _('"{name}" is unknown.').format(name=output.form[:64])
        yield Fault("--format", what, ", ".join(FORMATS), nearest(output.form, FORMATS))
    if output.plot and output.folder is None:
        yield Fault("--plot", _("needs a folder."), "-o DIR")
    bins = request.scenario.n_bins
    if not is_count(bins):
        what = _("{n} bins.").format(n=bins)
        yield Fault("--bins", what, _("0 to {most}").format(most=MOST_BINS))


def _option_faults(request: Request) -> Iterator[Fault]:
    sweep = request.sweep
    swept = {words.partition("=")[0].strip() for words in sweep.asked}
    if "pattern" not in swept:
        for name in sorted(request.given & set(PATTERN_OPTIONS)):
            option, pattern = PATTERN_OPTIONS[name]
            if request.scenario.pattern != pattern:
                what = _("is for --pattern {pattern} alone.").format(pattern=pattern)
                yield Fault(option, what)
    yield from _engine_faults(request.scenario)
    yield from _unused_faults(request, swept)
    if sweep.is_wanted and request.output.plot:
        yield Fault("--plot", _("is for one run; a what-if writes sweep.html anyway."))
    if not sweep.is_wanted:
        for option, value in (
            ("--jobs", sweep.jobs),
            ("--backend", sweep.backend),
            ("--scheduler", sweep.scheduler),
        ):
            if value is not None:
                yield Fault(option, _("is for a what-if: --sweep or --seeds is missing."))


def _engine_faults(scenario: Scenario) -> Iterator[Fault]:
    """Note options of packets where there are flows."""
    if scenario.engine == "packet":
        return
    for option, is_given in (
        ("--profile", scenario.profile is not None),
        ("--fault", bool(scenario.faults)),
        ("--one-qp", scenario.routing.has_one_pair),
    ):
        if is_given:
            yield Fault(option, _("is for --engine packet."))


def _unused_faults(request: Request, swept: set[str]) -> Iterator[Fault]:
    """Note options that change nothing beside the others."""
    scenario = request.scenario
    if is_file(scenario.pattern) and "pattern" not in swept:
        for option in sorted(request.given & {"--bytes", "--sizes"}):
            yield Fault(option, _("the file of flows says the sizes."))
    has_failure = "fail" in swept or any("@" in words for words in scenario.fail)
    if scenario.reconverge_s and not has_failure and not request.source.links:
        yield Fault("--reconverge", _("no failure begins in the run."), "--fail WHAT@FROM")


def _check_sweep(sweep: Sweep, engine: str) -> None:
    axes = parse_axes(sweep.asked, engine)
    check_size(axes, sweep.n_seeds)
    if sweep.is_wanted:
        check_workers(sweep.backend or "local", sweep.scheduler, sweep.jobs)


# One run ----------------------------------------------------------------------------------------


def _replayed(request: Request) -> TrafficResult:
    assert request.source.links is not None
    links = read_links(request.source.links)
    flows = read_flows(Path(request.scenario.pattern), None, links)
    return replay(links, flows, request.scenario)


def _tell(result: TrafficResult, output: Output, plant: Plant | None) -> None:
    """Write the files asked for, then print."""
    paths: list[Path] = []
    if output.folder is not None:
        paths = write_traffic(result, output.folder, cast("TableFormat", output.form))
        if output.plot and plant is not None:
            paths += _plotted(result, plant, output.folder)
    if output.as_json:
        content = {**result.summary(), "files": [str(path) for path in paths]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print_traffic(result, terminal())
    _print_paths(paths)


def _plotted(result: TrafficResult, plant: Plant, folder: Path) -> list[Path]:
    maps = heat_maps(plant.fabric, result.utilisation())
    pattern, mode = result.head["traffic"]["pattern"], result.head["routing"]["mode"]
    title = f"{pattern}, {mode}, {plant.fabric.name}"
    paths = [
        write_heat_maps(maps, f"Utilisation: {title}", folder / "heatmap.png"),
        write_page(result, maps, folder / "report.html"),
    ]
    if result.packets is not None:
        packets, names = result.packets, _port_names(plant)
        asked = (packets.problem, packets.result, names)
        paths.append(write_packet_page(*asked, folder / "packets.html", title))
        paths.append(write_packet_trace(*asked, folder / "trace.json"))
    return paths


def _port_names(plant: Plant) -> PortNames:
    """Return what channels, switches and NICs are called."""
    channels = plant.channels
    names = [channels.name(number) for number in range(channels.n_link_channels)]
    ends = [name.split(" > ") for name in names]
    is_from_nic = (channels.tail < 0).tolist()
    nics = [end[0] if here else end[1] for end, here in zip(ends, is_from_nic, strict=True)]
    return PortNames(names, plant.fabric.switches.name.tolist(), nics)


def _print_paths(paths: Sequence[Path]) -> None:
    if paths:
        typer.echo("\n" + "\n".join(str(path) for path in paths))


# Sweeps -----------------------------------------------------------------------------------------


def _sweep(request: Request) -> None:
    sweep, folder = request.sweep, request.output.folder
    axes = parse_axes(sweep.asked, request.scenario.engine)
    plants, numbers = _plants(request, axes)
    fabrics = [(plant.digest, plant.fabric.protocol) for plant in plants]
    points = make_points(request.scenario, axes, sweep.n_seeds, numbers, fabrics)
    place = nullcontext() if folder is None else open_journal(folder / JOURNAL)
    with (
        place as journal,
        workers(sweep.backend or "local", sweep.scheduler, sweep.jobs),
        progress_bar(_("runs"), len(points)) as told,
    ):
        rows = run_sweep(points, plants, journal, told)
    head = {**_sweep_head(request, numbers, plants), "warnings": warnings_of(points)}
    _tell_sweep(request, axes, rows, head)


def _plants(
    request: Request, axes: Sequence[Axis]
) -> tuple[list[Plant], dict[tuple[str, ...], int]]:
    """Return the fabrics that a sweep needs, and the number of each by its values."""
    source = request.source.open()
    wanted = dict.fromkeys(fabric_values(values) for values in combinations(axes))
    numbers = {values: number for number, values in enumerate(wanted)}
    with progress_bar(_("fabrics"), len(wanted)) as told:
        fabrics = source.fabrics(list(wanted), told)
    return [plant_of(fabric, source.catalog) for fabric in fabrics], numbers


def _sweep_head(
    request: Request, numbers: Mapping[tuple[str, ...], int], plants: Sequence[Plant]
) -> dict[str, Any]:
    decisions = {decision: None for plant in plants for decision in plant.decisions}
    return {
        "fabrics": [
            {
                "name": plants[number].fabric.name,
                "hash": plants[number].fabric.content_hash,
                "candidate": values[0] or None,
                "oversubscription": values[1] or None,
            }
            for values, number in numbers.items()
        ],
        "model": dict(zip(("name", "version"), model_of(request.scenario.engine), strict=True)),
        "seeds": request.sweep.n_seeds,
        **request.scenario.to_json(),
        "decisions": [decision.to_json() for decision in decisions],
    }


def _tell_sweep(
    request: Request, axes: Sequence[Axis], rows: Sequence[SweepRow], head: Mapping[str, Any]
) -> None:
    output = request.output
    paths: list[Path] = []
    if output.folder is not None:
        form = cast("TableFormat", output.form)
        paths = [
            output.folder / JOURNAL,
            *write_sweep(axes, rows, head, output.folder, form),
        ]
    if output.as_json:
        content = {**sweep_json(axes, rows, head), "files": [str(path) for path in paths]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print_sweep(axes, rows, head["warnings"], terminal())
    _print_paths(paths)


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that says how many are done: a bar on standard error, for a person."""
    console = terminal(is_error=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
