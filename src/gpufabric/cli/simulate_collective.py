"""``gpufabric simulate collective``: what nccl-tests would print, before a cluster is there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from gpufabric.cli.fabrics import FabricSource
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.parse.nccl_tests import parse_nccl_tests
from gpufabric.report.side_by_side import terminal
from gpufabric.sim.run import Plant, plant_of
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.closed_form import MODEL, MODEL_VERSION, Estimate, estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.comparison import Comparison, compare
from gpufabric.workload.impairment import asks_of, estimate_impaired
from gpufabric.workload.on_fabric import Contention, cluster_of, estimate_on_fabric
from gpufabric.workload.operations import operation

__all__ = ["ENGINES", "CollectiveRequest", "run_collective", "sizes_of"]

ENGINES = ("closed", "flow", "packet")
MOST_SIZES = 64
MOST_BYTES = 2.0**50
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class CollectiveRequest:
    """What was asked on the command line."""

    fabric: Path
    candidate: str | None
    catalog: Path | None
    op: str
    sizes: str
    ranks: int | None
    forced: tuple[str | None, str | None]
    engine: str
    impair: str
    scenario: Scenario
    compare: Path | None
    as_json: bool


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
    _check(request)
    sizes = sizes_of(request.sizes)
    source = FabricSource(request.fabric, request.candidate, request.catalog)
    plant = plant_of(source.fabric(), source.catalog)
    cluster = cluster_of(plant, source.catalog, request.ranks)
    if request.compare is not None:
        _compare(request, cluster)
        return
    found, losses = _estimate(request, plant, cluster, sizes)
    if request.as_json:
        typer.echo(json.dumps(_content(request, plant, cluster, found, losses), indent=2))
        return
    _print(request, cluster, found, losses)


def _check(request: CollectiveRequest) -> None:
    faults = []
    if request.engine not in ENGINES:
        what = _('"{name}" is unknown.').format(name=request.engine[:64])
        faults.append(Fault("--engine", what, ", ".join(ENGINES)))
    if request.impair and request.engine != "closed":
        faults.append(Fault("--impair", _("is for --engine closed.")))
    if request.compare is not None and (request.impair or request.engine != "closed"):
        faults.append(Fault("--compare", _("is for --engine closed, without --impair.")))
    if faults:
        raise InputError(faults)
    operation(request.op)


def _estimate(
    request: CollectiveRequest, plant: Plant, cluster: Cluster, sizes: NDArray[np.float64]
) -> tuple[Estimate, dict[str, Contention]]:
    if request.impair:
        asks = asks_of(request.impair)
        return estimate_impaired(cluster, request.op, sizes, asks, *request.forced), {}
    if request.engine == "closed":
        return estimate(cluster, request.op, sizes, *request.forced), {}
    return estimate_on_fabric(plant, cluster, request.op, sizes, request.scenario, request.forced)


def _content(
    request: CollectiveRequest,
    plant: Plant,
    cluster: Cluster,
    found: Estimate,
    losses: dict[str, Contention],
) -> dict[str, Any]:
    low, high = (found.size_bytes / t / 1e3 * found.factor for t in (found.high_us, found.low_us))
    return {
        "model": {"name": MODEL, "version": MODEL_VERSION, "engine": request.engine},
        "fabric": {"name": plant.fabric.name, "hash": plant.fabric.content_hash},
        "operation": operation(request.op).name,
        "ranks": cluster.n_ranks,
        "gpu": cluster.gpu,
        "seed": request.scenario.seed,
        "network_slowdown": {name: loss.slowdown for name, loss in losses.items()},
        "extrapolates": list(found.extrapolates),
        "rows": [
            {
                "size_bytes": int(found.size_bytes[at]),
                "algorithm": found.choices[at].algorithm,
                "protocol": found.choices[at].protocol,
                "time_us": float(found.time_us[at]),
                "algbw_gbytes_per_s": float(found.algbw_gbytes_per_s[at]),
                "busbw_gbytes_per_s": float(found.busbw_gbytes_per_s[at]),
                "busbw_low_gbytes_per_s": float(low[at]),
                "busbw_high_gbytes_per_s": float(high[at]),
            }
            for at in range(len(found.size_bytes))
        ],
    }


def _print(
    request: CollectiveRequest, cluster: Cluster, found: Estimate, losses: dict[str, Contention]
) -> None:
    console = terminal()
    head = _("{operation} on {n} x {gpu}, {domains} hosts or NVLink domains; GB/s").format(
        operation=operation(request.op).name,
        n=cluster.n_ranks,
        gpu=cluster.gpu,
        domains=cluster.n_domains,
    )
    console.print(Text(head, "bold"))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    headings = (
        _("size [B]"),
        _("algorithm"),
        _("time [µs]"),
        _("algbw"),
        _("busbw"),
        _("80 % of runs"),
    )
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at == 1 else "right", no_wrap=True)
    low, high = (found.size_bytes / t / 1e3 * found.factor for t in (found.high_us, found.low_us))
    for at in range(len(found.size_bytes)):
        table.add_row(
            f"{int(found.size_bytes[at])}",
            str(found.choices[at]),
            f"{found.time_us[at]:.1f}",
            f"{found.algbw_gbytes_per_s[at]:.2f}",
            f"{found.busbw_gbytes_per_s[at]:.2f}",
            f"{low[at]:.2f} – {high[at]:.2f}",
        )
    console.print(table)
    for name, loss in losses.items():
        text = _("{algorithm}: the network takes {factor:.3f} times as long as at full NIC rate.")
        console.print(text.format(algorithm=name, factor=loss.slowdown))
    for reason in found.extrapolates:
        console.print(Text(_("Beyond what was measured: {reason}").format(reason=reason)))


def _compare(request: CollectiveRequest, cluster: Cluster) -> None:
    path = request.compare
    assert path is not None
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(Fault(str(path), str(error.strerror))) from error
    measured = parse_nccl_tests(text, str(path))
    found = compare(measured, cluster, None, *request.forced)
    if request.as_json:
        typer.echo(json.dumps(_compared(found), indent=2, ensure_ascii=False))
    else:
        _print_comparison(found)
    if found.causes:
        raise typer.Exit(1)


def _compared(found: Comparison) -> dict[str, Any]:
    return {
        "operation": found.operation,
        "summary": list(found.summary),
        "points": [vars(point) for point in found.points],
        "causes": [vars(cause) for cause in found.causes],
    }


def _print_comparison(found: Comparison) -> None:
    console = terminal()
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in (_("size [B]"), _("measured"), _("predicted"), _("80 % of runs"), _("share")):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in found.points:
        table.add_row(
            f"{point.size_bytes}",
            f"{point.measured_gbytes_per_s:.2f}",
            f"{point.predicted_gbytes_per_s:.2f}",
            f"{point.low_gbytes_per_s:.2f} – {point.high_gbytes_per_s:.2f}",
            f"{point.measured_gbytes_per_s / point.predicted_gbytes_per_s:.0%}",
        )
    console.print(Text(_("{operation}, busbw in GB/s").format(operation=found.operation), "bold"))
    console.print(table)
    for line in found.summary:
        console.print(Text(line))
