"""The bill of materials of a design: everything to buy for it, counted from its tables."""

from __future__ import annotations

from collections.abc import Mapping

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.groups import Range
from gpufabric.model.requirement import Requirement
from gpufabric.topology.bill import Bill, BillLine, BillPower, UnitPower, UnitPrice, in_order
from gpufabric.topology.bill_cables import cable_lines, count_cables
from gpufabric.topology.bill_devices import host_lines, manager_line, oob_lines, switch_line
from gpufabric.topology.bill_storage import storage_lines
from gpufabric.topology.cabling import Cabling
from gpufabric.topology.design import MANAGER_MODEL, Design
from gpufabric.topology.footprint import fabric_footprints
from gpufabric.topology.oob_network import design_oob
from gpufabric.topology.spares import spares_decision, with_spares
from gpufabric.topology.storage_network import StorageDesign, design_storage

__all__ = ["Bill", "BillLine", "BillPower", "UnitPower", "UnitPrice", "bill"]

CONTROLLER = "fabric-controller"
CONTROLLERS = 2
"""Controllers of an Ethernet fabric: a redundant pair, assumed."""


def bill(design: Design, cabling: Cabling, requirement: Requirement, catalog: Catalog) -> Bill:
    """Return the bill of materials of a design whose cables are laid.

    Parameters
    ----------
    design
        The design; its fabric gives today's devices and those of the target size.
    cabling
        Its fabric in racks, with part and length of every link.
    requirement
        Says which networks beside it are wanted, and how many spares.
    catalog
        Names, prices, power and failure rates.

    Notes
    -----
    The hosts, the compute fabric, the storage network and the out-of-band network are sections
    of their own, so that totals can be drawn for each. Every quantity is counted from the
    tables, or rests on a decision that is given.
    """
    fabric = cabling.fabric
    counts = [int((fabric.hosts.role[fabric.hosts.stage <= stage] == 0).sum()) for stage in (0, 1)]
    lines = host_lines(design.host, design.nic, (counts[0], counts[1]))
    lines += _compute_lines(design, cabling, catalog)
    storage, reasons = design_storage(design, requirement.storage, catalog)
    decisions = list(reasons)
    if storage is not None:
        beside = storage_lines(storage, design, MANAGER_MODEL, catalog)
        lines += beside.lines
        decisions += beside.decisions
    if requirement.management.wanted:
        others = _others(lines, storage)
        oob = design_oob(fabric, design.host, others, _manager(design), catalog)
        lines += oob_lines(oob, catalog)
        decisions += oob.decisions
    share_pct = requirement.spares_pct
    lines = with_spares(lines, _rates(lines, catalog), share_pct)
    decisions.append(spares_decision(share_pct))
    return Bill(in_order(lines), tuple(decisions))


def _compute_lines(design: Design, cabling: Cabling, catalog: Catalog) -> list[BillLine]:
    fabric = cabling.fabric
    lines = []
    for tier, use in ((1, "leaf"), (2, "spine"), (3, "core")):
        counts = (fabric.n_switches(tier, 0), fabric.n_switches(tier))
        switch = design.switches.by_tier()[use]
        lines.append(switch_line("compute", use, switch, counts))
    lines.append(manager_line("compute", _manager(design), _managers(design), catalog))
    fill = design.candidate.fill_cages
    today, total = (
        count_cables(cabling, stage, fill_cages=fill, catalog=catalog) for stage in (0, 1)
    )
    prints = fabric_footprints(fabric.models, design.host, design.switches, catalog)
    return lines + cable_lines(today, total, "compute", prints, catalog)


def _manager(design: Design) -> str:
    return CONTROLLER if design.candidate.fabric == "roce" else MANAGER_MODEL


def _managers(design: Design) -> tuple[int, int]:
    """Return the managers today and later: those on the fabric, or a pair of controllers."""
    hosts = design.fabric.hosts
    on_fabric = [int((hosts.role[hosts.stage <= stage] == 1).sum()) for stage in (0, 1)]
    if design.candidate.fabric == "roce" and not on_fabric[1]:
        return CONTROLLERS, CONTROLLERS
    return on_fabric[0], on_fabric[1]


def _others(
    lines: list[BillLine], storage: StorageDesign | None
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return storage switches and all managers, today and later, for their management ports."""
    managers = [line for line in lines if line.category == "manager"]
    today = sum(line.quantity for line in managers)
    later = sum(line.quantity + line.later for line in managers)
    if storage is None:
        return (0, today), (0, later)
    return (storage.today.switches, today), (storage.later.switches, later)


def _rates(lines: list[BillLine], catalog: Catalog) -> Mapping[str, Range | None]:
    """Return the failure rate of everything that spares are kept of: all but hosts and NICs."""
    rates: dict[str, Range | None] = {}
    for line in lines:
        if line.section == "hosts":
            continue
        entry = (
            catalog.switches.get(line.name)
            or catalog.parts.get(line.name)
            or catalog.equipment.get(line.name)
        )
        rates[line.name] = entry.annual_failure_rate if entry is not None else None
    return rates
