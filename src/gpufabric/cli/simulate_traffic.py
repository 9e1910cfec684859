"""``gpufabric simulate traffic`` and ``compare``: traffic once, or over many settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gpufabric.cli.loading import CatalogFolder
from gpufabric.cli.simulate_compare import CompareOutput, Comparison, Repeats, run_compare
from gpufabric.cli.simulate_run import Output, Request, Source, Sweep, is_count, run
from gpufabric.cli.workers import BACKENDS
from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.routing.modes import ROUTING_MODES
from gpufabric.sim.compare_variants import meanings
from gpufabric.sim.named_faults import KINDS, find_faults
from gpufabric.sim.profile import PROFILES
from gpufabric.sim.profile_file import find_profile, profile_text
from gpufabric.sim.routing_choice import SEED_SCOPES, Routing
from gpufabric.sim.scenario import CROSS_RAIL, SWEEP_KEYS, Scenario, parse_bytes
from gpufabric.sim.traffic import PATTERNS, SIZES, PatternOptions

__all__ = ["compare", "show_profile", "traffic"]

FLOW_BYTES, PACKET_BYTES = "1GB", "4MB"
HOT_SHARE = 0.5
"""Of ``simulate compare``: so many senders that mistakes show."""

_Fabric = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FABRIC]", help=_("Fabric file (.json, .fab) or spec (.yaml); none with --links.")
    ),
]
_Candidate = Annotated[
    str | None, typer.Option(metavar="NAME", help=_("Candidate of the spec to simulate."))
]
_Pattern = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE", help=", ".join(PATTERNS) + _(", or a file of flows (.csv, .parquet).")
    ),
]
_Links = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=_("Channels that the column path of the flows names.")),
]
_Bytes = Annotated[
    str | None,
    typer.Option(
        "--bytes",
        metavar="SIZE",
        help=_("Bytes of one flow: 1e9, 64KiB, 1GB. Left out: {flow}; packet: {packet}.").format(
            flow=FLOW_BYTES, packet=PACKET_BYTES
        ),
    ),
]
_Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=_("flow: rates, fast at any size; packet: every packet, with PFC, ECN, DCQCN."),
    ),
]
_Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help=_("packet: ")
        + ", ".join(PROFILES)
        + _(", or a file (.yaml). Left out: the one of the fabric's protocol."),
    ),
]
_Sizes = Annotated[
    str,
    typer.Option(metavar="KIND", help=", ".join(SIZES) + _(": drawn around --bytes.")),
]
_FanIn = Annotated[int | None, typer.Option(help=_("incast: senders. Left out: 16."))]
_Load = Annotated[
    float | None, typer.Option(help=_("uniform: share of what the NICs can send. Left out: 0.5."))
]
_Flows = Annotated[int | None, typer.Option(help=_("uniform: flows. Left out: 10,000."))]
_HotShare = Annotated[
    float | None,
    typer.Option(help=_("hotspot: part of the GPUs that send to the hot host. Left out: 0.25.")),
]
_Gpus = Annotated[
    int | None, typer.Option(help=_("Only the first GPUs take part. Left out: all of today."))
]
_Routing = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help=", ".join(ROUTING_MODES) + _(". Left out: adaptive on InfiniBand, ecmp on RoCE."),
    ),
]
_Qps = Annotated[
    int,
    typer.Option(help=_("Queue pairs of a flow on each NIC port; each takes a path of its own.")),
]
_OneQp = Annotated[
    bool,
    typer.Option(
        "--one-qp",
        help=_(
            "packet: flows between the same two NIC ports are messages on the same queue pairs, "
            "one behind the other."
        ),
    ),
]
_HashSeeds = Annotated[
    str,
    typer.Option(metavar="SCOPE", help=", ".join(SEED_SCOPES) + _(": what shares a hash seed.")),
]
_Lmc = Annotated[int, typer.Option(help=_("InfiniBand: 2 to its power LIDs for each port."))]
_CrossRail = Annotated[
    str,
    typer.Option(
        metavar="WAY",
        help=", ".join(CROSS_RAIL)
        + _(
            ": how flows change rails. Left out: pxn where no network joins the rails, else fabric."
        ),
    ),
]
_Fail = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help=_(
            "link:DEVICE[PORT], link:DEVICE>DEVICE, switch:NAME or random:SHARE; with @FROM or "
            "@FROM..UNTIL in seconds. May be given several times."
        ),
    ),
]
_FaultWords = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="WHAT|FILE",
        help=_("packet: ")
        + ", ".join(KINDS)
        + _(
            ", then port=DEVICE[PORT] NAME=VALUE …, such as start_us=50; or a file (.yaml). All "
            "names: gpufabric schema --of faults. May be given several times."
        ),
    ),
]
_Reconverge = Annotated[
    float, typer.Option(metavar="S", help=_("Seconds from a failure in the run to new paths."))
]
_NoGpuDirect = Annotated[
    bool, typer.Option("--no-gpudirect", help=_("NICs go through host memory, with its rate."))
]
_Seed = Annotated[int, typer.Option(help=_("Draws all that is random; the same gives the same."))]
_Until = Annotated[
    float | None, typer.Option(metavar="S", help=_("End of the run. Left out: all have ended."))
]
_AsJson = Annotated[bool, typer.Option("--json", help=_("Print JSON."))]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help=_("Folder for the results as files.")),
]
_Format = Annotated[str, typer.Option("--format", metavar="FORM", help="csv, parquet")]
_Plot = Annotated[
    bool,
    typer.Option(
        "--plot",
        help=_(
            "Also write heatmap.png and report.html (needs -o); packet: packets.html and "
            "trace.json too."
        ),
    ),
]
_Bins = Annotated[int, typer.Option(help=_("Time bins of the utilisation over time."))]
_Sweep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE,VALUE",
        help=_(
            "What-if: vary {keys}; packet: also profile, and each of its parameters by its dotted "
            "name, such as ecn.kmin_bytes. May be given several times."
        ).format(keys=", ".join(SWEEP_KEYS)),
    ),
]
_Seeds = Annotated[int, typer.Option(help=_("What-if: seeds of each combination, from --seed on."))]
_Jobs = Annotated[
    int | None, typer.Option(help=_("What-if: runs at once. Left out: one for each core."))
]
_Backend = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=_("What-if: ") + ", ".join(BACKENDS) + "."),
]
_Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help=_("What-if: the cluster's scheduler."))
]


def traffic(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    fabric: _Fabric = None,
    *,
    candidate: _Candidate = None,
    pattern: _Pattern = "permutation",
    links: _Links = None,
    engine: _Engine = "flow",
    profile: _Profile = None,
    size: _Bytes = None,
    sizes: _Sizes = "fixed",
    fan_in: _FanIn = None,
    load: _Load = None,
    flows: _Flows = None,
    hot_share: _HotShare = None,
    gpus: _Gpus = None,
    routing: _Routing = "",
    qps: _Qps = 1,
    one_qp: _OneQp = False,
    hash_seeds: _HashSeeds = "switch",
    lmc: _Lmc = 0,
    cross_rail: _CrossRail = "",
    fail: _Fail = None,
    fault: _FaultWords = None,
    reconverge: _Reconverge = 0.0,
    no_gpudirect: _NoGpuDirect = False,
    seed: _Seed = 0,
    until: _Until = None,
    as_json: _AsJson = False,
    output: _Output = None,
    table_format: _Format = "csv",
    plot: _Plot = False,
    bins: _Bins = 100,
    sweep: _Sweep = None,
    seeds: _Seeds = 1,
    jobs: _Jobs = None,
    backend: _Backend = None,
    scheduler: _Scheduler = None,
    catalog: CatalogFolder = None,
) -> None:
    """Send traffic through a fabric: completion times, bandwidth, busiest links.

    With --sweep or --seeds many settings are run, on all cores or a cluster of yours; with -o an
    interrupted sweep goes on where it was.
    """
    options = _given(fan_in=fan_in, load=load, n_flows=flows, hot_share=hot_share)
    scenario = Scenario(
        pattern,
        PatternOptions(size_bytes=_bytes(size, engine), sizes=sizes, **options),
        routing=Routing(routing, qps, hash_seeds, lmc, one_qp),  # type: ignore[arg-type]
        cross_rail=cross_rail,
        fail=tuple(fail or ()),
        n_gpus=gpus,
        seed=seed,
        until_s=np.inf if until is None else until,
        reconverge_s=reconverge,
        has_gpudirect=not no_gpudirect,
        n_bins=bins if output is not None or engine != "packet" or not is_count(bins) else 0,
        engine=engine,
        **_packet_settings(profile, fault),
    )
    source = Source(fabric, candidate, catalog, links)
    told = Output(output, table_format, as_json=as_json, plot=plot)
    varied = Sweep(tuple(sweep or ()), seeds, jobs, backend, scheduler)
    run(Request(source, scenario, _sizes_given(context) | options.keys(), told, varied))


_Fabrics = Annotated[
    list[Path],
    typer.Argument(
        metavar="FABRIC...", help=_("Fabric files, or one spec (.yaml) with its candidates.")
    ),
]
_Candidates = Annotated[
    list[str] | None,
    typer.Option(
        "--candidate",
        metavar="NAME",
        help=_("Candidate of the spec; may be given several times. Left out: all."),
    ),
]
_Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME",
        help=_("Only this variant; may be given several times. Left out: all of {names}.").format(
            names=", ".join(meanings())
        ),
    ),
]
_Tuned = Annotated[
    str,
    typer.Option(
        "--profile", metavar="NAME|FILE", help=_("RoCE as tuned, such as tune ecn writes it.")
    ),
]
_Iterations = Annotated[int, typer.Option(help=_("Iterations of each variant."))]
_Skew = Annotated[
    float,
    typer.Option(metavar="US", help=_("Hosts begin an iteration so much apart at most.")),
]
_Deadline = Annotated[
    float | None,
    typer.Option(
        "--until",
        metavar="S",
        help=_("End of an iteration that does not finish. Left out: 20 times its ideal."),
    ),
]
_CompareShare = Annotated[
    float | None,
    typer.Option(help=_("hotspot: part of the GPUs that send to the hot host. Left out: 0.5.")),
]
_CompareSize = Annotated[
    str, typer.Option("--bytes", metavar="SIZE", help=_("Bytes of one flow: 1e6, 64KiB, 4MB."))
]


def compare(  # noqa: PLR0913 - one parameter for each option
    fabrics: _Fabrics,
    *,
    candidate: _Candidates = None,
    variant: _Variants = None,
    profile: _Tuned = "roce-tuned",
    pattern: _Pattern = "hotspot",
    size: _CompareSize = "16MB",
    fan_in: _FanIn = None,
    hot_share: _CompareShare = None,
    gpus: _Gpus = None,
    routing: _Routing = "",
    qps: _Qps = 1,
    iterations: _Iterations = 20,
    skew: _Skew = 5.0,
    until: _Deadline = None,
    seed: _Seed = 0,
    jobs: _Jobs = None,
    as_json: _AsJson = False,
    output: _Output = None,
    catalog: CatalogFolder = None,
) -> None:
    """Compare InfiniBand and RoCE, tuned, default and misconfigured, on the same traffic."""
    given = _given(fan_in=fan_in, hot_share=hot_share)
    options = {"hot_share": HOT_SHARE, **given}
    scenario = Scenario(
        pattern=pattern,
        options=PatternOptions(size_bytes=parse_bytes(size), **options),
        routing=Routing(routing, qps),
        n_gpus=gpus,
        seed=seed,
        engine="packet",
        n_bins=0,
    )
    run_compare(
        Comparison(
            tuple(fabrics),
            tuple(candidate or ()),
            catalog,
            scenario,
            frozenset("--" + name.replace("_", "-") for name in given),
            find_profile(profile),
            tuple(variant or ()),
            Repeats(iterations, skew, until, jobs),
            CompareOutput(output, as_json=as_json),
        )
    )


_ProfileName = Annotated[str, typer.Argument(metavar="NAME|FILE", help=_("Profile to show."))]
_ProfileFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=_("File to write. Left out: the screen.")),
]


def show_profile(
    name: _ProfileName = "roce-default", *, output: _ProfileFile = None, as_json: _AsJson = False
) -> None:
    """Print a profile: every parameter with its meaning and source."""
    found = find_profile(name, "NAME")
    text = profile_text(found)
    if as_json:
        text = json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(write_text(output, text))


def _bytes(size: str | None, engine: str) -> float:
    """Return the bytes of a flow; a flow of packets is shorter where nothing is said."""
    return parse_bytes(size or (PACKET_BYTES if engine == "packet" else FLOW_BYTES))


def _packet_settings(profile: str | None, faults: list[str] | None) -> dict[str, Any]:
    """Return what the packet engine is told beside."""
    found = None if profile is None else find_profile(profile)
    return {"profile": found, "faults": find_faults(faults or ())}


def _sizes_given(context: typer.Context) -> frozenset[str]:
    """Return which of the options of sizes the command line has."""
    return frozenset(
        option
        for option, name in (("--bytes", "size"), ("--sizes", "sizes"))
        if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
    )


def _given(**options: float | None) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}
