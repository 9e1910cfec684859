"""``gpufabric simulate collective``: what nccl-tests would print, before a cluster is there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from gpufabric.cli.compare_experts import compare_on_fabric, show_exchange
from gpufabric.cli.fabrics import FabricSource
from gpufabric.cli.loading import CatalogFolder
from gpufabric.cli.workload_options import (
    AsJson,
    FabricCandidate,
    Folder,
    Ranks,
    RoutingMode,
    TheFabric,
)
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.files import write_text
from gpufabric.core.text import _
from gpufabric.parse.expert_exchange_runs import ExchangeRuns, is_exchange, parse_exchange
from gpufabric.parse.nccl_tests import parse_nccl_tests
from gpufabric.parse.nccl_topology import parse_nccl_topology
from gpufabric.parse.nvidia_smi_topo import parse_nvidia_smi_topo
from gpufabric.report.collective_page import write_collective_page
from gpufabric.report.collective_table import (
    CollectiveReport,
    collective_json,
    print_collective,
    write_sizes,
)
from gpufabric.report.side_by_side import print_paths, terminal
from gpufabric.sim.routing_choice import Routing
from gpufabric.sim.run import Plant, plant_of
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.closed_form import Estimate, estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.comparison import compare, operation_of
from gpufabric.workload.crossing import blocks_of
from gpufabric.workload.forecast import slowed_cluster
from gpufabric.workload.host_findings import HostFinding, host_findings
from gpufabric.workload.host_shape import HostShape, shape_of_matrix, shape_of_topology
from gpufabric.workload.host_shape import cluster_of as cluster_of_shape
from gpufabric.workload.impairment import IMPAIRMENTS, asks_of, estimate_impaired
from gpufabric.workload.nccl_tuner import ALGORITHMS, PAIRWISE, PROTOCOLS, allowed
from gpufabric.workload.nccl_variables import NcclSettings, nccl_settings
from gpufabric.workload.on_fabric import Contention, cluster_of, estimate_on_fabric
from gpufabric.workload.operations import OPERATIONS, operation
from gpufabric.workload.sharp_on_fabric import cluster_with_sharp

__all__ = ["ENGINES", "CollectiveRequest", "collective", "run_collective", "sizes_of"]

ENGINES = ("closed", "flow", "packet")
OP = "all_reduce"
UNEVEN = frozenset({"alltoallv", "all_to_all_v"})
SIZES = "1M:8G"
MOST_SIZES = 64
MOST_BYTES = 2.0**50
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class CollectiveRequest:
    """What was asked on the command line."""

    source: FabricSource
    op: str | None
    sizes: str | None
    ranks: int | None
    forced: tuple[str | None, str | None]
    variables: dict[str, str]
    engine: str
    impair: str
    scenario: Scenario
    compare: Path | None
    run: str | None
    topology: Path | None
    folder: Path | None
    as_json: bool
    network_options: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The operation that is asked for; all-reduce where none is."""
        return operation(OP if self.op is None else self.op).name


def sizes_of(text: str, where: str = "--sizes") -> NDArray[np.float64]:
    """Return message sizes written as nccl-tests counts: K, M and G are powers of 1,024.

    Raises
    ------
    InputError
        If the text is none, or the sizes are too many.

    Examples
    --------
    >>> sizes_of("1K:8K").tolist(), sizes_of("4M,1G").tolist()
    ([1024.0, 2048.0, 4096.0, 8192.0], [4194304.0, 1073741824.0])
    """
    if ":" in text:
        parts = text.split(":")
        first, last = (_size(part, where) for part in (parts[0], parts[1]))
        factor = _size(parts[2], where) if len(parts) == 3 else 2.0
        if len(parts) > 3 or last < first or factor < 2:
            what = _('"{text}" is no range of sizes.').format(text=text[:64])
            raise InputError(Fault(where, what, _("such as 8:16G, 1M:4G:4 or 64M,1G")))
        n = int(np.floor(np.log(last / first) / np.log(factor) + 1e-9)) + 1
        sizes = np.array([first * factor**step for step in range(n)])
    else:
        sizes = np.array([_size(part, where) for part in text.split(",")])
    if len(sizes) > MOST_SIZES:
        what = _("{n} sizes.").format(n=len(sizes))
        raise InputError(Fault(where, what, _("1 to {most}").format(most=MOST_SIZES)))
    return sizes


