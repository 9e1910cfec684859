"""A run: from a fabric and a scenario to flows with paths, through the engine, to a result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.routing.channels import Channels, channels_of
from gpufabric.routing.host_path import HostPaths, host_links
from gpufabric.routing.latency import hop_latency
from gpufabric.sim.channel_table import ChannelTable, table_of_fabric, table_of_links
from gpufabric.sim.endpoints import Endpoints, endpoints_of
from gpufabric.sim.engine_run import run_engine
from gpufabric.sim.failures import Failure, find_failures
from gpufabric.sim.flow import FINISHED
from gpufabric.sim.flow_build import build
from gpufabric.sim.flow_files import Links, read_flows
from gpufabric.sim.flow_problem import FabricEvents, FlowProblem, Paths
from gpufabric.sim.flow_routes import FlowRoutes
from gpufabric.sim.ideal import Ideal, ideal_in_fabric, ideal_on_links
from gpufabric.sim.row_arrays import row_sums
from gpufabric.sim.scenario import Scenario, check_scenario
from gpufabric.sim.switch_facts import SwitchFacts, switch_facts
from gpufabric.sim.traffic import PATTERNS, Traffic, make_traffic
from gpufabric.sim.traffic_result import MODEL, MODEL_VERSION, UNREACHABLE, TrafficResult
from gpufabric.topology.decision import Decision

__all__ = [
    "Plant",
    "assumptions",
    "complete",
    "head_of",
    "is_file",
    "plant_of",
    "release_s_of",
    "replay",
    "run_scenario",
    "traffic_of",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Plant:
    """A fabric made ready for runs.

    Parameters
    ----------
    fabric
        The fabric.
    inside
        Paths inside hosts; its channels are those of the healthy fabric and of the hosts.
    endpoints
        Its GPUs.
    decisions
        What was assumed about it.
    switches
        Delay and buffer of its switches.
    """

    fabric: Fabric
    inside: HostPaths
    endpoints: Endpoints
    decisions: tuple[Decision, ...]
    switches: SwitchFacts

    @property
    def channels(self) -> Channels:
        """Channels of the healthy fabric and of the hosts."""
        return self.inside.channels

    @cached_property
    def do_rails_meet(self) -> bool:
        """Whether every GPU has a network in common with the first GPU of its host."""
        leaf = self.channels.leaf_of[self.endpoints.ports]
        is_linked = (self.endpoints.ports >= 0) & (leaf >= 0)
        network = np.where(is_linked, self.channels.network_of[leaf], -1)
        firsts = network[self.endpoints.first[self.endpoints.block]]
        is_common = (network[:, :, None] == firsts[:, None, :]) & (network >= 0)[:, :, None]
        return bool(is_common.any(axis=(1, 2)).all())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the fabric and of what the catalogue says of it, in hex."""
        text = hashlib.sha256(self.fabric.content_hash.encode())
        for array in (self.channels.capacity_gbps, self.channels.latency_ns):
            text.update(np.ascontiguousarray(array).tobytes())
        text.update(np.ascontiguousarray(self.switches.buffer_bytes).tobytes())
        text.update(repr(replace(self.inside.links, decisions=())).encode())
        return text.hexdigest()


def plant_of(fabric: Fabric, catalog: Catalog) -> Plant:
    """Return a fabric made ready for runs; delays and hosts are as the catalogue knows them.

    Raises
    ------
    InputError
        If the fabric has no GPUs, or a device is not in the catalogue.
    """
    delays, assumed = hop_latency(fabric, catalog)
    bare = channels_of(fabric, hop_latency_ns=delays)
    hosts, nics = fabric.hosts, fabric.nics
    compute = np.flatnonzero((hosts.role == 0) & (hosts.n_gpus > 0))
    mine = nics.model[np.isin(nics.host, compute)]
    if not len(mine):
        raise InputError(
            Fault(fabric.name, _("no host has both GPUs and NICs."), _("a fabric with GPUs"))
        )
    host = catalog.host(fabric.models[int(hosts.model[compute[0]])])
    nic = catalog.nic(fabric.models[int(mine[0])])
    inside = HostPaths.attach(bare, host_links(host, nic))
    return Plant(
        fabric,
        inside,
        endpoints_of(inside),
        tuple(dict.fromkeys(assumed + inside.channels.decisions)),
        switch_facts(fabric, catalog, delays),
    )


def is_file(pattern: str) -> bool:
    """Tell whether a pattern is the name of a file of flows."""
    return pattern not in PATTERNS and Path(pattern).suffix.lower() in {".csv", ".parquet"}


