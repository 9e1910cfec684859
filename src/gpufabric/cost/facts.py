"""What the cost model must know of a candidate: counts, prices and times, taken from its design."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpufabric.cost.capital import CABLES
from gpufabric.cost.quantity import Quantity
from gpufabric.model.fabric import Fabric
from gpufabric.topology.bill import Bill, BillLine
from gpufabric.topology.design import Design

__all__ = [
    "Exposure",
    "NetworkFacts",
    "Performance",
    "PriceTerm",
    "PricedPart",
    "Skill",
    "Tools",
    "network_facts",
]

Skill = Literal["none", "basic", "expert"]
Tools = Literal["none", "counters", "telemetry"]
Ints = NDArray[np.int64]

HOST_TIER, RACK_UNIT_OF_SWITCH = 1, 2.0
"""Tier of links to hosts; height of a switch whose own is unknown [rack units], assumed."""

OPTICAL = frozenset({"aoc", "fibre", "splitter"})


@dataclass(frozen=True)
class PricedPart:
    """Equal pieces of a bill.

    Parameters
    ----------
    item
        What they count as: ``switches``, ``transceivers``, ``cables``, ``managers`` of the compute
        fabric, or ``other_networks``.
    price
        Of one piece [USD], or of a cable as a multiple of `usd`; None where unknown.
    usd
        What the price is a multiple of [USD]: the middle price of a cable of this length, so that
        all lengths of one cable are drawn together; 1 for what has no length.
    pieces, spares, later
        Today's, in store, and bought when the cluster grows.
    name
        Name in the catalogue.
    """

    item: str
    price: Quantity | None
    usd: float
    pieces: int
    spares: int
    later: int
    name: str


class PriceTerm(NamedTuple):
    """Parts of one item and one price.

    Parameters
    ----------
    item, key
        What they count as, and the key of their price.
    pieces, spares
        Times the price: today's and those in store [USD, or pieces where the price is one's].
    """

    item: str
    key: str
    pieces: float
    spares: float


@dataclass(frozen=True)
class Exposure:
    """What can fail, and whom it stops.

    Parameters
    ----------
    access_optical, access_copper
        Links between NICs and leafs.
    uplink_optical, uplink_copper
        Links between switches.
    nics
        Compute NICs.
    leafs, upper_switches
        Switches with and without hosts.
    planes
        Independent links of one NIC, or planes that a host's data can change to: with 2 or more a
        failure halves instead of kills.
    hosts_per_leaf
        Hosts that one leaf serves.
    uplinks_per_leaf
        Links of one leaf to upper switches; 0 without.
    """

    access_optical: int
    access_copper: int
    uplink_optical: int
    uplink_copper: int
    nics: int
    leafs: int
    upper_switches: int
    planes: int
    hosts_per_leaf: float
    uplinks_per_leaf: float


@dataclass(frozen=True)
class Performance:
    """What the workload makes of the network; all times are of one step [s].

    Parameters
    ----------
    step_s
        With packets spread over all paths (adaptive routing), no jitter.
    ideal_step_s
        On a network of the same NICs that never blocks: no oversubscription, no collisions.
    hashed_step_s
        With flows hashed onto paths (ECMP), in the mean over jobs.
    jitter_s
        Expected lateness of a step: slowest rank and flaps.
    communication_share
        Part of `step_s` in which GPUs wait for the network, 0 to 1.
    low, high
        Factors on the time lost to the network: the interval of the forecast.
    work_per_step
        What one step yields, in `work_unit`.
    work_unit
        ``token``.
    source
        Model and version behind the numbers.
    flops_per_step
        FLOPs that the model itself needs for one step: MFU times the GPUs' data-sheet rate at
        `precision` times `step_s`; recomputation is not counted [FLOP]. None where no MFU is
        known, as in serving.
    precision
        Number format of that rate, such as ``bf16``; empty where `flops_per_step` is None.
    """

    step_s: float
    ideal_step_s: float
    hashed_step_s: float
    jitter_s: float
    communication_share: float
    low: float
    high: float
    work_per_step: float
    work_unit: str
    source: str
    flops_per_step: float | None = None
    precision: str = ""


@dataclass(frozen=True)
class NetworkFacts:
    """One candidate in numbers.

    Parameters
    ----------
    name, fabric, fabric_hash
        The candidate, ``infiniband`` or ``roce``, and the hash of what was designed.
    gpu
        Name of the GPU; empty where the host does not tell.
    n_gpus, host_gpus
        GPUs in all, and of one host.
    job_gpus
        GPUs that stop together when one of them does.
    parts
        What is bought.
    n_unpriced
        Lines without a price: costs are then lower bounds.
    hosts_usd
        Price of the hosts (low, middle, high) [USD]; None where unknown.
    typical_w, max_w
        Power of the networks [W].
    n_unpowered
        Lines whose power is unknown.
    n_switches, n_cables, switch_units
        Of the compute fabric; the last is the height of its switches [rack units].
    exposure
        What can fail.
    performance
        What the workload makes of it; None where no model is known.
    direct_performance
        The same as if GPUDirect RDMA were on; None where it is.
    """

    name: str
    fabric: str
    fabric_hash: str
    gpu: str
    n_gpus: int
    host_gpus: int
    job_gpus: int
    parts: tuple[PricedPart, ...]
    n_unpriced: int
    hosts_usd: tuple[float, float, float] | None
    typical_w: float
    max_w: float
    n_unpowered: int
    n_switches: int
    n_cables: int
    switch_units: float
    exposure: Exposure
    performance: Performance | None = None
    direct_performance: Performance | None = None

    def with_performance(
        self, performance: Performance | None, direct: Performance | None = None
    ) -> NetworkFacts:
        """Return the facts with what the workload makes of the network, now and mended."""
        return replace(self, performance=performance, direct_performance=direct)

    @cached_property
    def price_terms(self) -> tuple[PriceTerm, ...]:
        """What is bought, parts of one item and price together."""
        terms: dict[tuple[str, str], tuple[float, float]] = {}
        for part in self.parts:
            if part.price is not None:
                key = (part.item, part.price.key)
                pieces, spares = terms.get(key, (0.0, 0.0))
                terms[key] = (pieces + part.pieces * part.usd, spares + part.spares * part.usd)
        return tuple(PriceTerm(*key, *amounts) for key, amounts in terms.items())

    @property
    def price_quantities(self) -> tuple[Quantity, ...]:
        """Prices of the parts, one of a key."""
        found = {part.price.key: part.price for part in self.parts if part.price is not None}
        return tuple(found[key] for key in sorted(found))


def network_facts(design: Design, fabric: Fabric, bill: Bill, job_gpus: int) -> NetworkFacts:
    """Return a candidate in numbers.

    Parameters
    ----------
    design
        What was designed.
    fabric
        The fabric with its cables.
    bill
        What is bought.
    job_gpus
        GPUs that stop together.
    """
    today = fabric.hosts.stage == 0
    hosts = [line for line in bill.of("hosts") if line.category == "host"]
    power = bill.power("compute", "storage", "management")
    compute = bill.of("compute")
    switches = [line for line in compute if line.category == "switch"]
    cables = [line for line in compute if line.category in CABLES and line.length_m is not None]
    return NetworkFacts(
        name=design.candidate.name,
        fabric=fabric.protocol,
        fabric_hash=fabric.content_hash,
        gpu=design.host.gpu or "",
        n_gpus=int(fabric.hosts.n_gpus[today].sum()),
        host_gpus=design.host.gpus,
        job_gpus=job_gpus,
        parts=tuple(_parts(bill.lines)),
        n_unpriced=_n_unpriced(bill),
        hosts_usd=_hosts_usd(hosts),
        typical_w=power.typical_w,
        max_w=power.max_w,
        n_unpowered=power.n_unknown,
        n_switches=sum(line.quantity for line in switches),
        n_cables=sum(line.quantity for line in cables),
        switch_units=_units(design, switches),
        exposure=_exposure(design, fabric, _optical_parts(cables)),
    )


def _parts(lines: Iterable[BillLine]) -> Iterator[PricedPart]:
    for line in lines:
        if line.section == "hosts" or line.included_in:
            continue
        usd = line.price.mid_usd if line.price is not None and _is_by_length(line) else 1.0
        yield PricedPart(
            _item(line), _price(line), usd, line.quantity, line.spares, line.later, line.name
        )


def _is_by_length(line: BillLine) -> bool:
    return line.length_m is not None and line.price is not None and line.price.mid_usd > 0


def _item(line: BillLine) -> str:
    if line.section != "compute":
        return "other_networks"
    if line.category in CABLES:
        return "cables"
    return {"switch": "switches", "transceiver": "transceivers"}.get(line.category, "managers")


def _price(line: BillLine) -> Quantity | None:
    price = line.price
    if price is None:
        return None
    usd = price.mid_usd if _is_by_length(line) else 1.0
    return Quantity(
        f"price.{line.name}",
        round(price.low_usd / usd, 9),
        round(price.mid_usd / usd, 9),
        round(price.high_usd / usd, 9),
        "USD" if usd == 1.0 else "of the middle price",
        price.source,
        price.date,
        price.kind,
        note=price.note,
    )


def _n_unpriced(bill: Bill) -> int:
    return sum(
        1 for line in bill.lines if line.section != "hosts" and line.quantity and not line.is_priced
    )


def _hosts_usd(lines: Iterable[BillLine]) -> tuple[float, float, float] | None:
    low = mid = high = 0.0
    for line in lines:
        if line.price is None:
            return None
        low += line.quantity * line.price.low_usd
        mid += line.quantity * line.price.mid_usd
        high += line.quantity * line.price.high_usd
    return (low, mid, high) if high else None


def _units(design: Design, lines: Iterable[BillLine]) -> float:
    sizes = {
        switch.name: switch.size.ru if switch.size is not None else None
        for switch in design.switches.by_tier().values()
    }
    return float(
        sum(line.quantity * (sizes.get(line.name) or RACK_UNIT_OF_SWITCH) for line in lines)
    )


def _optical_parts(cables: Iterable[BillLine]) -> Mapping[str, bool]:
    return {line.name: line.category in OPTICAL for line in cables}


def _exposure(design: Design, fabric: Fabric, is_optical: Mapping[str, bool]) -> Exposure:
    links, switches = fabric.links, fabric.switches
    today = links.stage == 0
    optical_part = np.array([is_optical.get(name, True) for name in fabric.parts] or [True])
    optical = optical_part[np.maximum(links.part, 0)] | (links.part < 0)
    access = today & (links.tier == HOST_TIER)
    uplink = today & (links.tier != HOST_TIER)
    leaf = (switches.tier == 1) & (switches.stage == 0)
    n_leafs = int(leaf.sum())
    n_hosts = int((fabric.hosts.stage == 0).sum())
    is_dual = design.layout.planes > 1
    owner = fabric.port_vertex[links.port_b[access]], fabric.port_vertex[links.port_a[access]]
    leaf_of = np.maximum(*owner)
    host_of = np.minimum(*owner)
    pairs = np.unique(np.stack([leaf_of, host_of]), axis=1).shape[1] if access.any() else n_hosts
    return Exposure(
        access_optical=int((access & optical).sum()),
        access_copper=int((access & ~optical).sum()),
        uplink_optical=int((uplink & optical).sum()),
        uplink_copper=int((uplink & ~optical).sum()),
        nics=_today_nics(fabric),
        leafs=n_leafs,
        upper_switches=int(((switches.tier > 1) & (switches.stage == 0)).sum()),
        planes=design.layout.planes if is_dual else 1,
        hosts_per_leaf=pairs / n_leafs,
        uplinks_per_leaf=int((uplink & (links.tier == 2)).sum()) / n_leafs,
    )


def _today_nics(fabric: Fabric) -> int:
    hosts = fabric.hosts
    counted = (hosts.stage == 0) & (hosts.n_gpus > 0)
    return int(counted[fabric.nics.host].sum())