def _size(text: str, where: str) -> float:
    bare = text.strip().lower().removesuffix("b").removesuffix("i")
    number = bare.rstrip("kmgt")
    unit = bare[len(number) :]
    try:
        value = float(number) * 2.0 ** _UNITS[unit]
    except (ValueError, KeyError):
        value = np.nan
    if not 1 <= value <= MOST_BYTES:
        what = _('"{text}" is no number of bytes.').format(text=text[:64])
        raise InputError(Fault(where, what, _("such as 8:16G, 1M:4G:4 or 64M,1G")))
    return float(value)


def run_collective(request: CollectiveRequest) -> None:
    """Print times of a collective, and where a measured one falls short; 1 if it does."""
    text = None if request.compare is None else _text(request.compare)
    if text is not None and is_exchange(text):
        _compare_experts(request, parse_exchange(text, str(request.compare)))
        return
    report = _reported(request)
    content, paths = collective_json(report), []
    if request.folder is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        paths = [
            write_text(request.folder / "collective.json", text + "\n"),
            write_sizes(report, request.folder / "collective.csv"),
            write_collective_page(report, request.folder / "collective.html"),
        ]
    if request.as_json:
        content = {**content, "files": [str(path) for path in paths]} if paths else content
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        print_collective(report, terminal())
        print_paths(paths, terminal())
    if report.has_findings:
        raise typer.Exit(1)


def _compare_experts(request: CollectiveRequest, measured: ExchangeRuns) -> None:
    """Hold exchanges with experts against the prediction; options of collectives are refused."""
    _check(replace(request, compare=None, run=None))
    given = {
        "--op": request.op,
        "--sizes": request.sizes,
        "--impair": request.impair,
        "--run": request.run,
        "--topology": request.topology,
        "--algo": request.forced[0],
        "--proto": request.forced[1],
        "--env": request.variables,
    }
    faults = [Fault(name, _("is for collectives.")) for name, value in given.items() if value]
    if faults:
        raise InputError(faults)
    plant = plant_of(request.source.fabric(), request.source.catalog)
    cluster = cluster_of(plant, request.source.catalog, request.ranks)
    fabric = (plant.fabric.name, plant.fabric.content_hash)
    by_flows = request.engine != "closed"
    found = compare_on_fabric(measured, plant, cluster, request.scenario, by_flows=by_flows)
    show_exchange(found, fabric, request.folder, as_json=request.as_json)


def _reported(request: CollectiveRequest) -> CollectiveReport:
    _check(request)
    sizes = sizes_of(SIZES if request.sizes is None else request.sizes)
    plant = plant_of(request.source.fabric(), request.source.catalog)
    cluster = cluster_of(plant, request.source.catalog, request.ranks)
    cluster, findings = _with_host(request, cluster)
    settings = nccl_settings(request.variables, cluster.n_nics)
    cluster = settings.applied_to(cluster)
    request = _with_settings(request, settings)
    _check(request)
    cluster = cluster_with_sharp(cluster, plant.fabric.protocol, request.forced[0])
    losses: dict[str, Contention] = {}
    if request.compare is not None:
        measured = parse_nccl_tests(_text(request.compare), str(request.compare), request.run)
        kind = request.kind if request.op is not None else operation_of(measured, cluster.n_ranks)
        blocked, _slowdown = slowed_cluster(cluster, blocks_of(plant.fabric), kind)
        comparison = compare(measured, blocked, kind, *request.forced)
        kind, found = comparison.operation, comparison.prediction
    else:
        comparison, kind = None, request.kind
        found, losses = _estimate(request, plant, cluster, sizes)
    return CollectiveReport(
        kind,
        cluster,
        (plant.fabric.name, plant.fabric.content_hash),
        request.engine,
        request.scenario.seed,
        found,
        losses,
        _others(request, plant, cluster, kind, found.size_bytes),
        comparison,
        findings,
        list(_notes(request, settings, kind, cluster)),
    )


def _notes(
    request: CollectiveRequest, settings: NcclSettings, kind: str, cluster: Cluster
) -> Iterator[str]:
    """What was asked for and does not change the times."""
    for name in settings.unused:
        yield _("{name}: its effect is not modelled.").format(name=name)
    if settings.has_sharp and not cluster.has_sharp:
        yield _("NCCL_COLLNET_ENABLE: changes nothing here, since RoCE switches do not add up.")
    if not settings.uses_pxn and (request.engine == "closed" or kind != "alltoall"):
        yield _("NCCL_PXN_DISABLE: changes all-to-all with --engine flow or packet only.")
    if (request.op or "").strip().lower().replace("-", "_").removesuffix("_perf") in UNEVEN:
        yield _("All-to-all-v is reckoned with equal parts.")


