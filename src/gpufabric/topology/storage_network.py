"""The storage network: switches and links for the storage ports of the hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpufabric.catalog.collection import Catalog
from gpufabric.catalog.groups import Cage
from gpufabric.catalog.host import StorageNics
from gpufabric.catalog.joining import PortEnd, switch_end
from gpufabric.catalog.switch import Ports, Switch
from gpufabric.core.errors import InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import StorageNetwork
from gpufabric.topology.clos_sizing import ClosNeed, ClosShape, NoFitError, size_clos
from gpufabric.topology.decision import Decision
from gpufabric.topology.design import Design
from gpufabric.topology.optics import LinkClass, Media, choose_media
from gpufabric.topology.port_plan import SwitchPorts, switch_ports

__all__ = ["LINK_M", "StorageCounts", "StorageDesign", "design_storage"]

HOST_RATIO = 4 / 3
"""Down over up capacity of the host ports: "a ratio near 4:3", NVIDIA RA-11333-001 V11."""

FREE_SHARE = 1 / 8
"""Share of each switch's ports kept free for storage targets, managers and growth.

Derived: with it 127 hosts take 8 leafs and 4 spines, as NVIDIA RA-11334-001 V08 has (4 SU).
"""

SINGLE_SHARE = 3 / 4
"""Share of a single switch's ports that the hosts may take; assumed."""

LEAFS_PER_HOST = 2
MIN_SPINES = 2
"""So that no single switch carries all of it; assumed."""

MANAGERS = 2
"""Subnet managers of an InfiniBand storage network: RA-11333-001 V11 Table 7 has four UFM
appliances, two for each of the two fabrics."""

LINK_M = 30.0
"""Length of every storage link [m]; assumed, as the network is not placed in racks."""

_RA = "NVIDIA RA-11333-001 V11, Storage Fabric and Table 8 (254 host ports of 127 hosts)"


@dataclass(frozen=True)
class StorageCounts:
    """How much of a storage network is there at one time.

    Parameters
    ----------
    leaf, spine, core
        Switches.
    host_leaf, leaf_spine, spine_core
        Links.
    free_ports
        Leaf ports left for storage targets, at the hosts' rate.
    """

    leaf: int
    spine: int
    core: int
    host_leaf: int
    leaf_spine: int
    spine_core: int
    free_ports: int

    @property
    def switches(self) -> int:
        """All switches."""
        return self.leaf + self.spine + self.core


@dataclass(frozen=True)
class StorageDesign:
    """A storage network in counts; it is sized like the compute fabric, and not placed.

    Parameters
    ----------
    switch
        Switch of every tier.
    gbps, uplink_gbps
        Rate of host links, and of links between switches [Gb/s].
    ports_per_host
        Storage ports of a host.
    today, later
        Counts for today's hosts, and for those of the target size.
    laid
        Links that are alike, with what joins their ends; empty where no known part does.
    """

    switch: Switch
    gbps: float
    uplink_gbps: float
    ports_per_host: int
    today: StorageCounts
    later: StorageCounts
    laid: tuple[tuple[LinkClass, Media], ...] = ()


def design_storage(
    design: Design, wanted: StorageNetwork, catalog: Catalog
) -> tuple[StorageDesign | None, tuple[Decision, ...]]:
    """Return the storage network of a design, and what there is to say about it.

    The network is None where none is wanted, where the host's storage ports are unknown, or
    where no switch fits; the last two are told as decisions.
    """
    if not wanted.wanted:
        return None, ()
    nics = design.host.storage_nics
    if nics is None:
        return None, (
            Decision(
                "storage",
                _("not designed"),
                _("The storage ports of {host} are unknown.").format(host=design.host.name),
                is_warning=True,
            ),
        )
    ports, notes = _ports_per_host(nics, wanted)
    hosts = design.fabric.hosts
    counts = (int((hosts.role[hosts.stage == 0] == 0).sum()), design.fabric.n_hosts)
    sized = (
        found
        for switch in _switches(design, nics.gbps, catalog)
        if (found := _sized(switch, nics.gbps, ports, counts)) is not None
    )
    first: StorageDesign | None = None
    for found in sized:
        laid = _laid(found, nics.cage, catalog)
        if laid:
            joined = replace(found, laid=laid)
            return joined, (*notes, *_reasons(joined, design))
        first = first or found
    if first is not None:
        return first, (*notes, *_reasons(first, design), _open(first))
    what = _("No switch holds {hosts:,} hosts with {ports} ports of {gbps:g} Gb/s each.").format(
        hosts=counts[1], ports=ports, gbps=nics.gbps
    )
    return None, (*notes, Decision("storage", _("not designed"), what, is_warning=True))


