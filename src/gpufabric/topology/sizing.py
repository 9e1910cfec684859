"""The shape of the networks of one candidate: the first kind that fits, or why none does."""

from __future__ import annotations

from dataclasses import dataclass

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.clos_sizing import ClosNeed, ClosShape, NoFitError, size_clos
from gpufabric.topology.decision import Place
from gpufabric.topology.dragonfly import (
    DragonflyPlusShape,
    DragonflyShape,
    size_dragonfly,
    size_dragonfly_plus,
)
from gpufabric.topology.layout import Kind, Layout
from gpufabric.topology.port_plan import SwitchPorts
from gpufabric.topology.small_build import PairShape, size_pair

__all__ = ["Sized", "clos_need", "managers_wanted", "size_networks"]

Shape = ClosShape | PairShape | DragonflyPlusShape | DragonflyShape

STAR_MANAGER_PORTS = 2
CLOS_MANAGER_PORTS = 4


@dataclass(frozen=True)
class Sized:
    """The shape that every network of a layout has.

    Parameters
    ----------
    kind
        Which shape it is.
    shape
        Its counts; None for a single switch.
    leafs, spines, cores
        Switches of one network.
    tiers
        Switch tiers.
    hops
        Switches on the longest of the shortest paths between two hosts.
    su_hosts, n_sus
        Hosts of a scalable unit, and units.
    """

    kind: Kind
    shape: Shape | None
    leafs: int
    spines: int
    cores: int
    tiers: int
    hops: int
    su_hosts: int
    n_sus: int

    @property
    def n_switches(self) -> int:
        """Switches of one network."""
        return self.leafs + self.spines + self.cores


def managers_wanted(candidate: Candidate, kind: Kind) -> int:
    """Return how many manager ports to keep in each network.

    Notes
    -----
    Four in a leaf-spine InfiniBand fabric: NVIDIA RA-11334-001 V08 Table 4.1 counts
    "node and UFM" cables as 8 x nodes + 4. Two on a single switch (a redundant pair, assumed).
    Ethernet fabrics are controlled out of band.
    """
    if candidate.manager_ports is not None:
        return candidate.manager_ports
    if candidate.fabric == "roce":
        return 0
    return STAR_MANAGER_PORTS if kind in ("star", "pair") else CLOS_MANAGER_PORTS


def clos_need(
    candidate: Candidate,
    layout: Layout,
    counts: tuple[int, int],
    switches: tuple[SwitchPorts, SwitchPorts, SwitchPorts],
) -> ClosNeed:
    """Return what one network of the layout must serve; `counts` are hosts today and later."""
    leaf, spine, core = switches
    return ClosNeed(
        n_hosts=counts[1],
        leafs_per_su=layout.leafs_per_host,
        ports_per_host=layout.ports_per_leaf,
        host_gbps=layout.host_gbps,
        leaf=leaf,
        spine=spine,
        core=core,
        leaf_ratio=candidate.oversubscription.leaf,
        spine_ratio=candidate.oversubscription.spine,
        by_rail=layout.by_rail,
        tiers=candidate.tiers if candidate.tiers in (2, 3) else None,
        uplink_gbps=candidate.uplink_gbps,
        su_hosts=candidate.su_hosts,
        pod_hosts=candidate.pod_hosts,
        min_leafs=candidate.leafs or 0,
        min_spines=candidate.spines or 0,
        n_today=counts[0],
    )


def size_networks(candidate: Candidate, layout: Layout, need: ClosNeed, where: Place) -> Sized:
    """Return the first shape of ``layout.kinds`` that holds the hosts.

    Raises
    ------
    InputError
        If none fits: says what the switch holds at most and what would help.
    """
    _check_speed(layout, need, where)
    limit: NoFitError | None = None
    for kind in layout.kinds:
        try:
            sized = _size_kind(kind, candidate, layout, need)
        except NoFitError as no_fit:
            limit = no_fit
            continue
        if sized is not None:
            return sized
    raise InputError(_no_fit_fault(candidate, layout, need, limit, where))


def _size_kind(kind: Kind, candidate: Candidate, layout: Layout, need: ClosNeed) -> Sized | None:
    if kind == "star":
        return _size_star(candidate, layout, need)
    if kind == "pair":
        return _size_pair(candidate, layout, need)
    if kind == "clos":
        return _size_clos(need)
    return _size_dragonfly_plus(need) if kind == "dragonfly+" else _size_dragonfly(need)