def _with_host(request: CollectiveRequest, cluster: Cluster) -> tuple[Cluster, list[HostFinding]]:
    """The cluster with the host of a file, and what is wrong with that host."""
    path = request.topology
    if path is None:
        return cluster, []
    shape = _shape(path)
    if len(shape.gpus) != cluster.gpus_per_domain:
        what = _("the file has {n} GPUs, but a host of the fabric {each}.").format(
            n=len(shape.gpus), each=cluster.gpus_per_domain
        )
        raise InputError(Fault(str(path), what))
    wire = cluster.wire_gbytes_per_s
    nic_gbps = None if wire is None else wire * 8 / cluster.n_nics
    own = cluster_of_shape(shape, cluster.n_domains, cluster.gpu, nic_gbps)
    if own.wire_gbytes_per_s is not None and wire is not None:
        own = replace(own, wire_gbytes_per_s=min(wire, own.wire_gbytes_per_s))
    return own, host_findings(shape)


def _shape(path: Path) -> HostShape:
    text = _text(path)
    if text.lstrip().startswith("<"):
        return shape_of_topology(parse_nccl_topology(text, str(path)))
    return shape_of_matrix(parse_nvidia_smi_topo(text, str(path)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        what = _("cannot be read: {reason}.").format(reason=error.strerror)
        raise InputError(Fault(str(path), what, _("a text file"))) from error


def _with_settings(request: CollectiveRequest, settings: NcclSettings) -> CollectiveRequest:
    """The request with what variables of the environment say; options go before these."""
    algorithm, protocol = request.forced
    parts = [part for part in (request.impair, *settings.impairments) if part]
    scenario = request.scenario
    if not settings.uses_pxn:
        scenario = replace(scenario, cross_rail="fabric")
    return replace(
        request,
        forced=(algorithm or settings.algorithm, protocol or settings.protocol),
        impair=",".join(parts),
        scenario=scenario,
    )


def _check(request: CollectiveRequest) -> None:
    faults = []
    if request.engine not in ENGINES:
        what = _('"{name}" is unknown.').format(name=request.engine[:64])
        faults.append(Fault("--engine", what, ", ".join(ENGINES)))
    if request.impair and request.engine != "closed":
        faults.append(Fault("--impair", _("is for --engine closed.")))
    elif request.impair and not asks_of(request.impair):
        faults.append(Fault("--impair", _("names nothing."), ", ".join(IMPAIRMENTS)))
    if request.engine == "closed":
        faults += [network_fault(name) for name in request.network_options]
    faults += _comparison_faults(request)
    if faults:
        raise InputError(faults)
    operation(OP if request.op is None else request.op)


def _comparison_faults(request: CollectiveRequest) -> Iterator[Fault]:
    """What does not go with a measured run, or needs one."""
    if request.compare is None:
        if request.run is not None:
            yield Fault("--run", _("is for --compare."))
        return
    if request.impair or request.engine != "closed":
        what = _("is for --engine closed, without --impair or variables that impair.")
        yield Fault("--compare", what)
    if request.sizes is not None:
        yield Fault("--sizes", _("are those of the measured run."), remedy=_("Leave it out."))


def network_fault(option: str) -> Fault:
    """Tell of an option that the closed form has no use for."""
    return Fault(option, _("is for --engine flow or packet."))


def _estimate(
    request: CollectiveRequest, plant: Plant, cluster: Cluster, sizes: NDArray[np.float64]
) -> tuple[Estimate, dict[str, Contention]]:
    if request.engine != "closed":
        scenario = request.scenario
        return estimate_on_fabric(plant, cluster, request.kind, sizes, scenario, request.forced)
    blocked, slowdown = slowed_cluster(cluster, blocks_of(plant.fabric), request.kind)
    if request.impair:
        asks = asks_of(request.impair)
        found = estimate_impaired(blocked, request.kind, sizes, asks, *request.forced)
    else:
        found = estimate(blocked, request.kind, sizes, *request.forced)
    names = {choice.algorithm for choice in found.choices} if slowdown > 1 else ()
    return found, {name: Contention(slowdown, ()) for name in sorted(names)}


def _others(
    request: CollectiveRequest,
    plant: Plant,
    cluster: Cluster,
    kind: str,
    sizes: NDArray[np.float64],
) -> dict[str, Estimate]:
    """The closed form for each algorithm and protocol, where a page is written."""
    if request.folder is None or request.impair or request.engine != "closed":
        return {}
    choices = [choice for choice in allowed(cluster, kind) if choice.algorithm != PAIRWISE]
    blocked, _slowdown = slowed_cluster(cluster, blocks_of(plant.fabric), kind)
    return {
        str(choice): estimate(blocked, kind, sizes, choice.algorithm, choice.protocol)
        for choice in choices
    }


def _variables(given: Sequence[str], *, from_shell: bool) -> dict[str, str]:
    """NCCL's variables of the shell, where asked for, and those given, which go before."""
    found = {}
    if from_shell:
        found = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    faults = []
    for text in given:
        name, sign, value = text.partition("=")
        if not sign:
            what = _('"{text}" is no variable.').format(text=text[:64])
            faults.append(Fault("--env", what, "NCCL_ALGO=Ring"))
        found[name.strip()] = value.strip()
    if faults:
        raise InputError(faults)
    return dict(sorted(found.items()))


_Op = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=", ".join(OPERATIONS) + _(". Left out: all_reduce, or what was measured."),
    ),
]
_MessageSizes = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES",
        help=_(
            "Message sizes as nccl-tests counts: 8:16G, 1M:4G:4 or 64M,1G. Left out: 1M:8G, or "
            "those measured."
        ),
    ),
]
_Algo = Annotated[
    str | None, typer.Option(help=_("As NCCL_ALGO: ") + ", ".join(ALGORITHMS), metavar="NAME")
]
_Proto = Annotated[
    str | None, typer.Option(help=_("As NCCL_PROTO: ") + ", ".join(PROTOCOLS), metavar="NAME")
]
_Level = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        help=_("closed: formula; flow, packet: with what the network does to the flows."),
    ),
]
_Impair = Annotated[
    str,
    typer.Option(metavar="LIST", help=_("What is wrong with hosts: gdr_off,degraded_nic=0.25 …")),
]
_Measured = Annotated[
    Path | None,
    typer.Option(
        "--compare", metavar="FILE", help=_("Output of nccl-tests or DeepEP to hold against it.")
    ),
]
_Run = Annotated[
    str | None,
    typer.Option("--run", metavar="NAME", help=_("Run of a CSV file that has several.")),
]
_Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        help=_("Variable of NCCL, such as NCCL_ALGO=Ring. May be given several times."),
    ),
]
_Shell = Annotated[
    bool, typer.Option("--shell-env", help=_("Also take NCCL's variables of the shell."))
]
_Topology = Annotated[
    Path | None,
    typer.Option(
        "--topology",
        metavar="FILE",
        help=_("The host as NCCL's topology XML or nvidia-smi topo -m show it; checked too."),
    ),
]
_Fail = Annotated[
    list[str] | None,
    typer.Option(metavar="WHAT", help=_("What fails, as simulate traffic takes it.")),
]
_Seed = Annotated[
    int | None,
    typer.Option(min=0, help=_("Draws all that is random; the same gives the same. Left out: 0.")),
]


