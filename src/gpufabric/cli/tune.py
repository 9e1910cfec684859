"""``gpufabric tune``: settings for a fabric and its traffic, found by simulation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from gpufabric.cli.fabrics import FabricSource
from gpufabric.cli.loading import CatalogFolder
from gpufabric.cli.simulate_run import progress_bar
from gpufabric.cli.workers import check_workers, workers
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import check_writable, write_text
from gpufabric.core.text import _
from gpufabric.report.side_by_side import terminal
from gpufabric.report.traffic_table import time_words
from gpufabric.sim.ecn_search import Score, SearchResult, search_ecn, with_setting
from gpufabric.sim.ideal import ideal_in_fabric
from gpufabric.sim.packet_doubts import sentences
from gpufabric.sim.packet_prepared import PreparedRun, check_crossing, prepare
from gpufabric.sim.profile import Profile
from gpufabric.sim.profile_file import find_profile, profile_text
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import plant_of
from gpufabric.sim.scenario import Scenario, parse_bytes
from gpufabric.sim.traffic import PATTERNS, PatternOptions

__all__ = ["app"]

DEADLINE = 20
MOST_SEEDS = 1000
_NAME = re.compile(r"[^\W\d_][\w-]{0,63}")

app = typer.Typer(no_args_is_help=True, help=_("Settings found by simulation."))


@app.callback()
def tune() -> None:
    """Settings found by simulation."""


_Fabric = Annotated[
    Path, typer.Argument(metavar="FABRIC", help=_("Fabric file (.json, .fab) or spec (.yaml)."))
]
_Candidate = Annotated[str | None, typer.Option(metavar="NAME", help=_("Candidate of the spec."))]
_Traffic = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE", help=", ".join(PATTERNS) + _(", or a file of flows (.csv, .parquet).")
    ),
]
_Bytes = Annotated[str, typer.Option("--bytes", metavar="SIZE", help=_("Bytes of one flow."))]
_FanIn = Annotated[int, typer.Option(help=_("incast: senders."))]
_HotShare = Annotated[
    float, typer.Option(help=_("hotspot: part of the GPUs that send to the hot host."))
]
_Gpus = Annotated[int | None, typer.Option(help=_("Only the first GPUs take part."))]
_Routing = Annotated[str, typer.Option(metavar="MODE", help=_("How paths are found."))]
_Profile = Annotated[
    str, typer.Option(metavar="NAME|FILE", help=_("Everything else, and where the search begins."))
]
_Seeds = Annotated[int, typer.Option(help=_("Runs of each setting."))]
_Tolerance = Annotated[
    float, typer.Option(metavar="SHARE", help=_("Full goodput is the highest, less this share."))
]
_Name = Annotated[str, typer.Option(metavar="NAME", help=_("Name of the profile that is made."))]
_Jobs = Annotated[int | None, typer.Option(help=_("Runs at once. Left out: one for each core."))]
_Seed = Annotated[int, typer.Option(help=_("Draws all that is random."))]
_Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help=_("Profile to write (.yaml)."))
]
_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]


@app.command()
def ecn(  # noqa: PLR0913 - one parameter for each option
    fabric: _Fabric,
    *,
    candidate: _Candidate = None,
    traffic: _Traffic = "hotspot",
    size: _Bytes = "4MB",
    fan_in: _FanIn = 16,
    hot_share: _HotShare = 0.5,
    gpus: _Gpus = None,
    routing: _Routing = "ecmp",
    profile: _Profile = "roce-default",
    seeds: _Seeds = 2,
    tolerance: _Tolerance = 0.01,
    name: _Name = "roce-tuned",
    seed: _Seed = 0,
    jobs: _Jobs = None,
    output: _Output = None,
    as_json: _AsJson = False,
    catalog: CatalogFolder = None,
) -> None:
    """Search Kmin, Kmax, Pmax and alpha for the shortest tail at full goodput; make a profile."""
    scenario = Scenario(
        pattern=traffic,
        options=PatternOptions(parse_bytes(size), fan_in=fan_in, hot_share=hot_share),
        routing=Routing(routing),
        n_gpus=gpus,
        seed=seed,
        n_bins=0,
        engine="packet",
        profile=find_profile(profile),
    )
    search = _Search(seeds, tolerance, jobs, name)
    _check(search, scenario, output)
    source = FabricSource(fabric, candidate, catalog)
    run = _prepared(source, scenario)
    found = _searched(run, search)
    tuned = with_setting(run.profile, found.best.setting, name)
    _tell(found, tuned, _assumed(run, found, search), output, as_json=as_json)


def _prepared(source: FabricSource, scenario: Scenario) -> PreparedRun:
    """Return the run; faults name the option as it is called here."""
    plant = plant_of(source.fabric(), source.catalog)
    try:
        run = prepare(plant, scenario)
        check_crossing(run)
    except InputError as error:
        faults = [
            replace(one, where=one.where.replace("--pattern", "--traffic")) for one in error.faults
        ]
        raise InputError(faults) from error
    return run


@dataclass(frozen=True)
class _Search:
    """How is searched."""

    seeds: int
    tolerance: float
    jobs: int | None
    name: str


def _check(search: _Search, scenario: Scenario, output: Path | None) -> None:
    faults = list(_faults(search, scenario, output))
    checks: list[Callable[[], None]] = [lambda: check_workers("local", None, search.jobs)]
    if output is not None:
        checks.append(lambda: check_writable(output))
    for check in checks:
        try:
            check()
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)


def _faults(search: _Search, scenario: Scenario, output: Path | None) -> Iterator[Fault]:
    if not 1 <= search.seeds <= MOST_SEEDS:
        what = _("{n} runs.").format(n=search.seeds)
        yield Fault("--seeds", what, _("1 to {most}").format(most=MOST_SEEDS))
    if not 0 <= search.tolerance < 1:
        what = _("the value is {value}.").format(value=search.tolerance)
        yield Fault("--tolerance", what, _("0 to below 1"))
    if not _NAME.fullmatch(search.name):
        what = _('"{text}" found.').format(text=search.name[:64])
        yield Fault("--name", what, _("letters, digits, - and _, beginning with a letter"))
    config = None if scenario.profile is None else scenario.profile.config
    if config is not None and not any(one.is_marked for one in config.classes):
        what = _("no class of this profile is marked by ECN.")
        yield Fault("--profile", what, _("a profile of RoCE"))
    if output is not None and output.suffix.lower() not in {".yaml", ".yml"}:
        yield Fault("-o", _("{path} is no profile.").format(path=output), _("FILE.yaml"))


def _searched(run: PreparedRun, search: _Search) -> SearchResult:
    ideal = ideal_in_fabric(run.routes, run.plant.channels, run.routed.paths)
    until_s = DEADLINE * ideal.bound_s(run.routed.has_path)
    with workers("local", None, search.jobs), progress_bar(_("settings"), 100) as told:
        return search_ecn(run, search.seeds, until_s, search.tolerance, lambda n, _all: told(n))


def _assumed(run: PreparedRun, found: SearchResult, search: _Search) -> tuple[str, ...]:
    """Return what the result rests on, in sentences."""
    fabric, options = run.plant.fabric, run.scenario.options
    return (
        _("Found by gpufabric tune ecn for {fabric} ({hash}).").format(
            fabric=fabric.name, hash=fabric.content_hash[:16]
        ),
        _(
            "Traffic: {pattern}, {size:g} bytes a flow, {n} queue pairs, routing {routing}, seeds "
            "{first} to {last}; other traffic may want other thresholds."
        ).format(
            pattern=run.scenario.pattern,
            size=options.size_bytes,
            n=len(run.pairs.flow),
            routing=run.scenario.routing.mode,
            first=run.scenario.seed,
            last=run.scenario.seed + search.seeds - 1,
        ),
        _(
            "Best of {n} settings: shortest 99.9th percentile of flow completion times without a "
            "drop, goodput within {share:.1%} of the highest. Thresholds hold for 100 Gb/s and "
            "grow with the port's speed."
        ).format(n=len(found.tried), share=found.tolerance),
        _("Everything else is {profile}; queue pairs begin at line rate.").format(
            profile=run.profile.name
        ),
        *_of_no_choice(found),
        *sentences(run.profile.config, run.profile.name),
    )


def _of_no_choice(found: SearchResult) -> Iterator[str]:
    """Say that times hardly tell settings apart, if those of the one before are as good."""
    if found.before not in found.equals:
        return
    yield _(
        "{n} of {all} settings, the one before too, have a tail within {share:.1%} of the "
        "shortest: among equals, fewest pauses and the highest Kmin decided. Longer messages or "
        "more senders to one host tell more."
    ).format(n=len(found.equals), all=len(found.tried), share=found.tolerance)


def _tell(
    found: SearchResult,
    tuned: Profile,
    assumed: tuple[str, ...],
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    paths = [] if output is None else [str(write_text(output, profile_text(tuned, assumed)))]
    if as_json:
        content: dict[str, Any] = {
            "best": found.best.to_json(),
            "before": found.before.to_json(),
            "assumed": list(assumed),
            "profile": tuned.to_json(),
            "tried": [one.to_json() for one in found.tried],
            "files": paths,
        }
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
        return
    console = terminal()
    console.print(_table(found))
    console.print()
    for sentence in assumed:
        console.print(Text(sentence))
    if paths:
        typer.echo("\n" + "\n".join(paths))


def _table(found: SearchResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in (
        "Kmin",
        "Kmax",
        "Pmax",
        "alpha",
        _("FCT p99.9"),
        _("goodput"),
        _("pauses"),
        _("drops"),
    ):
        table.add_column(heading, justify="right")
    for label, score in ((_("before"), found.before), (_("best"), found.best)):
        table.add_row(label, *_cells(score))
    return table


def _cells(score: Score) -> tuple[str, ...]:
    setting = score.setting
    return (
        f"{setting.kmin_bytes / 1e3:,.0f} kB",
        f"{setting.kmax_bytes / 1e3:,.0f} kB",
        f"{setting.pmax:g}",
        f"2^{setting.alpha_log2}",
        time_words(score.tail_us * 1e-6),
        f"{score.goodput_gbps:,.0f} Gb/s",
        f"{score.pauses:,.0f}",
        f"{score.drops:,.0f}",
    )
