"""The file ``plan.json``: what it holds, its JSON Schema, and where every number comes from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from gpufabric import __version__
from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.groups import Sourced
from gpufabric.core.errors import InputError
from gpufabric.cost.capital import CABLES, Amount, Capital, Share, range_note
from gpufabric.model.requirement import Requirement
from gpufabric.model.spec_parts import Site
from gpufabric.planner.advice import Advice
from gpufabric.planner.advice_file import AdviceFacts, advice_facts
from gpufabric.planner.comparison import ComparisonRow, comparison
from gpufabric.planner.plan import CandidatePlan, Plan
from gpufabric.topology.bill import SECTIONS, BillLine, BillPower
from gpufabric.topology.racks import rack_stages
from gpufabric.workload.forecast import WorkloadForecast, told_digits

__all__ = ["FORMAT_VERSION", "PlanFile", "plan_json", "plan_schema", "spec_hash"]

FORMAT_VERSION: Literal[1] = 1


class DesignFacts(BaseModel):
    """Counts and claims of a design, as ``gpufabric design --json`` prints them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    candidate: str
    fabric: Literal["infiniband", "roce"]
    topology: str
    fabric_hash: str
    gpus: int
    hosts: int
    leaf: int
    spine: int
    core: int
    links: dict[str, int]
    tiers: int
    planes: int
    oversubscription: float
    oversubscription_by_tier: dict[str, float]
    hops: int
    injection_gbps: float
    bisection_gbps: float
    growth: dict[str, Any] | None
    decisions: list[dict[str, Any]]


@dataclass(frozen=True)
class RackFacts:
    """One rack: where it stands, and the largest power of what stands in it at last.

    Its `stage` is 0 where it holds something today, and 1 where it stands only after growth.
    """

    name: str
    kind: Literal["compute", "network"]
    row: int
    position: int
    power_w: float
    stage: Literal[0, 1]


@dataclass(frozen=True)
class CableFacts:
    """Cables of one part: pieces today and later, and metres to order today."""

    name: str
    title: str
    category: str
    quantity: int
    later: int
    total_m: float


@dataclass(frozen=True)
class CapitalFacts:
    """What a candidate costs: by section of the bill, by kind, per GPU, spares, growth."""

    sections: dict[str, Amount]
    compute: dict[str, Amount]
    network_per_gpu: Amount
    fabric_per_gpu: Amount
    all_networks: Amount
    total: Amount
    spares: Amount
    later: Amount
    network_share: Share | None
    note: str


@dataclass(frozen=True)
class CandidateFacts:
    """One candidate, complete but for its single links, which are in ``fabric.json``."""

    name: str
    design: DesignFacts
    racks: list[RackFacts]
    cables: list[CableFacts]
    bill: list[BillLine]
    power: dict[str, BillPower]
    capital: CapitalFacts
    addressing: dict[str, Any]
    workload: WorkloadForecast
    most_hosts: int
    most_gpus: int
    decisions: list[dict[str, Any]]
    warnings: list[dict[str, Any]]


@dataclass(frozen=True)
class SourceFacts:
    """Where one group of a device's numbers comes from."""

    device: str
    group: str
    source: str
    date: str
    kind: str
    primary: str | None
    note: str | None


@dataclass(frozen=True)
class AssumptionFacts:
    """A value that the spec leaves open and this project assumes."""

    field: str
    value: Any
    why: str


@dataclass(frozen=True)
class PlanFile:
    """The plan of a spec: every candidate side by side."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    tool_version: str
    spec_hash: str
    currency: str
    currency_rate: float | None
    requirement: Requirement
    candidates: list[CandidateFacts]
    comparison: list[ComparisonRow]
    sources: list[SourceFacts]
    assumptions: list[AssumptionFacts]
    advice: AdviceFacts | None = None
    format: Literal["gpufabric-plan"] = "gpufabric-plan"
    format_version: Literal[1] = FORMAT_VERSION


@cache
def _adapter() -> TypeAdapter[PlanFile]:
    return TypeAdapter(PlanFile)


def plan_json(plan: Plan, advice: Advice | None = None) -> dict[str, Any]:
    """Return the content of ``plan.json``; the same plan gives the same content.

    Parameters
    ----------
    plan
        The plan.
    advice
        What to build of it; left out where None.
    """
    requirement = plan.requirement
    content = PlanFile(
        tool_version=__version__,
        spec_hash=spec_hash(requirement),
        currency=requirement.site.currency,
        currency_rate=_rate(requirement.site),
        requirement=requirement,
        candidates=[_candidate(candidate) for candidate in plan.candidates],
        comparison=list(comparison(plan.candidates)),
        sources=list(_sources(plan)),
        assumptions=list(_assumptions(requirement.site)),
        advice=None if advice is None else advice_facts(advice),
    )
    dumped: dict[str, Any] = _adapter().dump_python(content, mode="json")
    for candidate in dumped["candidates"]:
        candidate["workload"] = told_digits(candidate["workload"])
    dumped["advice"] = told_digits(dumped["advice"])
    return {key: dumped[key] for key in ("format", "format_version", *dumped)}


def spec_hash(requirement: Requirement) -> str:
    """Return the SHA-256 of a spec with every default filled in."""
    return hashlib.sha256(requirement.model_dump_json().encode()).hexdigest()


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of ``plan.json``."""
    schema = _adapter().json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:gpufabric:plan:{FORMAT_VERSION}",
        **schema,
        "title": "gpufabric plan",
    }


