"""A run of traffic on the packet engine: to queue pairs, through the engine, to a result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.text import _
from gpufabric.routing.paths import WalkedPaths
from gpufabric.sim.channel_table import table_of_fabric
from gpufabric.sim.flow import FINISHED, PENDING, RUNNING, STALLED, simulate
from gpufabric.sim.flow_problem import FlowProblem, Paths
from gpufabric.sim.ideal import ideal_in_fabric
from gpufabric.sim.packet import PacketResult, simulate_packets
from gpufabric.sim.packet_alone import alone_s
from gpufabric.sim.packet_doubts import doubts
from gpufabric.sim.packet_outcome import PacketOutcome
from gpufabric.sim.packet_prepared import PreparedRun, prepare
from gpufabric.sim.packet_problem import PacketProblem
from gpufabric.sim.packet_recording import Recording
from gpufabric.sim.packet_series import series_of_tiers
from gpufabric.sim.run import Plant, head_of, release_s_of, run_scenario
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import Traffic
from gpufabric.sim.traffic_result import FAILED, UNREACHABLE, TrafficResult
from gpufabric.topology.decision import Decision

__all__ = ["PACKET_MODEL", "run_packet_scenario", "run_with_engine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

PACKET_MODEL = ("packet", 1)
"""Name and version, raised with every change of results; see docs/models/packet.md."""

PS_PER_S = 1e12


def run_with_engine(
    plant: Plant,
    scenario: Scenario,
    traffic: Traffic | None = None,
    recording: Recording | None = None,
) -> TrafficResult:
    """Return how traffic goes, packet by packet or as flows, as the scenario says."""
    if scenario.engine == "packet":
        return run_packet_scenario(plant, scenario, traffic, recording)
    return run_scenario(plant, scenario, traffic)


def run_packet_scenario(
    plant: Plant,
    scenario: Scenario,
    traffic: Traffic | None = None,
    recording: Recording | None = None,
) -> TrafficResult:
    """Return how the traffic of a scenario goes on a fabric, packet by packet.

    Parameters
    ----------
    plant
        The fabric.
    scenario
        The run.
    traffic
        The flows; made from the scenario where None.
    recording
        What to note where the scenario asks for no bins; None: nothing.

    Raises
    ------
    InputError
        If a value does not fit, or the engine cannot do what is asked.
    """
    prepared = prepare(plant, scenario, traffic)
    scenario = prepared.scenario
    until_ps = None if scenario.until_s == np.inf else round(scenario.until_s * PS_PER_S)
    problem = prepared.problem()
    result = simulate_packets(
        problem,
        prepared.config(scenario.seed),
        until_ps=until_ps,
        recording=Recording(bins=4 * scenario.n_bins) if scenario.n_bins else recording,
    )
    told = (
        *prepared.decisions,
        *_decisions(prepared, result),
        *prepared.routed.decisions,
        *plant.decisions,
    )
    head = head_of(scenario, plant.fabric, prepared.failures)
    return _measured(prepared, problem, result, head, told)


def _decisions(asked: PreparedRun, result: PacketResult) -> tuple[Decision, ...]:
    """Say what the model takes for granted in this run."""
    decisions = [
        Decision(
            "profile",
            asked.profile.name,
            _("Every parameter with its source: gpufabric simulate profile {name}.").format(
                name=asked.profile.name
            ),
        ),
        Decision(
            "hosts",
            _("added to the ends of flows"),
            _(
                "Assumed: the delays of NIC, PCIe and NVLink come after the last byte; PCIe does "
                "not slow a NIC, and flows inside a host go as the flow model says."
            ),
        ),
    ]
    if "buffer.total_bytes" in asked.profile.from_catalog:
        decisions.extend(asked.plant.switches.decisions)
        unknown = int((asked.plant.switches.buffer_bytes == 0).sum())
        if unknown:
            total = asked.profile.config.buffer.total_bytes
            decisions.append(
                Decision(
                    "switch buffer",
                    f"{total / 1e6:g} MB",
                    _("Assumed for {n} switches: the catalogue knows no value.").format(n=unknown),
                    is_warning=True,
                )
            )
    decisions.extend(doubts(asked.profile.config))
    if asked.pairs.flow.size and (result.flows.delivered_ps < 0).any():
        decisions.extend(_stuck(asked, result))
    return tuple(decisions)


def _stuck(asked: PreparedRun, result: PacketResult) -> list[Decision]:
    """Warn of queue pairs that nothing will ever move again."""
    stuck = (result.flows.delivered_ps < 0) & ~result.flows.has_failed
    if asked.scenario.until_s < np.inf or not stuck.any():
        return []
    what = _("{n} queue pairs").format(n=int(stuck.sum()))
    if result.deadlock is not None:
        why = _("They wait behind buffers that wait for each other in a circle: a deadlock.")
    else:
        why = _("Nothing happens any more and they are not delivered: packets were lost.")
    return [Decision("stalled", what, why, is_warning=True)]


def _measured(
    asked: PreparedRun,
    problem: PacketProblem,
    result: PacketResult,
    head: dict[str, Any],
    decisions: tuple[Decision, ...],
) -> TrafficResult:
    traffic, plant, routed = asked.routes.traffic, asked.plant, asked.routed
    local = _local(asked)
    status, finish_s = _ends(asked, result)
    mine = np.flatnonzero(asked.routes.is_local)
    status[mine], finish_s[mine] = local.status, local.finish_s
    left_bytes = np.where(status == FINISHED, 0.0, traffic.size_bytes - _arrived(asked, result))
    left_bytes[mine] = local.left_bytes
    ideal = ideal_in_fabric(asked.routes, plant.channels, routed.paths)
    far = np.flatnonzero(~asked.routes.is_local & (status != UNREACHABLE))
    ideal.flow_s[far] = (
        alone_s(problem, asked.pairs, asked.profile, traffic.n_flows) + asked.host_s
    )[far]
    finished = status == FINISHED
    channels = table_of_fabric(asked.now, plant.channels)
    series = None if result.series is None else series_of_tiers(result.series, channels)
    return TrafficResult(
        traffic=traffic,
        names=plant.endpoints.names,
        status=status,
        release_s=release_s_of(traffic, finish_s),
        finish_s=finish_s,
        ideal_s=ideal.flow_s,
        left_bytes=left_bytes,
        hops=routed.hops,
        bound_s=ideal.bound_s(finished),
        end_s=_end_s(result, finished, finish_s),
        channels=channels,
        carried_bytes=_carried(asked, result, finished),
        series=series,
        head={**head, "model": dict(zip(("name", "version"), PACKET_MODEL, strict=True))},
        decisions=decisions,
        packets=PacketOutcome(result, asked.pairs, asked.profile, problem),
    )


def _ends(asked: PreparedRun, result: PacketResult) -> tuple[NDArray[np.int8], Floats]:
    """Return status and last byte of each flow: those of its last queue pair."""
    n_flows = asked.routes.traffic.n_flows
    flow, flows = asked.pairs.flow, result.flows
    last_ps = np.zeros(n_flows, np.int64)
    np.maximum.at(last_ps, flow, flows.delivered_ps)
    missing = np.bincount(flow, flows.delivered_ps < 0, minlength=n_flows) > 0
    failed = np.bincount(flow, flows.has_failed, minlength=n_flows) > 0
    is_cut = asked.scenario.until_s < np.inf
    began = asked.routes.traffic.start_s * PS_PER_S <= result.end_ps
    status = np.where(missing, np.where(began, RUNNING, PENDING) if is_cut else STALLED, FINISHED)
    status[failed & missing] = FAILED
    status[np.bincount(flow, minlength=n_flows) == 0] = UNREACHABLE
    finish_s = np.where(status == FINISHED, last_ps / PS_PER_S + asked.host_s, np.nan)
    return status.astype(np.int8), finish_s


def _arrived(asked: PreparedRun, result: PacketResult) -> Floats:
    """Return float64[n_flows]: bytes that senders know to have arrived [byte]."""
    mtu = asked.profile.config.transport.mtu_bytes
    size = asked.pairs.size_bytes
    known = np.minimum(result.flows.acked_packets * mtu, size)
    arrived = np.where(result.flows.delivered_ps >= 0, size, known)
    n_flows = asked.routes.traffic.n_flows
    return np.bincount(asked.pairs.flow, arrived, minlength=n_flows).astype(np.float64)


class _Local(NamedTuple):
    """How the flows inside hosts went."""

    status: NDArray[np.int8]
    finish_s: Floats
    left_bytes: Floats


def _local(asked: PreparedRun) -> _Local:
    """Run the flows that stay inside a host on the flow engine."""
    routes, plant = asked.routes, asked.plant
    mine = np.flatnonzero(routes.is_local)
    if not len(mine):
        return _Local(np.empty(0, np.int8), np.empty(0), np.empty(0))
    number = plant.endpoints.number
    src, dst = routes.traffic.src[mine], routes.traffic.dst[mine]
    walked = routes.inside.walk(_no_network, number[src], number[dst])
    paths = Paths(walked.first, walked.channel, walked.fraction)
    problem = FlowProblem(
        capacity_gbps=plant.channels.capacity_gbps,
        paths=paths,
        size_bytes=routes.traffic.size_bytes[mine],
        path=np.arange(len(mine), dtype=np.int32),
        start_s=routes.traffic.start_s[mine],
    )
    run = simulate(problem, until_s=asked.scenario.until_s)
    return _Local(run.status, run.finish_s + walked.latency_s, run.left_bytes)


def _no_network(src_port: Ints, _dst_port: Ints) -> WalkedPaths:
    assert not len(src_port)
    nothing = np.empty(0, np.int32)
    return WalkedPaths(np.zeros(1, np.int64), nothing, None, np.empty(0), np.empty(0, np.int8))


def _end_s(result: PacketResult, finished: NDArray[np.bool_], finish_s: Floats) -> float:
    """Return when the last byte or its ACK came; the engine's end if something never did."""
    if finished.all():
        acked_s = float(result.flows.acked_ps.max(initial=0)) / PS_PER_S
        return max(acked_s, float(finish_s.max(initial=0.0)))
    return max(result.end_ps / PS_PER_S, float(finish_s[finished].max(initial=0.0)))


def _carried(asked: PreparedRun, result: PacketResult, finished: NDArray[np.bool_]) -> Floats:
    """Return bytes on each channel: whole frames on links, payload that arrived inside hosts."""
    n_channels = len(asked.now.capacity_gbps)
    paths = asked.routed.paths
    assert paths.fraction is not None
    flow = np.repeat(np.arange(paths.n_paths), np.diff(paths.first))
    inside = np.flatnonzero(paths.channel >= asked.now.n_link_channels)
    arrived = np.where(finished, asked.routes.traffic.size_bytes, 0.0)[flow[inside]]
    carried = np.bincount(
        paths.channel[inside], arrived * paths.fraction[inside], minlength=n_channels
    ).astype(np.float64)
    carried[: len(result.ports.wire_bytes)] = result.ports.wire_bytes
    return carried