def traffic_of(plant: Plant, scenario: Scenario) -> Traffic:
    """Return the flows of a scenario: those of its pattern, or those in its file.

    Raises
    ------
    InputError
        If there is no such pattern, an option does not fit, or the file is wrong.
    """
    endpoints = plant.endpoints
    if scenario.n_gpus is not None:
        endpoints = endpoints.first_of(scenario.n_gpus)
    if not is_file(scenario.pattern):
        return make_traffic(scenario.pattern, endpoints, scenario.options, scenario.seed)
    return read_flows(Path(scenario.pattern), endpoints, None, len(plant.channels.capacity_gbps))


def run_scenario(plant: Plant, scenario: Scenario, traffic: Traffic | None = None) -> TrafficResult:
    """Return how the traffic of a scenario goes on a fabric.

    Parameters
    ----------
    plant
        The fabric.
    scenario
        The run.
    traffic
        The flows; made from the scenario where None.

    Raises
    ------
    InputError
        If a value does not fit; all faults that can be found at once are told.
    """
    check_scenario(scenario)
    scenario, choices = complete(plant, scenario)
    failures = find_failures(plant.fabric, scenario.fail, scenario.seed)
    if traffic is None:
        traffic = traffic_of(plant, scenario)
    routes = FlowRoutes(
        traffic,
        plant.endpoints,
        replace(plant.inside, has_gpudirect=scenario.has_gpudirect),
        scenario.routing.router(plant.channels, scenario.seed),
        scenario.cross_rail,
    )
    built = build(routes, plant.channels, failures, scenario.reconverge_s)
    problem, delay_s = _without_delays(built.problem)
    return _measured(
        _Asked(
            scenario=scenario,
            traffic=traffic,
            names=plant.endpoints.names,
            problem=problem,
            delay_s=delay_s,
            events=built.events,
            table=table_of_fabric(built.now, plant.channels),
            ideal=ideal_in_fabric(routes, plant.channels, built.routed.paths),
            hops=built.routed.hops,
            has_path=built.has_path,
            head=head_of(scenario, plant.fabric, failures),
            decisions=(
                *choices,
                *assumptions(plant, scenario, failures),
                *built.routed.decisions,
                *plant.decisions,
            ),
        )
    )


def replay(links: Links, traffic: Traffic, scenario: Scenario) -> TrafficResult:
    """Return how flows go whose paths over given channels are known; there is no fabric.

    Raises
    ------
    InputError
        If a value does not fit.
    """
    scenario = replace(scenario, routing=replace(scenario.routing, mode="given"))
    routes = traffic.routes
    assert routes is not None
    delay_s = row_sums(routes.first, links.latency_s[routes.channel])
    paths = Paths(routes.first, routes.channel, np.ones(routes.channel.size), delay_s)
    table = table_of_links(links)
    problem = FlowProblem(
        capacity_gbps=links.gbps,
        paths=paths,
        size_bytes=traffic.size_bytes,
        path=np.arange(traffic.n_flows, dtype=np.int32),
        start_s=traffic.start_s,
        weight=traffic.weight,
        cap_gbps=traffic.cap_gbps,
        predecessors=traffic.predecessors,
    )
    assert traffic.labels is not None
    return _measured(
        _Asked(
            scenario=scenario,
            traffic=traffic,
            names=traffic.labels,
            problem=problem,
            delay_s=np.zeros(traffic.n_flows),
            events=FabricEvents(),
            table=table,
            ideal=ideal_on_links(traffic, paths, links.gbps),
            hops=np.maximum(0, np.diff(routes.first) - 1).astype(np.int32),
            has_path=np.ones(traffic.n_flows, np.bool_),
            head=head_of(scenario, None, ()),
            decisions=(),
        )
    )


def complete(plant: Plant, scenario: Scenario) -> tuple[Scenario, tuple[Decision, ...]]:
    """Return the scenario with what the fabric decides where nothing is asked for, and say so."""
    protocol = plant.fabric.protocol
    routing = scenario.routing.resolved(protocol)
    decisions = []
    if not scenario.routing.mode:
        why = _("Nothing was asked for. Assumed: adaptive on InfiniBand, ECMP on RoCE.")
        if scenario.engine == "packet" and routing.mode == "adaptive":
            routing = replace(routing, mode="minhop")
            why = _("Nothing was asked for. Assumed: OpenSM's own; packets stay on its path.")
        decisions.append(Decision("routing", routing.mode, why))
    cross_rail = scenario.cross_rail
    if not cross_rail:
        cross_rail = "fabric" if plant.do_rails_meet else "pxn"
        if cross_rail == "pxn":
            why = _("No network joins the rails, so flows go to the GPU of the rail first.")
            decisions.append(Decision("cross-rail", cross_rail, why))
    elif cross_rail == "fabric" and not plant.do_rails_meet:
        why = _(
            "No network joins the rails, so flows between GPUs of different numbers have no path; "
            "with pxn they have."
        )
        decisions.append(Decision("cross-rail", cross_rail, why))
    decisions += [*routing.unused(), *routing.strange(protocol)]
    return replace(scenario, routing=routing, cross_rail=cross_rail), tuple(decisions)


