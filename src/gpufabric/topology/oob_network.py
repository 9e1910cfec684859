"""The management (out-of-band) network: 1 Gb/s ports counted, and switches for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.host import Host
from gpufabric.catalog.rule import Equipment
from gpufabric.core.text import _
from gpufabric.model.fabric import Fabric
from gpufabric.topology.decision import Decision

__all__ = ["OobCounts", "OobDesign", "design_oob"]

OOB_SWITCH = "sn2201"
OOB_CABLE = "cat6-1g"

PORTS_USED_SHARE = 40 / 48
"""Share of an out-of-band switch's ports that is filled.

Derived: NVIDIA RA-11333-001 V11 Tables 7 and 8 connect 315 ports to 8 switches of 48.
"""

PDUS_PER_COMPUTE_RACK = 3
PDUS_PER_NETWORK_RACK = 2
"""Derived: RA-11333-001 V11 Table 7 has 96 and 12 PDUs, for 32 racks of 4 hosts and 6 others."""

PORTS_PER_SWITCH = 1
"""RA-11333-001 V11 Table 8: 64 cables for 64 InfiniBand switches."""

_RA = "NVIDIA RA-11333-001 V11, Tables 7 and 8"


@dataclass(frozen=True)
class OobCounts:
    """Ports by what they belong to, and switches for them.

    Parameters
    ----------
    hosts, switches, managers, pdus
        1 Gb/s ports.
    oob_switches
        Out-of-band switches.
    """

    hosts: int
    switches: int
    managers: int
    pdus: int
    oob_switches: int

    @property
    def ports(self) -> int:
        """All ports that need a cable."""
        return self.hosts + self.switches + self.managers + self.pdus


@dataclass(frozen=True)
class OobDesign:
    """The out-of-band network today and at the target size, with its reasons."""

    today: OobCounts
    later: OobCounts
    decisions: tuple[Decision, ...]


def design_oob(
    fabric: Fabric,
    host: Host,
    others: tuple[tuple[int, int], tuple[int, int]],
    appliance: str,
    catalog: Catalog,
) -> OobDesign:
    """Return the out-of-band network of a fabric whose devices stand in racks.

    Parameters
    ----------
    fabric
        With racks.
    host
        Catalogue entry of the host.
    others
        Switches of other networks and managers, today and at the target size.
    appliance
        Catalogue name of the managers.
    catalog
        Gives the ports of managers and of the out-of-band switch.
    """
    counts = [
        _counts(fabric, host, others[stage], _oob_ports(appliance, catalog), stage, catalog)
        for stage in (0, 1)
    ]
    return OobDesign(counts[0], counts[1], _reasons(counts[0]))


def _counts(
    fabric: Fabric,
    host: Host,
    others: tuple[int, int],
    manager_ports: int,
    stage: int,
    catalog: Catalog,
) -> OobCounts:
    hosts = fabric.hosts.stage <= stage
    is_compute = hosts & (fabric.hosts.role == 0)
    other_switches, managers = others
    racks = _racks(fabric, stage)
    pdus = sum(
        count * each
        for count, each in zip(racks, (PDUS_PER_COMPUTE_RACK, PDUS_PER_NETWORK_RACK), strict=True)
    )
    n_switches = int((fabric.switches.stage <= stage).sum()) + other_switches
    ports = OobCounts(
        hosts=int(is_compute.sum()) * host.management_ports,
        switches=n_switches * PORTS_PER_SWITCH,
        managers=managers * manager_ports,
        pdus=pdus,
        oob_switches=0,
    )
    each = math.floor(catalog.switch(OOB_SWITCH).ports.count * PORTS_USED_SHARE)
    return OobCounts(
        ports.hosts, ports.switches, ports.managers, ports.pdus, -(-ports.ports // each)
    )


def _racks(fabric: Fabric, stage: int) -> tuple[int, int]:
    """Return compute and network racks in which something of `stage` or before stands."""
    used = np.concatenate(
        [
            fabric.hosts.rack[fabric.hosts.stage <= stage],
            fabric.switches.rack[fabric.switches.stage <= stage],
        ]
    )
    used = np.unique(used[used >= 0])
    kind = fabric.racks.kind[used]
    return int((kind == 0).sum()), int((kind == 1).sum())


def _oob_ports(appliance: str, catalog: Catalog) -> int:
    entry = catalog.equipment.get(appliance)
    if not isinstance(entry, Equipment):
        return 1
    return sum(ports.count for ports in entry.ports if ports.network == "oob")


def _reasons(counts: OobCounts) -> tuple[Decision, ...]:
    return (
        Decision(
            "oob",
            str(counts.oob_switches),
            _(
                "{ports} ports of 1 Gb/s ({hosts} hosts, {switches} switches, {managers} managers, "
                "{pdus} PDUs), 40 of 48 on each switch; {compute} PDUs in a compute rack and "
                "{network} in a network rack are assumed for every site."
            ).format(
                ports=counts.ports,
                hosts=counts.hosts,
                switches=counts.switches,
                managers=counts.managers,
                pdus=counts.pdus,
                compute=PDUS_PER_COMPUTE_RACK,
                network=PDUS_PER_NETWORK_RACK,
            ),
            _RA,
        ),
    )