def _ports_per_host(nics: StorageNics, wanted: StorageNetwork) -> tuple[int, tuple[Decision, ...]]:
    """Return the storage ports of a host: half of four or more, else all; or what is asked for."""
    if wanted.gbps_per_host is None:
        ports = nics.ports // 2 if nics.ports >= 4 else nics.ports
        why = (
            _("Half of the {ports} ports of the storage NICs; the others are in-band.")
            if ports < nics.ports
            else _("All {ports} ports of the storage NICs, shared with the in-band network.")
        ).format(ports=nics.ports)
        return ports, (Decision("storage ports", str(ports), why, _RA),)
    asked = math.ceil(wanted.gbps_per_host / nics.gbps)
    ports = min(asked, nics.ports)
    if asked <= nics.ports:
        why = _("{asked:g} Gb/s a host, as the spec asks.").format(asked=wanted.gbps_per_host)
    else:
        why = _(
            "The spec asks for {asked:g} Gb/s a host, and its storage NICs have {has:g}."
        ).format(asked=wanted.gbps_per_host, has=nics.ports * nics.gbps)
    return ports, (Decision("storage ports", str(ports), why, is_warning=asked > nics.ports),)


def _switches(design: Design, gbps: float, catalog: Catalog) -> Iterator[Switch]:
    """Yield the switches to try: the compute leaf, then others of its fabric, then Ethernet."""
    leaf = design.switches.leaf
    yield from (leaf,) if leaf.port_count_at(gbps) else ()
    others = [
        switch
        for switch in catalog.switches.values()
        if switch.deployable
        and switch.role_hint == "compute"
        and switch.price is not None
        and switch.availability is None
        and switch.port_count_at(gbps)
        and switch.name != leaf.name
    ]
    yield from sorted(
        others,
        key=lambda switch: (
            switch.fabric != leaf.fabric,
            switch.price.mid_usd / (switch.port_count_at(gbps) or 1) if switch.price else 0.0,
            switch.name,
        ),
    )