def _size_clos(need: ClosNeed) -> Sized:
    shape = size_clos(need)
    switches = (shape.n_leafs, shape.n_spines, shape.n_cores)
    hops = 3 if shape.tiers == 2 else 5
    return Sized("clos", shape, *switches, shape.tiers, hops, shape.su_hosts, shape.n_sus)


def _size_dragonfly_plus(need: ClosNeed) -> Sized | None:
    plus = size_dragonfly_plus(need)
    if plus is None:
        return None
    switches = (plus.n_sus * plus.leafs_per_su, plus.n_groups * plus.spines_per_group, 0)
    return Sized("dragonfly+", plus, *switches, 2, 4, plus.su_hosts, plus.n_sus)


def _size_dragonfly(need: ClosNeed) -> Sized | None:
    fly = size_dragonfly(need)
    if fly is None:
        return None
    n_sus = -(-need.n_hosts // fly.hosts_per_router)
    return Sized("dragonfly", fly, fly.n_groups * fly.a, 0, 0, 1, 4, fly.hosts_per_router, n_sus)


def _size_star(candidate: Candidate, layout: Layout, need: ClosNeed) -> Sized | None:
    if (candidate.leafs or 1) > 1 or candidate.spines or candidate.leafs_per_host:
        return None
    ports = need.n_hosts * layout.leafs_per_host * layout.ports_per_leaf
    reserved = managers_wanted(candidate, "star")
    if not need.leaf.fits([(need.host_gbps, ports), (need.host_gbps, reserved)]):
        return None
    return Sized("star", None, 1, 0, 0, 1, 1, need.n_hosts, 1)


def _size_pair(candidate: Candidate, layout: Layout, need: ClosNeed) -> Sized | None:
    if (candidate.leafs or 2) > 2 or candidate.spines or (candidate.leafs_per_host or 2) > 2:
        return None
    if layout.leafs_per_host > 1:
        down = need.n_hosts * -(-layout.leafs_per_host // 2) * layout.ports_per_leaf
    else:
        down = -(-need.n_hosts // 2) * layout.ports_per_leaf
    for gbps in sorted({need.leaf.gbps, need.host_gbps}, reverse=True):
        if candidate.uplink_gbps not in (None, gbps):
            continue
        shape = size_pair(need.leaf, down, need.host_gbps, gbps, need.leaf_ratio)
        if shape is not None:
            return Sized("pair", shape, 2, 0, 0, 1, 2, need.n_hosts, 1)
    return None


def _check_speed(layout: Layout, need: ClosNeed, where: Place) -> None:
    leaf = need.leaf
    exact = layout.host_gbps == leaf.gbps or layout.host_gbps in leaf.splits
    if layout.host_gbps > leaf.gbps or (layout.mode == "split" and not exact):
        rates = ", ".join(f"{rate:g}" for rate in leaf.rates())
        raise InputError(
            Fault(
                where("switch"),
                _("{switch} has no port of {gbps:g} Gb/s for this host's NICs.").format(
                    switch=leaf.name, gbps=layout.host_gbps
                ),
                _("a switch with ports of {gbps:g} Gb/s; this one offers {rates}").format(
                    gbps=layout.host_gbps, rates=rates
                ),
                _("Choose another switch, or other planes."),
            )
        )


def _no_fit_fault(
    candidate: Candidate, layout: Layout, need: ClosNeed, limit: NoFitError | None, where: Place
) -> Fault:
    if limit is None:
        what = _(
            "{hosts} hosts do not fit a {topology} network of {switch} with these limits."
        ).format(hosts=need.n_hosts, topology=candidate.topology, switch=need.leaf.name)
        return Fault(
            where(),
            what,
            remedy=_("Leave `tiers`, `leafs` and `topology` open, or choose a larger switch."),
        )
    if limit.max_hosts == 0:
        return Fault(
            where(),
            _(
                "one host has {ports} ports for a leaf, more than {switch} can take at this "
                "oversubscription."
            ).format(ports=layout.ports_per_leaf, switch=need.leaf.name),
            remedy=_("Choose a switch with more ports, or spread a host over more leafs."),
        )
    return Fault(
        where("tiers") if candidate.tiers else where(),
        _(
            "{hosts} hosts do not fit {tiers} tiers of {switch} ({ports} ports of {gbps:g} Gb/s)."
        ).format(
            hosts=need.n_hosts,
            tiers=limit.tiers,
            switch=need.leaf.name,
            ports=need.leaf.count_at(need.host_gbps),
            gbps=need.host_gbps,
        ),
        _("at most {hosts} hosts").format(hosts=limit.max_hosts),
        _("Choose a switch with more ports, more planes, more tiers or more oversubscription."),
    )
