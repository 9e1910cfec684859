"""The shape of the networks of one candidate: the first kind that fits, or why none does."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import MAX_HOSTS, Candidate
from gpufabric.topology.clos_sizing import (
    ClosNeed,
    ClosShape,
    NoFitError,
    largest_hosts,
    size_clos,
)
from gpufabric.topology.decision import Place
from gpufabric.topology.dragonfly import (
    DragonflyPlusShape,
    DragonflyShape,
    size_dragonfly,
    size_dragonfly_plus,
)
from gpufabric.topology.layout import Kind, Layout
from gpufabric.topology.no_fit import NoFit, no_fit
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


def managers_wanted(candidate: Candidate, kind: Kind, leaf: SwitchPorts) -> int:
    """Return how many manager ports to keep in each network of `leaf` switches.

    Notes
    -----
    Four in a leaf-spine InfiniBand fabric: NVIDIA RA-11334-001 V08 Table 4.1 counts
    "node and UFM" cables as 8 x nodes + 4. None on a single managed switch, which runs the subnet
    manager itself; two on an unmanaged one (a redundant pair, assumed).
    Ethernet fabrics are controlled out of band.
    """
    if candidate.manager_ports is not None:
        return candidate.manager_ports
    if candidate.fabric == "roce":
        return 0
    if kind == "star" and leaf.managed:
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
    TooManyHostsError
        If none fits: says what the switch holds at most and what would help.
    InputError
        If the switch has no port for the host's NICs.
    """
    _check_speed(layout, need, where)
    for kind in layout.kinds:
        sized = _size_kind(kind, candidate, layout, need)
        if sized is None:
            continue
        if kind == "clos" and not _has_manager_ports(candidate, layout, need, sized):
            return _size_star(candidate, layout, need, reserved=0) or sized
        return sized
    raise no_fit(NoFit(candidate, layout, need, _most_hosts(candidate, layout, need)), where)


def _has_manager_ports(candidate: Candidate, layout: Layout, need: ClosNeed, sized: Sized) -> bool:
    """Tell whether the hosts leave the leafs of one network enough ports for its managers.

    A single switch without a free port is no worse than leafs and spines without one.
    """
    if "star" not in layout.kinds:
        return True
    free = sized.n_sus * sized.su_hosts - need.n_hosts
    ports = free * layout.leafs_per_host * layout.ports_per_leaf
    return ports >= managers_wanted(candidate, "clos", need.leaf)


def _most_hosts(candidate: Candidate, layout: Layout, need: ClosNeed) -> int:
    """Return the most hosts that any kind of the layout holds; 0 if not even one."""
    most = 0
    for kind in layout.kinds:
        if kind == "clos":
            tiers = (need.tiers,) if need.tiers else (2, 3)
            most = max(most, *(largest_hosts(need, number) for number in tiers))
        else:
            most = max(most, _most_of(kind, candidate, layout, need))
    return most


def _most_of(kind: Kind, candidate: Candidate, layout: Layout, need: ClosNeed) -> int:
    """Return the most hosts that a kind without a formula holds, by halving."""
    low, high = 0, MAX_HOSTS + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _size_kind(kind, candidate, layout, replace(need, n_hosts=middle)) is None:
            high = middle
        else:
            low = middle
    return low


def _size_kind(kind: Kind, candidate: Candidate, layout: Layout, need: ClosNeed) -> Sized | None:
    if kind == "star":
        return _size_star(candidate, layout, need)
    if kind == "pair":
        return _size_pair(candidate, layout, need)
    if kind == "clos":
        return _size_clos(need)
    return _size_dragonfly_plus(need) if kind == "dragonfly+" else _size_dragonfly(need)


def _size_clos(need: ClosNeed) -> Sized | None:
    try:
        shape = size_clos(need)
    except NoFitError:
        return None
    switches = (shape.n_leafs, shape.n_spines, shape.n_cores)
    hops = 3 if shape.tiers == 2 else 5
    return Sized("clos", shape, *switches, shape.tiers, hops, shape.su_hosts, shape.n_sus)


def _size_dragonfly_plus(need: ClosNeed) -> Sized | None:
    plus = size_dragonfly_plus(need)
    if plus is None:
        return None
    switches = (plus.n_sus * plus.leafs_per_su, plus.n_groups * plus.spines_per_group, 0)
    hops = 4 if plus.n_groups > 1 else 3
    return Sized("dragonfly+", plus, *switches, 2, hops, plus.su_hosts, plus.n_sus)


def _size_dragonfly(need: ClosNeed) -> Sized | None:
    fly = size_dragonfly(need)
    if fly is None:
        return None
    n_sus = -(-need.n_hosts // fly.hosts_per_router)
    return Sized("dragonfly", fly, fly.n_groups * fly.a, 0, 0, 1, 4, fly.hosts_per_router, n_sus)


def _size_star(
    candidate: Candidate, layout: Layout, need: ClosNeed, reserved: int | None = None
) -> Sized | None:
    """Return a single switch if it holds the hosts and `reserved` ports (those for managers)."""
    on_pair = candidate.topology == "fat-tree" and layout.leafs_per_host > 1
    if (candidate.leafs or 1) > 1 or candidate.spines or candidate.leafs_per_host or on_pair:
        return None
    ports = need.n_hosts * layout.leafs_per_host * layout.ports_per_leaf
    kept = managers_wanted(candidate, "star", need.leaf) if reserved is None else reserved
    if not need.leaf.fits([(need.host_gbps, ports), (need.host_gbps, kept)]):
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
    uplinks = [rate for rate in leaf.rates() if rate in need.spine.rates()]
    if need.uplink_gbps is not None and need.uplink_gbps not in uplinks and "clos" in layout.kinds:
        raise InputError(
            Fault(
                where("uplink_gbps"),
                _("{leaf} and {spine} have no common port of {gbps:g} Gb/s.").format(
                    leaf=leaf.name, spine=need.spine.name, gbps=need.uplink_gbps
                ),
                _("one of {rates}").format(rates=", ".join(f"{rate:g}" for rate in uplinks)),
            )
        )
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