def _rate(site: Site) -> float | None:
    """Return the units of the currency for one US dollar; None where unknown."""
    if site.currency_rate is not None:
        return site.currency_rate
    return 1.0 if site.currency == "USD" else None


def _candidate(plan: CandidatePlan) -> CandidateFacts:
    racks = plan.fabric.racks
    return CandidateFacts(
        name=plan.name,
        design=DesignFacts.model_validate(plan.summary),
        racks=[
            RackFacts(
                name, "network" if kind else "compute", row, position, round(power_w, 1), stage
            )
            for name, kind, row, position, power_w, stage in zip(
                racks.name.tolist(),
                racks.kind.tolist(),
                racks["row"].tolist(),
                racks.position.tolist(),
                racks.power_w.tolist(),
                rack_stages(plan.fabric).tolist(),
                strict=True,
            )
        ],
        cables=_cables(plan),
        bill=list(plan.bill.lines),
        power={name: plan.bill.power(name) for name in SECTIONS},
        capital=_capital(plan.capital),
        addressing=plan.addressing.to_json(plan.fabric),
        workload=plan.forecast,
        most_hosts=plan.most_hosts,
        most_gpus=plan.most_hosts * plan.design.host.gpus,
        decisions=[decision.to_json() for decision in plan.decisions],
        warnings=[decision.to_json() for decision in plan.warnings],
    )


def _cables(plan: CandidatePlan) -> list[CableFacts]:
    """Return the cables of the compute fabric by part."""
    by_part: dict[str, list[BillLine]] = {}
    for line in plan.bill.of("compute"):
        if line.category in CABLES:
            by_part.setdefault(line.name, []).append(line)
    return [
        CableFacts(
            name,
            lines[0].title,
            lines[0].category,
            sum(line.quantity for line in lines),
            sum(line.later for line in lines),
            round(sum(line.quantity * (line.length_m or 0.0) for line in lines), 3),
        )
        for name, lines in sorted(by_part.items())
    ]


def _capital(cost: Capital) -> CapitalFacts:
    return CapitalFacts(
        sections={name: amount.rounded() for name, amount in cost.sections.items()},
        compute={name: amount.rounded() for name, amount in cost.compute.items()},
        network_per_gpu=cost.network_per_gpu.rounded(),
        fabric_per_gpu=cost.fabric_per_gpu.rounded(),
        all_networks=cost.all_networks.rounded(),
        total=cost.total.rounded(),
        spares=cost.spares.rounded(),
        later=cost.later.rounded(),
        network_share=cost.share,
        note=range_note(),
    )


def _sources(plan: Plan) -> Iterator[SourceFacts]:
    """Yield the sources of every device that the plan uses, by its name."""
    names = {line.name for candidate in plan.candidates for line in candidate.bill.lines}
    names |= {plan.catalog.media_rule.name, plan.catalog.failure_rates.name}
    for name in sorted(names):
        entry = _entry(plan.catalog, name, plan)
        if entry is not None:
            yield from _groups(name, entry, "")


def _entry(catalog: Catalog, name: str, plan: Plan) -> BaseModel | None:
    """Return the entry of that name: of the design where it made its own, else the catalogue's."""
    for candidate in plan.candidates:
        if candidate.design.host.name == name:
            return candidate.design.host
    try:
        return catalog.device(name)
    except InputError:
        return None


def _groups(device: str, model: BaseModel, path: str) -> Iterator[SourceFacts]:
    for key in type(model).model_fields:
        value = getattr(model, key)
        for item in value if isinstance(value, tuple) else (value,):
            if not isinstance(item, BaseModel):
                continue
            name = f"{path}{key}"
            if isinstance(item, Sourced):
                yield SourceFacts(
                    device, name, item.source, item.date, item.kind, item.primary, item.note
                )
            yield from _groups(device, item, f"{name}.")


def _assumptions(site: Site) -> Iterator[AssumptionFacts]:
    """Yield what the spec leaves open about the site and this project assumes."""
    for name, info in Site.model_fields.items():
        if name not in site.model_fields_set and "assumed" in (info.description or ""):
            yield AssumptionFacts(f"site.{name}", getattr(site, name), info.description or "")
