"""``simulate collective --compare`` where the file has exchanges with experts."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import typer

from gpufabric.core.files import write_text
from gpufabric.parse.expert_exchange_runs import ExchangeRuns
from gpufabric.report.expert_table import exchange_json, print_exchange
from gpufabric.report.side_by_side import print_paths, terminal
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.crossing import blocks_of
from gpufabric.workload.expert_comparison import (
    ExchangeComparison,
    compare_exchange,
    exchange_schedule,
)
from gpufabric.workload.forecast import slowed_cluster
from gpufabric.workload.on_fabric import check_scenario, contention

__all__ = ["compare_on_fabric", "show_exchange"]


def compare_on_fabric(
    measured: ExchangeRuns, plant: Plant, cluster: Cluster, scenario: Scenario, *, by_flows: bool
) -> ExchangeComparison:
    """Compare exchanges with what a fabric gives: by its uplinks, or by running the flows."""
    blocks = blocks_of(plant.fabric)

    @cache
    def slowdown(n_ranks: int) -> float:
        if by_flows:
            return contention(plant, exchange_schedule(cluster, n_ranks), scenario).slowdown
        hosts = replace(cluster, n_domains=n_ranks // cluster.gpus_per_domain)
        return slowed_cluster(hosts, blocks, "alltoall")[1]

    if by_flows:
        check_scenario(plant, scenario)
    return compare_exchange(measured, cluster, slowdown)


def show_exchange(
    found: ExchangeComparison, fabric: tuple[str, str], folder: Path | None, *, as_json: bool
) -> None:
    """Print and write measured exchanges beside what was predicted; 1 if most fall short."""
    content = exchange_json(found, dict(zip(("name", "hash"), fabric, strict=True)))
    paths = []
    if folder is not None:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        paths = [write_text(folder / "experts.json", text + "\n")]
    if as_json:
        content = {**content, "files": [str(path) for path in paths]} if paths else content
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        print_exchange(found, terminal())
        print_paths(paths, terminal())
    if found.is_short:
        raise typer.Exit(1)
