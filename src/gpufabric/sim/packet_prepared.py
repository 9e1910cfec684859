"""A fabric and a scenario made ready for the packet engine, for one run or for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.routing.channels import Channels
from gpufabric.sim.failures import Failure, down_links, find_failures, instants
from gpufabric.sim.flow_routes import FlowRoutes, Routed
from gpufabric.sim.named_faults import NamedFault
from gpufabric.sim.packet_config import PacketConfig
from gpufabric.sim.packet_fabric import (
    PER_PACKET,
    QueuePairs,
    after_of,
    packet_problem,
    queue_pairs_of,
    wires_of,
)
from gpufabric.sim.packet_faults import LinkDown, LinkFlap, PacketFault
from gpufabric.sim.packet_hops import HopTable
from gpufabric.sim.packet_messages import After
from gpufabric.sim.packet_override import numbered
from gpufabric.sim.packet_problem import PacketProblem, Wires
from gpufabric.sim.placed_faults import placed_faults, with_overrides
from gpufabric.sim.profile import Profile, default_profile
from gpufabric.sim.run import Plant, assumptions, complete, traffic_of
from gpufabric.sim.scenario import Scenario, check_scenario
from gpufabric.sim.traffic import Traffic
from gpufabric.topology.decision import Decision

__all__ = ["PreparedRun", "check_crossing", "link_faults", "prepare"]

Floats = NDArray[np.float64]

US_PER_S = 1e6
MOST_SEED = 2**62
MOST_PACKET_HOPS = 20_000_000_000
"""Half an hour to an hour of one core."""


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """Everything of a run but its settings.

    Parameters
    ----------
    plant
        The fabric.
    scenario
        The run, complete.
    profile
        The settings that it asks for.
    routes
        Finds the flows' paths.
    now
        The fabric as the run begins.
    routed
        The flows' paths as the run begins.
    pairs
        The queue pairs.
    wires
        The channels.
    failures
        What fails.
    faults
        What goes wrong beside.
    decisions
        What was assumed.
    hops, hops_from_us
        Next hops where switches choose for every packet, and since when the later tables hold.
    """

    plant: Plant
    scenario: Scenario
    profile: Profile
    routes: FlowRoutes
    now: Channels
    routed: Routed
    pairs: QueuePairs
    wires: Wires
    failures: tuple[Failure, ...]
    decisions: tuple[Decision, ...]
    hops: tuple[HopTable, ...] = ()
    hops_from_us: tuple[float, ...] = ()
    faults: tuple[PacketFault, ...] = ()

    def problem(
        self,
        profile: Profile | None = None,
        start_s: Floats | None = None,
        faults: Sequence[PacketFault] = (),
    ) -> PacketProblem:
        """Return what the engine is asked.

        Parameters
        ----------
        profile
            Settings that say what the catalogue decides; the scenario's where None.
        start_s
            float64[n_flows]: start of each flow [s]; the traffic's where None.
        faults
            What goes wrong beside the failures and faults of the scenario.
        """
        starts = self.routes.traffic.start_s if start_s is None else start_s
        problem = packet_problem(
            self.pairs, self.wires, starts, self.plant.switches, profile or self.profile
        )
        return replace(
            problem,
            faults=(*link_faults(self.failures), *self.faults, *faults),
            hops=self.hops,
            hops_from_us=self.hops_from_us,
            after=self._after(),
        )

    def _after(self) -> After | None:
        waits = self.routes.traffic.predecessors
        if waits is None:
            return None
        latest_s = np.full(self.routes.traffic.n_flows, self.host_s.max(initial=0.0))
        return after_of(self.pairs, waits, latest_s)

    def config(self, seed: int, profile: Profile | None = None) -> PacketConfig:
        """Return the settings with random numbers of their own for each seed."""
        chosen = profile or self.profile
        config = numbered(chosen.config, self.plant.channels, chosen.name)
        if self.hops:
            mode = PER_PACKET[self.scenario.routing.mode]
            config = replace(config, routing=replace(config.routing, mode=mode))
        return replace(config, seed=(config.seed + seed) % MOST_SEED or 1)

    @property
    def host_s(self) -> Floats:
        """float64[n_flows]: delays of both ends, and of NVLink for relayed flows [s]."""
        links = self.plant.inside.links
        end_ns = links.direct_ns if self.scenario.has_gpudirect else links.staged_ns
        relay_ns = np.where(self.routes.is_relayed, links.nvlink_ns, 0.0)
        host_s: Floats = (2 * end_ns + relay_ns) * 1e-9
        return host_s


def prepare(plant: Plant, scenario: Scenario, traffic: Traffic | None = None) -> PreparedRun:
    """Return a run made ready.

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
        If a value does not fit, or the engine cannot do what is asked.
    """
    check_scenario(scenario)
    profile = scenario.profile or default_profile(plant.fabric.protocol)
    scenario, choices = complete(plant, scenario)
    numbered(profile.config, plant.channels, profile.name)
    profile = with_overrides(profile, scenario.faults, plant.channels)
    scenario = replace(scenario, profile=profile)
    failures = find_failures(plant.fabric, scenario.fail, scenario.seed)
    if traffic is None:
        traffic = traffic_of(plant, scenario)
    _check_engine(scenario, traffic)
    routes = FlowRoutes(
        traffic,
        plant.endpoints,
        replace(plant.inside, has_gpudirect=scenario.has_gpudirect),
        scenario.routing.router(plant.channels, scenario.seed),
        scenario.cross_rail,
    )
    now = plant.channels.with_failures(links=down_links(failures, 0.0).tolist())
    wires = wires_of(plant.fabric, plant.channels)
    links = link_faults(failures)
    faults = placed_faults(scenario.faults, plant.channels, wires, profile.config, links)
    hops, hops_from_us = _hops(plant, scenario, failures, wires)
    pairs = queue_pairs_of(routes, now)
    prepared = PreparedRun(
        plant=plant,
        scenario=scenario,
        profile=profile,
        routes=routes,
        now=now,
        routed=routes.find(now),
        pairs=pairs.together() if scenario.routing.has_one_pair else pairs,
        wires=wires,
        failures=failures,
        decisions=(
            *choices,
            *assumptions(plant, scenario, ()),
            *_told(failures, faults, hops),
            *(_fault_told(fault) for fault in scenario.faults),
        ),
        hops=hops,
        hops_from_us=hops_from_us,
        faults=faults,
    )
    _check_waits(prepared)
    _check_size(prepared.problem(), profile)
    return prepared


def check_crossing(prepared: PreparedRun) -> None:
    """Raise where nothing crosses the network, so that there is nothing to compare or tune.

    Raises
    ------
    InputError
        If so.
    """
    if not prepared.pairs.flow.size:
        what = _("no flow crosses the network.")
        remedy = _("Take other flows, or more --gpus.")
        raise InputError(Fault("--pattern", what, remedy=remedy))


def _check_waits(prepared: PreparedRun) -> None:
    """Raise where a flow over the network would wait for one that no packet carries."""
    traffic = prepared.routes.traffic
    if traffic.predecessors is None:
        return
    carried = np.bincount(prepared.pairs.flow, minlength=traffic.n_flows) > 0
    waits = np.diff(traffic.predecessors.first) > 0
    missing = waits & ~carried
    missing[traffic.predecessors.flow[~carried[traffic.predecessors.flow]]] = True
    if missing.any():
        what = _("flow {flow} stays inside a host or has no path.").format(
            flow=int(np.argmax(missing))
        )
        remedy = _("Take the flow engine for flows that wait for such.")
        raise InputError(Fault(f"{traffic.name}: after", what, remedy=remedy))


def link_faults(failures: Sequence[Failure]) -> list[PacketFault]:
    """Return the links that go down in the run; those down at its begin have been routed around."""
    return [
        LinkDown(2 * int(link), failure.from_s * US_PER_S, failure.until_s * US_PER_S)
        for failure in failures
        if failure.from_s > 0
        for link in failure.links
    ]


def _hops(
    plant: Plant, scenario: Scenario, failures: Sequence[Failure], wires: Wires
) -> tuple[tuple[HopTable, ...], tuple[float, ...]]:
    """Return tables of next hops, one for each state of the fabric, and when the later ones hold.

    Only where switches choose for every packet; new tables come `reconverge_s` after a change.
    """
    if scenario.routing.mode not in PER_PACKET:
        return (), ()
    times = instants(failures)
    tables = []
    for time_s in times:
        links = down_links(failures, time_s)
        now = plant.channels.with_failures(links=links.tolist())
        dead = np.flatnonzero(now.capacity_gbps[: wires.n_channels] <= 0)
        tables.append(HopTable.from_wires(wires, dead.tolist()))
    return tuple(tables), tuple((time + scenario.reconverge_s) * US_PER_S for time in times[1:])


def _fault_told(fault: NamedFault) -> Decision:
    return Decision("fault", fault.words, _("Asked for with --fault."))


def _told(
    failures: Sequence[Failure], faults: Sequence[PacketFault], hops: Sequence[HopTable]
) -> list[Decision]:
    if hops:
        why = _(
            "Assumed: receivers take packets in order alone (go-back-N), so one that overtakes "
            "another is sent again; NICs that place data in any order do better."
        )
        return [Decision("order", _("go-back-N"), why, is_warning=True)]
    has_cut = any(isinstance(fault, LinkDown | LinkFlap) for fault in faults)
    if not has_cut and not any(failure.from_s > 0 for failure in failures):
        return []
    why = _(
        "Packets on the link are lost and sent again after time-outs, over the same path: in the "
        "packet engine a queue pair keeps its path."
    )
    return [Decision("failures", _("without new paths"), why, is_warning=True)]


def _check_engine(scenario: Scenario, traffic: Traffic) -> None:
    """Raise with all that the engine cannot do."""
    faults = []
    if scenario.cross_rail == "two-step":
        what = _("two-step is for the flow engine.")
        faults.append(Fault("--cross-rail", what, "fabric, pxn"))
    if traffic.cap_gbps is not None and np.isfinite(traffic.cap_gbps).any():
        what = _("largest rates are for the flow engine.")
        faults.append(Fault(f"{traffic.name}: cap_gbps", what))
    if traffic.weight is not None and (traffic.weight != 1.0).any():
        what = _("weights are for the flow engine: queue pairs of a NIC take turns.")
        faults.append(Fault(f"{traffic.name}: weight", what))
    if faults:
        raise InputError(faults)


def _check_size(problem: PacketProblem, profile: Profile) -> None:
    """Raise where a run would take hours."""
    mtu = profile.config.transport.mtu_bytes
    packets = np.maximum(1, -(-problem.size_bytes // mtu))
    hops = int((packets * np.diff(problem.paths.first)).sum())
    if 2 * hops > MOST_PACKET_HOPS:
        what = _("{n} packets with their ACKs cross channels.").format(n=f"{2 * hops:,}")
        expected = _("at most {most}").format(most=f"{MOST_PACKET_HOPS:,}")
        raise InputError(
            Fault("--engine packet", what, expected, _("Take fewer --bytes or --gpus."))
        )
