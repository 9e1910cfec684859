"""Times of collectives and messages among any ranks of a fabric, at one of three levels of model.

A group is seen as a cluster of its own: its ranks in each host share the host's NICs with the
groups beside it. Flows or packets of all groups of one kind run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.sim.packet_run import run_with_engine
from gpufabric.sim.run import Plant
from gpufabric.sim.scenario import Scenario
from gpufabric.sim.traffic import Traffic
from gpufabric.sim.traffic_result import TrafficResult
from gpufabric.workload.closed_form import estimate
from gpufabric.workload.cluster import Cluster
from gpufabric.workload.collectives import schedule_of
from gpufabric.workload.nccl_tuner import choose
from gpufabric.workload.on_fabric import PACKET_PROBE_BYTES, PROBE_BYTES, network_traffic
from gpufabric.workload.schedule import Schedule

__all__ = ["GroupTimes", "Took"]

Ints = NDArray[np.int32]
Ranks = tuple[int, ...]
BARRIER_BYTES = 4.0
"""A barrier is an all-reduce of one number."""
LEVELS = ("closed", "flow", "packet")


@dataclass(frozen=True)
class Took:
    """Time of one operation, and the 80 % interval of what would be measured [us]."""

    time_us: float
    low_us: float
    high_us: float
    crosses_network: bool


@dataclass
class GroupTimes:
    """Times of operations on a fabric, each kind reckoned once.

    Parameters
    ----------
    plant, cluster
        The fabric, and the cluster that the hosts of all ranks make.
    level
        ``closed``, ``flow`` or ``packet``.
    scenario
        Routing, failures and seed of flows and packets.
    groups
        All groups of the job: those of one size run at once.
    run
        The engine.
    """

    plant: Plant
    cluster: Cluster
    level: str
    scenario: Scenario
    groups: Sequence[Ranks] = ()
    run: Callable[[Plant, Scenario, Traffic], TrafficResult] = run_with_engine
    extrapolates: dict[str, None] = field(default_factory=dict)
    uneven: set[Ranks] = field(default_factory=set)
    _kept: dict[tuple[Ranks, str, float], Took] = field(default_factory=dict)
    _slowdowns: dict[tuple[Ranks, str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            what = _('"{name}" is unknown.').format(name=self.level[:64])
            raise InputError(Fault("--engine", what, ", ".join(LEVELS)))

    def collective(self, ranks: Ranks, operation: str, input_bytes: float) -> Took:
        """Return how long a collective takes.

        Parameters
        ----------
        ranks
            Of the fabric's GPUs.
        operation, input_bytes
            As a trace tells: what one rank puts in [byte].

        Raises
        ------
        InputError
            If the fabric does not join the ranks.
        """
        key = (ranks, operation, input_bytes)
        if key not in self._kept:
            self._kept[key] = self._collective(ranks, operation, input_bytes)
        return self._kept[key]

    def message(self, source: int, target: int, n_bytes: float) -> Took:
        """Return how long a message from one rank to another takes."""
        pair = (source, target)
        key = (pair, "sendrecv", n_bytes)
        if key not in self._kept:
            self._kept[key] = self._collective(pair, "sendrecv", n_bytes)
        return self._kept[key]

    def _collective(self, ranks: Ranks, operation: str, input_bytes: float) -> Took:
        n = len(ranks)
        if n < 2:
            return Took(0.0, 0.0, 0.0, crosses_network=False)
        place, size = self.place(ranks), input_bytes
        if operation == "barrier":
            operation, size = "all_reduce", BARRIER_BYTES
        if operation in {"all_gather", "gather"}:
            size *= n
        size = max(size, 1.0)
        (choice,) = choose(place, operation, np.array([size]))
        is_far = place.n_domains > 1
        if is_far and self.level != "closed" and place.wire_gbytes_per_s is not None:
            slowdown = self._slowdown(ranks, place, operation, choice.algorithm)
            place = replace(place, wire_gbytes_per_s=place.wire_gbytes_per_s / slowdown)
        found = estimate(place, operation, np.array([size]), choice.algorithm, choice.protocol)
        self.extrapolates |= dict.fromkeys(found.extrapolates)
        return Took(
            float(found.time_us[0]), float(found.low_us[0]), float(found.high_us[0]), is_far
        )

    def place(self, ranks: Ranks) -> Cluster:
        """Return a group as a cluster: its ranks of each host, and their share of the NICs.

        A group with more ranks on one host than on another is reckoned with the fewest.
        """
        block = self.plant.endpoints.block[list(ranks)]
        count = np.bincount(block)
        count = count[count > 0]
        inside, all_of_host = int(count.min()), self.cluster.gpus_per_domain
        if (count != inside).any():
            self.uneven.add(ranks)
        domains = -(-len(ranks) // inside)
        wire = self.cluster.wire_gbytes_per_s
        if domains > 1 and wire is None:
            wire = float(self.plant.endpoints.gbps[list(ranks)].min() / 8 * all_of_host)
        return replace(
            self.cluster,
            gpus_per_domain=inside,
            n_domains=domains,
            wire_gbytes_per_s=wire * inside / all_of_host if wire and domains > 1 else None,
            n_nics=max(1, self.cluster.n_nics * inside // all_of_host),
        )

    def _slowdown(self, ranks: Ranks, place: Cluster, operation: str, algorithm: str) -> float:
        """How much longer the network takes than at full NIC rate, beside all like groups."""
        beside = self._beside(ranks)
        key = (beside[0], operation, algorithm)
        if key not in self._slowdowns:
            probe = PACKET_PROBE_BYTES if self.level == "packet" else PROBE_BYTES
            by_rail = self.scenario.cross_rail != "fabric"
            schedule = schedule_of(place, operation, algorithm, probe, by_rail=by_rail)
            self._slowdowns[key] = self._contended(schedule, beside)
        return self._slowdowns[key]

    def _beside(self, ranks: Ranks) -> tuple[Ranks, ...]:
        """A group and those of its size that share no rank with it or each other."""
        found, taken = [ranks], set(ranks)
        for other in self.groups:
            if len(other) == len(ranks) and not taken & set(other):
                found.append(other)
                taken |= set(other)
        return tuple(sorted(found))

    def _contended(self, schedule: Schedule, groups: tuple[Ranks, ...]) -> float:
        scenario = replace(self.scenario, n_bins=0, cross_rail=self.scenario.cross_rail or "pxn")
        tables = [np.array(sorted(ranks), np.int32) for ranks in groups]
        phases = [
            _renamed(network_traffic(schedule, self.plant.endpoints.block[table]), table)
            for table in tables
            if len(table) == schedule.n_ranks
        ]
        taken_s = bound_s = 0.0
        for parts in zip(*phases, strict=False):
            traffic = _joined(parts)
            result = self.run(self.plant, scenario, traffic)
            summary = result.summary(0)
            lost = traffic.n_flows - summary["flows"].get("finished", 0)
            if lost:
                what = _("{n} of {total} flows do not reach their end.").format(
                    n=lost, total=traffic.n_flows
                )
                raise InputError(Fault("--fail", what, _("a fabric that joins all ranks")))
            taken_s += float(summary["completion_s"])
            bound_s += result.bound_s
        return max(taken_s / bound_s, 1.0) if bound_s else 1.0


def _renamed(traffic: list[Traffic], table: Ints) -> list[Traffic]:
    """Flows between a group's ranks as flows between the fabric's GPUs."""
    return [replace(part, src=table[part.src], dst=table[part.dst]) for part in traffic]


def _joined(parts: Sequence[Traffic]) -> Traffic:
    return Traffic(
        parts[0].name,
        np.concatenate([part.src for part in parts]),
        np.concatenate([part.dst for part in parts]),
        np.concatenate([part.size_bytes for part in parts]),
        np.concatenate([part.start_s for part in parts]),
    )
