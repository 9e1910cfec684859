"""The plan of a spec: every candidate designed, placed, cabled, addressed, billed and priced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpufabric.catalog.collection import Catalog
from gpufabric.core.errors import Fault, InputError, nearest
from gpufabric.core.text import _
from gpufabric.cost.capital import Capital, capital
from gpufabric.model.fabric import Fabric
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_parts import Candidate
from gpufabric.planner.limits import most_hosts
from gpufabric.topology.addressing import Addressing, address
from gpufabric.topology.bom import Bill, bill
from gpufabric.topology.cabling import Cabling, lay_cables
from gpufabric.topology.decision import Decision
from gpufabric.topology.design import Design, design_candidate
from gpufabric.topology.racks import Placement, arrange
from gpufabric.workload.forecast import WorkloadForecast, forecast

__all__ = ["CandidatePlan", "LeftOut", "Plan", "plan_all", "plan_candidate"]


@dataclass(frozen=True)
class CandidatePlan:
    """One candidate, complete.

    Parameters
    ----------
    candidate
        What was asked for.
    design
        Switches, links and reasons; its fabric is not yet placed.
    placement
        Racks, and power of each model.
    cabling
        Cables, and the fabric as it is saved: see `fabric`.
    bill, capital
        What is bought, and what it costs.
    addressing
        Addresses and AS numbers, or LIDs and names.
    most_hosts
        Hosts that the same switches hold at most in the same kind of network and tiers.
    forecast
        What the network makes of the spec's workload.
    direct_forecast
        The same with GPUDirect RDMA; None where the spec has it anyhow.
    """

    candidate: Candidate
    design: Design
    placement: Placement
    cabling: Cabling
    bill: Bill
    capital: Capital
    addressing: Addressing
    most_hosts: int
    forecast: WorkloadForecast
    direct_forecast: WorkloadForecast | None = None

    @property
    def name(self) -> str:
        """Name of the candidate, as in the spec."""
        return self.candidate.name

    @property
    def fabric(self) -> Fabric:
        """The fabric with racks and cables: what is saved, exported and simulated."""
        return self.cabling.fabric

    @property
    def n_gpus(self) -> int:
        """Today's GPUs."""
        return self.capital.n_gpus

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The design's counts and claims, with the hash of the placed fabric."""
        return {**self.design.summary(), "fabric_hash": self.fabric.content_hash}

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Every choice, in the order in which it was made."""
        return (
            *self.design.decisions,
            *self.placement.decisions,
            *self.cabling.decisions,
            *self.bill.decisions,
            *self.addressing.decisions,
        )

    @property
    def warnings(self) -> tuple[Decision, ...]:
        """Choices that the reader should act on."""
        return tuple(decision for decision in self.decisions if decision.is_warning)


@dataclass(frozen=True)
class LeftOut:
    """An optional candidate that is not in the plan.

    Parameters
    ----------
    name
        Of the candidate.
    why
        The reason as a sentence.
    """

    name: str
    why: str


@dataclass(frozen=True)
class Plan:
    """All candidates of a spec.

    Parameters
    ----------
    requirement
        The spec.
    catalog
        The catalogue that was used.
    candidates
        In the order of the spec.
    left_out
        Optional candidates that are not among them, and why.
    """

    requirement: Requirement
    catalog: Catalog
    candidates: tuple[CandidatePlan, ...]
    left_out: tuple[LeftOut, ...] = ()

    def candidate(self, name: str) -> CandidatePlan:
        """Return the plan of the candidate called `name`.

        Raises
        ------
        InputError
            If there is none; the nearest name is given.
        """
        for plan in self.candidates:
            if plan.name == name:
                return plan
        names = [plan.name for plan in self.candidates]
        raise InputError(
            Fault(
                "candidate",
                _('there is no candidate "{name}".').format(name=name[:64]),
                _("one of {names}").format(names=", ".join(names)),
                nearest(name[:64], names),
            )
        )


def plan_candidate(
    requirement: Requirement, candidate: Candidate, catalog: Catalog
) -> CandidatePlan:
    """Return the complete plan of one candidate.

    Raises
    ------
    InputError
        If it cannot be built.
    """
    design = design_candidate(requirement, candidate, catalog)
    placement = arrange(
        design.fabric, design.host, design.switches, requirement.site, candidate, catalog
    )
    cabling = lay_cables(placement.fabric, design, requirement.site, catalog)
    goods = bill(design, cabling, requirement, catalog)
    hosts = design.fabric.hosts
    return CandidatePlan(
        candidate=candidate,
        design=design,
        placement=placement,
        cabling=cabling,
        bill=goods,
        capital=capital(goods, int(hosts.n_gpus[hosts.stage == 0].sum())),
        addressing=address(cabling.fabric),
        most_hosts=most_hosts(design),
        forecast=forecast(requirement, design.host, cabling.fabric),
        direct_forecast=_direct(requirement, design, cabling.fabric),
    )


def _direct(requirement: Requirement, design: Design, fabric: Fabric) -> WorkloadForecast | None:
    """The forecast as if GPUDirect RDMA were on, where the spec has it off."""
    work = requirement.workload
    if work.gpudirect is not False:
        return None
    mended = work.model_copy(update={"gpudirect": True})
    return forecast(requirement.model_copy(update={"workload": mended}), design.host, fabric)


def plan_all(requirement: Requirement, catalog: Catalog) -> Plan:
    """Return the plan of every candidate of a spec.

    Raises
    ------
    InputError
        If any candidate that is not optional cannot be built, or none can: with the faults of all
        that cannot. What is not optional is built whole or not at all, so that nobody compares
        fewer candidates than were asked for.
    """
    plans: list[CandidatePlan] = []
    faults: list[Fault] = []
    left_out: list[LeftOut] = []
    failed: list[Fault] = []
    for candidate in requirement.candidates:
        try:
            plans.append(plan_candidate(requirement, candidate, catalog))
        except InputError as error:
            found = list(_of(candidate, error))
            (failed if candidate.optional else faults).extend(found)
            if candidate.optional:
                left_out.append(LeftOut(candidate.name, found[0].what))
    if faults or not plans:
        raise InputError(faults or failed)
    return Plan(requirement, catalog, tuple(plans), tuple(left_out))


def _of(candidate: Candidate, error: InputError) -> Iterator[Fault]:
    """Yield the faults of a candidate, each with its name where it does not say so itself."""
    for fault in error.faults:
        if "candidate" in fault.where:
            yield fault
        else:
            where = _('candidate "{name}"').format(name=candidate.name)
            yield Fault(
                f"{where}: {fault.where}" if fault.where else where,
                fault.what,
                fault.expected,
                fault.remedy,
            )