def _sized(
    switch: Switch, gbps: float, ports: int, n_hosts: tuple[int, int]
) -> StorageDesign | None:
    today, target = n_hosts
    whole = switch_ports(switch)
    if target * ports <= SINGLE_SHARE * whole.count_at(gbps):
        counts = [
            StorageCounts(1, 0, 0, n * ports, 0, 0, whole.count_at(gbps) - n * ports)
            for n in n_hosts
        ]
        return StorageDesign(switch, gbps, gbps, ports, counts[0], counts[1])
    leafs = min(LEAFS_PER_HOST, ports)
    kept = _with_free_ports(whole)
    need = ClosNeed(
        n_hosts=target,
        leafs_per_su=leafs,
        ports_per_host=-(-ports // leafs),
        host_gbps=gbps,
        leaf=kept,
        spine=kept,
        core=kept,
        leaf_ratio=HOST_RATIO,
        min_spines=MIN_SPINES,
        n_today=today,
        by_rail=False,
    )
    try:
        shape = size_clos(need)
    except NoFitError:
        return None
    return StorageDesign(
        switch,
        gbps,
        shape.uplink_gbps,
        ports,
        _counts(need, shape, whole, today),
        _counts(need, shape, whole, target),
    )


def _with_free_ports(switch: SwitchPorts) -> SwitchPorts:
    return replace(switch, count=switch.count - math.ceil(switch.count * FREE_SHARE))


def _counts(need: ClosNeed, shape: ClosShape, leaf: SwitchPorts, n_hosts: int) -> StorageCounts:
    """Return what `n_hosts` take of the shape: whole SUs of leafs, all spines and cores."""
    leafs = -(-n_hosts // shape.su_hosts) * shape.leafs_per_su
    for_uplinks = -(-shape.leaf_up // leaf.split_at(shape.uplink_gbps))
    down_ports = (leaf.count - for_uplinks) * leaf.split_at(need.host_gbps)
    host_links = n_hosts * need.ports_per_host * need.leafs_per_su
    return StorageCounts(
        leaf=leafs,
        spine=shape.n_spines,
        core=shape.n_cores,
        host_leaf=host_links,
        leaf_spine=leafs * shape.leaf_up,
        spine_core=shape.n_spines * shape.spine_up,
        free_ports=leafs * down_ports - host_links,
    )


# Cables -------------------------------------------------------------------------------------


def _laid(
    storage: StorageDesign, cage: Cage, catalog: Catalog
) -> tuple[tuple[LinkClass, Media], ...]:
    """Return the links that are alike with what joins them; nothing where no part does."""
    classes = list(_classes(storage, cage))
    try:
        media, _why = choose_media(classes, (), catalog, "storage")
    except InputError:
        return ()
    return tuple(zip(classes, media, strict=True))


def _classes(storage: StorageDesign, cage: Cage) -> Iterator[LinkClass]:
    """Yield the links to hosts and between switches, each over optics of one length."""
    switch, later = storage.switch, storage.later
    nic = PortEnd(cage, "nic", _lane_gbps(cage), 1)
    host_side = switch_end(switch.ports, storage.gbps)
    ends = [("host_leaf", nic, host_side, storage.gbps, later.host_leaf)]
    if later.spine:
        end = switch_end(switch.ports, storage.uplink_gbps)
        ends.append(("leaf_spine", end, end, storage.uplink_gbps, later.leaf_spine))
        ends.append(("spine_core", end, end, storage.uplink_gbps, later.spine_core))
    for kind, lower, upper, gbps, n_links in ends:
        if n_links:
            yield LinkClass(
                kind=kind,
                gbps=gbps,
                fabric=switch.fabric,
                lower=lower,
                upper=upper,
                lower_max_w=switch.max_optic_w if lower.side == "switch" else None,
                upper_max_w=switch.max_optic_w,
                n_links=n_links,
                need_m=LINK_M,
                far_plugs={},
            )


def _lane_gbps(cage: Cage) -> float:
    """Return the fastest electrical lane of a form factor [Gb/s]: that of any port in it."""
    ports = Ports(
        count=1, gbps=1.0, cages=1, cage=cage, source=_("assumed"), date="2026", kind="assumed"
    )
    return switch_end(ports, 1.0).lane_gbps


def _open(storage: StorageDesign) -> Decision:
    return Decision(
        "storage cables",
        _("open"),
        _(
            "No part of the catalogue joins {gbps:g} Gb/s ports of {switch} and the storage NICs; "
            "the links are listed without a price."
        ).format(gbps=storage.gbps, switch=storage.switch.name),
        is_warning=True,
    )


def _reasons(found: StorageDesign, design: Design) -> Iterator[Decision]:
    later = found.later
    yield Decision(
        "storage",
        _("{leaf} leafs, {spine} spines").format(leaf=later.leaf, spine=later.spine)
        if later.spine
        else _("single switch"),
        _(
            "{switch} with {ports} ports of {gbps:g} Gb/s a host; {free} leaf ports are free for "
            "storage targets."
        ).format(
            switch=found.switch.name,
            ports=found.ports_per_host,
            gbps=found.gbps,
            free=found.today.free_ports,
        )
        + (" " + _("Hosts to uplinks is 4:3.") if later.spine else ""),
        "NVIDIA RA-11333-001 V11, Storage Fabric; NVIDIA RA-11334-001 V08 (8 leafs, 4 spines)",
    )
    if found.switch.name != design.switches.leaf.name:
        yield Decision(
            "storage switch",
            found.switch.name,
            _("{switch} has too few ports of {gbps:g} Gb/s, or no known part joins them.").format(
                switch=design.switches.leaf.name, gbps=found.gbps
            ),
        )
