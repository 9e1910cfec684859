"""How many leafs, spines and cores a Clos network takes: the striping rules of published designs.

The rules, each of which a published table shows (see ``tests/topology/test_published.py``):

* A leaf serves a whole SU, populated or not, and has the uplinks of a whole SU.
* The number of spines a leaf stripes over divides its uplinks, so every leaf has the same number
  of links to every spine; likewise for cores and the uplinks of a spine.
* Tiers are the fewest that fit.
* In three tiers, spines form groups: one group per rail and block of SUs in a rail-optimised
  fabric (the "spine rail group" of NVIDIA RA-09950), one per block of SUs otherwise. Blocks are
  equal, and as few as can be without over 10 % more switches than the best choice; a group
  has at least four spines where that is possible, so that one spine is not half of a leaf.
  Where the cluster grows, the blocks are those that leave most switches to buy later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpufabric.topology.port_plan import SwitchPorts

__all__ = ["ClosNeed", "ClosShape", "NoFitError", "largest_hosts", "leaf_limits", "size_clos"]

_SLACK = 1.10  # blocks may cost so much more switches than the best choice; our own bound
_LEAST_FILL = 0.9  # with oversubscription, leafs may stay so empty to save spines; our own bound
_FEW_SPINES = 4  # Juniper JVD AI data centre: "minimum of 4 spines per fabric suggested"


@dataclass(frozen=True)
class ClosNeed:
    """What one Clos network (one plane, or one rail of a rail-only fabric) must serve.

    Parameters
    ----------
    n_hosts
        Hosts at the target size.
    leafs_per_su
        Leafs that serve the hosts of one SU: the rails, or the leafs that a host is spread over.
    ports_per_host
        Ports of one host on one leaf.
    host_gbps
        Rate of a host link [Gb/s].
    leaf, spine, core
        The switch of each tier.
    leaf_ratio, spine_ratio
        Oversubscription, down over up capacity, at the leafs and at the spines.
    by_rail
        True if a leaf serves one rail.
    tiers
        Tiers demanded, or None for the fewest that fit.
    uplink_gbps
        Rate of the links between switches, or None for the fastest that keeps the tiers few.
    su_hosts
        Hosts of one SU, or None for as many as a leaf holds.
    pod_hosts
        Hosts of one three-tier pod, or None for the rule.
    min_leafs, min_spines
        At least so many.
    n_today
        Of `n_hosts`, those that are built today; 0 for all.
    """

    n_hosts: int
    leafs_per_su: int
    ports_per_host: int
    host_gbps: float
    leaf: SwitchPorts
    spine: SwitchPorts
    core: SwitchPorts
    leaf_ratio: float = 1.0
    spine_ratio: float = 1.0
    by_rail: bool = True
    tiers: int | None = None
    uplink_gbps: float | None = None
    su_hosts: int | None = None
    pod_hosts: int | None = None
    min_leafs: int = 0
    min_spines: int = 0
    n_today: int = 0


@dataclass(frozen=True)
class ClosShape:
    """The counts of one Clos network and how its links are striped.

    Parameters
    ----------
    tiers
        2 or 3.
    su_hosts, n_sus, leafs_per_su
        Hosts of a full SU, number of SUs, leafs of an SU.
    leaf_down, leaf_up
        Host ports of a full leaf, and its uplinks.
    uplink_gbps, core_gbps
        Rate of leaf-spine and of spine-core links [Gb/s].
    by_rail
        True if the spine groups of three tiers are per rail.
    sus_per_block, n_groups
        SUs whose leafs share a group of spines; number of such groups (1 in two tiers).
    spines_per_group, links_per_pair
        Spines of one group; parallel links between a leaf and each of them.
    spine_down, spine_up
        Ports of a spine toward leafs (of a full group), and its uplinks.
    indices_per_core_group, cores_per_group, links_per_core
        A core group joins so many spines of every group, has so many cores, and so many parallel
        links between one spine and one core (0 in two tiers).
    """

    tiers: int
    su_hosts: int
    n_sus: int
    leafs_per_su: int
    leaf_down: int
    leaf_up: int
    uplink_gbps: float
    by_rail: bool
    sus_per_block: int
    n_groups: int
    spines_per_group: int
    links_per_pair: int
    spine_down: int
    spine_up: int = 0
    core_gbps: float = 0.0
    indices_per_core_group: int = 0
    cores_per_group: int = 0
    links_per_core: int = 0

    @property
    def n_leafs(self) -> int:
        """Leafs in all."""
        return self.n_sus * self.leafs_per_su

    @property
    def n_spines(self) -> int:
        """Spines in all."""
        return self.n_groups * self.spines_per_group

    @property
    def n_cores(self) -> int:
        """Cores in all."""
        if not self.indices_per_core_group:
            return 0
        return self.spines_per_group // self.indices_per_core_group * self.cores_per_group

    @property
    def n_switches(self) -> int:
        """Switches in all."""
        return self.n_leafs + self.n_spines + self.n_cores

    @property
    def n_blocks(self) -> int:
        """Blocks of SUs that share spine groups."""
        return -(-self.n_sus // self.sus_per_block)


class NoFitError(Exception):
    """No such network exists; carries how many hosts the demanded tiers hold at most.

    Parameters
    ----------
    tiers
        Tiers tried at most.
    max_hosts
        Hosts these tiers hold at most; 0 if a single host does not fit a leaf.
    """

    def __init__(self, tiers: int, max_hosts: int) -> None:
        self.tiers = tiers
        self.max_hosts = max_hosts
        super().__init__(f"{tiers} tiers hold {max_hosts} hosts")


def divisors(number: int) -> Iterator[int]:
    """Yield the divisors of `number` in ascending order."""
    for candidate in range(1, number + 1):
        if number % candidate == 0:
            yield candidate


def split_down_up(
    switch: SwitchPorts, down_gbps: float, up_gbps: float, ratio: float
) -> tuple[int, int]:
    """Return the most down ports, with their uplinks, that fit a switch at an oversubscription.

    Examples
    --------
    >>> split_down_up(SwitchPorts("x", 64, 400.0, 2, {}), 400.0, 400.0, 1.0)
    (32, 32)
    >>> split_down_up(SwitchPorts("x", 36, 40.0, 1, {}), 40.0, 40.0, 2.0)
    (24, 12)
    """
    for down in range(switch.count_at(down_gbps), 0, -1):
        up = uplinks_for(down, down_gbps, up_gbps, ratio)
        if switch.fits([(down_gbps, down), (up_gbps, up)]):
            return down, up
    return 0, 0


def uplinks_for(down: int, down_gbps: float, up_gbps: float, ratio: float) -> int:
    """Return the fewest uplinks that keep down over up capacity within `ratio`."""
    exact = down * down_gbps / (ratio * up_gbps)
    return max(1, int(-(-exact // 1)) if exact % 1 > 1e-9 else round(exact))


def size_clos(need: ClosNeed) -> ClosShape:
    """Return the shape of the network: fewest tiers first, then the fastest uplinks.

    Raises
    ------
    NoFitError
        If no network of the demanded (or of three) tiers holds the hosts.
    """
    tiers = (need.tiers,) if need.tiers else (2, 3)
    for wanted in tiers:
        for uplink_gbps in _uplink_rates(need):
            shape = _size_leafs(need, wanted, uplink_gbps)
            if shape is not None:
                return shape
    raise NoFitError(tiers[-1], largest_hosts(need, tiers[-1]))


def _uplink_rates(need: ClosNeed) -> tuple[float, ...]:
    if need.uplink_gbps is not None:
        return (need.uplink_gbps,)
    both = set(need.leaf.rates()) & set(need.spine.rates())
    if not both:
        both = {min(need.leaf.gbps, need.spine.gbps)}
    fast = {rate for rate in both if rate >= need.host_gbps} or {max(both)}
    return tuple(sorted(fast, reverse=True))


def _leaf(need: ClosNeed, uplink_gbps: float) -> tuple[int, int, int]:
    """Return hosts per SU, host ports and uplinks of a leaf; zeros if a host does not fit."""
    down, _ = split_down_up(need.leaf, need.host_gbps, uplink_gbps, need.leaf_ratio)
    su_hosts = down // need.ports_per_host
    if need.su_hosts is not None:
        if need.su_hosts > su_hosts:
            return 0, 0, 0
        su_hosts = need.su_hosts
    if su_hosts == 0:
        return 0, 0, 0
    used = su_hosts * need.ports_per_host
    return su_hosts, used, uplinks_for(used, need.host_gbps, uplink_gbps, need.leaf_ratio)


def _size_leafs(need: ClosNeed, tiers: int, uplink_gbps: float) -> ClosShape | None:
    """Return the shape with the fullest leafs; with oversubscription, that with fewest switches.

    A ratio such as 2:1 can give a leaf 21 uplinks, which divide by 21 spines and little else.
    Leafs with a few hosts less, but no more SUs, then take fewer spines.
    """
    if need.leaf_ratio == 1 or need.su_hosts is not None:
        return _size(need, tiers, uplink_gbps)
    most = _leaf(need, uplink_gbps)[0]
    tried = (
        _size(replace(need, su_hosts=hosts), tiers, uplink_gbps)
        for hosts in range(most, round(most * _LEAST_FILL) - 1, -1)
        if hosts and -(-need.n_hosts // hosts) == -(-need.n_hosts // most)
    )
    shapes = [shape for shape in tried if shape is not None]
    return min(shapes, key=lambda s: (s.n_switches, -s.su_hosts), default=None)


def _size(need: ClosNeed, tiers: int, uplink_gbps: float) -> ClosShape | None:
    su_hosts, down, up = _leaf(need, uplink_gbps)
    if not su_hosts:
        return None
    n_sus = max(-(-need.n_hosts // su_hosts), -(-need.min_leafs // need.leafs_per_su), 1)
    base = ClosShape(
        tiers=tiers,
        su_hosts=su_hosts,
        n_sus=n_sus,
        leafs_per_su=need.leafs_per_su,
        leaf_down=down,
        leaf_up=up,
        uplink_gbps=uplink_gbps,
        by_rail=need.by_rail,
        sus_per_block=n_sus,
        n_groups=1,
        spines_per_group=0,
        links_per_pair=0,
        spine_down=0,
    )
    return _two_tiers(need, base) if tiers == 2 else _three_tiers(need, base)


def _stripe(leafs: int, uplinks: int, ports: int, at_least: int) -> int:
    """Return the fewest spines that divide the uplinks and have the ports, or 0."""
    for spines in divisors(uplinks):
        if spines >= at_least and leafs * (uplinks // spines) <= ports:
            return spines
    return 0


def _two_tiers(need: ClosNeed, base: ClosShape) -> ClosShape | None:
    ports = need.spine.count_at(base.uplink_gbps)
    spines = _stripe(base.n_leafs, base.leaf_up, ports, need.min_spines)
    if not spines:
        return None
    pair = base.leaf_up // spines
    return _with(base, spines_per_group=spines, links_per_pair=pair, spine_down=base.n_leafs * pair)


def _with(shape: ClosShape, **changes: float) -> ClosShape:
    return ClosShape(**{**shape.__dict__, **changes})


def _three_tiers(need: ClosNeed, base: ClosShape) -> ClosShape | None:
    shapes: list[ClosShape] = []
    for at_least in (max(need.min_spines, _FEW_SPINES), need.min_spines):
        for block in _blocks(need, base):
            shapes.extend(_grouped(need, base, block, at_least))
        if shapes:
            break
    if not shapes:
        return None
    best = min(shape.n_switches for shape in shapes)
    near = [shape for shape in shapes if shape.n_switches <= best * _SLACK]
    return min(near, key=lambda s: (_bought_today(need, s), s.n_blocks, s.n_switches))


def _bought_today(need: ClosNeed, shape: ClosShape) -> int:
    """Return the switches to buy today where the cluster grows later, else 0.

    Whole spine groups of blocks without hosts wait; cores do not, as every spine reaches them.
    """
    if need.n_today in (0, need.n_hosts):
        return 0
    sus = -(-need.n_today // shape.su_hosts)
    groups = -(-sus // shape.sus_per_block) * (shape.n_groups // shape.n_blocks)
    return sus * shape.leafs_per_su + groups * shape.spines_per_group + shape.n_cores


def _blocks(need: ClosNeed, base: ClosShape) -> Iterator[int]:
    """Yield the SUs per block to try: equal blocks only, none larger than needed."""
    if need.pod_hosts is not None:
        yield max(1, need.pod_hosts // base.su_hosts)
        return
    seen = set()
    for n_blocks in range(1, base.n_sus + 1):
        block = -(-base.n_sus // n_blocks)
        if block not in seen and -(-base.n_sus // block) == n_blocks:
            seen.add(block)
            yield block


def _grouped(need: ClosNeed, base: ClosShape, block: int, at_least: int) -> Iterator[ClosShape]:
    """Yield the three-tier shapes whose spine groups serve `block` SUs."""
    leafs = block if base.by_rail else block * base.leafs_per_su
    n_blocks = -(-base.n_sus // block)
    n_groups = n_blocks * base.leafs_per_su if base.by_rail else n_blocks
    rates = sorted(set(need.spine.rates()) & set(need.core.rates()), reverse=True)
    for core_gbps in [rate for rate in rates if rate >= base.uplink_gbps]:
        limit, _ = split_down_up(need.spine, base.uplink_gbps, core_gbps, need.spine_ratio)
        spines = _stripe(leafs, base.leaf_up, limit, at_least)
        if not spines:
            continue
        pair = base.leaf_up // spines
        up = uplinks_for(leafs * pair, base.uplink_gbps, core_gbps, need.spine_ratio)
        cores = _core_groups(n_groups, spines, up, need.core.count_at(core_gbps))
        if cores is None:
            continue
        indices, per_group = cores
        yield _with(
            base,
            sus_per_block=block,
            n_groups=n_groups,
            spines_per_group=spines,
            links_per_pair=pair,
            spine_down=leafs * pair,
            spine_up=up,
            core_gbps=core_gbps,
            indices_per_core_group=indices,
            cores_per_group=per_group,
            links_per_core=up // per_group,
        )


def _core_groups(n_groups: int, spines: int, uplinks: int, ports: int) -> tuple[int, int] | None:
    """Return spine indices and cores per core group with the fewest cores, or None.

    A core group takes the same `indices` spines of every spine group, and its cores divide the
    spines' uplinks. Among equals the widest group wins: it spreads a spine over most cores.
    """
    best: tuple[int, int] | None = None
    fewest = 0
    for indices in divisors(spines):
        for cores in divisors(uplinks):
            if n_groups * indices * (uplinks // cores) <= ports:
                total = spines // indices * cores
                if best is None or total < fewest or (total == fewest and cores > best[1]):
                    best, fewest = (indices, cores), total
                break
    return best


def largest_hosts(need: ClosNeed, tiers: int) -> int:
    """Return the most hosts that a network of these switches and `tiers` holds; 0 for none."""
    most = 0
    for uplink_gbps in _uplink_rates(need):
        su_hosts, _, up = _leaf(need, uplink_gbps)
        if not su_hosts or up < need.min_spines:
            continue
        n_sus = _largest_sus(need, tiers, uplink_gbps, su_hosts)
        if n_sus * need.leafs_per_su >= need.min_leafs:
            most = max(most, su_hosts * n_sus)
    return most


def leaf_limits(need: ClosNeed) -> tuple[int, int]:
    """Return the most hosts that one leaf can serve, and the most uplinks that a leaf can have."""
    free = replace(need, su_hosts=None)
    hosts = max(_leaf(free, gbps)[0] for gbps in _uplink_rates(need))
    return hosts, max(_leaf(need, gbps)[2] for gbps in _uplink_rates(need))


def _largest_sus(need: ClosNeed, tiers: int, uplink_gbps: float, su_hosts: int) -> int:
    if tiers == 2:
        return need.spine.count_at(uplink_gbps) // need.leafs_per_su
    most = 0
    for core_gbps in set(need.spine.rates()) & set(need.core.rates()):
        if core_gbps < uplink_gbps:
            continue
        down, _ = split_down_up(need.spine, uplink_gbps, core_gbps, need.spine_ratio)
        ports = need.core.count_at(core_gbps)
        groups = ports // need.leafs_per_su if need.by_rail else ports
        per_group = down if need.by_rail else down // need.leafs_per_su
        if need.pod_hosts is not None:
            block = max(1, need.pod_hosts // su_hosts)
            per_group = block if block <= per_group else 0
        most = max(most, groups * per_group)
    return most
