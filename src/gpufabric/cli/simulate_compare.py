"""What ``gpufabric simulate compare`` does: fabrics and variants, iterations, a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from gpufabric.cli.fabrics import FabricSource, is_spec
from gpufabric.cli.loading import load_spec
from gpufabric.cli.outputs import check_output_folder
from gpufabric.cli.simulate_run import progress_bar
from gpufabric.cli.workers import check_workers, workers
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.report.compare_page import compare_json, print_compared, write_compared
from gpufabric.report.side_by_side import terminal
from gpufabric.sim.compare import Trial, run_trials
from gpufabric.sim.compare_variants import Variant, meanings, variants_of
from gpufabric.sim.ideal import ideal_in_fabric
from gpufabric.sim.packet_doubts import sentences
from gpufabric.sim.packet_prepared import PreparedRun, check_crossing, prepare
from gpufabric.sim.profile import PROFILES, Profile
from gpufabric.sim.run import Plant, plant_of
from gpufabric.sim.scenario import Scenario, check_scenario
from gpufabric.sim.sweep_journal import open_journal

__all__ = ["CompareOutput", "Comparison", "Repeats", "run_compare"]

JOURNAL = "compare.jsonl"
MOST_ITERATIONS = 100_000
DEADLINE = 20
"""An iteration ends after so many times what the endpoints allow at best."""


@dataclass(frozen=True)
class Repeats:
    """How often, and how apart."""

    iterations: int
    skew_us: float
    until_s: float | None
    jobs: int | None


@dataclass(frozen=True)
class CompareOutput:
    """Where results go."""

    folder: Path | None
    as_json: bool


@dataclass(frozen=True)
class Comparison:
    """Everything that the command line says."""

    fabrics: tuple[Path, ...]
    candidates: tuple[str, ...]
    catalog: Path | None
    scenario: Scenario
    given: frozenset[str]
    tuned: Profile
    variants: tuple[str, ...]
    repeats: Repeats
    output: CompareOutput


def run_compare(asked: Comparison) -> None:
    """Do what is asked.

    Raises
    ------
    InputError
        If options do not go together, or a value or file is wrong.
    """
    _check(asked)
    runs, trials = _trials(asked, _plants(asked))
    repeats = asked.repeats
    until_s = repeats.until_s or DEADLINE * max(_bound_s(run) for run in runs)
    total = len(trials) * repeats.iterations
    folder, times = asked.output.folder, (repeats.skew_us, until_s)
    place = nullcontext() if folder is None else open_journal(folder / JOURNAL)
    with (
        place as journal,
        workers("local", None, repeats.jobs),
        progress_bar(_("iterations"), total) as told,
    ):
        found = run_trials(trials, runs, repeats.iterations, times, told, journal)
    head = {
        **asked.scenario.to_json(),
        "profile": None,
        "iterations": repeats.iterations,
        "skew_us": repeats.skew_us,
        "until_s": until_s,
        "fabrics": [_fabric_json(run) for run in runs],
        "warnings": sentences(asked.tuned.config, asked.tuned.name),
    }
    paths = []
    if folder is not None:
        paths = [folder / JOURNAL, *write_compared(found, head, folder)]
    if asked.output.as_json:
        content = {**compare_json(found, head), "files": [str(path) for path in paths]}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print_compared(found, head, terminal())
    if paths:
        typer.echo("\n" + "\n".join(str(path) for path in paths))


def _check(asked: Comparison) -> None:
    faults = list(_faults(asked))
    checks: tuple[Callable[[], None], ...] = (
        lambda: check_scenario(asked.scenario),
        lambda: check_workers("local", None, asked.repeats.jobs),
        lambda: check_output_folder(asked.output.folder),
    )
    for check in checks:
        try:
            check()
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)


def _faults(asked: Comparison) -> Iterator[Fault]:
    yield from _variant_faults(asked)
    yield from _repeat_faults(asked.repeats)
    for option, pattern in (("--hot-share", "hotspot"), ("--fan-in", "incast")):
        if option in asked.given and asked.scenario.pattern != pattern:
            what = _("is for --pattern {pattern} alone.").format(pattern=pattern)
            yield Fault(option, what)
    specs = [path for path in asked.fabrics if is_spec(path)]
    if specs and len(asked.fabrics) > 1:
        yield Fault("FABRIC", _("a spec stands alone."), _("one spec, or fabric files"))
    if asked.candidates and not specs:
        yield Fault("--candidate", _("needs a spec."))


def _variant_faults(asked: Comparison) -> Iterator[Fault]:
    known = list(meanings())
    for name in asked.variants:
        if name not in known:
            what = _('there is no variant "{name}".').format(name=name[:64])
            yield Fault("--variant", what, ", ".join(known), nearest(name, known))
    if asked.tuned.config.credits is not None:
        what = _("{name} is a profile of InfiniBand.").format(name=asked.tuned.name[:64])
        yield Fault("--profile", what, _("a profile of RoCE"))


def _repeat_faults(repeats: Repeats) -> Iterator[Fault]:
    if not 1 <= repeats.iterations <= MOST_ITERATIONS:
        what = _("{n} iterations.").format(n=repeats.iterations)
        yield Fault("--iterations", what, _("1 to {most}").format(most=MOST_ITERATIONS))
    if not 0 <= repeats.skew_us < 1e6:
        what = _("the value is {value}.").format(value=repeats.skew_us)
        yield Fault("--skew", what, _("0 to below 1,000,000"))
    if repeats.until_s is not None and not 0 < repeats.until_s <= 1e3:
        what = _("the value is {value}.").format(value=repeats.until_s)
        yield Fault("--until", what, _("above 0, to 1,000"))


def _plants(asked: Comparison) -> list[Plant]:
    """Return the fabrics."""
    first = asked.fabrics[0]
    if not is_spec(first):
        sources = [FabricSource(path, None, asked.catalog) for path in asked.fabrics]
        return [plant_of(source.fabric(), source.catalog) for source in sources]
    requirement, _catalog = load_spec(first, asked.catalog)
    names = [
        requirement.candidate(name).name
        for name in asked.candidates or [one.name for one in requirement.candidates]
    ]
    source = FabricSource(first, None, asked.catalog)
    return [plant_of(source.fabric(name), source.catalog) for name in names]


def _trials(asked: Comparison, plants: list[Plant]) -> tuple[list[PreparedRun], list[Trial]]:
    """Return the runs and what is tried on each; one protocol alone runs the other one too."""
    protocols = {plant.fabric.protocol for plant in plants}
    wanted = asked.variants or tuple(meanings())
    runs: list[PreparedRun] = []
    trials: list[Trial] = []
    for plant in plants:
        for protocol in ("infiniband", "roce"):
            if plant.fabric.protocol != protocol and protocol in protocols:
                continue
            profile = PROFILES[f"{protocol}-default"]()
            run = prepare(plant, _scenario(asked, protocol, profile))
            check_crossing(run)
            variants = _variants(run, protocol, asked, wanted)
            trials += [Trial(plant.fabric.name, one, len(runs)) for one in variants]
            runs.append(run)
    if not trials:
        what = _("no fabric runs {names}.").format(names=", ".join(wanted))
        raise InputError(Fault("--variant", what))
    return runs, trials


def _scenario(asked: Comparison, protocol: str, profile: Profile) -> Scenario:
    """Return the scenario of a protocol: tables on InfiniBand, hashes on RoCE, if none is asked."""
    routing = asked.scenario.routing
    if not routing.mode:
        routing = replace(routing, mode="minhop" if protocol == "infiniband" else "ecmp")
    return replace(asked.scenario, routing=routing, profile=profile)


def _variants(
    run: PreparedRun, protocol: str, asked: Comparison, wanted: tuple[str, ...]
) -> tuple[Variant, ...]:
    if protocol == "roce":
        return variants_of(run, asked.tuned, wanted)
    if "infiniband" not in wanted:
        return ()
    return (Variant("infiniband", "infiniband", run.profile),)


def _bound_s(run: PreparedRun) -> float:
    """Return what the endpoints allow at best [s]."""
    routes = run.routes
    ideal = ideal_in_fabric(routes, run.plant.channels, run.routed.paths)
    return ideal.bound_s(run.routed.has_path)


def _fabric_json(run: PreparedRun) -> dict[str, str]:
    fabric = run.plant.fabric
    return {
        "name": fabric.name,
        "hash": fabric.content_hash,
        "protocol": run.profile.name.removesuffix("-default"),
        "routing": run.scenario.routing.mode,
    }
