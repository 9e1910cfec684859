"""Lines of devices: hosts and their NICs, switches, managers, out-of-band switches."""

from __future__ import annotations

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.host import Host
from gpufabric.catalog.nic import Nic
from gpufabric.catalog.rule import Equipment
from gpufabric.catalog.switch import Switch
from gpufabric.core.text import _
from gpufabric.topology.bill import BillLine, Section, sourced_power, unit_price, with_later
from gpufabric.topology.footprint import (
    host_footprint,
    host_power_rule,
    manager_footprint,
    manager_power_rule,
    switch_footprint,
    switch_power_rule,
)
from gpufabric.topology.oob_network import OOB_CABLE, OOB_SWITCH, OobDesign

__all__ = ["host_lines", "manager_line", "oob_lines", "switch_line"]

OOB_CABLE_M = 10.0
"""Length of every out-of-band cable [m]; assumed."""


def host_lines(host: Host, nic: Nic, counts: tuple[int, int]) -> list[BillLine]:
    """Return the lines of hosts and of their compute NICs, today and at the target size.

    NICs whose price and power the host's hold are listed, and add nothing.
    """
    print_ = host_footprint(host)
    hosts = BillLine(
        section="hosts",
        category="host",
        use="compute",
        name=host.name,
        title=host.title,
        quantity=counts[0],
        price=unit_price(host.price),
        power=sourced_power(
            print_.typical_w,
            print_.max_w,
            host.power or host_power_rule(),
            is_assumed=bool(print_.assumed),
        ),
        note=_("{gpus} GPUs each").format(gpus=host.gpus),
    )
    is_included = host.price is not None and host.price.includes_nics is True
    nics = BillLine(
        section="hosts",
        category="nic",
        use="compute",
        name=nic.name,
        title=nic.title,
        quantity=counts[0] * host.nics.count,
        price=None if is_included else unit_price(nic.price),
        power=sourced_power(
            nic.power.typical_w if nic.power else None,
            nic.power.max_w if nic.power else None,
            nic.power,
            is_assumed=False,
            is_included=True,
        ),
        included_in="host" if is_included else "",
        note=_("{n} a host; their power is part of the host's").format(n=host.nics.count),
    )
    return [with_later(hosts, counts[1]), with_later(nics, counts[1] * host.nics.count)]


def switch_line(section: Section, use: str, switch: Switch, counts: tuple[int, int]) -> BillLine:
    """Return the line of the switches of one tier; their largest power holds the modules'."""
    print_ = switch_footprint(switch)
    line = BillLine(
        section=section,
        category="switch",
        use=use,
        name=switch.name,
        title=switch.title,
        quantity=counts[0],
        price=unit_price(switch.price),
        power=sourced_power(
            print_.typical_w,
            print_.max_w,
            switch.power or switch_power_rule(),
            is_assumed=bool(print_.assumed),
        ),
        note=_("power: assumed {what}").format(what=", ".join(print_.assumed))
        if print_.assumed
        else "",
    )
    return with_later(line, counts[1])


def manager_line(
    section: Section, name: str, counts: tuple[int, int], catalog: Catalog
) -> BillLine:
    """Return the line of subnet managers or controllers."""
    entry = catalog.equipment.get(name)
    print_ = manager_footprint(name, catalog)
    known = isinstance(entry, Equipment)
    line = BillLine(
        section=section,
        category="manager",
        use=entry.role if isinstance(entry, Equipment) else "manager",
        name=name,
        title=entry.title if entry is not None else name,
        quantity=counts[0],
        price=unit_price(entry.price) if entry is not None else None,
        power=sourced_power(
            print_.typical_w,
            print_.max_w,
            (entry.power if entry is not None else None) or manager_power_rule(),
            is_assumed=bool(print_.assumed) or not known,
        ),
    )
    return with_later(line, counts[1])


def oob_lines(oob: OobDesign, catalog: Catalog) -> list[BillLine]:
    """Return the lines of out-of-band switches and their cables."""
    switch = catalog.switch(OOB_SWITCH)
    counts = (oob.today.oob_switches, oob.later.oob_switches)
    cable = catalog.part(OOB_CABLE)
    cables = BillLine(
        section="management",
        category="cat6",
        use="oob",
        name=cable.name,
        title=cable.title,
        quantity=oob.today.ports,
        length_m=OOB_CABLE_M,
        price=unit_price(cable.price, OOB_CABLE_M),
        note=_("one a management port; length assumed"),
    )
    return [
        switch_line("management", "oob", switch, counts),
        with_later(cables, oob.later.ports),
    ]