def collective(  # noqa: PLR0913 - one parameter for each option
    fabric: TheFabric,
    *,
    candidate: FabricCandidate = None,
    op: _Op = None,
    sizes: _MessageSizes = None,
    ranks: Ranks = None,
    algo: _Algo = None,
    proto: _Proto = None,
    env: _Env = None,
    shell_env: _Shell = False,
    engine: _Level = "closed",
    impair: _Impair = "",
    topology: _Topology = None,
    compare_with: _Measured = None,
    run: _Run = None,
    routing: RoutingMode = "",
    fail: _Fail = None,
    seed: _Seed = None,
    as_json: AsJson = False,
    output: Folder = None,
    catalog: CatalogFolder = None,
) -> None:
    """Predict a collective's time for every size, as nccl-tests prints it, with intervals."""
    level = "packet" if engine == "packet" else "flow"
    scenario = replace(
        Scenario("permutation", n_bins=0, seed=seed or 0, engine=level, fail=tuple(fail or ())),
        routing=Routing(routing),
    )
    source = FabricSource(fabric, candidate, catalog)
    variables = _variables(env or (), from_shell=shell_env)
    asked = (source, op, sizes, ranks, (algo, proto), variables, engine, impair, scenario)
    files = (compare_with, run, topology, output)
    options = given_options({"--routing": routing, "--fail": fail, "--seed": seed})
    run_collective(CollectiveRequest(*asked, *files, as_json, options))


def given_options(options: Mapping[str, object]) -> tuple[str, ...]:
    """Return the options, by name, that were given.

    Examples
    --------
    >>> given_options({"--routing": "", "--fail": None, "--seed": 0})
    ('--seed',)
    """
    return tuple(name for name, value in options.items() if value not in (None, "", []))