def assumptions(
    plant: Plant, scenario: Scenario, failures: tuple[Failure, ...]
) -> tuple[Decision, ...]:
    """Return what the model takes for granted in this run."""
    decisions = []
    n_lanes = plant.endpoints.ports.shape[1]
    if n_lanes > 1:
        decisions.append(
            Decision(
                "NIC ports",
                _("{n} for each GPU").format(n=n_lanes),
                _("Assumed: a flow is divided equally over them, queue pairs on each."),
            )
        )
    if any(failure.from_s > 0 for failure in failures):
        decisions.append(
            Decision(
                "reconvergence",
                f"{scenario.reconverge_s:g} s",
                _(
                    "Assumed: a flow with a broken path stands still until new paths are there, "
                    "packets on their way are not lost, and all flows are hashed anew."
                ),
            )
        )
    return tuple(decisions)


def head_of(
    scenario: Scenario, fabric: Fabric | None, failures: tuple[Failure, ...]
) -> dict[str, Any]:
    """Return what a run was made with, for JSON."""
    known: dict[str, str | None] = {"name": None, "hash": None}
    if fabric is not None:
        known = {"name": fabric.name, "hash": fabric.content_hash}
    return {
        "fabric": known,
        "model": {"name": MODEL, "version": MODEL_VERSION},
        **scenario.to_json(),
        "failures": [
            {
                "what": failure.words,
                "links": len(failure.links),
                "from_s": failure.from_s,
                "until_s": None if failure.until_s == np.inf else failure.until_s,
            }
            for failure in failures
        ],
    }


class _Asked(NamedTuple):
    """A run that is ready for the engine, and what its result is held against."""

    scenario: Scenario
    traffic: Traffic
    names: NDArray[np.str_]
    problem: FlowProblem
    delay_s: Floats  # to be added to the ends of flows
    events: FabricEvents
    table: ChannelTable
    ideal: Ideal
    hops: Ints
    has_path: NDArray[np.bool_]
    head: dict[str, Any]
    decisions: tuple[Decision, ...]


def _measured(asked: _Asked) -> TrafficResult:
    scenario, traffic, table = asked.scenario, asked.traffic, asked.table
    run = run_engine(asked.problem, asked.events, scenario.until_s, scenario.n_bins)
    mine = slice(0, traffic.n_flows)
    status = run.flows.status[mine].copy()
    status[(status != FINISHED) & ~asked.has_path] = UNREACHABLE
    finish_s = run.flows.finish_s[mine] + asked.delay_s[mine]
    channels = slice(0, len(table))
    end_s = run.flows.end_s if np.isfinite(run.flows.end_s) else 0.0
    return TrafficResult(
        traffic=traffic,
        names=asked.names,
        status=status,
        release_s=release_s_of(traffic, finish_s),
        finish_s=finish_s,
        ideal_s=asked.ideal.flow_s,
        left_bytes=run.flows.left_bytes[mine],
        hops=asked.hops,
        bound_s=asked.ideal.bound_s(status == FINISHED),
        end_s=end_s,
        channels=table,
        carried_bytes=run.carried_bytes[channels],
        series=run.tier_series(table.capacity_gbps, table.tier, len(table.tiers)),
        head=asked.head,
        decisions=asked.decisions,
    )


def _without_delays(problem: FlowProblem) -> tuple[FlowProblem, Floats]:
    """Return the problem for the engine, and what is to be added to the ends of flows [s].

    The engine lets a flow's first byte come late by the delay of its path, so flows that start
    together and differ in delay by nanoseconds become thousands of events. Where no flow waits for
    another, flows start at once and their last byte comes late instead: a flow holds its channels
    as long, and completes at the same time, when it is alone.
    """
    assert problem.paths.latency_s is not None
    assert problem.path is not None
    if problem.predecessors is not None:
        return problem, np.zeros(problem.n_flows)
    bare = replace(problem, paths=replace(problem.paths, latency_s=None))
    return bare, problem.paths.latency_s[problem.path]


def release_s_of(traffic: Traffic, finish_s: Floats) -> Floats:
    """Return when each flow may start: its own time, and the ends of those it waits for."""
    waits = traffic.predecessors
    if waits is None:
        return traffic.start_s
    release_s = traffic.start_s.copy()
    owner = np.repeat(np.arange(traffic.n_flows), np.diff(waits.first))
    ends_s = np.nan_to_num(finish_s)  # a flow that waits for one that has not ended has none
    np.maximum.at(release_s, owner, ends_s[waits.flow])
    return release_s
