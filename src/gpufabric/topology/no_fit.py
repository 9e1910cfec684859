"""Why a network cannot be built, told of the demand that stands in the way, with its true limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpufabric.core.errors import Fault, InputError
from gpufabric.core.text import _
from gpufabric.model.spec_parts import Candidate
from gpufabric.topology.clos_sizing import ClosNeed, largest_hosts, leaf_limits
from gpufabric.topology.decision import Place
from gpufabric.topology.layout import Layout

__all__ = ["NoFit", "TooManyHostsError", "no_fit"]


class TooManyHostsError(InputError):
    """The hosts do not fit; carries how many do.

    Parameters
    ----------
    faults
        What to tell the user.
    max_hosts
        Hosts that fit at most; 0 if not even one does.
    """

    def __init__(self, faults: Fault | list[Fault], max_hosts: int) -> None:
        super().__init__(faults)
        self.max_hosts = max_hosts


@dataclass(frozen=True)
class NoFit:
    """A demand that cannot be met, and the most hosts that these switches hold."""

    candidate: Candidate
    layout: Layout
    need: ClosNeed
    max_hosts: int


def no_fit(tried: NoFit, where: Place) -> TooManyHostsError:
    """Return the error to raise where no kind of network holds the hosts."""
    if tried.max_hosts:
        return TooManyHostsError(_too_many(tried, where), tried.max_hosts)
    return TooManyHostsError(list(_blocked(tried, where)) or [_not_one(tried, where)], 0)


def _too_many(tried: NoFit, where: Place) -> Fault:
    candidate, need, layout = tried.candidate, tried.need, tried.layout
    expected = _("at most {hosts} hosts").format(hosts=tried.max_hosts)
    if "clos" not in layout.kinds:
        place = where("tiers") if candidate.tiers else where("topology")
        what = _("{hosts} hosts do not fit this kind of network of {switch}.")
        return Fault(
            place,
            what.format(hosts=need.n_hosts, switch=need.leaf.name),
            expected,
            _pair_remedy(tried)
            or _("Choose a switch with more ports, or a topology with more tiers."),
        )
    return Fault(
        where("tiers") if candidate.tiers else where(),
        _(
            "{hosts} hosts do not fit {tiers} tiers of {switch} ({ports} ports of {gbps:g} Gb/s)."
        ).format(
            hosts=need.n_hosts,
            tiers=need.tiers or 3,
            switch=need.leaf.name,
            ports=need.leaf.count_at(need.host_gbps),
            gbps=need.host_gbps,
        ),
        expected,
        _("Choose a switch with more ports, more planes, more tiers or more oversubscription."),
    )


def _pair_remedy(tried: NoFit) -> str:
    """Return at which oversubscription two switches back to back hold the hosts, or nothing."""
    need, layout = tried.need, tried.layout
    if "pair" not in layout.kinds:
        return ""
    if layout.leafs_per_host > 1:
        down = need.n_hosts * -(-layout.leafs_per_host // 2) * layout.ports_per_leaf
    else:
        down = -(-need.n_hosts // 2) * layout.ports_per_leaf
    cross = need.leaf.count_at(need.host_gbps) - down
    if cross < 1:
        return ""
    return _(
        "Two switches back to back hold them with {down} ports down and {cross} across, at an "
        "oversubscription of {ratio:.2f}."
    ).format(down=down, cross=cross, ratio=down / cross + 0.005)


def _blocked(tried: NoFit, where: Place) -> Iterator[Fault]:
    """Yield the first demand without which a host would fit."""
    need, candidate = tried.need, tried.candidate
    if not {"clos", "dragonfly+"} & set(tried.layout.kinds):
        return
    rate = candidate.uplink_gbps
    hosts, uplinks = leaf_limits(need)
    if not hosts and rate is not None and leaf_limits(replace(need, uplink_gbps=None))[0]:
        yield Fault(
            where("uplink_gbps"),
            _(
                "uplinks of {gbps:g} Gb/s are so slow that {switch} has too few ports for those of "
                "a single host."
            ).format(gbps=rate, switch=need.leaf.name),
            remedy=_("Choose faster uplinks, or leave this open."),
        )
        return
    if hosts and need.su_hosts is not None and need.su_hosts > hosts:
        yield Fault(
            where("su_hosts"),
            _("a leaf of {switch} cannot serve {hosts} hosts at this oversubscription.").format(
                switch=need.leaf.name, hosts=need.su_hosts
            ),
            _("at most {hosts} hosts in an SU").format(hosts=hosts),
        )
    elif hosts and need.min_spines > uplinks:
        yield Fault(
            where("spines"),
            _("a leaf of {switch} has {uplinks} uplinks, too few for {spines} spines.").format(
                switch=need.leaf.name, uplinks=uplinks, spines=need.min_spines
            ),
            _("at most {spines}").format(spines=uplinks),
        )
    elif hosts and "clos" in tried.layout.kinds:
        yield from _above_the_leaf(tried, where)


def _above_the_leaf(tried: NoFit, where: Place) -> Iterator[Fault]:
    """Yield what stands in the way where leafs alone would serve the hosts."""
    need, tiers = tried.need, tried.need.tiers or 3
    if need.pod_hosts is not None and largest_hosts(replace(need, pod_hosts=None), tiers):
        yield Fault(
            where("pod_hosts"),
            _("the spines of a pod have too few ports for {hosts} hosts.").format(
                hosts=need.pod_hosts
            ),
            remedy=_("Choose smaller pods, or leave this open."),
        )
        return
    free = largest_hosts(replace(need, min_leafs=0), tiers)
    if need.min_leafs and free:
        su_hosts = need.su_hosts or leaf_limits(need)[0]
        yield Fault(
            where("leafs"),
            _("{tiers} tiers of {switch} cannot join {leafs} leafs.").format(
                tiers=tiers, switch=need.spine.name, leafs=need.min_leafs
            ),
            _("at most {leafs}").format(leafs=free // su_hosts * need.leafs_per_su),
        )
        return
    yield Fault(
        where(),
        _("one host is cabled to {leafs} leafs, more than {tiers} tiers of {switch} join.").format(
            leafs=need.leafs_per_su, tiers=tiers, switch=need.spine.name
        ),
        remedy=_("Choose a switch with more ports, fewer rails or leafs per host, or more planes."),
    )


def _not_one(tried: NoFit, where: Place) -> Fault:
    if set(tried.layout.kinds) & {"clos", "dragonfly+", "dragonfly"}:
        return Fault(
            where(),
            _(
                "one host has {ports} ports for a leaf, more than {switch} can take in this "
                "topology and at this oversubscription."
            ).format(ports=tried.layout.ports_per_leaf, switch=tried.need.leaf.name),
            remedy=_("Choose a switch with more ports, or spread a host over more leafs."),
        )
    return Fault(
        where("tiers") if tried.candidate.tiers else where("topology"),
        _("not even one host fits this kind of network of {switch} with these limits.").format(
            switch=tried.need.leaf.name
        ),
        remedy=_(
            "Choose a switch with more ports, or a topology with more tiers; leave leafs and "
            "leafs_per_host open."
        ),
    )
